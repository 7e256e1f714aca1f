#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queries of a daemon: latency and CPU beside a C program that answers as many bytes (bench_query.c)."""
import contextlib
import json
import subprocess
import time

from common import BENCH, SHORT, harness, result, skipped, write

COUNT = 50 if SHORT else 1000


def request(method, more=False, **parameters):
    message = {"method": "io.edgeprof." + method, "parameters": parameters}
    return json.dumps({**message, "more": True} if more else message)


METRICS = request("ListMetrics", glob="memory/*")  # about 1 KiB


def ask(daemon, *requests, count=COUNT):
    command = [BENCH / "bench_query", daemon.socket, daemon.pid, count, *requests]
    return json.loads(subprocess.run([str(w) for w in command], stdout=subprocess.PIPE, text=True, check=True).stdout)


def show(key, answer, what):
    result(f"query.{key}", answer[what])
    result(f"query.{key}.floor", answer[f"floor_{what}"])


@contextlib.contextmanager
def writing(daemon, apps, rate, stages):
    """Apps that have filled their windows and go on."""
    writers = [write(daemon, f"app{i}", rate, 600, stages) for i in range(apps)]
    try:
        harness.until("the stages", lambda: daemon.call("GetSelf")["stages"] >= apps * stages)
        time.sleep(0.2 if SHORT else 2)  # a sample with full windows
        yield
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def main():
    with harness.Daemon() as daemon:
        answer = ask(daemon, METRICS)
        show("p50", answer, "p50")
        show("p99", answer, "p99")
        with writing(daemon, 1, 20000, 16):
            show("status", ask(daemon, request("GetStatus")), "cpu")
            show("list16", ask(daemon, request("ListStages"), count=COUNT // 5), "cpu")
    with harness.Daemon() as daemon, writing(daemon, 1, 100000, 8):
        show("busy_p99", ask(daemon, METRICS), "p99")
    with harness.Daemon() as daemon, writing(daemon, 2, 20000, 120):
        many = request("ListStages", more=True)
        show("list240", ask(daemon, many, count=COUNT // 10), "cpu")
        refused = ask(daemon, request("ListStages"), count=COUNT // 10)
        if refused["refused"]:
            show("toolarge", refused, "cpu")
        else:
            skipped("query.toolarge", why="the reply fits")
        show("wait240", ask(daemon, request("GetStatus"), many, count=COUNT // 2), "p99")


if __name__ == "__main__":
    main()
