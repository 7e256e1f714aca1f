#!/usr/bin/env python3
"""History that survives a reboot: what is written, and everything that can be wrong with the place
where it is written. quick-daemon is the daemon with seconds instead of minutes between two blocks.
What needs file systems of its own runs as root, in a mount namespace."""
import contextlib
import ctypes
import os
import pathlib
import random
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

from harness import BUILD, Daemon, run_tests, until

QUICK = [str(BUILD / "tests" / "integration" / "quick-daemon"), "-c"]
MIB = 1 << 20


class Quick(Daemon):
    program = QUICK
    more = ["1000", "300"]


def config(path, size="1M"):
    return f"[sampling]\ninterval = 200ms\n[history]\npersist = yes\npath = {path}\npersist_size = {size}\n"


@contextlib.contextmanager
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-state."))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def told(daemon):
    return daemon.call("GetSelf")


def state_is(daemon, wanted, patience=30):
    return until(f"the state is {wanted}: {told(daemon)}",
                 lambda: (lambda s: s if s["history_persist_state"] == wanted else None)(told(daemon)), patience, 0.1)


def written_more(daemon):
    before = told(daemon)["history_persist_written_bytes"]
    until("another block", lambda: told(daemon)["history_persist_written_bytes"] > before)


def samples_go_on(daemon):
    before = daemon.metric("cpu/load1")["time_us"]
    until("samples", lambda: daemon.metric("cpu/load1")["time_us"] > before, 5)


def degraded(daemon, *words, patience=30):
    """It says so everywhere, with the reason, and goes on."""
    reason = state_is(daemon, "degraded", patience)["history_persist_reason"]
    for word in words:
        assert word in reason, reason
    assert f"history: not persistent: {reason}" in daemon.call("GetStatus")["degraded"]
    samples_go_on(daemon)
    until("the metric", lambda: daemon.metric("self/history_degraded")["value"] == 1)
    assert reason in daemon.ctl("self", "--no-pager").stdout
    return reason


def well_again(daemon, patience=30):
    state_is(daemon, "ok", patience)
    events = [e["text"] for e in daemon.call("ListEvents")["events"]]
    assert "history is persistent again" in events, events
    assert not [d for d in daemon.call("GetStatus")["degraded"] if "not persistent" in d]
    until("the metric", lambda: daemon.metric("self/history_degraded")["value"] == 0)
    written_more(daemon)


def rows(daemon, glob="cpu/load1"):
    with contextlib.closing(daemon.client(30)) as client:
        return [t for reply in client.stream("GetHistory", glob=glob, from_us=1)
                for series in reply["series"] for t in series["time_us"]]


def test_volatile_writes_nothing_and_makes_no_folder():
    with folder() as home:
        env = dict(HOME=str(home), XDG_STATE_HOME=str(home), STATE_DIRECTORY=str(home / "state"))
        with Daemon("[sampling]\ninterval = 100ms\n", env=env) as daemon:
            until("a few samples", lambda: daemon.metric("self/metrics") and len(rows(daemon)) > 10)
            self = told(daemon)
            assert self["history_persist_state"] == "off" and self["history_persist_written_bytes"] == 0, self
            assert "boot_seq" not in daemon.call("GetStatus")
            assert daemon.metric("self/history_degraded")["value"] is None
            assert daemon.metric("self/history_written_bytes")["value"] == 0
        assert list(home.iterdir()) == []


def test_the_service_s_state_directory_is_used():
    with folder() as home:
        env = dict(STATE_DIRECTORY=f"{home / 'state'}:/nonexistent")
        with Daemon("[history]\npersist = yes\npersist_size = 1M\n", env=env) as daemon:
            self = state_is(daemon, "ok")
            assert self["history_persist_path"] == f"{home}/state/history", self
            assert daemon.call("GetStatus")["boot_seq"] == 1
            assert self["history_persist_day_limit_bytes"] == 16 * MIB
            assert self["history_persist_loss_s"] >= 60, self
        place = (home / "state").stat()
        assert stat.S_IMODE(place.st_mode) == 0o700, oct(place.st_mode)
        assert (home / "state" / "history").stat().st_size == MIB


def test_a_clean_stop_keeps_all():
    """Without what the run directory holds, as after a reboot."""
    with folder() as state:
        with Daemon(config(state)) as daemon:
            state_is(daemon, "ok")
            until("samples", lambda: len(rows(daemon)) > 5)
        begun = time.time() * 1e6
        with Daemon(config(state)) as daemon:
            self = state_is(daemon, "ok")
            assert self["history_persist_day_bytes"] > 0, self  # the account remembers
            assert self["history_persist_oldest_us"] < begun
            past = [t for t in rows(daemon) if t < begun - 1e6]
            assert past, rows(daemon)


def test_a_kill_loses_no_more_than_told():
    with folder() as state:
        daemon = Quick(config(state))
        try:
            daemon.start()
            state_is(daemon, "ok")
            for _ in range(3):
                written_more(daemon)
            daemon.kill()
            killed = time.time() * 1e6
            blocks = (state / "history").read_bytes()
        finally:
            daemon.clean()
        assert blocks[:16] == b"edgeprof archive"
        with Daemon(config(state)) as daemon:
            assert state_is(daemon, "ok")["history_persist_damaged_pages"] == 0
            past = [t for t in rows(daemon) if t < killed]
            assert past and max(past) > killed - 22e6, (past, killed)  # a bucket that was open, and its begin


def test_power_cuts_at_any_moment():
    """What the medium has at some moment is a copy; some of them with a torn page."""
    random.seed(2)
    with folder() as state, folder() as copies:
        with Quick(config(state)) as daemon:
            state_is(daemon, "ok")
            for i in range(12):
                time.sleep(random.uniform(0.05, 0.6))
                shutil.copyfile(state / "history", copies / f"{i}")
        for i in range(0, 12, 3):
            with folder() as cut:
                bytes_ = bytearray((copies / f"{i}").read_bytes())
                used = [p for p in range(1, len(bytes_) // 4096) if any(bytes_[p * 4096:p * 4096 + 4096])]
                if i % 2 and used:
                    at = used[-1] * 4096 + 2048
                    bytes_[at:at + 2048] = os.urandom(2048)
                (cut / "history").write_bytes(bytes_)
                (cut / "history").chmod(0o600)
                with Quick(config(cut)) as daemon:
                    state_is(daemon, "ok")
                    written_more(daemon)
                    rows(daemon)
                assert [p.name for p in cut.iterdir()] == ["history"]


def test_what_lies_in_its_place_is_not_followed():
    with folder() as state:
        target = state.parent / f"{state.name}.target"
        target.write_bytes(b"precious")
        place = state / "history"
        try:
            with Quick(config(state)) as daemon:
                state_is(daemon, "ok")
                for make, word in ((lambda: place.symlink_to(target), "symbolic link"),
                                   (lambda: os.mkfifo(place, 0o600), "not a regular file"),
                                   (lambda: place.mkdir(), "not a regular file"),
                                   (lambda: os.link(target, place), "another link")):
                    place.unlink()
                    make()
                    degraded(daemon, str(place), word)
                    place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
                    well_again(daemon)
                assert target.read_bytes() == b"precious"
        finally:
            target.unlink()


def test_others_are_set_aside():
    with folder() as state:
        (state / "history").write_bytes(b"the diary of somebody" * 1000)
        with Quick(config(state)) as daemon:
            state_is(daemon, "ok")
            texts = [e["text"] for e in daemon.call("ListEvents")["events"]]
            assert [t for t in texts if "set aside as history.1" in t], texts
        assert (state / "history.1").read_bytes() == b"the diary of somebody" * 1000
        before = (state / "history").read_bytes()
        with Quick(config(state, "2M")) as daemon:  # another length is another kind
            state_is(daemon, "ok")
        assert (state / "history.2").read_bytes() == before
        for n in range(3, 10):
            (state / f"history.{n}").write_text("taken")
        with Quick(config(state, "3M")) as daemon:
            degraded(daemon, "all taken")
            (state / "history.5").unlink()
            well_again(daemon)
        assert (state / "history.1").read_bytes() == b"the diary of somebody" * 1000
        assert (state / "history.9").read_text() == "taken"


def test_a_file_or_folder_that_goes_away_comes_back():
    with folder() as above:
        state = above / "state"
        with Quick(config(state)) as daemon:
            state_is(daemon, "ok")
            (state / "history").unlink()
            until("a new file", lambda: (state / "history").exists())
            well_again(daemon)
            shutil.rmtree(state)
            until("a new folder", lambda: (state / "history").exists())
            state_is(daemon, "ok")
            os.truncate(state / "history", 5000)
            until("a new file", lambda: (state / "history.1").exists())
            well_again(daemon)


# ---- file systems of our own ----

def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)


@contextlib.contextmanager
def mounted(place, *words):
    place.mkdir(exist_ok=True)
    mount(*words, place)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def without_mounts():
    if os.geteuid() != 0:
        return "needs root"
    libc = ctypes.CDLL(None, use_errno=True)
    if not without_mounts.__dict__.get("done"):
        if libc.unshare(0x00020000) != 0 or libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) != 0:
            return f"no mount namespace: {os.strerror(ctypes.get_errno())}"
        without_mounts.done = True
    return None


def image(above, options, size=64 * MIB):
    """An ext4 in a file; its loop device goes with the mount."""
    if not pathlib.Path("/dev/loop-control").exists() or not shutil.which("mkfs.ext4"):
        return None
    path = above / "image"
    with open(path, "wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", *options, str(path)], check=True)
    return path


def test_a_full_disk():
    if reason := without_mounts():
        return reason
    with folder() as above, mounted(above / "disk", "-t", "tmpfs", "-o", "size=512K,mode=700", "none") as disk:
        with Quick(config(disk)) as daemon:
            degraded(daemon, "no room")
            assert list(disk.iterdir()) == []
            mount("-o", "remount,size=8M", disk)
            well_again(daemon)
            # what was reserved stays writable when the disk is full to the last byte
            with contextlib.suppress(OSError), open(disk / "ballast", "wb", 0) as ballast:
                while True:
                    ballast.write(bytes(4096))
            written_more(daemon)
            assert told(daemon)["history_persist_state"] == "ok"


def test_a_read_only_disk_and_back():
    if reason := without_mounts():
        return reason
    with folder() as above:
        disk = above / "disk"
        disk.mkdir(mode=0o700)
        mount("--bind", disk, disk)
        mount("-o", "remount,bind,ro", disk)
        try:
            with Quick(config(disk)) as daemon:
                degraded(daemon, "Read-only file system")
                mount("-o", "remount,bind,rw", disk)
                well_again(daemon)
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=False)


def test_a_disk_that_turns_read_only_by_errors():
    if reason := without_mounts():
        return reason
    with folder() as above:
        if not (path := image(above, [])):
            return "no loop devices, or no mkfs.ext4"
        disk = above / "disk"
        with mounted(disk, "-o", "loop", path):
            disk.chmod(0o700)
            with Quick(config(disk / "state")) as daemon:
                state_is(daemon, "ok")
                subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=False)
                reason = degraded(daemon)
                assert re.search("Read-only|Input/output|corrupted|No such device", reason), reason
                subprocess.run(["umount", "-l", str(disk)], check=True)
                until("the disk is free", lambda: str(path) not in subprocess.run(
                    ["losetup", "-a"], capture_output=True, text=True).stdout)
                mount("-o", "loop", path, disk)
                well_again(daemon)


def pages_of(file):
    """Where it lies on its file system: bytes from, length."""
    out = subprocess.run(["filefrag", "-v", "-b4096", str(file)], capture_output=True, text=True, check=True).stdout
    return [(int(m[1]) * 4096, int(m[2]) * 4096)
            for m in re.finditer(r"^\s*\d+:\s*\d+\.\.\s*\d+:\s*(\d+)\.\.\s*\d+:\s*(\d+):", out, re.M)]


def test_a_medium_that_fails():
    """EIO of a real device: a loop device whose file has holes, on a file system without room."""
    if reason := without_mounts():
        return reason
    if not shutil.which("filefrag"):
        return "no filefrag"
    with folder() as above, mounted(above / "below", "-t", "tmpfs", "-o", "size=128M", "none") as below:
        if not (path := image(below, ["-b", "4096", "-O", "^has_journal"], 32 * MIB)):
            return "no loop devices, or no mkfs.ext4"
        with mounted(above / "disk", "-o", "loop", path) as disk:
            disk.chmod(0o700)
            with Quick(config(disk / "state")) as daemon:
                state_is(daemon, "ok")
                written_more(daemon)
                os.sync()
                for at, length in pages_of(disk / "state" / "history"):
                    subprocess.run(["fallocate", "-p", "-o", str(at), "-l", str(length), str(path)], check=True)
                ballast = below / "ballast"
                with contextlib.suppress(OSError), open(ballast, "wb", 0) as file:
                    while True:
                        file.write(bytes(4096))
                degraded(daemon, "Input/output error")
                ballast.unlink()
                well_again(daemon)


def test_a_medium_that_hangs():
    if reason := without_mounts():
        return reason
    with folder() as above:
        if not (path := image(above, [])) or not shutil.which("fsfreeze"):
            return "no loop devices, no mkfs.ext4 or no fsfreeze"
        with mounted(above / "disk", "-o", "loop", path) as disk:
            disk.chmod(0o700)
            with Quick(config(disk / "state")) as daemon:
                state_is(daemon, "ok")
                subprocess.run(["fsfreeze", "-f", str(disk)], check=True)
                try:
                    state_is(daemon, "stuck")
                    assert "not answered" in told(daemon)["history_persist_reason"]
                    samples_go_on(daemon)
                    begun = time.monotonic()
                    daemon.call("GetStatus")
                    assert time.monotonic() - begun < 1
                finally:
                    subprocess.run(["fsfreeze", "-u", str(disk)], check=True)
                well_again(daemon)
                subprocess.run(["fsfreeze", "-f", str(disk)], check=True)
                try:
                    time.sleep(2)  # a write hangs now
                    daemon.process.terminate()
                    until("the socket is gone", lambda: not daemon.socket.exists(), 5)
                    until("it gave up", lambda: "was not written within 2 s" in daemon.log(), 10)
                finally:
                    subprocess.run(["fsfreeze", "-u", str(disk)], check=True)
                assert daemon.process.wait(30) == 0, daemon.log()


if __name__ == "__main__":
    run_tests(dict(globals()))
