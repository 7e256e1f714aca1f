#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MQTT in figures: how late a subscriber hears of a threshold that was crossed, and what a message
costs (bench_mqtt.c, the first argument)."""
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))

from harness import skip  # noqa: E402
import mosquitto  # noqa: E402
import mqtt_board as outage  # noqa: E402

CROSSINGS = 50
PERIOD_MS = 100


class Timed(outage.Events):
    """Notes when each event came."""

    def read(self):
        self.times = []
        for line in self.child.stdout:
            if line.startswith("Subscribed"):
                self.subscribed.set()
            if line.startswith("MESSAGE "):
                self.times.append(time.time() * 1000)
                event = outage.json.loads(line[8:])
                self.seen.append((event["ts_ms"], event["state"]))


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * q))]


def latency():
    with mosquitto.Broker() as broker, outage.Board(broker.port) as board:
        events = Timed(broker)
        board.connected()
        crossed, told, after = [], [], []
        for number in range(CROSSINGS):
            time.sleep(0.05 + 0.037 * (number % 4))  # at any place within a period
            count = len(events.seen)
            start = time.time() * 1000
            board.temp.write_text("80000\n")
            outage.until("told", lambda: len(events.seen) > count, pause=0.002)
            crossed.append(events.times[count] - start)
            told.append(events.times[count] - events.seen[count][0])
            after.append(max(0.0, crossed[-1] - PERIOD_MS))
            board.temp.write_text("50000\n")
            outage.until("ended", lambda: len(events.seen) > count + 1)
        events.close()
    for name, values in (("sample taken to subscriber", told), ("crossing to subscriber", crossed),
                         (f"beyond the period of {PERIOD_MS} ms", after)):
        print(f"{name:28} p50 {quantile(values, 0.5):7.2f} ms, p99 {quantile(values, 0.99):7.2f} ms ({len(values)} crossings)")


if __name__ == "__main__":
    try:
        with mosquitto.Broker() as running:
            subprocess.run([sys.argv[1], str(running.port)], check=True)
    except mosquitto.Absent as absent:
        skip(str(absent))
    latency()
