#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other programs that sample a machine once a second cost, in Debian's packages: collectd with the plugins
that read what edgeprofd reads, and node_exporter as it is, asked once a second."""
import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

from common import SHORT, cpu_s, harness, kib, result, skipped, switches

import mosquitto

WINDOWS, WINDOW_S = (1, 1) if SHORT else (5, 6)
PLUGINS = "contextswitch cpu cpufreq df disk interface load memory processes swap thermal uptime vmem unixsock".split()


def measure(name, process, each_second=lambda: None):
    for _ in range(WINDOWS):
        cpu, before, begin = cpu_s(process.pid), sum(switches(process.pid).values()), time.monotonic()
        while time.monotonic() < begin + WINDOW_S:
            each_second()
            time.sleep(1)
        took = time.monotonic() - begin
        result(f"idle.cpu.peer.{name}", 1e6 * (cpu_s(process.pid) - cpu) / took)
        result(f"wakeups.peer.{name}", (sum(switches(process.pid).values()) - before) / took)
        result(f"memory.stages16.peer.{name}", kib(process.pid, "RssAnon", "RssShmem") / 1024)


def list_values(path):
    """p50 and p99 of LISTVAL in microseconds."""
    took = []
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
        connection.connect(path)
        for _ in range(50 if SHORT else 1000):
            begin = time.perf_counter_ns()
            connection.sendall(b"LISTVAL\n")
            reply = connection.recv(65536)
            while reply.count(b"\n") <= int(reply.split()[0]):
                reply += connection.recv(65536)
            took.append((time.perf_counter_ns() - begin) / 1e3)
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    result("query.p50.peer.collectd", cuts[49])
    result("query.p99.peer.collectd", cuts[98])


def collectd(folder):
    program = shutil.which("collectd", path=mosquitto.PLACES)
    if not program:
        return skipped("peers.collectd", why="not installed")
    path, config = f"{folder}/socket", f"{folder}/collectd.conf"
    with open(config, "w") as out:
        out.write(f'BaseDir "{folder}"\nPIDFile "{folder}/pid"\nHostname "bench"\nFQDNLookup false\nInterval 1\nTypesDB "/usr/share/collectd/types.db"\n')
        out.write("".join(f"LoadPlugin {plugin}\n" for plugin in PLUGINS))
        out.write(f'<Plugin unixsock>\n  SocketFile "{path}"\n</Plugin>\n<Plugin processes>\n  Process "collectd"\n</Plugin>\n')
    with open(f"{folder}/log", "w") as log, harness.program([program, "-f", "-C", config], None, stdout=log, stderr=log) as process:
        harness.until("collectd's socket", lambda: os.path.exists(path))
        time.sleep(0.5 if SHORT else 3)
        measure("collectd", process)
        list_values(path)


def node_exporter(_):
    program = shutil.which("prometheus-node-exporter", path=mosquitto.PLACES)
    if not program:
        return skipped("peers.node_exporter", why="not installed")
    port = mosquitto.free_port()

    def scrape():
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            size = 0
            while data := connection.recv(65536):
                size += len(data)
            return size

    command = [program, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    with harness.program(command, None, stderr=subprocess.DEVNULL) as process:
        harness.until("node_exporter answers", scrape)
        measure("node_exporter", process, scrape)


if __name__ == "__main__":
    for peer in (collectd, node_exporter):
        with tempfile.TemporaryDirectory(prefix="edgeprof-bench.") as scratch:
            peer(scratch)
