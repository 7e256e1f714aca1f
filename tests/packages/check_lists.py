#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the build installs is in exactly one Debian package, and the library exports what debian/ says it does: the
short form of test_packages.py. A build directory with Debian's layout is the argument (build-release/)."""
import collections
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
UNITS = "lib/systemd/system/*"  # debian/rules


def installed(build):
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, DESTDIR=place))
        root = pathlib.Path(place)
        files = {str(file.relative_to(root)) for file in root.rglob("*") if file.is_symlink() or not file.is_dir()}
    return {file for file in files if "__pycache__" not in file}


def main():
    build = pathlib.Path(sys.argv[1])
    if not (build / "build.ninja").exists():
        print(f"{build} is not there (./run --setup makes it)")
        return 77
    files = installed(build)
    owners = collections.defaultdict(list)
    for list_ in sorted((SOURCE / "debian").glob("*.install")):
        for pattern in list_.read_text().split():
            mine = [file for file in files if fnmatch.fnmatch(file, pattern) or fnmatch.fnmatch(file, pattern + "/*")]
            assert mine or "gstreamer" in pattern, f"{list_.name}: {pattern} is installed by nothing"  # optional
            for file in mine:
                owners[file].append(list_.stem)
    for file in sorted(files):
        if not fnmatch.fnmatch(file, UNITS):
            assert len(owners[file]) == 1, f"{file} is in {owners[file] or 'no package'}"
    library = build / "client" / "libedgeprof" / "libedgeprof.so.1"
    exported = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {word for line in exported.splitlines() for word in [line.split()[-1]] if word.startswith("edgeprof_")}
    listed = re.findall(r"^ (edgeprof_\w+@\w+)", (SOURCE / "debian" / "libedgeprof1.symbols").read_text(), re.M)
    assert {name.replace("@@", "@") for name in exported} == set(listed), sorted(exported ^ set(listed))
    print(f"{len(files)} files in {len(set(sum(owners.values(), [])))} packages, {len(exported)} symbols")
    return 0


if __name__ == "__main__":
    sys.exit(main())
