#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MAX FPS of real loops of many shapes against the rate of the time that they measured themselves."""
import json
import re
import subprocess

from harness import SOURCE, Daemon, program, run_tests, until

APP = r'''
import collections, json, sys, threading, time
import edgeprof

edgeprof.connect("loop")
took = collections.deque(maxlen=300)  # ms in the stages of each iteration, measured inside them and around them
now = [0.0, 0.0]
longest = 0.0  # ms of an iteration from its begin to its end, whatever stopped it


def work(name, ms, **options):
    around = time.monotonic()
    with edgeprof.stage(name, **options):
        inside = time.monotonic()
        time.sleep(ms / 1e3)
        now[0] += (time.monotonic() - inside) * 1e3
    now[1] += (time.monotonic() - around) * 1e3


def iterations(ids, style, body):
    global longest
    for i in ids:
        now[:] = 0.0, 0.0
        begin = time.monotonic()
        if style == "frame":
            with edgeprof.frame(i):
                body(i, {})
        else:
            body(i, {"frame": i} if style == "tag" else {})
            if style == "tick":
                edgeprof.tick()
        took.append(tuple(now))
        longest = max(longest, (time.monotonic() - begin) * 1e3)


def pair(i, options):
    work("infer", 2, **options)
    work("publish", 1, **options)


def fifth(i, options):
    pair(i, options)
    if i % 5 == 0:
        work("detect", 10, **options)


def lazy(i, options):
    work("infer", 400 if i == 1 else 2, **options)
    work("publish", 1, **options)


def after(i, options):
    work("resize", 4, **options)


shape, style = sys.argv[1:3]
if shape == "one-off":
    work("load model", 300)
    iterations(range(60), style, pair)
    if style in ("frame", "tag"):
        work("save", 200)
        iterations(range(60, 120), style, pair)
elif shape == "library":
    with edgeprof.memory_scope("load"):
        time.sleep(0.3)
    edgeprof.measure_model_footprint(sys.executable, lambda path: time.sleep(0.3))
    iterations(range(60), style, pair)
elif shape == "restart":
    for _ in range(3):
        iterations(range(40), style, pair)
elif shape == "repeat":
    iterations([i // 3 for i in range(90)], style, pair)
elif shape == "backwards":
    iterations(range(100, 0, -1), style, pair)
elif shape == "fifth":
    iterations(range(101), style, fifth)
elif shape == "lazy":
    iterations(range(330), style, lazy)
elif shape == "tenth":
    work("load model", 300)
    iterations(range(10), style, pair)
elif shape == "change":
    iterations(range(100), "frame", pair)
    iterations(range(320), style, after)
elif shape == "threads":
    other = threading.Thread(target=lambda: [work("upload", 2) for _ in range(60)])
    iterations(range(60), style, pair)
    other.start()
    other.join()
if style == "tick":
    took.popleft() if len(took) < 300 and shape != "change" else None  # it is ahead of the first tick
print(json.dumps([sum(t) / len(took) for t in zip(*took)] + [longest]), flush=True)
sys.stdin.readline()
'''

LOOPS = [(shape, style) for shape in ("one-off", "fifth", "lazy", "tenth") for style in ("frame", "tag", "tick", "none")
         if (shape, style) != ("lazy", "none")]  # there the window are the last 1024 runs
LOOPS += [(shape, style) for shape in ("restart", "repeat", "backwards") for style in ("frame", "tag")]
LOOPS += [("library", style) for style in ("frame", "tick", "none")] + [("change", "frame"), ("change", "tick")]


def run(daemon, shape, style):
    env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"))
    command = ["python3", "-c", APP, shape, style]
    with program(command, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as app:
        expected = json.loads(app.stdout.readline())
        app.stdin.write("\n")
        app.stdin.flush()
        app.stdin.close()
        app.wait()
    until("it ended", lambda: [a for a in daemon.call("ListApps")["apps"] if a["state"] == "ended"])
    return *expected, daemon.call("ListStages", app="loop")


# covers G0.4 G0.5 G3.11, mistake 12
def test_max_fps_is_the_rate_that_the_loop_measures():
    wrong = []
    for shape, style in LOOPS:
        with Daemon() as daemon:
            inside, around, longest, reply = run(daemon, shape, style)
            total = reply["totals"][0]
            stages = {s["stage"]: s for s in reply["stages"]}
            if not 0.95 * inside < 1000 / total["max_fps"] < 1.05 * around:
                wrong.append((shape, style, inside, around, total))
            assert not total["total_is_sequential"], total
            kinds = {"frame": "frame", "tag": "frame", "tick": "tick", "none": "stage"}
            assert total["iteration"] == kinds[style], (shape, style, total)
            if shape in ("restart", "repeat", "backwards"):
                assert {stages[n]["runs_per_frame"] for n in ("infer", "publish")} == {1}, (shape, style, stages)
                frames = daemon.call("GetFrames", app="loop")["frames"][0]
                assert frames["end_to_end_max_ms"] <= longest, (shape, style, longest, frames)
            if shape == "one-off":
                assert stages["load_model"]["outside_frames"]["count"] == 1, stages["load_model"]
                text = daemon.ctl("stages", "loop").stdout
                loaded = re.search(r"^Outside frames: load_model 1 x (\d+\.\d) ms", text, re.M)
                assert loaded and 300 <= float(loaded[1]) < 3000, text  # it sleeps 300 ms, at least
    assert not wrong, wrong


def test_stages_on_two_threads_have_a_sequential_total():
    with Daemon() as daemon:
        run(daemon, "threads", "none")
        assert daemon.call("ListStages", app="loop")["totals"][0]["total_is_sequential"]
        assert "TOTAL (sequential)" in daemon.ctl("stages", "loop").stdout


TASKS = """
import asyncio, edgeprof, sys
edgeprof.connect("loop")
async def part(name):
    with edgeprof.stage(name): await asyncio.sleep(.01)
async def whole(i):
    with edgeprof.frame(i):
        if sys.argv[1] == "parts": await asyncio.gather(part("a"), part("b"))
        else: await part("a")
async def main():
    if sys.argv[1] == "parts":
        for i in range(20): await whole(i)
    else: await asyncio.gather(*map(whole, range(20)))
asyncio.run(main())
"""


# covers G3.11
def test_tasks_on_one_thread_have_a_sequential_total():
    for what in "parts", "frames":
        with Daemon() as daemon:
            env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"))
            subprocess.run(["python3", "-c", TASKS, what], env=env, check=True, timeout=60)
            until("it ended", lambda: daemon.call("ListApps", all=True)["apps"][0]["state"] == "ended")
            assert daemon.call("ListStages", app="loop", run=0)["totals"][0]["total_is_sequential"], what
            assert "(sequential: " in daemon.ctl("report", "loop").stdout, what
            text = daemon.ctl("report", "loop", "--format", "text").stdout
            assert re.search(r"^TOTAL \(sequential\) +\d", text, re.M), text


BY_ID = """
import sys, time, edgeprof
edgeprof.connect("loop")
late = int(sys.argv[1])
for i in range(60):
    with edgeprof.frame(i):
        edgeprof.begin("decode", i + 9)
        time.sleep(.002)
        edgeprof.end("decode", i + 9 - late)
        with edgeprof.stage("infer"):
            time.sleep(.002)
"""


def record_by_id(daemon, late):
    """A session of the program, whose stages by id end so many frames late."""
    daemon.call("StartSession", name="s", app="loop", warmup=0)
    subprocess.run(["python3", "-c", BY_ID, str(late)], env=dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python")),
                   check=True, timeout=60)
    until("it ended", lambda: daemon.call("ListSessions", name="s")["sessions"][0]["state"] == "stopped")


# covers G3.11 G4.11
def test_stages_by_id_are_in_their_frames_also_in_a_session():
    with Daemon() as daemon:
        record_by_id(daemon, 0)
        live, report = daemon.call("ListStages", app="loop"), until("the file", lambda: json.loads(
            daemon.ctl("report", "s", "-j").stdout or "null"))
        for reply in live, report:
            stages = {s["stage"]: s for s in reply["stages"]}
            assert all(s["count"] == 60 and s["runs_per_frame"] == 1 and "outside_frames" not in s
                       for s in stages.values()), stages
            total = reply["totals"][0]
            assert abs(total["mean_ms"] - stages["decode"]["mean_ms"] - stages["infer"]["mean_ms"]) < 1e-6, total
            assert not total["total_is_sequential"], total


# covers G4.11
def test_stages_that_overlap_by_id_have_a_sequential_total():
    with Daemon() as daemon:
        record_by_id(daemon, 2)
        assert daemon.call("ListStages", app="loop")["totals"][0]["total_is_sequential"]
        assert re.search(r"^TOTAL +\d.* \(sequential: ", daemon.ctl("report", "loop").stdout, re.M)
        text = until("the file", lambda: daemon.ctl("report", "s").stdout)
        assert re.search(r"^TOTAL \(sequential\) +\d", text, re.M), text


HELPER = """
import sys, time, edgeprof
edgeprof.connect("loop")
for i in range(100):
    with edgeprof.frame():
        with edgeprof.stage("pre"):
            with edgeprof.stage("copy"):
                time.sleep(.004)
        with edgeprof.stage("infer"):
            time.sleep(.004)
        with edgeprof.stage("copy"):
            time.sleep(.004)
print(0, flush=True)
sys.stdin.readline()
"""


def test_a_helper_inside_a_stage_and_on_its_own_counts_once():
    """What the frames are in stages is measured frame by frame; live and of raw records TOTAL is the same."""
    with Daemon() as daemon:
        env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"))
        with program(["python3", "-c", HELPER], env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as app:
            app.stdout.readline()
            frames = until("all frames", lambda: [
                f for f in daemon.call("GetFrames", app="loop")["frames"] if f["total_count"] == 100])[0]
            live = daemon.call("ListStages", app="loop")["totals"][0]["mean_ms"]
            raw = json.loads(daemon.ctl("report", "loop", "--format", "json").stdout)["totals"][0]["mean_ms"]
            app.stdin.close()
            app.wait()
    for total in (live, raw):
        assert abs(total / frames["stage_sum_mean_ms"] - 1) < 0.05, (live, raw, frames)


UNITS = """
import sys, edgeprof
edgeprof.connect("loop")
for unit in ("gpu", "cpu"):
    for _ in range(100):
        with edgeprof.stage("infer", unit=unit):
            pass
print(0, flush=True)
sys.stdin.readline()
"""


# covers G3.4
def test_each_compute_unit_has_its_own_row():
    with Daemon() as daemon:
        env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client/python"))
        with program(["python3", "-c", UNITS], env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as app:
            app.stdout.readline()
            app.stdin.close()
            app.wait()
        until("it ended", lambda: [a for a in daemon.call("ListApps")["apps"] if a["state"] == "ended"])
        rows = daemon.call("ListStages", app="loop")["stages"]
        assert [(r["unit"], r["count"], r.get("expected_unit")) for r in rows] == [
            ("gpu", 100, None), ("cpu", 100, "gpu")], rows
        assert "running on CPU fallback" in daemon.ctl("stages", "loop").stdout


if __name__ == "__main__":
    run_tests(globals())
