#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""History on disks that are full, read-only, failing or hanging: file systems of the test's own, as
root in a mount namespace. The daemon samples on, says what is wrong, and recovers by itself."""
import contextlib
import ctypes
import errno
import os
import pathlib
import re
import shutil
import subprocess
import time

from fuse_files import FuseFiles
from fuse_image import FuseImage
from harness import run_tests, until
from persist_case import MIB, Quick, config, degraded, folder, samples_go_on, state_is, told, well_again, written_more


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)


@contextlib.contextmanager
def mounted(place, *words):
    place.mkdir(exist_ok=True)
    mount(*words, place)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def without_mounts():
    if os.geteuid() != 0:
        return "needs root"
    libc = ctypes.CDLL(None, use_errno=True)
    if not without_mounts.__dict__.get("done"):
        if libc.unshare(0x00020000) != 0 or libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) != 0:
            return f"no mount namespace: {os.strerror(ctypes.get_errno())}"
        without_mounts.done = True
    return None


def image(above, options, size=64 * MIB):
    """An ext4 in a file; its loop device goes with the mount."""
    if not pathlib.Path("/dev/loop-control").exists() or not shutil.which("mkfs.ext4"):
        return None
    path = above / "image"
    with open(path, "wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", *options, str(path)], check=True)
    return path


def test_a_full_disk():
    if reason := without_mounts():
        return reason
    with folder() as above, mounted(above / "disk", "-t", "tmpfs", "-o", "size=512K,mode=700", "none") as disk:
        with Quick(config(disk)) as daemon:
            degraded(daemon, "a new file needs 2 MiB")
            assert not [p for p in disk.iterdir() if p.name.startswith("history")]
            mount("-o", "remount,size=8M", disk)
            well_again(daemon)
            # what was reserved stays writable when the disk is full to the last byte
            with contextlib.suppress(OSError), open(disk / "ballast", "wb", 0) as ballast:
                while True:
                    ballast.write(bytes(4096))
            written_more(daemon)
            assert told(daemon)["history_persist_state"] == "ok"


def test_a_read_only_disk_and_back():
    if reason := without_mounts():
        return reason
    with folder() as above:
        disk = above / "disk"
        disk.mkdir(mode=0o700)
        mount("--bind", disk, disk)
        mount("-o", "remount,bind,ro", disk)
        try:
            with Quick(config(disk)) as daemon:
                degraded(daemon, "Read-only file system")
                mount("-o", "remount,bind,rw", disk)
                well_again(daemon)
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=False)


def test_a_disk_that_turns_read_only_by_errors():
    if reason := without_mounts():
        return reason
    with folder() as above:
        if not (path := image(above, [])):
            return "no loop devices, or no mkfs.ext4"
        disk = above / "disk"
        with mounted(disk, "-o", "loop", path):
            disk.chmod(0o700)
            with Quick(config(disk / "state")) as daemon:
                state_is(daemon, "ok")
                subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=False)
                reason = degraded(daemon)
                assert re.search("Read-only|Input/output|corrupted|No such device", reason), reason
                subprocess.run(["umount", "-l", str(disk)], check=True)
                until("the disk is free", lambda: str(path) not in subprocess.run(
                    ["losetup", "-a"], capture_output=True, text=True).stdout)
                mount("-o", "loop", path, disk)
                well_again(daemon)


class Quicker(Quick):
    more = ["quick", "250", "300"]


def written(place):
    device = next(line.split()[0] for line in open("/proc/self/mounts") if line.split()[1] == str(place))
    fields = next(line.split() for line in open("/proc/diskstats") if line.split()[2] == device.rsplit("/", 1)[1])
    return int(fields[9]) * 512


def test_the_device_gets_no_more_than_the_account_says():
    """Long form, with the real pace and file systems: tests/bench/bench_persist.py."""
    if reason := without_mounts():
        return reason
    with folder() as above:
        if not (path := image(above, ["-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"])):
            return "no loop devices, or no mkfs.ext4"
        with mounted(above / "disk", "-o", "loop", path) as disk:
            disk.chmod(0o700)
            with Quicker(config(disk / "state")) as daemon:
                state_is(daemon, "ok")
                written_more(daemon)  # the first blocks tell all names
                subprocess.run(["sync", "-f", str(disk)], check=True)
                device, account = written(disk), told(daemon)["history_persist_written_bytes"]
                until("some blocks", lambda: daemon.call("Mark", label="something to write") is not None and
                      told(daemon)["history_persist_written_bytes"] > account + 20 * 20480, 90, 0.3)
                subprocess.run(["sync", "-f", str(disk)], check=True)
                device, account = written(disk) - device, told(daemon)["history_persist_written_bytes"] - account
                print(f"  {device / 1024:.0f} KiB on the device, {account / 1024:.0f} in the account")
                assert 20 * 4096 <= device <= account + 32768, (device, account)
                assert told(daemon)["history_persist_day_bytes"] >= account


def test_a_medium_that_fails():
    if reason := without_mounts():
        return reason
    with folder() as above:
        if not (path := image(above, ["-b", "4096", "-O", "^has_journal"], 24 * MIB)):
            return "no loop devices, or no mkfs.ext4"
        below = above / "below"
        below.mkdir()
        try:
            fuse = FuseImage(below, "image", path.read_bytes())
        except OSError as error:
            return f"no FUSE: {error}"
        with fuse, mounted(above / "disk", "-o", "loop", below / "image") as disk:
            disk.chmod(0o700)
            with Quick(config(disk / "state")) as daemon:
                state_is(daemon, "ok")
                written_more(daemon)
                fuse.error = errno.EIO
                degraded(daemon, "Input/output error")
                assert fuse.refused > 0
                fuse.error = 0
                well_again(daemon)
                fuse.error = errno.ENOSPC  # a thin device whose pool is full
                degraded(daemon)
                fuse.error = 0
                well_again(daemon)
                assert state_is(daemon, "ok")["history_persist_damaged_pages"] == 0


def test_a_medium_that_hangs():
    if reason := without_mounts():
        return reason
    with folder() as above:
        if not (path := image(above, [])) or not shutil.which("fsfreeze"):
            return "no loop devices, no mkfs.ext4 or no fsfreeze"
        with mounted(above / "disk", "-o", "loop", path) as disk:
            disk.chmod(0o700)
            with Quick(config(disk / "state")) as daemon:
                state_is(daemon, "ok")
                subprocess.run(["fsfreeze", "-f", str(disk)], check=True)
                try:
                    state_is(daemon, "stuck")
                    assert "not answered" in told(daemon)["history_persist_reason"]
                    samples_go_on(daemon)
                    begun = time.monotonic()
                    daemon.call("GetStatus")
                    assert time.monotonic() - begun < 10  # the disk would not have answered at all
                finally:
                    subprocess.run(["fsfreeze", "-u", str(disk)], check=True)
                well_again(daemon)
                subprocess.run(["fsfreeze", "-f", str(disk)], check=True)
                try:
                    time.sleep(2)  # a write hangs now
                    daemon.process.terminate()
                    until("the socket is gone", lambda: not daemon.socket.exists(), 5)
                    until("it gave up", lambda: "history was written: no response within 2 s" in daemon.log(), 10)
                finally:
                    subprocess.run(["fsfreeze", "-u", str(disk)], check=True)
                assert daemon.process.wait(30) == 0, daemon.log()


def test_a_medium_that_hangs_from_the_start():
    """Nothing of the state directory answers, not even its attributes. The start does not wait for it,
    alerts are judged without what they remembered, and the stop leaves it behind."""
    if reason := without_mounts():
        return reason
    rule = "[alert used]\nmetric = memory/used_percent\nabove = 0\nfor = 0s\n"
    with folder() as above:
        disk = above / "disk"
        disk.mkdir()
        try:
            fuse = FuseFiles(disk, {"alerts": "not answered"})
        except OSError as error:
            return f"no FUSE: {error}"
        with fuse:
            fuse.frozen = True
            # the search for leaks would wait for the thread that hangs
            daemon = Quick(config(disk) + rule, env={"ASAN_OPTIONS": "detect_leaks=0"})
            begun = time.monotonic()
            daemon.start()
            assert time.monotonic() - begun < 4, time.monotonic() - begun  # alerts are waited for 5 s
            try:
                samples_go_on(daemon)
                assert daemon.call("ListAlerts")["alerts"] == []
                until("the rules are judged", lambda: [
                    a for a in daemon.call("ListAlerts")["alerts"] if a["state"] == "firing"], 15)
                assert "cannot restore the alerts of the previous boot" in daemon.log(), daemon.log()
                assert told(daemon)["history_persist_state"] == "starting"
                begun = time.monotonic()
                daemon.stop()
                assert time.monotonic() - begun < 8, time.monotonic() - begun
                # a restart has nothing to wait for; a reload does not wait, either
                daemon.start()
                assert daemon.call("ListAlerts")["alerts"]
                daemon.stop()
                (pathlib.Path(daemon.run_dir) / "alerts").unlink()
                daemon.start()
                assert daemon.call("ListAlerts")["alerts"] == []
                # a faulty file changes nothing: what the last boot left is still waited for
                given_up = daemon.log().count("cannot restore the alerts of the previous boot")
                good = daemon.config_path.read_text()
                daemon.config_path.write_text(good + "[sampling]\ninterval = soon\n")
                assert daemon.ctl("reload").returncode == 1
                assert daemon.call("ListAlerts")["alerts"] == []
                assert daemon.log().count("cannot restore the alerts of the previous boot") == given_up, daemon.log()
                daemon.config_path.write_text(good)
                daemon.call("Reload")
                until("the rules are judged", lambda: daemon.call("ListAlerts")["alerts"], 3)
            finally:
                daemon.stop()
                daemon.clean()


if __name__ == "__main__":
    run_tests(dict(globals()))
