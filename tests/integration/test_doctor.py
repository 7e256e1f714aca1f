#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doctor and snapshot: against canned answers for each state, and with the real daemon."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from ctl_case import APP, CTL, HOSTILE, STATUS, Case, T, error, metric
from harness import DEMO, SHARED, Daemon, program, until

VERSION = subprocess.run([CTL, "--version"], capture_output=True, text=True,
                         check=True).stdout.split()[1]
FINE_BROKER = {"state": "connected", "host": "hub", "port": 1883}
FINE = dict(STATUS, version=VERSION, broker=FINE_BROKER, sources_bad=[], degraded=[],
            clock_synced=True)
SELF = {"pid": 0, "history_span_s": 90.0, "metrics_refused": 0}


def source(name, state="ok", **more):
    return dict({"name": name, "state": state, "interval_ms": 1000, "age_ms": 3, "ticks": 9,
                 "errors": 0, "duration_us": 50, "enabled": True, "metrics": 1}, **more)


def sources(*rows):
    return {"sources": list(rows)}


KINDS = {"metrics": [metric(name, 1, "count") for name in (
    "temperature/cpu", "temperature/max", "throttle/active", "power/total", "cpu/utilization",
    "memory/used", "self/rss", "collector/cpu/errors")]}
HEALTHY = {"GetStatus": FINE, "GetSelf": SELF, "ListSources": sources(source("thermal")),
           "ListMetrics": KINDS, "ListApps": {"apps": [APP], "refused": []}}


class Doctor(Case):
    def checks(self, *wanted, status=0, **replies):
        """The findings with these names, in order; else all."""
        with self.daemon(**dict(HEALTHY, **replies)):
            report = json.loads(self.ctl("doctor", "-j", status=status)[0])
        for row in report["checks"]:
            self.assertIn(row["state"], ("ok", "hint", "problem"))
            self.assertTrue(row["text"])
        return [row for row in report["checks"] if not wanted or row["name"] in wanted]

    def test_a_healthy_daemon_has_no_problem(self):
        rows = {row["name"]: row for row in self.checks()}
        for name in ("daemon", "sources", "cost", "sensors", "history", "mqtt"):
            self.assertEqual(rows[name]["state"], "ok", rows[name])
            self.assertNotIn("fix", rows[name])
        for name in ("group", "perf", "processes", "pressure", "cgroup", "schedstat", "pmu",
                     "clock"):
            self.assertIn(name, rows)
        self.assertNotIn("version", rows)
        self.assertEqual(rows["sensors"]["text"],
                         "values: temperature 2, throttle 1, power 1, cpu 1, memory 1")
        self.assertIn(os.path.join(self.directory.name, "io.edgeprof"), rows["daemon"]["text"])

    def test_a_source_in_error_is_a_problem_with_its_reason(self):
        bad = sources(source("thermal", "error", reason="/sys/x/temp: Permission denied"),
                      source("power", "stale"), source("cpu"),
                      source("fan", "unavailable", reason="no fan"))
        rows = self.checks("source thermal", "source power", "source fan", "sources", status=1,
                           ListSources=bad)
        self.assertEqual([(row["name"], row["state"]) for row in rows],
                         [("source thermal", "problem"), ("source power", "problem"),
                          ("sources", "problem")])
        self.assertEqual(rows[0]["text"], "error: /sys/x/temp: Permission denied")
        self.assertEqual(rows[0]["fix"], "sudo chmod a+r /sys/x/temp # until the next boot")
        self.assertEqual(rows[1]["fix"], "journalctl -u edgeprofd -e")
        self.assertEqual(rows[2]["text"], "1 ok, 2 broken, 1 absent or off")

    def test_absent_and_switched_off_sources_are_no_problem(self):
        rows = self.checks("source power", "source fan", "sources", "sensors", ListSources=sources(
            source("cpu"), source("power", "suspended", enabled=False),
            source("fan", "unavailable", reason="/sys/f: Operation not permitted")),
            ListMetrics={"metrics": [metric("cpu/load1", 1, "count"),
                                     metric("power/total", None, "milliwatts")]})
        self.assertEqual([row["state"] for row in rows], ["hint", "hint", "ok", "hint"])
        self.assertEqual(rows[0]["fix"], "edgeprofctl source enable power")
        self.assertIn("chmod a+r /sys/f", rows[1]["fix"])
        self.assertEqual(rows[3]["text"],
                         "values: cpu 1; without any: temperature, throttle, power, memory")

    def test_sources_carry_what_they_cost(self):
        with self.daemon(**dict(HEALTHY, ListSources=sources(
                source("process", interval_ms=100, duration_us=3000),
                source("gpu", "unavailable", reason="none")))):
            report = json.loads(self.ctl("doctor", "-j")[0])
            text = self.ctl("doctor")[0]
        self.assertEqual(report["sources"][0]["us_per_s"], 30000)
        self.assertAlmostEqual(report["sources"][0]["share_percent"], 3)
        self.assertIsNone(report["sources"][1]["us_per_s"])
        self.assertEqual(report["sources"][1]["reason"], "none")
        cost = [row for row in report["checks"] if row["name"] == "cost"][0]
        self.assertEqual((cost["state"], cost["fix"]),
                         ("hint", "edgeprofctl source enable process --interval 5s"))
        self.assertRegex(text, r"process +ok +1 +0\.1 s +3000 +30000 +3\.000")

    def test_broker_history_limits_and_versions_are_judged(self):
        cases = (
            ("mqtt", "problem", {"state": "away", "host": "hub", "port": 1, "reason": "refused"},
             "away: hub:1: refused", "mosquitto_sub -h hub -p 1"),
            ("mqtt", "hint", {"state": "connecting", "host": "hub", "port": 1}, "connecting",
             "mosquitto_sub"),
            ("mqtt", "problem", {"state": "off", "reason": "no CA"}, "off: no CA",
             "edgeprofd --check-config"),
            ("mqtt", "ok", {"state": "off"}, "no broker is configured", None))
        for name, state, broker, text, fix in cases:
            row = self.checks(name, GetStatus=dict(FINE, broker=broker),
                              status=1 if state == "problem" else 0)[0]
            self.assertEqual(row["state"], state, row)
            self.assertIn(text, row["text"])
            self.assertIn(fix, row["fix"]) if fix else self.assertNotIn("fix", row)
        row = self.checks("history", GetSelf=dict(SELF, history_reason="disk full"))[0]
        self.assertEqual((row["state"], row["text"]),
                         ("hint", "only in memory, gone with the daemon: disk full"))
        self.assertIn("df -h /run/e", row["fix"])
        row = self.checks("version", GetStatus=dict(FINE, version="9.9"))[0]
        self.assertIn("the daemon is 9.9", row["text"])
        row = self.checks("limits", GetSelf=dict(SELF, stages_refused=1234))[0]
        self.assertIn("stages were refused 1,234 times", row["text"])
        row = self.checks("app", ListApps={"apps": [], "refused": [
            {"app": "mic", "uid": 1, "reason": "another time namespace", "count": 1,
             "last_us": T}]})[0]
        self.assertEqual(row["text"], "mic was refused: another time namespace")

    def test_without_a_daemon_it_tells_what_it_can_and_is_69(self):
        report = json.loads(self.ctl("doctor", "-j", status=69)[0])
        rows = {row["name"]: row for row in report["checks"]}
        self.assertEqual(rows["daemon"]["state"], "problem")
        self.assertEqual(rows["daemon"]["fix"], "sudo systemctl start edgeprofd")
        self.assertIn(os.path.join(self.directory.name, "io.edgeprof") + ": No such file",
                      rows["daemon"]["text"])
        self.assertTrue({"group", "perf", "processes", "pressure", "clock"} <= set(rows))
        self.assertEqual(report["sources"], [])
        self.assertEqual(len(report["tools"]), 14)
        text, said = self.ctl("doctor", status=69)
        self.assertIn("to fix: sudo systemctl start edgeprofd\n", text)
        self.assertEqual(said, "")
        self.ctl("doctor", "--socket", "/" + "x" * 200, status=69)

    def test_a_daemon_that_does_not_answer_is_told(self):
        for reply in (["silence"], ["close"], [b"nonsense\0"]):
            with self.daemon(**dict(HEALTHY, GetStatus=reply)):
                report = json.loads(self.ctl("doctor", "-j", "--timeout", "200ms", status=69)[0])
            row = report["checks"][0]
            self.assertEqual((row["name"], row["state"]), ("daemon", "problem"))
            self.assertIn("GetStatus", row["text"])
        with self.daemon(**dict(HEALTHY, ListSources=["close"])):
            self.assertIn("to fix: systemctl status edgeprofd", self.ctl("doctor", status=69)[0])

    def test_an_older_daemon_is_asked_for_what_it_knows(self):
        old = {name: error("org.varlink.service.MethodNotFound", method=name)
               for name in ("GetSelf", "ListApps")}
        rows = self.checks(**old)
        self.assertEqual(sum("may be older" in row["text"] for row in rows), 2)
        self.assertIn("sensors", [row["name"] for row in rows])

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_a_closed_socket_is_77_and_names_its_group(self):
        with self.daemon(**HEALTHY) as daemon:
            os.chmod(daemon.path, 0o660)
            os.chown(daemon.path, 0, 12)
            done = self.ctl_as_nobody("doctor")
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn(b"to fix: sudo usermod -aG man $USER # then log in again", done.stdout)

    def test_commands_are_never_cut_and_escapes_never_shown(self):
        bad = dict(HEALTHY, ListSources=sources(source(HOSTILE, "error", reason=HOSTILE)))
        with self.daemon(**bad):
            text = self.ctl("doctor", status=1, COLUMNS="40")[0]
        self.assertIn("    journalctl -u edgeprofd -e\n", text)
        for byte in ("\x1b", "\x07", "\u009b", "\u202e"):
            self.assertNotIn(byte, text)

    def test_odd_answers_do_no_harm(self):
        for odd in (None, 3, "x", [], [None], [3], [{}], {"a": 1}):
            replies = {
                "GetStatus": {"broker": odd, "version": odd},
                "GetSelf": {"pid": odd, "stages_refused": odd, "history_reason": odd},
                "ListSources": {"sources": odd}, "ListMetrics": {"metrics": odd},
                "ListApps": {"refused": odd}, "GetSnapshot": {"ages_ms": odd, "memory_usage": odd, "apps": odd,
                                                           "processes": odd, "reasons": odd}}
            with self.daemon(**replies):
                for verb in ("doctor", "snapshot"):
                    done = subprocess.run([CTL, verb], env=self.environment,
                                          capture_output=True, timeout=60)
                    self.assertIn(done.returncode, (0, 1), (verb, odd, done.stderr))
                    self.assertNotIn(b"Sanitizer", done.stderr)

    # covers G1.19
    def test_tools_are_searched_and_not_run(self):
        tools = os.path.join(self.directory.name, "bin")
        trap = os.path.join(self.directory.name, "trap")
        os.mkdir(tools)
        for name in ("perf", "pidstat", "tegrastats"):
            with open(os.path.join(tools, name), "w", encoding="ascii") as script:
                script.write(f"#!/bin/sh\ntouch '{trap}'\n")
            os.chmod(script.name, 0o755)
        os.chmod(os.path.join(tools, "tegrastats"), 0o644)
        report = json.loads(self.ctl("doctor", "-j", status=69, PATH=tools)[0])
        paths = {row["name"]: row["path"] for row in report["tools"]}
        self.assertEqual({name for name, path in paths.items() if path}, {"perf", "pidstat"})
        self.assertEqual(paths["perf"], os.path.join(tools, "perf"))
        self.assertTrue(set(paths) >= {"numactl", "taskset", "chrt", "cpupower", "stress-ng",
                                       "mosquitto_sub", "tc", "varlinkctl"})
        self.assertFalse(os.path.exists(trap))
        text = self.ctl("doctor", status=69, PATH=tools)[0]
        self.assertRegex(text, r"pidstat +one process over time +" + tools)
        self.assertRegex(text, r"numactl .* not found")


SNAPSHOT_TEXT = """\
pi5 at 2025-11-21 05:40:25 (clock not synchronised)
CPU             41.2 %
Temperature    83.2 °C
Power           4.21 W
Memory          40.0 %  3.20 GiB used, 4.80 GiB available of 8.00 GiB
Inference     18.50 ms  cam
cam          150.0 MiB  peak 160.0 MiB, virtual 1.00 GiB
"""
SNAPSHOT = {
    "timestamp": "2025-11-21T05:40:25.123450Z", "time_us": T, "clock_synced": False, "hostname": "pi5",
    "cpu_usage": 41.24, "temperature": 83.2, "power_consumption": 4210,
    "memory_usage": {"bytes": 3.2 * 2 ** 30, "percent": 40, "total_bytes": 8 << 30,
                     "available_bytes": 4.8 * 2 ** 30},
    "apps": [{"app": "cam", "inference_latency": 18.5, "age_ms": 20}],
    "inference_latency": 18.5, "inference_app": "cam",
    "processes": [{"name": "cam", "rss_bytes": 150 << 20, "vms_bytes": 1 << 30,
                   "peak_rss_bytes": 160 << 20, "age_ms": 400}],
    "units": {"cpu_usage": "percent", "temperature": "celsius", "power_consumption": "milliwatts",
              "inference_latency": "milliseconds"},
    "ages_ms": {"cpu_usage": 400, "temperature": 400, "power_consumption": 400, "memory_usage": 400,
                "inference_latency": 20},
    "reasons": {}}


class Snapshot(Case):
    # covers G2.11, G0.8
    def test_everything_is_in_one_answer(self):
        with self.daemon(GetSnapshot=SNAPSHOT) as daemon:
            self.assertEqual(self.ctl("snapshot")[0], SNAPSHOT_TEXT)
            self.assertEqual(json.loads(self.ctl("snapshot", "-j", "--app", "cam")[0]), SNAPSHOT)
            self.assertEqual(daemon.calls[-1]["parameters"], {"app": "cam"})

    def test_what_is_unknown_or_old_is_told(self):
        old = dict(SNAPSHOT, power_consumption=None, inference_latency=None,
                   ages_ms={"temperature": 12000, "cpu_usage": 400},
                   reasons={"power_consumption": "source power: no power monitor",
                            "inference_latency": "the stage infer of cam: no event for 8 s"})
        del old["inference_app"]
        with self.daemon(GetSnapshot=old):
            text = self.ctl("snapshot")[0]
        self.assertRegex(text, r"Power +- +source power: no power monitor\n")
        self.assertRegex(text, r"Temperature +83\.2 °C +12 s ago\n")
        self.assertRegex(text, r"Inference +- +the stage infer of cam: no event for 8 s\n")

    def test_of_several_apps_the_slowest_is_told(self):
        rows = [{"app": name, "inference_latency": value} for name, value in
                (("cam", 18.5), ("mic", 40), ("tof", 7.5), ("new", None))]
        with self.daemon(GetSnapshot=dict(SNAPSHOT, apps=rows, inference_app="mic")):
            self.assertIn("mic, the slowest app", self.ctl("snapshot")[0])

    def test_without_an_answer_there_is_none(self):
        with self.daemon(GetSnapshot=error("io.edgeprof.NotFound", what="app", name="x")):
            self.assertIn("no app 'x'", self.ctl("snapshot", "--app", "x", status=2)[1])
        with self.daemon(GetSnapshot=["close"]):
            self.assertIn("GetSnapshot", self.ctl("snapshot", status=69)[1])
        self.ctl("snapshot", status=69)


class Real(unittest.TestCase):
    def test_doctor_agrees_with_the_daemon(self):
        with Daemon() as daemon:
            until("the sources were sampled", lambda: daemon.metric("cpu/utilization"))
            report = json.loads(daemon.ctl("doctor", "-j").stdout)
            listed = {row["name"]: row for row in daemon.call("ListSources")["sources"]}
        self.assertEqual({row["name"] for row in report["sources"]}, set(listed))
        rows = {row["name"]: row for row in report["checks"]}
        self.assertEqual(rows["daemon"]["state"], "ok")
        self.assertNotIn("version", rows)
        self.assertIn("the daemon", rows["processes"]["text"])
        self.assertEqual(rows["pressure"]["state"],
                         "ok" if listed["pressure"]["state"] == "ok" else "hint")
        self.assertRegex(rows["sensors"]["text"], r"\bmemory [1-9]")
        self.assertGreater([row for row in report["sources"]
                            if row["name"] == "collector"][0]["us_per_s"], 0)

    # covers G2.11, G0.8
    def test_snapshot_of_a_running_pipeline(self):
        with Daemon() as daemon, program([DEMO, "--app", "demo", "--fps", "60"],
                                         daemon.env) as app:
            def answer():
                done = daemon.ctl("snapshot", "-j", "--app", "demo")
                if done.returncode != 0:
                    return None
                got = json.loads(done.stdout)
                ready = got["inference_latency"] and got["processes"] and got["cpu_usage"] is not None
                return got if ready else None

            got = until("a snapshot with an inference", answer)
            row = got["processes"][0]
            with open(f"/proc/{app.pid}/status", encoding="ascii") as text:
                status = dict(line.split(":", 1) for line in text)
        self.assertEqual(row["name"], "demo")
        self.assertGreaterEqual(row["peak_rss_bytes"], row["rss_bytes"])
        self.assertLess(abs(row["rss_bytes"] - int(status["VmRSS"].split()[0]) * 1024), 16 << 20)
        self.assertGreater(row["vms_bytes"], row["rss_bytes"])
        memory = got["memory_usage"]
        with open("/proc/meminfo", encoding="ascii") as text:
            total = int(text.readline().split()[1]) * 1024
        self.assertEqual(memory["total_bytes"], total)
        used = memory["total_bytes"] - memory["available_bytes"]
        self.assertAlmostEqual(memory["percent"], used / total * 100, places=6)
        self.assertEqual(memory["bytes"], used)

    # covers G0.17 (the short answer)
    def test_the_current_temperature_is_one_short_answer(self):
        tree = SHARED / "fixtures" / "sysroot" / "rpi5"
        if not tree.is_dir():
            self.skipTest("no ../shared/fixtures here")
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch) / "root"
            shutil.copytree(tree, root, symlinks=True)
            with Daemon(root=root) as daemon:
                until("the temperature", lambda: (daemon.metric("temperature/max") or {}).get(
                    "value"))
                value = daemon.metric("temperature/max")["value"]
                done = daemon.ctl("sensors", "temperature/max", "--json=short")
                rows = json.loads(done.stdout)["metrics"]
                self.assertEqual(done.stdout.count("\n"), 1)
                self.assertEqual([(row["name"], row["value"], row["unit"]) for row in rows],
                                 [("temperature/max", value, "celsius")])
                text = daemon.ctl("sensors", "temperature/max").stdout.splitlines()
                self.assertEqual(len(text), 2)
                self.assertIn("temperature/max", text[1])
                snapshot = json.loads(daemon.ctl("snapshot", "-j").stdout)
                self.assertEqual(snapshot["temperature"], value)
                missing = daemon.ctl("sensors", "temperature/nope", "-j")
                self.assertEqual((missing.returncode, missing.stdout), (2, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
