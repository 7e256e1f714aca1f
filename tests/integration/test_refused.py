#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the system refuses: memory at the start, threads at any time. The daemon never dies of it, and says
what it was.

EDGEPROF_REFUSALS is which of the start's allocations fail ("1-40,50,100"; the long form is 1-2000)."""
import os
import shutil
import signal
import socket
import subprocess
import time

from harness import BUILD, DAEMON, Daemon, run_tests, until
from test_apps import Actor, app_of, attached

FAULTY = BUILD / "tests" / "integration" / "odd-daemon"
SOME = "1-30,37,45,58,70,90,120,160,220,300"


def numbers(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def start_with_refusals(how, number):
    """Its exit status and what it said."""
    daemon = Daemon("[mqtt]\nhost = 127.0.0.1\nport = 1\n[daemon]\nadmin_group = root\n")
    daemon.program, daemon.more = [str(FAULTY), "-c"], [how, str(number)]
    try:
        daemon.start(wait=False)
        until("it ended or has started", lambda: daemon.process.poll() is not None or "started, version" in daemon.log())
        if daemon.process.poll() is None:
            daemon.process.send_signal(signal.SIGTERM)
        return daemon.process.wait(60), daemon.log()
    finally:
        daemon.clean()


def test_memory_that_is_refused_at_the_start_is_an_error_that_is_said():
    ends = []
    for how in ("at", "from"):
        for number in numbers(os.environ.get("EDGEPROF_REFUSALS", SOME)):
            status, log = start_with_refusals(how, number)
            # SIGTERM: the memory for its handler was refused as well
            assert status in (0, 1, -signal.SIGTERM), (how, number, status, log[-3000:])
            assert status != 1 or "cannot start" in log or "not read" in log or "cannot be read" in log, (how, number, log)
            ends.append(status)
    print(f"  {ends.count(0)} started all the same, {ends.count(1)} said that they cannot")
    assert 0 in ends and 1 in ends, ends


class Crowded(Daemon):
    """A daemon of a user of its own, who may have so many threads."""

    USER = 61234

    def limit(self, threads):
        subprocess.run(["prlimit", f"--pid={self.pid}", f"--nproc={threads}:"], user=self.USER, group=self.USER,
                       extra_groups=[], check=True)

    def start(self, wait=True):
        os.chmod(self.dir, 0o755)
        os.chown(self.run_dir, self.USER, self.USER)
        copy = shutil.copy(DAEMON, self.dir)  # the build may be in a folder that is closed to others
        program = [copy if word == str(DAEMON) else word for word in self.program]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*program, str(self.config_path)], env=self.env, stderr=log, stdout=log,
                                            user=self.USER, group=self.USER, extra_groups=[])
        until("the daemon answers", self.answers)
        return self

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))


def black_hole(held):
    """A port whose connections are never accepted: the backlog is full, the kernel drops what comes."""
    server = socket.create_server(("127.0.0.1", 0), backlog=0)
    held.append(server)
    for _ in range(4):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(server.getsockname())
        held.append(one)
    return server.getsockname()[1]


def test_no_reload_adds_a_thread_and_an_app_may_end_without_one():
    if os.geteuid() != 0:
        return "needs root to become a user of its own"
    held = []
    config = f"[mqtt]\nhost = 127.0.0.1\nport = {black_hole(held)}\ndevice_id = n"
    with Crowded(config + "0\n") as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        actor.do("runs infer 30 1000")
        until("its runs", lambda: app_of(daemon)["processes"])
        until("the attempt to connect", lambda: daemon.call("GetStatus")["broker"]["state"] == "connecting")
        before = daemon.threads()
        for number in range(1, 7):
            daemon.config_path.write_text(config + f"{number}\n")
            assert daemon.call("Reload") is not None
            until("it waits", lambda: "previous attempt" in (daemon.call("GetStatus")["broker"].get("reason") or ""))
            assert daemon.threads() <= before + 2, (number, daemon.threads(), before)  # workers that began late
        daemon.limit(1)  # from now on every thread is refused
        actor.end()
        until("the app has ended", lambda: not (app_of(daemon) or {}).get("processes"))
        report = daemon.run_dir / "reports" / "cam.txt"
        time.sleep(2)  # in which it is tried again
        assert daemon.answers() and not report.exists()
        daemon.limit(1000)
        until("the report is written after all", report.exists)
    for one in held:
        one.close()


def test_a_source_without_a_thread_says_so():
    if os.geteuid() != 0:
        return "needs root to become a user of its own"
    daemon = Crowded("[mqtt]\nhost = 127.0.0.1\nport = 1\n")
    daemon.program = ["prlimit", "--nproc=1:", str(DAEMON), "-c"]
    with daemon:
        reasons = until("a source waits", lambda: [s["reason"] for s in daemon.call("ListSources")["sources"]
                                                   if "thread" in (s.get("reason") or "")])
        assert all("no thread could be started" in reason for reason in reasons), reasons
        assert "others do not answer" not in daemon.log(), daemon.log()
        broker = daemon.call("GetStatus")["broker"]
        assert broker["state"] == "off" and "cannot start a thread" in broker["reason"], broker
        assert "MQTT is disabled until the configuration is reloaded: cannot start a thread" in daemon.log()
        daemon.limit(1000)  # a sanitizer wants one at the end


def test_a_connection_that_cannot_be_watched_is_refused():
    strace = shutil.which("strace")
    if not strace:
        return "no strace"
    with Daemon() as daemon:
        tracer = subprocess.Popen([strace, "-f", "-o", "/dev/null", "-e", "trace=epoll_ctl", "-e", "inject=epoll_ctl:error=ENOSPC",
                                   "-p", str(daemon.pid)], stderr=subprocess.PIPE, text=True)
        try:
            if "attached" not in tracer.stderr.readline():
                return "strace may not attach"
            for path in (daemon.socket, daemon.run_dir / "events"):
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM if path == daemon.socket else socket.SOCK_SEQPACKET) as client:
                    client.settimeout(30)
                    client.connect(str(path))
                    try:
                        assert client.recv(1) == b"", path
                    except ConnectionResetError:
                        pass
        finally:
            tracer.terminate()
            tracer.communicate()
        assert daemon.process.poll() is None, daemon.log()
        with Actor(daemon) as actor:
            attached(daemon, actor)
    return None


if __name__ == "__main__":
    run_tests(dict(globals()))
