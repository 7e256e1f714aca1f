# SPDX-License-Identifier: Apache-2.0
"""A page in headless Chromium, driven through its debugging pipe: no port, no further program."""
import base64
import contextlib
import fcntl
import itertools
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading

from harness import PATIENCE, until

import mosquitto


class Page:
    """address: of the page. evaluate() runs JavaScript in it; console has what it logged and which errors it threw."""

    def __init__(self, address, width=1400, height=900):
        self.folder = tempfile.mkdtemp(prefix="edgeprof-chromium-")
        (input_end, self.sink), (self.source, output_end) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (input_end, output_end)]
        words = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "chromium", *words], pass_fds=ends,
                                        env=dict(os.environ, HOME=self.folder), preexec_fn=mosquitto.die_with_parent,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (input_end, output_end, *ends):
            os.close(end)
        self.numbers, self.replies, self.console, self.session = itertools.count(1), queue.Queue(), [], None
        threading.Thread(target=self.read, daemon=True).start()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Log"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")  # of the processor, whoever else uses it
        self.size(width, height)
        self.call("Page.navigate", url=address)
        until("the page is loaded", lambda: self.evaluate("document.readyState === 'complete' && location.href !== 'about:blank'"))

    def read(self):
        with open(self.source, "rb", buffering=0) as source:
            rest = b""
            while data := source.read(65536):
                *messages, rest = (rest + data).split(b"\0")
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.replies.put(message)
                    elif message["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                        self.console.append(message["params"])

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": self.session} if self.session else {})}
        os.write(self.sink, json.dumps(message).encode() + b"\0")
        while (reply := self.replies.get(timeout=3 * PATIENCE))["id"] != number:
            pass
        assert "result" in reply, reply
        return reply["result"]

    def evaluate(self, code):
        reply = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def size(self, width, height, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        self.process.kill()
        self.process.wait()
        os.close(self.sink)
        shutil.rmtree(self.folder, ignore_errors=True)
