# SPDX-License-Identifier: Apache-2.0
"""The words that mean the same number everywhere in edgeprof: percentiles by linear interpolation on
the sorted values, k = (n-1)*p/100 (numpy's default); std with ddof 0, std_sample with ddof 1."""
import math
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence, Tuple

from ._recorder import stage

def percentile(ascending: Sequence[float], p: float) -> float:
    """Percentile p (0 to 100) of ascending values; 0.0 when there are none."""
    if not ascending:
        return 0.0
    k = (len(ascending) - 1) * p / 100.0
    low = int(k)
    if k <= 0:
        return float(ascending[0])
    if low >= len(ascending) - 1:
        return float(ascending[-1])
    return ascending[low] + (k - low) * (ascending[low + 1] - ascending[low])


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def deviation(values: Sequence[float], ddof: int = 0) -> float:
    """Standard deviation; 0.0 when there are no more than ddof values."""
    if len(values) <= ddof:
        return 0.0
    middle = mean(values)
    return math.sqrt(math.fsum((v - middle) ** 2 for v in values) / (len(values) - ddof))


def _numbers(data: Any) -> Iterator[float]:
    """All numbers of an array or of nested sequences."""
    if hasattr(data, "ravel"):
        data = data.ravel()
    for item in data:
        if hasattr(item, "__iter__") and not isinstance(item, (str, bytes)):
            yield from _numbers(item)
        else:
            yield float(item)


def fast_statistical_analysis(data: Any) -> Tuple[float, float, float, float, float]:
    """(mean, std, p50, p95, p99) of numbers, of an array of any shape, or of nested sequences, in one
    sort; zeros when there are none. TypeError, ValueError: not numbers."""
    values: List[float] = sorted(_numbers(data))
    p50, p95, p99 = (percentile(values, p) for p in (50, 95, 99))
    return mean(values), deviation(values), p50, p95, p99


def summary_ms(milliseconds: Iterable[float]) -> Dict[str, float]:
    """All the fields of a stage (acceptance names) from durations in ms; zeros when there are none."""
    values = sorted(float(v) for v in milliseconds)
    p50 = percentile(values, 50)
    return {
        "count": len(values),
        "mean_ms": mean(values),
        "median_ms": p50,
        "p50_ms": p50,
        "p90_ms": percentile(values, 90),
        "p95_ms": percentile(values, 95),
        "p99_ms": percentile(values, 99),
        "min_ms": values[0] if values else 0.0,
        "max_ms": values[-1] if values else 0.0,
        "std_ms": deviation(values),
        "std_sample_ms": deviation(values, 1),
    }


def benchmark(
    fn: Callable[[], Any], iterations: int = 100, warmup: int = 10, name: str = ""
) -> Dict[str, float]:
    """Calls fn warmup times, then iterations times, and returns count, mean, std, std_sample, min, max,
    p50, p90, p95, p99 in ms (also as mean_ms …) and throughput_fps = max_fps = 1000 / mean.

    The measured calls are reported as the stage name, by default fn's. ValueError: iterations < 1."""
    if iterations < 1 or warmup < 0:
        raise ValueError("iterations must be at least 1 and warmup at least 0")
    for _ in range(warmup):
        fn()
    name = name or getattr(fn, "__name__", "") or "benchmark"
    durations = []
    for _ in range(iterations):
        with stage(name):
            begin = time.perf_counter_ns()
            fn()
            durations.append((time.perf_counter_ns() - begin) / 1e6)
    result = summary_ms(durations)
    for key in [key for key in result if key.endswith("_ms")]:
        result[key[:-3]] = result[key]
    fps = 1000.0 / result["mean_ms"] if result["mean_ms"] else 0.0
    result.update(throughput_fps=fps, max_fps=fps, iterations=iterations, warmup=warmup)
    return result
