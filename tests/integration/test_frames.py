#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames from the library to edgeprofctl: pipelines over threads and processes, slow frames, energy."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from harness import BUILD, SHARED, SOURCE, Daemon, VarlinkError, program, run_tests, until

FRAMES = BUILD / "tests" / "integration" / "frame-writer"


def frames_of(daemon, app, **parameters):
    try:
        return daemon.call("GetFrames", app=app, **parameters)["frames"][0]
    except VarlinkError as error:
        assert error.name == "io.edgeprof.NotFound", error
        return {"total_count": 0}


def ask(daemon, parameters):
    with contextlib.closing(daemon.client()) as client:
        client.send("GetFrames", parameters)
        return client.reply()["parameters"]


def near(value, wanted, part=1e-6):
    assert value is not None and abs(value - wanted) <= part * wanted, (value, wanted)


@contextlib.contextmanager
def two_processes(daemon, frames, lead_s):
    """A pipeline of two that begins that much later, attached. When its last frame ends."""
    base = time.monotonic_ns() + int(lead_s * 1e9)
    with contextlib.ExitStack() as apps:
        for part in ("capture", "publish"):
            command = [FRAMES, "pipeline", "cam", base, frames, part]
            apps.enter_context(program(command, daemon.env, stdin=subprocess.PIPE))
        until("both are there", lambda: [a for a in daemon.call("ListApps")["apps"] if len(a["processes"]) == 2])
        yield base / 1e9 + frames / 100


# covers G0.1, G0.2, G3.13: two processes and three threads make one stream of frames
def test_pipelined_frames_of_two_processes_come_out_right():
    for left in (2, 1, 0):
        with Daemon() as daemon, two_processes(daemon, 400, 1.5):
            until("the last frame", lambda: frames_of(daemon, "cam")["total_count"] == 398)
            frames = frames_of(daemon, "cam")
            if frames["late"] > 0 and left > 0:  # a thread of the pipeline was held up for longer than the daemon waits
                continue
            check_pipelined(daemon, frames)
            return


def check_pipelined(daemon, frames):
    near(frames["fps"], 100)
    near(frames["frame_time_mean_ms"], 10 * 302 / 300 if frames["frame_count"] < 300 else 10, 0.01)
    near(frames["end_to_end_mean_ms"], 16)
    near(frames["end_to_end_p99_ms"], 16)
    near(frames["stage_sum_mean_ms"], 15)
    near(frames["in_flight"], 1.6, 0.01)
    assert frames["skipped_ids"] == 2 and frames["out_of_order"] == 0, frames
    assert frames["id_sequences"] == 1 and frames["late"] == 0 and frames["forced"] == 0, frames
    assert 95 <= frames["fps_1s_min"] <= frames["fps_1s_max"] <= 101, frames
    lifetime = frames_of(daemon, "cam", span="lifetime")
    assert lifetime["exact"] is False and lifetime["frame_count"] == 397, lifetime
    near(lifetime["end_to_end_p99_ms"], 16, 0.01)
    reply = daemon.call("GetFrames", app="cam", recent=5)
    assert [f["frame"] for f in reply["list"]] == [399, 398, 397, 396, 395], reply
    newest = reply["list"][0]
    assert newest["threads"] == 3, newest
    parts = {s["stage"]: (round(s["start_ms"], 6), round(s["busy_ms"], 6), s["runs"]) for s in newest["stages"]}
    assert parts == {"capture": (0, 4, 1), "infer": (4, 8, 1), "publish": (13, 3, 1)}, parts
    text = daemon.ctl("frames", "cam", "--recent", "3").stdout
    assert re.search(r"cam\s+399\s+16\.0\s+15\.0\s+4\.0\s+8\.0\s+3\.0", text), text
    text = daemon.ctl("frames", "cam").stdout
    assert "2 lost" in text and "In flight" in text and re.search(r"FPS range +[0-9.]+ to [0-9.]+ in", text), text


CAMERAS = """
import threading, time
import edgeprof
edgeprof.connect("cameras")
together, longest = threading.Barrier(3), [0]
def camera():
    for i in range(100):  # each counts from 0
        together.wait()
        begin = time.monotonic()
        with edgeprof.frame(i):
            with edgeprof.stage("capture"): time.sleep(0.004)
            with edgeprof.stage("infer"): time.sleep(0.006)
        longest.append((time.monotonic() - begin) * 1e3)
threads = [threading.Thread(target=camera) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(max(longest), flush=True)
input()
"""


# covers G0.2
def test_loops_that_count_alike_have_frames_of_their_own():
    with Daemon() as daemon:
        env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"))
        with program(["python3", "-c", CAMERAS], env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as app:
            longest = float(app.stdout.readline())
            until("all frames", lambda: frames_of(daemon, "cameras")["total_count"] >= 297)  # the first ones may be one
            until("none is open", lambda: frames_of(daemon, "cameras")["state"] == "idle")
            frames = frames_of(daemon, "cameras")
            assert frames["end_to_end_p95_ms"] < longest + 1, (frames, longest)
            assert (frames["unfinished"], frames["forced"], frames["skipped_ids"]) == (0, 0, 0), frames
            page = daemon.dir / "cameras.json"
            done = daemon.ctl("report", "cameras", "-o", str(page))
            assert done.returncode == 0, done
            of_records = json.loads(page.read_text())["frames"]
            of_records = of_records[0] if isinstance(of_records, list) else of_records
            assert of_records["end_to_end_max_ms"] < longest + 1, (of_records, longest)


def test_frames_that_nobody_read_for_long_are_counted_once():
    for left in (2, 1, 0):
        with Daemon() as daemon, two_processes(daemon, 400, 1.5) as end:
            os.kill(daemon.pid, signal.SIGSTOP)
            try:
                time.sleep(max(0, end + 0.1 - time.monotonic()))
            finally:
                os.kill(daemon.pid, signal.SIGCONT)
            until("the last frame", lambda: frames_of(daemon, "cam")["total_count"] >= 398)
            time.sleep(1)  # of more there would be the last ones now
            frames = frames_of(daemon, "cam")
        if frames["late"] > 0 and left > 0:  # the second process attached after the first frames, or was held up
            continue
        assert frames["total_count"] == 398 and frames["late"] == 0 and frames["skipped_ids"] == 2, frames
        return


def test_frames_are_counted_once_over_a_restart():
    with Daemon() as daemon, two_processes(daemon, 800, 0.5) as end:
        until("frames", lambda: frames_of(daemon, "cam")["total_count"] >= 100)
        daemon.stop()
        time.sleep(1.5)
        daemon.start()
        until("the last frame", lambda: frames_of(daemon, "cam")["total_count"] >= 798)
        time.sleep(max(1, end + 1 - time.monotonic()))  # of more there would be the last ones now
        frames = frames_of(daemon, "cam")
        # those in flight when it stopped may have parts on either side
        assert frames["total_count"] <= 801 and frames["skipped_ids"] == 2, frames


# covers G1.12
def test_slow_frames_tell_where_the_time_went():
    with Daemon() as daemon, program([FRAMES, "paced", "cam", 100], daemon.env, stdin=subprocess.PIPE):
        until("all frames", lambda: frames_of(daemon, "cam")["total_count"] == 100)
        frames = frames_of(daemon, "cam")
        assert frames["deadline_ms"] == 20 and frames["slow_over_ms"] == 20, frames
        assert 10 <= frames["misses"] < 100 and frames["worst_ms"] >= 40, frames
        assert abs(frames["miss_rate"] - frames["misses"] / 100) < 1e-9, frames
        assert frames["longest_consecutive_misses"] >= 1 and frames["slow_count"] == frames["misses"], frames
        reply = daemon.call("GetFrames", app="cam", slow=True, recent=32)
        slow = [f for f in reply["list"] if f["frame"] % 10 == 9]
        found, full = [f["frame"] for f in slow], len(reply["list"]) == 32  # others are slow on a busy machine
        assert len(found) >= 3 and found == list(range(99, 0, -10))[: len(found) if full else None], found
        for frame in slow:
            assert frame["missed"] and frame["end_to_end_ms"] > 40, frame
            assert frame["voluntary_switches"] >= 2, frame
            assert {s["stage"] for s in frame["stages"]} == {"capture", "infer"}, frame
            infer = [s for s in frame["stages"] if s["stage"] == "infer"][0]
            assert infer["busy_ms"] >= 40 and infer["start_ms"] >= 2, frame
        text = daemon.ctl("frames", "cam", "--slow").stdout
        assert "missed the deadline" in text and re.search(r"infer\s+\+\d+\.\d\s+4\d\.\d ms", text), text
        metric = daemon.metric("frame/cam/misses")
        assert metric is not None, metric


def test_what_is_asked_wrongly_is_refused():
    with Daemon() as daemon, program([FRAMES, "paced", "cam", 5], daemon.env, stdin=subprocess.PIPE):
        until("frames", lambda: frames_of(daemon, "cam")["total_count"] == 5)
        for wrong in ({"span": "week"}, {"percentile_method": "x"}, {"throttle": "hot"}, {"recent": 0}, {"recent": 129}):
            try:
                ask(daemon, dict(wrong, app="cam"))
                raise AssertionError(wrong)
            except VarlinkError as error:
                assert error.name == "org.varlink.service.InvalidParameter", error
                assert error.parameters["parameter"] in wrong, error
        assert daemon.ctl("frames", "cam", "--recent", "0").returncode == 64
        assert daemon.ctl("frames", "cam", "--slow").returncode in (0, 2)
        throttled = frames_of(daemon, "cam", throttle="throttled")
        assert throttled["frame_count"] == 0 and throttled["status"] == "insufficient data", throttled


def test_raw_records_are_kept_within_their_budget():
    with Daemon() as daemon:
        idle = daemon.call("GetSelf")
        assert idle["records_used_bytes"] == 0 and "records_span_s" not in idle, idle
        with program([FRAMES, "paced", "cam", 50], daemon.env, stdin=subprocess.PIPE):
            until("frames", lambda: frames_of(daemon, "cam")["total_count"] == 50)
            busy = daemon.call("GetSelf")
            assert busy["records"] >= 150 and busy["records_overwritten"] == 0, busy
            assert 0 < busy["records_used_bytes"] <= busy["records_bytes"] <= 4 << 20, busy
            assert 0 < busy["records_span_s"] < 60, busy
            assert "Raw records" in daemon.ctl("self").stdout


def test_energy_per_frame_where_power_is_known():
    tree = SHARED / "fixtures" / "sysroot" / "jetson-orin-nano-jp6"
    if not tree.is_dir():
        return "no ../shared/fixtures here"
    with Daemon(root=tree) as daemon, program([FRAMES, "paced", "cam", 1000], daemon.env, stdin=subprocess.PIPE):
        frames = until("energy", lambda: (f := frames_of(daemon, "cam")).get("energy_mj_per_frame") and f)
        power = daemon.metric("power/total")["value"]
        # about 60 frames a second; the intervals of energy and of frames are not the same
        assert power / 200 < frames["energy_mj_per_frame"] < power / 10, (power, frames)
        assert "estimate" in frames["energy_origin"], frames
        until("the metric", lambda: (daemon.metric("frame/cam/energy_mj") or {}).get("value"))
        stages = {s["stage"]: s for s in daemon.call("ListStages", app="cam")["stages"]}
        assert 0 < stages["infer"]["energy_mj"] < 1.01 * frames_of(daemon, "cam")["energy_mj_per_frame"] * 2, stages
    with Daemon(root=SHARED / "fixtures" / "sysroot" / "vm-generic") as daemon, program(
        [FRAMES, "paced", "cam", 300], daemon.env, stdin=subprocess.PIPE
    ):
        frames = until("a reason", lambda: (f := frames_of(daemon, "cam")).get("energy_reason") and f)
        assert "energy_mj_per_frame" not in frames, frames


if __name__ == "__main__":
    run_tests(dict(globals()))
