#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README, followed literally: ./install, then every command, program and configuration that README
shows, in its order, by a shell without a variable of ours. What is written goes to layers over this
checkout, /usr, /etc and /var that only this process sees. Needs root. systemctl is
a stand-in that runs the service's command as its user; inside.py looks at the service under systemd."""
import contextlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import machine

SOURCE = pathlib.Path(os.environ.get("EDGEPROF_SOURCE", pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(SOURCE / "tests" / "tools"))
import snippets  # noqa: E402

REPORTS = pathlib.Path("/run/edgeprofd/reports")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# What a machine with sudo and systemd has, for one without: the commands of README and ./install.
SUDO = '#!/bin/sh\nexec "$@"\n'
SYSTEMCTL = """#!/bin/sh
pidfile=/run/edgeprofd.pid enabled=/run/edgeprofd.enabled
alive() { readlink "/proc/$(cat $pidfile)/exe" >/dev/null; } # a zombie has none
stop() {
	[ -e $pidfile ] || return 0
	kill "$(cat $pidfile)" 2>/dev/null
	while alive; do sleep 0.1; done
	rm $pidfile
}
start() {
	install -d -o edgeprof -g edgeprof /run/edgeprofd
	install -d -o edgeprof -g edgeprof -m 0750 /var/lib/edgeprofd
	command=$(sed -n 's/^ExecStart=//p' /lib/systemd/system/edgeprofd.service)
	RUNTIME_DIRECTORY=/run/edgeprofd STATE_DIRECTORY=/var/lib/edgeprofd setpriv --reuid=edgeprof \\
		--regid=edgeprof --clear-groups $command >/run/edgeprofd.log 2>&1 </dev/null &
	echo $! >$pidfile
	for _ in $(seq 200); do
		edgeprofctl status >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	cat /run/edgeprofd.log >&2
	return 1
}
case $1 in
daemon-reload) ;;
enable) touch $enabled ;;
disable) rm -f $enabled; stop ;;
is-enabled) [ -e $enabled ] && echo enabled ;;
is-active) alive && echo active ;;
restart) stop; start ;;
*) exit 1 ;;
esac
"""


@contextlib.contextmanager
def layers(scratch):
    """With sudo and systemctl of ours. Nothing that is written from here on reaches this machine."""
    machine.own_mount_namespace()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", scratch], check=True)
    for below in ("/usr", "/etc", "/var", str(SOURCE.resolve())):
        layer = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        layer.chmod(0o755)
        (layer / "upper").mkdir()
        (layer / "work").mkdir()
        options = f"lowerdir={below},upperdir={layer}/upper,workdir={layer}/work"
        done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, below], capture_output=True, text=True)
        if done.returncode != 0:
            raise machine.Missing(f"no layer over {below} here: {done.stderr.strip()}")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/run"], check=True)
    pathlib.Path("/run/systemd/system").mkdir(parents=True)  # systemd runs, they say
    for name, text in (("sudo", SUDO), ("systemctl", SYSTEMCTL)):
        file = pathlib.Path("/usr/bin") / name
        file.unlink(missing_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    try:
        yield
    finally:
        pidfile = pathlib.Path("/run/edgeprofd.pid")
        if pidfile.exists():
            with contextlib.suppress(OSError):
                os.kill(int(pidfile.read_text()), 15)
        subprocess.run(["umount", "-l", scratch], check=False)


class Reader:
    """Somebody who types what README says."""

    def __init__(self, folder, home):
        self.folder = folder
        self.env = {"PATH": PATH, "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": "/tmp"}

    def type(self, commands, good=(0,)):
        done = subprocess.run(["bash", "-e", "-c", commands], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=1200)
        assert done.returncode in good, f"{commands}\n{done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def installed_files():
    found = set()
    for top in ("/usr", "/etc", "/lib"):
        for folder, folders, files in os.walk(top):
            found |= {os.path.join(folder, name) for name in folders + files if "edgeprof" in name}
    return found


def check_unit():
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "/lib/systemd/system/edgeprofd.service"],
                              capture_output=True, text=True, timeout=60)
        assert "edgeprofd" not in done.stderr, done.stderr


def check_sizes(build):
    """The limits of docs/performance.md, which are for amd64."""
    for file, limit in (("daemon/edgeprofd", 700), ("client/libedgeprof/libedgeprof.so.1", 40)):
        subprocess.run(["strip", "-o", build / "stripped", build / file], check=True)
        size = (build / "stripped").stat().st_size / 1024
        print(f"{file}: {size:.1f} KiB stripped", flush=True)
        assert size <= limit or platform.machine() != "x86_64", f"the limit is {limit} KiB"


def follow(reader):
    """The blocks in README's order, then C and C++; what each promises is there afterwards."""
    seen, written = set(), set()
    pages = [SOURCE / "README.md", SOURCE / "docs" / "tutorials" / "cpp.md"]
    for block in [block for page in pages for block in snippets.of_file(page)]:
        if block.name:
            (reader.folder / block.name).write_text(block.text)
        elif block.language == "sh":
            print(f"{block.place}: {block.text.splitlines()[0]}", flush=True)
            said = reader.type(block.text)
            if block.text.startswith("./install"):
                assert "FAILED" not in said and "compiles, links and runs" in said and "enabled, active" in said, said
                check_unit()
                check_sizes(reader.folder / "build-release")
            written |= {(path.name, path.stat().st_mtime_ns) for path in REPORTS.glob("*.txt")}
            seen |= {word for word in ("./install", "cc ", "c++ ", "python3 ", "--check-config") if word in block.text}
    assert len(seen) == 5, seen
    broker = json.loads(reader.type("edgeprofctl status -j"))["broker"]
    assert broker["host"] == "localhost", broker  # the configuration that was written is the one that is read
    assert any(pathlib.Path("/var/lib/edgeprofd").iterdir()), "no history on disk"
    for question in snippets.questions(SOURCE):
        reader.type(question, (0, 1, 2))
    names = [name for name, _ in written]
    assert names.count("cam.txt") >= 2 and "node.txt" in names, written  # in Python and C; in C++


def removal(reader, before):
    left = pathlib.Path("/etc/edgeprofd/edgeprofd.conf.d/local.conf")
    conf = pathlib.Path("/etc/edgeprofd/edgeprofd.conf")
    conf.write_text(conf.read_text() + "# mine\n")
    assert "kept" in reader.type("./install")
    assert conf.read_text().endswith("# mine\n")
    assert "kept" in reader.type("./install --uninstall")
    after = installed_files() - before - {str(left), str(conf), str(conf.parent), str(left.parent)}
    assert after == set() and conf.exists() and left.exists(), after
    assert not pathlib.Path("/run/edgeprofd.pid").exists(), "it still runs"


def main():
    if os.geteuid() != 0:
        raise machine.Missing("needs root (./install, layers over /usr, /etc and /var)")
    for tool in ("apt-get", "cc", "c++", "meson", "setpriv"):
        if not shutil.which(tool, path=PATH):
            raise machine.Missing(f"{tool} is not installed")
    with tempfile.TemporaryDirectory(prefix="edgeprof-readme-") as place:
        scratch = pathlib.Path(place) / "layers"
        scratch.mkdir()
        with layers(scratch):
            reader = Reader(SOURCE.resolve(), place)
            before = installed_files()
            follow(reader)
            removal(reader, before)
    print("README holds")


if __name__ == "__main__":
    try:
        main()
    except machine.Missing as missing:
        print(missing)
        sys.exit(77)
