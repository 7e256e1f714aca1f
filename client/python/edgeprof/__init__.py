# SPDX-License-Identifier: Apache-2.0
"""edgeprof - tell edgeprofd what your pipeline does, without noticing it yourself.

    import edgeprof

    edgeprof.connect("cam")                     # optional: the first event does it
    while True:
        with edgeprof.frame():
            with edgeprof.stage("capture"):
                image = camera.read()
            with edgeprof.stage("infer", unit="gpu"):
                boxes = model(image)

Standard library only, Python 3.8 or newer, Linux; an extension in C records where it was built
(EDGEPROF_PURE=1: it is not used). Recording makes no system call and takes no lock;
once a second the first event of that second looks whether a daemon is there. Nothing blocks, and
nothing is raised into the program because of the profiler: only TypeError and ValueError for wrong
arguments. What cannot be delivered is dropped and counted (counts()). After fork the child is a
process of its own. Every name here also works without a daemon.

EDGEPROF_RUNTIME_DIR names the daemon's run directory; else /run/edgeprofd, then
$XDG_RUNTIME_DIR/edgeprofd. EDGEPROF_DISABLE=1 switches recording off, EDGEPROF_PRINT=1 prints
`[stage] 12.34ms` on stderr at each end of a stage, EDGEPROF_MAPPING_SIZE is the shared memory in bytes
(65536 to 1048576 in powers of two; 262144)."""
from ._advice import Advice, advice, should_skip
from ._record import begin, counter, deadline, end, gauge, mark, tick
from ._recorder import connect, counts, frame, shutdown, stage, timed
from ._session import session, sweep
from .client import Client, Unreachable, VarlinkError
from .fps import DetailedFPSCounter, FPSCounter
from .memory import MemoryMonitor, memory_optimized, memory_scope, profile_memory
from .models import (
    analyze_model_size, benchmark_model, compare_models, measure_model_footprint, param_count,
)  # fmt: skip
from .monitor import PerformanceSnapshot, RealTimePerformanceMonitor
from .rpi import read_temperature_rpi, read_throttle_status_rpi
from .stages import StageProfiler, stage_timer
from .stats import benchmark, fast_statistical_analysis
from .tegrastats import parse_tegrastats_line, read_tegrastats_snapshot
from .thermal import ThermalMonitor, read_temperature_linux

__version__ = "0.1.0"
__all__ = [
    "Advice", "Client", "DetailedFPSCounter", "FPSCounter", "MemoryMonitor", "PerformanceSnapshot",
    "RealTimePerformanceMonitor",
    "StageProfiler", "ThermalMonitor", "Unreachable", "VarlinkError", "advice",
    "analyze_model_size", "begin",
    "benchmark", "benchmark_model", "compare_models", "connect", "counter", "counts", "deadline", "end",
    "fast_statistical_analysis", "frame", "gauge", "mark", "measure_model_footprint",
    "memory_optimized", "memory_scope", "param_count", "parse_tegrastats_line",
    "profile_memory",
    "read_tegrastats_snapshot", "read_temperature_linux", "read_temperature_rpi",
    "read_throttle_status_rpi", "session", "should_skip", "shutdown", "stage", "stage_timer", "sweep",
    "tick", "timed",
]  # fmt: skip
