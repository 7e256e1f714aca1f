# SPDX-License-Identifier: Apache-2.0
"""What both recorders have in common: the names of a process, and runs with more than a time."""
import os
import sys
import threading
import time
from _thread import get_ident
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import _layout as L
from ._values import double_bits, is_failure, number

STAGE_DOC = """A context manager that times its body as the stage `name`, also when the body raises.

    frame: the frame's id (0 to 2**64-2) instead of the thread's. unit (the compute unit: "gpu"; also
    as `infer@gpu`): each has its own statistics; without one, that of the name's first. category
    ("memory", "model") counts when the name is new to this process.
    attributes: numbers by name that travel with this run. cpu_time: also the CPU time of this thread
    and of the process (three system calls). Stages of a thread nest; what begins and ends apart, on
    other threads or overlapping, is begin() and end(). TypeError, ValueError: wrong arguments;
    nothing else is ever raised because of the profiler."""
STAGE_HELP = b"stage(name, frame=None, unit=None, category=None, attributes=None, cpu_time=False)\n--\n\n"
STAGE_HELP += STAGE_DOC.encode()
FRAME_DOC = """`with edgeprof.frame(id=None):` a frame: the body's events carry its id, and its end is a tick
    with the body's duration, also when the body raises.

    id: 0 to 2**64-2; None numbers the frames of this process, from 0, or, in one that was forked or that
    multiprocessing started, from its pid * 10**9. TypeError, ValueError: wrong id."""


def program() -> str:
    """The name of the running program."""
    path = sys.argv[0] if getattr(sys, "argv", None) else ""
    name = os.path.basename(path)
    if name == "__main__.py":
        name = os.path.basename(os.path.dirname(path))
    if name.startswith("-"):  # of python3 -c, and of a program on the standard input
        name = ""
    return (name[:-3] if name.endswith(".py") else name) or "python"


def first_frame(forked: bool) -> int:
    """Where the automatic ids of frames begin: 0; in a child, which runs next to its parent under the same
    name, with the number of the process. Asked at the first frame: while multiprocessing imports the program
    in a child, it does not call it one yet."""
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    child = forked or (parent is not None and parent() is not None)
    return os.getpid() * 10**9 if child else 0


def tell_multiprocessing(shutdown: Callable[[], None]) -> None:
    """Its forked children leave by os._exit, past atexit."""
    util = sys.modules.get("multiprocessing.util")
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    if util is not None and parent is not None and parent() is not None:
        util.Finalize(None, shutdown, exitpriority=-1000)


Numbers = List[Tuple[int, float]]  # of declared names


class Names:
    """The declared names of this process. A subclass adds them: _add(name, category, unit)."""

    _add: Callable[[str, Optional[str], Optional[str]], int]

    def __init__(self, names: Dict[Any, int]) -> None:
        self.lock = threading.RLock()
        self.names = names
        self.app: Optional[bytes] = None
        self.print = False
        # called at each end of a frame with its time and duration (0: a tick), while a session prints
        self.on_frame: Optional[Callable[[int, int], None]] = None

    def declare(self, name: str, category: Optional[str] = None, unit: Optional[str] = None) -> int:
        """The name's index, or -1 when the table is full. Category and unit count when it is new.
        TypeError, ValueError: not a name."""
        if not isinstance(name, str):
            raise TypeError("a name is a str, not %s" % type(name).__name__)
        if not name:
            raise ValueError("a name must not be empty")
        for label in (category, unit):
            if label is not None and not isinstance(label, str):
                raise TypeError("category and unit are str or None, not %s" % type(label).__name__)
        index = self.names.get(name)
        if index is not None:
            return index
        with self.lock:
            index = self.names.get(name)
            if index is None:
                index = self._add(name, category, unit)
                if index >= 0:  # names without end must not cost memory
                    self.names[name] = index
            return index

    def numbers(self, attributes: Optional[Mapping[str, Any]]) -> Numbers:
        """Numbers by name, or lists of them. TypeError, ValueError."""
        found = []
        for key, value in dict(attributes or {}).items():
            values = value if isinstance(value, (list, tuple)) else [value]
            found += [(self.declare(key), number(one, key)) for one in values]
        return found

    def declare_label(self, label: str) -> int:
        """The same for the text of a mark, which people read: kept as it is, as far as it fits."""
        if not isinstance(label, str) or not label or L.is_clean(label):
            return self.declare(label)
        return self.declare(L.LABEL_SIGN + label)


class Detailed:
    """A stage with a frame of its own, attributes, or CPU times. Made per `with`; scope: a new one of
    the recorder's, which has the frame; emit: the recorder's; depth: how many stages are open around it,
    or -1: those that the thread has."""

    def __init__(
        self, scope: Any, index: int, numbers: Numbers, cpu_time: bool, emit: Any, depth: int = -1
    ) -> None:
        self._scope = scope
        self._index = index
        self._numbers = numbers
        self._cpu_time = bool(cpu_time)
        self._emit = emit
        self._depth = depth
        self._cpu_ns = self._process_ns = self._ident = 0

    def __enter__(self) -> "Detailed":
        self._ident = get_ident()
        if self._cpu_time:
            self._cpu_ns, self._process_ns = time.thread_time_ns(), time.process_time_ns()
        self._scope.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        end, index, emit, unknown = time.monotonic_ns(), self._index, self._emit, L.NOT_MEASURED
        cpu_us = unknown
        if self._cpu_time and get_ident() == self._ident:
            cpu_us = min((time.thread_time_ns() - self._cpu_ns) // 1000, unknown - 1)
        closed = self._scope.close()
        if closed is None:
            return
        start, frame = closed
        if self._cpu_time:
            cost = time.process_time_ns() - self._process_ns
            emit(index, L.COST, cost, 0, unknown, start, L.COST_RSS_UNKNOWN)
        failed = L.FAILED if is_failure(kind) else 0
        emit(index, L.COMPLETE, end - start, failed, cpu_us, start, frame, self._depth)
        for name, value in self._numbers:
            owner = index if index >= 0 else unknown
            emit(name, L.ATTRIBUTE, double_bits(value), 0, owner, end, frame)
