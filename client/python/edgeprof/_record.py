# SPDX-License-Identifier: Apache-2.0
"""Everything that is not a stage: frames, ticks, marks, gauges, counters, deadlines, begin and end
by id."""
import time
from typing import Optional, Sequence, Union

from . import _layout as L
from ._recorder import emit, process
from ._values import double_bits, number, u64
from .memory import process_memory

def tick() -> None:
    """One frame went by: FPS without anything else."""
    emit(0, L.FRAME, 0)
    if process.on_frame is not None:
        process.on_frame(time.monotonic_ns(), 0)


def begin(name: str, id: int) -> None:
    """The stage `name` begins for `id` (0 to 2**64-1); many may be open, and any thread may end it.
    TypeError, ValueError: wrong arguments."""
    emit(process.declare(name), L.BEGIN, u64(id, "id", 1 << 64))


def end(name: str, id: int) -> None:
    """Ends what begin(name, id) began. One that was never begun is counted by the daemon."""
    emit(process.declare(name), L.END, u64(id, "id", 1 << 64))


def mark(label: str, **attributes: Union[float, Sequence[float]]) -> None:
    """A labelled moment on the timeline, with this process's memory and numbers (or lists of them) by
    name. TypeError, ValueError: wrong arguments."""
    index = process.declare_label(label)
    numbers, unknown = process.numbers(attributes), L.NOT_MEASURED
    memory = process_memory()
    now = time.monotonic_ns()
    if emit(index, L.MARK, memory.rss_bytes, 0, unknown, now):
        if memory.rss_bytes:
            emit(index, L.MARK_MEMORY, memory.vms_bytes, 0, unknown, now, memory.peak_rss_bytes)
        owner = index if index >= 0 else unknown
        for name, value in numbers:
            emit(name, L.ATTRIBUTE, double_bits(value), 0, owner, now)


def gauge(name: str, value: float, unit: Optional[str] = None) -> None:
    """The app's own number as a metric. unit ("percent", "bytes": one that metrics have) counts when the
    name is new. TypeError, ValueError."""
    emit(process.declare(name, None, unit), L.GAUGE, double_bits(number(value, "value")))


def counter(name: str, increment: float = 1, unit: Optional[str] = None) -> None:
    """Adds to the app's own counter. TypeError, ValueError."""
    emit(process.declare(name, None, unit), L.COUNTER, double_bits(number(increment, "increment")))


def deadline(stage: Optional[str], ms: Optional[float]) -> None:
    """From now on a run of the stage over ms (a number >= 0; None or 0 = none) is a miss. stage None:
    this program's frames. TypeError, ValueError."""
    limit = 0.0 if ms is None else number(ms, "ms")
    if not 0 <= limit <= 86400e3:
        raise ValueError("ms is out of range: %r" % (ms,))
    index = 0 if stage is None else process.declare(stage)
    emit(index, L.DEADLINE, round(limit * 1e6), L.OF_FRAMES if stage is None else 0)
