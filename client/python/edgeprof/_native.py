# SPDX-License-Identifier: Apache-2.0
"""The recorder of edgeprof._fast, a C extension over libedgeprof. What it shares with the one in Python
(_pure.py) has the same names there."""
import functools
import os
from time import monotonic_ns
from typing import Any, Dict, Mapping, Optional

from . import _fast
from . import _layout as L
from . import _tasks
from ._common import FRAME_DOC, Detailed, Names, first_frame, program, tell_multiprocessing
from ._values import u64

stage, frame, emit, Profiler = _fast.stage, _fast.frame, _fast.emit, _fast.Profiler
read_advice = _fast.advice
frame.__doc__ = FRAME_DOC


def _text(name: str) -> bytes:
    """As C has strings. All control characters become `_`, but names stay apart that were."""
    return name.encode("utf-8", "surrogateescape").replace(b"\0", b"\1")


def _label(text: Optional[str]) -> Optional[str]:
    return text if text is None else text.encode("utf-8", "replace").decode().replace("\0", "")


class _Process(Names):
    off = os.environ.get("EDGEPROF_DISABLE") == "1"

    def configure(self, app: Optional[str] = None) -> bytes:
        """Only the first name counts."""
        if self.app is None:
            self.app = L.clean(app or program())
        return self.app

    def _add(self, name: str, category: Optional[str], unit: Optional[str]) -> int:
        if name[0] == L.LABEL_SIGN:
            text = L.text(name[1:]).replace(b"\0", b"\1")
            return int(_fast.declare(text, None, None, "m"))
        kind = "n" if category is None else "s"
        return int(_fast.declare(_text(name), _label(category), _label(unit), kind))

    def declare_stage(self, name: str, category: Optional[str], unit: Optional[str]) -> int:
        """The same of a stage, which is another one on each compute unit."""
        index = self.declare(name, category, unit)
        if unit and index >= 0:
            index = _fast.declare(_text(name), _label(category), _label(unit), "s")
        if unit is not None and index >= 0:
            self.names[(name, unit)] = index  # type: ignore[index]
        return index


process = _Process(_fast.names)


def new_stage(
    name: str,
    frame: Optional[int] = None,
    unit: Optional[str] = None,
    category: Optional[str] = None,
    attributes: Optional[Mapping[str, float]] = None,
    cpu_time: bool = False,
) -> Any:
    """stage() of a new name, or with options."""
    index = process.declare_stage(name, category, unit)
    own = L.NO_FRAME if frame is None else u64(frame, "frame")
    plain = frame is None and not attributes and not cpu_time
    if _tasks.look():
        numbers, of_task = process.numbers(attributes), None if frame is None else own
        plan = _tasks.Plan(functools.partial(_fast.new, index), None, of_task, index, numbers, cpu_time, emit)
        if plain and index >= 0:
            _fast.plans[name if unit is None else (name, unit)] = plan
        return plan()
    scope = _fast.new(index, own)
    if plain:
        return scope
    return Detailed(scope, index, process.numbers(attributes), cpu_time, emit)


look, here, enter_frame = _tasks.look, _tasks.here, _tasks.enter_frame  # for the extension, as first_frame is
_tasks.Recorder.thread = _fast.thread
_tasks.Recorder.begin = _fast.tasks
new_stage.__qualname__ = new_stage.__name__ = "stage"


def started() -> bytes:
    """Before the first event of this process: its name."""
    tell_multiprocessing(shutdown)
    return process.configure()


class Frames:
    """Frames of the thread that makes this, each from the end of the one before it."""

    __slots__ = ("_open", "_start")

    def __init__(self) -> None:
        self._open: Any = None
        self._start = 0

    def next(self, another: bool) -> int:
        """Ends the frame, if there is one, and begins another. What it took in ns; 0: there was none."""
        if self._open is not None:
            self._open.__exit__(None, None, None)
        self._open = frame() if another else None
        if another:
            self._open.__enter__()
        now, start = monotonic_ns(), self._start
        self._start = now if another else 0
        return now - start if start else 0


def connect(app: Optional[str] = None) -> bool:
    process.configure(app)
    return bool(counts(True)["attached"])


def shutdown() -> None:
    process.off = True
    _fast.shutdown()


def counts(look: bool = False) -> Dict[str, Any]:
    names = ("sent", "received", "dropped", "in_ring", "unattached", "attached")
    return dict(zip(names, _fast.counts(look)))
