#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples, built and run against the real daemon: what edgeprofctl tells about them is what
they did."""
import json
import os
import re
import subprocess

from harness import BUILD, DEMO, SOURCE, Daemon, run_tests, until

EXAMPLES = BUILD / "client" / "examples"
FRAMES = 80


def run(daemon, name):
    """Runs an example to its end and returns what is told of the app: stages by name, frames, the app."""
    path = EXAMPLES / name
    if not path.exists():
        return None
    done = subprocess.run([str(path), str(FRAMES)], env=daemon.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "" and done.stderr == "", (done.returncode, done.stdout, done.stderr)
    app = name.replace("-stages", "")
    until("the app has ended", lambda: find_app(daemon, app).get("state") in ("ended", "exited"))
    stages = answer(daemon, "stages", app)
    frames = answer(daemon, "frames", app)["frames"][0]
    return {s["stage"]: s for s in stages["stages"]}, stages["totals"][0], frames, find_app(daemon, app)


def find_app(daemon, name):
    return next((app for app in daemon.call("ListApps")["apps"] if app["name"] == name), {})


def answer(daemon, *words):
    reply = daemon.ctl("-j", *words)
    assert reply.returncode == 0, (words, reply.returncode, reply.stdout, reply.stderr)
    return json.loads(reply.stdout)


def check_nothing_was_lost(app):
    assert app["sent"] == app["received"] and app["dropped"] == 0 and app["in_ring"] == 0, app
    assert app["invalid"] == 0, app


def marks(daemon, app):
    return [m for m in daemon.call("ListMarks")["marks"] if m["app"] == app]


# covers G0.7, G0.9, G1.12
def test_hello_in_c():
    with Daemon() as daemon:
        stages, total, frames, app = run(daemon, "hello-stages")
        check_nothing_was_lost(app)
        # three stages, a frame, a gauge, an attribute each time; two deadlines, a mark and its memory
        assert app["sent"] >= 6 * FRAMES + 4, app
        assert {"capture", "infer", "publish"} <= set(stages), stages
        for name, at_least_ms in (("capture", 2), ("infer", 6), ("publish", 1)):
            stage = stages[name]
            assert stage["count"] == stage["total_count"] == FRAMES, stage
            assert stage["min_ms"] >= at_least_ms, stage
            assert stage["min_ms"] <= stage["p50_ms"] <= stage["max_ms"], stage
            assert stage["orphan_end"] == stage["abandoned"] == 0, stage
            assert stage["failed"] == 0, stage
        assert stages["infer"]["category"] == "model" and stages["infer"]["unit"] == "cpu", stages["infer"]
        assert stages["infer"]["deadline_ms"] == 33, stages["infer"]
        assert abs(total["mean_ms"] - sum(s["mean_ms"] for s in stages.values())) < 1e-6, (total, stages)
        assert frames["total_count"] == FRAMES and frames["frame_count"] == FRAMES - 1, frames
        assert frames["out_of_order"] == frames["skipped_ids"] == 0, frames
        # one thread: a frame takes as long as its stages
        assert frames["end_to_end_mean_ms"] >= total["mean_ms"], (frames, total)
        told = marks(daemon, "hello")
        assert [m["label"] for m in told] == ["model loaded"], told
        assert 1 << 18 < told[0]["rss_bytes"] <= told[0]["peak_rss_bytes"] <= told[0]["vms_bytes"], told


# covers G0.7, G1.1 (a pipelined app: stage N of frame k+1 beside stage N+1 of frame k)
def test_hello_in_cpp():
    if not (EXAMPLES / "hello-stages-cpp").exists():
        return "no C++ compiler here"
    with Daemon() as daemon:
        stages, total, frames, app = run(daemon, "hello-stages-cpp")
        check_nothing_was_lost(app)
        # two stages, a frame and a gauge each time; a failure counted in ten; a mark with a value; a deadline
        assert app["sent"] >= 4 * FRAMES + FRAMES // 10 + 4, app
        for name, at_least_ms in (("capture", 3), ("infer", 4)):
            # those that threw are among them
            assert stages[name]["count"] == FRAMES and stages[name]["min_ms"] >= at_least_ms, stages[name]
        assert stages["infer"]["failed"] == FRAMES // 10 and stages["capture"]["failed"] == 0, stages
        assert stages["infer"]["deadline_ms"] == 33, stages["infer"]
        assert 0 <= stages["infer"]["cpu_ms"] < stages["infer"]["mean_ms"], stages["infer"]  # it sleeps
        assert "cpu_ms" not in stages["capture"], stages["capture"]  # did not ask
        assert frames["total_count"] == FRAMES, frames
        assert frames["out_of_order"] == frames["skipped_ids"] == 0, frames
        told = marks(daemon, "hello-cpp")
        assert [(m["label"], m["attributes"]) for m in told] == [("start", [{"name": "frames", "value": FRAMES}])], told
        # the threads work side by side: more frames a second than one could do, each of them late
        assert frames["last_fps"] > total["max_fps"], (frames, total)
        assert frames["end_to_end_mean_ms"] > frames["frame_time_mean_ms"], frames


def test_callbacks_of_two_threads_are_tied_by_the_stamp():
    if not (EXAMPLES / "callbacks").exists():
        return "no C++ compiler here"
    with Daemon() as daemon:
        stages, _total, frames, app = run(daemon, "callbacks")
        check_nothing_was_lost(app)
        assert app["sent"] == 4 * FRAMES, app  # three stages and a frame
        for name, at_least_ms in (("on_timer", 3), ("on_image", 5), ("infer", 5)):
            assert stages[name]["count"] == FRAMES and stages[name]["min_ms"] >= at_least_ms, stages[name]
        assert stages["on_timer"]["category"] == "capture" and stages["infer"]["unit"] == "cpu", stages
        assert frames["total_count"] == FRAMES and frames["out_of_order"] == 0, frames
        # from the stamp of the image to the end of its second callback
        assert frames["end_to_end_mean_ms"] >= stages["on_timer"]["mean_ms"] + 5, (frames, stages)
        # two callbacks ran side by side
        assert frames["frame_time_mean_ms"] < frames["end_to_end_mean_ms"], frames


# covers G0.9
def test_demo_pipeline_tells_all_kinds():
    with Daemon() as daemon:
        command = [str(DEMO), "--app", "all", "--frames", "60", "--fps", "100", "--load", "1"]
        subprocess.run(command, env=daemon.env, check=True, timeout=60)
        until("the app has ended", lambda: find_app(daemon, "all").get("state") in ("ended", "exited"))
        app = find_app(daemon, "all")
        check_nothing_was_lost(app)
        # five stages, a frame, a gauge and an attribute each time; deadlines, marks with memory and a value
        assert app["sent"] >= 8 * 60 + 2 + 5, app
        stages = {s["stage"]: s for s in answer(daemon, "stages", "all")["stages"]}
        assert all(stages[name]["count"] == 60 for name in ("capture", "preprocess", "infer", "postprocess", "publish")), stages
        told = marks(daemon, "all")
        assert [m["label"] for m in told] == ["before model load", "after model load"], told


def test_examples_run_without_a_daemon():
    env = dict(os.environ, EDGEPROF_RUNTIME_DIR="/nonexistent")
    for name in ("hello-stages", "hello-stages-cpp", "callbacks"):
        if (EXAMPLES / name).exists():
            done = subprocess.run([str(EXAMPLES / name), "3"], env=env, capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    done = subprocess.run(
        [str(EXAMPLES / "hello-stages"), "3"], env=dict(env, EDGEPROF_PRINT="1"), capture_output=True, text=True, timeout=60
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 9 and all(re.fullmatch(r"\[(capture|infer|publish)\] \d+\.\d\dms", line) for line in lines), lines


def test_the_manual_names_every_function():
    header = (SOURCE / "client" / "libedgeprof" / "edgeprof.h").read_text()
    manual = (SOURCE / "client" / "libedgeprof" / "edgeprof.3.scd").read_text().replace("\\_", "_")
    names = {n for n in re.findall(r"\b(edgeprof_[a-z0-9_]+)\(", header) if not n.startswith(("edgeprof_scope", "edgeprof_site"))}
    assert len(names) > 25, names
    assert not [name for name in names if f"*{name}*" not in manual], names


if __name__ == "__main__":
    run_tests(globals())
