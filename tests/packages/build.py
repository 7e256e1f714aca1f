#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the Debian packages in fresh trees: build.py [--suite bookworm] [--arch arm64] [--output DIR]

Without options: Debian 12 and 13, each for amd64, arm64 and armhf, into build-packages/SUITE/ARCH. A tree
(kept in /var/tmp/edgeprof-packages-*) holds build-essential and what debian/control names, nothing else; what
is not for this machine's architecture is cross-built. Needs root, mmdebstrap, and a Debian mirror known to apt."""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("EDGEPROF_SOURCE", pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(SOURCE / "tests" / "system"))
import machine  # noqa: E402

SUITES = ["bookworm", "trixie"]
ARCHITECTURES = ["amd64", "arm64", "armhf"]
NAMES = ["edgeprofd", "edgeprofctl", "libedgeprof1", "libedgeprof-dev", "python3-edgeprof", "gstreamer1.0-edgeprof"]


def run(*command, **options):
    """Fails with what the command printed."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout + done.stderr


def native():
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def build_tree(suite, arch):
    """A tree with the build dependencies that debian/control names for the architecture."""
    control = SOURCE / "debian" / "control"
    cross = [] if arch == native() else [f"--architectures={native()},{arch}"]
    essential = ["lintian"] if arch == native() else [f"crossbuild-essential-{arch}"]
    profile = "-Pcross,nocheck" if cross else ""
    hooks = ['--customize-hook=mkdir -p "$1/edgeprofd/debian"',
             f'--customize-hook=copy-in {control} /edgeprofd/debian',
             f'--customize-hook=chroot "$1" apt-get build-dep -q -y --no-install-recommends -a{arch} {profile} /edgeprofd',
             '--customize-hook=rm -r "$1/edgeprofd"',
             f"--customize-hook=: {hashlib.sha256(control.read_bytes()).hexdigest()[:12]}"]
    return machine.cached_tree(f"packages-{arch}", suite, essential, "--variant=buildd", *cross, *hooks)


def copy_source(to):
    """What git knows or would know, or in an unpacked archive everything but builds."""
    listed = subprocess.run(["git", "-C", SOURCE, "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode != 0:
        shutil.copytree(SOURCE, to, symlinks=True, ignore=shutil.ignore_patterns("build*", ".git"))
        return
    for name in listed.stdout.split("\0"):
        file = SOURCE / name
        if name and (file.is_symlink() or file.is_file()):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, to / name, follow_symlinks=False)


def build(suite, arch, output, folder="build/edgeprofd", check=False):
    """Builds into the folder output; returns the .debs. check: lintian must have nothing to say."""
    tree = build_tree(suite, arch)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-packages."))
    root = machine.writable_copy(tree, scratch, "1G")
    try:
        copy_source(root / folder)
        cross = "" if arch == native() else "-Pcross,nocheck"
        steps = [f"cd /{folder}", f"dpkg-buildpackage -us -uc -b -a{arch} {cross}"]
        if check:
            steps.append("lintian --pedantic --fail-on error,warning,info,pedantic --allow-root ../*.changes")
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEB_BUILD_OPTIONS": "terse"}
        for name in ("proc", "dev"):
            run("mount", "--rbind", f"/{name}", root / name)
        run("chroot", root, "sh", "-ec", "\n".join(steps), env=environment)
        output.mkdir(parents=True, exist_ok=True)
        for old in output.glob("*.deb"):
            old.unlink()
        return sorted(pathlib.Path(shutil.copy(file, output)) for file in (root / folder).parent.glob("*.deb"))
    finally:
        subprocess.run(["umount", "-R", "-l", root, scratch], check=False)
        scratch.rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--arch", action="append", choices=ARCHITECTURES)
    parser.add_argument("--output", type=pathlib.Path, default=SOURCE / "build-packages")
    wanted = parser.parse_args()
    machine.require()
    machine.own_mount_namespace()
    for suite in wanted.suite or SUITES:
        for arch in wanted.arch or ARCHITECTURES:
            for file in build(suite, arch, wanted.output / suite / arch, check=arch == native()):
                print(file, flush=True)


if __name__ == "__main__":
    try:
        main()
    except machine.Missing as missing:
        sys.exit(str(missing))
