# SPDX-License-Identifier: Apache-2.0
"""The guides' stage timers: whole and local (every run is kept, so the report is exact), and reported to
the daemon as well."""
import atexit
import collections
import contextlib
import json
import os
import sys
import tempfile
import time
from typing import Any, Deque, Dict, Iterator, List, Optional

from . import _layout as L
from ._recorder import Profiler, emit, process
from ._values import is_failure, say
from .stats import summary_ms


def write_atomically(path: Any, text: str) -> None:
    """The file is the old one or the whole new one, also after a power cut. OSError."""
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=".edgeprof-", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class StageProfiler(Profiler):  # type: ignore[misc]
    """start(name), stop(): one open stage at a time. A stop without a start is ignored and counted
    (orphan_end), a start over an open start discards that one and counts it (abandoned).

    timings: {stage: [milliseconds]} in first-seen order. Prints its report when the program ends,
    unless print_report() has already printed everything."""

    _declare = staticmethod(process.declare)

    def __init__(self) -> None:
        self.timings: Dict[str, List[float]] = collections.defaultdict(list)
        self._names = process.names
        self._told = 0
        self._pid = os.getpid()
        _profilers.append(self)

    @contextlib.contextmanager
    def stage(self, stage_name: str) -> Iterator[None]:
        """start and stop around a body, also when it raises."""
        self.start(stage_name)
        try:
            yield
        finally:
            self.stop()

    def report(self) -> Dict[str, Dict[str, float]]:
        """{stage: count, mean_ms, median_ms, p50_ms, p90_ms, p95_ms, p99_ms, min_ms, max_ms, std_ms,
        std_sample_ms}, and `_total`: mean_ms = the sum of the stages' means, max_fps = 1000 / mean_ms
        (0 when there is none). A stage named `total` holds the others: it is not added to them."""
        stages = {name: summary_ms(values) for name, values in self.timings.items() if values}
        total = sum(row["mean_ms"] for name, row in stages.items() if name != "total")
        stages["_total"] = {"mean_ms": total, "max_fps": 1000.0 / total if total else 0.0}
        return stages

    def format_report(self) -> str:
        """The table PIPELINE PROFILING REPORT: one decimal, stages in first-seen order."""
        report = self.report()
        total = report.pop("_total")
        width = max([len("Stage"), *map(len, report)])
        lines = ["PIPELINE PROFILING REPORT"]
        form = "%-*s  %10s  %10s  %10s  %7s"
        lines.append(form % (width, "Stage", "Mean (ms)", "P95 (ms)", "P99 (ms)", "Count"))
        for name, row in report.items():
            cells = ["%.1f" % row[key] for key in ("mean_ms", "p95_ms", "p99_ms")]
            lines.append(form % (width, name, *cells, "%d" % row["count"]))
        lines.append("%-*s  %10.1f" % (width, "TOTAL", total["mean_ms"]))
        lines.append("%-*s  %10.1f" % (width, "MAX FPS", total["max_fps"]))
        return "\n".join(lines)

    def print_report(self) -> None:
        self._told = self._runs()
        print(self.format_report())

    def export_json(self, path: Any) -> None:
        """Writes report() to path, atomically. OSError."""
        write_atomically(path, json.dumps(self.report(), indent=2) + "\n")

    def _runs(self) -> int:
        return sum(map(len, self.timings.values()))

    def _at_exit(self) -> None:
        if self._pid == os.getpid() and self._runs() > self._told:
            self.print_report()


# the last 16 are kept for the report at the end; a program that makes more prints its own
_profilers: Deque[StageProfiler] = collections.deque(maxlen=16)


@atexit.register
def _report_all() -> None:
    for profiler in _profilers:
        try:
            profiler._at_exit()
            sys.stdout.flush()
        except (OSError, ValueError):  # nobody reads any more
            return


class stage_timer:
    """`with stage_timer("load"):` prints `[load] 12.34ms`; with results_dict it appends the milliseconds
    to the list under the label there instead. Records also when the body raises. TypeError,
    ValueError: wrong label."""

    def __init__(self, label: str, results_dict: Optional[Dict[str, List[float]]] = None) -> None:
        process.declare(label)
        self.label = label
        self.elapsed_ms = 0.0
        self._results = results_dict
        self._start = 0

    def __enter__(self) -> "stage_timer":
        self._start = time.monotonic_ns()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        end = time.monotonic_ns()
        self.elapsed_ms = (end - self._start) / 1e6
        failed = L.FAILED if is_failure(kind) else 0
        index, duration = process.declare(self.label), end - self._start
        emit(index, L.COMPLETE, duration, failed, L.NOT_MEASURED, self._start)
        if self._results is not None:
            self._results.setdefault(self.label, []).append(self.elapsed_ms)
            if process.print:
                say(self.label, duration)
        else:
            print("[%s] %.2fms" % (self.label, self.elapsed_ms))
