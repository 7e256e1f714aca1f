#!/usr/bin/env python3
"""Two real daemons with one device_id at one broker: both say so, neither storms the broker; and a
broker that speaks MQTT 5 as the standard says, for its reason (mosquitto 2.0.11 only closes)."""
import contextlib
import socket
import struct
import threading
import time

from harness import Daemon, run_tests, skip, until

import mosquitto

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
                assert sum(connects) <= 24, connects
                loser = one if says_so(one) else other
                assert told(loser, "pushed us out") == 1, loser.log()
                assert told(loser, "connection lost") <= 4, loser.log()
                assert "another client" in loser.ctl("status").stdout


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


if __name__ == "__main__":
    try:
        mosquitto.Broker().close()
    except mosquitto.Absent as absent:
        skip(str(absent))
    run_tests(dict(globals()))
