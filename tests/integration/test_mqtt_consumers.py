#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that read what we publish, run as the examples in daemon/publish/schema/consumers/ say,
with the real daemon and a real mosquitto. Never installs anything: what is not on the PATH is a skip
with its reason. Node-RED: npm install node-red, then PATH=node_modules/.bin:$PATH. Telegraf and
Grafana are not in Debian."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import urllib.request

from harness import DEMO, SOURCE, Daemon, board, program, run_tests_with_broker, skip, until

import mosquitto
from test_mqtt import DEVICE, config

EXAMPLES = SOURCE / "daemon/publish/schema/consumers"


def absent(name):
    return None if shutil.which(name) else f"{name} is not on the PATH"


@contextlib.contextmanager
def started():
    """Broker, daemon on a board whose temperature the test sets, a scratch folder."""
    with tempfile.TemporaryDirectory() as scratch, mosquitto.Broker() as broker:
        root, temperature = board(scratch)
        with Daemon(config(broker), root=root) as daemon:
            until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
            yield broker, daemon, temperature, pathlib.Path(scratch)


def ours(name, broker):
    """The example, with the port of this test's broker and nothing else changed."""
    text = (EXAMPLES / name).read_text()
    assert "1883" in text
    return text.replace("1883", str(broker.port))


def test_node_red_runs_the_flow():
    if absent("node-red"):
        return absent("node-red")
    with started() as (broker, daemon, temperature, scratch):
        flow = scratch / "flow.json"
        flow.write_text(ours("node-red.json", broker))
        settings = scratch / "settings.js"
        settings.write_text(f"module.exports = {{uiHost: '127.0.0.1', uiPort: {mosquitto.free_port()}, "
                            "telemetry: {enabled: false}, disableEditor: true}\n")
        environment = dict(os.environ, HOME=str(scratch))
        log = open(scratch / "log", "w")
        with log, program(["node-red", "-u", scratch, "-s", settings, flow], environment, stdout=log, stderr=log):
            key = f"values/{DEVICE}/temperature_max_celsius"
            seen = broker.subscribe("values/#", timeout=120, until=lambda seen: any(m[0] == key for m in seen))
            assert float(dict(seen)[key]) == 50, seen
            seen = broker.subscribe("notify/#", timeout=60, ready=lambda: temperature.write_text("80000\n"),
                                    until=lambda seen: any("firing" in m[1] for m in seen))
            assert seen[-1][0] == f"notify/{DEVICE}" and "warning firing: " in seen[-1][1] and "80" in seen[-1][1], seen


def test_prometheus_mqtt_exporter_serves_the_values():
    name = "prometheus-mqtt-exporter"
    if absent(name):
        return absent(name)
    with started() as (broker, daemon, temperature, scratch):
        settings = scratch / "exporter.yaml"
        settings.write_text(ours("prometheus-mqtt-exporter.yaml", broker))
        port = mosquitto.free_port()
        command = [name, "-config", settings, "-listen-address", "127.0.0.1", "-listen-port", port]
        with program(command, dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            def served():
                with contextlib.suppress(OSError):
                    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
                    return [line for line in text.splitlines() if line.startswith("edgeprof_temperature_max_celsius{")]
            lines = until("the exporter has our temperature", served)
            assert DEVICE in lines[0] and float(lines[0].split()[1]) == 50, lines


def test_telegraf_makes_points_of_it():
    if absent("telegraf"):
        return absent("telegraf")
    with started() as (broker, daemon, temperature, scratch):
        settings = scratch / "telegraf.conf"
        settings.write_text("[agent]\ninterval = \"1s\"\nflush_interval = \"1s\"\n" + ours("telegraf.conf", broker))
        with program(["telegraf", "--config", settings], dict(os.environ), stdout=subprocess.PIPE, text=True,
                     stderr=subprocess.DEVNULL) as telegraf:
            line = next(line for line in telegraf.stdout if line.startswith("edgeprof,"))
            assert f"device={DEVICE}" in line and "temperature_max_celsius=50" in line, line


def test_mosquitto_sub_and_jq():
    if absent("jq"):
        return absent("jq")
    with started() as (broker, daemon, temperature, scratch), program([DEMO, "--app", "demo"], daemon.env):
        command = (f"mosquitto_sub -h 127.0.0.1 -p {broker.port} -C 1 -W 30 -t 'edgeprof/+/stage/+/infer'"
                   " | jq -r '[.ts, .app, .stage, .rate_per_second, .p95_ms] | @tsv'")
        words = subprocess.run(command, shell=True, check=True, capture_output=True, text=True, timeout=60).stdout.split("\t")
        assert words[1:3] == ["demo", "infer"] and float(words[3]) > 0 and float(words[4]) > 0, words


if __name__ == "__main__":
    wanted = ("node-red", "prometheus-mqtt-exporter", "telegraf", "jq")
    if all(absent(name) for name in wanted):
        skip("none of " + ", ".join(wanted) + " is on the PATH")
    run_tests_with_broker(dict(globals()))
