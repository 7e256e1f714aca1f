#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Apps in containers, as docs/containers.md describes them: namespaces of users, processes and mounts, with the run
directory bound to /run/edgeprofd, read-only. C and Python programs appear with the numbers of the host; a daemon that
cannot see them says so; an app in a time namespace is refused."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import CTL, DAEMON, DEMO, SOURCE, Daemon, run_tests, skip, until

NAMESPACES = ["unshare", "--user", "--map-root-user", "--pid", "--mount", "--fork", "--kill-child"]
# What a container engine does with a volume; $0 is the run directory.
ENTER = """mount -t tmpfs tmpfs /run && mkdir /run/edgeprofd && mount -o bind,ro "$0" /run/edgeprofd || exit 125
exec "$@"
"""
PYTHON = shutil.which("python3", path="/usr/bin:/bin")  # that any user may run
APP = """
import edgeprof, time
assert edgeprof.connect("py")
while True:
    with edgeprof.frame(), edgeprof.stage("work"):
        time.sleep(0.01)
"""
# Root can be another user on the host than it is in the container.
USER = 4242 if os.geteuid() == 0 else os.geteuid()
AS_USER = ["setpriv", "--reuid=4242", "--regid=4242", "--clear-groups"] if os.geteuid() == 0 else []


def bare_environment():
    """Without a variable that leads to the daemon."""
    return {"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=0", "HOME": "/"}


@contextlib.contextmanager
def running(daemon):
    """With a run directory that any user reaches, as the service's."""
    daemon.dir.chmod(0o755)
    with daemon:
        yield daemon


@contextlib.contextmanager
def container(daemon, *command):
    """The program as process 1 of a container, by its number on the host."""
    process = subprocess.Popen([*AS_USER, *NAMESPACES, "sh", "-c", ENTER, str(daemon.run_dir), *map(str, command)],
                               env=bare_environment(), cwd="/", stdout=subprocess.DEVNULL)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        yield int(until("process 1", lambda: process.poll() is not None or children.read_text()))
    finally:
        process.kill()
        process.wait()


def inside(daemon, *command):
    return subprocess.run([*AS_USER, *NAMESPACES, "sh", "-c", ENTER, str(daemon.run_dir), *map(str, command)],
                          env=bare_environment(), cwd="/", capture_output=True, text=True, timeout=60)


def app_of(daemon, name):
    return next((app for app in daemon.call("ListApps")["apps"] if app["name"] == name), None)


def is_seen(daemon, name, host_pid):
    app = until("its events arrive", lambda: (a := app_of(daemon, name)) and a["received"] > 20 and a)
    assert app["uid"] == USER, app
    process = app["processes"][0]
    assert process["pid"] == host_pid and process["ns_pid"] == 1 and "pid_reason" not in process, (process, host_pid)
    until("its memory is known", lambda: (daemon.metric(f"process/{name}/rss") or {}).get("value"))


def test_a_c_program_appears_with_the_numbers_of_the_host():
    with running(Daemon()) as daemon, container(daemon, DEMO, "--app", "camera", "--fps", "100") as pid:
        is_seen(daemon, "camera", pid)


def test_a_python_program_with_the_module_of_pip():
    if not PYTHON:
        return "no python3 in /usr/bin"
    with tempfile.TemporaryDirectory(prefix="edgeprof-container.") as scratch:
        os.chmod(scratch, 0o755)
        venv = pathlib.Path(scratch) / "venv"
        env = dict(bare_environment(), PIP_NO_INDEX="1", HOME=scratch)
        made = subprocess.run([PYTHON, "-m", "venv", venv], env=env, capture_output=True, text=True)
        if made.returncode != 0:
            return f"no virtual environment (Debian: package python3-venv): {made.stdout.strip()[:200]}"
        subprocess.run([venv / "bin/pip", "-q", "install", SOURCE / "client/python"], env=env, check=True)
        with running(Daemon()) as daemon, container(daemon, venv / "bin/python3", "-c", APP) as pid:
            is_seen(daemon, "py", pid)
    return None


def test_apps_outlive_the_daemon_in_a_container_too():
    """The directory is bound, so the sockets of the next daemon are there."""
    with running(Daemon()) as daemon, container(daemon, DEMO, "--app", "camera", "--fps", "100") as pid:
        is_seen(daemon, "camera", pid)
        daemon.kill()
        daemon.start()
        is_seen(daemon, "camera", pid)


def test_root_of_a_container_is_who_it_is_on_the_host():
    with running(Daemon()) as daemon:
        asked = inside(daemon, CTL, "-j", "status")
        assert asked.returncode == 0 and json.loads(asked.stdout)["version"], asked
        if os.geteuid() != 0:
            return "the daemon runs as this user, who may change it"
        refused = inside(daemon, CTL, "reload")
        assert refused.returncode == 77 and "permitted" in refused.stderr, refused
    return None


class Contained(Daemon):
    """It sees no process but its own."""

    program = ["unshare", "--user", "--map-root-user", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child",
               str(DAEMON), "-c"]

    def stop(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        os.kill(int(children.read_text()), 15)
        assert self.process.wait(30) == 0, self.log()


def test_what_the_daemon_cannot_see_is_null_with_a_reason():
    with running(Contained()) as daemon:
        app = subprocess.Popen([DEMO, "--app", "outside", "--fps", "100"], env=daemon.env, stdout=subprocess.DEVNULL)
        try:
            seen = until("its events arrive", lambda: (a := app_of(daemon, "outside")) and a["received"] > 20 and a)
            process = seen["processes"][0]
            assert process.get("pid") is None and "namespace" in process["pid_reason"], process
        finally:
            app.terminate()
            app.wait()


def test_a_time_namespace_is_refused_with_its_reason():
    # a hello from the past looks as if it came late
    for app_name, offset_s in (("future", 100000), ("past", -5)):
        clock = ["unshare", "--user", "--map-root-user", "--time", "--monotonic", str(offset_s), "--fork", "--kill-child"]
        if subprocess.run([*clock, "true"], capture_output=True).returncode != 0:
            return "no time namespace can be made here"
        with running(Daemon()) as daemon:
            app = subprocess.Popen([*clock, DEMO, "--app", app_name, "--fps", "100"], env=daemon.env,
                                   stdout=subprocess.DEVNULL)
            try:
                refused = until("it is refused", lambda: [row for row in daemon.call("ListApps").get("refused", [])
                                                          if row["app"] == app_name])
                assert "another time namespace" in refused[0]["reason"], refused
                assert app_of(daemon, app_name) is None
                assert "another time namespace" in daemon.ctl("apps").stdout
            finally:
                app.kill()
                app.wait()
    return None


if __name__ == "__main__":
    probe = subprocess.run([*AS_USER, *NAMESPACES, "sh", "-c", "mount -t tmpfs tmpfs /run"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"no namespaces of users, processes and mounts can be made here: {probe.stderr.strip()}")
    run_tests(globals())
