# SPDX-License-Identifier: Apache-2.0
"""The recorder in Python alone. What it shares with the one in C (_native.py) has the same names there."""
import itertools
import os
from time import monotonic_ns
from typing import Any, Callable, Dict, List, Optional

from . import _layout as L
from . import _tasks
from ._common import FRAME_DOC, first_frame
from ._process import connect, counts, process, read_advice, shutdown
from ._scope import stage
from ._thread import current, emit
from ._values import is_failure, u64

__all__ = [
    "Frames", "Profiler", "connect", "counts", "emit", "frame", "process", "read_advice", "shutdown",
    "stage",
]  # fmt: skip

_ids: Any = None  # a count, from the first frame without an id on
_FRAME = L.FRAME << 16 | L.NOT_MEASURED << 32  # the first word of its record


class frame:
    __doc__ = FRAME_DOC
    __slots__ = ("id", "_start", "_outer", "_generation", "_node")

    def __init__(self, id: Optional[int] = None) -> None:
        self.id = _next_id() if id is None else u64(id, "id")
        self._start: Optional[int] = None
        self._outer = L.NO_FRAME
        self._generation = 0
        self._node: Optional[_tasks.Node] = None

    def __enter__(self) -> "frame":
        thread = current()
        self._generation = process.generation
        self._node = _tasks.enter_frame(self.id)
        if self._node is None:
            self._outer = thread.frame
            thread.frame = self.id
            thread.frames += 1
        self._start = monotonic_ns()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        end = monotonic_ns()
        thread = current()
        start, self._start = self._start, None
        if self._node is not None:
            self._node.leave()
        else:  # to the frame around it, which may have ended before: after the last one none is open
            thread.frames = max(0, thread.frames - 1)
            if not thread.frames:
                thread.frame = L.NO_FRAME
            elif thread.frame == self.id:
                thread.frame = self._outer
        if process.on_frame is not None and start is not None:
            process.on_frame(end, end - start)
        if start is None or self._generation != process.generation:
            return
        word = _FRAME | L.FAILED << 24 if is_failure(kind) else _FRAME
        word |= L.OF_TASK << 24 if self._node is not None else 0
        thread.record(end, word, start, end - start, self.id)


def _next_id() -> int:
    global _ids
    if _ids is None:
        with process.lock:
            _ids = _ids or itertools.count(first_frame(process.generation > 0))
    return int(next(_ids))


def _child_forked() -> None:
    global _ids
    _ids = None


os.register_at_fork(after_in_child=_child_forked)


class Frames:
    """Frames of the thread that makes this, each from the end of the one before it."""

    __slots__ = ("_thread", "_id", "_start", "_generation")

    def __init__(self) -> None:
        self._thread = current()
        self._id, self._start, self._generation = 0, 0, -1

    def next(self, another: bool) -> int:
        """Ends the frame, if there is one, and begins another. What it took in ns; 0: there was none."""
        now, took = monotonic_ns(), 0
        thread, start, generation = self._thread, self._start, process.generation
        if start:
            took = now - start
            if process.on_frame is not None:
                process.on_frame(now, took)
            if self._generation == generation:
                thread.record(now, _FRAME, start, took, self._id)
        if another:
            self._id = thread.frame = _next_id()
            self._start, self._generation = now, generation
        elif start:
            thread.frame, self._start = L.NO_FRAME, 0
        return took


class Profiler:
    """start and stop of StageProfiler."""

    timings: Dict[str, List[float]]
    _names: Dict[Any, int]
    _declare: Callable[[str], int]
    orphan_end = abandoned = 0
    _stage: Optional[str] = None
    _index = _start = 0

    def start(self, stage_name: str) -> None:
        """TypeError, ValueError: not a name (any non-empty str is)."""
        index = self._names.get(stage_name) if type(stage_name) is str else None
        self._index = self._declare(stage_name) if index is None else index
        if self._stage is not None:
            self.abandoned += 1
        self._stage = stage_name
        self._start = monotonic_ns()

    def stop(self) -> None:
        end = monotonic_ns()
        name, self._stage = self._stage, None
        if name is None:
            self.orphan_end += 1
            return
        self.timings[name].append((end - self._start) / 1e6)
        emit(self._index, L.COMPLETE, end - self._start, 0, L.NOT_MEASURED, self._start)
