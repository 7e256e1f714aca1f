# SPDX-License-Identifier: Apache-2.0
"""Pages of documentation, as a reader follows them: writes the files that they name, types the commands of their
blocks into one shell, and looks for what a page shows below a block in what the block prints: all its lines, with any
numbers and in any order (that of threads, for instance). They may be longer, and "[...]" stands for what is cut."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from harness import BUILD, SOURCE

import snippets

LIBRARY = BUILD / "client" / "libedgeprof"  # its folder
PYTHONS = list(dict.fromkeys([sys.executable, "/usr/bin/python3"]))  # Debian's packages are in the latter
END = "\x01"  # is printed behind each block


def python_with(modules):
    """The Python that can import them, or None."""
    return next((python for python in PYTHONS if os.path.exists(python) and
                 subprocess.run([python, "-c", f"import {modules}"], capture_output=True).returncode == 0), None)


def sanitizer():
    """A program cannot load a library with a sanitizer unless it has it, too."""
    library = next(path for path in LIBRARY.glob("libedgeprof.so.*") if path.is_file())
    return ["-fsanitize=address,undefined"] if b"__asan_init" in library.read_bytes() else []


@contextlib.contextmanager
def reader(python=sys.executable, preload=""):
    """A folder to work in that looks like a clone that has been built; its bin has what a sanitizer needs."""
    flags = " ".join(sanitizer())
    scripts = {"run": "true", "install": "true", "bin/cc": f'/usr/bin/cc {flags} "$@"',
               "bin/c++": f'/usr/bin/c++ {flags} "$@"',
               "bin/gst-launch-1.0": f'env LD_PRELOAD={preload} GST_REGISTRY=registry /usr/bin/gst-launch-1.0 "$@"'}
    with tempfile.TemporaryDirectory(prefix="edgeprof-page.") as name:
        folder = pathlib.Path(name)
        for name, to in (("build-release", BUILD), ("client", SOURCE / "client"), ("bin/python3", python)):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).symlink_to(to)
        for name, command in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\nexec {command}\n")
            (folder / name).chmod(0o755)
        yield folder


def shell(commands, folder, env, timeout=60):
    """What it printed, and its exit status. What it started in the background ends with it."""
    env = dict(env, PATH=f"{folder}/bin:{env['PATH']}", ASAN_OPTIONS="detect_leaks=0")
    commands = f"trap 'kill $(jobs -p) 2>/dev/null || :' EXIT\n{commands}"
    process = subprocess.Popen(["bash", "-e", "-c", commands], cwd=folder, env=env, text=True, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        return process.communicate(timeout=timeout)[0], process.returncode
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def normal(line):
    """Without numbers and bars, which are different on each machine, and what depends on their width."""
    line = re.sub(r"[+-]?\d[\d.,:]*|[▁-█]+", "#", line.removesuffix("[...]"))
    line = re.sub(r"(?<=\s)-(?=\s|$)", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def missing(shown, printed):
    """The first line of what is shown that no line of what was printed begins with, or None. A line counts once."""
    lines = [normal(line) for line in printed.splitlines()]
    for line in shown.splitlines():
        wanted = normal(line)
        found = [other for other in lines if other.startswith(wanted)]
        if wanted and not found:
            return line
        if wanted:
            lines.remove(found[0])
    return None


def parts(page):
    """[a block of commands, and what is shown below it or None]"""
    found = []
    for block in snippets.of_file(page):
        if block.language == "sh" and not block.name:
            found.append([block, None])
        elif block.language == "" and found:
            found[-1][1] = block
    return found


def follow(page, env, before="", timeout=120, **options):
    """Does what the page says, after the commands before. What is an error: a command that fails, and a line that
    the page shows and nothing prints."""
    with reader(**options) as folder:
        for block in snippets.of_file(page):
            if block.name:
                (folder / block.name).write_text(block.text)
        steps = parts(page)
        script = "".join(f"{block.text}\nprintf '{END}'\n" for block, _shown in steps)
        printed, status = shell(f"{before}\n{script}", folder, env, timeout)
        outputs = printed.split(END)
        last = steps[min(len(outputs), len(steps)) - 1][0].place
        assert status == 0, f"{last}: exit status {status}\n{outputs[-1]}"
        for (block, shown), output in zip(steps, outputs):
            lost = shown and missing(shown.text, output)
            assert not lost, f"{block.place} does not print '{lost}':\n{output}"
