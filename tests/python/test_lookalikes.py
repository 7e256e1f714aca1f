#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guides' classes and functions against the guides' numbers, without a daemon and (told) with one."""
import contextlib
import io
import json
import os
import pathlib
import random
import statistics
import tempfile
import threading
import time
import unittest
from unittest import mock

import support
from support import Daemon, app_env, app_of, ctl, run, until

os.environ["EDGEPROF_RUNTIME_DIR"] = support.NOWHERE
import edgeprof  # noqa: E402
from edgeprof import stats  # noqa: E402

DELTAS = [0.033, 0.034, 0.033, 0.050, 0.033, 0.035, 0.100, 0.033, 0.034, 0.033]  # golden vector A


def printed(call, *arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call(*arguments)
    return out.getvalue()


class Fps(unittest.TestCase):
    def ticking(self, counter):
        moments = [100.0]
        for delta in DELTAS:
            moments.append(moments[-1] + delta)
        with mock.patch("edgeprof.fps.time.perf_counter", side_effect=moments):
            for _ in moments:
                counter.tick()
        return counter

    # covers G0.1
    def test_fps_of_golden_vector_a(self):
        counter = self.ticking(edgeprof.FPSCounter())
        self.assertAlmostEqual(counter.fps, 23.9234450, places=6)
        self.assertAlmostEqual(counter.frame_time_ms, 41.8, places=9)
        self.assertEqual((counter.window_size, len(counter.timestamps)), (60, 11))

    # covers G0.1
    def test_fps_is_0_below_two_ticks_and_keeps_its_window(self):
        counter = edgeprof.FPSCounter(window_size=5)
        self.assertEqual((counter.fps, counter.frame_time_ms), (0.0, 0.0))
        counter.tick()
        self.assertEqual((counter.fps, counter.frame_time_ms), (0.0, 0.0))
        for _ in range(20):
            counter.tick()
        self.assertEqual(len(counter.timestamps), 5)

    # covers G0.2
    def test_detailed_fps_of_golden_vector_a(self):
        report = self.ticking(edgeprof.DetailedFPSCounter()).report()
        expected = {
            "fps_mean": 26.8910109, "fps_min": 10, "fps_max": 30.3030303, "fps_p5": 14.5,
            "fps_p95": 30.3030303, "frame_time_mean_ms": 41.8, "frame_time_p95_ms": 77.5,
            "frame_time_p99_ms": 95.5, "frame_count": 10, "jitter_ms": 20.0239856,
        }  # fmt: skip
        self.assertEqual(set(report), set(expected))
        for key, value in expected.items():
            self.assertAlmostEqual(report[key], value, places=6, msg=key)

    # covers G0.2
    def test_too_little_is_told_and_a_delta_of_0_is_counted(self):
        counter = edgeprof.DetailedFPSCounter()
        self.assertIsNone(counter.last_tick)
        self.assertEqual(counter.fps_mean, 0.0)
        for _ in range(2):
            counter.tick()
            self.assertEqual(counter.report(), {"fps_mean": 0, "status": "insufficient data"})
        counter.frame_times.clear()
        counter.frame_times.extend([0.0, 0.1, 0.1])
        self.assertAlmostEqual(counter.report()["fps_mean"], 10.0)
        self.assertEqual(counter.zero_deltas, 1)
        counter.frame_times.extend([0.01] * 400)
        self.assertEqual(counter.report()["frame_count"], 300)


class Stages(unittest.TestCase):
    # covers G0.4
    def test_report_of_golden_vector_b(self):
        profiler = edgeprof.StageProfiler()
        values = [float(v) for v in range(1, 101)]
        random.Random(4).shuffle(values)
        profiler.timings["infer"].extend(values)
        profiler.timings["capture"].extend([2.0, 4.0])
        profiler.timings["total"].append(1000.0)
        row = profiler.report()["infer"]
        expected = {
            "count": 100, "mean_ms": 50.5, "median_ms": 50.5, "p50_ms": 50.5, "p90_ms": 90.1,
            "p95_ms": 95.05, "p99_ms": 99.01, "min_ms": 1, "max_ms": 100, "std_ms": 28.8660700,
            "std_sample_ms": 29.0114920,
        }  # fmt: skip
        self.assertEqual(set(row), set(expected))
        for key, value in expected.items():
            self.assertAlmostEqual(row[key], value, places=6, msg=key)
        total = profiler.report()["_total"]
        self.assertAlmostEqual(total["mean_ms"], 53.5)
        self.assertAlmostEqual(total["max_fps"], 1000 / 53.5)
        profiler.timings.clear()
        self.assertEqual(profiler.report(), {"_total": {"mean_ms": 0, "max_fps": 0.0}})

    # covers G0.3
    def test_one_open_stage_orphans_and_the_abandoned_are_counted(self):
        profiler = edgeprof.StageProfiler()
        profiler.stop()
        profiler.start("a")
        profiler.start("b")
        time.sleep(0.002)
        profiler.stop()
        profiler.stop()
        self.assertEqual((profiler.orphan_end, profiler.abandoned), (2, 1))
        self.assertEqual(list(profiler.timings), ["b"])
        self.assertGreaterEqual(profiler.timings["b"][0], 2.0)
        with self.assertRaises(KeyError), profiler.stage("c"):
            raise KeyError
        self.assertEqual(len(profiler.timings["c"]), 1)
        profiler.timings.clear()

    # covers G0.5
    def test_the_text_report(self):
        profiler = edgeprof.StageProfiler()
        profiler.timings["preprocess"].extend([1.0, 3.0])
        profiler.timings["infer"].extend([10.0] * 3)
        lines = printed(profiler.print_report).splitlines()
        self.assertEqual(lines[0], "PIPELINE PROFILING REPORT")
        self.assertEqual(lines[1].split(), ["Stage", "Mean", "(ms)", "P95", "(ms)", "P99", "(ms)", "Count"])
        self.assertEqual(lines[2].split(), ["preprocess", "2.0", "2.9", "3.0", "2"])
        self.assertEqual(lines[3].split(), ["infer", "10.0", "10.0", "10.0", "3"])
        self.assertEqual(lines[4].split(), ["TOTAL", "12.0"])
        self.assertEqual(lines[5].split(), ["MAX", "FPS", "83.3"])
        profiler.timings.clear()

    # covers G3.1
    def test_the_report_comes_at_exit_unless_it_was_told(self):
        code = """
import edgeprof, os
def work():
    p = edgeprof.StageProfiler()   # gone with this function
    p.start("infer"); p.stop()
    return p
work()
told = work(); told.print_report()
edgeprof.StageProfiler()
if os.fork() == 0: raise SystemExit(0)
os.wait()
"""
        out, err = run(code, app_env())
        self.assertEqual((out.count("PIPELINE PROFILING REPORT"), err), (2, ""))

    def test_export_is_whole_or_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.json"
            profiler = edgeprof.StageProfiler()
            profiler.timings["infer"].extend([1.0, 2.0])
            path.write_text("old")
            with mock.patch("edgeprof.stages.os.fsync", side_effect=OSError("full")):
                with self.assertRaises(OSError):
                    profiler.export_json(path)
            self.assertEqual(path.read_text(), "old")
            profiler.export_json(path)
            self.assertEqual(json.loads(path.read_text()), profiler.report())
            self.assertEqual(os.listdir(folder), ["report.json"])
            profiler.timings.clear()

    # covers G0.7
    def test_stage_timer_prints_or_stores(self):
        def timer():
            with edgeprof.stage_timer("load"):
                pass

        self.assertRegex(printed(timer), r"^\[load\] \d+\.\d\dms\n$")
        results = {}
        with self.assertRaises(ValueError), edgeprof.stage_timer("load", results):
            time.sleep(0.002)
            raise ValueError
        with edgeprof.stage_timer("load", results):
            pass
        self.assertEqual(len(results["load"]), 2)
        self.assertGreaterEqual(results["load"][0], 2.0)

    def test_they_are_told_to_the_daemon(self):
        code = """
import edgeprof, time
edgeprof.connect("guide")
fps, p = edgeprof.FPSCounter(), edgeprof.StageProfiler()
for _ in range(30):
    p.start("infer"); p.stop(); fps.tick()
with edgeprof.stage_timer("post", {}): pass
edgeprof.MemoryMonitor().print_snapshot("loaded")
edgeprof.benchmark(lambda: None, 7)
p.timings.clear()
"""
        with Daemon() as daemon:
            run(code, app_env(daemon))
            until("its end", lambda: (app_of(daemon, "guide") or {}).get("state") == "ended")
            counts = {s["stage"]: s["total_count"] for s in ctl(daemon, "stages", "guide")["stages"]}
            self.assertEqual(counts, {"infer": 30, "post": 1, "_lambda_": 7})
            self.assertEqual(ctl(daemon, "frames", "guide")["frames"][0]["total_count"], 30)
            self.assertEqual(app_of(daemon, "guide")["invalid"], 0)


class Statistics(unittest.TestCase):
    # covers G2.6
    def test_analysis_of_golden_vector_b(self):
        expected = (50.5, 28.8660700, 50.5, 95.05, 99.01)
        for got, wanted in zip(edgeprof.fast_statistical_analysis(range(100, 0, -1)), expected):
            self.assertAlmostEqual(got, wanted, places=6)
        self.assertEqual(edgeprof.fast_statistical_analysis([]), (0.0,) * 5)
        nested = [[1, 2], [3, 4]]
        self.assertEqual(edgeprof.fast_statistical_analysis(nested), edgeprof.fast_statistical_analysis([1, 2, 3, 4]))
        self.assertEqual(edgeprof.fast_statistical_analysis([7]), (7.0, 0.0, 7.0, 7.0, 7.0))
        self.assertRaises((TypeError, ValueError), edgeprof.fast_statistical_analysis, ["x"])

    def test_it_agrees_with_the_standard_library(self):
        seed = random.Random(7)
        for size in (2, 3, 10, 999):
            data = [seed.lognormvariate(1, 2) for _ in range(size)]
            row = stats.summary_ms(data)
            self.assertAlmostEqual(row["std_ms"], statistics.pstdev(data))
            self.assertAlmostEqual(row["std_sample_ms"], statistics.stdev(data))
            self.assertAlmostEqual(row["median_ms"], statistics.median(data))
            hundredths = statistics.quantiles(data, n=100, method="inclusive")
            for p in (90, 95, 99):
                self.assertAlmostEqual(row["p%d_ms" % p], hundredths[p - 1])

    # covers G4.1
    def test_benchmark(self):
        calls = []

        def work():
            calls.append(1)
            time.sleep(0.0005)

        result = edgeprof.benchmark(work, iterations=20, warmup=3)
        self.assertEqual(len(calls), 23)
        for key in ("mean", "std", "std_sample", "min", "max", "p50", "p90", "p99"):
            self.assertEqual(result[key], result[key + "_ms"])
        self.assertGreaterEqual(result["min"], 0.5)
        self.assertAlmostEqual(result["throughput_fps"], 1000 / result["mean"])
        self.assertEqual((result["iterations"], result["warmup"], result["count"]), (20, 3, 20))
        self.assertEqual(edgeprof.benchmark(lambda: None)["count"], 100)
        self.assertRaises(ValueError, edgeprof.benchmark, work, 0)


class Memory(unittest.TestCase):
    # covers G0.8
    def test_snapshot(self):
        m = edgeprof.MemoryMonitor()
        now = m.snapshot()
        self.assertEqual(
            set(now),
            {"process_rss_mb", "process_vms_mb", "process_peak_rss_mb", "system_total_mb",
             "system_available_mb", "system_percent_used"},
        )  # fmt: skip
        self.assertTrue(1 < now["process_rss_mb"] <= min(now["process_peak_rss_mb"], now["process_vms_mb"]), now)
        used = (now["system_total_mb"] - now["system_available_mb"]) / now["system_total_mb"] * 100
        self.assertAlmostEqual(now["system_percent_used"], used)
        with open("/proc/self/statm", encoding="ascii") as text:
            pages = int(text.read().split()[1])
        self.assertAlmostEqual(now["process_rss_mb"], pages * os.sysconf("SC_PAGE_SIZE") / 2**20, delta=4)

    # covers G0.9
    def test_the_one_line_form(self):
        line = printed(edgeprof.MemoryMonitor().print_snapshot, "after load")
        self.assertRegex(
            line, r"^\[after load\] RSS: \d+\.\dMB \(peak: \d+\.\dMB\) \| System: \d+% used \(\d+MB free\)\n$"
        )

    # covers G2.4
    def test_threshold(self):
        m = edgeprof.MemoryMonitor(threshold_mb=1.0)
        row = m.check_memory_usage()
        self.assertEqual(
            set(row), {"current_mb", "peak_mb", "available_mb", "percent_used", "threshold_exceeded"}
        )
        self.assertIs(row["threshold_exceeded"], True)
        self.assertEqual(m.threshold, 2**20)
        self.assertAlmostEqual(m.peak_usage / 2**20, row["peak_mb"])
        self.assertEqual(len(m.allocation_history[0:1]), 1)
        self.assertEqual(m.snapshot()["process_peak_rss_mb"], m.check_memory_usage()["peak_mb"])
        self.assertIs(edgeprof.MemoryMonitor(1e6).check_memory_usage()["threshold_exceeded"], False)
        self.assertEqual(edgeprof.MemoryMonitor().threshold, 100 * 2**20)

    # covers G4.8
    def test_scope_finds_a_peak_that_is_gone_at_the_end(self):
        with edgeprof.memory_scope("load") as m:
            data = bytearray(64 << 20)
            for i in range(0, len(data), 4096):
                data[i] = 1
            time.sleep(0.05)
            del data
        self.assertGreater(m.delta_bytes, 55 << 20)
        self.assertEqual(m.delta_bytes, m.peak_bytes - m.before_bytes)
        self.assertLess(m.after_bytes, m.before_bytes + (32 << 20))
        self.assertEqual(set(m.as_dict()), {"before_bytes", "peak_bytes", "after_bytes", "delta_bytes"})
        self.assertEqual([t for t in threading.enumerate() if t.name == "edgeprof-memory"], [])
        row = edgeprof.profile_memory(lambda n: b"x" * n, 90 << 20)
        self.assertGreater(row["delta_bytes"], 60 << 20)
        self.assertEqual(len(row["result"]), 90 << 20)

    # covers G2.3 (the warning)
    def test_memory_optimized_tells_growth(self):
        kept = []

        @edgeprof.memory_optimized
        def grow(n):
            kept.append(b"x" * n)
            return n

        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(grow(100), 100)
            self.assertEqual(err.getvalue(), "")
            grow(40 << 20)
        self.assertRegex(err.getvalue(), r"^High memory usage in grow: \d\d\.\dMB\n$")


class Models(unittest.TestCase):
    # covers G4.2
    def test_size_of_a_file_and_of_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "sub").mkdir()
            (root / "a.bin").write_bytes(bytes(3 << 20))
            (root / "sub" / "b.bin").write_bytes(bytes(1 << 20))
            self.assertEqual(edgeprof.analyze_model_size(root / "a.bin")["size_mb"], 3.0)
            row = edgeprof.analyze_model_size(folder)
            self.assertEqual((row["size_bytes"], row["size_mb"], row["size_gb"]), (4 << 20, 4.0, 4 / 1024))
            self.assertRaises(OSError, edgeprof.analyze_model_size, root / "none")

    # covers G4.2
    def test_links_of_a_model_hub_are_followed_and_a_file_counts_once(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for part in ("blobs", "snapshot/sub"):
                (root / part).mkdir(parents=True)
            (root / "blobs/b").write_bytes(bytes(3 << 20))
            (root / "snapshot/model.onnx").symlink_to("../blobs/b")
            (root / "snapshot/sub/again").symlink_to("../../blobs/b")
            (root / "snapshot/sub/loop").symlink_to("..")
            (root / "snapshot/gone").symlink_to("nothing")
            for path in (root, root / "snapshot", root / "snapshot/model.onnx"):
                self.assertEqual(edgeprof.analyze_model_size(path)["size_bytes"], 3 << 20)

    # covers G4.3
    def test_comparison_against_the_first(self):
        def broken():
            raise RuntimeError("no delegate")

        rows = edgeprof.compare_models(
            [
                {"name": "float", "latency_ms": 20.0, "accuracy": 0.75},
                {"name": "int8", "latency_ms": 8.0, "accuracy": 0.74},
                {"name": "bad", "run": broken},
                {"name": "timed", "run": lambda: time.sleep(0.001)},
            ],
            iterations=3,
            warmup=0,
        )
        self.assertEqual([row["name"] for row in rows], ["float", "int8", "bad", "timed"])
        self.assertEqual((rows[0]["accuracy_diff"], rows[0]["speedup"]), (0.0, 1.0))
        self.assertAlmostEqual(rows[1]["accuracy_diff"], -0.01)
        self.assertEqual(rows[1]["speedup"], 2.5)
        self.assertEqual((rows[2]["error"], rows[2]["latency_ms"]), ("RuntimeError: no delegate", None))
        self.assertGreaterEqual(rows[3]["latency_ms"], 1.0)

    def test_comparison_by_name_with_data(self):
        seen = []
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.bin"
            path.write_bytes(bytes(1 << 20))
            rows = edgeprof.compare_models(
                {"float": path, "int8": str(path), "callable": seen.append},
                [1, 2],
                iterations=3,
                warmup=0,
                load=lambda p: lambda data: seen.append((p, data)),
            )
            missing = edgeprof.compare_models({"x": path}, None)[0]
        self.assertEqual([row["name"] for row in rows], ["float", "int8", "callable"])
        self.assertEqual((rows[0]["size_mb"], rows[0]["speedup"]), (1.0, 1.0))
        self.assertEqual(seen, [(path, [1, 2])] * 3 + [(str(path), [1, 2])] * 3 + [[1, 2]] * 3)
        self.assertTrue(all(row["latency_ms"] > 0 for row in rows), rows)
        self.assertIn("no TensorFlow Lite runtime", missing["error"])

    # covers G4.1
    def test_benchmark_of_a_model(self):
        class Net:
            calls = 0

            def predict(self, data):
                Net.calls += 1

        self.assertEqual(edgeprof.benchmark_model(Net(), [0], iterations=5, warmup=2)["count"], 5)
        self.assertEqual(Net.calls, 7)
        self.assertRaises(TypeError, edgeprof.benchmark_model, object(), [0])

    def test_parameters_are_counted(self):
        class Array:
            def __init__(self, size):
                self.size = size

        class Keras:
            def count_params(self):
                return 12

        class Torch:
            class Tensor:
                def numel(self):
                    return 5

            def parameters(self):
                return iter([self.Tensor(), self.Tensor()])

        models = ({"w": Array(6), "b": Array(2)}, Keras(), Torch(), object())
        self.assertEqual([edgeprof.param_count(model) for model in models], [8, 12, 10, None])

    # covers G0.10
    def test_footprint_of_a_load(self):
        class Float32:
            itemsize = 4

        class Interpreter:
            def __init__(self, path):
                self.weights = bytearray(path.read_bytes()) * 20

            def get_input_details(self):
                return [{"shape": [1, 320, 320, 3], "dtype": Float32}]

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.tflite"
            path.write_bytes(b"x" * (1 << 20))
            row = edgeprof.measure_model_footprint(path, Interpreter)
            told = edgeprof.measure_model_footprint(path, Interpreter, num_threads=2)
            self.assertRaisesRegex(ValueError, "TensorFlow Lite", edgeprof.measure_model_footprint, path)
        self.assertEqual(row["file_size_mb"], 1.0)
        self.assertGreater(row["peak_memory_mb"], 15)
        self.assertEqual(row["input_tensor_sizes_kb"], [1200.0])
        self.assertEqual((row["output_tensor_sizes_kb"], row["num_threads"]), ([], None))
        self.assertEqual(told["num_threads"], 2)


if __name__ == "__main__":
    support.main()
