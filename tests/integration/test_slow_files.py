#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that hang in open or in read, fail, take 3 s, or whose whole server stands still: each costs
its own source only, whenever it happens, and the daemon starts, answers, reloads and stops. A
vcgencmd that hangs, too."""
import contextlib
import os
import pathlib
import shutil
import signal
import tempfile

from fuse_files import FuseFiles
from harness import Daemon, run_tests, until

CONFIG = "[sampling]\ninterval = 100ms\n"
OTHERS = ("cpu", "fan", "load", "memory")
LOADED = {
    "proc/stat": "cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\n",
    "proc/meminfo": "MemTotal: 1000 kB\nMemFree: 500 kB\nMemAvailable: 600 kB\n",
    "proc/loadavg": "0.10 0.20 0.30 1/100 4242\n",
    "sys/class/hwmon/hwmon0/name": "pwmfan\n",
    "sys/class/hwmon/hwmon0/fan1_input": "2400\n",
    "sys/class/thermal/thermal_zone0/type": "soc\n",
    "sys/class/thermal/thermal_zone0/temp": "45000\n",
}
ZONE = "sys/class/thermal/thermal_zone1"
FILES = {"type": "gpu\n", "temp": "51000\n", "trip_point_0_type": "passive\n", "trip_point_0_temp": "90000\n"}

PROCESS = {
    "stat": "4242 (python3) R 1 1 1 0 -1 0 9 0 2 0 9 10 0 0 20 0 3 0 5 1000 10\n",
    "status": "Name:\tpython3\nVmRSS:\t 100 kB\n",
    "cmdline": "detector\0--fast\0",
    "smaps_rollup": "Rss: 9 kB\nPss: 7 kB\n",
}


@contextlib.contextmanager
def a_tree():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-slow."))
    try:
        for name, text in LOADED.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (folder / ZONE).mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_fuse(test, folder=ZONE, files=None):
    """The second zone is a FUSE file system; a skip with the reason where none can be mounted."""

    def run():
        with a_tree() as tree:
            (tree / folder).mkdir(exist_ok=True)
            try:
                fuse = FuseFiles(tree / folder, files or FILES)
            except OSError as error:
                return f"no FUSE file system can be mounted here: {error}"
            with fuse:
                return test(tree, fuse)

    return run


def with_daemon(test):
    """The same, and a daemon that has read it."""

    def run(tree, fuse):
        with Daemon(CONFIG, root=tree) as daemon:
            is_fine(daemon)
            return test(daemon, fuse)

    return with_fuse(run)


def with_fuse_process(test):
    """A process is one."""
    return with_fuse(test, "proc/4242", PROCESS)


def source(daemon, name):
    return next(s for s in daemon.call("ListSources")["sources"] if s["name"] == name)


def value(daemon, name):
    metric = daemon.metric(name)
    return metric and metric["value"]


def the_others_tick(daemon):
    """Five more ticks of each, all fine, while something hangs."""
    before = {name: source(daemon, name)["ticks"] for name in OTHERS}
    for name in OTHERS:
        until(f"{name} ticks", lambda: source(daemon, name)["ticks"] >= before[name] + 5)
        assert source(daemon, name)["state"] == "ok", source(daemon, name)
    status = daemon.ctl("status")
    assert status.returncode == 0, status.stderr


def is_fine(daemon):
    until("both zones are told", lambda: value(daemon, "temperature/gpu") == 51 and value(daemon, "temperature/soc") == 45)
    assert source(daemon, "thermal")["state"] == "ok"


def is_fine_again(daemon, fuse):
    fuse.let_go()
    is_fine(daemon)


def is_late(daemon):
    thermal = until("thermal is an error", lambda: (s := source(daemon, "thermal"))["state"] == "error" and s)
    assert thermal["reason"].startswith("did not answer within"), thermal
    assert thermal["errors"] > 0


def descriptors(daemon):
    """But for files of its own threads, which it keeps open: 24 at most."""
    links = []
    for name in os.listdir(f"/proc/{daemon.pid}/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"/proc/{daemon.pid}/fd/{name}"))
    return sum(f"/{daemon.pid}/task/" not in link for link in links)


def main_thread_is_over(daemon):
    text = pathlib.Path(f"/proc/{daemon.pid}/stat").read_text()
    return daemon.process.poll() is not None or text.rsplit(")", 1)[1].split()[0] in "ZXD"


def children(daemon):
    """Of all its threads; zombies, too."""
    found = []
    for thread in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that ends
            found += (thread / "children").read_text().split()
    return found


def test_fifos_without_a_writer_are_null_alone():
    with a_tree() as tree:
        for name in FILES:
            os.mkfifo(tree / ZONE / name)
        (tree / "sys/class/hwmon/hwmon1").mkdir()
        os.mkfifo(tree / "sys/class/hwmon/hwmon1/name")
        os.mkfifo(tree / "sys/class/hwmon/hwmon1/fan1_input")
        with Daemon(CONFIG, root=tree) as daemon:
            until("the zone is told", lambda: value(daemon, "temperature/soc") == 45)
            metric = daemon.metric("temperature/thermal_zone1")
            assert metric["value"] is None and metric["reason"], metric
            assert value(daemon, "fan/pwmfan") == 2400
            assert daemon.metric("fan/hwmon1")["value"] is None
            the_others_tick(daemon)
            assert source(daemon, "thermal")["state"] == "ok"


# covers G2.15
@with_fuse
def test_a_file_that_hangs_in_open_at_the_start(tree, fuse):
    fuse.file["type"].hangs_in = "open"
    with Daemon(CONFIG, root=tree) as daemon:
        until("it hangs", fuse.hanging)
        is_late(daemon)
        asked = fuse.asked
        the_others_tick(daemon)
        assert fuse.asked == asked, "it is not asked again and again"
        assert daemon.metric("temperature/gpu") is None
        is_fine_again(daemon, fuse)
        assert value(daemon, "headroom/gpu") == 39


# covers G2.15
@with_daemon
def test_a_file_that_hangs_in_read(daemon, fuse):
    fuse.file["temp"].hangs_in = "read"
    is_late(daemon)
    assert daemon.metric("temperature/gpu")["value"] is None
    assert daemon.metric("temperature/soc")["reason"] == "did not answer in time"
    the_others_tick(daemon)
    is_fine_again(daemon, fuse)


@with_daemon
def test_a_reload_while_it_hangs(daemon, fuse):
    fuse.file["temp"].hangs_in = "read"
    is_late(daemon)
    daemon.config_path.write_text(CONFIG + "[source thermal]\nexclude = gpu\n")
    daemon.process.send_signal(signal.SIGHUP)
    reason = "has not answered since it was closed"
    until("the reload closed it", lambda: source(daemon, "thermal")["reason"] == reason)
    the_others_tick(daemon)
    is_fine_again(daemon, fuse)
    until("with the new configuration", lambda: value(daemon, "temperature/max") == 45)


@with_daemon
def test_a_type_that_hangs_when_the_source_is_opened_again(daemon, fuse):
    fuse.file["type"].hangs_in = "read"
    daemon.config_path.write_text(CONFIG + "[source thermal]\nexclude = gpu\n")
    daemon.process.send_signal(signal.SIGHUP)
    until("it hangs", fuse.hanging)
    is_late(daemon)
    the_others_tick(daemon)
    is_fine_again(daemon, fuse)


@with_daemon
def test_an_error_is_null_alone(daemon, fuse):
    fuse.file["temp"].error = 5
    until("the zone is null", lambda: value(daemon, "temperature/gpu") is None)
    assert daemon.metric("temperature/gpu")["reason"] == "offline"
    assert source(daemon, "thermal")["state"] == "ok"
    assert value(daemon, "temperature/soc") == 45
    is_fine_again(daemon, fuse)


@with_fuse
def test_a_file_that_takes_three_seconds(tree, fuse):
    fuse.file["type"].seconds = 3.0
    with Daemon(CONFIG, root=tree) as daemon:
        is_late(daemon)
        the_others_tick(daemon)
        is_fine(daemon)  # looked for slowly, and found
        fuse.file["temp"].seconds = 3.0
        is_late(daemon)
        the_others_tick(daemon)
        is_fine_again(daemon, fuse)


# covers G2.15
@with_daemon
def test_a_server_that_stands_still_while_sources_are_switched_and_files_closed(daemon, fuse):
    fuse.frozen = True
    assert daemon.ctl("source", "disable", "thermal").returncode == 0
    until("it is off", lambda: source(daemon, "thermal")["state"] == "suspended")
    until("it hangs", fuse.hanging)
    the_others_tick(daemon)
    assert daemon.ctl("source", "enable", "thermal").returncode == 0
    until("it is told", lambda: source(daemon, "thermal")["state"] == "error")
    the_others_tick(daemon)
    is_fine_again(daemon, fuse)


@with_fuse_process
def test_a_process_whose_memory_map_is_held(tree, fuse):
    def reason(name):
        return (daemon.metric(f"process/detector/{name}") or {}).get("reason")

    def is_there(name):
        return value(daemon, f"process/detector/{name}")

    fuse.file["smaps_rollup"].hangs_in = "read"
    with Daemon(CONFIG + "[process detector]\nmatch = *--fast\n", root=tree) as daemon:
        until("it is late", lambda: reason("pss") == "did not answer in time")
        assert is_there("count") == 1 and is_there("rss") == 102400
        the_others_tick(daemon)
        fuse.let_go()
        until("it answers", lambda: is_there("pss") == 7168)
        fuse.file["cmdline"].hangs_in = "read"
        until("the command line is late", lambda: reason("count") == "did not answer in time")
        assert is_there("rss") == 102400, "what was found is still read"
        the_others_tick(daemon)
        asked = fuse.asked
        for switch in (False, True) * 3:
            daemon.call("SetSource", name="process", enabled=switch)
            the_others_tick(daemon)
        assert fuse.asked == asked, "it is not asked again and again"
        daemon.stop()


@with_fuse
def test_it_stops_while_an_open_hangs(tree, fuse):
    fuse.file["type"].hangs_in = "open"
    with Daemon(CONFIG, root=tree) as daemon:
        until("it hangs", fuse.hanging)
        daemon.stop()


@with_daemon
def test_it_stops_while_a_read_hangs(daemon, fuse):
    fuse.file["temp"].hangs_in = "read"
    until("it hangs", fuse.hanging)
    daemon.stop()


@with_daemon
def test_it_stops_while_the_server_stands_still(daemon, fuse):
    """All that it has to do is done; that the kernel closes a dead process' files only when the
    server answers is the kernel's."""
    fuse.frozen = True
    daemon.process.send_signal(signal.SIGTERM)
    until("its socket is gone", lambda: not daemon.socket.exists())
    until("it has stopped", lambda: main_thread_is_over(daemon))
    fuse.let_go()
    daemon.stop()


@with_daemon
def test_hanging_again_and_again_leaves_nothing_behind(daemon, fuse):
    before = descriptors(daemon)
    for where in ("open", "read") * 5:
        fuse.file["temp"].hangs_in = "read"
        if where == "open":
            daemon.config_path.write_text(CONFIG)
        else:
            daemon.config_path.write_text(CONFIG + "[source thermal]\nexclude = nothing\n")
        is_late(daemon)
        fuse.file["type"].hangs_in = where
        daemon.process.send_signal(signal.SIGHUP)
        is_fine_again(daemon, fuse)
    until("no descriptor more", lambda: descriptors(daemon) <= before)
    assert children(daemon) == []
    threads = len(os.listdir(f"/proc/{daemon.pid}/task"))
    assert threads <= 1 + 4 + 4 + 3, threads


@contextlib.contextmanager
def vcgencmd(body):
    with a_tree() as tree:
        program = tree / "vcgencmd"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        with Daemon(CONFIG + f"[source throttle]\nvcgencmd = {program}\n", root=tree) as daemon:
            yield daemon


def tried(daemon):
    return {t["source"]: t["result"] for t in daemon.call("GetThrottle")["tried"]}["vcgencmd"]


# covers G0.13
def test_vcgencmd_tells_of_throttling():
    with vcgencmd('[ "$1" = get_throttled ] && echo throttled=0x50005') as daemon:
        until("it is told", lambda: value(daemon, "throttle/throttled") == 1)
        assert daemon.call("GetThrottle")["raw"] == "0x50005"
        assert tried(daemon) == "used"
        assert source(daemon, "throttle")["state"] == "ok"


def test_vcgencmd_that_hangs_is_killed_and_delays_nobody():
    with vcgencmd("trap '' TERM; sleep 1000 & while :; do sleep 1000; done") as daemon:
        until("it runs", lambda: children(daemon))
        the_others_tick(daemon)
        until("it was killed", lambda: tried(daemon) == "killed: did not end within 2 s")
        until("nothing is left of it", lambda: not children(daemon))
        assert source(daemon, "throttle")["state"] == "ok"
        assert daemon.metric("throttle/active")["value"] is None
        the_others_tick(daemon)


def test_a_stop_ends_a_running_vcgencmd():
    with vcgencmd("exec sleep 1000") as daemon:
        pid = until("it runs", lambda: children(daemon))[0]
        daemon.stop()
        until("it is gone", lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_relative_path_is_a_mistake_that_names_its_key():
    daemon = Daemon("[source throttle]\nvcgencmd = bin/vcgencmd\n")
    try:
        daemon.start(wait=False)
        assert daemon.process.wait(30) == 78, daemon.log()
        assert "[source throttle] vcgencmd = bin/vcgencmd: not an absolute path" in daemon.log(), daemon.log()
    finally:
        daemon.clean()


if __name__ == "__main__":
    run_tests(globals())
