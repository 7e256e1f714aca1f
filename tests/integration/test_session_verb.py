#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions end to end: edgeprofctl, the C and the Python calls, with the real daemon and live apps."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile

import sessions
from harness import BUILD, CTL, SOURCE, Daemon, program, run_tests, until

LOOP = """
import edgeprof, time
edgeprof.connect("cam")
while True:
    with edgeprof.frame():
        with edgeprof.stage("infer"): time.sleep(0.004)
"""


def env_of(daemon):
    return dict(daemon.env, PYTHONPATH=str(SOURCE / "client" / "python"), PYTHONDONTWRITEBYTECODE="1")


@contextlib.contextmanager
def live(code=LOOP, config=""):
    """A daemon and an app that has frames."""
    with Daemon(config) as daemon, program([sys.executable, "-c", code], env_of(daemon)):
        until("the app has frames", lambda: any(
            app["name"] == "cam" and app["received"] > 20 for app in daemon.call("ListApps")["apps"]))
        yield daemon


def follow(daemon, *words):
    return program([CTL, "session", "start", *words], daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                   text=True)


def read_line(child):
    return until("a line", child.stdout.readline)


def session(daemon, name):
    return json.loads(daemon.ctl("session", "show", name, "-j").stdout)["session"]


def test_300_frames_are_six_lines_and_a_finished_session():
    # covers G0.24
    with live() as daemon:
        done = daemon.ctl("session", "start", "day", "cam", "--frames", "300", "--tag", "threads=4")
        assert done.returncode == 0, done
        lines = done.stdout.splitlines()
        rates = [re.fullmatch(rf"Frame {i}/300: (\d+\.\d) fps", line) for i, line in zip(range(50, 301, 50), lines)]
        assert len(lines) == 7 and all(rates), done.stdout
        assert all(50 < float(rate[1]) < 250 for rate in rates), done.stdout
        assert re.fullmatch(r"Session 'day' finished: 300 of 300 frames in \S+ s, \S+ fps\.", lines[6]), lines[6]
        row = session(daemon, "day")
        assert row["frames_done"] == 300 and row["state"] == "finished" and row["warmup"] == 10, row
        assert row["tags"] == [{"name": "threads", "value": "4"}], row
        stages = json.loads(daemon.ctl("session", "show", "day", "-j").stdout)["stages"]
        assert [stage["stage"] for stage in stages] == ["infer", "total"], stages
        for stage in stages:
            assert stage["count"] == 300 and 4 <= stage["mean_ms"] <= stage["p95_ms"] * 2 <= stage["max_ms"] * 2, stage
        assert re.search(r"\ninfer +\d+\.\d\d +.* 300\ntotal ", daemon.ctl("session", "show", "day").stdout)


def test_ctrl_c_keeps_what_was_measured():
    # covers G0.24
    with live() as daemon, follow(daemon, "day", "cam", "--frames", "100000") as child:
        assert read_line(child).startswith("Frame 50/100000: ")
        child.send_signal(signal.SIGINT)
        text, said = child.communicate(timeout=60)
        assert child.returncode == 0, (text, said)
        assert "Session 'day' ended early: " in text, text
        row = session(daemon, "day")
        assert row["state"] == "stopped" and 50 <= row["frames_done"] < 100000, row


def test_it_ends_with_who_reads_its_output():
    with live() as daemon:
        with open("/dev/full", "w") as full:
            done = subprocess.run([CTL, "session", "start", "full", "cam", "--frames", "100000"], env=daemon.env,
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 74 and "No space left" in done.stderr, done
        with follow(daemon, "pipe", "cam", "--frames", "100000") as child:
            read_line(child)
            child.stdout.close()
            assert child.wait(60) == 0, child.stderr.read()
        for name in "full", "pipe":
            assert session(daemon, name)["state"] == "stopped", name


def test_an_app_that_is_not_there_is_waited_for_by_name():
    with live() as daemon, follow(daemon, "day", "cma", "--frames", "9") as child, \
            follow(daemon, "night", "cam", "--frames", "2000") as other:
        until("it says so", lambda: select.select([child.stderr], [], [], 0)[0])
        said = child.stderr.readline()
        assert said == "edgeprofctl: waiting for app 'cma', which is not running; did you mean 'cam'?\n", said
        with program([sys.executable, "-c", LOOP.replace("cam", "cma")], env_of(daemon)):
            text, said = child.communicate(timeout=60)
        assert (child.returncode, said) == (0, "") and text.startswith("Session 'day' finished: 9 of 9 frames"), (text, said)
        other.send_signal(signal.SIGINT)
        assert other.communicate(timeout=60)[1] == "", "an app that runs is not waited for"


def test_no_frame_is_exit_status_2():
    # covers G0.24
    with live() as daemon, follow(daemon, "day", "absent", "--frames", "9") as child:
        until("it is there", lambda: daemon.call("ListSessions", name="day")["sessions"])
        child.send_signal(signal.SIGINT)
        text, said = child.communicate(timeout=60)
        assert child.returncode == 2 and said == "edgeprofctl: no frame was measured\n", (text, said)


def test_a_restart_of_the_daemon_in_the_middle_is_only_a_pause():
    with live() as daemon, follow(daemon, "day", "cam", "--frames", "1000") as child:
        assert read_line(child).startswith("Frame 50/1000: ")
        for end in (daemon.stop, daemon.kill):
            end()
            daemon.start()
        text, said = child.communicate(timeout=120)
        assert child.returncode == 0, (text, said)
        lines = [line for line in text.splitlines() if line.startswith("Frame ")]
        assert [line.split(":")[0] for line in lines] == [f"Frame {i}/1000" for i in range(100, 1001, 50)], text
        row = session(daemon, "day")
        assert row["frames_done"] == 1000 and row["state"] == "finished", row


def test_without_an_end_it_runs_until_stop():
    with live() as daemon:
        done = daemon.ctl("session", "start", "day")
        assert done.stdout.startswith("Session 'day' of cam started"), done
        until("it measures", lambda: session(daemon, "day")["frames_done"] > 0)
        stopped = daemon.ctl("session", "stop", "day", "--error", "no camera")
        assert "Session 'day' failed: no camera" in stopped.stdout, stopped
        listed = daemon.ctl("session").stdout
        assert re.search(r"day +cam +failed ", listed) and "no camera" in listed, listed
        daemon.ctl("session", "start", "open")
        stopped = daemon.ctl("session", "stop", "open")
        assert stopped.stdout.startswith("Session 'open' stopped: ") and stopped.returncode == 0, stopped
        again = daemon.ctl("session", "start", "day", "--duration", "200ms")
        assert "Session 'day.2' finished" in again.stdout, again
        done = daemon.ctl("session", "delete", "day", "day.2", "open")
        assert done.stdout == "".join(f"Session '{name}' deleted.\n" for name in ("day", "day.2", "open")), done
        assert daemon.ctl("session").returncode == 2


def test_the_same_configuration_has_the_same_fingerprint():
    # covers G2.18
    with live() as daemon:
        prints = {}
        for name, tag in (("a", "threads=4"), ("b", "threads=4"), ("c", "threads=2")):
            done = daemon.ctl("session", "start", name, "cam", "--duration", "100ms", "--tag", tag)
            assert done.returncode == 0, done
            shown = json.loads(daemon.ctl("session", "show", name, "-j").stdout)
            prints[name] = shown["fingerprint"]
            lines = sorted(f"{pair['name']}={pair['value']}\n".encode()
                           for pair in shown["session"]["tags"] + shown["session"]["environment"])
            assert hashlib.sha256(b"".join(lines)).hexdigest() == prints[name], shown
            assert prints[name][:12] in daemon.ctl("session", "show", name).stdout
        assert prints["a"] == prints["b"] != prints["c"], prints
        until("they are counted", lambda: (lambda r: (r["hits"], r["misses"]) == (1, 2))(daemon.call("ListSessions")))
        assert "; 1 repeated an earlier one" in daemon.ctl("session").stdout


def test_configured_baseline_and_targets_are_used():
    # covers G0.25, G2.20
    with tempfile.TemporaryDirectory() as place:
        d = pathlib.Path(place)
        old, new = (sessions.write(d / name, name, {"infer": [ms] * 20}) for name, ms in (("old", 10), ("new", 12)))
        (d / "more.conf").write_text("[bench/net]\nfps = 10-20\n")
        with Daemon(f"[sessions]\nbaseline = {d}/base\ntargets = {d}/more.conf\n") as daemon:
            assert daemon.ctl("compare", new).returncode == 2  # there is none yet
            made = daemon.ctl("compare", old, "--create-baseline")
            assert made.returncode == 0 and f"created: {d}/base" in made.stdout, made
            assert [daemon.ctl("compare", side).returncode for side in (old, new)] == [0, 1]
            assert daemon.ctl("compare", new, "--table").returncode == 0
            assert re.search("^bench/net +10-20 ", daemon.ctl("targets").stdout, re.M)
            daemon.stop()
            assert daemon.ctl("compare", new).returncode == 64
            assert "bench/net" not in daemon.ctl("targets").stdout


def test_a_python_session_has_exactly_its_frames():
    # covers G1.8
    code = """
import edgeprof, time
edgeprof.connect("own")
with edgeprof.session("py", warmup=5, frames=60, delegate="XNNPACK") as s:
    for _ in range(65):
        with edgeprof.frame(): time.sleep(0.002)
    end = time.monotonic() + 30
    while not s.finished and time.monotonic() < end: time.sleep(0.05)
print(s.name, s.progress()["state"], s.progress()["frames_done"])
try:
    with edgeprof.session("py"):
        with edgeprof.frame(): pass
        raise ValueError("no camera")
except ValueError: pass
"""
    with Daemon() as daemon:
        env = dict(env_of(daemon), OMP_NUM_THREADS="3")
        out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
        assert out.stdout == "py finished 60\n" and out.returncode == 0, out
        row = session(daemon, "py")
        environment = {pair["name"]: pair["value"] for pair in row["environment"]}
        assert environment["OMP_NUM_THREADS"] == "3" and environment["python"] and environment["affinity"], row
        assert row["tags"] == [{"name": "delegate", "value": "XNNPACK"}], row
        failed = session(daemon, "py.2")
        assert failed["state"] == "failed" and failed["error"] == "ValueError('no camera')", failed


def test_a_sweep_has_a_session_per_variant():
    # covers G0.21, G0.22, G0.23
    code = """
import edgeprof, json, time
def run(threads):
    if threads == 4: raise MemoryError("too many")
    time.sleep(0.05 * (threads - 1))
print(json.dumps(edgeprof.sweep("net", {"threads": [1, 2, 4]}, run, warmup=3, frames=20)))
"""
    with Daemon() as daemon:
        out = subprocess.run([sys.executable, "-c", code], env=env_of(daemon), capture_output=True, text=True,
                             timeout=120)
        assert out.returncode == 0, out
        rows = json.loads(out.stdout)
        assert [row["error"] for row in rows] == [None, None, "MemoryError: too many"], rows
        assert rows[0]["mean_ms"] < rows[1]["mean_ms"], rows
        for row, threads in zip(rows, "124"):
            kept = session(daemon, row["session"])
            assert kept["tags"] == [{"name": "threads", "value": threads}], kept
            assert kept["state"] == ("failed" if threads == "4" else kept["state"]), kept
            assert kept["frames_done"] == row["count"], (kept, row)


def test_environment_of_a_program_that_runs_is_kept():
    # covers G1.8
    actor = [BUILD / "tests" / "integration" / "app-actor", "actor"]
    with Daemon() as daemon, program(actor, dict(daemon.env, OMP_NUM_THREADS="3", NUMEXPR_NUM_THREADS='"4"'), stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL) as child:
        until("it is attached", lambda: daemon.call("ListApps")["apps"])
        for name, words in ("named", ["actor"]), ("only", []):
            done = daemon.ctl("session", "start", name, *words, "--detach")
            assert done.returncode == 0, done
            kept = {row["name"]: row["value"] for row in session(daemon, name)["environment"]}
            assert kept["OMP_NUM_THREADS"] == "3" and kept["NUMEXPR_NUM_THREADS"] == '"4"', kept
            assert kept["affinity"], kept
        assert child.poll() is None


def test_a_c_program_starts_and_stops_its_own():
    with Daemon() as daemon, program([BUILD / "tests" / "integration" / "app-actor", "actor"],
                                     dict(daemon.env, MKL_NUM_THREADS="2"), stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True) as actor:
        def obey(command):
            actor.stdin.write(command + "\n")
            actor.stdin.flush()
            return actor.stdout.readline()

        for name in "c", "c.2":
            assert obey("session c").startswith(f"0 {name} ok "), name
            obey("frames 30 1000")
            until("its frames are counted", lambda: session(daemon, name)["frames_done"] == 30)
            assert obey("stop no,camera").startswith("0 ok "), name
            row = session(daemon, name)
            assert row["app"] == "actor" and row["state"] == "failed" and row["error"] == "no,camera", row
            assert row["warmup"] == 0 and row["frames_done"] == 30, row
            assert {"name": "precision", "value": "fp16"} in row["tags"], row
            assert {"name": "MKL_NUM_THREADS", "value": "2"} in row["environment"], row
        daemon.stop()
        assert int(obey("session c").split()[0]) < 0


if __name__ == "__main__":
    os.environ.pop("OMP_NUM_THREADS", None)
    run_tests(globals())
