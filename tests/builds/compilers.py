#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds with every compiler of Debian 12 and 13, without a warning: compilers.py [SUITE/COMPILER…] [--option=…]

Without names: gcc 12 to 14 and clang 14 to 19, as release and as debugoptimized, with -Dwerror=true and all tests.
The packages are those of .ci/setup.sh and ./test, whose lists are thereby checked against both suites. --option passes
one to meson: --option=-Dtests=disabled builds only what is installed, in half the time. Needs root, mmdebstrap, and
a Debian mirror known to apt; trees are kept in /var/tmp/edgeprof-compilers-*. Two hours on two processors."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("EDGEPROF_SOURCE", pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(SOURCE / "tests" / "system"))
import machine  # noqa: E402

COMPILERS = {
    "bookworm": ["gcc-12", "clang-14", "clang-15", "clang-16"],
    "trixie": ["gcc-13", "gcc-14", "clang-17", "clang-18", "clang-19"],
}
TYPES = ["release", "debugoptimized"]


def packages():
    """What ./test installs."""
    setup, test = ((SOURCE / name).read_text() for name in (".ci/setup.sh", "test"))
    lists = [re.search(r"^build_packages=\((.*?)\)", setup, re.M | re.S)[1],
             re.search(r'^install_packages "\$\{build_packages\[@\]\}" (.*?[^\\])\n', test, re.M | re.S)[1]]
    return " ".join(lists).replace("\\\n", " ").split()


def build(root, compiler, buildtype, options):
    """The warnings and errors, none if all is well."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "CC": compiler,
                   "CXX": compiler.replace("gcc", "g++").replace("clang", "clang++")}
    commands = f"""cd /source
        rm -rf /build
        meson setup /build --werror --buildtype={buildtype} {' '.join(options)} || exit
        ninja -C /build -k 0"""
    done = subprocess.run(["chroot", root, "sh", "-c", commands], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0 and "warning:" not in done.stdout:
        return None
    said = [line for line in done.stdout.splitlines() if re.search(r"(warning|error|ERROR):", line)]
    return "\n".join(sorted(set(said))) or done.stdout[-2000:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("compiler", nargs="*", help="SUITE/COMPILER, such as trixie/gcc-14")
    parser.add_argument("--buildtype", action="append", choices=TYPES)
    parser.add_argument("--option", action="append", default=[])
    wanted = parser.parse_args()
    machine.require()
    machine.own_mount_namespace()
    failed = 0
    for suite, compilers in COMPILERS.items():
        compilers = [name for name in compilers if not wanted.compiler or f"{suite}/{name}" in wanted.compiler]
        if not compilers:
            continue
        extra = COMPILERS[suite] + [name.replace("gcc", "g++") for name in COMPILERS[suite] if "gcc" in name]
        tree = machine.cached_tree("compilers", suite, packages() + extra)
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-compilers."))
        root = machine.writable_copy(tree, scratch, "2G")
        try:
            (root / "source").mkdir()
            subprocess.run(["mount", "--bind", "-o", "ro", SOURCE, root / "source"], check=True)
            for name in ("proc", "dev"):
                subprocess.run(["mount", "--rbind", f"/{name}", root / name], check=True)
            for compiler in compilers:
                for buildtype in wanted.buildtype or TYPES:
                    trouble = build(root, compiler, buildtype, wanted.option)
                    print(f"{suite}/{compiler} {buildtype}: {trouble or 'no warning'}", flush=True)
                    failed += trouble is not None
        finally:
            subprocess.run(["umount", "-R", "-l", root, scratch], check=False)
            scratch.rmdir()
    return failed != 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except machine.Missing as missing:
        sys.exit(str(missing))
