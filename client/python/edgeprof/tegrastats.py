# SPDX-License-Identifier: Apache-2.0
"""Lines of tegrastats in the guides' simple scheme. (`edgeprofctl parse tegrastats` gives the full
one.) tegrastats runs until it is stopped: a snapshot is one line of a child that is then terminated."""
import os
import re
import selectors
import signal
import subprocess
import time
from typing import Any, Dict, List, Optional, Tuple

_RAM = re.compile(r"(?:^|\s)RAM (\d{1,9})/(\d{1,9})MB(?=\s|$)")
_CPU = re.compile(r"(?:^|\s)CPU \[([^\]\s]*)\](?:@\d+)?(?=\s|$)", re.IGNORECASE)
_CORE = re.compile(r"(\d{1,3})%(?:@\d+)?$")
_GPU = re.compile(r"(?:^|\s)GR3D(?:_FREQ)? (\d{1,3})%(?=[@\s]|$)")
_TEMPERATURE = re.compile(r"(?:^|\s)([^\s@\[\]]+)@(-?\d{1,4}(?:\.\d{1,6})?)C(?=/|\s|$)")
_RAIL = re.compile(
    r"(?:^|\s)([A-Za-z][^\s@\[\]]*) (-?\d{1,7})"
    r"(?:mW|(?:mW)?/-?\d{1,7}(?:mW)?(?:/-?\d{1,7}mW)?)(?=\s|$)"
)
_INPUTS = ("VIN", "VDD_IN", "POM_5V_IN")  # already the total: never added to their own rails
_LEFT_OUT = ("NC", "VDDQ_VDD2_1V8AO")  # not connected, or measured behind another rail
_PROGRAM = "tegrastats"


def _percent(text: str) -> Optional[int]:
    value = int(text)
    return value if value <= 100 else None


def _core(word: str) -> Optional[int]:
    match = _CORE.match(word)
    return _percent(match.group(1)) if match else None


def _rails(line: str) -> Dict[str, int]:
    rails: Dict[str, int] = {}
    for match in _RAIL.finditer(line):
        name, number = match.group(1), 2
        while name in rails:
            name = "%s#%d" % (match.group(1), number)
            number += 1
        rails[name] = int(match.group(2))
    return rails


def _total(rails: Dict[str, int]) -> Tuple[Optional[int], Optional[str]]:
    for name in _INPUTS:
        if name in rails:
            return rails[name], name
    parts = [mw for name, mw in rails.items() if name.split("#")[0] not in _LEFT_OUT]
    return (sum(parts), "sum") if parts else (None, None)


def parse_tegrastats_line(line: str) -> Dict[str, Any]:
    """ram_used_mb, ram_total_mb, cpu_loads_percent (None for a core that is off), cpu_avg_percent
    (over the cores that are on), gpu_percent, temperatures {name: celsius, None = offline}, power_mw
    {rail: mW now}, total_power_mw and total_power_source (an input rail, or "sum"). What the line does
    not tell is None or empty; a word that is not understood never loses the rest. TypeError: not str."""
    ram = _RAM.search(line)
    cpu = _CPU.search(line)
    gpu = _GPU.search(line)
    loads: List[Optional[int]] = [_core(w) for w in cpu.group(1).split(",")] if cpu else []
    on = [load for load in loads if load is not None]
    temperatures: Dict[str, Optional[float]] = {}
    for match in _TEMPERATURE.finditer(line):
        celsius = float(match.group(2))
        temperatures[match.group(1)] = celsius if -200 < celsius <= 1000 else None
    rails = _rails(line)
    total, source = _total(rails)
    return {
        "ram_used_mb": int(ram.group(1)) if ram else None,
        "ram_total_mb": int(ram.group(2)) if ram else None,
        "cpu_loads_percent": loads,
        "cpu_avg_percent": sum(on) / len(on) if on else None,
        "gpu_percent": _percent(gpu.group(1)) if gpu else None,
        "temperatures": temperatures,
        "power_mw": rails,
        "total_power_mw": total,
        "total_power_source": source,
    }


def _end(child: "subprocess.Popen[bytes]") -> None:
    """SIGTERM, a second, SIGKILL, to its whole group: sudo may stand between."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except OSError:
            pass
        try:
            child.wait(1.0)
            return
        except subprocess.TimeoutExpired:
            continue


def _first_line(child: "subprocess.Popen[bytes]", timeout: float) -> Optional[str]:
    assert child.stdout is not None
    data = b""
    end = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while b"\n" not in data and len(data) < 65536:
            left = end - time.monotonic()
            if left <= 0 or not selector.select(left):
                return None
            more = os.read(child.stdout.fileno(), 4096)
            if not more:
                return None
            data += more
    return data.split(b"\n")[0].decode("utf-8", "replace")


def read_tegrastats_snapshot(timeout: float = 5.0) -> Optional[Dict[str, Any]]:
    """parse_tegrastats_line() of one fresh line; None without tegrastats or without a line in time."""
    try:
        child = subprocess.Popen(
            [_PROGRAM, "--interval", "500"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    try:
        line = _first_line(child, timeout)
    finally:
        _end(child)
        if child.stdout is not None:
            child.stdout.close()
    return None if line is None else parse_tegrastats_line(line)
