#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a fleet costs its broker: N devices of integration/mqtt_fleet.c (the daemon's publisher, 500 in a process) at
rest, in an incident (an alert fires on each), and after a power cut (all are killed, and start hot, at once).

run.py [--devices 50] [--interval 10] [--broker mosquitto|rabbitmq]      EDGEPROF_BUILD: the build directory"""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from harness import skip, until

import mosquitto
import test_mqtt_cluster as cluster
from test_mqtt_fleet import Fleet

PER_PROCESS = 500


def usage(pid):
    """Seconds of processor and MiB of memory of a process and what it started."""
    seconds = memory = 0
    with contextlib.suppress(OSError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        memory = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            more = usage(child)
            seconds, memory = seconds + more[0], memory + more[1]
    return seconds, memory


def heard(port, count, *topics):
    """The first payloads there."""
    words = [word for topic in topics for word in ("-t", topic)]
    return subprocess.run(["mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-q", "1", "-C", str(count), "-W", "60", *words],
                          capture_output=True, text=True, timeout=300).stdout.split("\n")[:-1]


class Meter:
    """What the broker received and used since begin()."""

    def __init__(self, broker, devices):
        self.broker, self.devices = broker, devices
        self.begin()

    def received(self):
        """Packets and bytes by mosquitto's own counters, right after it has set them, each second."""
        if not isinstance(self.broker, mosquitto.Broker):
            return time.monotonic(), 0, 0
        heard(self.broker.port, 2, "$SYS/broker/uptime")  # the retained one, and the next
        return (time.monotonic(), *(int(heard(self.broker.port, 1, f"$SYS/broker/{what}/received")[0]) for what in ("messages", "bytes")))

    def begin(self):
        self.counts = self.received()
        self.began, self.used = time.monotonic(), usage(self.broker.process.pid)[0]

    def line(self, name, note=""):
        passed = time.monotonic() - self.began
        used, memory = usage(self.broker.process.pid)
        counts = self.received()
        span, packets, size = (new - old for new, old in zip(counts, self.counts))
        counted = f"; {packets / span:.0f} packets/s, {size / span / 1000:.0f} kB/s; of a device in {span:.0f} s " \
                  f"{packets / self.devices:.2f} packets, {size / self.devices:.0f} bytes" if packets else ""
        print(f"{self.devices} devices, {name}: {passed:.1f} s, broker {(used - self.used) / passed:.0%} of a processor, "
              f"{memory:.0f} MiB{counted}{note}", flush=True)
        self.counts, self.began, self.used = counts, time.monotonic(), usage(self.broker.process.pid)[0]


def ask(fleets, line):
    for fleet in fleets:
        fleet.send(line)
    answers = [fleet.answer() for fleet in fleets]
    return {name: sum(answer[name] for answer in answers) for name in answers[0]}


def settle(fleets, count, line):
    """Until all are connected, and nothing waits for its acknowledgement; the most connects in a second."""
    points = [(time.monotonic(), 0)]
    ask(fleets, line)

    def settled():
        now = ask(fleets, "tell")
        points.append((time.monotonic(), now["connects"]))
        return now["connected"] == count and now["waiting"] == 0
    until("all are connected, and nothing waits", settled, 600, 0.25)
    return max((c - b) / max(t - s, 1) for (s, b), (t, c) in zip(points, points[1:]))


def power_cut(fleets):
    for fleet in fleets:
        fleet.child.kill()
    for fleet in fleets:
        fleet.child.wait()


def campaign(broker, count, interval_s):
    def start():
        return [Fleet(broker.port, min(PER_PROCESS, count - first), first, int(interval_s * 1000))
                for first in range(0, count, PER_PROCESS)]

    def retained(what, *topics):  # of a sample, each by its name: RabbitMQ has none for wildcards
        names = [f"edgeprof/n{number}" for number in range(0, count, -(-count // 50))]
        seen = heard(broker.port, len(names) * len(topics), *(f"{name}/{topic}" for name in names for topic in topics))
        return len(seen) == len(names) * len(topics) and seen.count(what) == len(names)

    meter = Meter(broker, count)
    fleets = start()
    settle(fleets, count, "tell")
    meter.line("first start")
    time.sleep(2 * interval_s)
    meter.line("at rest")
    settle(fleets, count, "heat 90")
    meter.line("incident, until all was acknowledged")
    power_cut(fleets)
    until("the last will", lambda: retained("offline", "status"), 120)
    meter.begin()
    fleets = start()
    most = settle(fleets, count, "heat 90")
    meter.line("power cut, until the last retained state", f"; at most {most:.0f} connects/s")
    assert retained("online", "status", "alert/temperature/_") and ask(fleets, "tell")["dropped_alerts"] == 0
    power_cut(fleets)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=50)
    parser.add_argument("--interval", type=float, default=10)
    parser.add_argument("--broker", choices=("mosquitto", "rabbitmq"), default="mosquitto")
    wanted = parser.parse_args()
    if wanted.broker == "rabbitmq":
        if not cluster.version("rabbitmq"):
            skip("apt-get install --no-install-recommends rabbitmq-server")
        with cluster.cluster(lambda folder: cluster.rabbitmq(folder, 1)) as nodes:
            campaign(nodes[0], wanted.devices, wanted.interval)
    else:
        try:
            with mosquitto.Broker(more=["sys_interval 1", "max_inflight_messages 0"]) as broker:
                campaign(broker, wanted.devices, wanted.interval)
        except mosquitto.Absent as absent:
            skip(str(absent))
