# SPDX-License-Identifier: Apache-2.0
"""Memory of this process and of the machine, from /proc. The guides' MemoryMonitor, and the scope
that finds the peak between two moments."""
import functools
import gc
import os
import sys
import threading
import time
from io import open  # those of builtins are gone when late destructors run
from typing import Any, Callable, Dict, List, NamedTuple, Optional, TypeVar

from . import _layout as L
from ._recorder import emit, process
from ._values import is_failure, say

MIB = 1024 * 1024
_F = TypeVar("_F", bound=Callable[..., Any])


class ProcessMemory(NamedTuple):
    """Bytes; 0 = not reported by the kernel."""

    rss_bytes: int
    vms_bytes: int
    peak_rss_bytes: int


class SystemMemory(NamedTuple):
    """Bytes; 0 = not reported by the kernel."""

    total_bytes: int
    available_bytes: int

    @property
    def used_percent(self) -> float:
        """(total - available) / total * 100; 0.0 when unknown."""
        if not self.total_bytes:
            return 0.0
        return (self.total_bytes - self.available_bytes) / self.total_bytes * 100


def _fields(path: str) -> Dict[str, int]:
    """`Name:  123 kB` lines as bytes; {} when the file cannot be read."""
    fields = {}
    try:
        with open(path, "rb") as file:
            for line in file:
                name, _, rest = line.partition(b":")
                words = rest.split()
                if len(words) == 2 and words[1] == b"kB" and words[0].isdigit():
                    fields[name.decode("ascii", "replace")] = int(words[0]) * 1024
    except OSError:
        pass
    return fields


def rss_bytes() -> int:
    """Resident bytes of this process now (statm, whose pages are of sysconf's size); 0 = unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def process_memory() -> ProcessMemory:
    """This process, from /proc/self/status; peak is VmHWM."""
    fields = _fields("/proc/self/status")
    rss = rss_bytes() or fields.get("VmRSS", 0)
    return ProcessMemory(rss, fields.get("VmSize", 0), max(fields.get("VmHWM", 0), rss))


def system_memory() -> SystemMemory:
    """The machine, from /proc/meminfo. Kernels without MemAvailable: free + buffers + cached."""
    fields = _fields("/proc/meminfo")
    parts = [fields.get(name, 0) for name in ("MemFree", "Buffers", "Cached")]
    return SystemMemory(fields.get("MemTotal", 0), fields.get("MemAvailable", sum(parts)))


class memory_scope:
    """`with edgeprof.memory_scope("load") as m:` memory around a body: before_bytes, peak_bytes,
    after_bytes, delta_bytes = peak - before (0 until known). The peak is the largest of samples every
    10 ms from another thread and, when it rose meanwhile, of VmHWM. Reported as a stage of category
    "memory" with its growth of RSS. TypeError, ValueError: wrong label."""

    INTERVAL_S = 0.01

    def __init__(self, label: str) -> None:
        self.label = label
        self._index = process.declare(label, "memory")
        self.before_bytes = self.peak_bytes = self.after_bytes = 0
        self._hwm = self._start = 0
        self._cpu = 0
        self._end = threading.Event()
        self._sampler: Optional[threading.Thread] = None

    @property
    def delta_bytes(self) -> int:
        return max(self.peak_bytes - self.before_bytes, 0)

    def as_dict(self) -> Dict[str, int]:
        names = ("before_bytes", "peak_bytes", "after_bytes", "delta_bytes")
        return {name: getattr(self, name) for name in names}

    def _sample(self) -> None:
        while not self._end.wait(self.INTERVAL_S):
            self.peak_bytes = max(self.peak_bytes, rss_bytes())

    def __enter__(self) -> "memory_scope":
        memory = process_memory()
        self.before_bytes = self.peak_bytes = memory.rss_bytes
        self._hwm = memory.peak_rss_bytes
        self._end.clear()
        try:
            self._sampler = threading.Thread(target=self._sample, name="edgeprof-memory", daemon=True)
            self._sampler.start()
        except RuntimeError:  # no thread to be had: VmHWM and the ends are what is left
            self._sampler = None
        self._cpu = time.process_time_ns()
        self._start = time.monotonic_ns()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        end = time.monotonic_ns()
        cpu = time.process_time_ns() - self._cpu
        self._end.set()
        if self._sampler is not None:
            self._sampler.join()
        memory = process_memory()
        self.after_bytes = memory.rss_bytes
        self.peak_bytes = max(self.peak_bytes, memory.rss_bytes)
        if memory.peak_rss_bytes > self._hwm:
            self.peak_bytes = max(self.peak_bytes, memory.peak_rss_bytes)
        self._report(end, cpu, is_failure(kind))

    def _report(self, end: int, cpu: int, failed: bool) -> None:
        growth = (self.after_bytes - self.before_bytes) % (1 << 64)
        start, index, unknown = self._start, self._index, L.NOT_MEASURED
        emit(index, L.COST, cpu, 0, unknown, start, growth)
        emit(index, L.COMPLETE, end - start, L.FAILED if failed else 0, unknown, start)
        if process.print:
            say(self.label, end - start)


def profile_memory(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Dict[str, Any]:
    """Calls fn and returns before_bytes, peak_bytes, after_bytes, delta_bytes, and result."""
    with memory_scope(getattr(fn, "__name__", "") or "call") as scope:
        result = fn(*args, **kwargs)
    return {**scope.as_dict(), "result": result}


class MemoryMonitor:
    """The guides' monitor. peak_rss and peak_usage are one number, the larger of what was sampled and
    VmHWM, in bytes, as threshold is; allocation_history is a list of the last 1000 checks,
    {"timestamp", "current_mb"}. MB means MiB."""

    HISTORY = 1000

    def __init__(self, threshold_mb: float = 100.0) -> None:
        self.threshold = threshold_mb * MIB
        self.peak_rss = 0
        self.allocation_history: List[Dict[str, float]] = []

    @property
    def peak_usage(self) -> int:
        return self.peak_rss

    def _process(self) -> ProcessMemory:
        own = process_memory()
        self.peak_rss = max(self.peak_rss, own.peak_rss_bytes)
        return own

    def snapshot(self) -> Dict[str, float]:
        """process_rss_mb, process_vms_mb, process_peak_rss_mb, system_total_mb, system_available_mb,
        system_percent_used."""
        own, machine = self._process(), system_memory()
        return {
            "process_rss_mb": own.rss_bytes / MIB,
            "process_vms_mb": own.vms_bytes / MIB,
            "process_peak_rss_mb": self.peak_rss / MIB,
            "system_total_mb": machine.total_bytes / MIB,
            "system_available_mb": machine.available_bytes / MIB,
            "system_percent_used": machine.used_percent,
        }

    def print_snapshot(self, label: str = "") -> None:
        """Prints the one-line form, and marks the moment for the daemon."""
        now = self.snapshot()
        print(
            "%sRSS: %.1fMB (peak: %.1fMB) | System: %.0f%% used (%.0fMB free)"
            % (
                "[%s] " % label if label else "",
                now["process_rss_mb"],
                now["process_peak_rss_mb"],
                now["system_percent_used"],
                now["system_available_mb"],
            )
        )
        if label:
            from ._record import mark  # which reads the memory by this module

            mark(label)

    def check_memory_usage(self) -> Dict[str, Any]:
        """current_mb, peak_mb, available_mb, percent_used (RSS of the machine's total),
        threshold_exceeded."""
        own, machine = self._process(), system_memory()
        current_mb = own.rss_bytes / MIB
        self.allocation_history.append({"timestamp": time.time(), "current_mb": current_mb})
        del self.allocation_history[: -self.HISTORY]
        total = machine.total_bytes
        return {
            "current_mb": current_mb,
            "peak_mb": self.peak_usage / MIB,
            "available_mb": machine.available_bytes / MIB,
            "percent_used": own.rss_bytes / total * 100 if total else 0.0,
            "threshold_exceeded": own.rss_bytes > self.threshold,
        }


def memory_optimized(function: _F) -> _F:
    """A decorator: garbage is collected around each call, and a call that grows RSS by more than
    10 MiB says so on stderr: `High memory usage in NAME: x.xMB`."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        gc.collect()
        before = rss_bytes()
        try:
            return function(*args, **kwargs)
        finally:
            growth = (rss_bytes() - before) / MIB
            if growth > 10:
                print("High memory usage in %s: %.1fMB" % (function.__name__, growth), file=sys.stderr)
            gc.collect()

    return run  # type: ignore[return-value]
