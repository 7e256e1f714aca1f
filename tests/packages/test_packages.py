#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages, built in a tree that has only what debian/control names, and installed, upgraded and
purged under a real systemd in another one (inside.py), for Debian 12 and this machine's architecture. The long form
of check_lists.py.

test_packages.py --all: Debian 12 and 13, amd64, arm64 and armhf, and each once more in another folder, which must
give the same bytes. test_packages.py trixie/armhf… does that with some of them."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import build
from build import ARCHITECTURES, NAMES, SOURCE, SUITES, run
import machine  # build knows where it is

EARLIER = "0.0.9"
CONF = "etc/edgeprofd/edgeprofd.conf"
COMPILERS = ["g++", "gcc", "libc6-dev", "pkg-config"]


def field(deb, name):
    return run("dpkg-deb", "-f", deb, name).strip()


def make_earlier(deb, to, scratch):
    """The same package with a lower version and another comment in the configuration."""
    tree = scratch / deb.stem
    run("dpkg-deb", "-R", deb, tree)
    control = tree / "DEBIAN" / "control"
    control.write_text(control.read_text().replace(field(deb, "Version"), EARLIER))
    if (tree / CONF).exists():
        (tree / CONF).write_text("# A comment of the earlier version.\n" + (tree / CONF).read_text())
    run("dpkg-deb", "-b", "-Znone", tree, to)


def dependencies(debs):
    """What the packages need besides each other."""
    parts = [part for deb in debs for part in field(deb, "Depends").split(",") if part.strip()]
    return sorted({re.match(r"\s*([^\s:(]+)", part)[1] for part in parts} - set(NAMES))


def install_tree(suite, debs):
    """A tree with compilers, and in apt's cache what the packages depend on."""
    wanted = " ".join(dependencies(debs))
    hook = f'--customize-hook=chroot "$1" apt-get install -q -y --download-only --no-install-recommends {wanted}'
    return machine.cached_tree("install", suite, machine.BASE + COMPILERS, "--skip=cleanup/apt", hook)


def check_installed(suite, debs):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-install."))
    root = machine.writable_copy(install_tree(suite, debs), scratch, "1G")
    try:
        inside = root / machine.RESULT.parent
        for name in ("old", "new"):
            (inside / name).mkdir(parents=True)
        with tempfile.TemporaryDirectory(dir=root) as folder:
            for deb in debs:
                shutil.copy(deb, inside / "new")
                make_earlier(deb, inside / "old", pathlib.Path(folder))
        for page in ("README.md", "docs/tutorials/cpp.md"):
            shutil.copy(SOURCE / page, inside)
        return machine.check(root, SOURCE, ["tests/packages/inside.py"], ["tests/tools/snippets.py"])
    finally:
        subprocess.run(["umount", "-l", root, scratch], check=False)
        scratch.rmdir()


def check_contents(debs, arch):
    packages = [deb for deb in debs if not field(deb, "Package").endswith("-dbgsym")]
    assert sorted(field(deb, "Package") for deb in packages) == sorted(NAMES), debs
    version = re.search(r"^  version: '(.*)'", (SOURCE / "meson.build").read_text(), re.M)[1]
    for deb in packages:
        assert field(deb, "Version").split("-")[0] == version and field(deb, "Architecture") == arch, deb
    return packages


def check(suite, arch, place, twice):
    debs = build.build(suite, arch, place / suite / arch, check=arch == build.native())
    packages = check_contents(debs, arch)
    print(f"{suite} {arch}: {', '.join(deb.name for deb in packages)}", flush=True)
    if twice:
        again = build.build(suite, arch, place / "again", folder="another/place/to/build/the-source")
        differing = [deb.name for deb, other in zip(debs, again, strict=True) if deb.read_bytes() != other.read_bytes()]
        assert not differing, f"not reproducible: {differing}"
        print(f"{suite} {arch}: a build in another folder gives the same bytes", flush=True)
    return check_installed(suite, packages) if arch == build.native() else 0


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    machine.require()
    machine.own_mount_namespace()
    every = [f"{suite}/{arch}" for suite in SUITES for arch in ARCHITECTURES]
    wanted = every if sys.argv[1:] == ["--all"] else sys.argv[1:]
    assert set(wanted) <= set(every), f"which of {' '.join(every)}?"
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="edgeprof-debs-", dir="/var/tmp") as place:
        for name in wanted or [f"{SUITES[0]}/{build.native()}"]:
            if check(*name.split("/"), pathlib.Path(place), twice=wanted != []) != 0:
                return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except machine.Missing as missing:
        print(missing)
        sys.exit(77)
