#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Devices that lie: files of a tree spoiled under the running daemon, a core unplugged, a flood of
short-lived processes. Nothing false is told and the daemon goes on."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from harness import SOURCE, Daemon, run_tests, until

TREES = SOURCE / "tests" / "fixtures" / "sysroot"
FAST = "[sampling]\ninterval = 100ms\n"
SPOILED = {
    "empty": b"",
    "huge": b"9" * 400,
    "a NUL": b"12\x0034\n",
    "words": b"abc\n",
    "a MiB": b"7" * (1 << 20),
    "binary": bytes(range(256)),
    "int64": b"-9223372036854775808\n",
}
# what stays right or is counted, whatever the files say
COUNTED = ("collector/", "self/", "process/", "energy/", "throttle/")


def values(daemon):
    return {m["name"]: m for m in daemon.call("ListMetrics")["metrics"]}


def told(daemon):
    return {n: m["value"] for n, m in values(daemon).items() if m["value"] is not None and not n.startswith(COUNTED)}


def spoil(root, change):
    """Changes every file that is read while sampling; links and names are left."""
    for file in [f for f in root.rglob("*") if f.is_file()]:
        if file.name not in ("type", "name", "model", "compatible") and b"../" not in file.read_bytes()[:8]:
            change(file)


def in_tree(device, work):
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch) / "root"
        shutil.copytree(TREES / device, root, ignore=shutil.ignore_patterns("snap2", "expected.json"))
        with Daemon(FAST, root=root) as daemon:
            until("the first values", lambda: "gpu/utilization" in told(daemon))
            work(daemon, root)


def check_spoiled(device):
    def work(daemon, root):
        for name, data in SPOILED.items():
            spoil(root, lambda file: file.write_bytes(data))
            until(f"{device}: nothing is told of {name}: {told(daemon)}", lambda: not told(daemon))
            for metric in values(daemon).values():
                assert metric["value"] is not None or metric.get("reason"), (name, metric)
            for source in daemon.call("ListSources")["sources"]:
                assert source["state"] == "ok" or source.get("reason"), (name, source)

    in_tree(device, work)


def test_spoiled_files_of_a_xavier_nx_are_null_with_a_reason():
    check_spoiled("xavier-nx-jp5")


def test_spoiled_files_of_an_rk3588_are_null_with_a_reason():
    check_spoiled("rk3588")


def test_pipes_loops_and_folders_in_the_place_of_files_hold_nobody_up():
    def pipe(file):
        file.unlink()
        os.mkfifo(file)

    def loop(file):
        file.unlink()
        file.symlink_to(file.name)

    def folder(file):
        file.unlink()
        file.mkdir()

    for change in (pipe, loop, folder):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch) / "root"
            shutil.copytree(TREES / "rk3588", root, ignore=shutil.ignore_patterns("snap2", "expected.json"))
            spoil(root, change)
            with Daemon(FAST, root=root) as daemon:
                assert daemon.call("ListMetrics")["metrics"]
                assert not told(daemon), (change, told(daemon))


def test_an_unplugged_core_is_offline_and_comes_back():
    switch = pathlib.Path("/sys/devices/system/cpu/cpu1/online")
    if not os.access(switch, os.W_OK) or switch.read_text().strip() != "1":
        print("cpu1 cannot be unplugged here")
        return

    def core(daemon):
        metric = daemon.metric("cpu/1/utilization")
        return metric and (metric["value"], metric.get("reason"))

    with Daemon(FAST) as daemon:
        until("the core is read", lambda: core(daemon) and core(daemon)[0] is not None)
        try:
            switch.write_text("0")
            until("the core is offline", lambda: core(daemon) == (None, "offline"))
            assert daemon.metric("cpu/utilization")["value"] is not None
        finally:
            switch.write_text("1")
        until("the core is back", lambda: core(daemon)[0] is not None)


def test_a_flood_of_short_processes_costs_no_memory_and_no_descriptors():
    def descriptors(daemon):
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))

    # a shell is the quickest thing that is on every machine
    flood = "exec -a stormling sh -c 'while :; do (:) & (:) & (:) & wait; done'"
    # freed memory is given back, also under ASan, which keeps it to find late uses
    asan = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
    with Daemon(FAST + "[process storm]\nmatch = stormling\n", env=asan) as daemon:
        until("a first look at proc", lambda: (daemon.metric("process/storm/count") or {}).get("value") == 0)
        before = descriptors(daemon), daemon.metric("self/anonymous")["value"]
        # a session of its own: ended by its group, with what it left behind
        with subprocess.Popen(["bash", "-c", flood], start_new_session=True) as process:
            try:
                end = time.monotonic() + 5
                while time.monotonic() < end:
                    start = time.monotonic()
                    daemon.call("GetStatus")
                    assert time.monotonic() - start < 2, "an answer waited for the flood"
            finally:
                os.killpg(process.pid, 9)
        until("none is left", lambda: daemon.metric("process/storm/count")["value"] == 0)
        # what is read only on a busy machine stays open; a leak would be one a process
        until("descriptors are closed", lambda: descriptors(daemon) <= before[0] + 16)
        grown = daemon.metric("self/anonymous")["value"] - before[1]
        assert grown < 16 << 20, f"{grown} bytes more"
        assert daemon.call("GetStatus")["sources_bad"] == []


if __name__ == "__main__":
    run_tests(globals())
