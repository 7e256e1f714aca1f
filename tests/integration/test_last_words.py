#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How processes end, and how they do not go on: what the timeline says of each. They are waited for when that was seen:
before Linux 6.15 the kernel tells it of those only that nobody waited for."""
import os
import re
import signal
import time

from harness import Daemon, run_tests, until
from reckoning import MS, Script, arrived


def events(daemon):
    return daemon.call("ListEvents", limit=1000)["events"]


def texts(daemon):
    return [e["text"] for e in events(daemon) if e["subject"] == "cam"]


def app_of(daemon):
    return next(a for a in daemon.call("ListApps")["apps"] if a["name"] == "cam")


def in_infer(script, daemon):
    """In frame 8841, in infer inside of total; and the daemon has seen it."""
    script.tell(["0 complete 0 hello 1000 -", "0 set_frame 0 8841", "0 begin 0 total", "0 begin 0 infer"])
    until("the open stages", lambda: [o["stage"] for p in app_of(daemon)["processes"] for o in p["open"]] == [
        "total", "infer"])


def test_ways_to_die_inside_a_stage():
    words = {"kill": ("killed", "died"), "abort": ("died", "died of SIGABRT"),
             "segfault": ("died", "died of SIGSEGV"), "_exit": ("died", "exited with status 3")}
    for how, (state, cause) in words.items():
        last_words = f"{cause} in `infer`, frame 8841"
        # a sanitizer in the program would turn the one signal into the other
        with Daemon() as daemon, Script(daemon, ASAN_OPTIONS="handle_segv=0") as script:
            in_infer(script, daemon)
            if how == "kill":
                script.process.kill()
            else:
                script.process.stdin.write(how + "\n")
                script.process.stdin.flush()
            until(f"last words after {how}", lambda: last_words in texts(daemon))
            script.process.wait()
            app = app_of(daemon)
            assert app["state"] == state and app["last_words"] == last_words, app
            assert app["sent"] == app["received"] + app["dropped"] == 1, app


def test_what_was_written_right_before_the_end_counts():
    with Daemon() as daemon, Script(daemon) as script:
        os.kill(daemon.pid, signal.SIGSTOP)
        script.tell([f"0 complete 0 infer {MS} {i}" for i in range(3000)])
        script.process.kill()
        os.kill(daemon.pid, signal.SIGCONT)
        arrived(daemon, {"infer": 3000})
        until("its end", lambda: "died" in texts(daemon))
        script.process.wait()


def test_ends_on_purpose_say_no_last_words():
    with Daemon() as daemon:
        with Script(daemon) as script:
            in_infer(script, daemon)
        until("it ended", lambda: "ended" in texts(daemon))
        assert app_of(daemon)["state"] == "ended" and "last_words" not in app_of(daemon), app_of(daemon)


def hang_of(daemon, what, patience=10):
    return until(what, lambda: next((e for e in events(daemon) if e["text"].startswith(what)), None), patience)


def test_a_deadlock_is_told_within_an_interval_and_again_when_it_dies():
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([f"0 complete 0 infer {30 * MS} {i}" for i in range(60)])
        arrived(daemon, {"infer": 60})
        begun = time.monotonic_ns()
        script.tell(["0 set_frame 0 61", "0 begin 0 infer"])
        script.process.stdin.write("deadlock\n")
        script.process.stdin.flush()
        told = hang_of(daemon, "hangs in `infer`")
        assert re.fullmatch(r"hangs in `infer` for \d\.\d s, frame 61", told["text"]), told
        # due after 1 s; judged at each sample, a second apart; a loaded machine may be late
        late = told["mono_us"] * 1000 - begun - 1000 * MS
        assert -1 <= late / MS < 2 * 1000, late
        assert app_of(daemon)["hung"] and daemon.metric("app/cam/hung") is not None
        script.process.kill()
        until("its last words", lambda: "died in `infer`, frame 61" in texts(daemon))
        until("nothing hangs any more", lambda: not app_of(daemon)["hung"])


def test_a_stopped_app_goes_on():
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([f"0 complete 0 infer {30 * MS} {i}" for i in range(60)])
        arrived(daemon, {"infer": 60})
        script.tell(["0 begin 0 infer"])
        os.kill(script.process.pid, signal.SIGSTOP)
        hang_of(daemon, "hangs in `infer`")
        os.kill(script.process.pid, signal.SIGCONT)
        script.tell(["0 end 0 -"])
        went_on = hang_of(daemon, "went on in `infer` after ")
        assert went_on["severity"] == "info", went_on
        assert not app_of(daemon)["hung"] and app_of(daemon)["hangs"] == 1


def test_a_long_stage_that_is_always_long_is_no_hang():
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([f"0 complete 0 slow {2000 * MS} -" for _ in range(60)] + ["0 complete 0 rare 1000 -"] * 29)
        arrived(daemon, {"slow": 60, "rare": 29})
        script.tell(["0 begin 0 slow", "1 begin 0 rare"])
        time.sleep(2.5)  # ten times its p99 is 20 s; of the other too little is known
        assert not app_of(daemon)["hung"] and not any("hangs" in t for t in texts(daemon)), texts(daemon)


def test_a_child_goes_on_when_its_parent_dies():
    with Daemon() as daemon, Script(daemon) as script:
        in_infer(script, daemon)
        child = int(script.ask("fork"))
        try:
            until("both", lambda: len(app_of(daemon)["processes"]) == 2)
            script.process.kill()
            until("the parent's last words", lambda: "died in `infer`, frame 8841" in texts(daemon))
            script.process.wait()
            rest = app_of(daemon)
            assert [p["pid"] for p in rest["processes"]] == [child] and rest["state"] == "running", rest
            before = rest["received"]
            until("the child goes on", lambda: app_of(daemon)["received"] > before + 3)
        finally:
            os.kill(child, signal.SIGKILL)
        until("the child's end", lambda: app_of(daemon)["processes"] == [])


if __name__ == "__main__":
    run_tests(dict(globals()))
