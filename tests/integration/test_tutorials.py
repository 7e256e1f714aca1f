#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials: each page, followed by somebody who has built edgeprofd and has not installed it."""
import pathlib
import re
import shutil
import subprocess
import tempfile

import pages
from harness import BUILD, SOURCE, Daemon, run_tests

import snippets

FOLDER = SOURCE / "docs" / "tutorials"
EXPORTS = "\n".join(re.findall(r"^export .*$", (FOLDER / "README.md").read_text(), re.M))


def follow(page, **options):
    with Daemon() as daemon:
        pages.follow(FOLDER / page, daemon.env, EXPORTS, **options)


def test_the_index():
    """Its daemon is started by the page, and ends with it."""
    with tempfile.TemporaryDirectory() as folder:
        pages.follow(FOLDER / "README.md", dict(Daemon(run_dir=folder).env))


def test_python():
    python = pages.python_with("cv2, numpy")
    if not python:
        return "no Python module cv2 (Debian: python3-opencv)"
    follow("python.md", python=python)
    return None


def test_c_and_cpp():
    tools = [tool for tool in ("cc", "c++", "pkg-config") if not shutil.which(tool)]
    if tools:
        return f"not installed: {', '.join(tools)}"
    follow("cpp.md")
    return None


def sanitizer_of(plugin):
    """What gst-launch-1.0 has to load before it: gcc's sanitizer is a library, and clang's is not."""
    needed = subprocess.run(["ldd", plugin], capture_output=True, text=True).stdout
    return next((line.split()[2] for line in needed.splitlines() if "libasan" in line), "")


def test_gstreamer():
    plugin = BUILD / "client" / "gstreamer" / "libgstedgeprof.so"
    if not plugin.exists() or not shutil.which("gst-launch-1.0"):
        return "not built without libgstreamer1.0-dev, or no gst-launch-1.0 (Debian: gstreamer1.0-tools)"
    if any(subprocess.run(["gst-inspect-1.0", "--exists", name]).returncode for name in ("videoconvert", "vp8enc")):
        return "no elements videoconvert and vp8enc (Debian: gstreamer1.0-plugins-base, gstreamer1.0-plugins-good)"
    preload = sanitizer_of(plugin)
    if pages.sanitizer() and not preload:
        return "built by clang with a sanitizer, which gst-launch-1.0 cannot load"
    follow("gstreamer.md", preload=preload)
    return None


def test_logs():
    follow("logs.md")


def test_fps():
    follow("fps.md")


def test_ci():
    """The page says to measure on a machine that does nothing else, and other tests keep this one busy."""
    for left in (2, 1, 0):
        try:
            return follow("ci.md")
        except AssertionError:
            if not left:
                raise
    return None


def test_services_of_ci_use_commands_of_the_page():
    blocks = snippets.of_file(FOLDER / "ci.md")
    typed = {line for block in blocks if block.language == "sh" for line in block.text.splitlines()}
    run = [line for block in blocks if block.language == "yaml"
           for line in re.findall(r"- (?:run: )?((?:bash|edgeprofctl) .*)", block.text)]
    assert len(run) == 2 and typed.issuperset(run), run


def test_every_page_is_followed():
    source = pathlib.Path(__file__).read_text()
    assert all(f'"{page.name}"' in source for page in FOLDER.glob("*.md"))


if __name__ == "__main__":
    run_tests(globals())
