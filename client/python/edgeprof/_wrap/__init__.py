# SPDX-License-Identifier: Apache-2.0
"""Wraps the calls of known libraries as stages, for `python3 -m edgeprof run`.

A file per library has its table: {module: rows}, and the versions that it was written for. What a row
names is replaced in its module or class by a function that times the call and hands over its result, or
its exception, as it is. Types of extensions refuse that; the entry of their dictionary is replaced then,
so that the type, its instances and its pickles stay what they are."""
import functools
import gc
import importlib
import sys
import threading
import types
from time import monotonic_ns as now
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .. import _layout as L
from .._recorder import Frames, connect, emit, process, stage
from . import _report

Arguments = Tuple[Any, ...]
Keywords = Dict[str, Any]


class Row(NamedTuple):
    """A callable that is wrapped.

    path: below the module; with a `?` at its end not every version has it. stage: "" for a call that is
    only noted. unit: of the arguments. when: whether a call is a run of the stage at all. outermost: calls inside
    one of the same stage and library are not runs. begins_frame: as a capture does; outermost, too. note: sees
    arguments, result and exception of each call."""

    path: str
    stage: str = ""
    category: Optional[str] = None
    unit: Optional[Callable[[Arguments, Keywords], Optional[str]]] = None
    when: Optional[Callable[[Arguments], bool]] = None
    outermost: bool = False
    begins_frame: bool = False
    note: Optional[Callable[[Arguments, Keywords, Any, Optional[BaseException]], None]] = None


class _Thread:
    """What a thread is in."""

    __slots__ = ("inside", "stages", "frames", "source", "others")

    def __init__(self) -> None:
        self.inside: Any = None  # the stage and library of an outermost call
        self.stages: Dict[Any, Tuple[Any, _report.Tally, Any]] = {}  # what a call is recorded by
        self.frames = Frames()
        self.source: Optional[int] = None  # that the frame began with; None: in none
        self.others: Set[int] = set()  # captured from in the frame, too


_local = threading.local()
own_frames: List[bool] = []  # not empty: the program reports frames itself


def _begin_frame(thread: _Thread, source: int) -> None:
    """A frame ends when one of the sources in it is captured from again."""
    first = thread.source
    if first is not None and source != first and source not in thread.others:
        thread.others.add(source)
        return
    took = thread.frames.next(not own_frames)
    if took:
        frames = _report.frames
        frames.count += 1
        frames.total += took
        if thread.others:
            thread.others.clear()
    thread.source = None if own_frames else source


def expect(name: str, category: str, unit: str) -> None:
    """The stage is to run on the unit: on a CPU it is a fallback."""
    _report.expect(name, unit)
    # the daemon takes the first declared unit for the expected one; no deadline is a run of it
    emit(process.declare_stage(name, category, unit), L.DEADLINE, 0)


def _timed(function: Callable[..., Any], row: Row, library: str) -> Callable[..., Any]:
    """The function as a stage."""
    name, category, unit_of, when, note = row.stage, row.category, row.unit, row.when, row.note
    begins_frame = row.begins_frame
    key = sys.intern("%s/%s" % (library, row.stage))  # compared by identity
    guarded = row.outermost or begins_frame or when is not None

    def timed(*args: Any, **kwargs: Any) -> Any:
        if when is not None and not when(args):
            return function(*args, **kwargs)
        try:
            thread = _local.thread
        except AttributeError:
            thread = _local.thread = _Thread()
        outer, at = thread.inside, key
        if guarded:
            if outer is key:
                return function(*args, **kwargs)
            thread.inside = key
        try:
            if begins_frame:
                _begin_frame(thread, id(args[0]) if args else 0)
            unit = None
            if unit_of is not None:
                try:
                    unit = unit_of(args, kwargs)
                except Exception:  # the call itself says what is wrong with its arguments
                    pass
                at = key, unit
            try:
                scope, tally, keep = thread.stages[at]
            except KeyError:
                scope, tally = stage(name, None, unit, category), _report.tally(name, unit)
                keep = tally.recent.append
                thread.stages[at] = scope, tally, keep
            with scope:
                start = now()
                try:
                    return function(*args, **kwargs)
                finally:
                    duration = now() - start
                    tally.count += 1
                    tally.total += duration
                    keep(duration)
        finally:
            if guarded:
                thread.inside = outer

    def noted(*args: Any, **kwargs: Any) -> Any:
        result = failure = None
        try:
            result = (timed if name else function)(*args, **kwargs)
            return result
        except BaseException as error:
            failure = error
            raise
        finally:
            try:
                note(args, kwargs, result, failure)  # type: ignore[misc]
            except Exception:
                pass
            del failure

    return noted if note is not None else timed


class _Function:
    """Stands for a builtin function: unlike those of Python it does not bind where a class refers to it."""

    def __init__(self, original: Any, call: Callable[..., Any]) -> None:
        functools.update_wrapper(self, original)
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        return self.__qualname__  # type: ignore[attr-defined]


def _replace(owner: Any, name: str, value: Any) -> None:
    try:
        setattr(owner, name, value)
    except TypeError:
        if not isinstance(owner, type):
            raise
        import ctypes

        # A type that is static in C: the same as for another one, but for the check whether it may be.
        (table,) = gc.get_referents(owner.__dict__)
        table[name] = value
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def _wrap_row(module: Any, row: Row, library: str) -> Optional[str]:
    """What was wrapped; None: it had been already. AttributeError: the module does not have it."""
    *path, name = row.path.rstrip("?").split(".")
    owner = functools.reduce(getattr, path, module)
    original = getattr(owner, name)
    if getattr(original, "_edgeprof", False):
        return None
    wrapper = _timed(original, row, library)
    if isinstance(owner, type) or isinstance(original, types.FunctionType):
        functools.update_wrapper(wrapper, original)
    else:
        wrapper = _Function(original, wrapper)
    wrapper._edgeprof = True  # type: ignore[attr-defined]
    _replace(owner, name, wrapper)
    return "%s.%s" % (module.__name__, row.path.rstrip("?"))


def _version(module: Any, table: Any) -> Optional[str]:
    top = sys.modules.get(module.__name__.partition(".")[0])
    version = getattr(top, "__version__", None)
    if version is None:
        from importlib import metadata

        try:
            version = metadata.version(table.PACKAGES.get(module.__name__, module.__name__))
        except metadata.PackageNotFoundError:
            return None
    return str(version)


def wrap(name: str, module: Any, options: Any, say: Callable[[str], None]) -> None:
    """The module was imported just now: wraps what its table names, once."""
    if name == "edgeprof":
        _watch_own_frames(module)
        return
    if process.off:
        return
    if options.app:
        connect(options.app)
    from _edgeprof_hook import TARGETS  # type: ignore[import-not-found]

    library = TARGETS[name]
    table = importlib.import_module("edgeprof._wrap." + library)
    version = _version(module, table)
    if version is not None and version.split(".")[0] not in table.VERSIONS:
        known = ", ".join("%s.x" % major for major in table.VERSIONS)
        say("%s %s is not wrapped: known versions are %s" % (name, version, known))
        return
    if hasattr(table, "prepare"):
        table.prepare(module)
    for row in table.ROWS[name]:
        try:
            wrapped = _wrap_row(module, row, library)
        except (AttributeError, TypeError, ValueError) as error:
            if row.path[-1] != "?":
                say("%s %s: %s is not wrapped: %s" % (name, version or "", row.path, error))
            continue
        if options.listed and wrapped and row.stage:
            say("%s -> %s" % (wrapped, row.stage))


def _watch_own_frames(module: Any) -> None:
    """A program that reports frames itself gets none of ours: a frame would be two."""
    original_frame, original_tick = module.frame, module.tick
    if getattr(original_tick, "_edgeprof", False):
        return

    class Frame(original_frame):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def __enter__(self) -> Any:
            own_frames[:] = [True]
            return super().__enter__()

    @functools.wraps(original_tick)
    def tick() -> None:
        own_frames[:] = [True]
        original_tick()

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(Frame, name, getattr(original_frame, name))
    tick._edgeprof = True  # type: ignore[attr-defined]
    module.frame, module.tick = Frame, tick


def rows() -> Iterator[str]:
    """A line for each callable that can be wrapped."""
    for library in ("gstreamer", "onnxruntime", "opencv", "picamera2", "pytorch", "tflite"):
        table = importlib.import_module("edgeprof._wrap." + library)
        for module, entries in table.ROWS.items():
            for row in entries:
                if row.stage:
                    yield "%s.%s -> %s" % (module, row.path.rstrip("?"), row.stage)


report = _report.show
