#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Daemons that only sample: wakeups as the kernel counts them, on this machine and on each fixture tree, all at
once; memory with 16 stages, with 256 that ran 15 times each, and on a board of 512 MiB."""
import contextlib
import math
import tempfile
import time

from common import SHORT, counts_of, cpu_s, harness, kib, mapped_kib, result, switches, trees, write

SETTLE_S = 0.5 if SHORT else 6
WINDOWS, WINDOW_S = (1, 1) if SHORT else (7, 10)


def small_board(folder):
    """A board of 512 MiB, one of whose zones is read."""
    root, _ = harness.board(folder)
    (root / "proc" / "meminfo").write_text("MemTotal:         524288 kB\nMemFree:          262144 kB\nMemAvailable:     393216 kB\n")
    return root


def beside_history(pid):
    """KiB that are its own, without the file of the history."""
    return kib(pid, "RssAnon", "RssShmem") - mapped_kib(pid, "/run/history", "Rss")


def between_ticks():
    """Half a second behind the next tick. self/wakeups is of the last ten: after ten seconds more it is of that span, without
    what was asked before the tick."""
    now = time.monotonic()
    time.sleep(math.floor(now) + 1.5 - now)


def wakeups(daemons):
    between_ticks()
    before = {name: switches(d.pid) for name, d in daemons.items()}
    cpu, begin = cpu_s(daemons["here"].pid), time.monotonic()
    time.sleep(WINDOW_S)
    after = {name: switches(d.pid) for name, d in daemons.items()}
    took = time.monotonic() - begin
    result("idle.cpu", 1e6 * (cpu_s(daemons["here"].pid) - cpu) / took)
    for name, daemon in daemons.items():
        # a thread that ended took its count along, one that began brings its own
        counted = sum(max(0, count - before[name].get(task, 0)) for task, count in after[name].items()) / took
        result(f"wakeups.{name}", counted)
        reported = daemon.metric("self/wakeups")
        if counted and reported and reported["value"] is not None:
            result(f"self_wakeups.{name}", 100 * abs(reported["value"] - counted) / counted)


def main():
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="edgeprof-bench."))
        roots = {"here": None, **trees()}
        daemons = {name: stack.enter_context(harness.Daemon(root=root)) for name, root in roots.items()}
        board, sixteen, many = (stack.enter_context(harness.Daemon(root=root)) for root in (small_board(folder), None, None))
        writers = [write(sixteen, "bench", 10000, 2, 16), *(write(many, f"bench{i}", 500, 4, 128) for i in range(2))]
        for writer in writers:
            counts_of(writer)
        stages = [daemon.call("GetSelf")["stages"] for daemon in (sixteen, many)]
        assert stages == [16, 256], stages
        time.sleep(SETTLE_S)
        for _ in range(WINDOWS):
            wakeups(daemons)
            result("memory.stages16", beside_history(sixteen.pid) / 1024)
            result("memory.stages256", kib(many.pid, "RssAnon") / 1024)
            result("memory.pss512", mapped_kib(board.pid, "", "Pss") / 1024)


if __name__ == "__main__":
    main()
