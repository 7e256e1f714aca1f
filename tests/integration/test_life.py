#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon's life: configuration, reload, the service manager's protocol, sockets handed over."""
import contextlib
import os
import pathlib
import resource
import signal
import socket
import subprocess
import tempfile

from harness import DAEMON, KEPT, Daemon, Varlink, run_tests, until


def check_config(text):
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "edgeprofd.conf"
        path.write_text(text)
        done = subprocess.run([str(DAEMON), "--check-config", "-c", str(path)], capture_output=True, text=True, timeout=30)
        return done.returncode, done.stdout + done.stderr


def test_check_config_tells_file_line_and_what_was_expected():
    assert check_config("") == (0, "configuration OK\n")
    code, text = check_config("[daemon]\nlog_levl = info\n\n[sampling]\ninterval = soon\n")
    assert code == 78, text
    assert "edgeprofd.conf:2: [daemon] log_levl = info: unknown key; expected one of" in text, text
    assert "edgeprofd.conf:5: [sampling] interval = soon: expected a duration" in text, text


def test_wrong_configuration_at_start_is_exit_78():
    daemon = Daemon("[nonsense]\na = b\n")
    try:
        daemon.start(wait=False)
        assert daemon.process.wait(30) == 78, daemon.log()
        assert "unknown section" in daemon.log()
    finally:
        daemon.clean()


def ended(daemon, **options):
    """Its exit status and log; nothing answers."""
    try:
        with open(daemon.log_path, "ab") as log:
            process = subprocess.Popen([*daemon.program, str(daemon.config_path)], env=daemon.env, stderr=log, stdout=log, **options)
        return process.wait(60), daemon.log()
    finally:
        daemon.clean()


def test_a_configuration_that_cannot_be_read_now_is_not_a_wrong_one():
    """75 is tried again by the unit, 78 is not. /proc/self/mem is a file that exists and fails with EIO."""
    for name in ("edgeprofd.conf", "edgeprofd.conf.d/50-x.conf"):
        daemon = Daemon()
        path = daemon.dir / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to("/proc/self/mem")
        checked = subprocess.run([*daemon.program, str(daemon.config_path), "--check-config"], env=daemon.env, capture_output=True, text=True, timeout=60)
        status, log = ended(daemon)
        assert (status, checked.returncode) == (75, 75), (status, checked, log)
        assert f"{path}: cannot be read: Input/output error" in log, log
    for path in ("/nonexistent/conf", "/etc"):  # what somebody has to change
        daemon = Daemon()
        daemon.config_path = path
        status, log = ended(daemon)
        assert status == 78 and path in log, (status, log)


def test_too_few_descriptors_at_the_start_may_pass_and_are_said():
    seen = set()
    for limit in range(3, 40):
        daemon = Daemon()
        try:
            with open(daemon.log_path, "ab") as log:
                process = subprocess.Popen(
                    [*daemon.program, str(daemon.config_path)], env=daemon.env, stderr=log, stdout=log, close_fds=True,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
            try:
                status = until("it ended or answers", lambda: process.poll() if process.poll() is not None else daemon.socket.exists() and "up")
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
            if status == "up":
                break
            seen.add(status)
            assert status in (69, 75, 127) and daemon.log(), (limit, status, daemon.log())  # 127: not even loaded
        finally:
            daemon.clean()
    assert 75 in seen, seen


def test_usage_errors_are_exit_64():
    for arguments in (["--nonsense"], ["stray"], ["-c"]):
        assert subprocess.run([str(DAEMON), *arguments], capture_output=True, timeout=30).returncode == 64


def test_reload_is_all_or_nothing():
    with Daemon("[alert mine]\nmetric = cpu/load1\nabove = 1000000\n") as daemon:
        def rules(log):
            return daemon.log().count(log)

        def mine():  # a busy machine has alerts of its own
            return [a for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "mine"]

        daemon.config_path.write_text("[alert mine]\nmetric = cpu/load1\nabove = -1\n[daemon]\nlog_level = loud\n")
        daemon.process.send_signal(signal.SIGHUP)
        until("the mistake is told", lambda: rules("expected error, warning") == 1)
        assert mine() == []
        daemon.config_path.write_text("[alert mine]\nmetric = cpu/load1\nabove = -1\n")
        daemon.process.send_signal(signal.SIGHUP)
        until("the new rule fires", lambda: [a for a in mine() if a["state"] == "firing"])
        daemon.config_path.write_text("")
        assert daemon.ctl("reload").returncode == 0
        until("the rule is gone", lambda: mine() == [])
        assert daemon.call("Reload") == {}
        daemon.config_path.write_text("[history]\nmemory = 2M\n[sampling]\ninterval = 2s\n")
        done = daemon.ctl("reload")
        assert (done.returncode, done.stdout) == (0, "Configuration reloaded.\nTakes effect after a restart: [history] memory\n"), done
        daemon.config_path.write_text("[history]\nmemory = 4M\n")
        assert daemon.call("Reload") == {"restart": "[history] memory"}


class Notify:
    """The service manager's end of sd_notify."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = self.dir.name + "/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(30)

    def next(self, wanted):
        while True:
            message = self.socket.recv(4096).decode()
            if wanted in message.splitlines():
                return message


def test_notify_protocol_ready_watchdog_reload_stop():
    notify = Notify()
    daemon = Daemon(env={"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": "600000"})
    daemon.env.pop("WATCHDOG_PID", None)
    try:
        daemon.start()
        assert "STATUS=" in notify.next("READY=1")
        notify.next("WATCHDOG=1")
        notify.next("WATCHDOG=1")
        daemon.process.send_signal(signal.SIGHUP)
        assert "MONOTONIC_USEC=" in notify.next("RELOADING=1")
        notify.next("READY=1")
        daemon.process.send_signal(signal.SIGTERM)
        notify.next("STOPPING=1")
        daemon.stop()
    finally:
        daemon.clean()


def test_ready_comes_before_the_history_is_read():
    daemon = Daemon("[sampling]\ninterval = 50ms\n[statsd]\nenabled = yes\n")

    def rows():
        with contextlib.closing(daemon.client(60)) as client:
            return [t for chunk in client.stream("GetHistory", glob="cpu/load1", from_us=0)
                    for series in chunk["series"] for t in series["time_us"]]

    def start():
        """Only until READY."""
        notify = Notify()
        daemon.env["NOTIFY_SOCKET"] = notify.path
        daemon.start(wait=False)
        return notify.next("READY=1")

    try:
        assert "reading the history" not in start()
        for interruption in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL, None) * 3:
            until("the daemon answers", daemon.answers)
            kept = until("rows", lambda: (lambda found: len(found) > 5 and found)(rows()))
            daemon.kill()
            assert "reading the history" in start()
            assert {"events", "io.edgeprof", "statsd"} <= {path.name for path in daemon.run_dir.iterdir()}
            if interruption:
                daemon.process.send_signal(interruption)
            if interruption in (signal.SIGTERM, signal.SIGKILL):
                assert daemon.process.wait(30) in (0, -signal.SIGKILL), daemon.log()
                start()
            found = rows()  # by a connection that may have had to wait
            assert len(found) >= len(kept) and found == sorted(set(found)), (kept, found)
            assert all(abs(a - b) < 20000 for a, b in zip(kept, found)), (kept, found)  # the clock is read anew
        reloaded = [e for e in daemon.call("ListEvents")["events"] if "reloaded" in e["text"]]
        assert len(reloaded) == 3, reloaded
        daemon.stop()
    finally:
        daemon.clean()


@contextlib.contextmanager
def activated(config):
    """A daemon that a connection started, as a service manager does it: a client that waits, the run directory, and a
    function that waits for the daemon's exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        run_dir = pathlib.Path(scratch) / "run"
        run_dir.mkdir()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(run_dir / "io.edgeprof"))
        listener.listen(16)
        early = Varlink(run_dir / "io.edgeprof")
        early.send("org.varlink.service.GetInfo")
        file = pathlib.Path(scratch) / "conf"
        file.write_text(config)
        child = os.fork()
        if child == 0:
            os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)
            env = dict(os.environ, LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES="varlink",
                       EDGEPROF_RUNTIME_DIR=str(run_dir))
            os.execve(str(DAEMON), [str(DAEMON), "-c", str(file)], env)

        def end():
            _, status = os.waitpid(child, 0)
            return os.waitstatus_to_exitcode(status)

        with contextlib.closing(listener), contextlib.closing(early):
            yield early, run_dir, child, end


def test_socket_activation_of_varlink():
    with activated("") as (early, run_dir, child, end):
        try:
            # who connected before the daemon came is answered
            assert early.reply()["parameters"]["product"]
        finally:
            os.kill(child, signal.SIGTERM)
            status = end()
        assert status == 0
        # the socket is the service manager's: it stays
        assert (run_dir / "io.edgeprof").exists() and not (run_dir / "events").exists()


def test_who_started_a_daemon_of_a_wrong_configuration_is_told():
    with activated("[sampling]\nintervall = 1s\n") as (early, run_dir, _, end):
        with contextlib.closing(Varlink(run_dir / "io.edgeprof")) as silent:  # it sends nothing, and is told all the same
            assert end() == 78
            for client in (early, silent):
                message = client.receive()
                assert message["error"] == "io.edgeprof.ConfigurationInvalid", message
                assert "conf:2: " in message["parameters"]["text"], message
                with contextlib.suppress(ConnectionResetError):  # its request was not read
                    assert client.receive() is None


def test_stop_leaves_no_socket_behind():
    daemon = Daemon()
    try:
        daemon.start()
        daemon.stop()
        left = {p.name for p in daemon.run_dir.iterdir()}
        assert "history" in left and left <= KEPT, left
    finally:
        daemon.clean()


def test_closed_standard_streams_are_no_descriptors_of_ours():
    """Else a log line goes to the event loop's pipes, and the daemon aborts at its stop."""
    for closed in ((0,), (2,), (0, 1, 2)):
        daemon = Daemon()
        daemon.log_path.touch()
        daemon.process = subprocess.Popen([*daemon.program, str(daemon.config_path)], env=daemon.env,
                                          preexec_fn=lambda: [os.close(fd) for fd in closed])
        try:
            until("the daemon answers", daemon.answers)
            daemon.stop()
        finally:
            daemon.clean()


def test_stale_sockets_of_a_killed_daemon_are_replaced():
    daemon = Daemon()
    try:
        for _ in range(3):
            daemon.start()
            daemon.kill()
        daemon.start()
        daemon.stop()
    finally:
        daemon.clean()


def test_foreign_file_in_place_of_the_history_is_not_followed():
    daemon = Daemon()
    try:
        victim = daemon.dir / "victim"
        victim.write_text("precious")
        (daemon.run_dir / "history").symlink_to(victim)
        daemon.start()
        status = daemon.call("GetStatus")
        assert any("history" in text for text in status["degraded"]), status["degraded"]
        assert victim.read_text() == "precious"
        daemon.stop()
    finally:
        daemon.clean()


def test_run_directory_that_others_may_write_to_is_refused():
    daemon = Daemon()
    try:
        daemon.run_dir.chmod(0o777)
        daemon.start(wait=False)
        assert daemon.process.wait(30) == 69
        assert "run directory" in daemon.log()
    finally:
        daemon.clean()


def test_rubbish_in_the_history_file_is_survived():
    daemon = Daemon()
    try:
        daemon.start()
        daemon.stop()
        history = daemon.run_dir / "history"
        size = history.stat().st_size
        with open(history, "r+b") as file:
            file.seek(64)
            file.write(os.urandom(size // 2))
        daemon.start()
        assert daemon.call("GetSelf")["history_bytes"] == size
        daemon.stop()
    finally:
        daemon.clean()


if __name__ == "__main__":
    run_tests(dict(globals()))
