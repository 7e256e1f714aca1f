# SPDX-License-Identifier: Apache-2.0
"""A board that reboots, as root: the real daemon in namespaces of its own, so that each boot has its
own boot id, an empty run directory and a CLOCK_MONOTONIC that begins near zero. What lies in the state
directory is all that goes from one to the next. EDGEPROF_PERIOD_MS is the time between two blocks (0:
the long form, as often as the account permits)."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import uuid

from harness import Daemon, until
from persist_case import QUICK

CLONE_NEWNS, CLONE_NEWTIME, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x80, 4096, 16384, 1 << 18
PERIOD_MS = os.environ.get("EDGEPROF_PERIOD_MS", "18000")
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def _checked(result, what):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def enter(boot_id, offset):
    """This process is on a machine with that boot id, whose CLOCK_MONOTONIC is so many seconds off."""
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.unshare(CLONE_NEWNS | CLONE_NEWTIME), "unshare")
    pathlib.Path("/proc/self/timens_offsets").write_text(f"monotonic {offset} 0\n")
    with open("/proc/self/ns/time_for_children") as namespace:
        _checked(libc.setns(namespace.fileno(), CLONE_NEWTIME), "setns")
    _checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount private")
    _checked(libc.mount(boot_id.encode(), BOOT_ID.encode(), None, MS_BIND, None), "mount boot_id")


def reason_to_skip():
    if os.geteuid() != 0:
        return "needs root: namespaces"
    with tempfile.NamedTemporaryFile("w") as boot_id:
        pid = os.fork()
        if pid == 0:
            try:
                enter(boot_id.name, 5 - int(time.monotonic()))
                os._exit(0)
            except OSError as error:
                print(error)
                os._exit(1)
        return None if os.waitpid(pid, 0)[1] == 0 else "no time or mount namespaces here"


class Board:
    """Boots one after the other; `with board.boot() as daemon` ends as the block says, by a stop when
    it says nothing."""

    def __init__(self, config):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-board-"))
        self.state = self.dir / "state"
        self.state.mkdir(mode=0o700)
        self.config = config + f"[history]\npersist = yes\npersist_size = 2M\npath = {self.state}\n"
        self.boots = 0

    def boot(self, uptime=5.0, env=None, config=""):
        self.boots += 1
        return Boot(self, self.config + config, uptime, env)

    def clean(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.clean()


class Boot(Daemon):
    def __init__(self, board, config, uptime, env):
        super().__init__(config, env=env)
        self.boot_id = board.dir / f"boot_id.{board.boots}"
        self.boot_id.write_text(f"{uuid.uuid4()}\n")
        self.offset = int(uptime - time.monotonic())  # a restart goes on with the boot's clock

    def start(self, wait=True):
        here = pathlib.Path(__file__).parent
        code = (f"import os, sys; sys.path[:0] = [{str(here)!r}]; import reboots; "
                f"reboots.enter({str(self.boot_id)!r}, {self.offset}); "
                f"os.execv({QUICK[0]!r}, sys.argv[1:])")
        # libfaketime is for the daemon alone
        env = {name: value for name, value in self.env.items() if name != "LD_PRELOAD"}
        if "LD_PRELOAD" in self.env:
            code = code.replace("os.execv(", f"os.environ['LD_PRELOAD'] = {self.env['LD_PRELOAD']!r}; os.execv(")
        command = [sys.executable, "-c", code, *QUICK, str(self.config_path), "quick", PERIOD_MS, "0"]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, env=env, stderr=log, stdout=log)
        if wait:
            until("the daemon answers", self.answers)
        return self

    def rows(self, glob, **parameters):
        """{(name, boot): [(time_us, mean, min, max, count)]} of all there is, and the notes."""
        told, notes = {}, []
        with contextlib.closing(self.client(60)) as client:
            for chunk in client.stream("GetHistory", glob=glob, **{"from_us": 0, **parameters}):
                notes += [chunk["note"]] if "note" in chunk else []
                for s in chunk["series"]:
                    told.setdefault((s["name"], s.get("boot_seq")), []).extend(
                        zip(s["time_us"], s["mean"], s["min"], s["max"], s["count"]))
        return told, notes

    def events(self):
        found, serial = [], 1
        while True:
            page = self.call("ListEvents", from_serial=serial, limit=64)
            if not page["events"]:
                return found
            found += page["events"]
            serial = found[-1]["serial"] + 1
