#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python programs whose daemon is killed, comes late, or is not there at all."""
import json
import subprocess
import time
import unittest

import support
from support import Daemon, app_env, app_of, run, start, until


class Restarts(unittest.TestCase):
    def test_events_are_counted_exactly_across_kill_9_of_the_daemon(self):
        code = """
import edgeprof, json, sys, threading, time
edgeprof.connect("counted")
tried, stop = [0] * 4, threading.Event()
def work(n):
    while not stop.is_set() or tried[n] < 25000:
        with edgeprof.stage("s%d" % n): pass
        tried[n] += 1
        if tried[n] % 20 == 0: time.sleep(0.001)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
sys.stdin.readline()
stop.set()
for t in threads: t.join()
end, ticks = time.monotonic() + 20, 0
while time.monotonic() < end and edgeprof.counts()["in_ring"]:
    edgeprof.tick(); ticks += 1
    time.sleep(0.05)
print(json.dumps(dict(edgeprof.counts(), tried=sum(tried) + ticks)))
"""
        daemon = Daemon()
        try:
            daemon.start()
            with start(code, app_env(daemon), stdin=subprocess.PIPE) as app:
                until("it is attached", lambda: app_of(daemon, "counted"))
                for _ in range(6):
                    until("events flow", lambda: (app_of(daemon, "counted") or {}).get("received", 0) > 100)
                    daemon.kill()
                    daemon.start()
                counts = json.loads(app.communicate("\n", timeout=120)[0])
            self.assertEqual(counts["unattached"], 0, counts)
            self.assertGreaterEqual(counts["sent"], 100000, counts)
            self.assertEqual(counts["sent"], counts["tried"], counts)
            self.assertEqual(counts["sent"], counts["received"] + counts["dropped"] + counts["in_ring"], counts)
            self.assertLessEqual(counts["in_ring"], 1, counts)
            self.assertGreater(counts["received"], 10000, counts)
            app = until("the app as the last daemon saw it", lambda: app_of(daemon, "counted"))
            self.assertEqual(app["invalid"], 0, app)
            daemon.stop()
        finally:
            daemon.clean()

    def test_a_daemon_that_comes_later_is_found(self):
        code = """
import edgeprof, time
end = time.monotonic() + 30
with edgeprof.stage("around"):   # opened before there is a daemon
    for _ in range(20):
        with edgeprof.stage("tick"): pass
    print("alone", flush=True)
    while not edgeprof.counts()["attached"]:
        assert time.monotonic() < end
        with edgeprof.stage("tick"): time.sleep(0.01)
    print("attached", flush=True)
    time.sleep(1)
c = edgeprof.counts()
assert c["unattached"] > 10 and c["sent"] >= 1, c
"""
        daemon = Daemon()
        try:
            with start(code, app_env(daemon)) as app:
                self.assertEqual(app.stdout.readline(), "alone\n")
                daemon.start()
                self.assertEqual(app.stdout.readline(), "attached\n")
                name = until("the app", lambda: daemon.call("ListApps")["apps"])[0]["name"]
                until("the open stage", lambda: app_of(daemon, name)["processes"][0]["open"])
                self.assertEqual(app_of(daemon, name)["processes"][0]["open"][0]["stage"], "around")
                self.assertEqual(app.wait(60), 0)
            daemon.stop()
        finally:
            daemon.clean()


class NoDaemon(unittest.TestCase):
    # covers G0.7
    def test_nothing_is_noticed_without_a_daemon(self):
        code = """
import edgeprof, os
before = set(os.listdir("/proc/self/fd"))
assert edgeprof.connect("alone") is False
for _ in range(1000):
    with edgeprof.frame(), edgeprof.stage("s"): pass
edgeprof.mark("m"); edgeprof.gauge("g", 1.5); edgeprof.counter("c", 2)
edgeprof.begin("x", 1); edgeprof.end("x", 1); edgeprof.tick()
c = edgeprof.counts()
assert c["sent"] == 0 and c["unattached"] == 2006 and not c["attached"], c
edgeprof.deadline("s", 5)
assert set(os.listdir("/proc/self/fd")) == before
"""
        out, err = run(code, app_env())
        self.assertEqual((out, err), ("", ""))

    # covers G0.7
    def test_print_tells_every_stage(self):
        code = """
import edgeprof
for _ in range(3):
    with edgeprof.stage("infer"): pass
with edgeprof.stage("once", cpu_time=True): pass
with edgeprof.stage_timer("kept", {}): pass
with edgeprof.memory_scope("load"): pass
"""
        out, err = run(code, app_env(EDGEPROF_PRINT="1"))
        self.assertEqual(out, "")
        lines = err.splitlines()
        self.assertEqual(len(lines), 6, err)
        for line, name in zip(lines, ("infer", "infer", "infer", "once", "kept", "load")):
            self.assertRegex(line, r"^\[%s\] \d+\.\d\dms$" % name)

    def test_disabled_is_silent_and_attaches_nowhere(self):
        with Daemon() as daemon:
            code = """
import edgeprof
with edgeprof.stage("s") as s: pass
with edgeprof.stage("s"):
    with edgeprof.stage("s"), edgeprof.stage("s", cpu_time=True): pass
assert edgeprof.connect() is False
assert edgeprof.counts()["unattached"] == 0
"""
            out, err = run(code, app_env(daemon, EDGEPROF_DISABLE="1", EDGEPROF_PRINT="1"))
            self.assertEqual((out, err), ("", ""))
            self.assertEqual(daemon.call("ListApps")["apps"], [])

    @unittest.skipIf(support.NATIVE, "Python's memfd_create, which the recorder in C does not call")
    def test_a_system_without_memfd_runs_without_recording(self):
        with Daemon() as daemon:
            code = """
import os
del os.memfd_create
import edgeprof
edgeprof.connect("old")
with edgeprof.stage("s"): pass
with edgeprof.stage("s"): pass
c = edgeprof.counts()
assert c["sent"] == 0 and c["unattached"] == 2, c
"""
            out, err = run(code, app_env(daemon))
            self.assertEqual((out, err), ("", ""))

    def test_closed_descriptors_are_left_alone(self):
        with Daemon() as daemon:
            code = """
import edgeprof, os, time
edgeprof.connect("closer")
with edgeprof.stage("s"): pass
os.closerange(3, 64)
files = [open("/dev/null", "wb") for _ in range(16)]
end = time.monotonic() + 2.5
while time.monotonic() < end:
    with edgeprof.stage("s"): time.sleep(0.05)
for f in files: f.write(b"x"); f.close()   # EBADF if one of ours had been closed
os._exit(0)
"""
            run(code, app_env(daemon))


if __name__ == "__main__":
    support.main()
