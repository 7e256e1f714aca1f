#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What wears a daemon down: settings that cannot work, no room, no descriptors, kills and stops at
any moment, reloads without end. It profiles on, says what is missing, and grows no more."""
import contextlib
import json
import os
import random
import resource
import signal
import socket
import subprocess
import threading
import time

from harness import DAEMON, DEMO, KEPT, WRITER, Daemon, program, run_tests, until


def rss_kib(daemon):
    with open(f"/proc/{daemon.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


def sanitized(daemon):
    with open(f"/proc/{daemon.pid}/maps") as maps:
        return "asan" in maps.read()


def cpu_s(daemon):
    with open(f"/proc/{daemon.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_wrong_password_file_costs_only_mqtt_until_it_is_right():
    daemon = Daemon()
    try:
        secret = daemon.dir / "secret"
        daemon.config_path.write_text(
            f"[mqtt]\nhost = 127.0.0.1\nport = 1\nusername = me\npassword_file = {secret}\n")
        checked = subprocess.run([str(DAEMON), "--check-config", "-c", str(daemon.config_path)],
                                 capture_output=True, text=True, timeout=30)
        assert checked.returncode == 0 and "MQTT would stay off: password_file" in checked.stderr, checked
        daemon.start()
        status = daemon.call("GetStatus")
        assert status["broker"]["state"] == "off", status["broker"]
        assert "No such file" in status["broker"]["reason"], status["broker"]
        assert any("MQTT is off" in text for text in status["degraded"]), status["degraded"]
        until("it samples", lambda: daemon.metric("cpu/load1"))
        secret.write_text("geheim\n")
        secret.chmod(0o600)
        daemon.call("Reload")
        until("it tries now", lambda: daemon.call("GetStatus")["broker"]["state"] in ("connecting", "away"))
        secret.chmod(0o644)
        daemon.config_path.write_text(daemon.config_path.read_text() + "summary_interval = 1s\n")
        daemon.call("Reload")
        until("refused again", lambda: "others may read" in daemon.call("GetStatus")["broker"].get("reason", ""))
        daemon.config_path.write_text("")
        daemon.call("Reload")
        until("off, and wanted so", lambda: "reason" not in daemon.call("GetStatus")["broker"])
        daemon.stop()
    finally:
        daemon.clean()


def wait_stopped(daemon, patience=10):
    """Ends within the patience with status 0, and with nothing left in the run directory."""
    code = daemon.process.wait(patience)
    assert code == 0, f"{code}\n{daemon.log()}"
    left = {path.name for path in daemon.run_dir.iterdir()}
    assert left <= KEPT, left


def test_stop_at_any_moment_of_the_start_is_clean():
    random.seed(8)
    for n in range(40):
        daemon = Daemon("[mqtt]\nhost = 127.0.0.1\nport = 1\n" if n % 2 else "")
        try:
            daemon.start(wait=False)
            until("something is made", lambda: list(daemon.run_dir.iterdir()), pause=0)
            time.sleep(random.random() * random.choice((0, 0.01, 0.05)))
            daemon.process.send_signal(random.choice((signal.SIGTERM, signal.SIGINT)))
            with contextlib.suppress(ProcessLookupError):
                daemon.process.send_signal(signal.SIGHUP)
            wait_stopped(daemon)
        finally:
            daemon.clean()


class Broker:
    """A TCP server in the place of a broker; answer(connection) says what it does."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(16)
        self.port = self.listener.getsockname()[1]
        self.connections = []
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                with contextlib.suppress(OSError):
                    self.answer(connection)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        self.thread.join(10)


CONNACK = b"\x20\x02\x00\x00"


def accept_and_close(connection):
    connection.close()


def say_garbage(connection):
    connection.recv(4096)
    connection.sendall(CONNACK + os.urandom(3000))


def refuse_protocol(connection):
    connection.recv(4096)
    connection.sendall(b"\x20\x02\x00\x01")


def stay_silent(_):
    pass


def connect_then_silent(connection):
    connection.recv(4096)
    connection.sendall(CONNACK)


LOSES = {"ASAN_OPTIONS": "detect_leaks=0"}  # what libmosquitto had of such a packet


def unknown_property(connection):
    """In each packet of MQTT 5 that has some; others are as they should be."""
    if b"MQTT\x05" in connection.recv(4096):
        connection.sendall(b"\x20\x05\x00\x00\x02\xfd\x01")
    else:
        connection.sendall(CONNACK)


def flap(connection):
    connection.recv(4096)
    connection.sendall(CONNACK)
    time.sleep(0.2)
    connection.close()


def test_bad_brokers_cost_nothing_and_the_stop_is_quick():
    for answer in (accept_and_close, say_garbage, refuse_protocol, unknown_property, stay_silent, connect_then_silent, flap):
        with Broker(answer) as broker:
            daemon = Daemon(f"[sampling]\ninterval = 100ms\n[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\n"
                            "home_assistant = yes\nsummary_interval = 1s\n[alert busy]\nmetric = cpu/load1\nabove = -1\n",
                            env=LOSES if answer is unknown_property else None)
            try:
                daemon.start()
                until(f"{answer.__name__}: it came", lambda: broker.connections)
                wanted = ("connecting",) if answer is stay_silent else ("connected", "away")
                until(f"{answer.__name__}: {wanted}", lambda: daemon.call("GetStatus")["broker"]["state"] in wanted)
                if answer is unknown_property:
                    until("the reason", lambda: "malformed packet" in daemon.call("GetStatus")["broker"].get("reason", ""))
                daemon.process.send_signal(signal.SIGTERM)
                until("it stops", lambda: not daemon.socket.exists())
                for _ in range(3):  # a reload while it says good-bye to the broker is none
                    time.sleep(0.05)
                    with contextlib.suppress(ProcessLookupError):
                        daemon.process.send_signal(signal.SIGHUP)
                wait_stopped(daemon, 10)
            finally:
                daemon.clean()


def test_reloads_without_end_keep_alerts_and_memory():
    rule = "[alert busy]\nmetric = cpu/load1\nabove = -1\n"
    good = [rule, rule + "[mqtt]\nhost = 127.0.0.1\nport = 1\n[process all]\nmatch = *\n",
            rule + "[sampling]\ninterval = 200ms\n[source thermal]\nenabled = no\n[mqtt]\nhost = 127.0.0.2\n"]
    bad = ["[alert busy\n", "[nonsense]\na = b\n", "[alert busy]\nmetric = cpu load\n", "\0\n", "x" * 70000]
    with Daemon(rule) as daemon, contextlib.closing(daemon.client(60)) as client:
        def busy():
            return [a for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "busy" and a["state"] == "firing"]

        def rounds(count):
            for n in range(count):
                daemon.config_path.write_text(good[n % 3])
                client.call("Reload")
                daemon.config_path.write_text(bad[n % 5])
                client.send("Reload")
                assert "error" in client.receive(), bad[n % 5][:40]
            return rss_kib(daemon), len(os.listdir(f"/proc/{daemon.pid}/fd"))

        since = until("it fires", busy)[0]["since_us"]
        before = rounds(30)
        after = rounds(120)
        assert abs(busy()[0]["since_us"] - since) < 100_000
        assert after[1] <= before[1] + 40, (before, after)  # files that it keeps open; a leak is 120
        if not sanitized(daemon):  # they keep what is freed
            assert after[0] <= before[0] + 1024, (before, after)


def test_no_descriptors_left_neither_spins_nor_lasts():
    with Daemon() as daemon:
        start = len(os.listdir(f"/proc/{daemon.pid}/fd"))
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (start + 4, start + 4))
        clients = []
        for path, kind in ((daemon.socket, socket.SOCK_STREAM), (daemon.run_dir / "events", socket.SOCK_SEQPACKET)):
            for _ in range(24):
                client = socket.socket(socket.AF_UNIX, kind)
                client.setblocking(False)
                clients.append(client)
                with contextlib.suppress(OSError):
                    client.connect(str(path))
        before = cpu_s(daemon)
        time.sleep(2)
        assert cpu_s(daemon) - before < 0.5, "it spins"
        for client in clients:
            client.close()
        until("it answers again", daemon.answers)
        until("it samples", lambda: daemon.metric("cpu/load1"))


# covers G2.5
def test_subscribers_that_come_and_go_leave_nothing():
    with Daemon("[sampling]\ninterval = 100ms\n") as daemon, program([DEMO], daemon.env, stdout=subprocess.DEVNULL):
        until("there is history", lambda: daemon.call("GetSelf")["history_samples"] > 500)

        def come_and_go(count):
            for n in range(count):
                client = daemon.client()
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                method = ("Subscribe", "GetHistory", "ListMetrics", "ListStages")[n % 4]
                parameters = ({"metrics": True, "events": True, "interval_ms": 100}, {"glob": "**", "from_us": 0}, {}, {})[n % 4]
                client.send(method, parameters, more=True)
                if n % 3:
                    client.socket.recv(100)  # in the middle of a chunk
                client.close()
            until("all are gone", lambda: daemon.call("GetSelf")["api_connections"] <= 1)
            return rss_kib(daemon), len(os.listdir(f"/proc/{daemon.pid}/fd"))

        before = come_and_go(100)
        after = come_and_go(400)
        assert after[1] <= before[1] + 40, (before, after)  # likewise; a leak is 400
        if not sanitized(daemon):
            assert after[0] <= before[0] + 1024, (before, after)


def test_fixture_of_fifos_and_giants_hangs_nothing():
    daemon = Daemon("[sampling]\ninterval = 100ms\n")
    root = daemon.dir / "root"
    daemon.root = root
    zones = root / "sys/class/thermal"
    for name, content in (("fine", "40000\n"), ("fifo", None), ("giant", "9" * 100000)):
        zone = zones / f"thermal_zone{len(list(zones.glob('*')))}"
        zone.mkdir(parents=True)
        (zone / "type").write_text(name + "\n")
        if content:
            (zone / "temp").write_text(content)
        else:
            os.mkfifo(zone / "temp")
    proc = root / "proc"
    (proc / "pressure").mkdir(parents=True)
    for name in ("stat", "loadavg", "version", "pressure/cpu"):
        os.mkfifo(proc / name)
    with open(proc / "meminfo", "wb") as giant:
        giant.truncate(1 << 32)
    try:
        daemon.start()
        assert until("the zone", lambda: daemon.metric("temperature/fine"))["value"] == 40
        for name in ("temperature/fifo", "temperature/giant"):
            metric = daemon.metric(name)
            assert metric is None or metric.get("value") is None, metric
        daemon.stop()
    finally:
        daemon.clean()


def test_restarts_with_events_flowing_lose_none_uncounted():
    """sent = received + dropped + in the ring after 100 kills and stops; EDGEPROF_RESTARTS for more."""
    random.seed(10)
    restarts = int(os.environ.get("EDGEPROF_RESTARTS", "100"))
    daemon = Daemon("[history]\nmemory = 2M\n")
    try:
        daemon.start()
        # a few thousand events a second, for longer than the restarts take; the library looks for a
        # daemon once a second, so that most of the daemons in between never see it
        with program([WRITER, "flow", str(40_000_000), "2", "500", "60"], daemon.env, stdout=subprocess.PIPE, text=True) as writer:
            until("it is attached", lambda: daemon.call("ListApps")["apps"])
            for n in range(restarts):
                if n % 8 == 7:
                    until("it is attached", lambda: [a for a in daemon.call("ListApps")["apps"] if a["processes"]])
                time.sleep(random.random() * 0.03)
                if n % 16 == 7:
                    daemon.process.send_signal(signal.SIGTERM)
                    assert daemon.process.wait(30) == 0, daemon.log()
                else:
                    daemon.kill()
                daemon.start(wait=n % 8 == 6)
            until("the daemon answers", daemon.answers)
            until("it is attached again", lambda: [a for a in daemon.call("ListApps")["apps"] if a["processes"]])
            writer.send_signal(signal.SIGUSR1)  # enough: what is in the ring is drained
            out, _ = writer.communicate(timeout=90)
        counts = json.loads(out)
        assert counts["in_ring"] == 0, counts
        assert counts["sent"] == counts["received"] + counts["dropped"], counts
        assert counts["calls"] == counts["sent"] + counts["unattached"], counts
        assert counts["received"] > 1000, counts
        app = until("its end", lambda: [a for a in daemon.call("ListApps")["apps"] if not a["processes"]])[0]
        assert [app[k] for k in ("sent", "received", "dropped", "in_ring", "invalid")] == [
            counts["sent"], counts["received"], counts["dropped"], 0, 0], (app, counts)
        daemon.stop()
    finally:
        daemon.clean()


def test_kill_at_any_moment_keeps_rows_and_next_start():
    random.seed(9)
    daemon = Daemon("[sampling]\ninterval = 50ms\n")

    def values():
        with contextlib.closing(daemon.client(60)) as client:
            return [mean for chunk in client.stream("GetHistory", glob="memory/used", from_us=0)
                    for series in chunk["series"] for mean in series["mean"]]

    try:
        daemon.start()
        with program([DEMO], daemon.env, stdout=subprocess.DEVNULL):
            until("rows", lambda: len(values()) > 10)
            for n in range(30):
                kept = values()
                daemon.kill()
                daemon.start(wait=False)
                if n % 3 == 0:  # and once more while it starts
                    time.sleep(random.random() * 0.02)
                    daemon.kill()
                    daemon.start(wait=False)
                until("the daemon answers", daemon.answers)
                assert values()[:len(kept)] == kept
        daemon.stop()
        left = {path.name for path in daemon.run_dir.iterdir()}
        assert "history" in left and left <= KEPT, left
    finally:
        daemon.clean()


if __name__ == "__main__":
    run_tests(dict(globals()))
