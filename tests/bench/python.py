#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs a Python program, under the distribution's interpreter, attached to a daemon: the forms
of edgeprof beside the profilers that the guides for edge devices show and an empty `with`. In random order in
the same run, medians of rounds. With a module that was built with its C extension, and in pure Python."""
import asyncio
import collections
import contextlib
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
INTERPRETER = "/usr/bin/python3"
SHORT = sys.argv[-1] == "short"
ROUNDS, CALLS = (2, 50) if SHORT else (300, 100)  # most of such short rounds are not interrupted


class GuideProfiler:
    """As the guides describe it: perf_counter_ns, one open stage, a list of milliseconds a stage."""

    def __init__(self):
        self.timings = collections.defaultdict(list)
        self._current_stage = None
        self._start_time = None

    def start(self, stage_name):
        self._current_stage = stage_name
        self._start_time = time.perf_counter_ns()

    def stop(self):
        if self._start_time is None:
            return
        elapsed_ms = (time.perf_counter_ns() - self._start_time) / 1_000_000
        self.timings[self._current_stage].append(elapsed_ms)
        self._start_time = None
        self._current_stage = None

    @contextlib.contextmanager
    def stage(self, stage_name):
        self.start(stage_name)
        try:
            yield
        finally:
            self.stop()


class Empty:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return None


def with_call(make, *words):
    def loop(calls):
        for _ in calls:
            with make(*words):
                pass

    return loop


def with_object(scope):
    def loop(calls):
        for _ in calls:
            with scope:
                pass

    return loop


def start_stop(profiler):
    def loop(calls):
        for _ in calls:
            profiler.start("infer")
            profiler.stop()

    return loop


def called(function):
    def loop(calls):
        for _ in calls:
            function()

    return loop


def capture():
    return True, None


def nothing(calls):
    for _ in calls:
        pass


def measure(flavour):
    import edgeprof

    edgeprof.connect("bench")
    loops = {
        "nothing": nothing, "empty": with_object(Empty()), "guide with": with_call(GuideProfiler().stage, "infer"),
        "guide start": start_stop(GuideProfiler()), "stage": with_call(edgeprof.stage, "infer"),
        "frame": with_call(edgeprof.frame), "kept": with_object(edgeprof.stage("infer")),
        "profiler": start_stop(edgeprof.StageProfiler()),
    }  # fmt: skip
    if flavour == "pure":
        from edgeprof._wrap import Row, _timed

        row = Row("capture", "capture", "capture", begins_frame=True)
        loops.update(capture=called(capture), wrapped=called(_timed(capture, row, "bench")))
    times = collections.defaultdict(list)

    def run(loops):
        for _ in range(ROUNDS):
            for name in random.sample(list(loops), len(loops)):
                begin = time.perf_counter_ns()
                loops[name](range(CALLS))
                times[name].append((time.perf_counter_ns() - begin) / CALLS)
                # a round has no pauses: what is measured is a stage that is recorded
                patience = time.monotonic() + 1
                while edgeprof.counts()["in_ring"] > 1000 and time.monotonic() < patience:
                    time.sleep(0.002)

    async def task():
        run({"task": loops["stage"]})

    run(loops)
    asyncio.run(task())  # the last: from the first stage in a running loop on, each is one of a task
    cost = {name: statistics.median(list_) - statistics.median(times["nothing"]) for name, list_ in times.items()}
    if flavour == "pure":
        print(f"python.pure.stage {cost['stage']:.6g}\npython.pure.stage.floor {cost['guide with']:.6g}")
        print(f"python.pure.task {cost['task']:.6g}")
        print(f"python.pure.kept {cost['kept'] / cost['stage']:.6g}")
        print(f"python.pure.wrapped {(cost['wrapped'] - cost['capture']) / cost['guide with']:.6g}")
    else:
        print(f"python.fast.task {cost['task']:.6g}")
        for name, floor in (("stage", "guide with"), ("frame", "empty"), ("kept", "empty"), ("profiler", "guide start")):
            print(f"python.fast.{name} {cost[name]:.6g}\npython.fast.{name}.floor {cost[floor]:.6g}")
    sys.stdout.flush()
    counts = edgeprof.counts()
    exact = counts["sent"] == counts["received"] + counts["dropped"] + counts["in_ring"] and counts["sent"] > 0
    os._exit(0 if exact else 1)  # StageProfiler would print its report


def module_path(harness):
    """Where the module is with its extension, else its source."""
    built = next((harness.BUILD / "client" / "python").glob("**/_fast*.so"), None)
    if built and (built.parent / "__init__.py").exists():
        return built.parent.parent
    return harness.SOURCE / "client" / "python"


def main():
    from common import harness, skipped

    wanted = [f"python.fast.{name}" for name in ("stage", "frame", "kept", "profiler", "task")]
    if not os.access(INTERPRETER, os.X_OK):
        return skipped(*wanted, *(f"python.pure.{name}" for name in ("stage", "kept", "wrapped", "task")), why=f"no {INTERPRETER}")
    failed = 0
    with harness.Daemon() as daemon:
        path = module_path(harness)
        env = dict(daemon.env, PYTHONPATH=str(path), LD_LIBRARY_PATH=str(harness.BUILD / "client" / "libedgeprof"))
        for flavour in random.sample(["fast", "pure"], 2):
            env["EDGEPROF_PURE"] = str(int(flavour == "pure"))
            here = [INTERPRETER, str(HERE / "python.py"), flavour] + ["short"] * SHORT
            loads = subprocess.run([INTERPRETER, "-c", "import edgeprof._fast"], env=env, stderr=subprocess.DEVNULL)
            if flavour == "fast" and loads.returncode != 0:
                skipped(*wanted, why="no C extension", absent=True)
            else:
                failed |= subprocess.run(here, env=env).returncode
    return failed


if __name__ == "__main__":
    sys.exit(measure(sys.argv[1]) if sys.argv[1:2] in (["fast"], ["pure"]) else main())
