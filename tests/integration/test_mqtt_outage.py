#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything a broker and a network can do to the daemon: it is absent, stops, stalls, is silent,
closes, resets, drops, crawls. Alerts arrive at least once, in order, with their original times; the
status tells the truth; the main loop never waits; memory does not grow. Figures are printed.

EDGEPROF_OUTAGE_S is how long each outage lasts (1; the long form is 600)."""
import collections
import contextlib
import ctypes
import fcntl
import itertools
import os
import pathlib
import queue
import random
import select
import socket
import struct
import subprocess
import tempfile
import threading
import time

from harness import Daemon, run_tests_with_broker, until

import mosquitto
from mqtt_board import DEVICE, OUTAGE_S, PATIENCE, SLOW_US, Board, Events, Proxy, away, durable_broker


def test_absent_at_start():
    with durable_broker() as (broker, events):
        broker.stop()
        with Board(broker.port) as board:
            board.alert(2)
            away(board, "refused")
            assert board.status()["connects"] == 0 and board.status()["delivered"] == 0
            board.endure()
            broker.start()
            board.connected()
            board.check("absent at start", events)


def test_stopped_and_back():
    with durable_broker() as (broker, events), Board(broker.port) as board:
        board.connected()
        board.alert()
        for number in range(1 if OUTAGE_S < 10 else 4):  # each further one may take a longer back-off
            broker.stop() if number % 2 else broker.kill()
            away(board, ".")
            board.alert(2)
            delivered = board.status()["delivered"]
            board.endure()
            assert board.status()["delivered"] == delivered and board.status()["queued"] >= 4
            broker.start()
            board.connected()
        board.check("stopped and back", events)


def test_stalled_by_sigstop():
    with durable_broker() as (broker, events), Board(broker.port) as board:
        board.connected()
        board.alert()
        until("delivered", lambda: board.status()["queued"] == 0)
        broker.stall()
        delivered = board.status()["delivered"]
        board.alert(2)
        board.endure()
        assert board.status()["delivered"] == delivered, "delivered means acknowledged"
        broker.resume()
        board.connected()
        board.check("SIGSTOP", events)


def test_a_list_of_brokers_is_tried_in_order():
    """The second while the first is away, at once; the one that worked last before the others. A proxy before
    the second drops a connection while both brokers are there."""
    with durable_broker() as (first, one), durable_broker() as (second, other), Proxy(second.port) as proxy:
        first.stop()
        with Board(1, host=f"127.0.0.1:{first.port}, 127.0.0.1:{proxy.port}") as board:
            board.connected()
            assert board.status()["port"] == proxy.port and board.status()["connects"] == 1, board.status()
            assert f"broker 127.0.0.1:{first.port} is not reachable" in board.daemon.log()
            board.alert()
            until("delivered", lambda: board.status()["queued"] == 0)
            first.start()
            proxy.drop()
            until("again", lambda: (s := board.status())["state"] == "connected" and s["connects"] == 2, PATIENCE)
            assert board.status()["port"] == proxy.port, board.status()
            second.kill()
            board.alert(2)
            until("the first", lambda: (s := board.status())["state"] == "connected" and s["port"] == first.port, PATIENCE)
            until("delivered", lambda: board.status()["queued"] == 0)
            assert f"broker 127.0.0.1:{proxy.port} connection lost" in board.daemon.log()
            doctor = board.daemon.ctl("doctor").stdout
            assert f"connected to 127.0.0.1:{first.port}" in doctor, doctor
            second.start()  # so that what it keeps for its subscriber arrives
            until("every event, at one of them", lambda: len(set(one.seen + other.seen)) >= len(board.raised))


def silence(board, broker, act=lambda: None):
    """Seconds from a broker's last sign until the status knows, and what it says."""
    board.connected()
    until("delivered", lambda: board.status()["queued"] == 0)
    broker.stall()
    begin = time.monotonic()
    act()
    reason = until("away", lambda: (s := board.status())["state"] == "away" and s.get("reason"), 60)
    took = time.monotonic() - begin
    print(f"  known after {took:.1f} s: {reason}")
    broker.resume()
    board.connected()
    assert took < 20, took  # 10 s; the keepalive alone would take 60
    return reason


def test_a_broker_that_stops_answering_is_not_connected():
    """Alerts wait for it; and summaries alone, which nobody acknowledges."""
    with durable_broker() as (broker, events), Board(broker.port) as board:
        assert " 10 s" in silence(board, broker, lambda: board.alert(2))
        # a recording of the alert may be announced meanwhile, and waits for its acknowledgement
        assert " 10 s" in silence(board, broker)
        board.check("stops answering", events)


def test_a_broker_that_answers_and_acknowledges_nothing_is_left():
    with mosquitto.Broker() as broker, Proxy(broker.port) as proxy:
        proxy.swallow = b"\x40\x02"  # PUBACK
        with Board(proxy.port) as board:
            reason = away(board, "acknowledge a message within 10 s")
            until("that is told three times, and that there are more", lambda: "end within seconds" in board.daemon.log(), PATIENCE)
            assert board.daemon.log().count("connection lost") == 3, board.daemon.log()
            proxy.swallow = None
            board.connected()
            until("delivered", lambda: board.status()["queued"] == 0)
            assert "Unknown" not in board.daemon.log(), (reason, board.daemon.log())


def test_a_slow_link_is_no_silent_broker():
    """What waits for its acknowledgement takes far longer than 10 s."""
    with mosquitto.Broker() as broker, Proxy(broker.port) as proxy:
        with Board(proxy.port, more="home_assistant = yes\n") as board:
            board.connected()
            connects = board.status()["connects"]
            proxy.set("slow")
            board.alert(20)
            board.endure(15)
            assert board.status()["connects"] == connects, board.daemon.log()


def proxied(mode, pattern, name):
    with durable_broker() as (broker, events), Proxy(broker.port) as proxy, Board(proxy.port) as board:
        board.connected()
        board.alert()
        proxy.set(mode)
        board.alert(2)
        if pattern:
            print("  " + away(board, pattern))
        board.endure()
        board.alert()
        proxy.set("pass")
        board.connected()
        board.check(name, events)
        return proxy


def test_accepts_and_is_silent():
    proxied("silent", "closed|lost|no answer", "accepts and is silent")


def test_accepts_and_closes():
    proxied("close", "closed|lost|reset", "accepts and closes")


def test_resets_within_a_packet():
    proxied("reset", "(?i)reset|lost|closed", "resets within a packet")


def test_freezes():
    proxied("freeze", None, "freezes")


class Impostor:
    """Says in the place of a broker that the client is connected, and then sends what talk() gives."""

    def __init__(self, talk):
        self.talk, self.connections = talk, 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                self.connections += 1
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError), client:
            version = client.recv(4096)[8]
            client.sendall(b"\x20\x03\x00\x00\x00" if version == 5 else b"\x20\x02\x00\x00")
            for data in self.talk():
                client.sendall(data)
            while client.recv(4096):
                pass  # it is the client that leaves

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()


def endless(one):
    return lambda: map(one, itertools.count())


def test_what_nobody_asked_for_is_not_held_in_memory():
    giant = b"\x30\xff\xff\xff\x7f\x00\x01a"  # PUBLISH of 256 MB
    talks = {"a giant message": endless(lambda n: bytes(65536) if n else giant),
             "messages of QoS 2": endless(lambda n: b"\x34\x85\x08\x00\x01a" + struct.pack(">H", n % 65535 + 1) + bytes(1024))}
    for name, talk in talks.items():
        with Impostor(talk) as impostor, Board(impostor.port) as board:
            until("left three times", lambda: impostor.connections > 3)
            most = board.memory_now()["anonymous"] - board.memory["anonymous"]
            print(f"  {name}: {most} KiB; {board.status().get('reason')}")
            assert most < 64 << 10, (name, most)  # of it some MiB are the sanitizer's
            assert "nobody asked for" in board.daemon.log(), board.daemon.log()
            assert "another client" not in board.daemon.log(), board.daemon.log()


def test_a_broker_that_breaks_the_protocol_is_no_second_client():
    for data in (b"\xe0\x00", b"\x00\x00", b"\x40\x01\x00"):
        with Impostor(lambda: [data]) as impostor, Board(impostor.port) as board:
            until("left five times", lambda: impostor.connections > 5, PATIENCE)
            assert "another client" not in board.daemon.log(), board.daemon.log()


def test_messages_that_are_too_large_are_reported_and_not_for_ever():
    """MQTT 5 brokers say their limit before, or refuse what is above it; mosquitto 2.0.11 closes the connection then."""
    for limit in ("max_packet_size 400", "message_size_limit 300"):
        with mosquitto.Broker(more=[limit]) as broker, Board(broker.port, more="home_assistant = yes\n") as board:
            reason = until("why", lambda: "refuses messages: " in (r := board.status().get("reason") or "") and r)
            print(f"  {limit}: {reason}")
            if limit.startswith("message"):
                until("many connections", lambda: board.status()["connects"] > 12, PATIENCE)
            told, _, later = board.daemon.log().partition("no more reports until one holds")
            assert "refuses messages" in told and "refuses" not in later.partition("\n")[2], board.daemon.log()


def test_slow_link():
    proxied("slow", None, "2 kB/s")


def test_alerts_that_wait_survive_kill_9():
    """Twice killed with its hands full, and once in the middle of an alert that fires."""
    with durable_broker() as (broker, events):
        broker.stop()
        with Board(broker.port) as board:
            for _ in range(2):
                board.alert(3)
                queued = board.status()["queued"]
                board.daemon.kill()
                board.start()
                assert board.status()["queued"] >= len(board.raised), (queued, board.status())
            broker.start()
            board.connected()
            board.check("kill -9 with alerts waiting", events)
            # a retained state of one process is cleared by the next: its alert ends there
            state = f"edgeprof/{DEVICE}/alert/temperature/_"
            board.temp.write_text("80000\n")
            assert broker.subscribe(state, until=lambda seen: seen)
            board.daemon.kill()
            broker.stop()
            board.temp.write_text("50000\n")
            board.start()
            until("it ended", lambda: not [a for a in board.daemon.call("ListAlerts")["alerts"] if a["rule"] == "temperature"])
            broker.start()
            board.connected()
            until("nothing waits", lambda: board.status()["queued"] == 0, PATIENCE)
            names = [name for name, _ in broker.subscribe(
                f"edgeprof/{DEVICE}/#", until=lambda seen: any(name.endswith("/summary") for name, _ in seen))]
            assert state not in names, names


def test_wrong_password():
    with tempfile.TemporaryDirectory() as folder:
        passwd, secret = os.path.join(folder, "passwd"), os.path.join(folder, "secret")
        subprocess.run(["mosquitto_passwd", "-c", "-b", passwd, "edge", "right"], check=True, capture_output=True)
        os.chmod(folder, 0o755)
        pathlib.Path(secret).write_text("wrong\n")
        os.chmod(secret, 0o600)
        access = f"allow_anonymous false\npassword_file {passwd}"
        with mosquitto.Broker(access=access) as broker:
            with Board(broker.port, more=f"username = edge\npassword_file = {secret}\n") as board:
                away(board, "not authorised")
                board.alert(2)
                board.endure()
                assert board.status()["connects"] == 0 and board.status()["delivered"] == 0
                pathlib.Path(secret).write_text("right\n")
                board.connected()
                until("all is delivered", lambda: board.status()["queued"] == 0)


def test_name_that_does_not_resolve():
    with Board(1883, host="broker.invalid") as board:
        reason = until("why", lambda: board.status().get("reason"), PATIENCE)
        assert "resolved" in reason, reason
        board.endure(1)
        assert max(board.lags) <= SLOW_US, board.lags


def test_resolver_that_never_answers():
    hole = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        hole.bind(("127.0.0.77", 53))
    except OSError as error:
        return f"no name server of its own: {error}"
    with contextlib.closing(hole), tempfile.NamedTemporaryFile("w", suffix=".conf") as resolv:
        resolv.write("nameserver 127.0.0.77\noptions timeout:30 attempts:3\n")
        resolv.flush()
        own = ["unshare", "-m", "sh", "-c", f'mount --bind {resolv.name} /etc/resolv.conf && exec "$@"', "sh"]
        if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
            return "no mount namespace here"
        with Board(1883, host="broker.example", command=own) as board:
            assert select.select([hole], [], [], 20)[0], "nobody asked"
            board.alert(2)
            board.endure()
            assert board.status()["state"] == "connecting" and board.status()["queued"] >= 4, board.status()
            print(f"  resolver that never answers: loop lag max {max(board.lags) / 1000:.2f} ms")
            assert max(board.lags) <= SLOW_US, board.lags
            begin = time.monotonic()
            board.daemon.stop()  # status 0, although the thread hangs
            print(f"  it stopped within {time.monotonic() - begin:.1f} s")


def test_fleet_comes_back_without_a_storm():
    """A broker that was away for all of them at once; what each had to say arrives."""
    count = int(os.environ.get("EDGEPROF_FLEET", "6"))
    with mosquitto.Broker() as broker, Proxy(broker.port) as proxy, contextlib.ExitStack() as fleet:
        daemons = []
        for number in range(count):
            daemon = Daemon(f"[sampling]\ninterval = 10s\n[mqtt]\nhost = 127.0.0.1\nport = {proxy.port}\ndevice_id = n{number}\n")
            daemons.append(fleet.enter_context(daemon))

        def all_connected(least):
            until("all are connected", lambda: all(
                (b := d.call("GetStatus")["broker"])["state"] == "connected" and b["connects"] >= least and b["queued"] == 0
                for d in daemons), PATIENCE * 2, 0.2)

        all_connected(1)
        proxy.set("close")
        time.sleep(OUTAGE_S)
        proxy.set("pass")
        begin = time.monotonic()
        all_connected(2)
        times = [t - begin for t in proxy.connections if t >= begin]
        busiest = max(sum(t <= other < t + 1 for other in times) for t in times)
        gone = [d.call("GetStatus")["broker"]["dropped_alerts"] for d in daemons]
        print(f"  {count} daemons came back within {max(times):.1f} s, at most {busiest} within a second")
        assert not any(gone) and len(times) == count, (gone, times)


class Namespace(threading.Thread):
    """A thread in a network namespace of its own, with one end of a link: what it starts lives there."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address = address
        self.jobs, self.results = queue.Queue(), queue.Queue()
        self.start()
        self.tun = self.do(self.make)

    def make(self):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x40000000) != 0:  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), "no network namespace")
        tun = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22s", b"link0", 0x1001, b""))  # TUNSETIFF: TUN, NO_PI
        for words in (["link", "set", "lo", "up"], ["addr", "add", f"{self.address}/24", "dev", "link0"],
                      ["link", "set", "link0", "up"]):
            subprocess.run(["ip", *words], check=True, capture_output=True)
        return tun

    def run(self):
        while job := self.jobs.get():
            try:
                self.results.put((job(), None))
            except Exception as error:
                self.results.put((None, error))

    def do(self, job):
        self.jobs.put(job)
        result, error = self.results.get(timeout=120)
        if error:
            raise error
        return result


def forward(one, other, loss, delay_s, ended, counts):
    chance, late = random.Random(1), collections.deque()
    while not ended.is_set():
        ready, _, _ = select.select([one, other], [], [], max(0, late[0][0] - time.monotonic()) if late else 0.2)
        for source in ready:
            packet = os.read(source, 65536)
            counts[0] += 1
            if chance.random() < loss:
                counts[1] += 1
            else:
                late.append((time.monotonic() + delay_s, other if source == one else one, packet))
        while late and late[0][0] <= time.monotonic():
            _, sink, packet = late.popleft()
            with contextlib.suppress(OSError):
                os.write(sink, packet)


def over_a_bad_network(loss, delay_s):
    try:
        there, here = Namespace("10.77.0.1"), Namespace("10.77.0.2")
    except (OSError, subprocess.CalledProcessError, FileNotFoundError) as error:
        return f"no network of its own: {error}"
    ended, counts = threading.Event(), [0, 0]
    threading.Thread(target=forward, args=(there.tun, here.tun, loss, delay_s, ended, counts), daemon=True).start()
    broker = mosquitto.Broker(address="0.0.0.0")
    try:
        there.do(broker.start)
        events = there.do(lambda: Events(broker))
        board = Board(broker.port, host="10.77.0.1")
        here.do(board.start)
        try:
            board.connected()
            board.alert(3)
            board.endure()
            board.alert(2)
            board.check(f"{loss:.0%} of packets lost, the others {delay_s * 1e3:.0f} ms late", events)
            print(f"  {counts[1]} of {counts[0]} packets lost")
            assert counts[1] > 0
        finally:
            events.close()
            board.__exit__(None)
    finally:
        broker.close()
        ended.set()
    return None


def test_every_fifth_packet_lost():
    return over_a_bad_network(0.2, 0)


# covers G1.14
def test_one_packet_in_a_hundred_lost_and_the_others_late():
    return over_a_bad_network(0.01, 0.04)


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
