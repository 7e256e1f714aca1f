# SPDX-License-Identifier: Apache-2.0
"""Temperatures of thermal zones, and the guides' ThermalMonitor."""
import collections
import fnmatch
import os
import threading
import time
from typing import Any, Deque, Dict, List, Optional, Tuple

from .rpi import throttle_word
from .stats import mean

_ZONES = "/sys/class/thermal"
# constants: the PMIC of Jetsons (50 or 100 C), Intel's 20 C pseudo zone
_UNREAL = ("PMIC-Die*", "PMIC", "INT3400*")


def _zones() -> List[Tuple[str, str, float]]:
    """(thermal_zoneN, type, celsius) by number; a zone that cannot be read is skipped alone."""
    try:
        names = [n for n in os.listdir(_ZONES) if n.startswith("thermal_zone") and n[12:].isdigit()]
    except OSError:
        return []
    zones = []
    for name in sorted(names, key=lambda n: int(n[12:])):
        folder = os.path.join(_ZONES, name)
        try:
            with open(os.path.join(folder, "temp"), "rb", buffering=0) as file:
                celsius = int((file.read(64) or b"").strip()) / 1000.0
        except (OSError, ValueError):  # EAGAIN: a part that sleeps; never tried again at once
            continue
        if celsius <= -200:
            continue  # how some drivers spell offline
        try:
            with open(os.path.join(folder, "type"), encoding="utf-8", errors="replace") as text:
                kind = text.read(128).strip()
        except OSError:
            kind = ""
        zones.append((name, kind, celsius))
    return zones


def read_temperature_linux() -> Dict[str, float]:
    """{"thermal_zone0": celsius, …}: every zone that can be read; {} when there is none."""
    return {name: celsius for name, _, celsius in _zones()}


def max_temperature() -> Tuple[Optional[float], Dict[str, float]]:
    """(the hottest real zone or None, all zones)."""
    zones = _zones()
    real = [c for _, kind, c in zones if not any(fnmatch.fnmatchcase(kind, u) for u in _UNREAL)]
    return (max(real) if real else None), {name: celsius for name, _, celsius in zones}


class ThermalMonitor:
    """Samples the hottest zone every interval seconds from a thread, keeps 100 samples, and prints
    each transition once: `THERMAL WARNING: 76.2C (threshold: 75.0)`, CRITICAL alike.

    history: {"timestamp" (s since the epoch), "max_temp_c", "all_temps": {zone: celsius}}.
    Throttling is what the hardware says (the daemon's answer, else a Pi's firmware), not a temperature:
    that is over_critical. ValueError: interval not above 0."""

    def __init__(
        self, warn_temp: float = 75.0, critical_temp: float = 82.0, interval: float = 5.0
    ) -> None:
        if not interval > 0:
            raise ValueError("interval must be above 0")
        self.warn_temp = warn_temp
        self.critical_temp = critical_temp
        self.interval = interval
        self.history: Deque[Dict[str, Any]] = collections.deque(maxlen=100)
        self.is_throttling: Optional[bool] = None
        self._level = 0
        self._wake = threading.Event()
        self._thread: Optional[threading.Thread] = None

    @property
    def stopped(self) -> bool:
        return self._thread is None or not self._thread.is_alive()

    def start(self) -> "ThermalMonitor":
        """Starts the thread unless it runs. Returns itself."""
        if self.stopped:
            self._wake.clear()
            self._thread = threading.Thread(target=self._run, name="edgeprof-thermal", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Ends the thread and waits for it (at most 5 s)."""
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)

    def __enter__(self) -> "ThermalMonitor":
        return self.start()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.stop()

    def _run(self) -> None:
        while True:
            self.sample()
            if self._wake.wait(self.interval):
                return

    def sample(self) -> None:
        """One sample now; without a real zone there is none."""
        hottest, zones = max_temperature()
        self.is_throttling = self._ask_hardware()
        if hottest is None:
            return
        self.history.append({"timestamp": time.time(), "max_temp_c": hottest, "all_temps": zones})
        self._tell(hottest)

    def _tell(self, celsius: float) -> None:
        level = 2 if celsius >= self.critical_temp else 1 if celsius >= self.warn_temp else 0
        before, self._level = self._level, level
        if level > before:
            words = ("WARNING", self.warn_temp) if level == 1 else ("CRITICAL", self.critical_temp)
            print("THERMAL %s: %.1fC (threshold: %s)" % (words[0], celsius, words[1]), flush=True)

    def _ask_hardware(self) -> Optional[bool]:
        from .client import Client, Unreachable, VarlinkError

        try:
            with Client(timeout=1.0, retries=0) as client:
                answer = client.query("GetThrottle").get("is_throttling")
            if answer is not None:
                return bool(answer)
        except (Unreachable, VarlinkError, TimeoutError):
            pass
        word = throttle_word()[0]
        return None if word is None else bool(word & 0xE)  # under-voltage alone slows nothing down

    def current_temp(self) -> Optional[float]:
        """The hottest real zone now, in degrees Celsius; None when there is none."""
        return max_temperature()[0]

    def report(self) -> Dict[str, Any]:
        """current_c, mean_c, max_c, min_c, samples, is_throttling (None = unknown), over_critical;
        {"status": "no data"} before the first sample."""
        samples = [entry["max_temp_c"] for entry in list(self.history)]
        if not samples:
            return {"status": "no data"}
        return {
            "current_c": samples[-1],
            "mean_c": mean(samples),
            "max_c": max(samples),
            "min_c": min(samples),
            "samples": len(samples),
            "is_throttling": self.is_throttling,
            "over_critical": samples[-1] >= self.critical_temp,
        }
