#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the daemon's cost grows with apps, stages, metrics, clients and events: CPU time in a second, as text."""
import contextlib
import socket
import threading
import time

from common import SHORT, cpu_s, harness, write

SETTLE_S, WINDOW_S = (0.2, 0.3) if SHORT else (2, 4)
WIDTH = 40


def spent(daemon):
    """ms of CPU in a second."""
    time.sleep(SETTLE_S)
    cpu, begin = cpu_s(daemon.pid), time.monotonic()
    time.sleep(WINDOW_S)
    return 1e3 * (cpu_s(daemon.pid) - cpu) / (time.monotonic() - begin)


def of_writers(daemon, writers):
    try:
        return spent(daemon)
    finally:
        for writer in writers:
            writer.terminate()
            writer.communicate()


def of_metrics(daemon, gauges):
    """Each changes once a second."""
    stop = threading.Event()

    def feed():
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            value = 0
            while value == 0 or not stop.wait(1):
                value += 1
                for first in range(0, gauges, 32):
                    text = "\n".join(f"g{i}:{value}|g|#app:many{i // 64}" for i in range(first, first + 32))
                    out.sendto(text.encode(), str(daemon.run_dir / "statsd"))

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        return spent(daemon)
    finally:
        stop.set()
        feeder.join()


def of_clients(daemon, clients):
    """Each asks for the status ten times a second."""
    stop = threading.Event()

    def ask():
        with contextlib.closing(daemon.client()) as client:
            while not stop.wait(0.1):
                client.call("GetStatus")

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        return spent(daemon)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


CURVES = [
    ("apps with 3 stages and 100 events a second each", (1, 4, 16, 64),
     lambda d, n: of_writers(d, [write(d, f"app{i}", 100, 600, 3) for i in range(n)])),
    ("stages of two apps, 20 k events a second together", (16, 64, 128, 240),
     lambda d, n: of_writers(d, [write(d, f"app{i}", 10000, 600, n // 2) for i in range(2)])),
    ("gauges that change once a second", (64, 512, 1024, 2048), of_metrics),
    ("clients that ask for the status ten times a second", (1, 4, 16, 32), of_clients),
    ("events a second", (1000, 10000, 100000, 1000000), lambda d, n: of_writers(d, [write(d, "app", n, 600)])),
]  # fmt: skip


def plot(what, points):
    longest = max(value for _, value in points) or 1
    lines = [f"ms of CPU in a second, {what}"]
    lines += [f"{at:>9}  {value:8.2f}  {'#' * max(1, round(WIDTH * value / longest))}" for at, value in points]
    return "\n".join(lines)


def main():
    print("```text")
    for what, points, function in CURVES:
        done = []
        for at in (0, *points):
            with harness.Daemon("[statsd]\nenabled = yes\n") as daemon:
                done.append((at, function(daemon, at) if at else spent(daemon)))
        print(plot(what, done), end="\n\n" if what != "events a second" else "\n", flush=True)
    print("```")


if __name__ == "__main__":
    main()
