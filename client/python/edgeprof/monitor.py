"""The guides' RealTimePerformanceMonitor: what the machine does, at a steady rate, from a thread."""
import collections
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from .client import Client, Unreachable, VarlinkError
from .memory import system_memory
from .thermal import max_temperature


def _cpu_times() -> Optional[Tuple[int, int]]:
    """(all, idle) jiffies of /proc/stat, user to steal."""
    try:
        with open("/proc/stat", "rb") as file:
            words = [int(w) for w in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return (sum(words), words[3] + words[4]) if len(words) >= 5 else None


class RealTimePerformanceMonitor:
    """performance_history: the last 1000 samples, {"timestamp" (s since the epoch), "cpu_usage" (%),
    "memory_usage" (%), "memory_bytes", "temperature" (celsius), "power_consumption" (mW),
    "inference_latency" (ms)}; None = unknown. alert_thresholds: key -> limit (None = no limit);
    temperature alerts at >=, the others above. on_alert(key, value, limit) is called once per
    crossing, from the sampling thread. ValueError: a rate not above 0."""

    def __init__(
        self,
        sampling_rate_hz: float = 10.0,
        on_alert: Optional[Callable[[str, float, float], Any]] = None,
    ) -> None:
        if not sampling_rate_hz > 0:
            raise ValueError("sampling_rate_hz must be above 0")
        self.sampling_rate_hz = sampling_rate_hz
        self.on_alert = on_alert
        self.performance_history: Deque[Dict[str, Any]] = collections.deque(maxlen=1000)
        self.alert_thresholds: Dict[str, Optional[float]] = {
            "cpu_usage": 90.0,
            "memory_usage": 95.0,
            "temperature": 85.0,
            "power_consumption": None,  # only who knows the board knows its limit
        }
        self._firing: Dict[str, bool] = {}
        self._latency: Optional[float] = None
        self._power: Optional[float] = None
        self._power_due = 0.0
        self._before = _cpu_times()
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def record_inference(self, latency_ms: float) -> None:
        """The newest inference_latency."""
        self._latency = float(latency_ms)

    def _cpu_usage(self) -> Optional[float]:
        now, before = _cpu_times(), self._before
        if now is None or before is None or now[0] <= before[0]:
            return None
        self._before = now
        busy = (now[0] - before[0]) - max(now[1] - before[1], 0)
        return max(busy, 0) / (now[0] - before[0]) * 100

    def _power_now(self) -> Optional[float]:
        """power/total of the daemon, asked at most once a second."""
        now = time.monotonic()
        if now >= self._power_due:
            self._power_due = now + 1.0
            self._power = None
            try:
                with Client(timeout=0.5, retries=0) as client:
                    rows = client.query("ListMetrics", glob="power/total").get("metrics", [])
                self._power = rows[0].get("value") if rows else None
            except (Unreachable, VarlinkError, TimeoutError, OSError):
                pass
        return self._power

    def sample(self) -> Dict[str, Any]:
        """Takes one sample into the history and returns it."""
        memory = system_memory()
        known = memory.total_bytes > 0
        row = {
            "timestamp": time.time(),
            "cpu_usage": self._cpu_usage(),
            "memory_usage": memory.used_percent if known else None,
            "memory_bytes": memory.total_bytes - memory.available_bytes if known else None,
            "temperature": max_temperature()[0],
            "power_consumption": self._power_now(),
            "inference_latency": self._latency,
        }
        self.performance_history.append(row)
        self._judge(row)
        return row

    def check_alerts(self, row: Dict[str, Any]) -> List[str]:
        """The keys of row that are over their limits."""
        over = []
        for key, limit in self.alert_thresholds.items():
            value = row.get(key)
            if value is None or limit is None:
                continue
            if value >= limit if key == "temperature" else value > limit:
                over.append(key)
        return over

    def _judge(self, row: Dict[str, Any]) -> None:
        over = self.check_alerts(row)
        for key, limit in self.alert_thresholds.items():
            if key in over and not self._firing.get(key) and self.on_alert and limit is not None:
                self.on_alert(key, row[key], limit)
            self._firing[key] = key in over

    def start_monitoring(self) -> "RealTimePerformanceMonitor":
        """Starts the thread unless it runs. Returns itself."""
        if self._thread is None or not self._thread.is_alive():
            self._end.clear()
            self._thread = threading.Thread(target=self._run, name="edgeprof-monitor", daemon=True)
            self._thread.start()
        return self

    def stop_monitoring(self) -> None:
        self._end.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    start = start_monitoring
    stop = stop_monitoring

    def _run(self) -> None:
        period = 1.0 / self.sampling_rate_hz
        due = time.monotonic()
        while True:
            self.sample()
            due = max(due + period, time.monotonic())  # missed ones are not made up for
            if self._end.wait(due - time.monotonic()):
                return
