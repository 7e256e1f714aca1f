#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl against a daemon of canned answers: bad replies, streams, time-outs, completion."""
import json
import os
import re
import signal
import subprocess
import unittest

from ctl_case import ALERT, CTL, HOSTILE, REPLIES, SOURCE, T, Case, error, event, list_events, metric, series


class BadReplies(Case):
    def test_nonsense_is_69_and_names_the_method(self):
        for raw in (b"\0", b"{\0", b"[]\0", b"{} x\0", b'{"parameters":3}\0', b"\xff\xfe\0",
                    b'{"parameters":{"a":1,"a":2}}\0', b'{"error":1}\0', b"x" * 70000,
                    b'{"parameters":' + b'{"a":' * 40 + b"1" + b"}" * 41 + b"\0"):
            with self.daemon(GetStatus=[raw, "close"]):
                self.assertIn("GetStatus", self.ctl("status", status=69)[1])

    def test_a_broken_off_reply_is_69(self):
        with self.daemon(GetStatus=[b'{"parameters":{"version"', "close"]):
            self.assertIn("ended early", self.ctl("status", status=69)[1])
        with self.daemon(GetStatus=["close"]):
            self.assertIn("closed", self.ctl("status", status=69)[1])
        with self.daemon(GetHistory=[{"series": []}, "close"]):
            self.ctl("history", "x", status=69)

    def test_silence_is_69_after_the_time_out(self):
        for replies in (["silence"], [b'{"par', "silence"]):
            with self.daemon(GetStatus=replies):
                said = self.ctl("status", "--timeout", "200ms", status=69)[1]
                self.assertIn("GetStatus: no reply within 0.2 s", said)
        with self.daemon(Subscribe=["silence"]):
            self.ctl("events", "-f", "--timeout", "200ms", status=69)
            self.ctl("watch", "-j", "--timeout", "200ms", status=69)

    def test_the_rest_of_a_reply_without_an_end_is_not_the_next_reply(self):
        replies = iter([[{}] * 4096 + [{"metrics": [metric("process/x/count", 7, "count")]}]])
        good = {"metrics": [metric("process/x/count", 3, "count")]}
        with self.daemon(WatchProcess={"name": "x"}, ListMetrics=lambda _: next(replies, good)):
            self.assertIn("3 processes match now", self.ctl("ps", "--watch", "x")[0])
            self.assertIn("invalid name 'my app'", self.ctl("ps", "--watch", "x", "--name", "my app", status=64)[1])

    def test_unknown_errors_are_69(self):
        with self.daemon(GetStatus=error("org.varlink.service.MethodNotFound", method="x"),
                         GetSelf=error("com.example.Odd"), ListSources=error("com.example.NotFound")):
            self.assertIn("older", self.ctl("status", status=69)[1])
            self.assertIn("com.example.Odd", self.ctl("self", status=69)[1])
            self.assertIn("com.example.NotFound", self.ctl("source", status=69)[1])

    def test_wrong_types_do_no_harm(self):
        verbs = {"GetStatus": ["status"], "ListMetrics": ["sensors"], "ListStages": ["stages"],
                 "GetFrames": ["frames"], "ListApps": ["apps"], "ListProcesses": ["ps"],
                 "GetHistory": ["history", "x"], "ListAlerts": ["alerts", "--all"],
                 "ListEvents": ["events"], "GetSelf": ["self"], "GetThrottle": ["throttle"],
                 "ListSources": ["source"],
                 "GetInfo": ["version"], "Mark": ["mark", "x"]}
        for odd in (None, 3, -1e300, "x", True, [], {}, [None], [[]], [3], [{}], {"a": 1}):
            def spoil(value, depth=0, odd=odd):
                if isinstance(value, dict) and depth < 2:
                    return {k: spoil(v, depth + 1) for k, v in value.items()}
                if isinstance(value, list) and depth < 2 and odd != [{}]:
                    return [spoil(v, depth + 1) for v in value] + [odd]
                return odd
            replies = {}
            for method in verbs:
                good = REPLIES[method]
                good = list_events({"from_serial": 1, "limit": 3}) if callable(good) else good
                good = good[0] if isinstance(good, list) else good
                replies[method] = spoil(good)
            with self.daemon(**replies):
                for verb in verbs.values():
                    done = subprocess.run([CTL, *verb], env=self.environment,
                                          capture_output=True, timeout=60)
                    self.assertIn(done.returncode, (0, 2), (verb, odd, done.stderr))
                    self.assertNotIn(b"Sanitizer", done.stderr)


    def test_escapes_of_a_recording_never_reach_the_terminal(self):
        def call(method, **parameters):
            return {"call": method, "parameters": parameters}
        names = {"app": HOSTILE, "names": [HOSTILE], "units": [HOSTILE], "categories": [HOSTILE]}
        row = {"kind": "complete", "name": 0, "of": 0, "pid": 1, "process": 1, "thread": 0, "mono_us": 10, "mono_ns": 0,
               "duration_us": 5, "duration_ns": 0, "frame": None, "id": None, "value": None, "cpu_us": None, "depth": 0,
               "failed": False, "throttled": None}
        times = list(range(10))
        moved = {"name": HOSTILE, "unit": HOSTILE, "time_us": [T + t for t in times], "mean": [1] * 5 + [9] * 5}
        start = {"apps": [{"app": HOSTILE}], "clock_mono_us": [5], "clock_time_us": [T], "from_mono_us": 1, "to_mono_us": 99}
        lines = [{"schema": "edgeprof.recording/1", "name": HOSTILE, "hostname": HOSTILE, "mono_us": 9, "trigger": {"text": HOSTILE}},
                 call("ExportTrace", start=start), call("ExportTrace", **names, records={key: [row[key]] for key in row}),
                 call("GetHistory", series=[moved]), call("ListEvents", events=[event(1, HOSTILE)], last_serial=1),
                 {"end": {"cut": HOSTILE, "joined": [{"text": HOSTILE}]}}]
        path = os.path.join(self.directory.name, "file.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        text = self.ctl("record", "show", path)[0]
        for part in ("Stages and frames", "Metrics that moved", "What happened"):
            self.assertIn(part, text)
        self.assertFalse(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), text)


    def test_a_recording_that_memory_cannot_hold_is_an_error(self):
        path = os.path.join(self.directory.name, "large.jsonl")
        with open(path, "wb") as file:
            file.truncate(60 << 20)
        limit = "allocator_may_return_null=1:max_allocation_size_mb=20"
        done = subprocess.run([CTL, "record", "show", path], env=dict(self.environment, ASAN_OPTIONS=limit),
                              capture_output=True, timeout=60)
        with open(CTL, "rb") as program:
            limited = b"__asan_init" in program.read()
        self.assertEqual(done.returncode, 66, done)
        self.assertIn(b"Cannot allocate memory" if limited else b"is not a recording", done.stderr)


class Streams(Case):
    def test_follow_shows_each_event_once(self):
        replies = REPLIES["Subscribe"][:2] + [b'{"parameters":{"lost":3},"continues":true}\0',
                                              "silence"]
        with self.daemon(Subscribe=replies):
            child = subprocess.Popen([CTL, "events", "-f", "-n", "2"], env=self.environment,
                                     stdout=subprocess.PIPE)
            seen = self.read_until(child.stdout, b"late")
            self.assertEqual(seen.count(b"cam: "), 3)
            child.send_signal(signal.SIGINT)
            child.wait(30)
            child.stdout.close()

    def test_a_table_goes_boot_by_boot_within_a_step(self):
        rows = [dict(series(name, at, 1), boot_seq=boot) for boot, name, at in (
            (1, "cpu/a", 0), (1, "cpu/a", 60), (1, "cpu/b", 60), (2, "cpu/a", 60), (2, "cpu/b", 0), (3, "cpu/b", 60))]
        with self.daemon(GetHistory={"series": rows}):
            lines = self.ctl("history", "cpu/*", "--table", LC_ALL="C")[0].splitlines()
        words = [[word for word in line.split() if not re.search("[%:]|^20", word)] for line in lines]
        self.assertEqual(words, [["TIME", "cpu/a", "cpu/b"], ["0.0", "-"], ["60.0", "60.0"], ["boot", "2"],
                                 ["-", "0.0"], ["60.0", "-"], ["boot", "3"], ["-", "60.0"]])

    def test_watch_as_json_is_the_subscription(self):
        with self.daemon() as daemon:
            text = self.ctl("watch", "temperature/*", "-j", "--count", "3", "--interval", "2s")[0]
            self.assertEqual([json.loads(line) for line in text.splitlines()],
                             REPLIES["Subscribe"])
            self.assertEqual(daemon.calls[-1]["parameters"]["interval_ms"], 2000)

    def test_watch_prints_blocks_without_a_terminal(self):
        with self.daemon():
            text = self.ctl("watch", "--count", "2", "--interval", "1ms")[0]
            self.assertEqual(text.count("PIPELINE PROFILING REPORT: cam"), 2)
            self.assertNotIn("\033", text)

    def test_empty_lists_say_what_to_do_next(self):
        empty = {"metrics": [], "series": [], "frames": [], "stages": [], "totals": [], "apps": [], "alerts": [],
                 "transitions": [], "events": [], "last_serial": 0, "marks": [], "recordings": [], "processes": [],
                 "silences": []}
        with self.daemon(**{method: empty for method in (
                "ListMetrics", "GetHistory", "GetFrames", "ListStages", "ListApps", "ListAlerts", "GetAlertLog",
                "ListEvents", "ListMarks", "ListRecordings", "ListProcesses", "ListSilences")}):
            for verb, status in (("sensors *", 2), ("history *", 2), ("frames", 2), ("stages", 2), ("apps", 2),
                                 ("alerts", 0), ("alerts --recent", 0), ("events", 0), ("events x", 0), ("marks", 2),
                                 ("record", 2), ("ps", 2), ("silence", 0)):
                said = "".join(self.ctl(*verb.split(), status=status))
                self.assertRegex(said, r"(?i)\bno\b.*(edgeprofctl|--all|without)", verb)

    def test_a_closed_pipe_ends_it_quietly(self):
        with self.daemon():
            for verb in (["sensors"], ["watch", "--interval", "1ms"], ["watch", "-j"]):
                reader, writer = os.pipe()
                os.close(reader)
                child = subprocess.Popen([CTL, *verb], env=self.environment,
                                         stdout=writer, stderr=subprocess.PIPE)
                os.close(writer)
                self.assertEqual(child.wait(30), 0)
                self.assertEqual(child.stderr.read(), b"")
                child.stderr.close()

    def test_long_text_goes_through_the_pager(self):
        pager = os.path.join(self.directory.name, "pager")
        with open(pager, "w", encoding="ascii") as script:
            script.write('#!/bin/sh\necho "PAGED $1"\ncat >/dev/null\n')
        os.chmod(pager, 0o755)
        with self.daemon():
            child, main = self.on_terminal("sensors", LINES="3", PAGER=pager + " -x")
            self.read_until(main, b"PAGED -x")
            self.assertEqual(child.wait(30), 0)
            with open(pager, "w", encoding="ascii") as script:  # without "#!"
                script.write('echo "SHELL $1"\ncat >/dev/null\n')
            child, main = self.on_terminal("sensors", LINES="3", PAGER=pager + " -x")
            self.read_until(main, b"SHELL -x")
            self.assertEqual(child.wait(30), 0)
            with open(pager, "w", encoding="ascii") as script:  # PAGER=less is to show colours
                script.write('echo "LESS $LESS"\ncat >/dev/null\n')
            for environment, expected in (({}, b"LESS FRX"), ({"LESS": "-i"}, b"LESS -i")):
                child, main = self.on_terminal("sensors", LINES="3", PAGER=pager, **environment)
                self.read_until(main, expected)
                self.assertEqual(child.wait(30), 0)
            for more in (["--no-pager"], []):
                child, main = self.on_terminal("sensors", *more, LINES="3", PAGER="/nonexistent")
                self.read_until(main, b"cooling/fan")
                self.assertEqual(child.wait(30), 0)


class Completion(Case):
    def complete(self, *words):
        """What bash offers behind these words; the last is the one being typed."""
        script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _edgeprofctl; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        path = os.path.dirname(CTL) + ":" + os.environ["PATH"]
        done = subprocess.run(
            ["bash", "-c", script,
             os.path.join(SOURCE, "client", "edgeprofctl", "completion", "edgeprofctl.bash"), *words],
            env=dict(self.environment, PATH=path), capture_output=True, timeout=60, check=True)
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode().split()

    def test_verbs_options_and_names_are_offered(self):
        with self.daemon():
            self.assertEqual(self.complete("edgeprofctl", "sta"), ["status", "stages"])
            self.assertEqual(self.complete("edgeprofctl", "history", "--si"), ["--since"])
            self.assertEqual(self.complete("edgeprofctl", "-j", "sensors", "cpu/"),
                             ["cpu/0/frequency"])
            self.assertEqual(self.complete("edgeprofctl", "frames", ""), ["cam"])
            self.assertEqual(self.complete("edgeprofctl", "source", "disable", ""), ["thermal"])
            self.assertEqual(self.complete("edgeprofctl", "stages", "--run", "-"), [f"-{n}" for n in range(1, 9)])
            self.assertIn(__file__, self.complete("edgeprofctl", "model-size", "a", __file__[:-2]))
            self.assertEqual(self.complete("edgeprofctl", "emit", "a", "b", "c", ""), [])

    def test_every_option_of_every_verb_is_offered_and_in_the_manual(self):
        manual = subprocess.run([CTL, "--manual"], input=b"@others@\n@options@\n", capture_output=True, check=True)
        manual = manual.stdout.decode()
        common = re.findall(r"^ {2,6}(?:-., )?--([a-z-]+)", self.ctl("--help")[0], re.M)
        self.assertIn("timeout", common)
        options = 0
        for verb in re.findall(r"^  ([a-z][a-z-]+) ", self.ctl("--help")[0], re.M):
            names = re.findall(r"^ {2,6}(?:-., )?--([a-z-]+)", self.ctl("help", verb)[0], re.M)
            self.assertEqual([w for w in self.complete("edgeprofctl", verb, "--") if "=" not in w],
                             ["--" + name for name in common + names])
            page = re.search(rf"^\*{verb}\*.*\n((?:\*{verb}\*.*\n)*(?:\t.*\n|\n)*)", manual, re.M)[1]
            self.assertEqual(re.findall(r"^\t(?:\*-.\*, )?\*--([a-z-]+)\*", page, re.M), names)
            options += len(names)
        self.assertGreater(options, 60)
        for name in common:
            self.assertRegex(manual, rf"(?m)^(\*-.\*, )?\*--{name}\*")

    def test_the_manual_has_a_place_for_each_verb(self):
        with open(os.path.join(SOURCE, "client", "edgeprofctl", "edgeprofctl.1.scd"), "rb") as page:
            done = subprocess.run([CTL, "--manual"], stdin=page, capture_output=True, check=True)
        text = done.stdout.decode()
        self.assertEqual(re.findall(r"(?m)^@.*", text), [])
        for verb in re.findall(r"^  ([a-z][a-z-]+) ", self.ctl("--help")[0], re.M):
            self.assertRegex(text, rf"(?m)^\*{verb}\*")

    def test_values_are_offered(self):
        for words, values in ((["trace", "--format", "c"], ["chrome", "csv"]), (["test-alert", ""], ["info", "warning", "critical"]),
                              (["alerts", "--check", "=", "c"], ["critical"]), (["stages", "--by", ""], ["category", "unit"]),
                              (["--color", "al"], ["always"]), (["source", "dis"], ["disable"]),
                              (["record", ""], ["list", "now", "show", "export"]), (["help", "tes"], ["test-alert"])):
            self.assertEqual(self.complete("edgeprofctl", *words), values)
        with self.daemon():
            self.assertEqual(self.complete("edgeprofctl", "history", "x", "--sensors", ""), [])
            self.assertEqual(self.complete("edgeprofctl", "mark", "x", "--app", ""), ["cam"])
            self.assertEqual(self.complete("edgeprofctl", "trace", "--sensors", "cpu/"), ["cpu/0/frequency"])
        plain = os.path.join(self.directory.name, "plain.txt")
        with open(plain, "w", encoding="ascii"):
            pass
        self.assertEqual(self.complete("edgeprofctl", "trace", "-o", plain[:-3]), [plain])
        self.assertEqual(self.complete("edgeprofctl", "parse", "tegrastats", plain[:-3]), [plain])

    def test_without_a_daemon_verbs_are_still_offered(self):
        self.assertEqual(self.complete("edgeprofctl", "ala"), [])
        self.assertEqual(self.complete("edgeprofctl", "al"), ["alerts"])
        self.assertEqual(self.complete("edgeprofctl", "sensors", ""), [])

    def test_names_are_never_run_as_commands(self):
        trap = os.path.join(self.directory.name, "trap")
        with self.daemon(ListMetrics={"metrics": [metric(f"$(touch {trap})", 1, ""),
                                                  metric("good/name", 1, "")]}):
            self.assertEqual(self.complete("edgeprofctl", "sensors", ""), ["good/name"])
        self.assertFalse(os.path.exists(trap))


if __name__ == "__main__":
    unittest.main(verbosity=2)
