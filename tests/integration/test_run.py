#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./run, as a newcomer types it: shows the live picture, and Ctrl-C leaves nothing behind."""
import os
import pathlib
import signal
import subprocess
import tempfile

from harness import SOURCE, run_tests, skip


def descendants_of(marker):
    """Processes whose environment holds the marker: what ./run started, wherever it hangs now."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found.append((int(entry.name), (entry / "cmdline").read_bytes()))
            except OSError:
                pass
    return found


def run(*arguments, interrupt=None):
    with tempfile.TemporaryDirectory() as scratch:
        env = dict(os.environ, TMPDIR=scratch, NO_COLOR="1")
        env.pop("LD_LIBRARY_PATH", None)  # meson's, to the sanitized library: not what a newcomer has
        process = subprocess.Popen(
            [str(SOURCE / "run"), *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, stdin=subprocess.DEVNULL, start_new_session=True,
        )
        if interrupt:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if interrupt in line:
                    break
            os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does
            rest, errors = process.communicate(timeout=60)
            output = "".join(lines) + rest
        else:
            output, errors = process.communicate(timeout=300)
        left = descendants_of("TMPDIR=" + scratch)
        files = list(pathlib.Path(scratch).iterdir())
    return process.returncode, output, errors, left, files


def test_run_shows_the_machine_and_the_pipeline_and_cleans_up():
    code, output, errors, left, files = run("--seconds", "8")
    assert code == 0, errors
    for word in ("demo", "infer", "capture", "publish", "cpu"):
        assert word in output, (word, output, errors)
    assert left == [] and files == [], (left, files)


def test_interrupt_leaves_nothing_behind():
    code, output, errors, left, files = run(interrupt="infer")
    assert code in (0, 130, -signal.SIGINT), (code, errors)
    assert left == [] and files == [], (left, files)


def test_wrong_option_is_usage():
    assert run("--nonsense")[0] == 64


if __name__ == "__main__":
    if not (SOURCE / "build-release" / "build.ninja").exists():
        skip("./run --setup was not called here")
    run_tests(dict(globals()))
