#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a daemon costs that only samples this machine at 1 Hz under its built-in alert rules: CPU, turns
of the loop, memory beside the history, and with persist what it writes to its file. argument: seconds of
each part (20); the part with persist waits for its second block as well, up to 5 min."""
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
SETTLE_S = 5
STAGES = 16


def cpu_s(pid):
    """The scheduler's sum over all threads, finer than the ticks of stat."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def kib(pid, *keys):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.split(":")[0] in keys)


def write_hour(daemon):
    """Bytes an hour: the second block (the first tells all names), at the pace that the account chose."""
    def written():
        return daemon.call("GetSelf")["history_persist_written_bytes"]
    sizes, last, end = [], written(), time.monotonic() + 300
    while len(sizes) < 2 and time.monotonic() < end:
        time.sleep(1)
        now = written()
        if now > last:
            sizes.append(now - last)
            last = now
    if len(sizes) < 2:
        return "no second block in 5 min"
    period = daemon.call("GetSelf")["history_persist_period_s"]
    return f"{sizes[1]} bytes every {period:.0f} s: {sizes[1] * 3600 / period / 1024:.0f} KiB an hour"


def part(name, config, wait_for_blocks=False):
    with harness.Daemon(config) as daemon:
        for i in range(STAGES):  # statistics of as many stages as the bar has
            daemon.ctl("emit", f"stage{i}", "5ms", "--app", "bench")
        time.sleep(SETTLE_S)
        begin, cpu = time.monotonic(), cpu_s(daemon.pid)
        time.sleep(SECONDS)
        spent = (cpu_s(daemon.pid) - cpu) / (time.monotonic() - begin)
        wakeups = daemon.metric("self/wakeups")["value"]
        memory = kib(daemon.pid, "RssAnon", "RssShmem") - daemon.call("GetSelf")["history_used_bytes"] / 1024
        print(f"{name}: {spent * 3600:.2f} s of CPU an hour, {wakeups:.1f} wakeups a second (bar 5, aim 2), "
              f"{memory / 1024:.2f} MiB beside history (bar 4, aim 2; anonymous {kib(daemon.pid, 'RssAnon') / 1024:.2f})",
              flush=True)
        if wait_for_blocks:
            print(f"{name}: writes {write_hour(daemon)}", flush=True)


def main():
    part("persist off", "")
    with tempfile.TemporaryDirectory(prefix="edgeprof-bench.") as folder:
        part("persist on", f"[history]\npersist = yes\npath = {folder}/state\n", True)


if __name__ == "__main__":
    main()
