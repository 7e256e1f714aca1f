# SPDX-License-Identifier: Apache-2.0
"""How the checks inside the booted tree see edgeprofd.service: systemctl, the journal, /proc, and the
daemon's own answers."""
import contextlib
import json
import pathlib
import pwd
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / name) for name in ("integration", "tools")]
from harness import Varlink, VarlinkError, until  # noqa: E402

SERVICE = "edgeprofd.service"
SOCKET = "edgeprofd.socket"
RUN_DIR = pathlib.Path("/run/edgeprofd")
CONFIG_DIR = pathlib.Path("/etc/edgeprofd/edgeprofd.conf.d")
DROPINS = pathlib.Path("/usr/share/edgeprofd/dropins")


def shell(*command, check=True, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **options)
    assert not check or done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done


def systemctl(*arguments, check=True):
    return shell("systemctl", *arguments, check=check)


def show(name, unit=SERVICE):
    return systemctl("show", "--property", name, "--value", unit).stdout.strip()


def pid():
    return int(show("MainPID"))


def process_status():
    """/proc/PID/status of the daemon as a dictionary."""
    text = pathlib.Path(f"/proc/{pid()}/status").read_text()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}


def call(method, **parameters):
    with contextlib.closing(Varlink(RUN_DIR / "io.edgeprof", 20.0)) as client:
        return client.call(method, **parameters)


def metric(name):
    try:
        return next((m for m in call("ListMetrics", glob=name)["metrics"] if m["name"] == name), None)
    except VarlinkError as error:
        if error.name != "io.edgeprof.NotFound":
            raise
        return None


def source(name):
    return next(row for row in call("ListSources")["sources"] if row["name"] == name)


def add_users(*names, groups=()):
    """And the service's own, as an installation does."""
    shell("systemd-sysusers")
    shell("ldconfig")
    for name in names:
        try:
            pwd.getpwnam(name)
        except KeyError:
            shell("useradd", *(f"--groups={group}" for group in groups), name)


def ctl(*arguments, **options):
    return shell("edgeprofctl", *arguments, check=False, **options)


def journal(*matches):
    """The entries as dictionaries, oldest first."""
    lines = shell("journalctl", "-o", "json", "--no-pager", "-u", SERVICE, *matches, check=False).stdout
    return [json.loads(line) for line in lines.splitlines()]


def messages():
    return [str(entry.get("MESSAGE")) for entry in journal()]


def said(text, after=0):
    return sum(text in message for message in messages()) > after


def count(text):
    return sum(text in message for message in messages())


@contextlib.contextmanager
def configuration(text):
    """A drop-in of the configuration, gone afterwards. Reloading is the caller's matter."""
    CONFIG_DIR.mkdir(parents=True, exist_ok=True)
    file = CONFIG_DIR / "90-test.conf"
    file.write_text(text)
    try:
        yield
    finally:
        file.unlink()


@contextlib.contextmanager
def unit_setting(text):
    """A drop-in of the unit, gone afterwards; the service is restarted with it and after it."""
    folder = pathlib.Path(f"/run/systemd/system/{SERVICE}.d")
    folder.mkdir(parents=True)
    (folder / "90-test.conf").write_text(text)
    systemctl("daemon-reload")
    systemctl("restart", SERVICE)
    try:
        yield
    finally:
        (folder / "90-test.conf").unlink()
        folder.rmdir()
        systemctl("daemon-reload")
        systemctl("restart", SERVICE)


def dropin(name):
    """An installed drop-in, word by word."""
    return unit_setting((DROPINS / name).read_text())


def answers_again(old_pid):
    until("another process serves", lambda: pid() not in (0, old_pid) and show("SubState") == "running")
