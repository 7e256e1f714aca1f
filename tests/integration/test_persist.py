#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""History that survives a reboot: what is written, what a restart, a kill or a power cut leaves of
it, and what can lie in its place."""
import contextlib
import os
import random
import shutil
import stat
import time

from harness import SOURCE, Daemon, run_tests, until
from persist_case import MIB, Quick, config, degraded, folder, rows, state_is, told, well_again, written_more
from reboots import Board, reason_to_skip

import varlink_idl  # from tests/tools, where harness looks


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
            interface = varlink_idl.load(SOURCE / "proto" / "io.edgeprof.varlink")
            with contextlib.closing(daemon.client()) as client:
                for method in ("GetSelf", "GetStatus"):
                    client.send(method)
                    interface.check_reply("io.edgeprof." + method, client.reply())
            assert self["history_persist_day_limit_bytes"] == 16 * MIB
            assert self["history_persist_loss_s"] > 50, self
        place = (home / "state").stat()
        assert stat.S_IMODE(place.st_mode) == 0o700, oct(place.st_mode)
        assert (home / "state" / "history").stat().st_size == MIB


def lived(daemon, seconds):
    """The buckets of that time are over."""
    begun = daemon.call("GetStatus")["mono_us"]
    until(f"{seconds} s", lambda: daemon.call("GetStatus")["mono_us"] > begun + seconds * 1e6, pause=0.5)


def test_a_clean_stop_keeps_all():
    if reason := reason_to_skip():
        return reason
    with Board("") as board:
        with Daemon(config(board.state, "2M")) as daemon:
            state_is(daemon, "ok")
            lived(daemon, 11)
        stopped = time.time() * 1e6
        with board.boot() as daemon:
            self = state_is(daemon, "ok")
            assert daemon.call("GetStatus")["boot_seq"] == 2
            assert self["history_persist_day_bytes"] > 0, self  # the account remembers
            assert self["history_persist_boots"] >= 1, self
            past = [t for t in rows(daemon) if t < stopped]
            assert past and max(past) > stopped - 61e6, (past, stopped)  # the bucket that was open, of 10 s or 60 s
            assert "daemon stopped" in [f"{e['kind']} {e['text']}" for e in daemon.call("ListEvents")["events"]
                                        if e.get("boot_seq") == 1]


def test_a_run_that_is_stopped_at_once_is_kept():
    """Also when it is stopped while the file is still being made."""
    if reason := reason_to_skip():
        return reason
    for _ in range(3):
        with Board("") as board:
            daemon = board.boot()
            daemon.start(wait=False)
            try:
                until("it opens its socket", daemon.socket.exists, pause=0)
                daemon.stop()
                log = daemon.log()
            finally:
                daemon.clean()
            assert "started, version" in log and "stopped" in log, log
            if "no response within" in log:
                continue  # a slow medium is left to its thread
            with board.boot() as daemon:
                state_is(daemon, "ok")
                past = [e["text"] for e in daemon.events() if e.get("boot_seq") == 1]
                assert "stopped" in past, (past, log)
    return None


def test_a_kill_loses_no_more_than_told():
    """The marks of each second, up to one that no block had yet."""
    if reason := reason_to_skip():
        return reason
    with Board("") as board:
        daemon = Quick(config(board.state, "2M"))
        try:
            daemon.start()
            state_is(daemon, "ok")
            begun = time.monotonic()
            for n in range(30):
                daemon.call("Mark", label=f"mark {n}")
                time.sleep(0.2)
            daemon.kill()
            took = time.monotonic() - begun
        finally:
            daemon.clean()
        assert (board.state / "history").read_bytes()[:16] == b"edgeprof archive"
        with board.boot() as daemon:
            assert state_is(daemon, "ok")["history_persist_damaged_pages"] == 0
            kept = [e["text"] for e in daemon.call("ListEvents")["events"] if e.get("boot_seq") == 1]
            marks = [n for n in range(30) if any(f"mark {n}" == text.split(":")[-1].strip() for text in kept)]
            assert marks == list(range(len(marks))), kept
            # a block each second, and what its writing takes
            assert (30 - len(marks)) * took / 30 < 2.5, (marks, took)


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
                # adopted as it was, not set aside
                assert {p.name for p in cut.iterdir()} <= {"boot", "history", "alerts", "recordings"}


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
            assert [t for t in texts if "renamed to history.1" in t], texts
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


def impaired(daemon, *words):
    """Written, but not all is well: it says so beyond the answer that found it."""
    self = state_is(daemon, "impaired")
    reason = self["history_persist_reason"]
    assert all(word in reason for word in words), reason
    assert f"history: impaired: {reason}" in daemon.call("GetStatus")["degraded"]
    assert reason in daemon.ctl("self", "--no-pager").stdout
    checks = daemon.ctl("doctor", "-j").stdout
    assert f"on disk, impaired: {reason}" in checks, checks
    assert f"history is impaired: {reason}" in [e["text"] for e in daemon.call("ListEvents")["events"]]
    return reason


def test_reads_that_fail_are_no_secret_of_their_answer():
    if reason := reason_to_skip():
        return reason
    with Board("") as board:
        with board.boot() as daemon:
            state_is(daemon, "ok")
            lived(daemon, 11)
        with board.boot() as daemon:
            state_is(daemon, "ok")
            assert rows(daemon)
            whole = (board.state / "history").read_bytes()
            os.truncate(board.state / "history", 4096)
            with contextlib.closing(daemon.client(30)) as client:
                notes = [reply.get("note") for reply in client.stream("GetHistory", glob="cpu/load1", from_us=1)]
            assert any(note and "missing" in note for note in notes), notes
            impaired(daemon, "reading it: Input/output error", "1 reads failed")
            (board.state / "history").write_bytes(whole)
            rows(daemon)
            state_is(daemon, "ok")


class Slow(Quick):
    more = ["quick", "3600000", "300"]  # no block before the stop


def test_what_was_dropped_is_told():
    with folder() as state, Slow(config(state)) as daemon:
        state_is(daemon, "ok")
        until("events enough", lambda: daemon.call("Mark", label="one more") is not None and
              told(daemon)["history_persist_dropped"] > 0, 60)
        impaired(daemon, "were dropped before they could be written")


if __name__ == "__main__":
    run_tests(dict(globals()))
