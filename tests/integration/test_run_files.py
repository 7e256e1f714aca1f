#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of the run directory that outlive the daemon: what lies in their place, what is damaged in
them, and what a kill leaves in them."""
import contextlib
import os
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile

from harness import Daemon, board, run_tests, until
from persist_case import Quick, config, rows, state_is
from reboots import Board, reason_to_skip

FILES = {"clock", "history", "timeline", "alerts", "holds", "recorder", "mqtt"}
CONFIG = "[sampling]\ninterval = 100ms\n[mqtt]\nhost = 127.0.0.1\nport = 1\ndevice_id = a\n"


class Slow(Quick):
    more = ["quick", "3600000", "300"]  # no block before the stop


def degraded(daemon):
    return {row["file"]: row["reason"] for row in daemon.call("GetSelf")["degraded"]}


@contextlib.contextmanager
def place():
    """A directory that several daemons live in, one after the other."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-run."))
    try:
        (path / "run").mkdir()
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def expect_told(daemon, words):
    told = degraded(daemon)
    assert set(told) == FILES, told
    for name in FILES:
        assert words in told[name], (name, told[name])
        assert [t for t in daemon.call("GetStatus")["degraded"]
                if t == f"{daemon.run_dir}/{name}: {told[name]}"], name
        assert daemon.log().count(f"{daemon.run_dir}/{name}: {told[name]}") == 1, daemon.log()
    for verb in (["status"], ["self"], ["doctor"]):
        shown = " ".join(daemon.ctl(*verb, "--no-pager").stdout.split())
        assert words in shown and "holds" in shown and "recorder" in shown, (verb, shown)


def test_what_is_in_the_way_is_told_and_left_alone():
    def mode(path):
        path.write_text("somebody's")
        path.chmod(0o644)

    def foreign(path):
        path.write_text("somebody's")
        path.chmod(0o600)
        os.chown(path, 65534, 65534)

    def twice(path):
        path.write_text("somebody's")
        path.chmod(0o600)
        os.link(path, path.with_name(path.name + ".too"))

    def link(path):
        target = path.with_name(path.name + ".target")
        target.write_text("somebody's")
        path.symlink_to(target)

    cases = [(link, "a symbolic link"), (lambda p: os.mkfifo(p, 0o600), "a FIFO"), (lambda p: p.mkdir(), "a directory"),
             (mode, "grants access to other users"), (twice, "more than one hard link")]
    if os.geteuid() == 0:
        cases.append((foreign, "another user"))
    for make, words in cases:
        with place() as home:
            for name in FILES:
                make(home / "run" / name)
            with Daemon(CONFIG, run_dir=home) as daemon:
                expect_told(daemon, words)
                assert "in memory" in degraded(daemon)["holds"]
                daemon.call("Mark", label="goes on")
                until("samples", lambda: daemon.metric("cpu/load1"))
            for path in (home / "run").iterdir():
                if path.is_file() and path.suffix == ".target":
                    assert path.read_text() == "somebody's", path
    with Daemon(CONFIG) as daemon:
        assert degraded(daemon) == {} and daemon.call("GetSelf").get("history_reason") is None


def test_a_file_that_is_removed_or_replaced_while_it_is_used_is_told():
    def replace(path):
        path.with_name("other").write_text("somebody's")
        path.with_name("other").rename(path)

    for change in (os.unlink, replace, lambda path: path.rename(path.with_name(path.name + ".bak"))):
        with Daemon(CONFIG) as daemon:
            for name in FILES | {"runs"}:
                change(daemon.run_dir / name)
            told = until("all are told", lambda: len(t := degraded(daemon)) == len(FILES) + 1 and t)
            assert all("removed or replaced" in reason and "only in memory" in reason for reason in told.values()), told
            assert told["holds"] in daemon.log()


def test_a_damaged_header_or_length_is_told():
    for hurt in (lambda path: path.write_bytes(b"\xff" + path.read_bytes()[1:]), lambda path: os.truncate(path, 1000)):
        with place() as home:
            daemon = Daemon(CONFIG, run_dir=home)
            try:
                daemon.start()
                daemon.kill()
                for name in FILES:
                    hurt(home / "run" / name)
                daemon.start()
                expect_told(daemon, "it was created again")
                daemon.kill()
                daemon.start()
                assert degraded(daemon) == {}, degraded(daemon)
                daemon.stop()
            finally:
                daemon.clean()


def test_a_restart_with_another_size_of_history_is_no_damage():
    with place() as home:
        for size in ("1M", "2M"):
            with Daemon(CONFIG + f"[history]\nmemory = {size}\n", run_dir=home) as daemon:
                assert degraded(daemon) == {}, degraded(daemon)


def test_the_history_grows_up_to_a_hundredth_of_the_memory():
    with place() as home:
        root, _ = board(home)
        (root / "proc" / "meminfo").write_text("MemTotal:  524288 kB\nMemFree:  262144 kB\nMemAvailable:  393216 kB\n")
        with Daemon(root=root, run_dir=home) as daemon:
            until("a sample", lambda: daemon.metric("temperature/max"))
            told = daemon.call("GetSelf")
            assert told["history_bytes"] == 5 << 20 and 0 < told["history_used_bytes"] < 1 << 20, told
            assert (home / "run" / "history").stat().st_blocks * 512 < 1 << 20


def test_a_full_run_directory_stops_the_growth_and_nothing_else():
    with place() as home:
        run = home / "run"
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=755", "none", str(run)], capture_output=True).returncode:
            return "no mount"
        try:
            with Daemon("[sampling]\ninterval = 100ms\n[statsd]\nenabled = yes\n", run_dir=home) as daemon:
                until("a sample", lambda: daemon.metric("cpu/load1"))
                with contextlib.suppress(OSError), open(run / "filler", "wb", buffering=0) as filler:
                    while True:
                        filler.write(bytes(4096))
                out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                names = iter(range(1 << 30))

                def refused():
                    lines = [f"g{next(names)}:1|g|#app:many{n}" for n in range(30)]
                    out.sendto("\n".join(lines).encode(), str(run / "statsd"))
                    return degraded(daemon).get("history")

                with contextlib.closing(out):
                    assert "cannot grow" in until("it is refused", refused, pause=0.2)
                before = daemon.metric("cpu/load1")["time_us"]
                until("it goes on", lambda: daemon.metric("cpu/load1")["time_us"] > before)
                assert max(t for t, _ in times_and_values(daemon, "cpu/load1")) > before - 1_000_000
                assert daemon.log().count("cannot grow") == 1, daemon.log()
        finally:
            subprocess.run(["umount", str(run)], check=True)


def times_and_values(daemon, name):
    with contextlib.closing(daemon.client(30)) as client:
        return {(t, v) for reply in client.stream("GetHistory", glob=name, from_us=1) for series in reply["series"]
                for t, v in zip(series["time_us"], series["mean"]) if series["name"] == name}


def test_nothing_damaged_is_believed():
    random.seed(8)
    names = ("memory/available", "cpu/load1")
    with place() as home, place() as safe:
        daemon = Daemon(CONFIG, run_dir=home)
        try:
            daemon.start()
            until("samples", lambda: len(times_and_values(daemon, names[0])) > 40)
            daemon.call("Mark", label="before")
            truth = None
            daemon.kill()
            daemon.start()
            begun = daemon.call("GetStatus")["time_us"]
            truth = {name: {t for t, _ in times_and_values(daemon, name)} for name in names}
            daemon.kill()
            for name in FILES:
                shutil.copyfile(home / "run" / name, safe / name)
            for turn in range(8):
                for name in FILES:
                    data = bytearray((safe / name).read_bytes())
                    used = [at for at in range(0, len(data), 64) if any(data[at:at + 64])]
                    for _ in range(1 << turn % 5):
                        data[min(random.choice(used) + random.randrange(64), len(data) - 1)] ^= 1 << random.randrange(8)
                    if turn % 3 == 2:
                        del data[random.randrange(len(data)):]
                    (home / "run" / name).write_bytes(data)
                daemon.start()
                for name in names:
                    odd = {t for t, _ in times_and_values(daemon, name) if t < begun - 2_000_000} - truth[name]
                    near = {t for t in odd if not any(abs(t - other) < 2000 for other in truth[name])}
                    assert not near, (turn, name, sorted(near)[:5])
                assert daemon.ctl("status", "--no-pager").stdout
                daemon.kill()
        finally:
            daemon.clean()


def test_a_kill_loses_nothing_of_the_history_on_disk():
    """No block was written before the kill: all comes from the live files."""
    if reason := reason_to_skip():
        return reason
    with Board("") as board:
        daemon = Slow(config(board.state, "2M"))
        try:
            daemon.start()
            state_is(daemon, "ok")
            begun = daemon.call("GetStatus")["time_us"]
            for n in range(20):
                daemon.call("Mark", label=f"mark {n}")
                until("a sample", lambda: daemon.metric("cpu/load1")["time_us"] > begun + n * 400_000)
            samples = len([t for t in rows(daemon) if t > begun])
            daemon.kill()
            daemon.start()
            state_is(daemon, "ok")
            killed = daemon.call("GetStatus")["time_us"]
            assert daemon.call("GetSelf")["history_persist_dropped"] == 0
            daemon.stop()
        finally:
            daemon.clean()
        assert samples > 20, samples
        with board.boot() as after:
            state_is(after, "ok")
            marks = [e["text"] for e in after.call("ListEvents")["events"]
                     if e["kind"] == "mark" and e.get("boot_seq") == 1]
            assert [n for n in range(20) if [m for m in marks if m.endswith(f"mark {n}")]] == list(range(20)), marks
            assert len(marks) == 20, marks
            with contextlib.closing(after.client(30)) as client:
                found = [(t, n) for reply in client.stream("GetHistory", glob="cpu/load1", from_us=1)
                         for series in reply["series"] for t, n in zip(series["time_us"], series["count"]) if t < killed]
            assert found == sorted(set(found)), found
            assert sum(n for _, n in found) >= samples, (found, samples)


if __name__ == "__main__":
    run_tests(dict(globals()))
