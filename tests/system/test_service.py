#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed service under a real systemd: installs a build without sanitizers (they do not fit
into the unit's memory limit) into a copy of a small Debian tree, boots that, and has inside.py look
at the service from within."""
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import machine

SOURCE = pathlib.Path(os.environ.get("EDGEPROF_SOURCE", pathlib.Path(__file__).parents[2]))


def plain_build():
    """The tested build itself, or build-release/ next to it: the first one without a sanitizer."""
    for build in (os.environ.get("EDGEPROF_BUILD"), SOURCE / "build-release"):
        daemon = pathlib.Path(build or "") / "daemon" / "edgeprofd"
        if build and daemon.exists() and b"__asan_init" not in daemon.read_bytes():
            return pathlib.Path(build)
    raise machine.Missing("there is no build without sanitizers in build-release/ (./run --setup makes one)")


def make_device(path):
    """Where a Raspberry Pi has its firmware: a device of another kind, that the group video may open."""
    os.mknod(path, stat.S_IFCHR | 0o660, os.makedev(1, 3))
    os.chown(path, 0, 44)  # Debian's number of that group


def furnish(root, build):
    """The installed build, in the tree."""
    subprocess.run(
        ["meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True,
        env=dict(os.environ, DESTDIR=str(root)), stdout=subprocess.DEVNULL,
    )
    shutil.copy(build / "client" / "examples" / "demo-pipeline", root / "usr" / "bin")
    inside = root / machine.RESULT.parent
    inside.mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", inside / "preload.so",
                    SOURCE / "tests/system/preload.c"], check=True)
    make_device(inside / "vcio")


def run(scratch, wanted):
    machine.require()
    build = plain_build()
    lower = machine.tree([build / "daemon" / "edgeprofd", build / "client" / "edgeprofctl" / "edgeprofctl"])
    machine.own_mount_namespace()
    root = machine.writable_copy(lower, scratch)
    try:
        furnish(root, build)
        return machine.check(
            root, SOURCE, ["tests/system/inside.py", "tests/system/features.py"], ["tests/tools/mosquitto.py"],
            ["--capability=CAP_PERFMON", "--system-call-filter=perf_event_open",
             f"--bind={root / machine.RESULT.parent / 'vcio'}:/dev/vcio"], wanted)
    finally:
        subprocess.run(["umount", "-l", root, scratch], check=False)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-system."))
    try:
        return run(scratch, sys.argv[1:])
    except machine.Missing as missing:
        print(missing)
        return 77
    finally:
        scratch.rmdir()


if __name__ == "__main__":
    sys.exit(main())
