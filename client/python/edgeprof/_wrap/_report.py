# SPDX-License-Identifier: Apache-2.0
"""The report of `edgeprof run`: the daemon's, else a table of what this process has counted itself."""
import collections
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from .._common import program
from .._layout import clean
from .._recorder import counts, process
from ..client import Client, VarlinkError
from ..stats import summary_ms

_RECENT = 10000  # runs of a stage that percentiles are of
_PATIENCE_S = 2.0
Key = Tuple[str, Optional[str]]


class Tally:
    """Durations in nanoseconds. Threads add without a lock: a program may fork at any time."""

    __slots__ = ("count", "total", "recent")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.recent: Deque[int] = collections.deque(maxlen=_RECENT)


frames = Tally()
tallies: Dict[Key, Tally] = {}
_expected: Dict[str, str] = {}
_DISABLED = process.off  # later on it is off because it has ended


def tally(name: str, unit: Optional[str]) -> Tally:
    if unit:
        expect(name, unit)
    return tallies.setdefault((name, unit), Tally())


def expect(name: str, unit: str) -> None:
    """The first unit of a stage is the expected one, as for the daemon."""
    _expected.setdefault(name, unit)


def _table() -> List[str]:
    names = {key: key[0] + ("@" + key[1] if key[1] else "") for key in tallies}
    width = max([len("Stage"), *map(len, names.values())])
    form = "%-*s  %10s  %10s  %10s  %7s%s"
    lines = [form % (width, "Stage", "Mean (ms)", "P95 (ms)", "P99 (ms)", "Count", "")]
    for (name, unit), one in list(tallies.items()):
        if not one.count:
            continue
        row = summary_ms([ns / 1e6 for ns in list(one.recent)])
        cells = ["%.1f" % ms for ms in (one.total / one.count / 1e6, row["p95_ms"], row["p99_ms"])]
        fallback = unit == "cpu" and _expected.get(name, "cpu") != "cpu"
        note = "  running on CPU fallback" if fallback else ""
        lines.append(form % (width, names[name, unit], *cells, one.count, note))
    if frames.count:
        mean_ms = frames.total / frames.count / 1e6
        lines.append("%-*s  %10.1f  %d frames" % (width, "FRAME", mean_ms, frames.count))
        lines.append("%-*s  %10.1f" % (width, "FPS", 1000 / mean_ms if mean_ms else 0))
    return lines


def _of_daemon(options: Any) -> Optional[str]:
    """The daemon's, once it has everything; None: it has nothing, or is too old to say."""
    own = counts()["received"] or counts()["in_ring"]
    if not own and not options.children:
        return None
    end = time.monotonic() + _PATIENCE_S
    while counts()["in_ring"] and time.monotonic() < end:
        time.sleep(0.01)
    try:
        with Client(timeout=_PATIENCE_S, retries=0) as client:
            app = process.app or clean(options.app or program())
            reply = client.query("GetReport", app=app.decode())
            return str(reply["text"]) if own or reply["since_us"] >= options.began_us else None
    except (OSError, ValueError, KeyError, VarlinkError):
        return None


def show(options: Any, say: Callable[[str], None], write: Callable[[str], None]) -> None:
    if _DISABLED:
        return
    text = _of_daemon(options)
    if text is None and not any(one.count for one in tallies.values()):
        what = "; child processes are not included" if options.children else ""
        say("nothing was measured: the program called nothing that is wrapped" + what)
        return
    if text is None:
        lines = ["PIPELINE PROFILING REPORT (without edgeprofd, of this process)", *_table()]
        if options.children:
            lines.append("Child processes are not included.")
        text = "\n".join(lines)
    write(text.rstrip("\n") + "\n")
