#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two real daemons with one device_id at one broker: both say so, neither storms the broker; and a
broker that speaks MQTT 5 as the standard says, for its reason (mosquitto 2.0.11 only closes)."""
import contextlib
import socket
import struct
import threading
import time

from harness import Daemon, run_tests_with_broker, until

import mosquitto
from mqtt_board import Proxy
from tls_case import certificates, password_broker, secret_file

CONFIG = "[sampling]\ninterval = 10s\n[mqtt]\nhost = 127.0.0.1\nport = {}\ndevice_id = twin\n"
SAID = 'another client uses the id "edgeprof-twin"'


def status(daemon):
    return daemon.call("GetStatus")["broker"]


def says_so(daemon):
    return SAID in (status(daemon).get("reason") or "")


def told(daemon, part):
    return daemon.log().count(part)


def test_two_daemons_with_one_id():
    with mosquitto.Broker() as broker:
        config = CONFIG.format(broker.port)
        with Daemon(config) as one:
            until("connected", lambda: status(one)["state"] == "connected")
            begin = time.monotonic()
            with Daemon(config) as other:
                until("one of them says so", lambda: says_so(one) or says_so(other), 120)
                took = time.monotonic() - begin
                until("one is away, one connected", lambda: {status(d)["state"] for d in (one, other)} == {"away", "connected"})
                connects = [status(d)["connects"] for d in (one, other)]
                time.sleep(30)  # a rate is counted over a time
                more = sum(status(d)["connects"] for d in (one, other)) - sum(connects)
                print(f"  found after {took:.1f} s and {sum(connects)} connects; {more} in the next 30 s")
                assert more <= 3, more  # whoever was pushed out stays away for 30 to 60 s
                assert sum(connects) <= 30, connects  # ten each without a pause, then with longer and longer ones
                loser = one if says_so(one) else other
                assert told(loser, "ended the connection") == 1, loser.log()
                # three, then that there are more, however many broke instead of being closed
                assert told(loser, "connection lost") <= 3, loser.log()
                assert told(loser, "connections end within seconds") <= 1, loser.log()
                assert "another client" in loser.ctl("status").stdout


def restarts(broker, daemon, count=7):
    """Seconds until it is connected again after each of so many quick restarts, and what was said meanwhile."""
    took, reasons = [], set()
    for _ in range(count):
        connects = until("connected", lambda: (s := status(daemon))["state"] == "connected" and s["connects"])
        broker.kill()
        time.sleep(0.05)  # of the outage
        broker.start()
        begin = time.monotonic()

        def again():
            now = status(daemon)
            reasons.add(now.get("reason") or "")
            return now["connects"] > connects and now["state"] == "connected"

        until("connected again", again, 120)
        took.append(time.monotonic() - begin)
    return took, reasons


def test_quick_restarts_of_the_broker_are_no_second_client():
    with mosquitto.Broker() as broker, Daemon(CONFIG.format(broker.port)) as daemon:
        took, reasons = restarts(broker, daemon)
        print(f"  connected again after {' '.join(f'{t:.1f}' for t in took)} s")
        assert not any("another client" in reason for reason in reasons), reasons
        assert told(daemon, "another client") == 0, daemon.log()
        # full jitter of at most 1 s after a loss and 2 s after a refusal; 30 to 60 s for a second client
        assert max(took) <= 8, took
        assert not status(daemon).get("reason"), status(daemon)


def test_a_proxy_that_closes_what_is_a_few_seconds_old_is_no_second_client():
    """Nor does it fill the log: three losses are told, then that there are more, then that one holds."""
    with mosquitto.Broker() as broker, Proxy(broker.port) as proxy, Daemon(CONFIG.format(proxy.port)) as daemon:
        for count in range(1, 6):
            until("connected", lambda: (s := status(daemon))["state"] == "connected" and s["connects"] >= count)
            time.sleep(5.2)  # how old
            proxy.set("close")
            until("lost", lambda: status(daemon)["state"] != "connected")
            proxy.set("pass")
        until("connected", lambda: status(daemon)["state"] == "connected")
        assert told(daemon, "another client") == 0, daemon.log()
        assert told(daemon, "connection lost") == 3 and told(daemon, "connections end within seconds") == 1, daemon.log()
        until("holds", lambda: daemon.log().rstrip().endswith(f"broker 127.0.0.1:{proxy.port} connected"), 30)


def test_a_wrong_password_after_losses_is_what_the_status_says():
    with certificates() as certs, password_broker(certs) as broker:
        secret = secret_file(certs)
        more = f"username = edge\npassword_file = {secret}\n"
        with Daemon(CONFIG.format(broker.port) + more) as daemon:
            restarts(broker, daemon, 3)
            secret_file(certs, "wrong")
            broker.restart()
            reason = until("refused", lambda: (s := status(daemon))["state"] == "away" and "authorised" in s["reason"] and s["reason"])
            assert "another client" not in reason and told(daemon, "another client") == 0, reason
            secret_file(certs)
            until("connected", lambda: (s := status(daemon))["state"] == "connected" and not s.get("reason"))


class Broker5:
    """As much of a broker as says "session taken over"; MQTT 5 only from the clients that speak it."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.levels, self.holder, self.lock = [], None, threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def read(self, client, count):
        data = b""
        while len(data) < count:
            more = client.recv(count - len(data))
            if not more:
                raise OSError
            data += more
        return data

    def packet(self, client):
        kind, length, shift = self.read(client, 1)[0], 0, 0
        while True:
            byte = self.read(client, 1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return kind, self.read(client, length)

    def serve(self, client):
        with contextlib.suppress(OSError), client:
            _, body = self.packet(client)
            level = body[6]
            with self.lock:
                self.levels.append(level)
                before, self.holder = self.holder, (client, level)
            if before:
                with contextlib.suppress(OSError):
                    if before[1] == 5:
                        before[0].sendall(b"\xe0\x02\x8e\x00")  # DISCONNECT, session taken over
                    before[0].shutdown(socket.SHUT_RDWR)
            client.sendall(b"\x20\x03\x00\x00\x00" if level == 5 else b"\x20\x02\x00\x00")
            while True:
                kind, body = self.packet(client)
                if kind >> 4 == 3 and kind & 6:  # PUBLISH that wants an acknowledgement
                    length = struct.unpack(">H", body[:2])[0]
                    client.sendall(b"\x40\x02" + body[2 + length:4 + length])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()


def test_a_broker_that_says_why_is_believed_at_once():
    with Broker5() as broker:
        config = CONFIG.format(broker.port)
        with Daemon(config) as one, Daemon(config) as other:
            loser = until("one says so", lambda: next((d for d in (one, other) if says_so(d)), None), 120)
            assert "must be unique" in status(loser)["reason"], status(loser)
            assert broker.levels[:2] == [4, 4] and broker.levels[-1] in (4, 5) and 5 in broker.levels, broker.levels
            print(f"  protocol levels of the connects: {broker.levels}")
            assert len(broker.levels) <= 16, broker.levels


class Full(Broker5):
    """Closes within a moment what speaks MQTT 3.1.1, and says why to those that speak MQTT 5."""

    def serve(self, client):
        with contextlib.suppress(OSError), client:
            self.levels.append(self.packet(client)[1][6])
            client.sendall(b"\x20\x03\x00\x97\x00" if self.levels[-1] == 5 else b"\x20\x02\x00\x00")
            client.settimeout(0.2)
            while True:
                self.packet(client)


def test_a_broker_that_refuses_with_a_reason_has_explained_the_losses():
    with Full() as broker, Daemon(CONFIG.format(broker.port)) as daemon:
        until("its reason", lambda: status(daemon).get("reason") == "Quota exceeded")
        until("asked again", lambda: broker.levels.count(5) >= 2 or says_so(daemon), 60)
        assert broker.levels[:6] == [4, 4, 5, 4, 4, 5], broker.levels
        assert told(daemon, "another client") == 0, daemon.log()


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
