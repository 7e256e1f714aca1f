#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/statsd.md: its commands, with the real daemon in place of the system's and a free port in place
of 8125; nothing else is changed. Never installs anything: a client that is not there is a skip with its
reason. Node: npm install hot-shots, then NODE_PATH=$PWD/node_modules tests/integration/test_statsd_clients.py."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness import CTL, SOURCE, Daemon, run_tests, until

import snippets
from test_statsd import free_port, stage

PAGE = SOURCE / "docs" / "statsd.md"
# Each is in one block of the shell, which a test below runs.
COMMANDS = ["--dry-run", "--app yolo", "edgeprofctl emit infer", "#app:socat", "#app:netcat", "#app:bash", "python3 -c",
            "python3 client.py", "python3 aio.py", "node udp.js", "node unix.js", "edgeprofctl self"]
PYTHONS = list(dict.fromkeys([sys.executable, "/usr/bin/python3"]))  # Debian's packages are in the latter


def blocks():
    return [block for block in snippets.of_file(PAGE) if block.language in ("sh", "python", "js")]


def python_with(module):
    return next((python for python in PYTHONS if os.path.exists(python) and
                 subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0), None)


def node_has(module):
    return shutil.which("node") and subprocess.run(
        ["node", "-e", f"require('{module}')"], capture_output=True).returncode == 0


def run_block(daemon, port, wanted):
    """The block of the shell that has this text, and the file before it that it starts."""
    found = [i for i, block in enumerate(blocks()) if block.language == "sh" and wanted in block.text]
    assert len(found) == 1, (wanted, found)

    def ours(text):
        return text.replace("/run/edgeprofd/statsd", str(daemon.run_dir / "statsd")).replace("8125", str(port))

    with tempfile.TemporaryDirectory() as folder:
        program = blocks()[found[0] - 1]
        if program.name:
            (pathlib.Path(folder) / program.name).write_text(ours(program.text))
        tools = pathlib.Path(folder) / "bin"
        tools.mkdir()
        (tools / "edgeprofctl").symlink_to(CTL)
        python = next((p for m in ("statsd", "aiodogstatsd") if program.name and f"import {m}" in program.text
                       for p in [python_with(m)]), sys.executable)
        (tools / "python3").symlink_to(python)
        env = dict(daemon.env, PATH=f"{tools}:{os.environ['PATH']}")
        done = subprocess.run(["bash", "-e", "-c", ours(blocks()[found[0]].text)], env=env, cwd=folder,
                              capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done


def check(wanted, app, name="infer", count=1, minimum_ms=12.5):
    port = free_port()
    with Daemon(f"[statsd]\nudp = 127.0.0.1:{port}\n") as daemon:
        done = run_block(daemon, port, wanted)
        row = until(f"{app}/{name} of {wanted}",
                    lambda: [r for r in [stage(daemon, app, name)] if r and r["total_count"] == count])[0]
        assert row["min_ms"] >= minimum_ms, row
        told = daemon.call("GetSelf")
        assert told["statsd_bad_lines"] == told["statsd_unsupported"] == 0, told
        return done, row


def test_a_log():
    port = free_port()
    with Daemon() as daemon:
        done = run_block(daemon, port, "--dry-run")
    assert done.stdout + done.stderr in PAGE.read_text(), done  # the page shows what it prints
    done, _row = check("--app yolo", "yolo", "inference", minimum_ms=5.6)
    assert done.stderr == "edgeprofctl: 1 of 1 lines match; events: 3 sent\n", done


def test_emit():
    check("edgeprofctl emit infer", "sh")
    check("edgeprofctl emit infer", "sh", "convert", minimum_ms=10)


def test_tools_of_the_shell():
    for tool, app in (("socat", "socat"), ("nc", "netcat"), ("bash", "bash")):
        if not shutil.which(tool):
            return f"{tool} is not on the PATH"
        check(f"#app:{app}", app)
    return None


def test_python_alone():
    check("python3 -c", "py")


def test_python_statsd():
    if not python_with("statsd"):
        return "no Python module statsd (Debian: python3-statsd)"
    check("python3 client.py", "statsd", count=10, minimum_ms=2)
    return None


def test_python_aiodogstatsd():
    if not python_with("aiodogstatsd"):
        return "no Python module aiodogstatsd (Debian: python3-aiodogstatsd)"
    _done, row = check("python3 aio.py", "aio", count=10, minimum_ms=2)
    assert row["unit"] == "gpu", row
    return None


def test_node_over_udp():
    if not node_has("hot-shots"):
        return "node has no hot-shots; npm install hot-shots, and set NODE_PATH"
    check("node udp.js", "node", count=10)
    return None


def test_node_over_the_unix_socket():
    if not node_has("hot-shots") or not node_has("unix-dgram"):
        return "node has no hot-shots or no unix-dgram; npm install hot-shots, and set NODE_PATH"
    check("node unix.js", "nodeunix", count=10, minimum_ms=0)
    return None


def test_what_arrived():
    port = free_port()
    with Daemon() as daemon:
        daemon.ctl("emit", "infer", "12.5ms", "--app", "sh")
        until("it arrived", lambda: stage(daemon, "sh", "infer"))
        done = run_block(daemon, port, "edgeprofctl self")
        assert "infer" in done.stdout and "Datagrams" in done.stdout, done


def test_every_block_is_run():
    for block in blocks():
        if block.language == "sh":
            assert sum(wanted in block.text for wanted in COMMANDS) == 1, block.text


if __name__ == "__main__":
    run_tests(globals())
