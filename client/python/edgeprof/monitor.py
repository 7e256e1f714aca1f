# SPDX-License-Identifier: Apache-2.0
"""The guides' RealTimePerformanceMonitor: what the machine does, at a steady rate, from a thread."""
import collections
import inspect
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Tuple

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


class PerformanceSnapshot(Dict[str, Any]):
    """One sample, as attributes and by key: timestamp (s since the epoch), cpu_usage (%), memory_usage
    (%), memory_bytes, temperature (celsius), power_consumption (mW), inference_latency (ms); None =
    unknown. AttributeError, KeyError: no such number."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class _Thresholds(Dict[str, Optional[float]]):
    """Limits by the names there are: a wrong name would be a limit that is never judged."""

    def __init__(self, *arguments: Any, **limits: Optional[float]) -> None:
        super().__init__()
        self.update(*arguments, **limits)

    def __ior__(self, limits: Any) -> "_Thresholds":
        self.update(limits)
        return self

    def __setitem__(self, key: str, value: Optional[float]) -> None:
        if key not in _JUDGED:
            raise KeyError("%r is not one of %s" % (key, ", ".join(_JUDGED)))
        super().__setitem__(key, value)

    def update(self, *arguments: Any, **limits: Optional[float]) -> None:
        for key, value in dict(*arguments, **limits).items():
            self[key] = value

    def setdefault(self, key: str, default: Optional[float] = None) -> Optional[float]:
        if key not in self:
            self[key] = default
        return self[key]


_JUDGED = {
    "temperature_celsius": "temperature",
    "memory_usage_percent": "memory_usage",
    "cpu_usage_percent": "cpu_usage",
    "power_consumption_mw": "power_consumption",
}


class RealTimePerformanceMonitor:
    """performance_history: the last 1000 samples (PerformanceSnapshot). alert_thresholds:
    temperature_celsius, memory_usage_percent, cpu_usage_percent, power_consumption_mw -> limit (None =
    no limit; KeyError for another name); temperature alerts at >=, the others above. on_alert(key,
    value, limit) is called once per crossing, from where the samples are taken. sampling_rate (Hz) is
    the rate at medium load: adaptive_rate doubles it under load and halves it at idle.
    ValueError: a rate not above 0."""

    def __init__(
        self,
        sampling_rate_hz: float = 10.0,
        on_alert: Optional[Callable[[str, float, float], Any]] = None,
    ) -> None:
        if not sampling_rate_hz > 0:
            raise ValueError("sampling_rate_hz must be above 0")
        self.sampling_rate = sampling_rate_hz
        self.on_alert = on_alert
        self.monitoring_active = False
        self.performance_history: Deque[PerformanceSnapshot] = collections.deque(maxlen=1000)
        self._thresholds = _Thresholds(
            temperature_celsius=85.0,
            memory_usage_percent=95.0,
            cpu_usage_percent=90.0,
            power_consumption_mw=None,  # only who knows the board knows its limit
        )
        self._firing: Dict[str, bool] = {}
        self._latency: Optional[float] = None
        self._power: Optional[float] = None
        self._power_due = 0.0
        self._before = _cpu_times()
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None

    @property
    def alert_thresholds(self) -> Dict[str, Optional[float]]:
        return self._thresholds

    @alert_thresholds.setter
    def alert_thresholds(self, limits: Dict[str, Optional[float]]) -> None:
        self._thresholds = _Thresholds(limits)

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

    def sample(self) -> PerformanceSnapshot:
        """Takes one sample into the history and returns it."""
        memory = system_memory()
        known = memory.total_bytes > 0
        return self._append(
            timestamp=time.time(),
            cpu_usage=self._cpu_usage(),
            memory_usage=memory.used_percent if known else None,
            memory_bytes=memory.total_bytes - memory.available_bytes if known else None,
            temperature=max_temperature()[0],
            power_consumption=self._power_now(),
            inference_latency=self._latency,
        )

    def _append(self, **numbers: Any) -> PerformanceSnapshot:
        row = PerformanceSnapshot(numbers)
        self.performance_history.append(row)
        self._judge(row)
        return row

    def check_alerts(self, row: Mapping[str, Any]) -> List[str]:
        """The keys of alert_thresholds that row is over."""
        over = []
        for key, limit in self.alert_thresholds.items():
            value = row.get(_JUDGED[key])
            if value is None or limit is None:
                continue
            if value >= limit if key == "temperature_celsius" else value > limit:
                over.append(key)
        return over

    def _judge(self, row: PerformanceSnapshot) -> None:
        over = self.check_alerts(row)
        for key, limit in self.alert_thresholds.items():
            if key in over and not self._firing.get(key) and self.on_alert and limit is not None:
                self.on_alert(key, row[_JUDGED[key]], limit)
            self._firing[key] = key in over

    def adaptive_rate(self, row: PerformanceSnapshot) -> float:
        """Samples a second after row: twice sampling_rate above 80 % CPU or 75 degrees, half of it below
        20 % CPU and 50 degrees. Unknown values are ignored."""
        cpu, celsius = row.cpu_usage, row.temperature
        if (cpu is not None and cpu > 80) or (celsius is not None and celsius > 75):
            return self.sampling_rate * 2.0
        if cpu is not None and cpu < 20 and (celsius is None or celsius < 50):
            return self.sampling_rate * 0.5
        return self.sampling_rate

    def start_monitoring(self, device: Any = None) -> Any:
        """Without device: starts a thread that samples this machine unless it runs, and returns the
        monitor. With a device, whose get_cpu_usage, get_memory_usage, get_temperature,
        get_power_consumption and measure_inference_latency are coroutines or plain methods: a coroutine
        that samples it until stop_monitoring() or monitoring_active = False."""
        self.monitoring_active = True
        if device is not None:
            return self._watch(device)
        if self._thread is None or not self._thread.is_alive():
            self._end.clear()
            self._thread = threading.Thread(target=self._run, name="edgeprof-monitor", daemon=True)
            self._thread.start()
        return self

    def stop_monitoring(self) -> None:
        self.monitoring_active = False
        self._end.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    start = start_monitoring
    stop = stop_monitoring

    def _run(self) -> None:
        due = time.monotonic()
        while self.monitoring_active:
            row = self.sample()
            # missed ones are not made up for
            due = max(due + 1.0 / self.adaptive_rate(row), time.monotonic())
            if self._end.wait(due - time.monotonic()):
                return

    async def _watch(self, device: Any) -> None:
        import asyncio  # as dear as all of this module: only for who has a loop already

        self.monitoring_active = True
        while self.monitoring_active:
            numbers = {"timestamp": time.time()}
            for name, method in _DEVICE.items():
                value = getattr(device, method)()
                numbers[name] = await value if inspect.isawaitable(value) else value
            row = self._append(**numbers)
            await asyncio.sleep(1.0 / self.adaptive_rate(row))


_DEVICE = {
    "cpu_usage": "get_cpu_usage",
    "memory_usage": "get_memory_usage",
    "temperature": "get_temperature",
    "power_consumption": "get_power_consumption",
    "inference_latency": "measure_inference_latency",
}
