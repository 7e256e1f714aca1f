#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/statsd.md: its commands, with the real daemon in place of the system's and a free port in place
of 8125; nothing else is changed. Never installs anything: a client that is not there is a skip with its
reason. Node: npm install hot-shots, then NODE_PATH=$PWD/node_modules tests/integration/test_statsd_clients.py."""
import shutil
import subprocess
import sys

import pages
from harness import CTL, SOURCE, Daemon, run_tests, until

import snippets
from pages import python_with
from test_statsd import free_port, stage

PAGE = SOURCE / "docs" / "statsd.md"
# Each is in one block of the shell, which a test below runs.
COMMANDS = ["--dry-run", "--app yolo", "edgeprofctl emit infer", "#app:socat", "#app:netcat", "#app:bash", "python3 -c",
            "python3 client.py", "python3 aio.py", "node udp.js", "node unix.js", "edgeprofctl self"]


def blocks():
    return [block for block in snippets.of_file(PAGE) if block.language in ("sh", "python", "js")]


def node_has(module):
    return shutil.which("node") and subprocess.run(
        ["node", "-e", f"require('{module}')"], capture_output=True).returncode == 0


def run_block(daemon, port, wanted):
    """The block of the shell that has this text, and the file before it that it starts."""
    found = [i for i, block in enumerate(blocks()) if block.language == "sh" and wanted in block.text]
    assert len(found) == 1, (wanted, found)

    def ours(text):
        return text.replace("/run/edgeprofd/statsd", str(daemon.run_dir / "statsd")).replace("8125", str(port))

    program = blocks()[found[0] - 1]
    python = next((python_with(module) for module in ("statsd", "aiodogstatsd")
                   if program.name and f"import {module}" in program.text), sys.executable)
    with pages.reader(python) as folder:
        if program.name:
            (folder / program.name).write_text(ours(program.text))
        printed, status = pages.shell(f"PATH={CTL.parent}:$PATH\n{ours(blocks()[found[0]].text)}", folder, daemon.env)
    assert status == 0, printed
    return printed


def check(wanted, app, name="infer", count=1, minimum_ms=12.5):
    port = free_port()
    with Daemon(f"[statsd]\nudp = 127.0.0.1:{port}\n") as daemon:
        printed = run_block(daemon, port, wanted)
        row = until(f"{app}/{name} of {wanted}",
                    lambda: [r for r in [stage(daemon, app, name)] if r and r["total_count"] == count])[0]
        assert row["min_ms"] >= minimum_ms, row
        told = daemon.call("GetSelf")
        assert told["statsd_bad_lines"] == told["statsd_unsupported"] == 0, told
        return printed, row


def test_a_log():
    port = free_port()
    with Daemon() as daemon:
        printed = run_block(daemon, port, "--dry-run")
    assert printed in PAGE.read_text(), printed  # the page shows it
    printed, _row = check("--app yolo", "yolo", "inference", minimum_ms=5.6)
    assert printed == "edgeprofctl: 1 of 1 lines match; events: 3 sent\n", printed


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
    _printed, row = check("python3 aio.py", "aio", count=10, minimum_ms=2)
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
        printed = run_block(daemon, port, "edgeprofctl self")
        assert "infer" in printed and "Datagrams" in printed, printed


def test_every_block_is_run():
    for block in blocks():
        if block.language == "sh":
            assert sum(wanted in block.text for wanted in COMMANDS) == 1, block.text


if __name__ == "__main__":
    run_tests(globals())
