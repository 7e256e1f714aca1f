#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assert on sessions of which the truth is known, and on a live app."""
import pathlib
import re
import xml.etree.ElementTree as xml

import sessions
from compare_case import ctl, folder, make
from harness import BUILD, Daemon, program, run_tests, until

DEMO = BUILD / "client" / "examples" / "demo-pipeline"


# covers G4.12: conditions about what was recorded
def test_conditions_hold_for_a_session():
    with folder() as place:
        place = pathlib.Path(place)
        heat = [("temperature/max", "celsius", [(i / 10, 50.0 + i) for i in range(20)])]
        a = make(place, "a", period_ms=30, sensors=heat)
        empty = sessions.write(place / "empty.jsonl", "empty", {})
        cases = [
            ("frames.fps > 30", 0, "frames.fps = "),
            ("frames.fps > 90", 1, "expected > 90"),
            ("stages.infer.p99_ms < 0.05 s && stages.capture.mean_ms < 4", 0, "stages.capture.mean_ms"),
            ("temperature/max < 69", 1, "temperature/max = 69, expected < 69"),
            ("temperature/max < 69.5C", 0, "69"),
            ("temperature/max > 49", 0, "50"),
            ("stages.none.p99_ms < 5", 2, "unknown stage 'none'\n"),
            ("stages.inferr.p99_ms < 5", 2, "unknown stage 'inferr'; did you mean 'infer'?\n"),
            ("temperature/mx < 5", 2, "the metric was not recorded; did you mean 'temperature/max'?\n"),
            ("frames.fpss < 5", 2, "frames.fpss: no value of that name; did you mean 'fps'?\n"),
            ("power/total < 5", 2, "power/total"),
            ("temperature/max < 5 W", 64, "celsius"),
            ("frames.fps > 30 for 3s", 64, "running app"),
            ("frames.fps >", 64, "at character 13"),
            ("stages.infer.p42_ms < 5", 2, "stages.infer.p42_ms: no value of that name"),
            ("stages.infer.tail_ratio > 1 && frames.total_count == 300", 0, "total_count = 300"),
        ]  # fmt: skip
        for text, status, wanted in cases:
            done = ctl("assert", text, "--session", a)
            assert done.returncode == status and wanted in done.stdout + done.stderr, (text, done)
        broken = sessions.write(place / "broken.jsonl", "broken", {}, error="no OpenCL")
        for file, reason in ((broken, "the session failed: no OpenCL"), (empty, "no frames were recorded")):
            for name in ("frames.fps", "stages.infer.p99_ms"):
                done = ctl("assert", f"{name} > 1", "--session", file)
                assert done.returncode == 2 and f"{name}: {reason}" in done.stderr, done
        for name in ("frames.fps", "stages.infer.p99_ms", "power/total"):
            done = ctl("assert", f"{name} > 1")
            assert done.returncode == 69 and "tried /nonexistent/io.edgeprof" in done.stderr, done
        done = ctl("assert", "frames.fps>1", "frames.fps>999", "--session", a, "--format", "junit")
        suite = xml.fromstring(done.stdout)
        assert done.returncode == 1 and suite.get("tests") == "2" and suite.get("failures") == "1", done
        assert suite[1].find("failure").get("message").endswith("expected > 999"), done.stdout


# covers G4.12, G3.4: a model that fell back to the CPU does not pass
def test_a_stage_on_two_units_is_judged_by_the_worse():
    with Daemon("[stage cam/infer]\ndeadline = 10us\n") as daemon:
        daemon.ctl("emit", "other", "1ms", "--app", "cam")
        until("the app", lambda: daemon.ctl("session", "start", "s", "cam", "--warmup", "0", "--detach").returncode == 0)
        for unit, ms in (("gpu", "1us"), ("cpu", "20us")):
            daemon.ctl("emit", "infer", ms, "--unit", unit, "--app", "cam")
        until("both", lambda: daemon.ctl("assert", "stages.infer@cpu.count == 1").returncode == 0)
        assert daemon.ctl("session", "stop", "s").returncode == 0
        for text, status in (("infer.mean_ms < 5us", 1), ("infer.mean_ms > 5us", 1), ("infer.mean_ms < 1ms", 0),
                             ("infer@gpu.mean_ms < 5us", 0), ("infer@cpu.mean_ms > 5us", 0), ("infer.count == 1", 0),
                             ("infer@cpu.misses == 1", 0)):
            for source in ((), ("--session", "s")):
                assert daemon.ctl("assert", f"stages.{text}", *source).returncode == status, (text, source)
        shown = daemon.ctl("session", "show", "s").stdout
        assert re.search(r"^infer@cpu +0\.02 ", shown, re.M) and "infer_cpu" not in shown, shown


# covers G4.12: the same about an app that runs
def test_conditions_hold_for_a_live_app():
    with Daemon() as daemon:
        gone = daemon.ctl("assert", "frames.fps>1", "--app", "cam")
        assert gone.returncode == 2 and "cam" in gone.stderr, gone
        with program([DEMO, "--app", "cam", "--fps", "50", "--load", "1"], daemon.env):
            until("frames", lambda: daemon.ctl("assert", "frames.fps>0").returncode == 0)
            held = daemon.ctl("assert", "frames.fps > 0 && stages.infer.p99_ms > 0 for 2s", "--app", "cam")
            assert held.returncode == 0 and held.stdout.startswith("passed: frames.fps = "), held
            wrong = daemon.ctl("assert", "frames.fps > 5000")
            assert wrong.returncode == 1, wrong
            assert re.fullmatch(r"edgeprofctl: frames.fps = [\d.]+, expected > 5000\n", wrong.stderr), wrong
            assert daemon.ctl("assert", "cpu/utilization <= 100 %").returncode == 0
            for text, said in (("cpu/utilisation < 1", "unknown metric; did you mean 'cpu/utilization'?"),
                               ("no/such < 1", "unknown metric; 'edgeprofctl sensors --all' lists them"),
                               ("stages.infre.p99_ms < 1", "unknown stage 'infre'; did you mean 'infer'?"),
                               ("stages.infer.p99ms < 1", "no value of that name; did you mean 'p99_ms'?")):
                done = daemon.ctl("assert", text)
                assert (done.returncode, done.stderr.split(": ", 2)[2]) == (2, said + "\n"), done
            done = daemon.ctl("assert", "frames.fps > 0", "--app", "cma")
            assert done.stderr == "edgeprofctl: frames.fps: there is no app 'cma'; did you mean 'cam'?\n", done
            assert daemon.ctl("assert", "frames.fps > 5000", "--within", "2s").returncode == 1
            assert daemon.ctl("assert", "frames.frame_count >= 60", "--within", "60s").returncode == 0
            for text in ("stage/cam/infer/p95_ms < 100 s", "stage/cam/infer/p95_ms > 1us",
                         "stages.infer.percent_of_total <= 100 %", "frames.fps_mean > 1 fps"):
                done = daemon.ctl("assert", text)
                assert done.returncode == 0, (text, done)
            done = daemon.ctl("assert", "frames.energy_mj_per_frame < 5 mJ")
            assert done.stderr == "edgeprofctl: frames.energy_mj_per_frame: no power sensor\n", done
        assert daemon.ctl("assert", "no.such > 1").returncode == 64


if __name__ == "__main__":
    run_tests(globals())
