# SPDX-License-Identifier: Apache-2.0
"""`python3 -m edgeprof run SCRIPT`: runs a program that does not use the module, and records its pipeline.

The interpreter is executed once more, with the program's own arguments and a folder in front of PYTHONPATH
whose sitecustomize.py wraps the known libraries. So the program is what `python3 SCRIPT` is: the same
process, arguments, __main__, tracebacks and exit status, and none of our frames."""
import os
import subprocess
import sys
from typing import Callable, Dict, List

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_wrap", "site")
USAGE = """usage: python3 -m edgeprof run [-a APP] [--list] SCRIPT|-m MODULE|-c CODE|- [ARG...]

Runs the program as python3 does and records the calls that make its pipeline, of OpenCV, ONNX Runtime,
TensorFlow Lite, PyTorch, picamera2 and GStreamer. The report goes to standard error when the program ends.

  -a, --app APP  the name of the program for edgeprofd (default: its file name)
  -l, --list     report each function that is wrapped; without a program: list those that can be
  -h, --help     print this help
"""


class Usage(Exception):
    """The command line is wrong."""


def _interpreter() -> List[str]:
    """The interpreter's own options, of `python3 OPTIONS -m edgeprof ...`."""
    words: List[str] = getattr(sys, "orig_argv", [])[1:]
    words = words[: len(words) - len(sys.argv[1:])]
    if words[-1:] == ["edgeprof"] and words[-2:-1] and words[-2][-1] == "m":
        return words[:-2] + [word for word in [words[-2][:-1]] if word != "-"]
    return list(subprocess._args_from_interpreter_flags())  # type: ignore[attr-defined]


def _list() -> int:
    from . import _wrap

    for line in _wrap.rows():
        print(line)
    return 0


def run(words: List[str]) -> int:
    app, listed, words = "", False, list(words)
    while words and words[0].startswith("-") and words[0][:2] not in ("-", "-m", "-c"):
        word = words.pop(0)
        if word in ("-h", "--help"):
            print(USAGE, end="")
            return 0
        if word in ("-l", "--list"):
            listed = True
        elif word.startswith("--app="):
            app = word[len("--app=") :]
        elif word in ("-a", "--app"):
            if not words:
                raise Usage("option '%s' requires an argument" % word)
            app = words.pop(0)
        elif word == "--":
            break
        else:
            raise Usage("unrecognized option '%s'" % word)
    if not words and listed:
        return _list()
    if not words:
        raise Usage("no program given")
    if sys.flags.ignore_environment or sys.flags.no_site:
        raise Usage("not with the interpreter's options -E, -I and -S: nothing would be wrapped")
    if os.pathsep in SITE:
        raise Usage("PYTHONPATH cannot contain '%s'" % SITE)
    if os.environ.get("EDGEPROF_DISABLE") != "1":
        others = [os.environ[name] for name in ["PYTHONPATH"] if name in os.environ]
        os.environ["PYTHONPATH"] = os.pathsep.join([SITE] + others)
        os.environ["EDGEPROF_RUN"] = "%s/%s" % ("list" if listed else "", app)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable] + _interpreter() + words)


COMMANDS: Dict[str, Callable[[List[str]], int]] = {"run": run}


def main() -> int:
    words = sys.argv[1:]
    try:
        if words and words[0] in COMMANDS:
            return COMMANDS[words[0]](words[1:])
        if words[:1] in (["-h"], ["--help"]):
            print(USAGE, end="")
            return 0
        raise Usage("unknown command '%s'" % words[0] if words else "no command given")
    except Usage as error:
        print("edgeprof: %s\n%s" % (error, USAGE.splitlines()[0]), file=sys.stderr)
    except OSError as error:
        print("edgeprof: cannot execute '%s': %s" % (sys.executable, error.strerror), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
