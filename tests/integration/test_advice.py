#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice from the sensor to the loop: the examples work less while the board of a made-up tree is hot,
and as before when it has cooled; what the daemon tells of it; restarts, other users of the mapping."""
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time

import harness
from harness import BUILD, SOURCE, Daemon, program, run_tests, until

EXAMPLES = BUILD / "client" / "examples"
FPS = 60
CONFIG = "[sampling]\ninterval = 100ms\n[advice]\nrecover_after = 2s\n"


class Board:
    """A tree with one thermal zone that begins to throttle at 80 degrees."""

    def __init__(self, path, celsius=40, trip=80):
        self.root, self.temp = harness.board(path)
        if trip is not None:
            (self.temp.parent / "trip_point_0_type").write_text("passive\n")
            (self.temp.parent / "trip_point_0_temp").write_text(f"{trip * 1000}\n")
        self.heat(celsius)

    def heat(self, celsius):
        self.temp.write_text(f"{celsius * 1000}\n")


@contextlib.contextmanager
def board(celsius=40, trip=80):
    with tempfile.TemporaryDirectory() as scratch:
        yield Board(scratch, celsius, trip)


class Loop:
    """An example that runs; what it said last."""

    def __init__(self, process):
        self.process = process
        self.lines = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            level, worked, _, frames = line.split()
            self.lines.append((level, int(worked), int(frames)))

    def comes_to(self, level, least, most):
        """Two seconds in a row of that level and so much work."""

        def so():
            return len(self.lines) > 1 and all(l == level and least <= w <= most for l, w, _ in self.lines[-2:])

        try:
            return until(f"{level}, {least} to {most} frames", so)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.lines}") from None


@contextlib.contextmanager
def loop(daemon, name):
    env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"), PYTHONDONTWRITEBYTECODE="1")
    path = EXAMPLES / "advice-loop" if name == "advice-loop" else SOURCE / "client/examples/advice_loop.py"
    command = ([] if name == "advice-loop" else [sys.executable]) + [path, FPS, 1, 600]
    with program(command, env, stdout=subprocess.PIPE, text=True) as process:
        yield Loop(process)


def app_of(daemon, name):
    return next((a for a in daemon.call("ListApps")["apps"] if a["name"] == name), {})


def advice_of(daemon, name):
    return app_of(daemon, name).get("advice", {})


def events_of(daemon, name):
    return [e for e in daemon.call("ListEvents")["events"] if e["subject"] == name and e["text"].startswith("advice")]


def degrade_and_recover(name):
    with board() as b, Daemon(CONFIG, root=b.root) as daemon, loop(daemon, name) as running:
        running.comes_to("full", FPS, FPS)
        until("its usual rate is learned, from the second sample on", lambda: len(running.lines) > 4)
        b.heat(75)
        running.comes_to("reduced", FPS * 2 // 3, FPS * 2 // 3)
        told = advice_of(daemon, name)
        assert told["level"] == "reduced" and (told["skip_frames"], told["of_frames"]) == (1, 3), told
        assert told["reason"] == "headroom 5.0 °C of cpu-thermal", told
        assert FPS * 0.6 < told["target_fps"] < FPS * 0.72, told
        frames = until(
            "the frame rate follows",
            lambda: next((f for f in daemon.call("GetFrames", app=name)["frames"] if f["fps"] < FPS * 0.75), None),
        )
        assert frames["fps"] > FPS * 0.55, frames
        shown = daemon.ctl("apps").stdout
        assert f"{name}: advised reduced since" in shown and "headroom 5.0 °C of cpu-thermal; skip 1 of 3" in shown, shown
        b.heat(79)
        running.comes_to("minimal", FPS // 3, FPS // 3)
        b.heat(40)
        running.comes_to("full", FPS, FPS)
        events = [(e["text"], e["severity"]) for e in events_of(daemon, name)]
        assert [text.split(" (")[0] for text, _ in events] == [
            "advice: reduced",
            "advice: minimal",
            "advice: reduced",
            "advice: full",
        ], events
        assert events[0] == ("advice: reduced (headroom 5.0 °C of cpu-thermal)", "warning"), events
        assert events[1] == ("advice: minimal (headroom 1.0 °C of cpu-thermal)", "warning"), events
        assert events[3][1] == "info" and "calm for" in events[3][0], events
        # nothing of it cost an event
        app = app_of(daemon, name)
        assert app["dropped"] == app["invalid"] == 0, app


def test_the_example_in_c_degrades_and_recovers():
    degrade_and_recover("advice-loop")


def test_the_example_in_python_degrades_and_recovers():
    degrade_and_recover("advice-loop-py")


def test_a_daemon_that_is_gone_advises_nothing():
    with board(celsius=79) as b:
        daemon = Daemon(CONFIG, root=b.root).start()
        try:
            with loop(daemon, "advice-loop") as running, loop(daemon, "advice-loop-py") as snake:
                for each in (running, snake):
                    each.comes_to("minimal", FPS // 3, FPS // 3)
                daemon.kill()
                killed = time.monotonic()
                for each in (running, snake):
                    until("it knows of no advice", lambda: each.lines[-1][0] == "none")
                    each.comes_to("none", FPS, FPS)
                # 5 s after the last word; a second for the line and two for this machine
                assert time.monotonic() - killed < 5 + 2 + 4, (running.lines, snake.lines)
                daemon.start()
                for each in (running, snake):
                    each.comes_to("minimal", FPS // 3, FPS // 3)
                daemon.stop()  # it says so at once
                for each in (running, snake):
                    until("it knows of no advice", lambda: each.lines[-1][0] == "none", patience=4.5)
        finally:
            daemon.clean()


LATE = """
import edgeprof, os, sys, time
edgeprof.connect("late")
edgeprof.deadline(None, 8)
number = 0
while True:
    number += 1
    slow = os.path.exists(sys.argv[1])
    if edgeprof.should_skip():
        time.sleep(0.02)
        continue
    with edgeprof.frame(number):
        time.sleep(0.012 if slow else 0.001)
    time.sleep(0.01)
"""


def python(daemon, code, *arguments):
    env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"))
    return program([sys.executable, "-c", code, *arguments], env)


def test_missed_deadlines_alone_are_enough():
    with board(celsius=40) as b, Daemon(CONFIG, root=b.root) as daemon:
        slow = b.root / "slow"
        with python(daemon, LATE, slow):
            until("full", lambda: advice_of(daemon, "late").get("level") == "full")
            slow.touch()
            told = until("reduced", lambda: next((a for a in [advice_of(daemon, "late")] if a.get("level") == "reduced"), None))
            assert told["reason"].endswith(" % of frames missed their deadline"), told
            assert int(told["reason"].split()[0]) > 20, told
            slow.unlink()
            until("full again", lambda: advice_of(daemon, "late").get("level") == "full")
        until("nobody is advised", lambda: "advice" not in app_of(daemon, "late"))


def test_without_a_trip_the_critical_temperature_counts():
    config = CONFIG + "[alert temperature]\nabove = 60\ncritical = 70\n"
    with board(celsius=64, trip=None) as b, Daemon(config, root=b.root) as daemon, loop(daemon, "advice-loop") as running:
        running.comes_to("reduced", FPS * 2 // 3, FPS * 2 // 3)
        assert advice_of(daemon, "advice-loop")["reason"] == "headroom 6.0 °C of temperature/max"
        # a reload takes the new limit, and another switches all of it off
        daemon.config_path.write_text(CONFIG + "[alert temperature]\nabove = 60\ncritical = 90\n[frame advice-loop]\ntarget_fps = 50\n")
        assert daemon.ctl("reload").returncode == 0
        running.comes_to("full", FPS, FPS)
        assert advice_of(daemon, "advice-loop")["target_fps"] == 50
        daemon.config_path.write_text("[advice]\nenabled = no\n")
        assert daemon.ctl("reload").returncode == 0
        running.comes_to("none", FPS, FPS)
        assert advice_of(daemon, "advice-loop") == {"app": "advice-loop", "reason": "switched off ([advice] enabled)"}


def test_a_subscription_delivers_changes():
    with board() as b, Daemon(CONFIG, root=b.root) as daemon, contextlib.closing(daemon.client(60)) as client:
        with loop(daemon, "advice-loop"):
            until("it is advised", lambda: advice_of(daemon, "advice-loop").get("level") == "full")
            stream = client.stream("Subscribe", metrics=False, events=False, advice=True)
            first = next(stream)
            assert [(a["app"], a["level"]) for a in first["advice"]] == [("advice-loop", "full")], first
            b.heat(79)
            second = next(stream)
            assert [(a["app"], a["level"]) for a in second["advice"]] == [("advice-loop", "minimal")], second
            assert "metrics" not in second and "events" not in second, second
        ended = next(stream)
        assert ended["advice"] == [{"app": "advice-loop", "reason": "app ended"}], ended
        sys.path.insert(0, str(SOURCE / "client/python"))
        import edgeprof

        for reply in edgeprof.Client(str(daemon.socket)).subscribe(advice=True, metrics=False, events=False):
            assert reply["advice"] == ended["advice"], reply
            break
        with contextlib.closing(daemon.client()) as other:
            assert "advice" not in next(other.stream("Subscribe", metrics=False)), "nobody asked"


SCRIBBLER = """
import os, random, sys, time
import edgeprof
from edgeprof._process import process
edgeprof.connect(sys.argv[1])
random.seed(1)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    with edgeprof.frame(1):
        pass
    for offset in (range(0, 512, 8) if sys.argv[3] == "header" else (192, 200)):
        process.mapping.u64[offset // 8] = random.getrandbits(64)
    edgeprof.advice()
    edgeprof.should_skip()
    time.sleep(0.001)
"""


def test_who_scribbles_over_its_advice_harms_itself_alone():
    with board(celsius=79) as b, Daemon(CONFIG, root=b.root) as daemon, loop(daemon, "advice-loop") as running:
        running.comes_to("minimal", FPS // 3, FPS // 3)
        for what in ("advice", "header"):
            with python(daemon, SCRIBBLER, "bad-" + what, "3", what) as bad:
                assert bad.wait(60) == 0
        running.comes_to("minimal", FPS // 3, FPS // 3)
        assert advice_of(daemon, "advice-loop")["level"] == "minimal"


# As the library of major version 1, whose layout is another.
OLD = """
import sys, time
from edgeprof import _layout
_layout.MAJOR = 1
import edgeprof
from edgeprof._process import process
edgeprof.connect("old")
while True:
    with edgeprof.frame():
        time.sleep(0.01)
    if process.mapping is not None:
        print(any(process.mapping.map[192:512]), flush=True)
"""


def test_a_mapping_of_an_older_library_is_refused_and_left_alone():
    with board(celsius=79) as b, Daemon(CONFIG, root=b.root) as daemon:
        env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"), EDGEPROF_PURE="1")
        with program([sys.executable, "-c", OLD], env, stdout=subprocess.PIPE, text=True) as old:
            until("it is refused", lambda: daemon.call("GetSelf")["attaches_refused"] > 0)
            assert "unsupported version of the event protocol" in daemon.call("GetSelf")["attach_refused_reason"]
            lines = [old.stdout.readline().strip() for _ in range(200)]
            assert set(lines) == {"False"}, set(lines)
            assert [a for a in daemon.call("ListApps")["apps"] if a["processes"]] == []


TWO = r"""
import os, time
import edgeprof
edgeprof.connect("two")
os.fork()
while True:
    with edgeprof.frame():
        time.sleep(0.01)
    advice = edgeprof.advice()
    os.write(1, b"%d %s\n" % (os.getpid(), (advice.level if advice else "none").encode()))
"""


def test_two_processes_of_one_app_are_told_the_same():
    with board(celsius=75) as b, Daemon(CONFIG, root=b.root) as daemon:
        env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"))
        told = {}

        def read(stream):
            with contextlib.suppress(ValueError):
                for line in stream:
                    pid, level = line.split()
                    told[pid] = level

        with program([sys.executable, "-c", TWO], env, stdout=subprocess.PIPE, text=True) as parent:
            threading.Thread(target=read, args=(parent.stdout,), daemon=True).start()
            try:
                until("both are told", lambda: list(told.values()) == ["reduced"] * 2)
                assert len(app_of(daemon, "two")["processes"]) == 2
            finally:
                for pid in told:
                    if int(pid) != parent.pid:
                        os.kill(int(pid), 9)


if __name__ == "__main__":
    run_tests(globals())
