#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl against a daemon of canned answers: texts, exit codes, JSON."""
import json
import os
import re
import subprocess
import time
import unittest

from ctl_case import (ALERT, APP, CTL, FRAMES_TEXT, HOSTILE, REPLIES, SENSORS_TEXT, STAGES_TEXT, STATUS, STATUS_TEXT,
                      Case, FakeDaemon, T, error, event, metric, series, stage)


class Texts(Case):
    def test_stages_is_the_pipeline_profiling_report(self):
        # covers G0.5
        with self.daemon():
            self.assertEqual(self.ctl("stages")[0], STAGES_TEXT)

    def test_misses_are_of_the_run_and_percentiles_name_their_method(self):
        stage = {"app": "cam", "stage": "infer", "percentile_method": "nearest", "count": 100, "mean_ms": 8.4,
                 "deadline_ms": 10, "misses": 148, "miss_rate": 0.2487}
        with self.daemon(ListStages={"stages": [stage], "totals": []}):
            text = self.ctl("stages")[0]
            self.assertIn("PIPELINE PROFILING REPORT: cam, percentiles by nearest rank\n", text)
            self.assertIn(" 100  148 of the run (24.87 %) over the deadline of 10 ms\n", text)

    def test_a_target_is_judged_by_a_rate_of_now(self):
        # covers G1.12
        frames = {"app": "cam", "status": "ok", "span": "recent", "exact": True, "percentile_method": "nearest",
                  "fps": None, "last_fps": 66.9, "target_fps": 50, "total_count": 350}
        for more, said in (({}, "50.0 FPS"), ({"fps": 66.9, "on_target": True}, "50.0 FPS, reached"),
                           ({"fps": 40.0, "on_target": False}, "50.0 FPS, not reached")):
            with self.daemon(GetFrames={"frames": [dict(frames, **more)]}):
                text = self.ctl("frames", "cam")[0]
                self.assertRegex(text, f"Target +{said}\n")
                self.assertRegex(text, "Span +recent, exact, nearest rank\n")

    def test_status_sensors_and_frames_are_tables(self):
        with self.daemon():
            self.assertEqual(self.ctl("status")[0], STATUS_TEXT)
            self.assertEqual(self.ctl("sensors")[0], SENSORS_TEXT)
            for whole in (["sensors", "--all"], ["sensors", "**"]):
                self.assertIn("collector/cpu/errors", self.ctl(*whole)[0])
                self.assertIn("self/rss", self.ctl(*whole)[0])
            self.assertEqual(self.ctl("frames")[0], FRAMES_TEXT)

    def test_a_time_of_day_is_the_last_one(self):
        with self.daemon() as daemon:
            now = time.time()
            for clock in ("00:00", "23:59"):  # one of them, at least, is still to come today
                self.ctl("history", "cpu", "--since", clock, TZ="UTC")
                since = daemon.calls[-1]["parameters"]["from_us"] / 1e6
                self.assertEqual(time.strftime("%H:%M:%S", time.gmtime(since)), clock + ":00")
                self.assertTrue(now - 86400 <= since <= time.time(), (since, now))
            until = time.strftime("%H:%M", time.gmtime(now + 120))
            self.ctl("history", "cpu", "--since", "30min", "--until", until, TZ="UTC")
            asked = daemon.calls[-1]["parameters"]
            self.assertTrue(0 < asked["to_us"] - asked["from_us"] < 33 * 60e6, asked)
        for what, said in {"from_us": "the span begins in the future, or ends before it begins",
                           "max_points": "--max-points is from 1 to 100000",
                           "odd": "GetHistory: the daemon rejects the value of 'odd'"}.items():
            with self.daemon(GetHistory=error("org.varlink.service.InvalidParameter", parameter=what)):
                self.assertEqual(self.ctl("history", "cpu", status=64)[1], f"edgeprofctl: {said}\n")

    def test_one_is_no_plural(self):
        app = dict(STATUS["apps"][0], stages=1)
        refused = [dict(REPLIES["ListApps"]["refused"][0], count=1)]
        with self.daemon(GetStatus=dict(STATUS, apps=[app]), ListApps={"apps": [APP], "refused": refused}):
            self.assertIn("fps, 1 stage\n", self.ctl("status")[0])
            self.assertRegex(self.ctl("apps")[0], "another time namespace; at [0-9-]+ ")

    def test_without_utf8_there_is_only_ascii(self):
        with self.daemon():
            for verb in (["status"], ["sensors"], ["history", "*"], ["watch", "--count", "1"]):
                self.ctl(*verb, LC_ALL="C")[0].encode("ascii")
            self.assertIn("83.2 C", self.ctl("sensors", LC_ALL="C")[0])

    def test_every_other_verb_shows_what_it_got(self):
        with self.daemon() as daemon:
            self.assertRegex(self.ctl("apps")[0],
                             r"cam +running +811 +1000 +5 +29.9 +reduced +123,456")
            self.assertRegex(self.ctl("apps")[0],
                             r"cam: advised reduced since [0-9: -]+: headroom 2.1 °C of cpu-thermal; "
                             r"skip 1 of 3 frames, or 20.0 frames per second\n")
            self.assertIn("cam: in `infer` for 3.2 s", self.ctl("apps")[0])
            self.assertIn("refused: mic (pid 99, uid 1001): another time namespace; 4 times, last at ",
                          self.ctl("apps")[0])
            self.assertRegex(self.ctl("ps")[0], r"811 +cam +python3 .* 1.8 +150.0 MiB +- +1.00")
            self.assertIn("1.61 bytes each", self.ctl("self")[0])
            self.assertRegex(self.ctl("self")[0], r"buckets of 10 s +1 h +5.70 bytes each")
            throttle = self.ctl("throttle")[0]
            self.assertRegex(throttle, r"Word: +0x50005")
            self.assertRegex(throttle, r"Hottest: 61\.5 °C, critical at 82\.0 °C\n")
            self.assertRegex(throttle, r"Under-voltage +yes +yes\n")
            self.assertRegex(throttle, r"Over-current +unknown +no source on this machine")
            self.assertRegex(throttle, r"Over critical temperature +no\n")
            self.assertRegex(throttle, r"/dev/vcio +firmware mailbox")
            self.assertIn("1.00 MiB of 16.0 MiB", self.ctl("self")[0])
            self.assertRegex(self.ctl("alerts")[0], r"temperature:max +firing +critical +83.2 °C")
            self.assertEqual(self.ctl("mark", "x", "--app", "cam")[0], "Marked as event 17.\n")
            self.assertEqual(daemon.calls[-1]["parameters"], {"label": "x", "app": "cam"})
            self.ctl("source", "enable", "thermal", "--interval", "500ms")
            self.assertEqual(daemon.calls[-1]["parameters"],
                             {"name": "thermal", "enabled": True, "interval_ms": 500})
            self.assertRegex(self.ctl("source", "disable", "thermal")[0], "disabled")
            self.assertRegex(self.ctl("source", "list")[0], r"thermal +ok +1.0 s")
            self.assertEqual(self.ctl("reload")[0], "Configuration reloaded.\n")
            self.assertRegex(self.ctl("version")[0], r"edgeprofctl \S+\nedgeprofd 0.1.0\n")

    def test_what_is_special_about_an_alert_is_separated_by_commas(self):
        rows = [dict(ALERT, **{"from": "ok", "to": "firing"}, time_us=T + at, **special) for at, special in enumerate((
            {"test": True, "sent_time_us": T}, {"acked": True, "test": True, "suppressed": True},
            {"acked": True, "ack_note": "known", "silenced": True, "sent_time_us": T}, {"sent_time_us": T}))]
        with self.daemon(GetAlertLog={"transitions": rows}):
            shown = [re.search(r"83.2 °C  (.*?)  THERMAL", row)[1].strip()
                     for row in self.ctl("alerts", "--recent")[0].splitlines()[1:]]
            self.assertEqual(shown, ["test, sent 05:40:25", "acked, test, not sent",
                                     "acked: known, silenced, sent 05:40:25", "sent 05:40:25"])

    def test_transitions_are_in_order_also_if_the_clock_was_set_back(self):
        rows = [dict(ALERT, **{"from": a, "to": b}, from_severity="critical", time_us=T - 3600_000_000 * at, mono_us=5 + at)
                for at, (a, b) in enumerate((("ok", "firing"), ("firing", "ok")))]
        with self.daemon(GetAlertLog={"transitions": rows}):
            shown = self.ctl("alerts", "--recent")[0]
            self.assertLess(shown.index("ok → firing (critical)"), shown.index("firing (critical) → ok"))

    def test_a_member_that_is_absent_does_not_hide_the_others(self):
        snapshot = {"hostname": "pi5", "time_us": T, "clock_synced": True, "inference_latency": 18.5,
                    "memory_usage": {"percent": 41.5, "bytes": 1 << 30}, "reasons": {"memory_usage": "no total"}}
        with self.daemon(ListApps={"apps": [dict(APP, advice={"app": "cam", "level": "minimal", "reason": ""})]},
                         GetSnapshot=snapshot, GetStatus=dict(STATUS, alerts=[{"state": "firing", "text": "hot"}])):
            self.assertIn("cam: advised minimal since -: ; skip - of - frames\n", self.ctl("apps")[0])
            text = self.ctl("snapshot")[0]
            self.assertRegex(text, r"Memory +41.5 % +1.00 GiB used, - available of -\n")
            self.assertRegex(text, r"Inference +18.50 ms\n")
            self.assertRegex(self.ctl("status")[0], r"Alerts +: hot\n")

    def test_a_text_that_is_far_too_long_keeps_its_line(self):
        marks = [{"label": "x" * 9000, "time_us": T}, {"label": "next", "time_us": T}]
        with self.daemon(ListMarks={"marks": marks}):
            self.assertIn("x\n[next] RSS", self.ctl("marks")[0])

    def test_many_processes_do_not_make_the_table_wide(self):
        processes = [{"pid": 1000000 + i} for i in range(64)]
        with self.daemon(ListApps={"apps": [dict(APP, processes=processes)]}):
            row = self.ctl("apps")[0].splitlines()[1]
            self.assertIn("1000000,1000001,", row)
            self.assertLess(len(row), 180)

    def test_long_cells_are_cut_to_columns(self):
        with self.daemon(ListAlerts={"alerts": [dict(ALERT, text="so hot " * 40)]}):
            for width in (80, 90, 100):
                text = self.ctl("alerts", COLUMNS=str(width))[0]
                self.assertEqual(max(map(len, text.splitlines())), width, text)
                self.assertIn("…\n", text)
            self.ctl("alerts", COLUMNS="1")

    def test_facts_are_wrapped_and_not_cut(self):
        snapshot = {"hostname": "pi5", "time_us": T, "reasons": {"temperature": "no zone " * 20}}
        with self.daemon(GetSnapshot=snapshot):
            for verb in ["status"], ["frames", "cam"], ["self"], ["snapshot"]:
                whole = self.ctl(*verb, COLUMNS="200")[0].split()
                text = self.ctl(*verb, COLUMNS="40")[0]
                self.assertNotIn("…", text)
                if verb != ["frames", "cam"]:  # whose table has more parts then
                    self.assertEqual(text.split(), whole)

    def test_a_text_has_a_line_of_its_own_where_its_column_has_no_room(self):
        with self.daemon():
            text = self.ctl("alerts", COLUMNS="80")[0]
            self.assertIn(f"\n    {ALERT['text']}\n", text)
            self.assertNotIn("TEXT", text)
            self.assertRegex(self.ctl("alerts", COLUMNS="200")[0], r"firing .* THERMAL CRITICAL: 83.2C \(threshold: 82\)\n")

    def test_escapes_of_the_daemon_never_reach_the_terminal(self):
        bad = {
            "GetStatus": dict(STATUS, hostname=HOSTILE, degraded=[HOSTILE]),
            "ListMetrics": {"metrics": [metric(HOSTILE, None, HOSTILE, reason=HOSTILE)]},
            "ListStages": {"stages": [stage(HOSTILE, 1, 2, 3, 4)], "totals": []},
            "ListEvents": {"events": [event(1, HOSTILE)], "last_serial": 1},
            "ListAlerts": {"alerts": [dict(ALERT, text=HOSTILE, rule=HOSTILE)]},
            "Mark": error("io.edgeprof.NotFound", what=HOSTILE, name=HOSTILE),
            "Reload": error("io.edgeprof.ReloadFailed", text=HOSTILE),
            "GetSelf": error(HOSTILE),
        }
        with self.daemon(**bad):
            for verb, status in ((["status"], 0), (["sensors"], 0), (["stages"], 0),
                                 (["events"], 0), (["alerts"], 0), (["mark", "x"], 2),
                                 (["reload"], 1), (["self"], 69), (["status", "-j"], 0)):
                text = "".join(self.ctl(*verb, status=status))
                self.assertFalse(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), verb)
            self.assertEqual(json.loads(self.ctl("status", "-j")[0])["hostname"], HOSTILE)

    def test_colour_only_when_wanted(self):
        with self.daemon():
            self.assertNotIn("\033", self.ctl("alerts")[0])
            self.assertIn("\033[1;31mfiring", self.ctl("alerts", "--color=always")[0])


class Json(Case):
    def test_the_reply_comes_out_as_it_went_in(self):
        with self.daemon():
            for verb, method in (("status", "GetStatus"), ("stages", "ListStages"),
                                 ("frames", "GetFrames"), ("self", "GetSelf"),
                                 ("throttle", "GetThrottle"),
                                 ("version", "GetInfo")):
                for option, lines in (("-j", 1), ("--json=short", 1)):
                    text = self.ctl(option, verb)[0]
                    self.assertEqual(text.count("\n"), lines)
                    self.assertEqual(json.loads(text), REPLIES[method])
                self.assertEqual(json.loads(self.ctl(verb, "--json")[0]), REPLIES[method])
            # covers G0.4
            total = json.loads(self.ctl("stages", "-j")[0])["totals"][0]
            self.assertEqual(total["mean_ms"], 22.54)
            self.assertIn('"time_us":1763703625123450,', self.ctl("status", "-j")[0])

    def test_chunks_are_one_answer(self):
        with self.daemon() as daemon:
            merged = json.loads(self.ctl("history", "cpu/*", "-j", "--since", "@1763703000",
                                         "--step", "10s")[0])["series"]
            self.assertEqual([s["name"] for s in merged], ["cpu/a", "cpu/b"])
            self.assertEqual(merged[0]["mean"], [0, 1, 2, 3, 6, 7])
            self.assertEqual(daemon.calls[-1]["parameters"],
                             {"glob": "cpu/*", "from_us": 1763703000000000, "step_ms": 10000})
            self.assertTrue(daemon.calls[-1]["more"])
            self.assertEqual(len(json.loads(self.ctl("sensors", "-j")[0])["metrics"]), 6)
            self.ctl("history", "cpu/*", "--max-points", "9", status=0)
            self.assertEqual(daemon.calls[-1]["parameters"]["max_points"], 9)
            self.assertNotIn("more", daemon.calls[-1])

    def test_history_as_table_and_csv(self):
        with self.daemon():
            text = self.ctl("history", "cpu/*")[0]
            self.assertRegex(text, r"cpu/a +▁.* 7.0 % +0.0 % +3.2 % +7.0 % +6\n")
            rows = self.ctl("history", "cpu/*", "--csv")[0].splitlines()
            self.assertEqual(rows[0], "name,unit,time_us,mean,min,max,count")
            self.assertEqual(rows[1], f'"cpu/a","percent",{T},0,0,0,1')
            self.assertEqual(len(rows), 1 + 6 + 8)

    def test_times_are_local_or_in_utc_in_both_directions(self):
        typed = ["history", "x", "--since", "2026-01-31 14:30"]
        at = 1769869800 * 1000000  # of UTC
        with self.daemon() as daemon:
            for zone, options, clock, shift_h in (("XYZ-9", [], "14:40:25", 9), ("XYZ-9", ["--utc"], "05:40:25", 0),
                                                  ("XYZ+5", [], "00:40:25", -5), ("", ["--utc"], "05:40:25", 0)):
                self.assertRegex(self.ctl("status", *options, TZ=zone)[0], rf"Clock +2025-11-21 {clock},")
                self.ctl(*typed, *options, TZ=zone)
                self.assertEqual(daemon.calls[-1]["parameters"]["from_us"], at - shift_h * 3600 * 1000000)

    def test_the_last_events_come_in_pages(self):
        with self.daemon() as daemon:
            rows = json.loads(self.ctl("events", "-j", "-n", "150")[0])["events"]
            self.assertEqual([row["serial"] for row in rows], list(range(151, 301)))
            self.assertLessEqual(max(c["parameters"]["limit"] for c in daemon.calls), 64)
            rows = json.loads(self.ctl("events", "-j", "-n", "9999")[0])["events"]
            self.assertEqual([row["serial"] for row in rows], list(range(101, 301)))


class ExitCodes(Case):
    def test_bad_news_is_1(self):
        with self.daemon(Reload=error("io.edgeprof.ReloadFailed", text="a.conf:3: unknown key")):
            self.ctl("alerts", status=0)
            self.ctl("alerts", "--check", status=1)
            self.ctl("alerts", "--check", "-j", status=1)
            self.assertIn("a.conf:3: unknown key", self.ctl("reload", status=1)[1])

    def test_a_daemon_that_refuses_its_configuration_is_not_reached(self):
        for text in ({"text": "a.conf:3: unknown key"}, {}):
            with self.daemon(GetStatus=error("io.edgeprof.ConfigurationInvalid", **text)):
                said = self.ctl("status", status=69)[1]
                self.assertIn("edgeprofd --check-config", said)
                self.assertEqual("errors): a.conf:3: unknown key\n" in said, bool(text), said)

    def test_pending_is_no_bad_news(self):
        with self.daemon(ListAlerts={"alerts": [dict(ALERT, state="pending")]}):
            self.ctl("alerts", "--check", status=0)

    def test_no_data_is_2(self):
        missing = error("io.edgeprof.NotFound", what="app", name="x")
        with self.daemon(ListStages=missing, GetFrames=missing, ListMetrics={"metrics": []},
                         GetHistory={"series": [series("a", 0, 0)]}, ListApps={"apps": []},
                         ListProcesses={"processes": []}):
            for verb in (["stages", "x"], ["frames", "x"], ["sensors", "x/*"],
                         ["history", "x"], ["apps"], ["ps"]):
                self.assertNotEqual(self.ctl(*verb, status=2)[1], "")
        with self.daemon(ListStages={"stages": [], "totals": []}, GetFrames={"frames": []}):
            self.ctl("stages", status=2)
            self.ctl("frames", status=2)

    def test_usage_is_64(self):
        with self.daemon() as daemon:
            for arguments in (["nope"], ["status", "x"], ["throttle", "--all"], ["history"],
                              ["--nope"], ["mark"], ["stages", "a", "b"], ["sensors", "--json=x"],
                              ["source", "nope"], ["source", "enable"], ["source", "list", "x"],
                              ["source", "disable", "x", "--interval", "1s"],
                              ["history", "x", "--since", "tomorrow"],
                              ["history", "x", "--csv", "-j"], ["help", "nope"]):
                self.assertNotEqual(self.ctl(*arguments, status=64)[1], "")
            self.assertEqual(daemon.calls, [])
        self.assertIn("invalid value 'x' for --json", self.ctl("apps", "--json=x", status=64)[1])
        self.assertIn("invalid value '0' for --lines", self.ctl("events", "-n", "0", status=64)[1])
        self.assertIn("--since TIME ", self.ctl("help", "history")[0])
        self.assertIn("unknown command 'nope'\n", self.ctl("nope", status=64)[1])

    def test_without_a_command_it_says_how_to_begin(self):
        verbs = re.findall(r"^  ([a-z][a-z-]+) ", self.ctl("help")[0], re.M)
        text = self.ctl(status=64)[0]
        steps = re.findall(r"^  edgeprofctl ([a-z]+)", text, re.M)
        self.assertEqual(steps[0], "status")
        self.assertEqual([step for step in steps if step not in verbs], [])
        self.assertLess(len(text.splitlines()), 16)
        self.assertIn("'edgeprofctl COMMAND --help' explains", text)
        self.assertLessEqual(max(map(len, self.ctl(status=64, COLUMNS="60")[0].splitlines())), 60)

    def test_an_unknown_option_names_the_one_that_was_meant(self):
        for words, meant in ((["history", "x", "--sinze", "1h"], "since"), (["--jsn", "status"], "json"),
                             (["--colr=never", "status"], "color"), (["frames", "--recnt"], "recent")):
            self.assertIn(f"'; did you mean '--{meant}'?\n", self.ctl(*words, status=64)[1])
        for words in (["status", "--frobnicate"], ["status", "--x"], ["status", "-Z"], ["status", "--sinze", "1h"]):
            self.assertNotIn("did you mean", self.ctl(*words, status=64)[1])
        self.assertIn("invalid value 'chrom' for --format; use chrome|csv|json\n", self.ctl("trace", "--format", "chrom", status=64)[1])
        self.assertIn("invalid value 'yaml' for --json; use pretty|short|off\n", self.ctl("status", "--json=yaml", status=64)[1])
        self.assertIn("invalid value 'x' for --tag; use NAME=VALUE\n", self.ctl("session", "start", "a", "--tag", "x", status=64)[1])
        self.assertIn("invalid value 'x' for --recent\n", self.ctl("alerts", "--recent=x", status=64)[1])
        self.assertIn("'top' has no option '-f'\n", self.ctl("top", "-f", status=64)[1])
        self.assertIn("'top' has no option '--lines'\n", self.ctl("top", "--lines", "1", status=64)[1])
        for words in (["silence", "hot", "-1h"], ["status", "-1yz"], ["history", "a", "-j1"]):
            self.assertIn("unknown option '-1'\n", self.ctl(*words, status=64)[1])
        said = self.ctl("status", "--\x1b]0;x\x07\u202e", status=64)[1] + self.ctl("\x1b[2J", status=64)[1]
        self.assertNotRegex(said, "[\x00-\x09\x0b-\x1f\x7f\u202e]")

    def test_an_unknown_command_names_the_one_that_was_meant(self):
        for typed, meant in (("stauts", "status"), ("sensor", "sensors"), ("hist", "history"), ("wacth", "watch"),
                             ("alert", "alerts"), ("mqtt", "mqtt-latency"), ("silense", "silence"), ("pss", "ps"), ("STATUS", "status"), ("Sess", "session")):
            self.assertIn(f"unknown command '{typed}'; did you mean '{meant}'?", self.ctl(typed, status=64)[1])
        for typed in ("x", "frobnicate", "-"):
            self.assertNotIn("did you mean", self.ctl(typed, status=64)[1])

    def test_help_and_version_need_no_daemon(self):
        self.assertIn("stages", self.ctl("help")[0])
        self.assertIn("--since", self.ctl("history", "--help")[0])
        self.assertRegex(self.ctl("--version")[0], r"^edgeprofctl \d")

    def test_help_explains_every_option_and_has_an_example(self):
        overview = self.ctl("help")[0]
        verbs = re.findall(r"^  ([a-z][a-z-]+) ", overview, re.M)
        self.assertGreater(len(verbs), 25)
        for verb in verbs:
            text = self.ctl(verb, "--help")[0] if verb != "help" else self.ctl("help", "help")[0]
            usage, *rest = [line for line in text.splitlines() if not line.startswith("   or: ")]
            summary = rest.pop(0)
            self.assertTrue(usage.startswith(f"Usage: edgeprofctl {verb}"), text)
            self.assertRegex(summary, r"^[A-Z].*\.$")
            self.assertIn(f"Example: edgeprofctl {verb}", text)
            for line in rest:
                self.assertLessEqual(len(line), 100, line)
            options = re.findall(r"^ {2,6}(-.*?)(?:  +|\n +)(\S.*)$", text, re.M)
            self.assertEqual(len(options), len([line for line in rest if re.match(" {2,6}-", line)]), text)
            self.assertEqual("[OPTION]" in usage, bool(options), text)
            example = re.search(r"Example: (.*)", text)[1]
            for option in re.findall(r" (--?[a-z-]+)", re.sub(r"'[^']*'", "", example)):
                self.assertTrue(any(option in name for name, _ in options) or option == "-j", (option, text))
        self.assertIn("include what the daemon and its sources cost", self.ctl("sensors", "--help")[0])
        self.assertIn("include the alerts that are ok", self.ctl("alerts", "--help")[0])

    def test_no_daemon_is_69_and_says_how_to_start_it(self):
        said = self.ctl("status", status=69)[1]
        self.assertIn(os.path.join(self.directory.name, "io.edgeprof"), said)
        self.assertIn("systemctl start edgeprofd", said)
        said = self.ctl("status", "--socket", "/nonexistent/x", status=69)[1]
        self.assertIn("/nonexistent/x", said)
        self.ctl("status", "--socket", "/" + "x" * 200, status=69)

    def test_both_usual_places_are_tried(self):
        self.environment.pop("EDGEPROF_RUNTIME_DIR")
        os.mkdir(os.path.join(self.directory.name, "edgeprofd"))
        if os.path.exists("/run/edgeprofd/io.edgeprof"):
            self.skipTest("a daemon runs on this machine")
        with FakeDaemon(os.path.join(self.directory.name, "edgeprofd"), REPLIES):
            self.ctl("status", XDG_RUNTIME_DIR=self.directory.name)
        said = self.ctl("status", XDG_RUNTIME_DIR=self.directory.name, status=69)[1]
        self.assertIn("/run/edgeprofd/io.edgeprof", said)
        self.assertIn(self.directory.name + "/edgeprofd/io.edgeprof", said)

    def test_not_permitted_is_77_and_names_the_group(self):
        with self.daemon(SetSource=error("io.edgeprof.NotPermitted", method="SetSource",
                                         group="wheels")):
            said = self.ctl("source", "disable", "thermal", status=77)[1]
            self.assertIn("usermod -aG wheels $USER", said)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_an_app_is_found_without_permission_for_recordings(self):
        absent = {method: error("io.edgeprof.NotFound", what=what, name="cam")
                  for method, what in (("GetSession", "session"), ("ListStages", "app"))}
        refused = error("io.edgeprof.NotPermitted", method="GetRecording", group="edgeprof")
        with self.daemon(GetRecording=refused, ListRecordings={"recordings": [{"name": "night"}]}, **absent) as daemon:
            for words in (["report", "cam", "--format", "text"], ["compare", "cam", "mic"]):
                self.assertIn("no session, recording, app or file is named 'cam'", self.ctl(*words, status=2)[1])
                self.assertTrue(any(call["method"].endswith("ListStages") for call in daemon.calls))
            self.assertIn("GetRecording is permitted for root", self.ctl("report", "night", "--format", "text", status=77)[1])

    def test_a_closed_socket_is_77_and_names_its_group(self):
        with self.daemon() as daemon:
            os.chmod(daemon.path, 0o660)
            os.chown(daemon.path, 0, 12)
            done = self.ctl_as_nobody("status")
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn(b"usermod -aG man $USER", done.stderr)

    def test_apps_that_have_ended_are_not_said_to_be_none(self):
        with self.daemon(ListStages={"stages": [], "totals": []}, GetFrames={"frames": []}):
            for what in "stages", "frames":
                for arguments, said in (((), "any running app; --all includes those that ended"),
                                        (("--all",), "any app yet; see edgeprof(3)"),
                                        (("cam",), "cam yet; 'edgeprofctl apps' lists the apps")):
                    self.assertEqual(self.ctl(what, *arguments, status=2)[1], f"edgeprofctl: no {what} of {said}\n")
            for name in "stages.infer.mean_ms", "frames.fps":
                self.assertEqual(self.ctl("assert", f"{name} > 1", status=2)[1],
                                 f"edgeprofctl: {name}: no app is running; name one that ended with --app\n")

    def test_a_full_disk_is_74(self):
        with self.daemon(), open("/dev/full", "wb") as full:
            for arguments in ("status",), ("help",), ("stages", "--help"), ("--version",), ("events", "-f"):
                done = subprocess.run([CTL, *arguments], env=self.environment, stdout=full,
                                      stderr=subprocess.PIPE, timeout=60)
                self.assertEqual((done.returncode, done.stderr),
                                 (74, b"edgeprofctl: cannot write output: No space left on device\n"), arguments)

    def test_a_closed_stdout_is_74_and_not_the_socket(self):
        with self.daemon():
            done = subprocess.run([CTL, "status"], env=self.environment, preexec_fn=lambda: os.close(1),
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (74, b"edgeprofctl: cannot write output: Bad file descriptor\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
