#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl top in a terminal: every size and tab, keys, history, a daemon that goes and comes back.
covers G0.18"""
import os
import re
import signal
import subprocess
import tempfile
import termios
import threading

from ctl_case import ALERT, CTL, HOSTILE, REPLIES, STATUS, FakeDaemon, error, event, metric, series, stage
from harness import DEMO, Daemon, board, program, run_tests, until
from terminal import Terminal

SIZES = ((60, 20), (80, 24), (100, 30), (120, 40), (200, 60), (250, 80))
TABS = ("overview", "sensors", "apps", "processes", "events")
PROCESS = {"pid": 811, "name": "cam", "comm": "python3", "uid": 1000, "state": "S", "cpu_percent": 81.2,
           "rss_bytes": 150 << 20, "threads": 7, "age_ms": 3}
RULE = {"rule": "temperature", "metric": "temperature/max", "condition": "above", "threshold": 75, "critical": 82,
        "severity": "warning", "state": "ok"}
FAKE = dict(
    REPLIES, GetStatus=dict(STATUS, sources_bad=[]), ListRules={"rules": [RULE]},
    ListMetrics=lambda parameters: {"metrics": [
        metric("temperature/max", 60.0, "celsius"), metric("cpu/utilization", 41.0, "percent"),
        metric("temperature/gpu", None, "celsius", reason="the sensor is offline"),
        metric("power/total", 9250.0, "milliwatts")] if parameters.get("glob", "*/*") == "*/*" else []},
    GetHistory=lambda parameters: {"series": [dict(series("cpu/utilization", -60, 60), mean=[17.0] * 60)]
                                   if parameters.get("glob", "*/*") == "*/*" else []},
    ListEvents=lambda parameters: {"events": [event(300, "a model is loaded")] if "from_serial" not in parameters
                                   else [], "last_serial": 300},
    ListStages={"stages": [stage("infer", 18.5, 22.2, 25.9, 1024, per_frame_ms=18.5, depth=0)], "totals": []},
    GetFrames={"frames": [dict(REPLIES["GetFrames"]["frames"][0], deadline_ms=33.3, misses=7)]},
    GetAlertLog={"transitions": []}, Mark={"serial": 17}, RecordNow={"name": "now", "joined": False},
    AckAlert={"alerts": 1}, SilenceAlert={"until_us": 5})


def top(run_dir, columns, rows, *arguments, **environment):
    settings = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": ""} | environment
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    return Terminal([CTL, "top", *arguments], columns, rows, EDGEPROF_RUNTIME_DIR=str(run_dir), **settings)


def is_whole(lines, columns, corner):
    """All lines between the tabs and the status line end with a frame at the right edge."""
    return len(lines) > 3 and all(len(line) == columns and line[-1] in corner for line in lines[2:-1])


def check_tabs(terminal, columns, corner):
    for number, name in enumerate(TABS, 1):
        terminal.type(str(number))
        title = "sensors" if name == "overview" else name
        terminal.until(f"{columns}: {name}", lambda lines: is_whole(lines, columns, corner) and any(
            f" {title} " in line for line in lines[2:]))


def test_every_tab_fills_every_size():
    with tempfile.TemporaryDirectory() as folder, Daemon(root=board(folder)[0]) as daemon:
        with program([DEMO, "--fps", "20"], daemon.env):
            for columns, rows in SIZES:
                with top(daemon.run_dir, columns, rows) as terminal:
                    terminal.shows("demo")
                    check_tabs(terminal, columns, "│╮╯")
                    terminal.type("q")
                    assert terminal.ends() == 0


def test_terminals_of_all_kinds():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)):
        for name, locale, corner in (("xterm-256color", "C", "|+"), ("vt100", "C", "|+"), ("linux", "C.UTF-8", "│╮╯"),
                                     ("screen", "C.UTF-8", "│╮╯"), ("xterm", "C.UTF-8", "│╮╯")):
            for plain in ("", "1"):
                with top(folder, 100, 30, TERM=name, LC_ALL=locale, NO_COLOR=plain) as terminal:
                    terminal.shows("60.0 ")
                    check_tabs(terminal, 100, corner)
                    assert bool(terminal.screen.colors) == (plain == "" and name != "vt100"), (name, plain)
                    if locale == "C":
                        "".join(terminal.screen.text()).encode("ascii")


def test_the_screen_follows_the_size_of_the_terminal():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)):
        with top(folder, 80, 24) as terminal:
            terminal.shows("live")
            for columns, rows in ((50, 10), (30, 10), (80, 24), (250, 80), (60, 20), (59, 40), (120, 19), (100, 30)):
                terminal.size(columns, rows)
                if columns < 60 or rows < 20:
                    terminal.shows(f"this is {columns}x{rows}")
                else:
                    terminal.until("a frame", lambda lines: is_whole(lines, columns, "│╮╯"))


def test_keys_change_what_is_shown():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)):
        with top(folder, 120, 40) as terminal:
            terminal.shows("18.5 of 33.3 ms")
            terminal.type("?")
            terminal.shows("back and forward in history")
            terminal.type("x")
            terminal.lacks("back and forward in history")
            terminal.type("2jj")
            terminal.shows("the sensor is offline")
            terminal.type("/power\r")
            terminal.lacks("offline")
            terminal.shows("9.25 W")
            terminal.type("\x1b")
            terminal.shows("offline")
            for tab, otherwise in {"1": "no app is attached", "4": "no processes", "5": "no alert is pending"}.items():
                terminal.type(tab + "/zzz\r")
                terminal.shows("nothing here matches the filter")
                terminal.lacks(otherwise)
                terminal.type("\x1b")
                terminal.lacks("nothing here matches the filter")
            terminal.type("4")
            terminal.shows("150.0 MiB")
            terminal.type("3s")
            terminal.shows("sorted by frame.fps")
            terminal.type(" ")
            terminal.shows("paused")


def test_what_is_most_urgent_is_the_first_alert():
    """In the overview there may be space for one; the keys are for that which is shown first."""
    urgency = {"late": ("pending", "critical"), "note": ("firing", "info"), "hot": ("firing", "critical"),
               "warm": ("firing", "warning")}
    alerts = [dict(ALERT, rule=rule, state=state, severity=severity) for rule, (state, severity) in urgency.items()]
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE, ListAlerts={"alerts": alerts})) as daemon:
        with top(folder, 80, 24) as terminal:
            terminal.shows("hot max")
            terminal.type("a")
            terminal.shows("acknowledged")
            acked = [call["parameters"]["rule"] for call in daemon.calls if call["method"] == "io.edgeprof.AckAlert"]
            assert acked == ["hot"], acked
            terminal.type("5")
            terminal.until("all in order", lambda lines: [word for line in lines for word in line.split()
                                                          if word in urgency] == ["hot", "warm", "note", "late"])
        with top(folder, 40, 12) as terminal:
            terminal.shows("top needs")
            terminal.type("aq")
            assert terminal.ends() == 0


def test_keys_that_change_the_daemon_are_calls():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)) as daemon:
        with top(folder, 120, 40) as terminal:
            terminal.shows("temperature")

            def wants(keys, shown, method, parameters):
                terminal.type(keys)
                terminal.shows(shown)
                until(method, lambda: any(call["method"] == f"io.edgeprof.{method}" and
                                          call["parameters"] == parameters for call in daemon.calls))
            of = {"rule": "temperature", "instance": "max"}
            wants("mthe door opens\x7f\r", "marked", "Mark", {"label": "the door open"})
            wants("r", "recording", "RecordNow", {"label": "top"})
            wants("a", "acknowledged", "AckAlert", of)
            wants("z2h\r", "silenced", "SilenceAlert", dict(of, seconds=7200))
            terminal.type("zsoon\r")
            terminal.shows("invalid span")
            daemon.replies["AckAlert"] = error("io.edgeprof.NotPermitted", method="AckAlert", group="edgeprof")
            terminal.type("a")
            terminal.shows("AckAlert is permitted for root and group edgeprof only")


def test_keys_between_two_replies_see_the_picture():
    """What a key acts on, and what is drawn after it, is the last complete picture."""
    asked, go = threading.Event(), threading.Event()

    def slow_events(parameters):
        if "from_serial" in parameters and not go.is_set():
            asked.set()
            go.wait(30)
        return FAKE["ListEvents"](parameters)
    with tempfile.TemporaryDirectory() as folder:
        with FakeDaemon(folder, dict(FAKE, ListEvents=slow_events)) as daemon:
            with top(folder, 120, 40, "--interval", "100ms") as terminal:
                terminal.shows("18.5 of 33.3 ms")
                until("replies are missing", asked.is_set)
                terminal.type("?")
                terminal.shows("back and forward in history")
                terminal.type("x")
                terminal.lacks("back and forward in history")
                terminal.shows("18.5 of 33.3 ms")
                terminal.type("5a?")
                terminal.shows("back and forward in history")
                go.set()
                until("the alert is acknowledged", lambda: any(
                    call["method"] == "io.edgeprof.AckAlert" for call in daemon.calls))
                terminal.type("xq")
                assert terminal.ends() == 0


def test_history_is_the_screen_of_then():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)) as daemon:
        with top(folder, 120, 40) as terminal:
            terminal.shows("41.0 %")
            terminal.type("[")
            terminal.shows("history: 2025-11-21 05:40:15")
            terminal.shows("17.0 %")
            asked = [call["parameters"] for call in daemon.calls if call["method"].endswith("GetHistory")][-1]
            assert asked["to_us"] == STATUS["time_us"] - 10_000_000, asked
            terminal.type("<")
            terminal.shows("history: 2025-11-21 05:39:15")
            for typed, shown in (("05:40:02", "05:40:02"), ("5min", "05:35:25"), ("23:59:58", "20 23:59:58")):
                terminal.type(f"t{typed}\r")  # of the clock on the screen
                terminal.shows(f"{shown}, End: live")
            terminal.type("\x1bOF")  # End
            terminal.shows("live")
            terminal.shows("41.0 %")


def test_history_of_a_real_daemon_has_apps_and_alerts():
    with tempfile.TemporaryDirectory() as folder:
        root, temperature = board(folder)
        with Daemon(root=root) as daemon, program([DEMO, "--fps", "20"], daemon.env) as demo:
            def stages():
                return daemon.call("GetHistory", glob="stage/demo/*/mean_ms")["series"]
            temperature.write_text("90000\n")
            until("an alert fires", lambda: daemon.call("ListAlerts")["alerts"])
            seen = until("a stage has history", lambda: [s["time_us"][-1] for s in stages() if len(s["time_us"]) > 2])
            temperature.write_text("50000\n")
            demo.kill()
            demo.wait()
            until("no alert fires", lambda: not daemon.call("ListAlerts")["alerts"])
            until("the app leaves live views", lambda: not daemon.call("ListApps")["apps"])
            with top(daemon.run_dir, 120, 40) as terminal:
                terminal.shows("50.0 °C")
                terminal.shows("no alert is pending or firing")
                terminal.type(f"t@{seen[0] / 1e6}\r")
                terminal.shows("history: ")
                terminal.shows("90.0 °C")
                terminal.shows("temperature_limit")
                terminal.shows("infer")
                # which stages ran inside of others is not known any more: there is no sum of them
                sums = [line for line in terminal.screen.text() if re.search(r"\d ms │$", line)]
                assert not sums, sums
                terminal.type("]" * 60)
                terminal.shows("● live")
                terminal.shows("no alert is pending or firing")


def test_a_daemon_that_goes_leaves_the_last_picture():
    with tempfile.TemporaryDirectory() as folder:
        with FakeDaemon(folder, dict(FAKE)) as daemon:
            terminal = top(folder, 100, 30, "--interval", "100ms")
            terminal.shows("60.0 °C")
            daemon.replies["GetStatus"] = "close"
            terminal.shows("daemon gone")
            terminal.shows("60.0 °C")
            daemon.replies["GetStatus"] = FAKE["GetStatus"]
            terminal.lacks("daemon gone")
            terminal.shows("live")
            daemon.replies["ListApps"] = "silence"
            terminal.type("q")
            assert terminal.ends() == 0
            terminal.__exit__()


def test_a_daemon_that_was_killed_is_found_again():
    with tempfile.TemporaryDirectory() as folder, Daemon(root=board(folder)[0]) as daemon:
        with top(daemon.run_dir, 80, 24, "--interval", "100ms") as terminal:
            terminal.shows("50.0 °C")
            daemon.kill()
            terminal.shows("daemon gone")
            terminal.shows("50.0 °C")
            daemon.start()
            terminal.shows("live")
            terminal.lacks("daemon gone")


def test_silence_is_an_error_after_the_time_out():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)) as daemon:
        with top(folder, 100, 30, "--interval", "100ms", "--timeout", "300ms") as terminal:
            terminal.shows("60.0 °C")
            daemon.replies["ListApps"] = "silence"
            terminal.shows("no reply within 0.3 s")


def test_the_terminal_is_left_as_it_was():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)):
        for end in ("q", "\x03", signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with top(folder, 80, 24) as terminal:
                terminal.shows("live")
                assert terminal.screen.alternate
                if isinstance(end, str):
                    terminal.type(end)
                else:
                    terminal.child.send_signal(end)
                assert terminal.ends() == 0, end
                assert terminal.screen.ended and termios.tcgetattr(terminal.side) == terminal.before, end


def test_it_can_be_suspended():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)):
        with top(folder, 80, 24) as terminal:
            terminal.shows("live")
            terminal.child.send_signal(signal.SIGTSTP)
            terminal.until("it stops", lambda _: os.waitid(
                os.P_PID, terminal.child.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
            terminal.until("the screen is left", lambda _: terminal.screen.ended)
            assert termios.tcgetattr(terminal.side)[3] & termios.ECHO
            terminal.child.send_signal(signal.SIGCONT)
            terminal.until("the screen is back", lambda _: terminal.screen.alternate)
            terminal.shows("live")


def test_names_are_clean_and_wide_ones_are_measured():
    for name in (HOSTILE, "車載カメラ" * 8, "x" * 300):
        app = dict(REPLIES["ListApps"]["apps"][0], name=name)
        replies = dict(FAKE, ListApps={"apps": [app], "refused": []},
                       ListStages={"stages": [stage(name, 18.5, 22.2, 25.9, 9, app=name, unit=name)], "totals": []},
                       GetFrames={"frames": [dict(FAKE["GetFrames"]["frames"][0], app=name)]},
                       ListProcesses={"processes": [dict(PROCESS, name=name, comm=name)]},
                       ListAlerts={"alerts": [dict(ALERT, rule=name, text=name)]},
                       GetStatus=dict(FAKE["GetStatus"], hostname=name, model=name),
                       ListEvents={"events": [event(1, name)], "last_serial": 1})
        with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, replies):
            for columns, rows in ((60, 20), (120, 40)):
                with top(folder, columns, rows) as terminal:
                    terminal.shows("60.0 °C")
                    for key in "12345":
                        terminal.type(key)
                        terminal.shows(f"{key} ")
                    assert terminal.child.poll() is None


def test_several_hosts_are_side_by_side():
    with tempfile.TemporaryDirectory() as folder:
        ssh = os.path.join(folder, "ssh")
        with open(ssh, "w", encoding="ascii") as script:
            script.write('#!/bin/sh\necho "a word of ssh" >&2\nfor word; do case $word in left|right)\n'
                         f'exec env EDGEPROF_RUNTIME_DIR={folder}/$word {CTL} bridge;; esac; done\n')
        os.chmod(ssh, 0o755)
        for name in ("left", "right"):
            os.mkdir(os.path.join(folder, name))
        warm = dict(FAKE, GetStatus=dict(FAKE["GetStatus"], temperature_celsius=44.0, hostname="the-right-one"))
        with FakeDaemon(f"{folder}/left", dict(FAKE)), FakeDaemon(f"{folder}/right", warm) as right:
            with top("/nonexistent", 120, 40, "-H", "left,right", "--interval", "100ms", EDGEPROF_SSH=ssh) as terminal:
                terminal.until("both", lambda lines: len(lines[2]) > 9 and "83.2" in lines[2] and "44.0" in lines[2])
                terminal.until("the first", lambda lines: "pi5" in lines[0] and is_whole(lines[1:], 120, "│╮╯"))
                terminal.type("h")
                terminal.shows("the-right-one")
                assert not any("a word of ssh" in line for line in terminal.screen.text())
                right.replies["GetStatus"] = "close"
                terminal.until("one is lost", lambda lines: "right: the connection was closed" in lines[2])
                terminal.type("h")
                terminal.shows("live")
                terminal.type("q")
                assert terminal.ends() == 0


def test_what_is_no_terminal_is_an_error():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)):
        for name, words in (("nonsense", "'nonsense' is unknown"), ("dumb", "'dumb' is too simple")):
            with top(folder, 80, 24, TERM=name) as terminal:
                assert terminal.ends() == 64
                assert words in " ".join(terminal.screen.text()), terminal.screen.text()
        done = subprocess.run([CTL, "top"], env=dict(os.environ, EDGEPROF_RUNTIME_DIR=folder), capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        assert done.returncode == 64 and b"top --plain" in done.stderr, done
        done = subprocess.run([CTL, "top", "--plain", "--count", "2", "--interval", "1ms"], capture_output=True,
                              env=dict(os.environ, EDGEPROF_RUNTIME_DIR=folder), timeout=60)
        assert done.returncode == 0 and done.stdout.count(b"PIPELINE") == 2, done
        assert not re.search(rb"\x1b", done.stdout)
        # as top(1): also on a terminal
        with top(folder, 80, 60, "-b", "-n", "1", "-d", "0.5") as terminal:
            assert terminal.ends() == 0
            assert terminal.raw.count(b"PIPELINE") == 1 and b"\x1b" not in terminal.raw, terminal.raw


def test_a_terminal_that_hangs_up_ends_it():
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(FAKE)):
        terminal = top(folder, 80, 24)
        terminal.shows("live")
        os.close(terminal.side)
        os.close(terminal.main)
        assert terminal.child.wait(60) == 0


run_tests(globals())
