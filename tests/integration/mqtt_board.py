# SPDX-License-Identifier: Apache-2.0
"""For tests of MQTT: a daemon on a board whose temperature is set, a proxy in front of the broker that can
misbehave, a subscriber that collects, and what all that costs the daemon.

EDGEPROF_OUTAGE_S is how long each outage lasts (1; the long form is 600)."""
import collections
import contextlib
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import tempfile
import threading
import time

from harness import DAEMON, Daemon, board, until

import mosquitto

DEVICE = "edge-1"
OUTAGE_S = float(os.environ.get("EDGEPROF_OUTAGE_S", "1"))
PATIENCE = 90 + OUTAGE_S  # back-off goes up to 60 s
SLOW_US = 500_000  # a turn of the loop that waited for a network would take seconds


class Events(mosquitto.Subscriber):
    """Collects event/alert while the test does other things."""

    def __init__(self, broker, address="127.0.0.1"):
        self.seen = []
        super().__init__(broker.port, "watcher", [f"edgeprof/{DEVICE}/event/alert"], "%p", address)

    def heard(self, text):
        event = json.loads(text)
        if event["rule"] == "temperature":
            self.seen.append((event["ts_ms"], event["state"]))

    def first_arrivals(self):
        """Each once, at the place where it came first."""
        return list(dict.fromkeys(self.seen))


class Proxy:
    """A TCP proxy in front of a broker that can misbehave: pass, silent, close, reset, freeze, slow."""

    def __init__(self, port):
        self.broker_port = port
        self.mode = "pass"
        self.pairs = []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.connections = []  # times
        self.swallow = None  # packets of the broker's that begin so do not arrive
        threading.Thread(target=self.accept, daemon=True).start()

    def set(self, mode):
        """From now on; reset and close end what is open, too."""
        self.mode = mode
        if mode in ("reset", "close", "silent"):
            self.drop()

    def drop(self):
        """Ends what is open."""
        for pair in self.pairs:
            self.end(pair)
        self.pairs = []

    def end(self, pair):
        for one in pair:
            with contextlib.suppress(OSError):
                if self.mode == "reset":
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR) if self.mode != "reset" else one.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                self.connections.append(time.monotonic())
                if self.mode == "close":
                    client.close()
                    continue
                if self.mode == "silent":
                    self.pairs.append((client,))
                    continue
                try:
                    broker = socket.create_connection(("127.0.0.1", self.broker_port), 5)
                except OSError:
                    client.close()
                    continue
                broker.settimeout(None)  # of the connect only: a broker may be silent for long
                self.pairs.append((client, broker))
                for source, sink, inward in ((client, broker, True), (broker, client, False)):
                    threading.Thread(target=self.copy, args=(source, sink, inward), daemon=True).start()

    def copy(self, source, sink, inward):
        total = 0
        with contextlib.suppress(OSError, ValueError):
            while data := source.recv(256 if self.mode == "slow" else 65536):
                while self.mode == "freeze":
                    time.sleep(0.02)
                if self.mode == "reset" and inward:
                    total += len(data)
                    if total > 150:  # within a packet after the connection's own
                        sink.sendall(data[: len(data) // 2])
                        self.end((source, sink))
                        return
                if self.mode == "slow":
                    time.sleep(len(data) / 2000)  # 2 kB/s
                if self.swallow and not inward and data.startswith(self.swallow):
                    continue
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.set("close")
        self.server.close()


class Board:
    """A daemon on a board whose temperature the test sets, and what it costs."""

    def __init__(self, port, host="127.0.0.1", more="", command=()):
        self.scratch = tempfile.TemporaryDirectory()
        root, self.temp = board(self.scratch.name, proc="/proc")
        config = (f"[sampling]\ninterval = 100ms\n[mqtt]\nhost = {host}\nport = {port}\ndevice_id = {DEVICE}\n"
                  f"summary_interval = 1s\n{more}[alert temperature]\nclear_for = 100ms\nmax_per_hour = 0\n[alert temperature_limit]\nenabled = no\n")
        self.daemon = Daemon(config, root=root)
        self.command = [*command]
        self.lags = []
        self.raised = []  # (state, not before ms, not after ms)

    def start(self):
        daemon = self.daemon
        words = [*self.command, str(DAEMON), "-c", str(daemon.config_path), "--root", str(daemon.root)]
        with open(daemon.log_path, "ab") as log:
            daemon.process = subprocess.Popen(words, env=daemon.env, stderr=log, stdout=log,
                                              preexec_fn=mosquitto.die_with_parent)
        until("the daemon answers", daemon.answers)
        until("the temperature", lambda: (daemon.metric("temperature/max") or {}).get("value") == 50)
        # the start itself is none of the outage: the next window of the lag begins after it
        first = self.lag()["time_us"]
        until("a window later", lambda: self.lag()["time_us"] != first)
        self.memory = self.memory_now()
        self.sanitized = "asan" in pathlib.Path(f"/proc/{daemon.pid}/maps").read_text()
        return self

    __enter__ = start

    def __exit__(self, kind, *_):
        self.daemon.__exit__(kind)
        self.scratch.cleanup()

    def memory_now(self):
        """What only this process holds, and of the files those that a broker fills; not the history's, which
        fills whether the broker is there or not. In KiB."""
        memory = collections.Counter()
        name = ""
        for line in pathlib.Path(f"/proc/{self.daemon.pid}/smaps").read_text().splitlines():
            words = line.split()
            if not words[0].endswith(":"):
                name = words[5] if len(words) > 5 else ""
            elif words[0] == "Anonymous:":
                memory["anonymous"] += int(words[1])
            elif words[0] == "Rss:" and pathlib.Path(name).name in ("mqtt", "alerts"):
                memory[pathlib.Path(name).name] += int(words[1])
        return memory

    def status(self):
        return self.daemon.call("GetStatus")["broker"]

    def connected(self, patience=PATIENCE):
        until("connected", lambda: self.status()["state"] == "connected", patience)

    def alert(self, count=1):
        """Fires and ends, count times; notes when."""
        for _ in range(count):
            for text, state, firing in (("80000", "firing", True), ("50000", "ok", False)):
                before = int(time.time() * 1000)
                self.temp.write_text(text + "\n")
                until(state, lambda: bool([a for a in self.daemon.call("ListAlerts")["alerts"]
                                           if a["rule"] == "temperature"]) == firing)
                self.raised.append((state, before, int(time.time() * 1000)))
                self.watch()

    def lag(self):
        return until("the lag", lambda: (m := self.daemon.metric("self/loop_lag_max")) and m["value"] is not None and m)

    def watch(self):
        self.lags.append(self.lag()["value"])

    def endure(self, seconds=None):
        end = time.monotonic() + (OUTAGE_S if seconds is None else seconds)
        while time.monotonic() < end:
            self.watch()
            time.sleep(0.1)

    def check(self, name, events):
        """Everything arrived, in order, at its own time; nothing slow, nothing grown."""
        until("all is delivered", lambda: self.status()["queued"] == 0, PATIENCE)
        until("every event arrived", lambda: len(events.first_arrivals()) >= len(self.raised), PATIENCE)
        first = events.first_arrivals()
        assert len(first) == len(self.raised), (first, self.raised)
        for (ts, state), (wanted, before, after) in zip(first, self.raised):
            assert state == wanted, (first, self.raised)
            assert before - 300 <= ts <= after + 300, (ts, before, after)
        broker = self.status()
        assert broker["dropped_alerts"] == 0, broker
        now = self.memory_now()
        grown = {kind: now[kind] - self.memory[kind] for kind in now}
        lags = sorted(self.lags)
        slow = sum(lag > SLOW_US for lag in lags)
        print(f"  {name}: {len(first)} events, {len(events.seen) - len(first)} repeated, "
              f"loop lag p50 {lags[len(lags) // 2] / 1000:.2f} p99 {lags[int(len(lags) * 0.99)] / 1000:.2f} "
              f"max {lags[-1] / 1000:.2f} ms of {len(lags)} windows, memory {grown} KiB, "
              f"{broker['connects']} connections, {broker['dropped']} summaries dropped")
        assert slow == 0, lags[-slow:]
        assert self.sanitized or sum(grown.values()) <= 1024, grown


@contextlib.contextmanager
def durable_broker():
    """Remembers the watcher's subscription, so that nothing is missed while nobody listens."""
    with mosquitto.Broker(persistence=True) as broker:
        events = Events(broker)
        try:
            yield broker, events
        finally:
            events.close()


def away(board, pattern):
    reason = until("away, and why", lambda: (s := board.status())["state"] != "connected" and s.get("reason"), PATIENCE)
    assert re.search(pattern, reason), reason
    return reason
