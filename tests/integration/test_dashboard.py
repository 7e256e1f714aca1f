#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fleet page in headless Chromium: a real mosquitto with WebSockets, two real daemons, 500 devices that repeat what one of
these publishes, and a publisher that lies. EDGEPROF_SHOTS=FOLDER keeps pictures. Needs Chromium, and the packages that
client/dashboard/build.sh has fetched before; nothing is installed by a test."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

from harness import DEMO, SOURCE, Daemon, board, program, run_tests_with_broker, until

import mosquitto
from chromium import Page

DASHBOARD = SOURCE / "client/dashboard"
DEVICES, PERIOD_S = 500, 10
PATIENCE = 120


class Publisher:
    """Publishes with QoS 0 over one connection, any bytes to any topic."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        name = f"publisher-{random.random()}".encode()
        self.packet(0x10, b"\0\4MQTT\4\2\0\0" + struct.pack("!H", len(name)) + name)
        assert self.socket.recv(4)[:2] == b"\x20\2"

    def packet(self, kind, body):
        length, size = b"", len(body)
        while size or not length:
            size, digit = divmod(size, 128)
            length += bytes([digit | (128 if size else 0)])
        self.socket.sendall(bytes([kind]) + length + body)

    def publish(self, topic, payload, retain=False):
        data = topic.encode()
        self.packet(0x30 | retain, struct.pack("!H", len(data)) + data + (payload if isinstance(payload, bytes) else payload.encode()))

    def close(self):
        self.socket.close()


class Load:
    """Repeats what a real device has published under 500 other names, each with values of its own."""

    def __init__(self, port, messages):
        self.port, self.messages, self.ended = port, messages, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        numbers, begin = random.Random(1), time.monotonic()
        while not self.ended.is_set():
            with contextlib.suppress(OSError):  # the broker is down: again
                publisher = Publisher(self.port)
                for device in range(DEVICES):
                    publisher.publish(f"edgeprof/sim-{device}/status", "online", True)
                while True:
                    for device in range(DEVICES):
                        for topic, text in self.messages.items():
                            publisher.publish(f"edgeprof/sim-{device}/{topic}", self.changed(text, begin, numbers))
                        if self.ended.wait(PERIOD_S / DEVICES):
                            return
            self.ended.wait(0.5)

    @staticmethod
    def changed(text, begin, numbers):
        payload = json.loads(text)
        payload["mono_us"] += int((time.monotonic() - begin) * 1e6)
        factor = numbers.uniform(0.9, 1.1)
        for key in payload:
            if key.endswith(("_celsius", "_fps", "_target_percent", "_milliwatts", "p95_ms")):
                payload[key] *= factor
        return json.dumps(payload)

    def close(self):
        self.ended.set()
        self.thread.join()


def config(broker, name):
    return (f"[mqtt]\nhost = 127.0.0.1:{broker.port}\ndevice_id = {name}\nsummary_interval = 1s\n[sampling]\ninterval = 200ms\n"
            "[frame cam]\ntarget_fps = 30\n")


def absent():
    for name in ("chromium", "node", "mosquitto_passwd"):
        if not shutil.which(name):
            return f"{name} is not installed"
    return None if (DASHBOARD / "node_modules/.lock").exists() else "run client/dashboard/build.sh first"


def page_of(folder):
    subprocess.run(["bash", DASHBOARD / "build.sh", folder / "index.html"], check=True, timeout=PATIENCE)


@contextlib.contextmanager
def fleet():
    """Broker, a page of it, the daemon whose temperature is set, and the file that sets it."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="edgeprof-dashboard-")))
        page_of(folder)
        folder.chmod(0o755)
        web = mosquitto.free_port()
        broker = stack.enter_context(mosquitto.Broker(more=[f"listener {web} 127.0.0.1", "protocol websockets", f"http_dir {folder}"]))
        root, temperature = board(folder)
        camera = stack.enter_context(Daemon(config(broker, "real-camera"), root=SOURCE / "tests/fixtures/sysroot/xavier-nx-jp5"))
        hot = stack.enter_context(Daemon(config(broker, "real-hot"), root=root))
        stack.enter_context(program([DEMO, "--app", "cam"], camera.env, stdout=subprocess.DEVNULL))
        seen = broker.subscribe("edgeprof/real-camera/#", timeout=PATIENCE, until=lambda seen: "fps" in seen[-1][1])
        seen += broker.subscribe("edgeprof/real-camera/#", timeout=PATIENCE, until=lambda seen: seen[-1][0].endswith("/publish"))
        kinds = {topic.removeprefix("edgeprof/real-camera/"): text for topic, text in seen}
        load = Load(broker.port, {topic: text for topic, text in kinds.items() if topic.split("/")[0] in ("info", "summary", "stage", "diagnosis")})
        stack.callback(load.close)
        page = stack.enter_context(Page(f"http://127.0.0.1:{web}/index.html#broker=ws://127.0.0.1:{web}/"))
        yield broker, page, hot, temperature


def shown(page):
    return page.evaluate("[...document.querySelectorAll('.row:not([hidden])')].sort((a, b) => a.index - b.index).map((row) => row.innerText)")


def count(page, name):
    return int(page.evaluate(f"document.querySelector('#filter-{name} b')?.textContent") or 0)


def search(page, text):
    page.evaluate(f"(() => {{ const box = document.getElementById('search'); box.value = {json.dumps(text)}; box.dispatchEvent(new Event('input')); }})()")


def picture(page, name):
    if folder := os.environ.get("EDGEPROF_SHOTS"):
        page.screenshot(pathlib.Path(folder) / f"{name}.png")


def pictures(page):
    """Light and dark, desktop and phone, with and without a device; kept on request only."""
    for name, *size in (("desktop", 1400, 900, "light"), ("desktop-dark", 1400, 900, "dark"), ("phone", 390, 844, "light"), ("phone-dark", 390, 844, "dark")):
        page.size(*size)
        for device in ("", "real-camera"):
            page.evaluate(f"location.hash = location.hash.replace(/&device=.*|$/, '{device and '&device=' + device}')")
            until("drawn", lambda: page.evaluate("document.getElementById('detail').hidden") == (not device))
            picture(page, f"{name}{device and '-' + device}")
    page.evaluate("document.getElementById('close').click()")
    page.size(1400, 900)


def all_listed(page):
    until("all devices", lambda: count(page, "all") == DEVICES + 2, PATIENCE)
    until("all online", lambda: count(page, "online") == DEVICES + 2, PATIENCE)
    page.evaluate("document.querySelector('#head .name').click()")  # an order that stays while it is scrolled
    until("sorted", lambda: shown(page)[0].startswith("real-camera") and shown(page)[2].startswith("sim-0"))
    names, height = set(), page.evaluate("document.getElementById('list').scrollHeight")
    for top in range(0, height, 400):
        page.evaluate(f"document.getElementById('list').scrollTop = {top}; "
                      "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        names |= {text.split()[0] for text in shown(page)}
    assert names == {"real-camera", "real-hot", *(f"sim-{i}" for i in range(DEVICES))}, sorted(names)
    page.evaluate("document.querySelector('#head .trouble').click()")


def scrolling(page):
    """Frames per second while the list is scrolled, and what script, style and layout of one take; printed, not judged."""
    code = """new Promise((done) => {
        const list = document.getElementById("list"), begin = performance.now();
        let frames = 0;
        const step = () => { list.scrollTop = (list.scrollTop + 97) % (list.scrollHeight - list.clientHeight);
            performance.now() - begin < 3000 ? (frames++, requestAnimationFrame(step)) : done(frames); };
        step();
    })"""

    def spent():
        names = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
        return sum(one["value"] for one in page.call("Performance.getMetrics")["metrics"] if one["name"] in names)
    before, frames = spent(), page.evaluate(code)
    print(f"  scrolling: {frames / 3:.0f} frames/s, {1000 * (spent() - before) / frames:.1f} ms each in the page")
    page.evaluate("document.getElementById('list').scrollTop = 0")


def alert_is_shown(page, hot, temperature):
    def line(text):
        return next((row for row in shown(page) if row.startswith("real-hot") and text in row), None)
    search(page, "real-hot")
    temperature.write_text("80000\n")
    until("the alert", lambda: line("1 firing"), PATIENCE)
    assert "THERMAL WARNING" in line("1 firing")
    hot.ctl("ack", "temperature")
    until("it is acknowledged", lambda: line("1 acknowledged"), PATIENCE)
    page.evaluate("document.querySelector('.row:not([hidden])').click()")
    until("the device is open", lambda: "acknowledged" in page.evaluate("document.getElementById('facts').innerText"))
    until("a graph", lambda: page.evaluate("document.querySelectorAll('#graphs canvas').length") >= 1)
    page.evaluate("document.getElementById('close').click()")
    temperature.write_text("50000\n")
    until("it has ended", lambda: not line("acknowledged"), PATIENCE)


def search_finds(page):
    search(page, "xavier sim-42")
    until("those that match", lambda: [text.split()[0] for text in shown(page)] == ["sim-42", *(f"sim-{i}" for i in range(420, 430))])
    search(page, "no such device")
    until("none", lambda: shown(page) == [] and "No device matches" in page.evaluate("document.getElementById('empty').innerText"))
    search(page, "")


def broker_returns(page, broker):
    broker.kill()
    until("the page knows", lambda: "not connected" in page.evaluate("document.getElementById('broker').innerText"), PATIENCE)
    until("nothing is heard", lambda: count(page, "stale") == DEVICES + 2, PATIENCE)
    broker.start()
    until("all are back", lambda: count(page, "online") == DEVICES + 2, PATIENCE)


def lies_do_nothing(page, port):
    """Names and texts that are markup, wrong types and sizes, names of prototypes, a flood of devices."""
    markup = '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>'
    publisher = Publisher(port)
    for name in ("__proto__", "constructor", markup.replace("/", ""), "\u202egnp", "x" * 128):
        publisher.publish(f"edgeprof/{name}/status", "online", True)
        publisher.publish(f"edgeprof/{name}/info", json.dumps({"model": markup, "version": [1], "os": "\n" * 300, "uptime_s": -1e300}))
        publisher.publish(f"edgeprof/{name}/summary", json.dumps({"temperature_max_celsius": 1e300, "frame_" + markup + "_fps": 30, "frame___proto___fps": -5,
                                                                  "throttle_active": "yes", "mono_us": -1e300, "boot_id": "__proto__", "ts_ms": 8.7e15}))
        publisher.publish(f"edgeprof/{name}/stage/{name}/constructor", json.dumps({"p95_ms": -1e308, "deadline_ms": 1e-308}))
        publisher.publish(f"edgeprof/{name}/alert/__proto__/toString", json.dumps({"state": "firing", "severity": "constructor", "text": markup}), True)
        publisher.publish(f"edgeprof/{name}/diagnosis/{name}", json.dumps({"status": "findings", "summary": markup, "evidence_1": markup}), True)
        publisher.publish(f"edgeprof/{name}/missed", json.dumps({"alerts_count": 1e308, "first_ts_ms": 1e308, "clock_synchronized": True}))
    for topic, payload in (("a/summary", b"[" * 60000), ("a/summary", b"{" + b'"a":1,' * 20000), ("a/summary", b"\xff\xfe"), ("a/summary", bytes(4 << 20)),
                           ("y" * 60000 + "/status", b"online"), ("a/b/c/d/e/f", b"{}"), ("a/status", b"nobody knows")):
        publisher.publish(f"edgeprof/{topic}", payload)
    until("the lies", lambda: count(page, "all") == DEVICES + 2 + 5, PATIENCE)
    for name in ("__proto__", "constructor"):
        page.evaluate(f"location.hash += '&device={name}'")
        until("its facts", lambda: page.evaluate("document.querySelector('#facts h2')?.innerText ?? ''").startswith(name))
        page.evaluate("history.back()")
    until("refusals are counted", lambda: "refused" in page.evaluate("document.getElementById('broker').innerText"))
    publisher.publish("edgeprof/late/status", "online")
    until("it still listens", lambda: count(page, "all") == DEVICES + 2 + 6, PATIENCE)
    assert page.evaluate("window.harmed") is None
    assert page.evaluate("document.querySelectorAll('img, .row script, .row *:not(div, b, i, u)').length") == 0
    publisher.close()


def test_the_page_shows_a_fleet():
    if absent():
        return absent()
    with fleet() as (broker, page, hot, temperature):
        all_listed(page)
        scrolling(page)
        alert_is_shown(page, hot, temperature)
        search_finds(page)
        pictures(page)
        broker_returns(page, broker)
        lies_do_nothing(page, broker.port)
        stored = page.evaluate("JSON.stringify(localStorage) + location.href")
        assert stored.count(f"ws%3A%2F%2F127.0.0.1%3A{page.evaluate('location.port')}") == 2, stored
        unexpected = [one for one in page.console if "ERR_CONNECTION_REFUSED" not in str(one)]  # the broker was down
        assert not unexpected, unexpected
        picture(page, "end")
    return None


def test_a_password_stays_in_memory():
    if absent():
        return absent()
    with tempfile.TemporaryDirectory(prefix="edgeprof-dashboard-") as name:
        folder, web = pathlib.Path(name), mosquitto.free_port()
        folder.chmod(0o755)
        page_of(folder)
        subprocess.run(["mosquitto_passwd", "-b", "-c", folder / "passwords", "viewer", "secret-7"], check=True)
        more = [f"password_file {folder}/passwords", f"listener {web} 127.0.0.1", "protocol websockets", f"http_dir {folder}"]
        address = f"http://127.0.0.1:{web}/index.html#broker=ws://127.0.0.1:{web}"
        with mosquitto.Broker(access="allow_anonymous false", more=more), Page(address) as page:
            until("it asks", lambda: page.evaluate("document.getElementById('dialog').open && !!document.getElementById('problem').innerText"))
            page.evaluate("""(() => { const form = document.forms[0]; form.username.value = "viewer"; form.password.value = "secret-7";
                form.requestSubmit(); })()""")
            until("connected", lambda: page.evaluate("document.getElementById('broker').innerText") == "connected")
            assert "secret-7" not in page.evaluate("JSON.stringify([localStorage, sessionStorage]) + location.href + document.cookie")
            page.evaluate("location.reload()")
            until("it asks again", lambda: page.evaluate("document.getElementById('dialog')?.open && document.forms[0].password.value === ''"))
    return None


def test_what_devices_published_is_judged():
    if not shutil.which("node"):
        return "node is not installed"
    done = subprocess.run(["node", "--test", DASHBOARD / "state.test.js"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout
    return None


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
