#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots Debian's arm64 kernel twice in qemu-system-aarch64, with systemd and the Debian packages, for board_inside.py.

board.py [--suite bookworm|trixie] [--pages 4k|16k] [--debs DIR]      (kernels with 16 KiB pages: trixie)

Without --debs the packages are cross-built first (tests/packages/build.py). The tree of the board is made under
emulation and kept in /var/tmp/edgeprof-board-*; the packages are installed into a copy of it, which becomes the image
of the disk. Exits with 77, and the reason, where something is missing. Needs root; half an hour."""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
for folder in ("system", "packages"):
    sys.path.insert(0, str(SOURCE / "tests" / folder))
import machine  # noqa: E402
from build import run  # noqa: E402
from test_packages import dependencies  # noqa: E402

KERNELS = {"4k": "linux-image-arm64", "16k": "linux-image-arm64-16k"}
TOOLS = {"mmdebstrap": "mmdebstrap", "qemu-system-aarch64": "qemu-system-arm", "mke2fs": "e2fsprogs",
         "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu"}
# Machine, processors, memory; qemu emulates the tables of all page sizes for this one.
BOARD = ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a76", "-smp", "2", "-m", "1G", "-no-reboot", "-nodefaults",
         "-display", "none", "-serial", "stdio", "-device", "virtio-rng-pci"]
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
# The initial file system has what this board needs: with all drivers it takes minutes to make under emulation.
INITRD = """--essential-hook=cd "$1" && mkdir -p etc/initramfs-tools/conf.d usr/share/initramfs-tools/modules.d &&
echo MODULES=list >etc/initramfs-tools/conf.d/board &&
printf '%s\\n' ext4 virtio_blk virtio_pci >usr/share/initramfs-tools/modules.d/board"""
FILES = ["tests/system/features.py", "tests/tools/mosquitto.py", "client/examples/hello_stages.py"]
machine.MAKE_PATIENCE = 3600  # seconds: most of it is emulated
BOOT_PATIENCE = 1500  # seconds, of which the checks may take
CHECK_PATIENCE = 1800


def require():
    if os.geteuid() != 0:
        raise machine.Missing("needs root (mmdebstrap, chroot)")
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            raise machine.Missing(f"{tool} is not installed (package {package})")


def arguments(text, *options):
    """Of the command line, with .debs and where the kernel runs programs of the board: this process is replaced by one
    that has both, if need be."""
    parser = argparse.ArgumentParser(description=text.split("\n", maxsplit=1)[0])
    parser.add_argument("--debs", type=pathlib.Path)
    for option, choices in options:
        parser.add_argument(option, choices=choices, default=choices[0])
    wanted = parser.parse_args()
    require()
    if "EDGEPROF_EMULATION" not in os.environ:
        more = []
        if not wanted.debs:
            suite = getattr(wanted, "suite", "bookworm")
            run(sys.executable, SOURCE / "tests/packages/build.py", "--suite", suite, "--arch", "arm64")
            more = ["--debs", SOURCE / "build-packages" / suite / "arm64"]
        os.environ["EDGEPROF_EMULATION"] = "1"
        os.execv(sys.executable, [sys.executable, HERE / "emulation.py", "aarch64", sys.executable, *sys.argv, *more])
    machine.own_mount_namespace()
    wanted.debs = sorted(deb for deb in wanted.debs.glob("*.deb") if "-dbgsym_" not in deb.name)
    return wanted


def inside(root, *command):
    """Runs it in the tree, with a /proc and a /dev that nobody else sees, and so nobody can remove with the tree."""
    mounts = 'for name in proc dev; do mount --rbind /$name "$0/$name"; done; exec chroot "$0" "$@"'
    return run("unshare", "-m", "sh", "-ec", mounts, root, *command, env=ENVIRONMENT)


@contextlib.contextmanager
def tree_with(debs, suite, pages):
    """A copy of the tree of the board in which the packages are installed, as an administrator does, in a folder."""
    packages = [*machine.BASE, "udev", "initramfs-tools", KERNELS[pages], *dependencies(debs)]
    tree = machine.cached_tree("board", suite, packages, "--architectures=arm64", "--skip=check/qemu", INITRD)
    with tempfile.TemporaryDirectory(prefix="edgeprof-board-", dir=machine.CACHE) as folder:
        root = pathlib.Path(folder) / "tree"
        run("cp", "-a", "--reflink=auto", tree, root)
        for deb in debs:
            shutil.copy(deb, root / "tmp")
        print(inside(root, "dpkg", "-i", *(f"/tmp/{deb.name}" for deb in debs)), flush=True)
        yield root, pathlib.Path(folder)


def add_check(root, pages):
    demo = [SOURCE / "client/examples" / name for name in ("demo_pipeline.c", "demo_vision.c")]
    # The library may want a newer libc than the compiler's, which the board has.
    run("aarch64-linux-gnu-gcc", "-O2", "-I", SOURCE, *demo, "-o", root / "usr/bin/demo-pipeline",
        "-Wl,--allow-shlib-undefined", "-L", root / "usr/lib/aarch64-linux-gnu", "-ledgeprof", "-lm", "-pthread")
    machine.add_check(root, SOURCE, ["tests/arch/board_inside.py"], FILES, action="poweroff", patience=CHECK_PATIENCE)
    (root / machine.RESULT).with_name("pages").write_text(f"{int(pages[:-1]) * 1024}\n")


def make_disk(root, folder):
    for name in ("vmlinuz", "initrd.img"):
        found = sorted((root / "boot").glob(f"{name}-*"))
        assert len(found) == 1, found
        shutil.copy(found[0], folder / name)
    run("mke2fs", "-q", "-t", "ext4", "-d", root, folder / "disk", "4G")


def boot(folder):
    """Until it powers itself off: what it said on its console."""
    command = [*BOARD, "-kernel", folder / "vmlinuz", "-initrd", folder / "initrd.img",
               "-append", "root=/dev/vda rw console=ttyAMA0 panic=-1",
               "-drive", f"file={folder}/disk,format=raw,if=virtio,cache=unsafe"]
    with open(folder / "console", "wb") as console:
        try:
            subprocess.run(["setpriv", "--pdeathsig", "KILL", *map(str, command)], stdin=subprocess.DEVNULL,
                           stdout=console, stderr=subprocess.STDOUT, timeout=BOOT_PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            console.write(f"\nit did not power off within {BOOT_PATIENCE} s\n".encode())
    return (folder / "console").read_text(errors="replace")


def result(folder):
    """Of all boots until now, also when one did not end well."""
    subprocess.run(["e2fsck", "-fp", folder / "disk"], stdout=subprocess.DEVNULL, check=False)
    return subprocess.run(["debugfs", "-R", f"cat /{machine.RESULT}", folder / "disk"], capture_output=True,
                          text=True, errors="replace", check=True).stdout


def check(folder):
    """Also the second boot when something failed in the first one."""
    told, failed = "", False
    for number in (1, 2):
        begun = time.monotonic()
        console = boot(folder)
        said = result(folder)
        print(f"boot {number}, {time.monotonic() - begun:.0f} s\n{said[len(told):]}", flush=True)
        told = said
        if re.findall(r"^\d+ ok, (\d+) failed, 0 skipped$", said, re.M) != ["0"] * number:
            print(console)
            failed = True
    return failed


def main():
    wanted = arguments(__doc__, ("--suite", ["bookworm", "trixie"]), ("--pages", list(KERNELS)))
    with tree_with(wanted.debs, wanted.suite, wanted.pages) as (root, folder):
        add_check(root, wanted.pages)
        make_disk(root, folder)
        return check(folder)


def exit_with(main_function):
    try:
        sys.exit(main_function())
    except machine.Missing as missing:
        print(missing)
        sys.exit(77)


if __name__ == "__main__":
    exit_with(main)
