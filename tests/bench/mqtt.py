#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How late a subscriber hears of a threshold that was crossed, from the sample on that shows it, with a real
mosquitto; and the CPU of a message between the loop and the broker's acknowledgement (bench_mqtt.c)."""
import random
import subprocess
import threading
import time

from common import BENCH, SHORT, result, skipped

import mosquitto  # noqa: E402
import mqtt_board  # noqa: E402

CROSSINGS = 3 if SHORT else 25
PERIOD_MS = 100


class Timed(mqtt_board.Events):
    """Notes when each event came."""

    def __init__(self, broker):
        self.times, self.came = [], threading.Condition()
        super().__init__(broker)

    def heard(self, text):
        now = time.time()
        with self.came:
            super().heard(text)
            self.times += [now] * (len(self.seen) - len(self.times))
            self.came.notify()

    def wait(self, count):
        with self.came:
            assert self.came.wait_for(lambda: len(self.seen) >= count, 60)


def latency(broker):
    late = []
    with mqtt_board.Board(broker.port) as board:
        events = Timed(broker)
        board.connected()
        for number in range(CROSSINGS):
            time.sleep(PERIOD_MS / 1000 * random.random())  # at any point of a period
            board.temp.write_text("80000\n")
            events.wait(2 * number + 1)
            late.append(1000 * events.times[2 * number] - events.seen[2 * number][0])
            board.temp.write_text("50000\n")
            events.wait(2 * number + 2)
        events.close()
    late.sort()
    result("mqtt.after", late[int(len(late) * 0.99)])


if __name__ == "__main__":
    try:
        with mosquitto.Broker() as running:
            subprocess.run([str(BENCH / "bench_mqtt"), str(running.port)] + ["short"] * SHORT, check=True)
            latency(running)
    except mosquitto.Absent as absent:
        skipped("mqtt.after", "mqtt.message", why=str(absent))
