#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon with a list of brokers that are one cluster: three RabbitMQ nodes, three NATS servers, on loopback.
One is killed, comes back, another is killed: every alert arrives at least once, in order; will and retained state
are right afterwards. Then what each broker can do is tried and printed: the table of docs/fleet.md.

Not in ./test: apt-get install --no-install-recommends rabbitmq-server nats-server"""
import contextlib
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from harness import run_tests_with_broker, until

import mosquitto
from mqtt_board import DEVICE, PATIENCE, Board, Events

STATUS = f"edgeprof/{DEVICE}/status"
START_S = 240  # three Erlang systems on a loaded machine


class Node:
    """One server of a cluster; environment and folder are its own."""

    def __init__(self, command, folder, port, env, health=0):
        self.command, self.folder, self.port, self.env, self.health, self.process = command, folder, port, env, health, None

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder, start_new_session=True, preexec_fn=mosquitto.die_with_parent)

    def kill(self):
        """The whole group: RabbitMQ's is a shell with an Erlang system."""
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def serves(self):
        """Whether it accepts a session: that takes a majority of the nodes."""
        assert not self.process or self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-3000:]
        return publish(self.port, "probe/start", "x", 1) and self.healthy()

    def healthy(self):
        """NATS says when a node that comes back has caught up; killed before, the next one takes messages with it."""
        with contextlib.suppress(OSError):
            return not self.health or urllib.request.urlopen(f"http://127.0.0.1:{self.health}/healthz", timeout=5).status == 200
        return False

    def up(self):
        try:
            until(f"{self.folder.name} serves", self.serves, START_S)
        except AssertionError:
            print((self.folder / "log").read_text(errors="replace")[-5000:])
            raise


def publish(port, topic, payload, qos, *more):
    words = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(port), "-q", str(qos), "-t", topic, "-m", payload, *more]
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run(words, capture_output=True, timeout=15).returncode == 0
    return False


def heard(port, topic, seconds, *more):
    """The first message within that time, as QOS PAYLOAD; "": none."""
    words = ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-t", topic, "-C", "1", "-W", str(seconds), "-F", "%q %p", *more]
    return subprocess.run(words, capture_output=True, text=True, timeout=seconds + 20).stdout.strip()


@contextlib.contextmanager
def cluster(make):
    """Three nodes, in a folder of their own. Those of RabbitMQ start one by one: of nodes that start at once, one may never
    learn which is the leader that registers client ids."""
    with tempfile.TemporaryDirectory(prefix="edgeprof-cluster-") as name:
        folder = pathlib.Path(name)
        nodes, after = make(folder)
        try:
            for node in nodes:
                node.start()
                if make == rabbitmq:
                    node.up()
            for node in nodes:
                node.up()
            yield nodes
        finally:
            for node in nodes:
                node.kill()
            after()


def rabbitmq(folder, count=3):
    ports = [mosquitto.free_port() for _ in range(7)]
    epmd, nodes = ports[6], []
    cookie = folder / ".erlang.cookie"
    cookie.write_text("EDGEPROFTEST")
    cookie.chmod(0o400)
    members = "".join(f"cluster_formation.classic_config.nodes.{i + 1} = edge{i}@localhost\n" for i in range(count))
    for i in range(count):
        own = folder / f"edge{i}"
        own.mkdir()
        (own / "plugins").write_text("[rabbitmq_mqtt].\n")
        (own / "rabbitmq.conf").write_text(
            f"listeners.tcp = none\nmqtt.listeners.tcp.1 = 127.0.0.1:{ports[i]}\nmqtt.allow_anonymous = true\n"
            f"mqtt.durable_queue_type = quorum\ncluster_formation.peer_discovery_backend = classic_config\n{members}log.console = true\n")
        env = dict(os.environ, HOME=str(folder), RABBITMQ_NODENAME=f"edge{i}@localhost", RABBITMQ_DIST_PORT=str(ports[3 + i]),
                   RABBITMQ_NODE_PORT=str(ports[i]), RABBITMQ_CONFIG_FILE=str(own / "rabbitmq.conf"), RABBITMQ_MNESIA_BASE=str(own),
                   RABBITMQ_LOG_BASE=str(own), RABBITMQ_ENABLED_PLUGINS_FILE=str(own / "plugins"), RABBITMQ_PID_FILE=str(own / "pid"),
                   RABBITMQ_GENERATED_CONFIG_DIR=str(own), RABBITMQ_CONF_ENV_FILE=str(own / "none"), ERL_EPMD_PORT=str(epmd),
                   ERL_EPMD_ADDRESS="127.0.0.1", RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} +S 1:1")
        nodes.append(Node(["/usr/lib/rabbitmq/bin/rabbitmq-server"], own, ports[i], env))
    names = subprocess.Popen([shutil.which("epmd")], env=nodes[0].env, preexec_fn=mosquitto.die_with_parent)

    def after():
        names.kill()
        names.wait()
    return nodes, after


def nats(folder):
    ports, nodes = [mosquitto.free_port() for _ in range(12)], []
    routes = ", ".join(f"nats://127.0.0.1:{port}" for port in ports[3:6])
    for i in range(3):
        own = folder / f"edge{i}"
        own.mkdir()
        (own / "conf").write_text(
            f"server_name: edge{i}\nlisten: 127.0.0.1:{ports[6 + i]}\nhttp: 127.0.0.1:{ports[9 + i]}\njetstream {{ store_dir: {own}/js }}\n"
            f"cluster {{ name: edge, listen: 127.0.0.1:{ports[3 + i]}, routes: [{routes}] }}\nmqtt {{ listen: 127.0.0.1:{ports[i]} }}\n")
        nodes.append(Node([shutil.which("nats-server"), "-c", str(own / "conf")], own, ports[i], dict(os.environ), ports[9 + i]))
    return nodes, lambda: None


def version(which):
    if which == "rabbitmq":
        found = glob.glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*")
        return tuple(map(int, found[0].rsplit("-", 1)[1].split("."))) if found else None
    program = shutil.which("nats-server")
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[-1] if program else None


def failover(nodes):
    """The watcher is at the third node, which is never killed. A node that a device has left may be too busy with the
    loss of the other one to answer in time: then the next in the list is right."""
    first, second, third = nodes

    def elsewhere(than):
        now = board.status()
        return now["state"] == "connected" and now["port"] != than.port and now["port"]

    events = Events(third)
    hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
    try:
        with Board(1, host=hosts) as board:
            board.connected()
            assert board.status()["port"] == first.port
            board.alert(2)
            first.kill()
            board.alert(2)
            ports = [until("another", lambda: elsewhere(first), PATIENCE)]
            begin = time.monotonic()
            first.start()
            first.up()
            print(f"  the first is back after {time.monotonic() - begin:.0f} s")
            second.kill()
            board.alert(2)
            ports.append(until("not the second", lambda: elsewhere(second), PATIENCE))
            print(f"  after each death at node {', '.join(str([n.port for n in nodes].index(port) + 1) for port in ports)}")
            until("all is delivered", lambda: board.status()["queued"] == 0, PATIENCE)
            with contextlib.suppress(AssertionError):  # what is missing is said below
                until("every event arrived", lambda: len(events.first_arrivals()) >= len(board.raised), PATIENCE)
            found = events.first_arrivals()
            assert [state for _, state in found] == [state for state, _, _ in board.raised], (found, board.raised)
            assert found == sorted(found), found
            print(f"  {len(found)} events in order, {len(events.seen) - len(found)} repeated, {board.status()['connects']} connections")
            print(f"  status, retained, at node 1: {heard(first.port, STATUS, 10) or 'nothing'}, "
                  f"at node 3: {heard(third.port, STATUS, 10) or 'nothing'}")
            assert "online" in heard(ports[-1], STATUS, 20)
            watcher = subprocess.Popen(["stdbuf", "-oL", "mosquitto_sub", "-h", "127.0.0.1", "-p", str(third.port), "-t", STATUS, "-W", "60", "-d"],
                                       stdout=subprocess.PIPE, text=True, preexec_fn=mosquitto.die_with_parent)
            try:
                until("subscribed", lambda: watcher.stdout.readline().startswith("Subscribed"), 60)
                board.daemon.kill()
                until("the will", lambda: "offline" in watcher.stdout.readline(), 60)
            finally:
                watcher.kill()
                watcher.wait()
            board.start()
    finally:
        events.close()


def subscriber_of_will(port, topic, act, seconds):
    """Seconds after act() until the will arrives; None: it does not."""
    child = subprocess.Popen(["stdbuf", "-oL", "mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-t", topic, "-C", "1", "-W", str(seconds), "-d"],
                             stdout=subprocess.PIPE, text=True, preexec_fn=mosquitto.die_with_parent)
    while not child.stdout.readline().startswith("Subscribed"):
        assert child.poll() is None
    begin = time.monotonic()
    act()
    out = child.communicate()[0]
    return time.monotonic() - begin if "PUBLISH" in out else None


def dying_client(port, topic, *more):
    """A client with a will that the test kills."""
    child = subprocess.Popen(["stdbuf", "-oL", "mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-t", "probe/none", "-d", "--will-topic", topic,
                              "--will-payload", "gone", "--will-qos", "1", *more], stdout=subprocess.PIPE, text=True,
                             preexec_fn=mosquitto.die_with_parent)
    for line in child.stdout:
        if line.startswith("Subscribed"):
            return child
    return None


def capabilities(nodes):
    here, other = nodes[0], nodes[-1]
    told = {}
    told["MQTT 5"] = publish(here.port, "probe/5", "x", 1, "-V", "mqttv5")
    told["QoS 2 publish"] = publish(here.port, "probe/2", "x", 2)
    publish(here.port, "probe/r2", "x", 2, "-r")
    told["QoS 2 retained is delivered as QoS"] = heard(here.port, "probe/r2", 5, "-q", "2")[:1] or "nothing"
    publish(here.port, "probe/r", "kept", 1, "-r")
    told["retained, same node"] = "kept" in heard(here.port, "probe/r", 5)
    told["retained, other node"] = "kept" in heard(other.port, "probe/r", 5)
    client = dying_client(here.port, "probe/will")
    took = subscriber_of_will(other.port, "probe/will", client.kill, 10)
    told["will of a client that dies"] = took is not None
    client = dying_client(here.port, "probe/willr", "--will-retain")
    client.kill()
    told["will is retained"] = "gone" in heard(here.port, "probe/willr", 5)
    if told["MQTT 5"]:
        client = dying_client(here.port, "probe/delay", "-V", "mqttv5", "-D", "will", "will-delay-interval", "4",
                              "-D", "connect", "session-expiry-interval", "60")
        took = subscriber_of_will(other.port, "probe/delay", client.kill, 15)
        told["will delay of 4 s"] = "no will" if took is None else f"{took:.1f} s"
    else:
        told["will delay of 4 s"] = "no MQTT 5"
    for what, port in (("same", here.port), ("another", other.port)):
        words = (f"probe/{what}", 10, "-q", "1", "-c", "-i", f"lasting-{what}")
        heard(here.port, *words, "-E")
        publish(here.port, f"probe/{what}", "waits", 1)
        told[f"session continued, {what} node"] = "waits" in heard(port, *words)
    if len(nodes) > 1:
        client = dying_client(here.port, "probe/nodewill")
        told["will when its node is killed"] = subscriber_of_will(other.port, "probe/nodewill", here.kill, 40) is not None
        client.kill()
        told["retained after its node was killed"] = "kept" in heard(other.port, "probe/r", 5)
        nodes[1].kill()
        time.sleep(1)
        told["one of three nodes serves alone"] = publish(other.port, "probe/alone", "x", 1)
    for what, answer in told.items():
        print(f"  {what}: {answer}")
    return told


def forbidden_topic(node):
    """RabbitMQ closes the connection of MQTT 3.1.1 at each message that its user may not write."""
    subprocess.run(["/usr/lib/rabbitmq/bin/rabbitmqctl", "-n", node.env["RABBITMQ_NODENAME"], "set_topic_permissions", "guest",
                    "amq.topic", r"^(?!edgeprof\.[^.]*\.event\.)", ".*"], env=node.env, check=True, capture_output=True, timeout=120)
    begin = time.monotonic()
    with Board(node.port) as board:
        board.connected()
        board.alert()
        until("it is given up", lambda: "event/alert: given up" in (board.status().get("reason") or ""), 15 * PATIENCE)
        assert board.status()["dropped_alerts"] == 1, board.status()
        print(f"  a forbidden topic: {board.status()['connects']} connections in {time.monotonic() - begin:.0f} s until it was given up")


def try_cluster(make):
    with cluster(make) as nodes:
        failover(nodes)
        nodes[1].start()
        nodes[1].up()
        if make == rabbitmq:
            forbidden_topic(nodes[0])
        capabilities(nodes)  # kills two of them


def test_rabbitmq():
    if not version("rabbitmq") or not shutil.which("epmd"):
        return "no RabbitMQ: apt-get install --no-install-recommends rabbitmq-server"
    print(f"RabbitMQ {'.'.join(map(str, version('rabbitmq')))}")
    return try_cluster(rabbitmq)


def test_nats():
    if not version("nats"):
        return "no NATS: apt-get install --no-install-recommends nats-server"
    print(f"NATS {version('nats')}")
    return try_cluster(nats)


def test_mosquitto():
    with mosquitto.Broker() as broker:
        capabilities([broker])


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
