#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Varlink client: against the real daemon, and against one that is slow, broken or gone."""
import contextlib
import json
import os
import socket
import tempfile
import threading
import time
import unittest
from unittest import mock

import support
from support import Daemon, DaemonCase, until

import edgeprof
from edgeprof import Client, Unreachable, VarlinkError


class Fake:
    """A server whose answers are a function of (connection number, message): a list of (delay, bytes);
    None closes the connection."""

    def __init__(self, answer):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "io.edgeprof")
        self.answer = answer
        self.seen = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        number = 0
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(number, connection), daemon=True).start()
            number += 1

    def serve(self, number, connection):
        data = b""
        with connection, contextlib.suppress(OSError):
            while True:
                while b"\0" not in data:
                    more = connection.recv(65536)
                    if not more:
                        return
                    data += more
                frame, data = data.split(b"\0", 1)
                message = json.loads(frame)
                self.seen.append((number, message))
                replies = self.answer(number, message)
                if replies is None:
                    return
                for delay, reply in replies:
                    time.sleep(delay)
                    connection.sendall(reply)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.dir.cleanup()


def reply(**parameters):
    return json.dumps({"parameters": parameters}).encode() + b"\0"


class Real(DaemonCase):
    config = "[sampling]\ninterval = 100ms\n"

    def setUp(self):
        patch = mock.patch.dict(os.environ, EDGEPROF_RUNTIME_DIR=str(self.daemon.run_dir))
        patch.start()
        self.addCleanup(patch.stop)

    # covers G2.8
    def test_questions_and_errors(self):
        with Client() as client:
            self.assertEqual(client.query("GetStatus")["run_dir"], str(self.daemon.run_dir))
            self.assertIn("interfaces", client.query("org.varlink.service.GetInfo"))
            with self.assertRaises(VarlinkError) as caught:
                client.query("ListStages", app="nobody")
            self.assertEqual(caught.exception.name, "io.edgeprof.NotFound")
            self.assertEqual(caught.exception.parameters["name"], "nobody")
            snapshot = client.snapshot()
            self.assertEqual(snapshot.keys() & {"timestamp", "cpu_usage", "memory_usage", "temperature", "power_consumption",
                                                "inference_latency"}, {"timestamp", "cpu_usage", "memory_usage", "temperature",
                                                                       "power_consumption", "inference_latency"})
            self.assertIsNone(snapshot["inference_latency"])
            self.assertIn("infer", snapshot["reasons"]["inference_latency"])
            with self.assertRaises(VarlinkError):
                client.snapshot("nobody")
            results = client.pipeline([("GetSelf", {}), ("ListStages", {"app": "x"}), ("GetStatus", {})] * 30)
            self.assertEqual(len(results), 90)
            self.assertTrue(all("pid" in r for r in results[0::3]))
            self.assertTrue(all(isinstance(r, VarlinkError) for r in results[1::3]))
            self.assertTrue(all("version" in r for r in results[2::3]))

    def test_subscriptions_and_long_answers(self):
        client = Client()
        until("metrics", lambda: client.query("ListMetrics")["metrics"])
        stream = client.subscribe(glob="cpu/*", metrics=True, events=True, interval_ms=100, timeout=10)
        first = next(stream)
        self.assertIn("alerts", first)
        client.query("Mark", label="hello")
        texts = []
        for part in stream:
            texts += [e["text"] for e in part.get("events") or []]
            if "hello" in texts:
                break
        stream.close()
        rows = [m for part in client.subscribe("ListMetrics") for m in part["metrics"]]
        self.assertIn("cpu/load1", {m["name"] for m in rows})
        with self.assertRaises(VarlinkError):
            next(client.subscribe("NoSuchMethod"))
        client.close()

    # covers G2.8
    def test_a_restart_between_two_questions_is_not_noticed(self):
        daemon = Daemon()
        try:
            daemon.start()
            with Client(str(daemon.socket)) as client:
                client.query("GetStatus")
                daemon.kill()
                daemon.start()
                self.assertIn("version", client.query("GetStatus"))
            daemon.stop()
        finally:
            daemon.clean()


class Slow(unittest.TestCase):
    # covers G2.8
    def test_a_late_answer_marks_only_its_request(self):
        def answer(number, message):
            n = message["parameters"]["n"]
            return [(0.6 if n == 1 else 0, reply(n=n))]

        with Fake(answer) as server, Client(server.path, timeout=0.4) as client:
            client.query("GetStatus", n=0)
            results = client.pipeline([("GetStatus", {"n": 1})])
            self.assertIsInstance(results[0], TimeoutError)
            self.assertEqual(client.query("GetStatus", n=2), {"n": 2})
            self.assertEqual(client.query("GetStatus", n=3), {"n": 3})
            self.assertEqual({number for number, _ in server.seen}, {0})  # on the same connection

    # covers G2.8
    def test_questions_are_asked_three_times_again_and_changes_never(self):
        with Fake(lambda number, message: []) as server, Client(server.path, timeout=0.1) as client:
            self.assertRaises(TimeoutError, client.query, "GetStatus")
            self.assertEqual(len(server.seen), 4)
            self.assertRaises(TimeoutError, client.query, "Mark", label="x")
            self.assertEqual([m["method"] for _, m in server.seen].count("io.edgeprof.Mark"), 1)

    def test_the_second_try_may_succeed(self):
        def answer(number, message):
            return [(0, reply(number=number))] if number >= 2 else None

        with Fake(answer) as server, Client(server.path) as client:
            self.assertEqual(client.query("GetStatus"), {"number": 2})
        with Fake(lambda number, message: None) as server:
            self.assertRaises(ConnectionError, Client(server.path, retries=0).query, "GetStatus")
            self.assertEqual(len(server.seen), 1)

    def test_garbage_is_a_connection_error(self):
        frames = (b"", b"[]", b"{", b'"x"', b"\xff\xfe", b"[" * 60000, b'{"parameters":5}', b'{"parameters":"x"}')
        for garbage in (*(frame + b"\0" for frame in frames), b"x" * (2 << 20)):
            with Fake(lambda number, message: [(0, garbage)]) as server:
                with Client(server.path, timeout=1, retries=0) as client:
                    self.assertRaises((ConnectionError, VarlinkError), client.query, "GetStatus")

    def test_nobody_is_unreachable_at_once(self):
        with mock.patch.dict(os.environ, EDGEPROF_RUNTIME_DIR=support.NOWHERE):
            with self.assertRaises(Unreachable) as caught:
                Client().query("GetStatus")
            self.assertIn(support.NOWHERE, str(caught.exception))
            self.assertRaises(Unreachable, Client().pipeline, [("GetStatus", {})])
            self.assertRaises(Unreachable, next, Client().subscribe())
        self.assertRaises(Unreachable, Client("/" + "x" * 300).query, "GetStatus")
        self.assertRaises(Unreachable, Client("a\0b").query, "GetStatus")

    def test_wrong_arguments(self):
        self.assertRaises(ValueError, Client, timeout=0)
        self.assertRaises(ValueError, Client, retries=-1)
        client = Client(support.NOWHERE)
        self.assertRaises(TypeError, client.query, 5)
        self.assertRaises(TypeError, client.query, "Mark", label=object())
        self.assertRaises(ValueError, client.query, "Mark", label=float("nan"))
        self.assertTrue(issubclass(Unreachable, OSError))
        self.assertIn("Client", edgeprof.__all__)


if __name__ == "__main__":
    support.main()
