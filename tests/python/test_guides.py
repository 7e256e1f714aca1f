#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as guides on edge profiling teach to write them, with the class and function names that they
define themselves: only the import is ours. Without a daemon; test_lookalikes.py has the numbers."""
import unittest

import support
from support import app_env, run

FPS = """
from edgeprof import FPSCounter, DetailedFPSCounter
counter, detailed = FPSCounter(window_size=60), DetailedFPSCounter(window_size=300)
print(counter.fps, counter.frame_time_ms, detailed.report()["fps_mean"], detailed.report()["status"])
for frame in range(20):
    counter.tick()
    detailed.tick()
r = detailed.report()
assert counter.fps > 0 and r["frame_count"] == 19 and r["fps_min"] <= r["fps_p5"] <= r["fps_p95"] <= r["fps_max"]
print(f"{len(counter.timestamps)} {r['jitter_ms'] >= 0}")
"""

STAGES = """
from edgeprof import StageProfiler, stage_timer
profiler = StageProfiler()
for frame in range(5):
    for stage in ("capture", "preprocess", "infer", "postprocess", "publish"):
        profiler.start(stage)
        profiler.stop()
profiler.stop()
profiler.print_report()
report = profiler.report()
assert report["infer"]["count"] == 5 and report["_total"]["max_fps"] > 0
timings = {}
for frame in range(3):
    with stage_timer("capture", timings):
        pass
    with stage_timer("infer", timings):
        pass
print({label: len(values) for label, values in timings.items()}, sum(timings["infer"]) / len(timings["infer"]) >= 0)
"""

MEMORY = """
from edgeprof import MemoryMonitor, memory_optimized
memory = MemoryMonitor()
memory.print_snapshot("before model load")
memory.print_snapshot()
watch = MemoryMonitor(threshold_mb=100.0)
state = watch.check_memory_usage()
print(f"{state['current_mb'] <= state['peak_mb']} {state['threshold_exceeded']} {len(watch.allocation_history[0:1])}")

@memory_optimized
def load():
    return 7

print(load())
"""

THERMAL = """
from edgeprof import ThermalMonitor, read_temperature_linux, read_temperature_rpi, read_throttle_status_rpi
monitor = ThermalMonitor(warn_temp=75.0, critical_temp=82.0, interval=5.0).start()
temperature = monitor.current_temp()
monitor.stop()
print(monitor.stopped, monitor.report().get("status", "data"), isinstance(read_temperature_linux(), dict))
status = read_throttle_status_rpi()
print(read_temperature_rpi() is None or True, status is None or "raw" in status)
"""

TEGRASTATS = """
from edgeprof import parse_tegrastats_line, read_tegrastats_snapshot
line = "RAM 2345/7620MB CPU [45%@1420,30%@1420] GR3D_FREQ 76% CPU@45C GPU@42C VDD_SOC 1200mW/1100mW"
stats = parse_tegrastats_line(line)
print(stats["ram_used_mb"], stats["cpu_avg_percent"], stats["gpu_percent"], stats["temperatures"]["GPU"])
print(read_tegrastats_snapshot() is None or True)
"""

MONITOR = """
import asyncio
from edgeprof import RealTimePerformanceMonitor

class Device:
    def __init__(self):
        self.reads = 0
    async def get_cpu_usage(self):
        self.reads += 1
        return 95.0 if self.reads > 2 else 10.0
    async def get_memory_usage(self):
        return 40
    async def get_temperature(self):
        return 45.0
    async def get_power_consumption(self):
        return 900.0
    async def measure_inference_latency(self):
        return 12.5

async def main():
    device, monitor = Device(), RealTimePerformanceMonitor(sampling_rate_hz=200.0)
    monitor.alert_thresholds["cpu_usage_percent"] = 90.0
    task = asyncio.create_task(monitor.start_monitoring(device))
    while len(monitor.performance_history) < 4:
        await asyncio.sleep(0.001)
    monitor.monitoring_active = False
    await task
    first, last = monitor.performance_history[0], monitor.performance_history[-1]
    print(first.cpu_usage, last.inference_latency, monitor.sampling_rate, monitor.adaptive_rate(first),
          monitor.adaptive_rate(last), monitor.check_alerts(last))
    average = sum(s.memory_usage for s in monitor.performance_history) / len(monitor.performance_history)
    print(average, last["temperature"])
    for wrong in ("cpu_usage", "temperature"):
        try:
            monitor.alert_thresholds[wrong] = 1.0
        except KeyError:
            print("no", wrong)
    try:
        print(last.cpu)
    except AttributeError:
        print("no cpu")

asyncio.run(main())
"""

MODELS = """
import os, tempfile
from edgeprof import analyze_model_size, benchmark_model, compare_models, fast_statistical_analysis, param_count
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "m.bin")
    with open(path, "wb") as file:
        file.write(bytes(1 << 20))
    print(analyze_model_size(path)["size_mb"])
    data = [[1.0, 2.0], [3.0, 4.0]]
    result = benchmark_model(lambda x: x, data, iterations=100, warmup=10)
    assert result["min"] <= result["p50"] <= result["p99"] <= result["max"] and result["throughput_fps"] > 0
    rows = compare_models({"float": path, "int8": path}, data, load=lambda p: lambda x: x)
    print([row["name"] for row in rows], rows[0]["accuracy_diff"], rows[1]["latency_ms"] > 0)
    print(fast_statistical_analysis(data)[0], param_count({}))
"""


class Guides(unittest.TestCase):
    def check(self, program, *patterns):
        out, err = run(program, app_env())
        self.assertEqual(err, "")
        for pattern in patterns:
            self.assertRegex(out, pattern)

    # covers G0.1 G0.2
    def test_frame_counters(self):
        self.check(FPS, r"^0\.0 0\.0 0 insufficient data\n20 True\n$")

    # covers G0.3 G0.4 G0.5 G0.7
    def test_stage_timers(self):
        self.check(STAGES, r"PIPELINE PROFILING REPORT", r"\{'capture': 3, 'infer': 3\} True\n$")

    # covers G0.8 G0.9 G2.4
    def test_memory(self):
        self.check(MEMORY, r"(?m)^\[before model load\] RSS: ", r"(?m)^RSS: ", r"(?m)^True False 1\n7\n$")

    # covers G0.11 G0.12 G0.13 G0.16
    def test_temperature(self):
        self.check(THERMAL, r"(?m)^True (no data|data) True\nTrue True$")

    # covers G0.14
    def test_tegrastats(self):
        self.check(TEGRASTATS, r"^2345 37\.5 76 42\.0\nTrue\n$")

    # covers G2.11 G2.13 G2.14
    def test_performance_monitor(self):
        self.check(
            MONITOR,
            r"^10\.0 12\.5 200\.0 100\.0 400\.0 \['cpu_usage_percent'\]\n40\.0 45\.0\n"
            r"no cpu_usage\nno temperature\nno cpu\n$",
        )

    # covers G2.6 G4.1 G4.2 G4.3
    def test_models(self):
        self.check(MODELS, r"^1\.0\n\['float', 'int8'\] None True\n2\.5 0\n$")


if __name__ == "__main__":
    support.main()
