#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What history on disk costs the medium: writes of loop devices, from /proc/diskstats. Needs root.

bench_persist.py flush [N [SECONDS]]  one page written and flushed N times (10), SECONDS (40) apart so
                                      that journal and writeback are each time's own, on each file system
bench_persist.py day [MINUTES]        the daemon with 256 metrics on ext4 for MINUTES (30), scaled to a day
                                      at the pace that the account chose; the first blocks, which tell all
                                      names, are not counted
"""
import contextlib
import ctypes
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402

MIB = 1 << 20
METRICS = 256
SETTLE_S = 45  # until what mkfs and the making of the file left behind is on the device
SYSTEMS = [
    ("ext4, 4 KiB blocks", ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", "-b", "4096"], ""),
    ("ext4, 1 KiB blocks", ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", "-b", "1024"], ""),
    ("ext4, 4 KiB, lazytime", ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", "-b", "4096"], ",lazytime"),
    ("XFS", ["mkfs.xfs", "-q"], ""),
    ("Btrfs", ["mkfs.btrfs", "-q"], ""),
]


def own_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or not pathlib.Path("/dev/loop-control").exists():
        harness.skip("needs root and loop devices")
    if libc.unshare(0x00020000) != 0 or libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) != 0:
        harness.skip(f"no mount namespace: {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def disk(mkfs, options, above):
    """A mounted image in memory, and the name of its device."""
    image = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="edgeprof-bench.")
    image.truncate(512 * MIB)
    subprocess.run([*mkfs, image.name], check=True, capture_output=True)
    place = pathlib.Path(tempfile.mkdtemp(dir=above))
    subprocess.run(["mount", "-o", "loop" + options, image.name, str(place)], check=True, capture_output=True)
    try:
        place.chmod(0o700)
        device = next(line.split()[0] for line in open("/proc/mounts") if line.split()[1] == str(place))
        yield place, device.rsplit("/", 1)[1]
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def written(device):
    for line in open("/proc/diskstats"):
        fields = line.split()
        if fields[2] == device:
            return int(fields[9]) * 512
    raise LookupError(device)


def flush_cost(name, mkfs, options, above, count, pause):
    if not shutil.which(mkfs[0]):
        return print(f"{name}: no {mkfs[0]}")
    try:
        with disk(mkfs, options, above) as (place, device):
            fd = os.open(place / "ring", os.O_RDWR | os.O_CREAT)
            for i in range(8):
                os.pwrite(fd, bytes(MIB), i * MIB)
            os.fsync(fd)
            subprocess.run(["sync", "-f", str(place)], check=True)
            time.sleep(SETTLE_S)
            begin = written(device)
            for i in range(count):
                os.pwrite(fd, os.urandom(4096), 4096 * (i + 1))
                os.fdatasync(fd)
                time.sleep(pause)
            time.sleep(SETTLE_S)
            each = (written(device) - begin) / count
            os.close(fd)
            print(f"{name}: {each / 1024:.1f} KiB a flush of one page, {each / 1024 - 4:.1f} KiB beside it", flush=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{name}: {error}")


def flush(above, count, pause):
    threads = [threading.Thread(target=flush_cost, args=(*system, above, count, pause)) for system in SYSTEMS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def feed(path, gauges, stop):
    """Gauges that wander, each second."""
    values = [random.uniform(20, 80) for _ in range(gauges)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        while not stop.wait(1):
            for app in range(0, gauges, 60):
                lines = []
                for i in range(app, min(app + 60, gauges)):
                    values[i] = min(max(values[i] + random.gauss(0, 0.5), 0), 100)
                    lines.append(f"g{i}:{values[i]:.2f}|g|#app:bench{app // 60}")
                out.sendto("\n".join(lines).encode(), str(path))


def live_metrics(daemon):
    return sum(m["value"] is not None for m in daemon.call("ListMetrics")["metrics"])


def day(above, minutes):
    name, mkfs, options = SYSTEMS[0]
    with disk(mkfs, options, above) as (place, device):
        text = f"[history]\npersist = yes\npath = {place}/state\n[statsd]\nenabled = yes\n"
        with harness.Daemon(text) as daemon:
            harness.until("the file", lambda: daemon.call("GetSelf")["history_persist_state"] == "ok", 120)
            time.sleep(3)
            stop = threading.Event()
            gauges = max(METRICS - live_metrics(daemon), 0)
            feeder = threading.Thread(target=feed, args=(daemon.run_dir / "statsd", gauges, stop))
            feeder.start()
            try:
                measure(daemon, device, minutes, name)
            finally:
                stop.set()
                feeder.join()


def measure(daemon, device, minutes, name):
    def block():
        """The bytes told as written, when the next block was."""
        before = daemon.call("GetSelf")["history_persist_written_bytes"]
        harness.until("a block", lambda: daemon.call("GetSelf")["history_persist_written_bytes"] > before, 4000, 1)
        return daemon.call("GetSelf")["history_persist_written_bytes"]

    for _ in range(2):
        account = block()
    # the quiet half of a period: what the last block led to is on the device
    time.sleep(daemon.call("GetSelf")["history_persist_period_s"] / 2)
    begin, device_begin, end = time.monotonic(), written(device), time.monotonic() + minutes * 60
    blocks = 0
    while time.monotonic() < end:
        account_end = block()
        blocks += 1
        time.sleep(daemon.call("GetSelf")["history_persist_period_s"] / 2)
    took, real = time.monotonic() - begin, written(device) - device_begin
    self = daemon.call("GetSelf")
    print(f"{name}, {live_metrics(daemon)} metrics, {took / 60:.1f} min: {blocks} blocks, {real / 1024 / blocks:.1f} KiB each "
          f"on the device, {(account_end - account) / 1024 / blocks:.1f} in the account")
    print(f"a day: {real / took * 86400 / MIB:.2f} MiB (limit 16), account {(account_end - account) / took * 86400 / MIB:.2f}; "
          f"buckets of {self['history_persist_bucket_s']:g} s every {self['history_persist_period_s']:g} s, "
          f"a power cut costs at most {self['history_persist_loss_s']:g} s")


if __name__ == "__main__":
    words = sys.argv[1:] or ["flush"]
    own_namespace()
    with tempfile.TemporaryDirectory(prefix="edgeprof-bench.") as directory:
        if words[0] == "flush":
            flush(directory, int(words[1]) if len(words) > 1 else 10, float(words[2]) if len(words) > 2 else 40)
        else:
            day(directory, float(words[1]) if len(words) > 1 else 30)
