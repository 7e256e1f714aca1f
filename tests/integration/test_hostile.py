#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bad clients send must do no harm: the daemon answers others all the while, with
the same processes, descriptors and nothing left behind."""
import contextlib
import os
import socket

from harness import Daemon, VarlinkError, run_tests, until

GET_INFO = b'{"method":"org.varlink.service.GetInfo"}'
REFUSED = [  # closed without an answer: not one JSON object of the allowed form
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"{}",
    b'{"method":1}',
    b'{"method":null}',
    b'{"method":["io.edgeprof.GetStatus"]}',
    GET_INFO + b"x",
    GET_INFO + GET_INFO,
    b"\xff\xfe" + GET_INFO,
    b'{"method":"io.edgeprof.GetStatus\xc3\x28"}',
    b'{"method":"io.edgeprof.GetStatus\\u0000"}',
    b'{"method":"io.edgeprof.GetStatus\\ud800"}',
    b'{"method":"io.edgeprof.GetStatus","method":"io.edgeprof.GetSelf"}',
    b'{"method":"io.edgeprof.GetStatus",}',
    b'{"method":"io.edgeprof.ListMetrics","parameters":{"glob":01}}',
    b'{"method":"io.edgeprof.ListMetrics","parameters":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b'{"method":"io.edgeprof.GetStatus","x":[' + b"1," * 3000 + b"1]}",
    b'{"method":"io.edgeprof.GetStatus","x":"' + b"a" * 70000 + b'"}',
]


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def memfds(daemon):
    """Names of its open memfds; one may be closed while we look."""
    names = []
    for number in os.listdir(f"/proc/{daemon.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/{daemon.pid}/fd/{number}"))
    return [name for name in names if "memfd" in name]


def test_messages_that_are_no_messages_close_only_their_connection():
    with Daemon() as daemon, contextlib.closing(daemon.client()) as good:
        before = None
        for _ in range(2):
            for bad in REFUSED:
                client = daemon.client()
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    client.socket.sendall(bad + b"\0")
                with contextlib.suppress(ConnectionResetError):
                    message = client.receive()
                    assert message is None, (bad[:80], message)
                client.close()
                assert good.call("org.varlink.service.GetInfo")["product"]
            until("the connections are gone", lambda: daemon.call("GetSelf")["api_connections"] <= 2)
            assert before is None or descriptors(daemon) <= before + 1
            before = descriptors(daemon)
        assert daemon.call("GetSelf")["api_errors"] >= 2 * len(REFUSED) - 2


def test_unknown_methods_and_wrong_types_are_proper_errors():
    with Daemon() as daemon, contextlib.closing(daemon.client()) as client:
        cases = [
            ("io.edgeprof.Nonsense", {}, "org.varlink.service.MethodNotFound", {"method": "Nonsense"}),
            ("com.example.Ping", {}, "org.varlink.service.InterfaceNotFound", {"interface": "com.example"}),
            ("io.edgeprof.ListMetrics", {"glob": 1}, "org.varlink.service.InvalidParameter", {"parameter": "glob"}),
            ("io.edgeprof.ListMetrics", {"glob": "a b"}, "org.varlink.service.InvalidParameter", {"parameter": "glob"}),
            ("io.edgeprof.ListMetrics", {"nonsense": 1}, "org.varlink.service.InvalidParameter", {"parameter": "nonsense"}),
            ("io.edgeprof.GetHistory", {}, "org.varlink.service.InvalidParameter", {"parameter": "glob"}),
            ("io.edgeprof.GetHistory", {"glob": "*/*", "max_points": -1}, "org.varlink.service.InvalidParameter", {"parameter": "max_points"}),
            ("io.edgeprof.GetHistory", {"glob": "*/*", "max_points": 1.5}, "org.varlink.service.InvalidParameter", {"parameter": "max_points"}),
            ("io.edgeprof.ListEvents", {"limit": 1e300}, "org.varlink.service.InvalidParameter", {"parameter": "limit"}),
            ("io.edgeprof.ListApps", {"x": {}}, "org.varlink.service.InvalidParameter", {"parameter": "x"}),
            ("io.edgeprof.SetSource", {"name": "nonsense", "enabled": True}, "io.edgeprof.NotFound", None),
        ]
        for method, parameters, error, wanted in cases:
            client.send(method, parameters)
            message = client.receive()
            assert message.get("error") == error, (method, parameters, message)
            if wanted is not None and error != "org.varlink.service.MethodNotFound":
                assert message.get("parameters") == wanted, (method, parameters, message)


def test_pipelined_requests_are_answered_in_order_and_oneway_never():
    with Daemon() as daemon, contextlib.closing(daemon.client()) as client:
        client.send("Nonsense", oneway=True)
        client.send("GetStatus", oneway=True)
        for n in range(100):
            client.send("GetInterfaceDescription" if n % 2 else "GetSelf") if n % 3 else client.send(f"Unknown{n}")
        client.send("org.varlink.service.GetInfo")
        for n in range(100):
            message = client.receive()
            if n % 3 == 0:
                assert message["error"] == "org.varlink.service.MethodNotFound", message
            elif n % 2:
                assert "error" in message
            else:
                assert message["parameters"]["pid"] == daemon.pid
        assert client.reply()["parameters"]["product"]


# covers G2.5
def test_client_that_never_reads_harms_nobody():
    with Daemon("[sampling]\ninterval = 100ms\n") as daemon:
        until("metrics", lambda: daemon.metric("cpu/load1"))
        silent = [daemon.client() for _ in range(4)]
        for client in silent:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.socket.settimeout(0.2)
            client.send("Subscribe", {"metrics": True, "events": True, "interval_ms": 100}, more=True)
            with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
                for _ in range(20000):
                    client.send("GetStatus")
        with contextlib.closing(daemon.client()) as good:
            for _ in range(50):
                assert good.call("GetStatus")["version"]
        rss = daemon.call("GetSelf")["rss_bytes"]
        assert rss < 512 << 20, rss  # the sanitizers' shadow counts too
        until("they are thrown out", lambda: daemon.call("GetSelf")["api_connections"] <= 1)
        for client in silent:
            client.close()


def test_half_a_frame_is_closed_in_time():
    with Daemon() as daemon:
        clients = [daemon.client(timeout=60) for _ in range(8)]
        for client in clients:
            client.socket.sendall(GET_INFO[:20])
        assert daemon.call("GetStatus")["version"]
        for client in clients:
            assert client.receive() is None
            client.close()


def test_connections_past_the_limit_are_refused_clearly():
    with Daemon("[daemon]\nmax_connections = 24\n") as daemon:
        clients = []
        refused = 0
        for _ in range(40):
            client = daemon.client()
            clients.append(client)
            with contextlib.suppress(BrokenPipeError):
                client.send("org.varlink.service.GetInfo")
            with contextlib.suppress(ConnectionResetError):
                message = client.receive()
                if message and "error" in message:
                    assert message["error"] == "io.edgeprof.LimitReached", message
                    assert message["parameters"]["limit"] > 0
                    refused += 1
        assert refused >= 8, refused  # root, who runs this, has places of its own
        for client in clients:
            client.close()

        def answered():
            with contextlib.suppress(VarlinkError):
                return daemon.call("GetStatus")["version"]

        until("there is room again", answered)


# covers G2.9
def test_twenty_clients_at_once_by_default():
    with Daemon() as daemon:
        clients = [daemon.client() for _ in range(25)]
        for client in clients:
            client.send("GetStatus")
        for client in clients:
            assert client.reply()["parameters"]["version"]
            client.close()


if __name__ == "__main__":
    run_tests(dict(globals()))
