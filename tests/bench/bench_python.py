#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `with edgeprof.stage(name):` costs, attached to a real daemon, with a daemon gone and without
one: against the guides' StageProfiler behind a context manager, and against an empty `with`. In turns
in the same run, the median of many rounds. Figures, not verdicts."""
import collections
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "client" / "python"), str(ROOT / "tests" / "integration")]

ROUNDS, CALLS = 200, 500


class GuideStageProfiler:
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


def timed_loop(stage, name):
    calls = range(CALLS)
    begin = time.perf_counter_ns()
    for _ in calls:
        with stage(name):
            pass
    return (time.perf_counter_ns() - begin) / CALLS


def empty_loop():
    empty = Empty()
    calls = range(CALLS)
    begin = time.perf_counter_ns()
    for _ in calls:
        with empty:
            pass
    return (time.perf_counter_ns() - begin) / CALLS


def plain_loop():
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        pass
    return (time.perf_counter_ns() - begin) / CALLS


def measure(what, attached):
    import edgeprof

    edgeprof.connect("bench")
    guide = GuideStageProfiler()
    times = {"edgeprof": [], "guide": [], "empty": [], "loop": []}
    for _ in range(ROUNDS):
        times["loop"].append(plain_loop())
        times["empty"].append(empty_loop())
        times["guide"].append(timed_loop(guide.stage, "infer"))
        times["edgeprof"].append(timed_loop(edgeprof.stage, "infer"))
        # a round is 500 stages back to back: what is measured is a stage that is recorded
        patience = time.monotonic() + 1
        while attached and edgeprof.counts()["in_ring"] > 1000 and time.monotonic() < patience:
            time.sleep(0.002)
    loop = statistics.median(times["loop"])
    cost = {name: statistics.median(values) - loop for name, values in times.items()}
    print(
        "with stage(), %s: %.0f ns = %.2f x the guides' StageProfiler (%.0f ns) = %.1f x an empty with (%.0f ns)"
        % (what, cost["edgeprof"], cost["edgeprof"] / cost["guide"], cost["guide"],
           cost["edgeprof"] / cost["empty"], cost["empty"])
    )  # fmt: skip
    counts = edgeprof.counts()
    print("    " + ", ".join("%s %s" % pair for pair in counts.items()), flush=True)
    return counts["sent"] == counts["received"] + counts["dropped"] + counts["in_ring"]


def main():
    if len(sys.argv) > 1:
        return 0 if measure(sys.argv[1], sys.argv[1] == "attached") else 1
    import harness

    run = [sys.executable, __file__]
    with harness.Daemon() as daemon:
        failed = subprocess.run([*run, "attached"], env=daemon.env).returncode
    nobody = dict(os.environ, EDGEPROF_RUNTIME_DIR="/nonexistent")
    failed |= subprocess.run([*run, "no daemon"], env=nobody).returncode
    failed |= subprocess.run([*run, "disabled"], env=dict(nobody, EDGEPROF_DISABLE="1")).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
