# SPDX-License-Identifier: Apache-2.0
"""What the tests of edgeprofctl against canned answers share: the answers, and how it is run."""
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = os.environ["EDGEPROF_SOURCE"]
BUILD = os.environ["EDGEPROF_BUILD"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
from fake_daemon import FakeDaemon, error  # noqa: E402,F401

from harness import ctl_for_others  # noqa: E402

CTL = os.path.join(BUILD, "client", "edgeprofctl", "edgeprofctl")
T = 1763703625123450  # cJSON itself would print this one with an exponent
HOSTILE = "\x1b]0;owned\x07\u009b2J\u202ex"

APP = {"name": "cam", "uid": 1000, "state": "running", "since_us": T, "stages": 5, "fps": 29.93,
       "advice": {"app": "cam", "level": "reduced", "target_fps": 20.0, "skip_frames": 1,
                  "of_frames": 3, "since_us": T, "reason": "headroom 2.1 °C of cpu-thermal"},
       "sent": 123456, "received": 123400, "dropped": 6, "in_ring": 50, "invalid": 0,
       "restarts": 0, "processes": [{"pid": 811, "open": [
           {"stage": "infer", "frame": 88, "open_ms": 3200.0, "tid": 3}]}]}
ALERT = {"rule": "temperature", "instance": "max", "metric": "temperature/max", "unit": "celsius",
         "state": "firing", "severity": "critical", "value": 83.2, "threshold": 82, "since_us": T, "age_ms": 4000,
         "text": "THERMAL CRITICAL: 83.2C (threshold: 82)"}
STATUS = {
    "version": "0.1.0", "hostname": "pi5", "model": "Raspberry Pi 5", "os": "Debian 12",
    "kernel": "6.6.31", "arch": "aarch64", "boot_id": "x", "cpus": 4, "page_bytes": 16384,
    "time_us": T, "mono_us": 5, "clock_synced": False, "uptime_s": 11112.5, "run_dir": "/run/e",
    "sources": 8, "sources_ok": 7, "sources_bad": [
        {"name": "pressure", "state": "unavailable", "reason": "no /proc/pressure"}],
    "metrics": 64, "apps": [APP], "alerts": [ALERT],
    "broker": {"state": "away", "host": "broker", "port": 1883, "reason": "Connection refused",
               "connects": 0, "queued": 12, "delivered": 0, "dropped": 3, "dropped_alerts": 0},
    "temperature_celsius": 83.2, "cpu_percent": 41.24, "memory_percent": None,
    "degraded": ["history is in memory only: disk full"]}


def metric(name, value, unit, **more):
    return dict({"name": name, "value": value, "unit": unit, "time_us": T, "age_ms": 400,
                 "source": "x", "state": "ok"}, **more)


def stage(name, mean, p95, p99, count, **more):
    return dict({"app": "cam", "stage": name, "count": count, "total_count": count,
                 "mean_ms": mean, "p95_ms": p95, "p99_ms": p99, "misses": 0, "orphan_end": 0,
                 "abandoned": 0, "exact": True}, **more)


def series(name, start, count):
    return {"name": name, "unit": "percent", "step_ms": 1000,
            "time_us": [T + (start + i) * 1000000 for i in range(count)],
            "mean": [float(start + i) for i in range(count)],
            "min": [float(start + i) for i in range(count)],
            "max": [float(start + i) for i in range(count)], "count": [1] * count}


def event(serial, text="before model load", kind="mark"):
    return {"serial": serial, "time_us": T, "mono_us": 3, "kind": kind, "severity": "info",
            "subject": "cam", "text": text}


def list_events(parameters):
    start = max(parameters["from_serial"], 101)  # the ring begins at 101
    rows = [event(i, f"event {i}") for i in range(start, 301)][:parameters["limit"]]
    return {"events": rows, "last_serial": 300}


REPLIES = {
    "GetStatus": STATUS,
    "ListMetrics": [
        {"metrics": [metric("temperature/cpu", 83.2, "celsius"),
                     metric("cpu/0/frequency", 2.4e9, "hertz")]},
        {"metrics": [metric("throttle/active", None, "bool", state="unavailable",
                            reason="no firmware mailbox"),
                     metric("cooling/fan", 2, "state", max=4),
                     metric("collector/cpu/errors", 0, "count"),
                     metric("self/rss", 5 << 20, "bytes")]}],
    "ListStages": {"stages": [stage("preprocess", 4.04, 5.16, 6.0, 1024),
                              stage("infer", 18.5, 22.2, 25.9, 1024, unit="gpu",
                                    deadline_ms=33.3, misses=7),
                              stage("capture", None, None, None, 0, orphan_end=2, abandoned=1)],
                   "totals": [{"app": "cam", "mean_ms": 22.54, "max_fps": 44.365,
                               "throughput_fps": 44.365}]},
    "GetFrames": {"frames": [
        {"app": "cam", "status": "ok", "fps": 29.93, "frame_time_ms": 33.4,
         "frame_time_p95_ms": 41, "frame_time_p99_ms": 50.2, "jitter_ms": 2.3,
         "frame_count": 300, "total_count": 4000, "misses": 0},
        {"app": "new", "status": "insufficient_data", "fps": None, "frame_count": 0,
         "total_count": 1, "misses": 0}]},
    "ListApps": {"apps": [APP], "refused": [
        {"app": "mic", "uid": 1001, "pid": 99, "reason": "another time namespace", "count": 4,
         "last_us": 1_700_000_000_000_000}]},
    "ListProcesses": {"processes": [
        {"pid": 811, "name": "cam", "comm": "python3", "uid": 1000, "state": "S",
         "cpu_percent": 81.2, "user_percent": 70.1, "system_percent": 11.1,
         "rss_bytes": 150 << 20, "peak_rss_bytes": None, "vms_bytes": 1 << 30, "threads": 7,
         "age_ms": 3}], "memory_total_bytes": 8 << 30},
    "GetHistory": [{"series": [series("cpu/a", 0, 4)]},
                   {"series": [series("cpu/a", 6, 2), series("cpu/b", 0, 8)]}],
    "ListAlerts": {"alerts": [ALERT]},
    "ListEvents": list_events,
    "GetThrottle": {
        "raw": "0x50005", "currently_under_voltage": True, "currently_freq_capped": False,
        "currently_throttled": True, "currently_soft_temp_limit": None,
        "under_voltage_occurred": True, "freq_capped_occurred": False,
        "throttled_occurred": True, "soft_temp_limit_occurred": None, "over_current": None,
        "is_throttling": True, "over_critical": False, "temperature_celsius": 61.5,
        "critical_celsius": 82, "source": "firmware mailbox",
        "unknown": [{"field": "over_current", "reason": "no source on this machine reports it"}],
        "tried": [{"source": "/dev/vcio", "result": "firmware mailbox"}]},
    "GetSelf": {"pid": 700, "uptime_s": 300, "rss_bytes": 5 << 20, "history_bytes": 16 << 20,
                "history_used_bytes": 1 << 20, "history_bytes_per_sample": 1.61,
                "history_span_s": 3600, "history_samples": 99999,
                "history_tiers": [{"step_s": 0, "samples": 99999, "span_s": 3600, "bytes_per_sample": 1.61},
                                  {"step_s": 10, "samples": 360, "span_s": 3600, "bytes_per_sample": 5.7},
                                  {"step_s": 60, "samples": 0}], "metrics": 64,
                "metrics_max": 4096, "metrics_refused": 2, "stages": 5, "stages_max": 256},
    "ListSources": {"sources": [
        {"name": "thermal", "state": "ok", "interval_ms": 1000, "age_ms": 300, "ticks": 30,
         "errors": 0, "duration_us": 55, "enabled": True, "metrics": 4}]},
    "SetSource": {"source": {"name": "thermal", "state": "suspended", "enabled": False}},
    "Mark": {"serial": 17},
    "Reload": {},
    "GetInfo": {"vendor": "edgeprof", "product": "edgeprofd", "version": "0.1.0", "url": "",
                "interfaces": []},
    "Subscribe": [{"metrics": [], "alerts": []}, {"events": [event(300), event(301, "late")]},
                  {"metrics": [metric("temperature/cpu", 83.2, "celsius")]}],
}

STAGES_TEXT = """\
PIPELINE PROFILING REPORT: cam
Stage       Mean ms  P95 ms  P99 ms  Count
preprocess      4.0     5.2     6.0   1024
infer@gpu      18.5    22.2    25.9   1024  7 over the deadline of 33.3 ms
capture           -       -       -      0  2 ends without a begin, 1 begin without an end
TOTAL          22.5
MAX FPS        44.4
"""

STATUS_TEXT = """\
pi5: edgeprofd 0.1.0, up 3 h 5 min
Device       Raspberry Pi 5
System       Debian 12, kernel 6.6.31, aarch64, 4 CPUs, 16 KiB pages
Clock        2025-11-21 05:40:25, not synchronised
Temperature  83.2 °C
CPU          41.2 %
Memory       -
Sources      7 ok, 1 failing, 64 metrics
  pressure   unavailable: no /proc/pressure
Apps
  cam        running, 29.9 fps, 5 stages
Alerts       critical: THERMAL CRITICAL: 83.2C (threshold: 82)
MQTT         away, broker:1883, 0 delivered, 12 queued, 3 dropped: Connection refused
Degraded     history is in memory only: disk full
"""

SENSORS_TEXT = """\
METRIC              VALUE    AGE  SOURCE  STATE        NOTE
temperature/cpu   83.2 °C  0.4 s  x
cpu/0/frequency  2.40 GHz  0.4 s  x
throttle/active         -  0.4 s  x       unavailable  no firmware mailbox
cooling/fan        2 of 4  0.4 s  x
"""

FRAMES_TEXT = """\
APP   FPS  FRAME ms  P95 ms  P99 ms  JITTER ms  FRAMES  NOTE
cam  29.9      33.4    41.0    50.2        2.3    4000
new     -         -       -       -          -       1  insufficient data
"""


class Case(unittest.TestCase):
    def ctl_as_nobody(self, *words):
        """The command as another user."""
        os.chmod(self.directory.name, 0o755)
        return subprocess.run([ctl_for_others(self.directory.name), *words], env=self.environment, capture_output=True,
                              timeout=60, user=65534, group=65534, extra_groups=[])

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.environment = dict(os.environ, EDGEPROF_RUNTIME_DIR=self.directory.name,
                                LC_ALL="C.UTF-8", TZ="UTC", TERM="xterm")
        for name in ("COLUMNS", "LINES", "NO_COLOR", "PAGER", "XDG_RUNTIME_DIR"):
            self.environment.pop(name, None)

    def daemon(self, **replies):
        return FakeDaemon(self.directory.name, dict(REPLIES, **replies))

    def ctl(self, *arguments, status=0, **environment):
        done = subprocess.run([CTL, *arguments], env=dict(self.environment, **environment),
                              capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        text, said = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, status, f"{arguments}: {text}{said}")
        self.assertNotIn("Sanitizer", said)
        return text, said

    def read_until(self, stream, text):
        """What the stream gave up to and with the text."""
        seen = b""
        end = time.monotonic() + 30
        while text not in seen:
            ready, _, _ = select.select([stream], [], [], max(0, end - time.monotonic()))
            self.assertTrue(ready, f"no {text!r} in {seen!r}")
            got = os.read(stream.fileno() if hasattr(stream, "fileno") else stream, 65536)
            self.assertTrue(got, f"no {text!r} in {seen!r}")
            seen += got
        return seen

    def on_terminal(self, *arguments, **environment):
        main, side = pty.openpty()
        child = subprocess.Popen([CTL, *arguments], stdin=side, stdout=side, stderr=side,
                                 env=dict(self.environment, **environment))
        os.close(side)
        self.addCleanup(os.close, main)
        return child, main
