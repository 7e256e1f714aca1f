#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots Debian 12's kernel on QEMU's Raspberry Pi 4 and asks its firmware through /dev/vcio: pi.py [--debs DIR]

The mailbox of that machine, which QEMU has from 9.0 on (else Debian 13's is used), answers the temperature (25 °C) and
the throttle word (0), no command of vcgencmd. Debian's kernel lacks the device: vcio.c is built against its headers.
The packages' programs run from an initial file system, and their answers are read from the console. The tree is
that of board.py. Exits with 77, and the reason, where something is missing. Needs root; minutes."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import board
from board import SOURCE, machine, run

# Drivers of what QEMU does not emulate, at whose registers the kernel would die.
APPEND = ("console=ttyAMA0 loglevel=4 panic=-1 clk_ignore_unused "
          "initcall_blacklist=brcmstb_l2_driver_init,brcmstb_i2c_driver_init")
PROGRAMS = ["/usr/sbin/edgeprofd", "/usr/bin/edgeprofctl", "/bin/sh", "/bin/mount", "/sbin/insmod", "/bin/uname", "/bin/sleep"]
INIT = """#!/bin/sh
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs dev /dev
uname -a
insmod /vcio.ko
edgeprofd &
set -f
while sleep 1; do echo SENSORS $(edgeprofctl -j sensors); echo THROTTLE $(edgeprofctl -j throttle); done
"""
PATIENCE = 400


def build_module(root):
    kernel, = (name[len("vmlinuz-"):] for name in os.listdir(root / "boot") if name.startswith("vmlinuz-"))
    names = [f"linux-headers-{kernel}", f"linux-headers-{kernel.removesuffix('-arm64')}-common", "linux-kbuild-6.1"]
    board.inside(root, "sh", "-ec", f"apt-get -q update && cd /tmp && apt-get -q download {' '.join(names)}")
    for name in names:
        run("dpkg-deb", "-x", next((root / "tmp").glob(f"{name}_*.deb")), root / "headers")
    headers = root / "headers/usr/src" / names[0]
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src", str(headers.parent)))
    folder = root / "module"
    folder.mkdir()
    shutil.copy(SOURCE / "tests/arch/vcio.c", folder)
    (folder / "Makefile").write_text("obj-m := vcio.o\n")
    run("make", "-C", headers, f"M={folder}", "CROSS_COMPILE=aarch64-linux-gnu-", "modules",
        env=dict(os.environ, QEMU_LD_PREFIX=str(root)))  # some of its tools are programs of the board
    return folder / "vcio.ko"


def make_initrd(root, to):
    """The programs and their libraries, in the places that they know."""
    top = root / "initrd"
    for name in ("proc", "sys", "dev", "run/edgeprofd"):
        (top / name).mkdir(parents=True)
    shutil.copy(build_module(root), top)
    (top / "init").write_text(INIT)
    (top / "init").chmod(0o755)
    board.inside(root, "sh", "-ec", f'cp -L --parents $(ldd {" ".join(PROGRAMS)} | grep -o "/[^ :]*" | sort -u) /initrd')
    with open(to, "wb") as file:
        subprocess.run(["chroot", root, "sh", "-ec", "cd /initrd && find . | cpio -o -H newc --quiet"], stdout=file,
                       check=True)


def emulator(folder):
    """The command that runs a qemu with the machine, and where that sees the folder."""
    own = ["qemu-system-aarch64"]
    if "raspi4b" in run(*own, "-M", "help"):
        return own, folder
    tree = machine.cached_tree("qemu", "trixie", ["qemu-system-arm"])
    run("mount", "--bind", folder, tree / "mnt")
    return ["chroot", tree, *own], pathlib.Path("/mnt")


def answers(command):
    """The first answer of both verbs in which the firmware's temperature has a value, from the console."""
    said, found = [], {}
    with subprocess.Popen(["timeout", str(PATIENCE), *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as qemu:
        for line in qemu.stdout:
            said.append(line)
            word, _, text = line.partition(" ")
            if word in ("SENSORS", "THROTTLE") and text.startswith("{"):
                found[word] = json.loads(text)
            metrics = {row["name"]: row for row in found.get("SENSORS", {}).get("metrics", [])}
            if metrics.get("temperature/firmware", {}).get("value") is not None and "THROTTLE" in found:
                qemu.terminate()
                return metrics, found["THROTTLE"], said
    raise AssertionError(f"no answer of the firmware within {PATIENCE} s\n{''.join(said)}")


def check(root, folder):
    make_initrd(root, folder / "initrd")
    kernel, = (root / "boot").glob("vmlinuz-*")
    tree, = (root / "usr/lib").glob("linux-image-*/broadcom/bcm2711-rpi-4-b.dtb")
    for file, name in ((kernel, "kernel"), (tree, "dtb")):
        shutil.copy(file, folder / name)
    qemu, place = emulator(folder)
    metrics, throttle, said = answers([*qemu, "-M", "raspi4b", "-kernel", place / "kernel", "-initrd", place / "initrd",
                                       "-dtb", place / "dtb", "-append", APPEND, "-display", "none", "-serial", "stdio",
                                       "-monitor", "none", "-no-reboot"])
    print("".join(line for line in said if "SENSORS" not in line and "THROTTLE" not in line))
    print(metrics["temperature/firmware"], throttle, sep="\n")
    temperature = metrics["temperature/firmware"]
    assert temperature["value"] == 25 and temperature["source"] == "pi", temperature
    assert "firmware mailbox" in json.dumps(throttle) and metrics["throttle/throttled"]["value"] is not None, throttle
    print("1 ok, 0 failed, 0 skipped")


def main():
    wanted = board.arguments(__doc__)
    with board.tree_with(wanted.debs, "bookworm", "4k") as (root, folder):
        check(root, folder)
    return 0


if __name__ == "__main__":
    board.exit_with(main)
