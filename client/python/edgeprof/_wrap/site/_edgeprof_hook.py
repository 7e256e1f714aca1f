# SPDX-License-Identifier: Apache-2.0
"""Watches for imports of the libraries that edgeprof._wrap knows. Until one is imported, this file is all that
is loaded: the package edgeprof and what it needs come with the first of them.

A file of its own without a package: programs and spawned children load it before anything else."""
import atexit
import importlib.util
import os
import sys
import time
from types import ModuleType
from typing import Any, Callable

_SITE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_SITE))

# modules, and who wraps what they define: a file of edgeprof._wrap
TARGETS = {
    "ai_edge_litert.interpreter": "tflite",
    "cv2": "opencv",
    "edgeprof": "_own",
    "gi.overrides.GObject": "gstreamer",
    "gi.repository.GstApp": "gstreamer",
    "onnxruntime": "onnxruntime",
    "picamera2": "picamera2",
    "tensorflow.lite.python.interpreter": "tflite",
    "tflite_runtime.interpreter": "tflite",
    "torch": "pytorch",
}
_SPAWNS = "multiprocessing.util"


class Options:
    """Of `edgeprof run`, and what its report says at the end."""

    listed = False
    app = ""
    pid = 0
    began_us = 0
    children = False


def say(text: str) -> None:
    """A line for whoever started the program."""
    write("edgeprof: %s\n" % text)


def write(text: str) -> None:
    """To standard error, past its buffer: what stays there makes the interpreter's exit status 120."""
    try:
        stream: Any = sys.__stderr__
        stream.flush()
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(stream.fileno(), data) :]
    except Exception:  # None, closed, or nobody reads
        pass


def _load() -> Any:
    """edgeprof._wrap of this folder, whatever sys.path is. ImportError: the program has another edgeprof."""
    place = []
    if "edgeprof" in sys.modules:
        origin = getattr(sys.modules["edgeprof"], "__file__", None)
    else:
        found = importlib.util.find_spec("edgeprof")
        origin = found.origin if found is not None else os.path.join(_PACKAGE, "__init__.py")
        place = [os.path.dirname(_PACKAGE)] if found is None else []
    if not _is_own(origin):
        raise ImportError("the program has a module edgeprof of its own")
    sys.path += place  # the last: nothing else is found there instead
    try:
        return importlib.import_module("edgeprof._wrap")
    finally:
        for path in place:
            sys.path.remove(path)


def _is_own(path: Any) -> bool:
    own = os.path.join(_PACKAGE, "__init__.py")
    return isinstance(path, str) and os.path.realpath(path) == os.path.realpath(own)


def _wrap(name: str, module: ModuleType) -> None:
    try:
        if name == _SPAWNS:
            _watch_spawns(module)
        elif name != "edgeprof" or _is_own(getattr(module, "__file__", None)):
            _load().wrap(name, module, Options, say)
    except Exception as error:
        say("%s is not wrapped: %s" % (name, error))


def _watch(loader: Any, name: str) -> None:
    """Has the module wrapped once the loader has executed it. The loader stays what it is."""
    method = "exec_module" if hasattr(loader, "exec_module") else "load_module"
    original: Callable[..., Any] = getattr(loader, method)

    def load(module: Any, *more: Any) -> Any:
        result = original(module, *more)
        if name == (module if isinstance(module, str) else module.__name__):
            if vars(loader).get(method) is load:
                delattr(loader, method)
            _wrap(name, result if isinstance(module, str) else module)
        return result

    setattr(loader, method, load)


class Finder:
    """The first of sys.meta_path: finds nothing itself."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in TARGETS and name != _SPAWNS:
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                try:
                    if spec.loader is not None:
                        _watch(spec.loader, name)
                except (AttributeError, TypeError):
                    say("%s is not wrapped: its loader cannot be watched" % name)
                return spec
        return None


def _watch_spawns(module: Any) -> None:
    """Processes that multiprocessing starts (spawn, forkserver) run this file before anything else."""
    original = module.spawnv_passfds

    def spawnv_passfds(path: Any, args: Any, passfds: Any) -> Any:
        words = list(args)
        try:
            at = words.index("-c") + 1
            if "resource_tracker" not in words[at]:
                code = "import sys; sys.path.insert(0, %r); import _edgeprof_hook; del sys.path[0]; "
                code += "_edgeprof_hook.start(%r, %r, child=True); "
                listed = "list" if Options.listed else ""
                words[at] = code % (_SITE, listed, Options.app) + words[at]
                Options.children = True
        except (ValueError, TypeError, IndexError):
            words = args
        return original(path, words, passfds)

    module.spawnv_passfds = spawnv_passfds


def _forked() -> None:
    Options.children = True


def _report() -> None:
    """At the very end: handlers of atexit run in reverse order."""
    if os.getpid() != Options.pid:
        return
    import _signal  # a program may have a module called signal

    try:
        _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
        wrap = sys.modules.get("edgeprof._wrap") or (_load() if Options.children else None)
        if wrap is not None:
            wrap.report(Options, say, write)
        else:
            say("nothing was measured: no library that is wrapped was imported")
    except Exception as error:
        say("no report: %r" % error)


def start(listed: str = "", app: str = "", child: bool = False) -> None:
    """Once per program. child: of a program that prints the report."""
    if Options.pid:
        return
    Options.pid, Options.listed, Options.app = os.getpid(), listed == "list", app
    Options.began_us = time.time_ns() // 1000
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
    if not child:
        atexit.register(_report)
        os.register_at_fork(after_in_parent=_forked)
    for name in [*TARGETS, _SPAWNS]:
        if name in sys.modules:  # by a .pth file
            _wrap(name, sys.modules[name])
