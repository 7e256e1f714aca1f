# SPDX-License-Identifier: Apache-2.0
"""Stages: `with edgeprof.stage("infer"):`, the hot path.

stage() hands out one Scope per thread and name, so that nothing is made per event. What it hands out
first is a Shared one, which may be kept and entered by any thread; and while the latest Scope is open
(recursion, asyncio tasks in turns) stage() makes another, so every `with` has its own times."""
import functools
import time
from _thread import get_ident
from time import monotonic_ns
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, TypeVar

from . import _layout as L
from ._process import process
from ._thread import Thread, current, depth_flags, local, pack_open, pack_record
from ._values import double_bits, number, say, u64

_F = TypeVar("_F", bound=Callable[..., Any])
_SHORT = (1 << 30) - 1
_NOT_MEASURED = L.NOT_MEASURED


class Scope:
    """One stage on one thread. hot: None = not open, True = open, False = open and entered again."""

    __slots__ = (
        "thread", "name", "index", "hot", "start", "frame", "depth", "open_offset", "word", "constant",
        "nested",
    )  # fmt: skip

    def __init__(self, thread: Thread, name: str, index: int) -> None:
        self.thread = thread
        self.name = name
        self.index = index
        self.hot: Optional[bool] = None
        self.start = 0
        self.frame = L.NO_FRAME
        self.nested: Optional[Shared] = None
        self._at(0)

    def _at(self, depth: int) -> None:
        """What follows from the number of stages around it."""
        flags = depth_flags(depth)
        self.depth = depth
        # the mapping has room for 16 open stages; deeper ones share the last entry
        self.open_offset = L.OPEN_OFFSET + L.OPEN_SIZE * min(depth, L.OPEN_STAGES - 1)
        self.word = L.COMPLETE | flags << 8
        self.constant = self.index ^ L.COMPLETE ^ flags ^ 0xA5  # fold(cpu_us) is 0

    def __enter__(self) -> "Scope":
        thread = self.thread
        depth = thread.depth
        if self.hot is not None:
            return self._enter_again()
        if depth != self.depth:
            self._at(depth)
        self.frame = frame = thread.frame
        start = monotonic_ns()
        pack_open(thread.slot8, self.open_offset, start, frame, self.index)
        thread.depth = depth = depth + 1
        thread.slot32[9] = depth
        self.start = start
        self.hot = True
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        head = -1
        try:
            end = monotonic_ns()
            thread = self.thread
            if (
                end >= thread.gate
                or kind is not None
                or not self.hot
                or self.frame is not thread.frame
                or get_ident() != thread.ident
                or thread.busy
            ):
                if end < thread.quiet and self.hot and get_ident() == thread.ident:
                    thread.unattached += 1
                    thread.depth = self.depth
                    self.hot = None
                    return None
                return self._leave(end, kind is not None)
            head = -2
            thread.busy = True
            head = thread.head
            if head == thread.full:
                thread.busy = False
                head = -1
                return self._leave(end, False)
            start = self.start
            value = end - start
            check = start ^ thread.base ^ value
            if check > _SHORT:
                check ^= check >> 32
            check ^= check >> 16
            pack_record(
                thread.buffer,
                thread.origin + head * 32,
                self.index,
                (check ^ check >> 8 ^ self.constant ^ thread.salt ^ head) & 255,
                self.word,
                _NOT_MEASURED,
                start,
                value,
                self.frame,
            )
            thread.slot64[0] = published = head + 1
            thread.head = published
            thread.depth = depth = self.depth
            thread.slot32[9] = depth
            self.hot = None
            thread.busy = False
        except BaseException:
            self._interrupted(head)
            raise

    def _interrupted(self, head: int) -> None:
        """A signal handler raised: the thread must be able to record all the same."""
        thread = self.thread
        if head >= 0:
            thread.recover(head)
        elif head == -2:
            thread.busy = False
        if thread.depth > self.depth:
            thread.depth = self.depth
            thread.slot32[L.DEPTH] = self.depth
        self.hot = None

    def _enter_again(self) -> "Scope":
        if self.nested is None:
            self.nested = Shared(self.name)
        self.nested.__enter__()
        self.hot = False
        return self

    def _leave(self, end: int, failed: bool) -> None:
        """Everything but a plain end: no room, the second's look, an error, a stranger's thread."""
        if self.hot is None:
            return  # never begun here, or begun by this process's parent
        if self.hot is False and self.nested is not None and self.nested.leave(end, failed):
            if not self.nested.is_open():
                self.hot = True if self.start else None
            return
        own = self.thread
        if own.depth > self.depth:
            own.depth = self.depth
            own.slot32[L.DEPTH] = self.depth
        start, self.start = self.start, 0
        self.hot = None if self.hot or self.nested is None or not self.nested.is_open() else False
        thread = own if get_ident() == own.ident else current()
        flags = self.word >> 8 | (L.FAILED if failed else 0)
        if process.print:
            say(self.name, end - start)
        thread.write(end, self.index, L.COMPLETE, flags, _NOT_MEASURED, start, end - start, self.frame)


class Shared:
    """A stage that is kept: any thread may enter it, also while it is open."""

    __slots__ = ("name", "unit", "_open")

    def __init__(self, name: str, unit: Optional[str] = None) -> None:
        self.name = name
        self.unit = unit
        self._open: Dict[int, List[Any]] = {}

    def __enter__(self) -> "Shared":
        scope = stage(self.name, unit=self.unit)
        scope.__enter__()
        self._open.setdefault(get_ident(), []).append(scope)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.leave(monotonic_ns(), kind is not None, True)

    def is_open(self) -> bool:
        return bool(self._open)

    def leave(self, end: int, failed: bool, anyones: bool = False) -> bool:
        """Ends the innermost of this thread; anyones: else of any. False: there is none."""
        ident = get_ident()
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


class Detailed:
    """A stage with a frame of its own, attributes, or CPU times. Made per `with`."""

    def __init__(
        self, name: str, index: int, frame: Optional[int], attributes: Mapping[str, float], cpu_time: bool
    ) -> None:
        self.name = name
        self._index = index
        self._frame = frame
        self._attributes = [(process.declare(key), value) for key, value in attributes.items()]
        self._cpu_time = cpu_time
        self._scope: Optional[Scope] = None
        self._cpu = (0, 0)
        self._generation = -1

    def __enter__(self) -> "Detailed":
        thread = current()
        self._generation = process.generation
        self._scope = Scope(thread, self.name, self._index)
        outer = thread.frame
        if self._frame is not None:
            thread.set_frame(self._frame)
        if self._cpu_time:
            self._cpu = (time.thread_time_ns(), time.process_time_ns())
        try:
            if self._index >= 0:
                self._scope.__enter__()
            else:
                self._scope.start = monotonic_ns()
        finally:
            thread.set_frame(outer)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        end = monotonic_ns()
        scope, self._scope = self._scope, None
        if scope is None or self._generation != process.generation:
            return
        cpu_us, cost = _NOT_MEASURED, None
        own = scope.thread
        same = get_ident() == own.ident
        if self._cpu_time:
            if same:
                cpu_us = min((time.thread_time_ns() - self._cpu[0]) // 1000, _NOT_MEASURED - 1)
            cost = time.process_time_ns() - self._cpu[1]
        if own.depth > scope.depth:
            own.depth = scope.depth
            own.slot32[L.DEPTH] = scope.depth
        thread = own if same else current()
        if process.print:
            say(self.name, end - scope.start)
        write, index, frame = thread.write, self._index, scope.frame
        if cost is not None:
            write(end, index, L.COST, 0, _NOT_MEASURED, scope.start, cost, L.COST_RSS_UNKNOWN)
        flags = scope.word >> 8 | (L.FAILED if kind is not None else 0)
        write(end, index, L.COMPLETE, flags, cpu_us, scope.start, end - scope.start, frame)
        write_attributes(thread, end, index, self._attributes, frame)


def write_attributes(
    thread: Thread, at: int, index: int, attributes: Iterable[Tuple[int, float]], frame: int
) -> None:
    """attributes: (declaration index, value)."""
    for attribute, value in attributes:
        owner = index if index >= 0 else _NOT_MEASURED
        thread.write(at, attribute, L.ATTRIBUTE, 0, owner, at, double_bits(value), frame)


def _new(
    name: str, frame: Any, unit: Any, category: Any, attributes: Any, cpu_time: bool
) -> Any:
    index = process.declare_stage(name, category, unit)
    key = name if unit is None else (name, unit)
    if frame is not None or attributes or cpu_time:
        numbers = {key: number(value, key) for key, value in dict(attributes or {}).items()}
        own = None if frame is None else u64(frame, "frame")
        return Detailed(name, index, own, numbers, bool(cpu_time))
    if index < 0:
        return Unplaced(name)
    thread = current()
    if process.off:
        thread.scopes[key] = nothing = Nothing()
        return nothing
    seen = key in thread.scopes
    scope = thread.scopes[key] = Scope(thread, name, index)
    return scope if seen else Shared(name, unit)


def stage(
    name: str,
    frame: Optional[int] = None,
    unit: Optional[str] = None,
    category: Optional[str] = None,
    attributes: Optional[Mapping[str, float]] = None,
    cpu_time: bool = False,
) -> Any:
    """A context manager that times its body as the stage `name`, also when the body raises.

    frame: the frame's id (0 to 2**64-2) instead of the thread's. unit (the compute unit: "gpu"; also
    as `infer@gpu`): each has its own statistics; without one, that of the name's first. category
    ("memory", "model") counts when the name is new to this process.
    attributes: numbers by name that travel with this run. cpu_time: also the CPU time of this thread
    and of the process (three system calls). Stages of a thread nest; what begins and ends apart, on
    other threads or overlapping, is begin() and end(). TypeError, ValueError: wrong arguments;
    nothing else is ever raised because of the profiler."""
    try:
        scope = local.scopes[name if unit is None else (name, unit)]
    except (AttributeError, KeyError):
        return _new(name, frame, unit, category, attributes, cpu_time)
    if scope.hot is None and frame is None and not attributes and not cpu_time:
        return scope
    return _new(name, frame, unit, category, attributes, cpu_time)


def timed(name: str, **options: Any) -> Callable[[_F], _F]:
    """A decorator: every call of the function is a run of the stage. options: those of stage().

    A coroutine function is timed from its first step to its end, waiting included."""
    stage(name, **options)  # wrong arguments raise here, not at the first call

    def decorate(function: _F) -> _F:
        import inspect

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                with stage(name, **options):
                    return await function(*args, **kwargs)

            return run_async  # type: ignore[return-value]

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with stage(name, **options):
                return function(*args, **kwargs)

        return run  # type: ignore[return-value]

    return decorate
