# SPDX-License-Identifier: Apache-2.0
"""asyncio: what each task has open. The tasks of a thread take turns, so that the frame and the stages that the
thread has open are of no task in particular; a context variable keeps them apart. Tasks inherit it, and
asyncio.to_thread takes it along. None of it is used, or costs anything, before a frame or a stage is entered in a
running loop; from then on it is, on all threads."""
import os
import sys
import threading
from contextvars import ContextVar
from time import monotonic_ns
from typing import Any, Callable, List, Optional, Tuple

from . import _layout as L
from ._common import Detailed, Numbers
from ._values import is_failure, say

active = False
generation = 0  # forks: what a parent has open is not ours to end
_local = threading.local()


class Node:
    """A frame or a stage that is open in a context. depth: how many stages are."""

    __slots__ = ("frame", "depth", "outer", "stage", "owner", "run", "open", "__weakref__")

    def __init__(self, frame: int, depth: int, outer: Optional["Node"], owner: Optional["TaskStage"]) -> None:
        self.frame = frame
        self.depth = depth
        self.outer = outer
        self.owner = owner
        self.stage: Optional[Node] = self if owner is not None else outer and outer.stage
        self.run: Any = None
        self.open = True
        _here.set(self)

    def leave(self) -> None:
        """Ends it, and what was entered inside. A task that was begun inside keeps it, as ended."""
        self.open = False
        node = _here.get()
        while node is not None and node is not self:
            node = node.outer
        if node is not None:
            _here.set(self.outer)


_here: ContextVar[Optional[Node]] = ContextVar("edgeprof", default=None)


class Recorder:
    """What the recorder sets. thread: the frame and the number of open stages of the thread; begin: what
    changes when the first task is seen."""

    thread: Callable[[], Tuple[int, int]]
    begin: Callable[[], None]


def look() -> bool:
    """Whether tasks are to be kept apart: from the first call in a running loop on."""
    global active
    if not active:
        running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
        if running is not None and running() is not None:
            active = True
            Recorder.begin()
    return active


def _node() -> Optional[Node]:
    node = _here.get()
    while node is not None and not node.open:
        node = node.outer
    return node


def _shown() -> List[Node]:
    """The stages of tasks that the thread shows as open. One that ended took along what was above it."""
    try:
        shown: List[Node] = _local.shown
    except AttributeError:
        shown = _local.shown = []
    for i, node in enumerate(shown):
        if not node.open:
            del shown[i:]
            break
    return shown


def _inside(node: Optional[Node]) -> Tuple[int, int]:
    if node is not None:
        return node.frame, node.depth
    frame, depth = Recorder.thread()
    return frame, max(0, depth - len(_shown()))


def here() -> Tuple[int, int]:
    """The frame, and how many stages are open."""
    return _inside(_node())


def enter_frame(frame: int) -> Optional[Node]:
    """Its leave() ends it; None: the thread's will do."""
    if not look():
        return None
    outer = _node()
    return Node(frame, _inside(outer)[1], outer, None)


class _Hidden:
    """A stage that its thread does not show as open: another task's is."""

    def __init__(self, name: Optional[str], frame: int) -> None:
        self.name = name  # to be printed
        self.frame = frame
        self.generation = generation
        self.start = 0

    def __enter__(self) -> None:
        self.start = monotonic_ns()

    def close(self) -> Optional[Tuple[int, int]]:
        if self.generation != generation:
            return None
        if self.name is not None:
            say(self.name, monotonic_ns() - self.start)
        return self.start, self.frame


class Plan:
    """What a stage() was asked for. make: a scope of the recorder's in a frame; name: to be printed, or None;
    own: its frame, or None: the task's."""

    __slots__ = ("make", "name", "own", "index", "numbers", "cpu_time", "emit", "plain", "hot")

    def __init__(
        self, make: Callable[[int], Any], name: Optional[str], own: Optional[int], index: int, numbers: Numbers,
        cpu_time: bool, emit: Any,
    ) -> None:  # fmt: skip
        self.make = make
        self.name = name
        self.own = own
        self.index = index
        self.numbers = numbers
        self.cpu_time = cpu_time
        self.emit = emit
        self.plain = not numbers and not cpu_time
        self.hot: Any = Plan  # among the scopes of a thread

    def __call__(self) -> "TaskStage":
        return TaskStage(self)


class TaskStage:
    """A stage, which any task or thread may enter at any time, and again while it is open."""

    __slots__ = ("_plan", "_nodes")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._nodes: List[Node] = []

    def __enter__(self) -> "TaskStage":
        plan, outer, shown = self._plan, _node(), _shown()
        frame, depth = _inside(outer)
        if plan.own is not None:
            frame = plan.own
        node = Node(frame, depth + 1, outer, self)
        self._nodes.append(node)
        if not shown or (outer is not None and outer.stage is shown[-1]):
            shown.append(node)
            scope = plan.make(frame)
        else:
            scope = _Hidden(plan.name, frame)
        if not plan.plain:
            scope = Detailed(scope, plan.index, plan.numbers, plan.cpu_time, plan.emit, depth)
        node.run = scope
        scope.__enter__()
        return self

    def _take(self) -> Optional[Node]:
        """The innermost of this context, else any."""
        node = _node()
        while node is not None and (node.owner is not self or not node.open):
            node = node.outer
        if node is None and self._nodes:
            node = self._nodes[-1]
        if node is not None:
            self._nodes.remove(node)
        return node

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        end, node, plan = monotonic_ns(), self._take(), self._plan
        if node is None:
            return
        if plan.plain:
            closed = node.run.close()
            if closed is not None:
                start, frame = closed
                failed = L.FAILED if is_failure(kind) else 0
                plan.emit(
                    plan.index, L.COMPLETE, end - start, failed, L.NOT_MEASURED, start, frame, node.depth - 1
                )
        else:
            node.run.__exit__(kind, error, trace)
        node.leave()


def _child_forked() -> None:
    global generation
    generation += 1
    _local.__dict__.clear()


os.register_at_fork(after_in_child=_child_forked)
