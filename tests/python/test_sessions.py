#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions of Python programs: what they send, errors, sweeps; with a daemon of canned answers, and without."""
import hashlib
import json
import os
import sys
import tempfile
import unittest

import support
from support import ROOT, app_env, run

sys.path.insert(0, str(ROOT / "tests" / "tools"))
from fake_daemon import FakeDaemon, error  # noqa: E402


class Sessions(unittest.TestCase):
    def run_with(self, code, status=0, env=None, **replies):
        """What the program printed as JSON, its stderr, and the calls that the daemon got."""
        row = {"name": "day.2", "state": "running", "frames_done": 7}
        replies = dict({"StartSession": {"session": row}, "StopSession": {"session": dict(row, state="stopped")},
                        "ListSessions": {"sessions": [dict(row, name="day"), row]}}, **replies)
        with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, replies) as daemon:
            environment = app_env(None, EDGEPROF_RUNTIME_DIR=folder, OMP_NUM_THREADS="4", **(env or {}))
            for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
                environment.pop(name, None)
            out, said = run("import edgeprof, json, os, time\nedgeprof.connect('cam')\n" + code, environment, status)
            calls = [(call["method"].rsplit(".", 1)[1], call["parameters"]) for call in daemon.calls]
        return out and json.loads(out), said, calls

    def test_a_session_has_the_app_its_tags_and_the_environment(self):
        # covers G1.8, G0.21, G0.22, G0.23
        out, _, calls = self.run_with("""
with edgeprof.session("day", frames=300, resolution="640x480", threads=4) as s:
    print(json.dumps([s.name, s.error, s.progress(), s.finished]))
""")
        self.assertEqual(out[:2], ["day.2", None])
        self.assertEqual(out[2]["frames_done"], 7)
        self.assertIs(out[3], False)
        self.assertEqual([name for name, _ in calls], ["StartSession", "ListSessions", "ListSessions", "StopSession"])
        sent = calls[0][1]
        self.assertEqual({key: sent[key] for key in ("name", "app", "warmup", "frames")},
                         {"name": "day", "app": "cam", "warmup": 10, "frames": 300})
        self.assertEqual(sent["tags"], [{"name": "resolution", "value": "640x480"}, {"name": "threads", "value": "4"}])
        environment = {pair["name"]: pair["value"] for pair in sent["environment"]}
        self.assertEqual(environment, {"OMP_NUM_THREADS": "4", "python": "%d.%d.%d" % sys.version_info[:3]})
        self.assertEqual(calls[3][1], {"name": "day.2"})

    def test_an_exception_makes_it_a_failed_one_and_goes_on(self):
        _, said, calls = self.run_with("""
with edgeprof.session("day"):
    raise ValueError("no\\x1b camera" + "x" * 999)
""", status=1)
        self.assertIn("ValueError: no", said)
        self.assertEqual(calls[-1][0], "StopSession")
        self.assertTrue(calls[-1][1]["error"].startswith("ValueError('no"))
        self.assertLessEqual(len(calls[-1][1]["error"]), 250)
        _, _, calls = self.run_with("""
try:
    with edgeprof.session("day"): raise KeyboardInterrupt
except KeyboardInterrupt: pass
""")
        self.assertEqual(calls[-1], ("StopSession", {"name": "day.2"}))

    def test_a_model_is_a_name_a_size_and_a_digest(self):
        with tempfile.NamedTemporaryFile(suffix=".tflite") as model:
            model.write(b"weights")
            model.flush()
            _, _, calls = self.run_with("with edgeprof.session('day', model=%r): pass" % model.name)
            self.assertEqual({tag["name"]: tag["value"] for tag in calls[0][1]["tags"]}, {
                "model": os.path.basename(model.name), "model_bytes": "7",
                "model_sha256": hashlib.sha256(b"weights").hexdigest()})
        _, _, calls = self.run_with("with edgeprof.session('day', model='yolov5s'): pass")
        self.assertEqual(calls[0][1]["tags"], [{"name": "model", "value": "yolov5s"}])

    def test_names_follow_the_name_rule(self):
        _, _, calls = self.run_with("with edgeprof.session('my run \u00fc' + 'x' * 99): pass")
        self.assertEqual(calls[0][1]["name"], "my_run___" + "x" * 39)

    def test_whatever_the_daemon_replies_the_program_runs(self):
        code = """
with edgeprof.session("day") as s: s.progress()
print(json.dumps([s.error, s.progress()]))
"""
        for reply in (error("io.edgeprof.LimitReached", what="sessions", limit=8), "close", b"x\0", {}, {"session": {}},
                      error("org.varlink.service.MethodNotFound", method="StartSession")):
            out, said, calls = self.run_with(code, StartSession=reply)
            self.assertEqual(out[1], {})
            self.assertEqual(said, "")
            self.assertEqual([name for name, _ in calls], ["StartSession"])
        out, _, _ = self.run_with(code, StartSession=error("io.edgeprof.LimitReached", what="sessions", limit=8))
        self.assertIn("LimitReached", out[0])
        self.run_with(code, ListSessions="close", StopSession="close")

    def test_without_a_daemon_it_is_silent(self):
        code = """
import edgeprof, json
with edgeprof.session("day", frames=3) as s:
    for _ in range(20):
        with edgeprof.frame(): pass
print(json.dumps([s.name, s.finished, s.progress(), bool(s.error)]))
"""
        for env in (app_env(), app_env(None, EDGEPROF_DISABLE="1")):
            out, said = run(code, env)
            self.assertEqual(json.loads(out), ["day", True, {}, True])
            self.assertEqual(said, "")

    def test_print_shows_a_line_each_50_frames(self):
        # covers G0.24
        lines = r"Frame 50/120: (\d+\.\d) fps\nFrame 100/120: \d+\.\d fps\n"
        for body in ("with edgeprof.frame(): time.sleep(0.001)", "time.sleep(0.001); edgeprof.tick()"):
            code = """
import edgeprof, time
with edgeprof.session("day", warmup=10, frames=120):
    for _ in range(200):
        %s
for _ in range(200): edgeprof.tick()
""" % body
            _, said = run(code, app_env(None, EDGEPROF_PRINT="1"))
            self.assertRegex(said, "^" + lines + "$")
            self.assertLess(float(said.split()[2]), 1000)
            self.assertEqual(run(code, app_env())[1], "")

    def test_a_sweep_has_a_session_and_a_row_for_each_variant(self):
        # covers G0.21, G0.22, G0.23
        out, _, calls = self.run_with("""
calls = []
def detect(resolution, threads):
    calls.append((resolution, threads))
    if threads == 2 and len(calls) % 100 > 20: raise MemoryError("too large")
    time.sleep(0.001)
rows = edgeprof.sweep("detector", {"resolution": ["320x320", "640x640"], "threads": [1, 2]}, detect, warmup=2, frames=8)
print(json.dumps([rows, len(calls)]))
""", StartSession=lambda parameters: {"session": {"name": parameters["name"], "state": "warmup"}})
        rows, count = out
        self.assertEqual([row["tags"] for row in rows], [
            {"resolution": r, "threads": t} for r in ("320x320", "640x640") for t in (1, 2)])
        self.assertEqual(rows[0]["session"], "detector-320x320-1")
        self.assertEqual(count, 10 + 10 + 10 + 1)
        for row in rows[:3]:
            self.assertIsNone(row["error"])
            self.assertEqual(row["count"], 8)
            self.assertGreaterEqual(row["p95_ms"], row["mean_ms"] * 0.5)
            self.assertAlmostEqual(row["max_fps"], 1000 / row["mean_ms"])
        self.assertEqual(rows[3], {"tags": {"resolution": "640x640", "threads": 2}, "session": "detector-640x640-2",
                                   "error": "MemoryError: too large", "count": 0, "mean_ms": None, "p95_ms": None,
                                   "max_fps": None})
        stopped = [parameters for name, parameters in calls if name == "StopSession"]
        self.assertEqual([p["name"] for p in stopped], [row["session"] for row in rows])
        self.assertEqual(["error" in p for p in stopped], [False, False, False, True])

    def test_wrong_arguments_raise(self):
        run("""
import edgeprof
for arguments, kind in (((), TypeError), (("",), ValueError), ((7,), TypeError), (("a", -1), ValueError),
                        (("a", 1, 1.5), TypeError)):
    try: edgeprof.session(*arguments)
    except kind: pass
    else: raise AssertionError(arguments)
""", app_env())


if __name__ == "__main__":
    support.main()
