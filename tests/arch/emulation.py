#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""emulation.py: runs a command where the kernel executes programs of other architectures by qemu.

    emulation.py QEMU-ARCH[,…] COMMAND…        (aarch64, arm)

If the machine has registered qemu already, with the flags that are needed, the command is just executed.
Else it gets a user namespace with a binfmt_misc of its own (Linux 6.7), so that nothing is left on the
machine. Exits with 77, and the reason, where neither is possible. All users are mapped to themselves;
without root only the caller is."""
import ctypes
import os
import pathlib
import re
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
BINFMT = pathlib.Path("/proc/sys/fs/binfmt_misc")
CONFIGURED = pathlib.Path("/usr/lib/binfmt.d")
# P: argv[0] reaches the program, some of which go by that name. F: the interpreter was opened when it was
# registered, so that it needs no path where the program runs.
FLAGS = set("PF")

libc = ctypes.CDLL(None, use_errno=True)


def skip(reason):
    print(reason)
    sys.exit(77)


def require(result, what):
    if result != 0:
        skip(f"{what}: {os.strerror(ctypes.get_errno())}")


def registered(arch):
    """Whether the machine executes programs of that architecture as needed."""
    try:
        entry = (BINFMT / f"qemu-{arch}").read_text()
    except OSError:
        return False
    return entry.startswith("enabled\n") and FLAGS <= set(re.search(r"^flags: (\w*)", entry, re.M)[1])


def unshare(flags):
    require(libc.unshare(flags), "qemu is not registered with binfmt_misc (flags PF), and there is no user namespace")


def map_self(uid, gid):
    """Of the new namespace, to the caller's: what anybody may do."""
    lines = {"uid_map": f"{uid} {os.geteuid()} 1", "gid_map": f"{gid} {os.getegid()} 1"}
    unshare(CLONE_NEWUSER)
    try:
        for name, line in {"setgroups": "deny", **lines}.items():
            pathlib.Path(f"/proc/self/{name}").write_text(line)
    except OSError as error:
        skip(f"the users of a namespace cannot be mapped: {error.strerror}")


def map_all():
    """Only a process outside of the namespace may map all users, hence the child."""
    pid = os.getpid()
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(wait, 1)
        try:
            for name in ("uid_map", "gid_map"):
                lines = [line.split() for line in pathlib.Path(f"/proc/self/{name}").read_text().splitlines()]
                text = "".join(f"{first} {first} {count}\n" for first, _, count in lines)
                pathlib.Path(f"/proc/{pid}/{name}").write_text(text)
        except OSError:
            os._exit(1)
        os._exit(0)
    os.close(wait)
    unshare(CLONE_NEWUSER)
    os.close(go)
    if os.waitpid(child, 0)[1] != 0:
        skip("the users of a namespace cannot be mapped")


def register(arch):
    entry = (CONFIGURED / f"qemu-{arch}.conf").read_text().strip()
    head, flags = entry.rsplit(":", 1)
    flags = "".join(sorted(set(flags) | FLAGS))
    try:
        (BINFMT / "register").write_text(f"{head}:{flags}")
    except OSError as error:
        skip(f"cannot register qemu-{arch} with binfmt_misc: {error.strerror}")


def main():
    archs, command = sys.argv[1].split(","), sys.argv[2:]
    for arch in archs:
        if not (CONFIGURED / f"qemu-{arch}.conf").exists():
            skip(f"qemu-{arch}-static is not installed (package qemu-user-static)")
    if not all(map(registered, archs)):
        uid, gid = os.geteuid(), os.getegid()
        map_all() if uid == 0 else map_self(0, 0)
        unshare(CLONE_NEWNS)
        require(libc.mount(b"binfmt_misc", bytes(BINFMT), b"binfmt_misc", 0, None),
                "qemu is not registered with binfmt_misc (flags PF), and a user namespace cannot have its own here")
        for arch in archs:
            register(arch)
        if uid != 0:
            map_self(uid, gid)
    os.execvp(command[0], command)


main()
