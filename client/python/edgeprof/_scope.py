# SPDX-License-Identifier: Apache-2.0
"""Stages: `with edgeprof.stage("infer"):`, the hot path.

stage() hands out one Scope per thread and name, so that nothing is made per event; while the latest is
open (recursion, asyncio tasks in turns) stage() makes another, so every `with` has its own times. One
that was kept may be entered by any thread, and again while it is open: that goes to a Shared one."""
import weakref
from _thread import get_ident
from time import monotonic_ns
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import _layout as L
from . import _tasks
from ._common import STAGE_DOC, Detailed
from ._process import process
from ._thread import CHECKED, Thread, check, current, emit, local, pack_open, pack_record
from ._values import depth_flags, is_failure, say, u64

_NOT_MEASURED = L.NOT_MEASURED


class Scope:
    """One stage on one thread. hot: None = not open, True = open, False = open and entered again."""

    __slots__ = (
        "thread", "name", "unit", "index", "hot", "start", "frame", "depth", "turn", "open_offset",
        "word", "nested", "__weakref__",
    )  # fmt: skip

    def __init__(self, thread: Thread, name: str, unit: Optional[str], index: int) -> None:
        self.thread = thread
        self.name = name
        self.unit = unit
        self.index = index
        self.hot: Optional[bool] = None
        self.start = self.turn = 0
        self.frame = L.NO_FRAME
        self.nested: Optional[Shared] = None
        self._at(0)

    def _at(self, depth: int) -> None:
        """What follows from the number of stages around it."""
        self.depth = depth
        # the mapping has room for 16 open stages; deeper ones share the last entry
        self.open_offset = L.OPEN_OFFSET + L.OPEN_SIZE * min(depth, L.OPEN_STAGES - 1)
        kind = L.COMPLETE | depth_flags(depth) << 8
        self.word = self.index | kind << 16 | _NOT_MEASURED << 32

    def __enter__(self) -> "Scope":
        thread = self.thread
        if self.hot is not None or get_ident() != thread.ident:
            return self._enter_again()
        depth = thread.depth
        if depth != self.depth:
            self._at(depth)
        self.frame = frame = thread.frame
        self.start = start = monotonic_ns()
        pack_open(thread.slot8, self.open_offset, start, frame, self.index)
        thread.depth = thread.slot32[6] = depth + 1
        self.turn = thread.turn
        self.hot = True
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        head = -1
        try:
            end = monotonic_ns()
            thread = self.thread
            start = self.start
            depth = self.depth
            if (
                end >= thread.gate
                or kind is not None
                or not self.hot
                or get_ident() != thread.ident
                or thread.busy
                or thread.depth != depth + 1
                or thread.turn != self.turn
            ):
                if (
                    end < thread.quiet
                    and self.hot
                    and get_ident() == thread.ident
                    and thread.depth == depth + 1
                    and thread.turn == self.turn
                ):
                    thread.unattached += 1
                    thread.depth = depth
                    self.hot = None
                    return None
                return self._leave(end, is_failure(kind))
            head = -2
            thread.busy = True
            head = thread.head
            if head == thread.full:
                thread.busy = False
                head = -1
                return self._leave(end, False)
            word = self.word
            if CHECKED:
                word |= check(word, start, end - start, self.frame, head)
            pack_record(thread.buffer, thread.origin + head * 32, word, start, end - start, self.frame)
            thread.head = thread.slot64[0] = head + 1
            thread.depth = thread.slot32[6] = depth
            self.hot = None
            thread.busy = False
        except BaseException:
            self._interrupted(head)
            raise

    def _close(self) -> bool:
        """Closes it, and what was opened inside. False: what was around it ended before (asyncio tasks)."""
        own, depth = self.thread, self.depth
        # a signal handler's stage may have overwritten its entry; then all since ended in turn
        held = own.turn != self.turn and depth < L.OPEN_STAGES - 1
        if own.depth <= depth or (held and own.slot64[self.open_offset // 8] != self.start):
            return False
        own.close(depth)
        return True

    def _interrupted(self, head: int) -> None:
        """A signal handler raised: the thread must be able to record all the same."""
        thread = self.thread
        if head >= 0:
            thread.recover(head)
        elif head == -2:
            thread.busy = False
        if thread.depth > self.depth:
            thread.close(self.depth)
        self.hot = None

    def _enter_again(self) -> "Scope":
        if self.nested is None:
            self.nested = Shared(self.name, self.unit)
        self.nested.__enter__()
        if get_ident() == self.thread.ident:
            self.hot = False
        return self

    def _leave(self, end: int, failed: bool) -> None:
        """Everything but a plain end: no room, the second's look, an error, a stranger's thread."""
        nested, own, ident = self.nested, self.thread, get_ident()
        if nested is not None and nested.leave(end, failed, ident, self.hot is None):
            if self.hot is False and not nested.holds(own.ident):
                self.hot = True if self.start else None
            return
        if self.hot is None:
            return  # never begun here, or begun by this process's parent
        flags = self.word >> 24 & 255 if self._close() else depth_flags(own.depth)
        start, self.start = self.start, 0
        self.hot = None if self.hot or nested is None or not nested.holds(own.ident) else False
        thread = own if ident == own.ident else current()
        flags |= L.FAILED if failed else 0
        if process.print:
            say(self.name, end - start)
        thread.write(end, self.index, L.COMPLETE, flags, _NOT_MEASURED, start, end - start, self.frame)


class Framed(Scope):
    """The stage of a Detailed. own: its frame, or None: that of the thread."""

    __slots__ = ("own", "generation")

    def __init__(self, thread: Thread, name: str, index: int, own: Optional[int]) -> None:
        super().__init__(thread, name, None, index)
        self.own = own
        self.generation = process.generation

    def __enter__(self) -> "Framed":
        outer = self.thread.frame
        if self.own is not None:
            self.thread.frame = self.own
        try:
            super().__enter__()
        finally:
            self.thread.frame = outer
        return self

    def close(self) -> Optional[Tuple[int, int]]:
        """Ends it without a record: its start and frame; None: it is not open, or a parent's."""
        if self.hot is None or self.generation != process.generation:
            return None
        self.hot = None
        self._close()
        if process.print:
            say(self.name, monotonic_ns() - self.start)
        return self.start, self.frame


class Shared:
    """The stage of a kept Scope, where that is open already or another thread's."""

    __slots__ = ("name", "unit", "_open")

    def __init__(self, name: str, unit: Optional[str]) -> None:
        self.name = name
        self.unit = unit
        self._open: Dict[int, List[Any]] = {}

    def __enter__(self) -> "Shared":
        scope = stage(self.name, unit=self.unit)
        scope.__enter__()
        self._open.setdefault(get_ident(), []).append(scope)
        return self

    def holds(self, ident: int) -> bool:
        return ident in self._open

    def leave(self, end: int, failed: bool, ident: int, anyones: bool) -> bool:
        """Ends the innermost of this thread; anyones: else of any. False: there is none."""
        if ident not in self._open:
            if not anyones or not self._open:
                return False
            ident = next(iter(self._open))
        scopes = self._open[ident]
        scope = scopes.pop()
        if not scopes:
            del self._open[ident]
        if failed or isinstance(scope, Unplaced):
            scope._leave(end, failed)
        else:
            scope.__exit__(None, None, None)
        return True


class Unplaced:
    """A stage past the 128 names of a process: dropped, counted and printed all the same."""

    __slots__ = ("name", "start")

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = 0

    def __enter__(self) -> "Unplaced":
        self.start = monotonic_ns()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._leave(monotonic_ns(), False)

    def close(self) -> Tuple[int, int]:
        if process.print:
            say(self.name, monotonic_ns() - self.start)
        return self.start, L.NO_FRAME

    def _leave(self, end: int, _failed: bool) -> None:
        if process.print:
            say(self.name, end - self.start)
        current().write(end, -1, L.COMPLETE, 0, _NOT_MEASURED, 0, 0, L.NO_FRAME)


class Nothing:
    """A stage of a program that records nothing."""

    __slots__ = ()
    hot = None

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        return None


def _close_lost(thread: Thread, key: Any) -> None:
    """Closes the innermost stage if nobody can end it: a signal handler raised ahead of its __exit__."""
    scope = thread.scopes.pop(key, None)
    if scope is not None and scope.hot and thread.depth == scope.depth + 1 and thread.turn == scope.turn:
        depth, lost = scope.depth, weakref.ref(scope)
        del scope
        if lost() is None:
            thread.close(depth)


def _new(
    name: str, frame: Any, unit: Any, category: Any, attributes: Any, cpu_time: bool
) -> Any:
    index = process.declare_stage(name, category, unit)
    key = name if unit is None else (name, unit)
    own = None if frame is None else u64(frame, "frame")

    made: Any = None

    def make(frame: Optional[int]) -> Any:
        nonlocal made
        scope = made  # reused, unless it is open or another thread's
        if index < 0:
            return Unplaced(name)
        if scope is None or scope.hot is not None or scope.thread.ident != get_ident():
            scope = made = Framed(current(), name, index, frame)
        scope.own, scope.generation = frame, process.generation
        return scope

    if _tasks.look() and not process.off:
        say_name = name if process.print else None
        plan = _tasks.Plan(make, say_name, own, index, process.numbers(attributes), cpu_time, emit)
        if plan.plain and own is None and index >= 0 and not process.print:
            current().scopes[key] = plan
        return plan()
    if frame is not None or attributes or cpu_time:
        return Detailed(make(own), index, process.numbers(attributes), cpu_time, emit)
    if index < 0:
        return Unplaced(name)
    thread = current()
    if process.off:
        thread.scopes[key] = nothing = Nothing()
        return nothing
    _close_lost(thread, key)
    scope = thread.scopes[key] = Scope(thread, name, unit, index)
    return scope


def stage(
    name: str,
    frame: Optional[int] = None,
    unit: Optional[str] = None,
    category: Optional[str] = None,
    attributes: Optional[Mapping[str, float]] = None,
    cpu_time: bool = False,
) -> Any:
    try:
        scope = local.scopes[name if unit is None else (name, unit)]
    except (AttributeError, KeyError, TypeError):
        return _new(name, frame, unit, category, attributes, cpu_time)
    if frame is None and not attributes and not cpu_time:
        if scope.hot is None:
            return scope
        if scope.hot is _tasks.Plan:
            return _tasks.TaskStage(scope)
    del scope  # for _close_lost()
    return _new(name, frame, unit, category, attributes, cpu_time)


stage.__doc__ = STAGE_DOC
