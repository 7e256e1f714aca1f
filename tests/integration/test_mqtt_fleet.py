#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fifty devices whose broker goes and comes back: they connect spread out, send what waited at a
pace, lose no alert and keep the order. Figures are printed."""
import collections
import pathlib
import re
import subprocess
import time

from harness import BUILD, run_tests_with_broker, until

import mosquitto

FLEET = BUILD / "tests" / "integration" / "mqtt-fleet"
COUNT = 50
MESSAGES = 200  # each; every fourth is an alert
OUTAGE_S = 6
AT_ONCE, PER_S = 16, 20  # daemon/publish/outbox/outbox.h


class Fleet:
    def __init__(self, port, *words):
        self.child = subprocess.Popen([str(FLEET), str(port), *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, preexec_fn=mosquitto.die_with_parent)

    def send(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def answer(self):
        names = ("connected", "connects", "waiting", "delivered", "dropped", "dropped_alerts")
        return dict(zip(names, map(int, self.child.stdout.readline().split())))

    def ask(self, line):
        self.send(line)
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.child.stdin.close()
        if kind is None:
            assert self.child.wait(30) == 0
        self.child.kill()
        self.child.wait()


class Listener(mosquitto.Subscriber):
    """Everything the fleet says, with the second of its arrival."""

    def __init__(self, port):
        self.messages = []
        super().__init__(port, "listener", ["edgeprof/+/event/alert", "edgeprof/+/summary"], "%U %t %p")

    def heard(self, text):
        when, topic, serial = text.split()
        self.messages.append((float(when), *topic.split("/")[1:3], int(serial)))


def busiest(times, span=1.0):
    """How many of them fall into one span at most."""
    times = sorted(times)
    most = first = 0
    for last, when in enumerate(times):
        while when - times[first] >= span:
            first += 1
        most = max(most, last - first + 1)
    return most


def test_fifty_devices_come_back_without_a_storm():
    broker = mosquitto.Broker(persistence=True, more=["connection_messages true"])
    log = pathlib.Path(broker.folder) / "log"
    with open(broker.config, "a", encoding="utf-8") as config:
        config.write(f"log_dest file {log}\nlog_type notice\nlog_timestamp true\nmax_inflight_messages 0\n")
    with broker, Fleet(broker.port, COUNT) as fleet:
        until("all are connected", lambda: fleet.ask("tell")["connected"] == COUNT, 60)
        listener = Listener(broker.port)
        try:
            broker.stop()
            until("all know", lambda: fleet.ask("tell")["connected"] == 0)
            assert fleet.ask(f"fill {MESSAGES}")["waiting"] == COUNT * MESSAGES
            time.sleep(OUTAGE_S)  # the pauses between attempts grow
            log.unlink()
            broker.start()
            until("all are back", lambda: fleet.ask("tell")["connected"] == COUNT, 120)
            last = until("all is sent", lambda: (now := fleet.ask("tell"))["waiting"] == 0 and now, 120)
            # a summary (QoS 0) may be in a socket yet
            until("all arrived", lambda: len({m[1:] for m in listener.messages}) == COUNT * MESSAGES, 60)
        finally:
            listener.close()
        connects = collections.Counter(
            re.findall(r"^(\d+): New client connected from \S+ as edgeprof-n", log.read_text(), re.M))
        peak = busiest([when for when, *_ in listener.messages])
        per_device = max(busiest([m[0] for m in listener.messages if m[1] == f"n{number}"]) for number in range(COUNT))
        print(f"  {COUNT} devices, {OUTAGE_S} s outage: back within {len(connects)} different seconds, at most "
              f"{max(connects.values())} connects in one; at most {peak} messages/s at the subscriber of "
              f"{COUNT * MESSAGES}, {per_device} of one device")
        assert sum(connects.values()) == COUNT, connects  # nobody connects twice
        # without jitter all come in one second; with a limit of about 8 s a fifth of them is much
        assert max(connects.values()) <= COUNT // 2, connects
        spans = sorted(max(times) - min(times) for times in (
            [m[0] for m in listener.messages if m[1] == f"n{number}"] for number in range(COUNT)))
        # the listener may get a while's messages at once, so that a second is no strict measure
        assert spans[COUNT // 2] >= (MESSAGES - AT_ONCE) / PER_S - 1, spans
        assert per_device <= MESSAGES // 2, per_device
        assert peak <= COUNT * PER_S * 1.5, peak  # 2300 without a pace, and summaries lost
        assert last["dropped"] == last["dropped_alerts"] == 0, last
        for number in range(COUNT):
            for kind, serials in (("event", range(0, MESSAGES, 4)),
                                  ("summary", [n for n in range(MESSAGES) if n % 4])):
                came = [m[3] for m in listener.messages if m[1] == f"n{number}" and m[2] == kind]
                assert list(dict.fromkeys(came)) == list(serials), (number, kind, came)


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
