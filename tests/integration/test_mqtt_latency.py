#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl mqtt-latency against a real mosquitto: a delay that a proxy makes shows as just that
much more; what is no measurement is counted; credentials go where they may."""
# covers G1.13
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import time

from harness import CTL, Daemon, run_tests_with_broker, until

import mosquitto
from tls_case import certificates, password_broker, secret_file, server

DELAY_S = 0.040


class DelayProxy:
    """Passes everything on after delay_s, without changing the rate."""

    def __init__(self, port, delay_s):
        self.broker_port, self.delay_s = port, delay_s
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                broker = socket.create_connection(("127.0.0.1", self.broker_port), 5)
                for source, sink, delay_s in ((client, broker, 0), (broker, client, self.delay_s)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self.copy, args=(source, sink, delay_s), daemon=True).start()

    def copy(self, source, sink, delay_s):
        waiting, ready = [], threading.Condition()

        def send():
            with contextlib.suppress(OSError):
                while True:
                    with ready:
                        ready.wait_for(lambda: waiting)
                        due, data = waiting.pop(0)
                    time.sleep(max(0, due - time.monotonic()))
                    if not data:
                        sink.shutdown(socket.SHUT_RDWR)
                        return
                    sink.sendall(data)

        threading.Thread(target=send, daemon=True).start()
        data = b"x"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            with ready:
                waiting.append((time.monotonic() + delay_s, data))
                ready.notify()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()


def latency(*words, status=0, **options):
    done = subprocess.run([str(CTL), "mqtt-latency", "-j", *map(str, words)], capture_output=True, text=True,
                          timeout=60, **options)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout else done.stderr


@contextlib.contextmanager
def publishing(broker, topic, payloads, pause=0.02):
    """Sends what payloads() gives, again and again, until the block ends."""
    ended = threading.Event()
    child = subprocess.Popen(["mosquitto_pub", "-h", "127.0.0.1", "-p", str(broker.port), "-t", topic, "-l"],
                             stdin=subprocess.PIPE, preexec_fn=mosquitto.die_with_parent)

    def run():
        with contextlib.suppress(BrokenPipeError, ValueError):
            while not ended.is_set():
                for payload in payloads():
                    child.stdin.write(payload + b"\n")
                child.stdin.flush()
                time.sleep(pause)

    writer = threading.Thread(target=run, daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
        child.kill()
        child.wait()


def stamped(offset_us=0, key="capture_us"):
    return lambda: [json.dumps({key: time.time_ns() // 1000 + offset_us}).encode()]


def test_a_delay_shows_as_that_much_more():
    with mosquitto.Broker() as broker, DelayProxy(broker.port, DELAY_S) as proxy:
        with publishing(broker, "cam/frame", stamped()):
            near = latency("cam/frame", "--host", "127.0.0.1", "--port", broker.port, "--count", 60)
            far = latency("cam/frame", "--host", "127.0.0.1", "--port", proxy.port, "--count", 60)
        more = {name: far[name] - near[name] for name in ("min_ms", "mean_ms", "p50_ms", "p95_ms", "p99_ms")}
        print(f"  near {near['p50_ms']:.2f} ms, through the proxy {far['p50_ms']:.2f} ms; more: "
              + ", ".join(f"{name} {value:.2f}" for name, value in more.items()))
        # a loaded machine delays single messages: the least and the middle are told from the delay
        assert 39 <= more["min_ms"] <= 50, more
        assert 35 <= more["p50_ms"] <= 60, more
        for one in (near, far):
            assert one["count"] == one["messages"] == 60 and one["negative"] == 0, one
            assert one["min_ms"] <= one["p50_ms"] <= one["p95_ms"] <= one["p99_ms"] <= one["max_ms"], one


def test_own_probes_go_there_and_back():
    with mosquitto.Broker() as broker, DelayProxy(broker.port, DELAY_S) as proxy:
        words = ("probe", "--host", "127.0.0.1", "--publish", "--count", 40, "--interval", "10ms", "--port")
        near, far = latency(*words, broker.port), latency(*words, proxy.port)
        assert 39 <= far["min_ms"] - near["min_ms"] <= 50, (near, far)
        assert near["count"] == far["count"] == 40


def test_what_the_daemon_sends_can_be_measured():
    with mosquitto.Broker() as broker:
        config = f"[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\ndevice_id = e\nsummary_interval = 1s\n"
        with Daemon(config) as daemon:
            until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
            # which broker is asked of the configuration, and without one of the daemon
            for words in (("--config", daemon.config_path), ()):
                seen = latency("edgeprof/e/summary", "--count", 2, *words, env=daemon.env)
                assert seen["count"] == 2 and 0 <= seen["p50_ms"] < 1000, seen
            # what was retained is old, and no latency
            seen = latency("edgeprof/e/+", "--count", 3, env=daemon.env)
            assert seen["retained"] >= 2 and seen["max_ms"] < 5000, seen


def test_clocks_that_disagree_are_told():
    with mosquitto.Broker() as broker, publishing(broker, "t", stamped(+5_000_000, "capture_ts_us")):
        address = ("--host", "127.0.0.1", "--port", broker.port)
        seen = latency("t", *address, "--key", "capture_ts_us", "--count", 10, status=1)
        assert seen["negative"] == 10 and -5001 < seen["p50_ms"] < -4000, seen
        done = subprocess.run([str(CTL), "mqtt-latency", "t", "--key", "capture_ts_us", "--count", "3",
                               *map(str, address)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "clocks of sender and receiver disagree" in done.stdout, done


def test_hostile_payloads_are_counted():
    bad = [b"{", b"[]", b"nan", b"{}", b'{"capture_us":1e999}', b'{"capture_us":"x"}', b'{"capture_us":1795309546123456789}',
           b'{"a":' * 2000, b"x" * 200_000, b'{"capture_us":0}', b'\xff\xfe\x1b[2J', b'{"capture_us":-1}']
    with mosquitto.Broker() as broker, publishing(broker, "t", lambda: bad + stamped()()):
        seen = latency("t", "--host", "127.0.0.1", "--port", broker.port, "--count", 260)
        assert seen["messages"] == 260, seen
        assert seen["count"] == 20 and 0 <= seen["max_ms"] < 5000, seen
        assert seen["too_large"] == 20 and seen["malformed"] == 100 and seen["without_time"] == 60 \
            and seen["implausible"] == 60, seen


def test_a_broker_that_is_not_there_or_goes_is_told():
    said = latency("t", "--host", "127.0.0.1", "--port", mosquitto.free_port(), status=69)
    assert "refused" in said, said
    said = latency("t/#/x", "--host", "127.0.0.1", status=64)
    assert "invalid topic" in said, said
    assert "no broker is configured" in latency("t", "--config", "/dev/null", status=64)
    with mosquitto.Broker(more=["sys_interval 1"]) as broker:
        child = subprocess.Popen([str(CTL), "mqtt-latency", "-j", "t", "--host", "127.0.0.1", "--port", str(broker.port)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        broker.subscribe("$SYS/broker/clients/connected", until=lambda seen: int(seen[-1][1]) >= 1, timeout=40)
        broker.kill()
        out, error = child.communicate(timeout=30)
        assert child.returncode == 69 and f":{broker.port}: " in error, (child.returncode, error)
        assert json.loads(out)["count"] == 0 and json.loads(out)["p50_ms"] is None, out


def test_credentials_come_from_a_file():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        passwd, secret, config = (pathlib.Path(folder) / name for name in ("passwd", "secret", "conf"))
        subprocess.run(["mosquitto_passwd", "-c", "-b", passwd, "edge", "right"], check=True, capture_output=True)
        secret.write_text("right\n")
        secret.chmod(0o600)
        with mosquitto.Broker(access=f"allow_anonymous false\npassword_file {passwd}") as broker:
            config.write_text(f"[statsd]\nhost = no\n[mqtt]\n# x\nhost = 127.0.0.1 ; here\nport = {broker.port}\n"
                              f"username = edge\npassword_file = {secret}\n[alert x]\nhost = y\n")
            words = ("probe", "--publish", "--count", 3, "--interval", "10ms", "--config", config)
            assert latency(*words)["count"] == 3
            secret.chmod(0o644)
            assert "only its owner may read" in latency(*words, status=69)
            secret.chmod(0o600)
            secret.write_text("wrong")
            assert "not authorised" in latency(*words, status=69)


def test_tls_is_the_daemons():
    with certificates() as certs:
        certs.signed("good")
        certs.signed("common", names="", common="127.0.0.1")
        for name, fine in (("good", True), ("common", False)):
            with password_broker(certs, server(certs, name)) as broker:
                config = pathlib.Path(certs.path("conf"))
                config.write_text(f"[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\nca_file = {certs.path('ca.crt')}\n"
                                  f"username = edge\npassword_file = {secret_file(certs)}\n")
                words = ("probe", "--publish", "--count", 3, "--interval", "10ms", "--config", config)
                seen = latency(*words, status=0 if fine else 69)
                assert seen["count"] == 3 if fine else "certificate verify failed" in seen, seen
                config.write_text(f"[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\nca_file = {certs.path('absent')}\n")
                assert "cannot use" in latency(*words, status=69)


def test_a_credential_in_clear_text_stays_here():
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "conf")
        for more, refused in (("", True), ("tls = auto\n", True), ("tls = yes\n", False), ("tls = no\n", False)):
            config.write_text(f"[mqtt]\nhost = broker.invalid\nusername = edge\n{more}")
            said = latency("t", "--config", config, "--timeout", "3s", status=64 if refused else 69)
            assert ("clear text" in said) == refused, said


def test_a_broker_that_does_not_accept_is_left_in_time():
    """A full backlog: the kernel drops what would connect, and would try for two minutes."""
    with contextlib.ExitStack() as held:
        server = held.enter_context(contextlib.closing(socket.socket()))
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            one = held.enter_context(contextlib.closing(socket.socket()))
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        begin = time.monotonic()
        told = latency("t", "--host", "127.0.0.1", "--port", server.getsockname()[1], "--timeout", "1s", status=69)
        assert "no reply" in told and time.monotonic() - begin < 20, told

if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
