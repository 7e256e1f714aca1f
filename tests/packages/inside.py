#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside a booted tree that has no edgeprofd, as root: installs an earlier version of the packages,
upgrades, follows README, purges. The functions build on each other, in this order."""
import os
import pathlib
import pwd
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parents[2]
for folder in ("tests/system", "tests/tools"):
    sys.path.insert(0, str(HERE / folder))
import snippets  # noqa: E402
from service import SERVICE, SOCKET, ctl, journal, messages, pid, shell, show, systemctl, until  # noqa: E402
from harness import run_tests  # noqa: E402

CONF = pathlib.Path("/etc/edgeprofd/edgeprofd.conf")
OLD_COMMENT = "# A comment of the earlier version.\n"
NAMES = ["edgeprofd", "edgeprofctl", "libedgeprof1", "libedgeprof-dev", "python3-edgeprof", "gstreamer1.0-edgeprof"]
TRACER = """import ctypes
gst = ctypes.CDLL("libgstreamer-1.0.so.0")
gst.gst_plugin_load_by_name.restype = ctypes.c_void_p
gst.gst_init(None, None)
assert gst.gst_plugin_load_by_name(b"edgeprof")"""
DEBIAN = {"PATH": os.environ["PATH"], "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}


def apt(*arguments):
    """apt without a network: what it needs is in its cache."""
    done = subprocess.run(["apt-get", "-q", "-y", *map(str, arguments)], env=DEBIAN, text=True,
                          capture_output=True, timeout=180, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (arguments, done.stdout[-3000:], done.stderr[-2000:])
    said = done.stdout + done.stderr
    bad = re.findall(r".*(?:Failed to|warning: (?!downgrading)|refusing).*", said)
    assert not bad, (bad, said[-3000:])
    return done.stdout


def install(version, *options):
    return apt("install", "--no-install-recommends", *options, "-o", "Dpkg::Options::=--force-confold",
               *sorted((HERE / version).glob("*.deb")))


def version_of(name):
    return shell("dpkg-query", "-W", "-f", "${Version}", name).stdout


def serves():
    for unit in (SERVICE, SOCKET):
        assert systemctl("is-enabled", unit).stdout.strip() == "enabled", unit
        assert systemctl("is-active", unit).stdout.strip() == "active", unit
    done = ctl("status")
    assert done.returncode == 0 and "edgeprof" in done.stdout, done


def test_an_installed_service_is_enabled_and_runs():
    install("old")
    serves()
    assert pwd.getpwnam("edgeprof").pw_shell.endswith("nologin")
    assert show("User") == "edgeprof" and show("NRestarts") == "0"
    assert systemctl("is-enabled", "edgeprof-metrics.timer", check=False).stdout.strip() == "disabled"


def test_a_start_leaves_few_lines_in_the_journal():
    assert len(messages()) < 10, messages()
    assert not [entry["MESSAGE"] for entry in journal("-p", "warning")]


def test_an_upgrade_restarts_the_service_and_brings_the_new_configuration():
    assert OLD_COMMENT in CONF.read_text()
    old, before = pid(), len(messages())
    install("new")
    serves()
    assert pid() != old and all(version_of(name) > "0.0.9" for name in NAMES)
    assert OLD_COMMENT not in CONF.read_text()
    assert len(messages()) - before < 20, messages()[before:]  # an end and a start


def test_what_the_administrator_changed_stays():
    CONF.write_text(CONF.read_text() + "[history]\npersist = yes\n")
    drop_in = CONF.with_name("edgeprofd.conf.d") / "local.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[sampling]\ninterval = 500ms\n")
    systemctl("disable", "--now", SERVICE, SOCKET)
    install("old", "--allow-downgrades")
    assert systemctl("is-active", SERVICE, check=False).stdout.strip() == "inactive"
    install("new")
    assert "persist = yes" in CONF.read_text() and drop_in.exists()
    assert systemctl("is-enabled", SERVICE, check=False).stdout.strip() == "disabled"
    systemctl("enable", "--now", SERVICE)
    serves()


def test_the_programs_of_readme_and_of_a_tutorial_compile_and_run():
    folder = pathlib.Path("/root/readme")
    folder.mkdir()
    seen = []
    for block in snippets.of_file(HERE / "README.md") + snippets.of_file(HERE / "cpp.md"):
        if block.name:
            (folder / block.name).write_text(block.text)
        for word, app in (("cc ", "cam"), ("c++ ", "node"), ("python3 ", "cam")):
            if block.language == "sh" and block.text.startswith(word):
                shell("bash", "-ec", block.text, cwd=folder)
                seen.append(ctl("report", app))
                assert seen[-1].returncode == 0 and "infer" in seen[-1].stdout, (word, seen[-1])
    assert len({report.stdout for report in seen}) == 3, seen
    python = shell("python3", "-c", "import edgeprof._fast as fast; print(fast.__file__)", cwd="/").stdout
    assert python.startswith("/usr/lib/python3/dist-packages/edgeprof/_fast."), python


def test_gstreamer_finds_its_tracer():
    shell("python3", "-c", TRACER)


def test_manual_pages_completions_and_the_catalog_are_there():
    for file in ("man8/edgeprofd.8", "man5/edgeprofd.conf.5", "man1/edgeprofctl.1", "man3/edgeprof.3", "man3/edgeprof.3py",
                 "man7/edgeprof-gstreamer.7"):
        assert f"/usr/share/man/{file}.gz" in shell("dpkg-query", "-L", *NAMES).stdout, file
    for file in ("bash-completion/completions/edgeprofctl", "zsh/site-functions/_edgeprofctl",
                 "fish/vendor_completions.d/edgeprofctl.fish", "edgeprofd/dropins/raspberry-pi.conf"):
        assert (pathlib.Path("/usr/share") / file).exists(), file
    assert "3340108b5e98413b831101baa2d42aad" in shell("journalctl", "--list-catalog").stdout


def test_a_removed_package_keeps_its_state_and_a_purged_one_nothing():
    until("there is history on disk", lambda: any(pathlib.Path("/var/lib/edgeprofd").iterdir()))
    apt("remove", *NAMES)
    assert CONF.exists() and any(pathlib.Path("/var/lib/edgeprofd").iterdir())
    assert subprocess.run(["pidof", "edgeprofd"], stdout=subprocess.DEVNULL, check=False).returncode == 1
    apt("purge", "edgeprofd", "edgeprofctl") # of the others nothing is left to purge
    left = [path for path in ("/etc/edgeprofd", "/var/lib/edgeprofd", "/run/edgeprofd", "/usr/share/edgeprofd",
                              "/usr/lib/python3/dist-packages/edgeprof") if pathlib.Path(path).exists()]
    assert not left, left
    assert not list(pathlib.Path("/etc/systemd/system").glob("*/edgeprofd.*")), "still enabled"
    systemctl("daemon-reload")
    assert show("LoadState") == "not-found"
    assert "edgeprof" not in systemctl("--failed", "--plain").stdout


if __name__ == "__main__":
    run_tests(dict(globals()))
