#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real mosquitto for tests: own folder, free loopback port, stop, kill, stall, restart.

As a module:
    with Broker() as broker:
        broker.port; broker.kill(); broker.start(); broker.stall(); broker.resume()
        messages = broker.subscribe("edgeprof/#", until=lambda seen: len(seen) >= 3)
Broker() raises Absent when there is no mosquitto: skip the test (exit 77).
As a program it prints the port, runs until its standard input ends, and leaves nothing behind.
"""
import contextlib
import ctypes
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PLACES = "/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", "")


class Absent(Exception):
    """There is no mosquitto on this machine."""


def free_port():
    """Below the ports that the kernel gives to connections (32768 and up): none of these takes it while its
    broker is down, however many tests run."""
    for port in random.sample(range(20000, 32000), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Subscriber:
    """mosquitto_sub in a session that lasts; heard() gets each message, as layout prints it, on a thread."""

    def __init__(self, port, name, topics, layout, address="127.0.0.1"):
        self.child = subprocess.Popen(
            ["stdbuf", "-oL", "mosquitto_sub", "-h", address, "-p", str(port), "-q", "1", "-c", "-i", name, "-d",
             *(word for topic in topics for word in ("-t", topic)), "-F", f"MESSAGE {layout}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            preexec_fn=die_with_parent)
        self.subscribed = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        assert self.subscribed.wait(20)

    def read(self):
        for line in self.child.stdout:
            if line.startswith("Subscribed"):
                self.subscribed.set()
            if line.startswith("MESSAGE "):
                self.heard(line[8:])

    def close(self):
        self.child.kill()
        self.child.wait()


class Broker:
    """more: further lines of its configuration, below its listener."""

    def __init__(self, access="allow_anonymous true", persistence=False, more=(), address="127.0.0.1"):
        self.binary = shutil.which("mosquitto", path=PLACES)
        if not self.binary:
            raise Absent("mosquitto is not installed")
        self.folder = tempfile.mkdtemp(prefix="edgeprof-broker-")
        self.port = free_port()
        self.process = None
        self.config = os.path.join(self.folder, "conf")
        lines = [f"listener {self.port} {address}", access, "max_queued_messages 0", *more]
        if os.geteuid() == 0:
            lines.append("user root")
        if persistence:
            lines += ["persistence true", f"persistence_location {self.folder}/",
                      "autosave_interval 1", "autosave_on_changes true"]
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def start(self, timeout=20):
        """Starts it and returns when it accepts connections."""
        self.process = subprocess.Popen([self.binary, "-c", self.config], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=die_with_parent)
        end = time.monotonic() + timeout
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return self
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("mosquitto did not come up")
            time.sleep(0.01)

    def _end(self, number):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def stop(self):
        self._end(signal.SIGTERM)

    def kill(self):
        self._end(signal.SIGKILL)

    def stall(self):
        """Connections stay, nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def restart(self):
        self.kill()
        return self.start()

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def subscribe(self, topic, until, timeout=30, ready=None):
        """What mosquitto_sub hears, as (topic, payload) pairs, until until(pairs) is true.

        ready() is called once the subscription holds. TimeoutError carries what came.
        """
        binary = shutil.which("mosquitto_sub")
        if not binary:
            raise Absent("mosquitto_sub is not installed")
        child = subprocess.Popen(
            ["stdbuf", "-oL", binary, "-h", "127.0.0.1", "-p", str(self.port), "-q", "1", "-d", "-t", topic,
             "-F", "MESSAGE %t %p"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", preexec_fn=die_with_parent)
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in child.stdout],
                         daemon=True).start()
        seen = []
        end = time.monotonic() + timeout
        try:
            while True:
                try:
                    line = lines.get(timeout=max(0.0, end - time.monotonic()))
                except queue.Empty:
                    raise TimeoutError(f"heard only {seen}") from None
                if line.startswith("Subscribed") and ready:
                    ready()
                if line.startswith("MESSAGE "):
                    _, name, payload = line.rstrip("\n").split(" ", 2)
                    seen.append((name, payload))
                    if until(seen):
                        return seen
        finally:
            child.kill()
            child.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    try:
        with Broker() as running:
            print(running.port, flush=True)
            sys.stdin.read()
    except Absent as error:
        print(f"skipped: {error}", file=sys.stderr)
        sys.exit(77)
