# SPDX-License-Identifier: Apache-2.0
"""The guides' frame counters. fps = (n-1)/(last - first) of the ticks; fps_mean is the mean of 1/dt:
they differ. Every tick is also a frame for the daemon."""
import collections
import time
from typing import Any, Deque, Dict, List, Optional

from ._record import tick
from .stats import deviation, mean, percentile


class FPSCounter:
    """FPS over the last window_size ticks. timestamps: seconds of time.perf_counter()."""

    def __init__(self, window_size: int = 60) -> None:
        self.window_size = window_size
        self.timestamps: Deque[float] = collections.deque(maxlen=window_size)

    def tick(self) -> None:
        """Counts one frame."""
        self.timestamps.append(time.perf_counter())
        tick()

    @property
    def fps(self) -> float:
        """0.0 below two ticks."""
        if len(self.timestamps) < 2:
            return 0.0
        elapsed = self.timestamps[-1] - self.timestamps[0]
        return (len(self.timestamps) - 1) / elapsed if elapsed > 0 else 0.0

    @property
    def frame_time_ms(self) -> float:
        """1000 / fps; 0.0 below two ticks."""
        fps = self.fps
        return 1000.0 / fps if fps else 0.0


class DetailedFPSCounter:
    """Statistics of the last window_size frame times. frame_times: seconds; last_tick: seconds of
    time.perf_counter(), None before the first tick. A frame time of 0 has no rate: it is excluded from
    the rates and counted in zero_deltas."""

    def __init__(self, window_size: int = 300) -> None:
        self.window_size = window_size
        self.frame_times: Deque[float] = collections.deque(maxlen=window_size)
        self.last_tick: Optional[float] = None

    def tick(self) -> None:
        """Counts one frame."""
        now = time.perf_counter()
        if self.last_tick is not None:
            self.frame_times.append(now - self.last_tick)
        self.last_tick = now
        tick()

    @property
    def zero_deltas(self) -> int:
        return sum(1 for dt in self.frame_times if dt <= 0)

    def _rates(self) -> List[float]:
        return sorted(1.0 / dt for dt in self.frame_times if dt > 0)

    @property
    def fps_mean(self) -> float:
        """The mean of 1/dt; 0.0 when there is too little."""
        return mean(self._rates()) if len(self.frame_times) >= 2 else 0.0

    def report(self) -> Dict[str, Any]:
        """fps_mean, fps_min, fps_max, fps_p5, fps_p95, frame_time_mean_ms, frame_time_p95_ms,
        frame_time_p99_ms, frame_count, jitter_ms; {"fps_mean": 0, "status": "insufficient data"} below
        two frame times."""
        if len(self.frame_times) < 2:
            return {"fps_mean": 0, "status": "insufficient data"}
        rates = self._rates()
        times = sorted(dt * 1000.0 for dt in self.frame_times)
        return {
            "fps_mean": mean(rates),
            "fps_min": rates[0] if rates else 0.0,
            "fps_max": rates[-1] if rates else 0.0,
            "fps_p5": percentile(rates, 5),
            "fps_p95": percentile(rates, 95),
            "frame_time_mean_ms": mean(times),
            "frame_time_p95_ms": percentile(times, 95),
            "frame_time_p99_ms": percentile(times, 99),
            "frame_count": len(times),
            "jitter_ms": deviation(times),
        }
