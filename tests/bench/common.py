# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder share: the daemon of the integration tests, an app that writes events, what
the kernel counts for a process, and lines "KEY NUMBER" for tests/bench/run."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("EDGEPROF_SOURCE", str(ROOT))
os.environ.setdefault("EDGEPROF_BUILD", str(ROOT / "build-bench"))
os.environ.setdefault("EDGEPROF_SHARED", str(ROOT.parent / "shared"))
if os.access("/dev/shm", os.W_OK):
    os.environ.setdefault("TMPDIR", "/dev/shm")  # in memory, as the run directory is

sys.path.insert(0, str(ROOT / "tests" / "integration"))
import harness  # noqa: E402

BENCH = harness.BUILD / "tests" / "bench"
SHORT = sys.argv[-1] == "short"
SANITIZED = harness.DAEMON.exists() and b"__asan_init" in harness.DAEMON.read_bytes()


def result(key, value):
    print(f"{key} {value:.6g}", flush=True)


def skipped(*keys, why, absent=False):
    for key in keys:
        print(f"{key} {'!' if absent else '-'} {why}", flush=True)


def trees():
    """Fixture trees by name."""
    above = [harness.SOURCE / "tests" / "fixtures" / "sysroot", harness.SHARED / "fixtures" / "sysroot"]
    return {tree.name: tree for folder in above if folder.is_dir() for tree in sorted(folder.iterdir()) if (tree / "sys").is_dir()}


def write(daemon, app, rate, seconds, stages=8, processes=1, frames=True):
    """Starts live-writer: processes of APP, or of APP0, APP1..., with rate events a second each."""
    env = dict(daemon.env, EDGEPROF_MAPPING_SIZE="1048576" if processes == 1 else "65536")
    command = [BENCH / "live-writer", app, rate, seconds, stages, processes, "frames" if frames else "alone"]
    return subprocess.Popen([str(word) for word in command], env=env, stdout=subprocess.PIPE, text=True)


def counts_of(writer):
    lines = writer.communicate(timeout=120)[0].splitlines()
    return [json.loads(line) for line in lines]


def cpu_s(pid):
    """User and system, of all threads that it has and had: clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def switches(pid):
    """How often the kernel has put each thread to sleep or aside."""
    counts = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            words = re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text())
            counts[task.name] = sum(map(int, words))
    return counts


def kib(pid, *keys):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.split(":")[0] in keys)


def mapped_kib(pid, name, key):
    """A row of smaps added up over the mappings of files that end so; '' for all."""
    total, of_ours = 0, False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            of_ours = not name or (len(words) > 5 and words[5].endswith(name))
        elif of_ours and words[0] == key + ":":
            total += int(words[1])
    return total


def prefer(daemon):
    """What others on the machine do must not count in the longest turn of the loop. False: not allowed to."""
    try:
        for task in os.listdir(f"/proc/{daemon.pid}/task"):
            os.sched_setscheduler(int(task), os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    return True
