#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl diagnose, why and forecast against a daemon of canned answers: texts, calls, exit codes, JSON."""
import copy
import json
import re
import subprocess
import unittest

from ctl_case import APP, CTL, HOSTILE, STATUS, Case, T, error
from terminal import Terminal

THROTTLED = {
    "cause": "thermal_throttling", "confidence": "high", "score": 0.91, "explained_ms": 44.0,
    "symptom": "8.2 frames/s instead of 14.9, since 12:03 (4 min)",
    "text": "the clock is capped at 81 °C: infer takes 92 ms, not 48",
    "evidence": ["throttle/active 1 in 96 % of the last 30 s", "cpu/0/frequency 1.20 GHz, usually 2.40 GHz",
                 "temperature/max 81.0 °C, usually 64.2 °C"],
    "advice": ["improve cooling: a fan or a larger heat sink", "lower the frame rate to what the board can sustain"]}
CONTENTION = {
    "cause": "cpu_contention", "confidence": "medium", "score": 0.52, "explained_ms": 6.3,
    "symptom": "p99 of a frame is 3.1 times its median", "text": "ffmpeg (pid 4711) uses 2.9 of 4 processors",
    "evidence": ["process/cam/run_delay 18.0 %, usually 0.4 %"], "advice": ["pin ffmpeg to other processors"]}
WEAK = {"cause": "io_stall", "confidence": "low", "score": 0.2, "explained_ms": None, "symptom": "frames vary",
        "text": "the card is busy", "evidence": ["pressure/io/some 4 %"], "advice": ["write less"]}
SICK = {
    "app": "cam", "status": "findings", "time_us": T, "summary": THROTTLED["text"], "frames": 14232, "span_s": 483.0,
    "findings": [THROTTLED, CONTENTION, WEAK], "bottlenecks": ["cpu_bound", "thermal_throttling"],
    "optimization_opportunities": [
        {"stage": "infer", "priority": "HIGH", "share_percent": 81.6,
         "text": "the model: infer takes 82 % of the time in stages: quantize it",
         "gain_low_percent": 15.0, "gain_high_percent": 25.0},
        {"stage": "preprocess", "priority": "MEDIUM", "share_percent": 12.1, "category_percent": 60.2},
        {"stage": "publish", "priority": "LOW", "share_percent": 1.0}],
    "performance_trends": [{"metric": "process/cam/rss", "per_hour": 12.9e6, "per_hour_least": 9e6,
                            "text": "rose from 89.2 to 101.5 MiB in the last 10 min"}],
    "recommendations": [THROTTLED["advice"][0], CONTENTION["advice"][0], WEAK["advice"][0], "infer: quantize it",
                        "a virtual machine: times of other guests are in the numbers"],
    "throttle_tax": {"share": 0.463, "lost_ms": 44.0, "fps": 8.2, "unthrottled_fps": 14.9, "unthrottled_fps_low": 14.1,
                     "unthrottled_fps_high": 15.8, "throttled_joules_per_frame": 1.2, "unthrottled_joules_per_frame": 0.8}}
NONE = {"findings": [], "bottlenecks": [], "optimization_opportunities": [], "performance_trends": [], "recommendations": [],
        "time_us": T, "throttle_tax": {"reason": "it is not known when the hardware throttled"}}
HEALTHY = dict(NONE, app="mic", status="healthy", summary="nothing wrong: 30.1 frames/s, p95 34.1 ms", frames=900, span_s=30)
NEW = dict(NONE, app="new", status="insufficient_data", summary="not enough data: 4 frames", frames=4, span_s=0.3)

SICK_TEXT = """\
cam: 2 findings in 14,232 frames over 8 min 3 s
1. thermal throttling (high)  +44.0 ms per frame
   8.2 frames/s instead of 14.9, since 12:03 (4 min)
   the clock is capped at 81 °C: infer takes 92 ms, not 48
     throttle/active 1 in 96 % of the last 30 s
     cpu/0/frequency 1.20 GHz, usually 2.40 GHz
     temperature/max 81.0 °C, usually 64.2 °C
   do: improve cooling: a fan or a larger heat sink
   do: lower the frame rate to what the board can sustain
2. cpu contention (medium)  +6.3 ms per frame
   p99 of a frame is 3.1 times its median
   ffmpeg (pid 4711) uses 2.9 of 4 processors
     process/cam/run_delay 18.0 %, usually 0.4 %
   do: pin ffmpeg to other processors
(1 of low confidence with --all)
Bottlenecks        cpu bound, thermal throttling
Throttle tax       46.30 % of the last frames, adding 44.0 ms to each; 14.9 frames/s without (14.1 to 15.8), 8.2 now
Energy             1.20 J a frame while throttled, 0.80 J otherwise
Opportunities
  infer            HIGH: the model: infer takes 82 % of the time in stages: quantize it; may save 15 to 25 %
  preprocess       MEDIUM: 12 % of the time in stages, 60 % of its category
Trends
  process/cam/rss  rose from 89.2 to 101.5 MiB in the last 10 min
Note               a virtual machine: times of other guests are in the numbers
"""

SLOW = {
    "app": "cam", "frame": 8841, "start_us": T, "end_us": T + 131200, "took_ms": 131.2, "usual_ms": 52.0, "compared_frames": 63,
    "summary": "frame 8841 took 131.2 ms, usually 52.0: infer +66.0 ms; waited 61.0 ms for a processor",
    "differences": [
        {"what": "stage infer", "unit": "milliseconds", "value": 114.0, "usual": 48.0, "explained_ms": 66.0, "text": "x"},
        {"what": "between preprocess and infer", "unit": "milliseconds", "value": 9.1, "usual": 0.2, "explained_ms": 8.9,
         "text": "x"},
        {"what": "outside of stages", "unit": "milliseconds", "value": 0.9, "usual": 0.5, "explained_ms": 0.4, "text": "x"},
        {"what": "run-queue wait", "unit": "milliseconds", "value": 61.0, "usual": 0.3, "explained_ms": 60.7, "text": "x"},
        {"what": "pressure/cpu/some", "unit": "percent", "value": 48.0, "usual": 1.5, "text": "x"},
        {"what": "blocked", "unit": "", "value": None, "text": "neither computing nor waiting for a processor"}]}
SLOW_TEXT = """\
cam: frame 8841 took 131.2 ms, usually 52.0: infer +66.0 ms; waited 61.0 ms for a processor
at 2025-11-21 05:40:25, compared with 63 frames around it

WHERE                             VALUE     USUAL  EXPLAINED ms
stage infer                   114.00 ms  48.00 ms         +66.0
between preprocess and infer    9.10 ms   0.20 ms          +8.9
outside of stages               0.90 ms   0.50 ms          +0.4

WHY                   VALUE    USUAL  EXPLAINED ms
run-queue wait     61.00 ms  0.30 ms         +60.7
pressure/cpu/some    48.0 %    1.5 %             -
blocked                   -        -             -  neither computing nor waiting for a processor
"""

WARM = {
    "temperatures": [
        {"metric": "temperature/cpu-thermal", "celsius": 71.2, "trip_celsius": 85.0, "state": "rising_to_trip",
         "steady_celsius": 91.3, "steady_low_celsius": 88.0, "steady_high_celsius": 95.1, "trip_in_s": 250.0,
         "trip_in_low_s": 221.0, "trip_in_high_s": 290.0, "span_s": 600.0,
         "verdict": "rising: reaches its trip point (85.0 °C) in 4 min 10 s (3 min 41 s to 4 min 50 s)"},
        {"metric": "temperature/gpu-thermal", "celsius": 55.0, "trip_celsius": None, "state": "unknown", "span_s": 9.0,
         "verdict": "unknown: less than 60 s of history", "reason": "less than 60 s of history"}],
    "plans": [
        {"arrangement": "sequential", "fps": 30.0, "deadline_ms": 33.0, "miss_rate": 0.214, "miss_rate_low": 0.19,
         "miss_rate_high": 0.24, "latency_p50_ms": 30.1, "latency_p95_ms": 36.4, "latency_p99_ms": 41.0, "max_fps": 27.5,
         "frames": 600},
        {"arrangement": "pipelined", "fps": 30.0, "deadline_ms": 33.0, "frames": 12, "reason": "only 12 frames"}]}
WARM_TEXT = """\
METRIC                       NOW     TRIP   STEADY                        IN  VERDICT
temperature/cpu-thermal  71.2 °C  85.0 °C  91.3 °C  88.0 to 95.1  4 min 10 s  rising: reaches its trip point (85.0 °C) in 4 min 10 s (3 min 41 s to 4 min 50 s)
temperature/gpu-thermal  55.0 °C        -        -                         -  unknown: less than 60 s of history

ARRANGEMENT   FPS  DEADLINE ms   MISSED                      P50 ms  P95 ms  P99 ms  MAX FPS  NOTE
sequential   30.0         33.0  21.40 %  19.00 % to 24.00 %    30.1    36.4    41.0     27.5
pipelined    30.0         33.0        -                           -       -       -        -  only 12 frames
"""


def diagnoses(*rows):
    return {"diagnoses": list(rows)}


def spoil(value, odd, depth=3):
    """The reply with something else in place of everything below the depth, and among each list."""
    if isinstance(value, dict) and depth > 0:
        return {key: spoil(part, odd, depth - 1) for key, part in value.items()}
    if isinstance(value, list) and depth > 0:
        return [spoil(part, odd, depth - 1) for part in value] + [odd]
    return odd


def texts_replaced(value, text, every=1, at=0):
    """The reply with the text in place of every text that is shown, or of one of each `every`."""
    counter = iter(range(1 << 20))

    def replace(value):
        if isinstance(value, dict):
            return {key: replace(part) for key, part in value.items()}
        if isinstance(value, list):
            return [replace(part) for part in value]
        shown = isinstance(value, str) and value not in ("findings", "high") and next(counter) % every == at
        return text if shown else value
    return replace(value)


class Diagnose(Case):
    def test_findings_are_ranked_with_what_to_do(self):
        with self.daemon(Diagnose=diagnoses(SICK)) as daemon:
            self.assertEqual(self.ctl("diagnose", "cam", status=1)[0], SICK_TEXT)
            self.assertEqual(daemon.calls[-1]["parameters"], {"app": "cam"})
            self.assertTrue(daemon.calls[-1]["more"])

    def test_all_adds_what_is_of_low_confidence_and_gain(self):
        with self.daemon(Diagnose=diagnoses(SICK)):
            text = self.ctl("diagnose", "--all", status=1)[0]
            self.assertIn("cam: 3 findings in", text)
            self.assertIn("3. io stall (low)\n   frames vary\n   the card is busy\n     pressure/io/some 4 %\n   do: write less\n",
                          text)
            self.assertRegex(text, r"  publish +LOW: 1 % of the time in stages\n")
            self.assertNotIn("--all", text)

    def test_of_several_apps_only_what_is_wrong_has_more_than_a_line(self):
        with self.daemon(Diagnose=[diagnoses(HEALTHY, SICK), diagnoses(NEW)]):
            text = self.ctl("diagnose", status=1)[0]
            self.assertEqual(text, "mic: nothing wrong: 30.1 frames/s, p95 34.1 ms\n\n" + SICK_TEXT +
                             "\nnew: not enough data: 4 frames\n")

    def test_the_exit_status_says_whether_something_is_wrong(self):
        low = dict(HEALTHY, findings=[WEAK])
        for rows, status in (((HEALTHY,), 0), ((low,), 0), ((HEALTHY, NEW), 0), ((NEW,), 2), ((NEW, SICK), 1), ((), 2)):
            with self.daemon(Diagnose=diagnoses(*rows)):
                for words in ((), ("-j",)):
                    said = self.ctl("diagnose", *words, status=status)[1]
                    self.assertEqual(said != "", not rows, said)
        with self.daemon(Diagnose=error("io.edgeprof.NotFound", what="app", name="x")):
            self.assertIn("there is no app 'x'; 'edgeprofctl apps' lists them", self.ctl("diagnose", "x", status=2)[1])

    def test_of_a_healthy_app_throttling_that_is_not_known_is_omitted(self):
        with self.daemon(Diagnose=diagnoses(HEALTHY)):
            self.assertNotIn("Throttle tax", self.ctl("diagnose", "mic")[0])
        with self.daemon(Diagnose=diagnoses(dict(HEALTHY, throttle_tax={"share": 0.0, "reason": "never throttled"}))):
            self.assertEqual(self.ctl("diagnose", "mic")[0], "mic: nothing wrong: 30.1 frames/s, p95 34.1 ms\n")

    def test_it_is_legible_at_60_columns(self):
        with self.daemon(Diagnose=diagnoses(SICK), Explain=SLOW, Forecast=WARM):
            for verb, status in (("diagnose", 1), ("why cam", 0), ("forecast cam", 0)):
                for columns in (60, 120):
                    lines = self.ctl(*verb.split(), status=status, COLUMNS=str(columns))[0].splitlines()
                    self.assertLessEqual(max(map(len, lines)), columns, lines)
            text = " ".join(self.ctl("diagnose", status=1, COLUMNS="60")[0].split())
            self.assertEqual(text, " ".join(SICK_TEXT.split()))


class Why(Case):
    def test_a_frame_is_compared_by_where_and_why(self):
        with self.daemon(Explain=SLOW):
            self.assertEqual(self.ctl("why", "cam")[0], SLOW_TEXT)

    def test_the_frame_is_the_slowest_or_has_an_id_or_a_time(self):
        with self.daemon(Explain=SLOW) as daemon:
            for words, expected in (([], {}), (["worst"], {}), (["8841"], {"frame": 8841}), (["0"], {"frame": 0}),
                                    (["9223372036854775807"], {"frame": 9223372036854775807}),
                                    (["@1763703625"], {"time_us": 1763703625000000}),
                                    (["2025-11-21 05:40"], {"time_us": 1763703600000000})):
                self.ctl("why", "cam", *words)
                self.assertEqual(daemon.calls[-1]["parameters"], {"app": "cam", **expected})
            self.ctl("why", "cam", "5min")
            self.assertIn("time_us", daemon.calls[-1]["parameters"])
            calls = len(daemon.calls)
            for word, said in (("someday", "invalid time 'someday'"), ("", "invalid time ''"),
                               ("99999999999999999999", "frame id '99999999999999999999' is too large")):
                self.assertIn(said, self.ctl("why", "cam", word, status=64)[1])
            self.ctl("why", status=64)
            self.assertEqual(len(daemon.calls), calls)
        for name, said in (("worst", "no frame to explain yet"), ("then", "no frame of that time is kept"), ("7", "there is no frame '7'")):
            with self.daemon(Explain=error("io.edgeprof.NotFound", what="frame", name=name)):
                self.assertIn(said + "; 'edgeprofctl frames APP --recent' lists them\n", self.ctl("why", "cam", status=2)[1])

    def test_too_few_frames_have_a_reason_and_no_tables(self):
        few = dict(SLOW, differences=[], reason="only 3 comparable frames", summary="frame 8841 took 131.2 ms")
        with self.daemon(Explain=few):
            text, said = self.ctl("why", "cam", status=2)
            self.assertNotIn("WHERE", text)
            self.assertIn("only 3 comparable frames", said)
            self.assertEqual(json.loads(self.ctl("why", "cam", "-j", status=2)[0]), few)
        with self.daemon(Explain=error("io.edgeprof.NotFound", what="frame", name="7")):
            self.assertIn("there is no frame '7'; 'edgeprofctl frames APP --recent'", self.ctl("why", "cam", "7", status=2)[1])


class Forecast(Case):
    maxDiff = None

    def test_temperatures_and_plans_are_tables(self):
        with self.daemon(Forecast=WARM) as daemon:
            self.assertEqual(self.ctl("forecast", "cam", "--fps", "30", "--deadline", "33")[0], WARM_TEXT)
            self.assertEqual(daemon.calls[-1]["parameters"], {"app": "cam", "fps": 30, "deadline_ms": 33})
            for deadline, milliseconds in (("33.3", 33.3), ("40ms", 40), ("0.5s", 500)):
                self.ctl("forecast", "cam", "--deadline", deadline)
                self.assertEqual(daemon.calls[-1]["parameters"], {"app": "cam", "deadline_ms": milliseconds})
            self.ctl("forecast")
            self.assertEqual(daemon.calls[-1].get("parameters", {}), {})

    def test_what_cannot_be_planned_is_an_error(self):
        with self.daemon(Forecast=WARM) as daemon:
            for words in (["--fps", "30"], ["--deadline", "33"], ["cam", "--fps", "0"], ["cam", "--fps", "nan"],
                          ["cam", "--fps", "-3"], ["cam", "--fps", "1e3"], ["cam", "--fps", ""], ["cam", "--deadline", "0"],
                          ["cam", "--deadline", "inf"], ["cam", "--deadline", "1.2.3"], ["cam", "--fps", "0x1p3"]):
                self.assertNotEqual(self.ctl("forecast", *words, status=64)[1], "")
            self.assertEqual(daemon.calls, [])
        with self.daemon(Forecast={"temperatures": [], "plans": []}):
            self.assertIn("no temperature is measured", self.ctl("forecast", status=2)[1])


class All(Case):
    VERBS = (("diagnose", "cam", "--all"), ("why", "cam", "worst"), ("forecast", "cam"))

    def test_json_is_the_reply(self):
        with self.daemon(Diagnose=diagnoses(SICK, HEALTHY), Explain=SLOW, Forecast=WARM):
            for words, status, reply in zip(self.VERBS, (1, 0, 0), (diagnoses(SICK, HEALTHY), SLOW, WARM)):
                self.assertEqual(json.loads(self.ctl(*words, "-j", status=status)[0]), reply)

    def run_hostile(self, reply, allowed):
        with self.daemon(Diagnose=diagnoses(reply(SICK), reply(HEALTHY)), Explain=reply(SLOW), Forecast=reply(WARM),
                         GetStatus=dict(STATUS, apps=[reply(dict(APP, diagnosis="x"))])):
            for words in (*self.VERBS, ("diagnose",), ("status",)):
                for options in ((), ("--json=pretty",)):
                    done = subprocess.run([CTL, *words, *options], env=self.environment, capture_output=True, timeout=60)
                    self.assertIn(done.returncode, allowed, (words, done))
                    self.assertNotIn(b"Sanitizer", done.stderr)
                    text = (done.stdout + done.stderr).decode()
                    self.assertFalse(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), (words, text))

    def test_no_reply_does_harm(self):
        for odd in (None, 3, -1e300, "x", True, [], {}, [None], [[]], [3], [{}], HOSTILE):
            self.run_hostile(lambda good, odd=odd: spoil(copy.deepcopy(good), odd), (0, 1, 2))
            self.run_hostile(lambda good, odd=odd: spoil(copy.deepcopy(good), odd, 1), (0, 1, 2))
        for at in range(0, 24, 3):
            text = "ö" * 1600 if at % 2 else "z" * 10000
            self.run_hostile(lambda good, at=at, text=text: texts_replaced(good, text, 24, at), (0, 1, 2))
        for text in (HOSTILE, "\u0001", "%s%n", ""):
            self.run_hostile(lambda good, text=text: texts_replaced(good, text), (0, 1, 2))
        self.run_hostile(lambda good: {}, (0, 1, 2))

    def test_help_has_an_example_and_the_exit_status(self):
        for verb in ("diagnose", "why", "forecast"):
            self.assertIn(f"Example: edgeprofctl {verb} cam", self.ctl(verb, "--help")[0])
        self.assertIn("exit status 1 if something does, 2 without enough data", self.ctl("diagnose", "--help")[0])

    def test_apps_and_words_are_completed(self):
        with self.daemon():
            for words, offered in ((("diagnose", ""), "cam"), (("why", ""), "cam"), (("why", "cam", ""), "worst"),
                                   (("forecast", "c"), "cam"), (("forecast", "cam", "--d"), "--deadline")):
                done = subprocess.run([CTL, "--complete", *words], env=self.environment, capture_output=True, timeout=60)
                self.assertEqual([line.split("\t")[0] for line in done.stdout.decode().splitlines()], [offered])

    def test_status_has_a_line_below_the_app(self):
        apps = [dict(APP, diagnosis="infer 82 % of the frame; clock capped for 4 min at 81 °C"), dict(APP, name="mic"),
                dict(APP, name="rec", diagnosis=None)]
        with self.daemon(GetStatus=dict(STATUS, apps=apps)):
            self.assertIn("  cam        running, 29.9 fps, 5 stages\n"
                          "             infer 82 % of the frame; clock capped for 4 min at 81 °C\n"
                          "  mic        running, 29.9 fps, 5 stages\n  rec        running, 29.9 fps, 5 stages\n",
                          self.ctl("status")[0])

    def test_top_has_a_line_below_the_app(self):
        apps = [dict(APP, diagnosis="infer 82 % of the frame; clock capped for 4 min at 81 °C"), dict(APP, name="mic")]
        environment = dict(EDGEPROF_RUNTIME_DIR=self.directory.name, TERM="xterm-256color", LC_ALL="C.UTF-8", NO_COLOR="")
        shown = "infer 82 % of the frame; clock capped for 4 min"
        for columns in (60, 160):
            with self.daemon(ListApps={"apps": apps}, ListEvents={"events": [], "last_serial": 0}, ListRules={"rules": []}):
                with Terminal([CTL, "top"], columns, 40, **environment) as terminal:
                    terminal.until("the line", lambda lines: any(shown in line for line in lines))
                    lines = terminal.screen.text()
                    at = next(i for i, line in enumerate(lines) if shown in line)
                    self.assertIn("cam", lines[at - 1])


if __name__ == "__main__":
    unittest.main()
