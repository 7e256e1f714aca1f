#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon and apps as they are on a device. usage: live.py rate|framed|ready|scale|metrics|heap [short]"""
import contextlib
import os
import random
import re
import socket
import subprocess
import sys
import time

from common import BENCH, SANITIZED, SHORT, counts_of, cpu_s, harness, prefer, result, skipped, write

RATE = 50000 if SHORT else 1000000
SECONDS = 1 if SHORT else 12


def unit_priority():
    """The nice value of the service."""
    unit = (harness.SOURCE / "systemd" / "edgeprofd.service.in").read_text()
    return int(next(iter(re.findall(r"^Nice=(-?\d+)", unit, re.M)), 0))


def rate(key="rate", frames=False):
    """As the unit starts it, beside a process that never waits."""
    with harness.Daemon() as daemon:
        try:
            for task in os.listdir(f"/proc/{daemon.pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(task), unit_priority())
        except PermissionError:
            return skipped(f"{key}.lost", f"{key}.share", why="not allowed to give the priority of the unit")
        with harness.program([sys.executable, "-c", "while True: pass"], daemon.env):
            cpu, begin = cpu_s(daemon.pid), time.monotonic()
            writer = write(daemon, "rate", RATE, SECONDS, frames=frames)
            counts = counts_of(writer)[0]
            share = 100 * (cpu_s(daemon.pid) - cpu) / (time.monotonic() - begin)
        reached = counts["written"] / counts["seconds"]
        if reached < 0.9 * RATE:
            return skipped(f"{key}.lost", f"{key}.share", why=f"the writer only reached {reached:.0f} events/s")
        result(f"{key}.events", reached)
        result(f"{key}.lost", counts["dropped"] + counts["unattached"])
        result(f"{key}.share", share)


def framed():
    rate("framed", frames=True)


def ready_ms(daemon, restored):
    """From the start to READY=1; the daemon is stopped when it answers."""
    path = daemon.dir / "notify"
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as notified:
        notified.bind(str(path))
        notified.settimeout(30)
        daemon.env["NOTIFY_SOCKET"] = str(path)
        begin = time.perf_counter()
        daemon.start(wait=False)
        while b"READY=1" not in notified.recv(4096):
            pass
        took = 1e3 * (time.perf_counter() - begin)
        harness.until("the daemon answers", daemon.answers)
        assert ("restored the history" in daemon.log()) == restored, daemon.log()
        daemon.stop()
    return took


def ready():
    for key in random.sample(["ready.full", "ready.full.floor"], 2):
        daemon = harness.Daemon("[history]\nmemory = 16M\n")
        try:
            if key == "ready.full":
                subprocess.run([str(BENCH / "bench_history"), "fill", str(daemon.run_dir)], check=True)
            result(key, ready_ms(daemon, restored=key == "ready.full"))
        finally:
            daemon.clean()


def longest(before, after):
    """ms: the bound of the longest turns between two replies of GetSelf."""
    bounds = [*after["turn_bounds_us"], after["turn_max_us"]]
    grown = [bound for bound, old, new in zip(bounds, before["turns"], after["turns"]) if new > old]
    return min(grown[-1], after["turn_max_us"]) / 1e3 if grown else 0


def stall(seconds):
    """ms: what the machine takes away anyway: the longest pause of a loop that only reads the clock, at the priority
    that the daemon has here. Nine tenths of each second: the kernel holds real-time programs up after 950 ms."""
    longest_ns = 0
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        for _ in range(seconds):
            last = time.perf_counter_ns()
            end = last + 900_000_000
            while last < end:
                now = time.perf_counter_ns()
                longest_ns = max(longest_ns, now - last)
                last = now
            time.sleep(0.1)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return longest_ns / 1e6


def steady(daemon):
    """The longest turn of a while."""
    before = daemon.call("GetSelf")
    time.sleep(0.3 if SHORT else 3)
    return longest(before, daemon.call("GetSelf"))


def scale():
    turns = ("scale.turn_start", "scale.turn", "scale.turn240")
    with harness.Daemon() as daemon:
        preferred = prefer(daemon)
        before = daemon.call("GetSelf")
        writer = write(daemon, "scale", 50, 2 if SHORT else 6, 3, processes=64)
        seen = harness.until("64 attempts", lambda: (lambda s: s["attaches"] + s["attaches_refused"] >= 64 and s)(daemon.call("GetSelf")))
        time.sleep(0.1 if SHORT else 1.2)  # their first second
        result("scale.attached", seen["attaches"])
        if preferred:
            found = [longest(before, daemon.call("GetSelf")), steady(daemon)]
        counts_of(writer)
    with harness.Daemon() as daemon:
        preferred = prefer(daemon)
        writers = [write(daemon, f"wide{i}", 25000, 1 if SHORT else 5, 120) for i in range(2)]
        harness.until("240 stages", lambda: daemon.call("GetSelf")["stages"] >= 240)
        if preferred:
            found.append(steady(daemon))
        for writer in writers:
            counts_of(writer)
    if preferred:
        floor = stall(1 if SHORT else 3)
        for key, ms in zip(turns, found):
            result(key, ms)
            result(f"{key}.floor", floor)
        result("scale.turn_longest", max(found))
    else:
        skipped(*turns, "scale.turn_longest", why="no real-time priority: turns would be as long as the machine is busy")


def metrics():
    """64 apps, 70 gauges each."""
    offered = 64 * 70
    with harness.Daemon("[statsd]\nenabled = yes\n") as daemon, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        for app in range(64):
            for first in range(0, 70, 35):
                text = "\n".join(f"g{i}:{i}|g|#app:many{app}" for i in range(first, first + 35))
                out.sendto(text.encode(), str(daemon.run_dir / "statsd"))
        harness.until("all lines", lambda: daemon.call("GetSelf")["statsd_lines"] + daemon.call("GetSelf")["statsd_refused"] >= offered)
        time.sleep(2.2)  # the next samples
        with contextlib.closing(daemon.client()) as client:
            names = [m["name"] for reply in client.stream("ListMetrics", glob="**") for m in reply["metrics"]]
        refused = daemon.call("GetSelf")
        kept = sum(name.startswith("gauge/many") for name in names)
        result("scale.metrics", len(names))
        result("scale.uncounted", max(0, offered - kept - refused["statsd_refused"] - refused["metrics_refused"]))


def heap():
    if SANITIZED:
        return skipped("heap.idle", "heap.busy", why="not counted in a build with sanitizers")
    daemon = harness.Daemon("[recorder]\ntriggers = none\n")  # a recording is parsed JSON
    counted = daemon.dir / "allocations"
    daemon.env.update(LD_PRELOAD=str(BENCH / "libcount-allocations.so"), COUNT_ALLOCATIONS=str(counted))

    def taken(seconds):
        """Allocations a second."""
        before = int.from_bytes(counted.read_bytes(), sys.byteorder)
        time.sleep(seconds)
        return (int.from_bytes(counted.read_bytes(), sys.byteorder) - before) / seconds

    with daemon:
        time.sleep(3)  # names, the first intervals
        idle = taken(1 if SHORT else 5)
        writer = write(daemon, "steady", 100000, 3 if SHORT else 38)
        time.sleep(2 if SHORT else 25)  # names, the first diagnosis
        busy = taken(1 if SHORT else 12)
        counts_of(writer)
        result("heap.idle", idle)
        result("heap.busy", busy)


if __name__ == "__main__":
    {"rate": rate, "framed": framed, "ready": ready, "scale": scale, "metrics": metrics, "heap": heap}[sys.argv[1]]()
