#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon and an app as they are on a device: what a rate of events costs the daemon, how long a
query takes meanwhile, what is taken from the heap, how long a turn of the loop is with all stages
live. Figures beside the bars of the design, not verdicts. argument: seconds of each part (3)."""
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
BENCH = harness.BUILD / "tests" / "bench"
PRELOAD = BENCH / "libcount-allocations.so"


def cpu_s(daemon):
    """User and system, of all threads; the scheduler's sum is finer than the ticks of stat."""
    spent = 0
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        spent += int((task / "schedstat").read_text().split()[0])
    return spent / 1e9


def write(daemon, app, rate, seconds, stages=8):
    env = dict(daemon.env, EDGEPROF_MAPPING_SIZE="1048576")
    command = [str(BENCH / "live-writer"), app, str(rate), str(seconds), str(stages)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def counts_of(writer):
    return json.loads(writer.communicate(timeout=60)[0])


def share(daemon, seconds):
    """Percent of a core over the next seconds."""
    cpu, begin = cpu_s(daemon), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_s(daemon) - cpu) / (time.monotonic() - begin)


def rate(daemon, events, bar, aim):
    writer = write(daemon, f"rate{events}", events, SECONDS + 1)
    time.sleep(0.5)
    percent = share(daemon, SECONDS - 0.5)
    counts = counts_of(writer)
    idle = share(daemon, 2)
    lost = counts["dropped"] + counts["unattached"]
    each = max(percent - idle, 0) / 100 * 1e9 / (counts["written"] / counts["seconds"])
    print(f"{counts['written'] / counts['seconds']:.0f} events/s: {lost} of {counts['written']} lost, daemon "
          f"{percent:.2f} % of a core (bar {bar} %, aim {aim} %), idle {idle:.2f} %: {each:.0f} ns/event")


def latencies(ask, n):
    took = []
    for _ in range(n):
        begin = time.perf_counter_ns()
        ask()
        took.append((time.perf_counter_ns() - begin) / 1e3)
        time.sleep(0.001)
    took = statistics.quantiles(took, n=100, method="inclusive")
    return took[49], took[98]


def exchange(connection, request):
    connection.sendall(request)
    size = 0
    while True:
        data = connection.recv(65536)
        size += len(data)
        if not data or data.endswith(b"\0"):
            return size


ECHO = """import socket, sys
connection = socket.socket(fileno=0)
answer = b"x" * (int(sys.argv[1]) - 1) + b"\\0"
while connection.recv(65536):
    connection.sendall(answer)
"""


def query(daemon):
    request = json.dumps({"method": "io.edgeprof.ListMetrics", "parameters": {"glob": "memory/*"}}).encode() + b"\0"
    writer = write(daemon, "queried", 100000, SECONDS + 2)
    time.sleep(1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(daemon.socket))
        size = exchange(connection, request)
        ours, theirs = socket.socketpair()
        echo = subprocess.Popen([sys.executable, "-c", ECHO, str(size)], stdin=theirs)
        theirs.close()
        exchange(ours, request)
        n = SECONDS * 250
        asked = latencies(lambda: exchange(connection, request), n)
        floor = latencies(lambda: exchange(ours, request), n)
    ours.close()
    echo.wait(10)
    counts_of(writer)
    print(f"query of {size} bytes with 100 k events/s: p50 {asked[0]:.0f} us, p99 {asked[1]:.0f} us (bar 1000, aim 300); "
          f"an echo {floor[0]:.0f}, {floor[1]:.0f} us: {asked[0] / floor[0]:.2f} x, {asked[1] / floor[1]:.2f} x")


def turns(daemon):
    """240 stages, each with events all the time. What others on the machine do must not count."""
    try:
        os.sched_setscheduler(daemon.pid, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        print("no real-time priority: turns are as long as the machine is busy")
    before = daemon.call("GetSelf")["loop_lag_max_us"]
    writers = [write(daemon, f"wide{i}", 25000, SECONDS + 1, 120) for i in range(2)]
    time.sleep(SECONDS)
    told = daemon.call("GetSelf")
    for writer in writers:
        counts_of(writer)
    print(f"the longest turn of the loop with {told['stages']} stages live: {told['loop_lag_max_us']} us (bar 2000; "
          f"{before} us before them)")


def allocations():
    if b"__asan_init" in harness.DAEMON.read_bytes():
        print("heap: not counted under AddressSanitizer")
        return
    daemon = harness.Daemon()
    counted = daemon.dir / "allocations"
    daemon.env.update(LD_PRELOAD=str(PRELOAD), COUNT_ALLOCATIONS=str(counted))

    def taken(seconds):
        before = int.from_bytes(counted.read_bytes(), sys.byteorder)
        time.sleep(seconds)
        return int.from_bytes(counted.read_bytes(), sys.byteorder) - before

    with daemon:
        writer = write(daemon, "steady", 100000, SECONDS + 3)
        time.sleep(2)  # names, the first interval
        busy = taken(SECONDS)
        counts = counts_of(writer)
        print(f"heap: {busy} allocations in {SECONDS} s with 100 k events/s, "
              f"{busy / SECONDS / (counts['written'] / counts['seconds']):.1e} an event (aim 0)")


def main():
    for part in (lambda d: rate(d, 1000000, 6, 3), lambda d: rate(d, 20000, 0.3, 0.3), query, turns):
        with harness.Daemon() as daemon:
            part(daemon)
    allocations()


if __name__ == "__main__":
    main()
