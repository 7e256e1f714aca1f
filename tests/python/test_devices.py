#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the look-alikes read of devices: zones, Raspberry Pis, tegrastats, the machine."""
import contextlib
import io
import json
import os
import pathlib
import random
import tempfile
import time
import unittest
from unittest import mock

import support
from support import Daemon, until

os.environ["EDGEPROF_RUNTIME_DIR"] = support.NOWHERE
import edgeprof  # noqa: E402
from edgeprof import rpi, tegrastats, thermal  # noqa: E402

SHARED = support.ROOT.parent / "shared" / "fixtures"


def printed(call, *arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call(*arguments)
    return out.getvalue()


class Thermal(unittest.TestCase):
    def zones(self, folder, **zones):
        for number, (kind, text) in enumerate(zones.items()):
            zone = pathlib.Path(folder) / ("thermal_zone%d" % number)
            zone.mkdir(exist_ok=True)
            (zone / "type").write_text(kind.replace("_", "-") + "\n")
            if text is not None:
                (zone / "temp").write_text(text)

    # covers G0.11
    def test_zones_that_cannot_be_read_are_skipped_alone(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(thermal, "_ZONES", folder):
            self.assertEqual(edgeprof.read_temperature_linux(), {})
            self.assertIsNone(edgeprof.ThermalMonitor().current_temp())
            self.zones(folder, cpu="45500\n", gpu="", cv0=None, odd="x\n", off="-256000\n", PMIC_Die="100000\n", tj="46000\n")
            self.assertEqual(
                edgeprof.read_temperature_linux(),
                {"thermal_zone0": 45.5, "thermal_zone5": 100.0, "thermal_zone6": 46.0},
            )
            self.assertEqual(thermal.max_temperature()[0], 46.0)
            self.assertEqual(edgeprof.ThermalMonitor().current_temp(), 46.0)

    # covers G0.16
    def test_transitions_are_told_once(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(thermal, "_ZONES", folder):
            m = edgeprof.ThermalMonitor()
            self.assertEqual((m.warn_temp, m.critical_temp, m.interval), (75.0, 82.0, 5.0))
            self.assertEqual(m.report(), {"status": "no data"})
            self.assertIsNone(m.is_throttling)
            told = ""
            for celsius in (50, 74.9, 75, 76, 81.2, 82, 90, 82, 70, 76):
                self.zones(folder, cpu="%d\n" % round(celsius * 1000))
                told += printed(m.sample)
            self.assertEqual(
                told.splitlines(),
                [
                    "THERMAL WARNING: 75.0C (threshold: 75.0)",
                    "THERMAL CRITICAL: 82.0C (threshold: 82.0)",
                    "THERMAL WARNING: 76.0C (threshold: 75.0)",
                ],
            )
            report = m.report()
            self.assertEqual(
                {k: report[k] for k in ("current_c", "max_c", "min_c", "samples", "is_throttling", "over_critical")},
                {"current_c": 76.0, "max_c": 90.0, "min_c": 50.0, "samples": 10, "is_throttling": None, "over_critical": False},
            )
            self.assertAlmostEqual(report["mean_c"], 75.71)
            self.assertEqual(set(m.history[0]), {"timestamp", "max_temp_c", "all_temps"})
            for _ in range(150):
                m.sample()
            self.assertEqual(m.report()["samples"], 100)

    # covers G0.16
    def test_the_thread_starts_and_stops(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(thermal, "_ZONES", folder):
            self.zones(folder, cpu="85000\n")
            m = edgeprof.ThermalMonitor(interval=0.01)
            self.assertTrue(m.stopped)
            told = printed(lambda: (self.assertIs(m.start(), m), until("samples", lambda: len(m.history) > 3)))
            self.assertFalse(m.stopped)
            m.stop()
            self.assertTrue(m.stopped)
            self.assertEqual(told, "THERMAL CRITICAL: 85.0C (threshold: 82.0)\n")
            self.assertIs(m.report()["over_critical"], True)
        self.assertRaises(ValueError, edgeprof.ThermalMonitor, interval=0)

    def test_throttling_is_what_the_hardware_says(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(thermal, "_ZONES", folder):
            self.zones(folder, cpu="40000\n")
            m = edgeprof.ThermalMonitor()
            for word, expected in ((0x50000, False), (0x50005, True), (0x2, True), (0x8, True), (0x1, False), (0, False)):
                with mock.patch.object(thermal, "throttle_word", return_value=(word, "mailbox")):
                    m.sample()
                self.assertIs(m.is_throttling, expected)
            with Daemon("", root=folder) as daemon:
                with mock.patch.dict(os.environ, EDGEPROF_RUNTIME_DIR=str(daemon.run_dir)):
                    m.sample()
                    self.assertEqual(m.is_throttling, daemon.call("GetThrottle").get("is_throttling"))


class RaspberryPi(unittest.TestCase):
    # covers G0.13
    def test_throttle_words(self):
        for word, now, past in (
            (0x0, "", ""), (0x50000, "", "under_voltage throttled"),
            (0x50005, "under_voltage throttled", "under_voltage throttled"),
            (0x60002, "freq_capped", "freq_capped throttled"), (0x80008, "soft_temp_limit", "soft_temp_limit"),
        ):  # fmt: skip
            with mock.patch.object(rpi, "_mailbox", return_value=[word]):
                status = edgeprof.read_throttle_status_rpi()
            self.assertEqual(status.pop("raw"), "0x%x" % word)
            true = {key for key, value in status.items() if value}
            self.assertEqual(true, {"currently_" + n for n in now.split()} | {n + "_occurred" for n in past.split()})
            self.assertEqual(len(status), 8)

    # covers G0.12 G0.13
    def test_vcgencmd_stands_in_and_hangs_for_no_more_than_2_s(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(rpi, "_VCIO", folder + "/none"):
            tool = pathlib.Path(folder) / "vcgencmd"
            with mock.patch.dict(os.environ, PATH=folder), mock.patch.object(thermal, "_ZONES", folder):
                status = edgeprof.read_throttle_status_rpi()
                self.assertIn("vcgencmd", status.pop("reason"))
                self.assertEqual(set(status.values()), {None})
                self.assertIsNone(edgeprof.read_temperature_rpi())
                tool.write_text("#!/bin/sh\n[ $1 = get_throttled ] && echo throttled=0x50005 || echo \"temp=52.6'C\"\n")
                tool.chmod(0o755)
                self.assertEqual(edgeprof.read_throttle_status_rpi()["raw"], "0x50005")
                self.assertEqual(edgeprof.read_temperature_rpi(), 52.6)
                tool.write_text("#!/bin/sh\necho error=1 error_msg=\\\"Command not registered\\\"\n")
                self.assertIsNone(edgeprof.read_throttle_status_rpi()["raw"])
                with mock.patch.object(rpi, "_TIMEOUT_S", 0.1):
                    tool.write_text("#!/bin/sh\nexec /bin/sleep 100\n")
                    self.assertIsNone(edgeprof.read_temperature_rpi())

    def test_the_mailbox_is_asked_to_clear_nothing(self):
        asked = []

        def ioctl(fd, request, buffer, mutate):
            words = list(memoryview(buffer).cast("I"))
            asked.append((request, words))
            memoryview(buffer).cast("I")[1] = 0x80000000
            memoryview(buffer).cast("I")[4] = 0x80000004
            memoryview(buffer).cast("I")[5] = 0x50005
            return 0

        with mock.patch.object(rpi, "_VCIO", os.devnull), mock.patch.object(rpi.fcntl, "ioctl", ioctl):
            self.assertEqual(rpi.throttle_word(), (0x50005, "mailbox"))
        self.assertEqual(asked, [(0xC0086400, [28, 0, 0x00030046, 4, 0, 0, 0])])


class Tegrastats(unittest.TestCase):
    def test_captures_of_real_boards(self):
        folder = SHARED / "tegrastats"
        if not folder.is_dir():
            self.skipTest("no ../shared/fixtures here")
        for path in sorted(folder.glob("*.txt")):
            with self.subTest(path.name):
                wanted = json.loads((folder / (path.stem + ".expected.json")).read_text())
                got = edgeprof.parse_tegrastats_line(path.read_text())
                self.assertEqual((got["ram_used_mb"], got["ram_total_mb"]), (wanted["ram_used_mb"], wanted["ram_total_mb"]))
                self.assertEqual(got["cpu_loads_percent"], [c["load_pct"] for c in wanted["cpus"]])
                on = [c["load_pct"] for c in wanted["cpus"] if c["load_pct"] is not None]
                self.assertEqual(got["cpu_avg_percent"], sum(on) / len(on) if on else None)
                self.assertEqual(got["gpu_percent"], (wanted["gpu"] or {}).get("load_pct"))
                self.assertEqual({k: v for k, v in got["temperatures"].items() if v is not None}, {k: v for k, v in wanted["temps_c"].items() if v > -200})
                self.assertEqual(sorted(k for k, v in got["temperatures"].items() if v is None), sorted(wanted["temps_offline"]))
                self.assertEqual(got["power_mw"], {k: v["now"] for k, v in wanted["power_mw"].items()})

    # covers G0.14 (simple scheme)
    def test_a_core_that_is_off_and_a_total_that_is_not_added_twice(self):
        line = "RAM 2019/7853MB (lfb 7x4MB) CPU [10%@2036,off,off,30%@2034] GR3D_FREQ 7%@1122 CV0@-256C PMIC@100C VDD_IN 2455/2455 VDD_CPU 306/306 NC 1/1"
        got = edgeprof.parse_tegrastats_line(line)
        self.assertEqual(got["cpu_loads_percent"], [10, None, None, 30])
        self.assertEqual((got["cpu_avg_percent"], got["gpu_percent"]), (20.0, 7))
        self.assertEqual(got["temperatures"], {"CV0": None, "PMIC": 100.0})
        self.assertEqual((got["total_power_mw"], got["total_power_source"]), (2455, "VDD_IN"))
        got = edgeprof.parse_tegrastats_line(line + " VIN 9000mW/9000mW")
        self.assertEqual((got["total_power_mw"], got["total_power_source"]), (9000, "VIN"))
        got = edgeprof.parse_tegrastats_line(line.replace("VDD_IN", "VDD_GPU"))
        self.assertEqual((got["total_power_mw"], got["total_power_source"]), (2761, "sum"))

    def test_damage_is_no_error_and_no_number(self):
        empty = edgeprof.parse_tegrastats_line("")
        self.assertEqual(empty["ram_used_mb"], None)
        self.assertEqual((empty["cpu_loads_percent"], empty["temperatures"], empty["power_mw"]), ([], {}, {}))
        seed = random.Random(3)
        line = "RAM 1/2MB CPU [1%@2,off] GR3D_FREQ 101%@[1] cpu@45.5C VDD_IN 1mW/2mW"
        self.assertIsNone(edgeprof.parse_tegrastats_line(line)["gpu_percent"])
        for _ in range(5000):
            at = seed.randrange(len(line))
            edgeprof.parse_tegrastats_line(line[:at] + chr(seed.randrange(0x300)) + line[at + seed.randrange(4) :])
        for path in sorted((SHARED / "tegrastats" / "malformed").glob("*")):
            for text in path.read_text(errors="replace").splitlines():
                edgeprof.parse_tegrastats_line(text)
        self.assertRaises(TypeError, edgeprof.parse_tegrastats_line, None)

    def test_a_snapshot_ends_the_child(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "tegrastats"
            with mock.patch.object(tegrastats, "_PROGRAM", str(tool)):
                self.assertIsNone(edgeprof.read_tegrastats_snapshot())
                pid = pathlib.Path(folder) / "pid"
                tool.write_text("#!/bin/sh\necho $$ >%s\necho 'RAM 5/9MB CPU [7%%@1]'\nexec sleep 1000\n" % pid)
                tool.chmod(0o755)
                got = edgeprof.read_tegrastats_snapshot()
                self.assertEqual((got["ram_used_mb"], got["cpu_loads_percent"]), (5, [7]))
                self.assertRaises(ProcessLookupError, os.kill, int(pid.read_text()), 0)
                tool.write_text("#!/bin/sh\ntrap '' TERM\nexec sleep 1000\n")
                self.assertIsNone(edgeprof.read_tegrastats_snapshot(timeout=0.2))


class Monitor(unittest.TestCase):
    # covers G2.11 G2.12 (in Python)
    def test_samples_and_alerts_once_per_crossing(self):
        told = []
        m = edgeprof.RealTimePerformanceMonitor(on_alert=lambda *a: told.append(a))
        self.assertEqual((m.sampling_rate, m.performance_history.maxlen), (10.0, 1000))
        self.assertEqual(m.alert_thresholds["temperature_celsius"], 85.0)
        with self.assertRaises(KeyError):
            m.alert_thresholds |= {"cpu_usage": 1.0}
        with self.assertRaises(KeyError):
            m.alert_thresholds = {"cpu_usage": 1.0}
        m.record_inference(12.5)
        m.alert_thresholds.update(memory_usage_percent=0.0, cpu_usage_percent=101.0, temperature_celsius=1000.0)
        for _ in range(3):
            row = m.sample()
        self.assertEqual(
            set(row),
            {"timestamp", "cpu_usage", "memory_usage", "memory_bytes", "temperature", "power_consumption", "inference_latency"},
        )
        self.assertEqual((row["inference_latency"], row["power_consumption"]), (12.5, None))
        self.assertEqual([a[0] for a in told], ["memory_usage_percent"])
        m.alert_thresholds.update(cpu_usage_percent=90.0, temperature_celsius=85.0)
        self.assertEqual(m.check_alerts({"temperature": 85.0, "cpu_usage": 90.0}), ["temperature_celsius"])
        self.assertRaises(ValueError, edgeprof.RealTimePerformanceMonitor, 0)

    def test_the_thread_keeps_its_rate(self):
        m = edgeprof.RealTimePerformanceMonitor(sampling_rate_hz=200)
        m.start_monitoring()
        until("samples", lambda: len(m.performance_history) > 10)
        m.stop_monitoring()
        count = len(m.performance_history)
        time.sleep(0.05)
        self.assertEqual(len(m.performance_history), count)
        usage = [r["cpu_usage"] for r in m.performance_history if r["cpu_usage"] is not None]
        self.assertTrue(all(0 <= u <= 100 for u in usage), usage)


if __name__ == "__main__":
    support.main()
