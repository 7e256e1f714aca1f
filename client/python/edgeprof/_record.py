# SPDX-License-Identifier: Apache-2.0
"""Everything that is not a stage: frames, ticks, marks, gauges, counters, deadlines, begin and end
by id."""
import itertools
import time
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from . import _layout as L
from ._process import process
from ._scope import write_attributes
from ._thread import current, emit
from ._values import double_bits, number, u64
from .memory import process_memory

_ids = itertools.count()


class frame:
    """`with edgeprof.frame(id=None):` a frame: the body's events carry its id, and its end is a tick
    with the body's duration, also when the body raises.

    id: 0 to 2**64-2; None numbers the frames of this process. TypeError, ValueError: wrong id."""

    __slots__ = ("id", "_start", "_outer", "_generation")

    def __init__(self, id: Optional[int] = None) -> None:
        self.id = next(_ids) if id is None else u64(id, "id")
        self._start: Optional[int] = None
        self._outer = L.NO_FRAME
        self._generation = 0

    def __enter__(self) -> "frame":
        thread = current()
        self._generation = process.generation
        self._outer = thread.frame
        thread.set_frame(self.id)
        self._start = time.monotonic_ns()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        end = time.monotonic_ns()
        thread = current()
        start, self._start = self._start, None
        thread.set_frame(self._outer)
        if process.on_frame is not None and start is not None:
            process.on_frame(end, end - start)
        if start is None or self._generation != process.generation:
            return
        flags = L.FAILED if kind is not None else 0
        thread.write(end, 0, L.FRAME, flags, L.NOT_MEASURED, start, end - start, self.id)


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


def _numbers(attributes: Mapping[str, Any]) -> List[Tuple[int, float]]:
    numbers = []
    for key, value in attributes.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        numbers += [(process.declare(key), number(one, key)) for one in values]
    return numbers


def mark(label: str, **attributes: Union[float, Sequence[float]]) -> None:
    """A labelled moment on the timeline, with this process's memory and numbers (or lists of them) by
    name. TypeError, ValueError: wrong arguments."""
    index = process.declare_label(label)
    numbers = _numbers(attributes)
    memory = process_memory()
    thread = current()
    now = time.monotonic_ns()
    if thread.write(now, index, L.MARK, 0, L.NOT_MEASURED, now, memory.rss_bytes, thread.frame):
        if memory.rss_bytes:
            vms, peak = memory.vms_bytes, memory.peak_rss_bytes
            thread.write(now, index, L.MARK_MEMORY, 0, L.NOT_MEASURED, now, vms, peak)
        write_attributes(thread, now, index, numbers, thread.frame)


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
