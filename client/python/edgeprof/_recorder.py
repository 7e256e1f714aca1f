# SPDX-License-Identifier: Apache-2.0
"""Chooses the recorder: edgeprof._fast, where it was built for this interpreter, else the one in Python.

EDGEPROF_PURE=1 asks for the one in Python. So does EDGEPROF_PRINT=1: its lines go to sys.stderr."""
import functools
import importlib
import os
from typing import Any, Callable, Dict, Optional, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def _choose() -> Any:
    if "1" not in (os.environ.get("EDGEPROF_PURE"), os.environ.get("EDGEPROF_PRINT")):
        try:
            return importlib.import_module("edgeprof._native")
        except ImportError:  # not built, or not for this interpreter
            pass
    return importlib.import_module("edgeprof._pure")


recorder = _choose()
process, emit = recorder.process, recorder.emit
stage, frame, Frames, Profiler = recorder.stage, recorder.frame, recorder.Frames, recorder.Profiler
read_advice = recorder.read_advice


def connect(app: Optional[str] = None) -> bool:
    """Names this program and looks for a daemon now; True when one is there.

    app: 1-48 bytes of [A-Za-z0-9_.-], other bytes become `_`; None = the program's file name.
    Optional (the first event does it), and only the first name counts. TypeError: not a str."""
    if app is not None and not isinstance(app, str):
        raise TypeError("app is a str or None, not %s" % type(app).__name__)
    return bool(recorder.connect(app))


def shutdown() -> None:
    """Detaches from the daemon and stops recording. Called automatically at exit."""
    recorder.shutdown()


def counts() -> Dict[str, Any]:
    """What this process has counted so far: sent = received + dropped + in_ring.

    unattached: events before a daemon was ever there; they are in none of the others.
    attached: a daemon holds the mapping, as far as known."""
    return dict(recorder.counts())


def timed(name: str, **options: Any) -> Callable[[_F], _F]:
    """A decorator: every call of the function is a run of the stage. options: those of stage().

    A coroutine function is timed from its first step to its end, waiting included. Of a generator
    function each step is a run, from where it is resumed to its next yield or its end; those of an
    asynchronous one include waiting."""
    stage(name, **options)  # wrong arguments raise here, not at the first call

    def decorate(function: _F) -> _F:
        import inspect

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                with stage(name, **options):
                    return await function(*args, **kwargs)

            return run_async  # type: ignore[return-value]

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def run_steps(*args: Any, **kwargs: Any) -> Any:
                body = function(*args, **kwargs)
                step, value = body.send, None
                while True:
                    with stage(name, **options):
                        try:
                            item = step(value)
                        except StopIteration as end:
                            return end.value
                    try:
                        step, value = body.send, (yield item)
                    except GeneratorExit:
                        body.close()
                        raise
                    except BaseException as error:
                        step, value = body.throw, error

            return run_steps  # type: ignore[return-value]

        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def run_async_steps(*args: Any, **kwargs: Any) -> Any:
                body = function(*args, **kwargs)
                step, value = body.asend, None
                while True:
                    with stage(name, **options):
                        try:
                            item = await step(value)
                        except StopAsyncIteration:
                            return
                    try:
                        step, value = body.asend, (yield item)
                    except GeneratorExit:
                        await body.aclose()
                        raise
                    except BaseException as error:
                        step, value = body.athrow, error

            return run_async_steps  # type: ignore[return-value]

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with stage(name, **options):
                return function(*args, **kwargs)

        return run  # type: ignore[return-value]

    return decorate
