#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python programs and the real daemon: what they record arrives, exactly, whatever happens to either."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import support
from support import DaemonCase, app_env, app_of, ctl, run, start, until


class Recording(DaemonCase):
    def stages(self, app):
        rows = ctl(self.daemon, "stages", app)["stages"]
        return {row["stage"]: row for row in rows}

    # covers G0.3 G0.4 G0.6 G0.9 G1.1 G3.4
    def test_stages_and_frames_are_seen_by_edgeprofctl(self):
        code = """
import edgeprof, time
assert edgeprof.connect("eyes")
for n in range(40):
    with edgeprof.frame(n):
        with edgeprof.stage("capture"):
            time.sleep(0.001)
        with edgeprof.stage("infer@gpu", category="model"):
            with edgeprof.stage("any name! at all"):
                pass
        with edgeprof.stage("post", cpu_time=True, attributes={"boxes": n}):
            pass
@edgeprof.timed("decorated")
def f(x, *, y): return x + y
assert f(1, y=2) == 3
for i in range(5):
    edgeprof.begin("overlap", i)
for i in range(5):
    edgeprof.end("overlap", i)
edgeprof.tick(); edgeprof.mark("model loaded", size=12.5, tensors=[1, 2]); edgeprof.counter("drops", 2)
edgeprof.deadline("late", 1); edgeprof.deadline(None, 40)
with edgeprof.stage("late"): time.sleep(0.005)
with edgeprof.memory_scope("load"): pass
until_read = time.monotonic() + 10
while edgeprof.counts()["in_ring"] and time.monotonic() < until_read: time.sleep(0.01)
c = edgeprof.counts()
assert c["dropped"] == 0 and c["sent"] == c["received"] and c["attached"], c
print(c["sent"])
"""
        out, _ = run(code, app_env(self.daemon))
        app = until("the app ended", lambda: app_of(self.daemon, "eyes"))
        until("the app said bye", lambda: app_of(self.daemon, "eyes")["state"] == "ended")
        app = app_of(self.daemon, "eyes")
        self.assertEqual(app["invalid"], 0, app)
        self.assertEqual(app["received"], int(out))
        stages = self.stages("eyes")
        self.assertEqual(stages["capture"]["total_count"], 40)
        infer = next(row for name, row in stages.items() if name.startswith("infer"))
        self.assertGreaterEqual(stages["capture"]["min_ms"], 1.0)
        self.assertEqual(stages["any_name__at_all"]["total_count"], 40)
        self.assertEqual((stages["any_name__at_all"]["parent"], stages["any_name__at_all"]["depth"]), (infer["stage"], 1))
        self.assertEqual(stages["post"]["total_count"], 40)
        self.assertGreaterEqual(stages["post"]["cpu_ms"], 0)
        self.assertGreaterEqual(stages["post"]["process_cpu_ms"], 0)
        self.assertEqual((stages["late"]["deadline_ms"], stages["late"]["misses"]), (1, 1))
        self.assertEqual((stages["load"]["category"], stages["load"]["total_count"]), ("memory", 1))
        self.assertIn("rss_growth_total_bytes", stages["load"])
        self.assertEqual(stages["decorated"]["total_count"], 1)
        self.assertEqual(stages["overlap"]["total_count"], 5)
        self.assertEqual((infer["total_count"], infer["unit"], infer["category"]), (40, "gpu", "model"))
        frames = ctl(self.daemon, "frames", "eyes")["frames"][0]
        self.assertEqual(frames["total_count"], 41)
        self.assertEqual(frames["out_of_order"], 0)
        marks = [e for e in self.daemon.call("ListEvents")["events"] if e["subject"] == "eyes" and e["kind"] == "mark"]
        self.assertEqual([e["text"] for e in marks], ["model loaded"])
        mark = self.daemon.call("ListMarks", app="eyes")["marks"][0]
        self.assertEqual([(a["name"], a["value"]) for a in mark["attributes"]], [("size", 12.5), ("tensors", 1), ("tensors", 2)])
        self.assertTrue(1 << 20 < mark["rss_bytes"] <= mark["peak_rss_bytes"] < mark["vms_bytes"], mark)

    def test_a_program_without_a_file_is_python(self):
        run("import edgeprof; assert edgeprof.connect(); edgeprof.tick()", app_env(self.daemon))
        until("its name", lambda: app_of(self.daemon, "python"))

    def test_gauges_and_counters_are_metrics(self):
        code = """
import edgeprof, sys, threading
edgeprof.connect("values")
end = threading.Event()
def work():
    edgeprof.counter("drops", 2, unit="frames"); edgeprof.counter("drops")
    while not end.wait(0.02): edgeprof.gauge("depth", 3.5, unit="percent")
t = threading.Thread(target=work); t.start()
sys.stdin.readline(); end.set(); t.join()
"""
        with start(code, app_env(self.daemon), stdin=subprocess.PIPE) as app:
            until("the counter", lambda: (self.daemon.metric("counter/values/drops") or {}).get("value") == 3)
            until("the gauge", lambda: (self.daemon.metric("gauge/values/depth") or {}).get("value") == 3.5)
            self.assertEqual(self.daemon.metric("gauge/values/depth")["unit"], "percent")
            app.communicate("\n", timeout=60)
            self.assertEqual(app.returncode, 0)

    # covers G0.7
    def test_a_body_that_raises_is_recorded_all_the_same(self):
        code = """
import edgeprof
edgeprof.connect("raises")
for kind in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit):
    for manager in (edgeprof.stage("s"), edgeprof.stage("s"), edgeprof.frame(), edgeprof.memory_scope("m"),
                    edgeprof.stage("s", cpu_time=True), edgeprof.stage_timer("t", {})):
        try:
            with manager:
                raise kind("x")
        except kind:
            pass
        else:
            raise AssertionError("the error was swallowed")
with edgeprof.stage("outer"):
    try:
        edgeprof.stage("inner").__enter__()   # never ended: truncated by the outer's end
    finally:
        pass
with edgeprof.stage("after"): pass
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "raises") or {}).get("state") == "ended")
        self.assertEqual(app_of(self.daemon, "raises")["invalid"], 0)
        counts = {name: row["total_count"] for name, row in self.stages("raises").items()}
        self.assertEqual(counts, {"s": 12, "m": 4, "t": 4, "outer": 1, "after": 1})
        failed = {name: row["failed"] for name, row in self.stages("raises").items()}
        self.assertEqual(failed, {"s": 9, "m": 3, "t": 3, "outer": 0, "after": 0})  # but for GeneratorExit

    def test_threads_recursion_and_tasks_keep_their_own_times(self):
        code = """
import asyncio, edgeprof, threading, time
edgeprof.connect("tangle")
hoisted = edgeprof.stage("hoisted")
def work():
    for _ in range(300):
        with hoisted:
            with edgeprof.stage("own"):
                with edgeprof.stage("own"):
                    pass
            with hoisted: pass
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
def recurse(n):
    with edgeprof.stage("deep"):
        if n: recurse(n - 1)
recurse(40)
async def task(delay):
    with edgeprof.stage("task%d" % delay):
        with edgeprof.stage("shared"):
            await asyncio.sleep(delay / 1000)
async def tasks(): await asyncio.gather(task(10), task(60), task(30))
asyncio.run(tasks()); asyncio.run(tasks())
def generator():
    with edgeprof.stage("generator"):
        yield 1
g = generator(); next(g)
t = threading.Thread(target=g.close); t.start(); t.join()   # ended by another thread
with edgeprof.stage("last"): pass
deadline = time.monotonic() + 10
while edgeprof.counts()["in_ring"] and time.monotonic() < deadline: time.sleep(0.01)
c = edgeprof.counts()
assert c["dropped"] == 0 and c["sent"] == 8*300*4 + 41 + 12 + 2, c
"""
        run(code, app_env(self.daemon, EDGEPROF_MAPPING_SIZE="1048576"))
        until("the app ended", lambda: (app_of(self.daemon, "tangle") or {}).get("state") == "ended")
        app = app_of(self.daemon, "tangle")
        self.assertEqual((app["invalid"], app["dropped"]), (0, 0), app)
        stages = self.stages("tangle")
        counts = {name: row["total_count"] for name, row in stages.items()}
        self.assertEqual(counts["hoisted"], 4800)
        self.assertEqual(counts["own"], 4800)
        self.assertEqual(counts["deep"], 41)
        for delay in (10, 30, 60):
            self.assertEqual(counts["task%d" % delay], 2)
            self.assertGreaterEqual(stages["task%d" % delay]["min_ms"], delay - 1)
        self.assertGreaterEqual(stages["shared"]["min_ms"], 9)
        self.assertGreaterEqual(stages["shared"]["max_ms"], 59)
        self.assertEqual(counts["generator"], 1)

    def test_steps_of_decorated_generators_are_executions(self):
        code = """
import asyncio, edgeprof, functools, inspect, time
edgeprof.connect("steps")
def body(n):
    got = []
    for i in range(n):
        try: got.append((yield i))
        except KeyError: got.append("key")
        except GeneratorExit: got.append("closed"); ended.append(got); raise
    return got
ended = []
plain, timed = body, edgeprof.timed("step")(body)
assert inspect.isgeneratorfunction(timed) and timed.__name__ == "body"
for item in timed(3): time.sleep(0.02)             # 4 executions, none of which is the consumer's
def uses(make):
    g = make(4)
    yield next(g), g.send("a"), g.throw(KeyError("k")), next(g)  # 4
    try: g.send("b")                                             # 1
    except StopIteration as end: yield end.value
    g = make(2); next(g); g.close(); yield ended.pop()           # 1: nothing is executed by close()
    g = make(2); next(g)                                         # 2, of which one fails
    try: g.throw(ValueError("v"))
    except ValueError as error: yield str(error)
    def around(): return (yield from make(1))
    yield list(around()), list(make(0))                          # 2 + 1
assert list(uses(timed)) == list(uses(plain)), list(uses(timed))
@edgeprof.timed("wait")
async def waits(n):
    try:
        for i in range(n):
            await asyncio.sleep(0.01)
            if (yield i) == "end": return
    finally: ended.append(n)
@edgeprof.timed("first")
async def first():
    async for item in waits(7): return item
async def main():
    assert [i async for i in waits(3)] == [0, 1, 2]              # 4
    a = waits(4); assert await a.asend(None) == 0                # 2
    try: await a.asend("end")
    except StopAsyncIteration: pass
    a = waits(5); await a.asend(None); await a.aclose()          # 1
    a = waits(6); await a.asend(None)                            # 2, of which one fails
    try: await a.athrow(ValueError("v"))
    except ValueError: pass
    assert [await first() for _ in range(2)] == [0, 0]           # 2
    while ended != [3, 4, 5, 6, 7, 7]: await asyncio.sleep(0.01) # the loop closes those
asyncio.run(main())
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "steps") or {}).get("state") == "ended")
        stages = self.stages("steps")
        self.assertEqual({n: (s["total_count"], s["failed"]) for n, s in stages.items()},
                         {"step": (15, 1), "wait": (11, 1), "first": (2, 0)})
        self.assertGreaterEqual(stages["wait"]["mean_ms"], 5)

    def test_tasks_end_in_any_order(self):
        code = """
import asyncio, edgeprof, threading
edgeprof.connect("overlap")
async def task(delay):
    with edgeprof.stage("around"), edgeprof.frame(delay):
        await asyncio.sleep(delay / 1000)
        with edgeprof.stage("task%d" % delay): pass
async def tasks(): await asyncio.gather(task(10), task(60))
asyncio.run(tasks())
with edgeprof.stage("after"): pass
def generator():
    with edgeprof.stage("generator"): yield 1
for _ in range(40):  # ended by another thread
    g = generator(); next(g)
    t = threading.Thread(target=g.close); t.start(); t.join()
with edgeprof.frame(7):
    with edgeprof.frame(8): pass
    with edgeprof.stage("outer"): pass
with edgeprof.stage("after"): pass
a, b, c, d = map(edgeprof.stage, "abcd")
a.__enter__(), b.__enter__(), a.__exit__(None, None, None)
c.__enter__(), d.__enter__(), b.__exit__(None, None, None)  # d stands where b stood
with edgeprof.stage("inside"): pass
d.__exit__(None, None, None), c.__exit__(None, None, None)
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "overlap") or {}).get("state") == "ended")
        found = []
        with contextlib.closing(self.daemon.client()) as client:
            for reply in client.stream("ExportTrace", app="overlap"):
                records = reply.get("records", {"name": []})
                found += [(reply["names"][name], records["frame"][i], records["depth"][i]) for i, name in enumerate(records["name"])
                          if records["kind"][i] == "complete"]
        self.assertEqual([row for row in found if row[0] == "after"], [("after", "", 0)] * 2, found)
        self.assertIn(("outer", "7", 0), found)
        self.assertIn(("inside", "", 2), found)
        self.assertIn(("task60", "60"), [row[:2] for row in found])

    def test_interleaved_tasks_have_frames_and_stages_of_their_own(self):
        code = """
import asyncio, edgeprof, sys, time
edgeprof.connect("tasks")
with edgeprof.stage("a0"), edgeprof.stage("a1"): pass  # known before the loop runs
async def part(name):
    with edgeprof.stage("%s1" % name):
        await asyncio.sleep(0.001)
        with edgeprof.stage("%s2" % name, attributes={"n": 1}): await asyncio.sleep(0.001)
def model(name):
    with edgeprof.stage(name + "1"): pass
async def late(name, ended):
    await ended.wait()  # the frame that it was begun in has ended
    with edgeprof.stage(name): pass
async def task(name, k):
    ended = asyncio.Event()
    for i in range(20):
        with edgeprof.frame(k * 1000 + i):
            with edgeprof.stage(name + "0"):
                await asyncio.sleep(0.002)
                if i == 0: after = asyncio.create_task(late("late" + name, ended))
                await asyncio.gather(part(name + "x"), part(name + "y"))
            if sys.version_info >= (3, 9):
                with edgeprof.stage(name + "0"): await asyncio.to_thread(model, name)
    ended.set()
    await after
async def main(): await asyncio.gather(task("a", 1), task("b", 2), task("c", 3))
time.sleep(0.02)
asyncio.run(main())
with edgeprof.stage("plain"): pass
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "tasks") or {}).get("state") == "ended")
        total = 0
        with contextlib.closing(self.daemon.client()) as client:
            for reply in client.stream("ExportTrace", app="tasks"):
                records = reply.get("records", {"name": []})
                for i, name in enumerate(records["name"]):
                    name, frame, depth = reply["names"][name], records["frame"][i], records["depth"][i]
                    if records["kind"][i] == "complete" and name[-1].isdigit() and frame:
                        self.assertEqual((int(frame) // 1000, depth), ("abc".index(name[0]) + 1, int(name[-1])), name)
                        total += 1
                    elif records["kind"][i] == "complete" and name not in ("a0", "a1"):
                        self.assertEqual((frame, depth), ("", 0), name)
        self.assertGreaterEqual(total, 3 * 20 * 5)
        frames = self.daemon.call("GetFrames", app="tasks")["frames"][0]
        self.assertEqual(frames["unfinished"], 0, frames)
        self.assertTrue(self.daemon.call("ListStages", app="tasks")["totals"][0]["total_is_sequential"])

    def test_frames_of_children_are_not_taken_for_each_other_s(self):
        code = """
import edgeprof, multiprocessing, sys
edgeprof.connect("family" + sys.argv[1])
def work(_):
    ids = []
    for _ in range(3):
        with edgeprof.frame() as frame: ids.append(frame.id)
    return ids
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    assert work(0) == [0, 1, 2]
    with multiprocessing.Pool(1) as a, multiprocessing.Pool(1) as b:
        (first,), (second,) = a.map(work, [0]), b.map(work, [0])
    assert work(0) == [3, 4, 5]
    for ids in first, second:
        assert ids == [ids[0], ids[0] + 1, ids[0] + 2] and ids[0] % 10**9 == 0 and ids[0] > 0, ids
    assert first != second, first
"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "family.py")
            with open(path, "w") as file:
                file.write(code)
            for method in ("fork", "spawn", "forkserver"):
                subprocess.run([sys.executable, path, method], env=app_env(self.daemon), check=True, timeout=120)

    def test_threads_that_come_and_go_need_no_more_slots(self):
        code = """
import edgeprof, threading, time
edgeprof.connect("churn")
def work():
    for _ in range(10):
        with edgeprof.stage("short"): pass
for _ in range(1000):
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    while edgeprof.counts()["in_ring"] > 200: time.sleep(0.002)
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
c = edgeprof.counts()
assert c["sent"] == 20000 and c["dropped"] == 0, c
"""
        run(code, app_env(self.daemon, EDGEPROF_MAPPING_SIZE="65536"))
        until("the app ended", lambda: (app_of(self.daemon, "churn") or {}).get("state") == "ended")
        app = app_of(self.daemon, "churn")
        self.assertEqual((app["received"], app["invalid"]), (20000, 0), app)

    def test_a_forked_child_is_a_process_of_its_own(self):
        code = """
import edgeprof, json, multiprocessing, os, time
edgeprof.connect("forks")
def settle():
    while edgeprof.counts()["in_ring"]: time.sleep(0.01)
def child():
    assert edgeprof.counts()["sent"] == 0, edgeprof.counts()
    for _ in range(50):
        with edgeprof.stage("child"): pass
    settle()
    assert edgeprof.counts()["sent"] == 50 and edgeprof.counts()["attached"], edgeprof.counts()
for _ in range(70):
    with edgeprof.stage("parent"): pass
with edgeprof.stage("around"), edgeprof.stage("odd", cpu_time=True):
    pid = os.fork()
    if pid == 0:
        child()
        try:
            raise SystemExit(0)   # leaves the parent's stage: not the child's to end
        finally:
            pass
assert os.waitpid(pid, 0)[1] == 0
p = multiprocessing.get_context("fork").Process(target=child)
p.start(); p.join(); assert p.exitcode == 0
with edgeprof.stage("parent"): pass
settle()
assert edgeprof.counts()["sent"] == 74, edgeprof.counts()
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "forks") or {}).get("state") == "ended")
        counts = {name: row["total_count"] for name, row in self.stages("forks").items()}
        self.assertEqual(counts, {"parent": 71, "child": 100, "around": 1, "odd": 1})
        told = [e["text"] for e in self.daemon.call("ListEvents")["events"] if e["subject"] == "forks"]
        self.assertFalse([text for text in told if "died" in text], told)

    # covers G0.3
    def test_a_killed_program_leaves_its_last_words(self):
        code = """
import edgeprof, sys, time
edgeprof.connect("victim")
with edgeprof.stage("done"): pass
with edgeprof.frame(8841), edgeprof.stage("outer"), edgeprof.stage("infer"):
    print("inside", flush=True); time.sleep(100)
"""
        with start(code, app_env(self.daemon)) as app:
            self.assertEqual(app.stdout.readline(), "inside\n")
            open_stages = until("its open stages", lambda: app_of(self.daemon, "victim")["processes"][0]["open"])
            self.assertEqual([o["stage"] for o in open_stages], ["outer", "infer"])
            self.assertEqual([o["frame"] for o in open_stages], [8841, 8841])
            app.kill()
        until("its death", lambda: (app_of(self.daemon, "victim") or {}).get("state") not in ("running", "idle"))
        victim = app_of(self.daemon, "victim")
        self.assertEqual(victim["state"], "killed", victim)
        words = victim["last_words"]
        self.assertIn("infer", words)
        self.assertIn("8841", words)

    def test_a_full_ring_drops_the_newest_and_counts(self):
        code = """
import edgeprof, os, signal, sys, time
edgeprof.connect("full")
sys.stdin.readline()   # the daemon is stopped
for _ in range(20000):
    with edgeprof.stage("flood"): pass
c = edgeprof.counts()
assert c["sent"] == 20000 and c["received"] + c["in_ring"] + c["dropped"] == 20000, c
assert c["dropped"] > 10000 and c["received"] == 0, c
print(c["dropped"], flush=True)
sys.stdin.readline()   # it goes on
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
for _ in range(10):
    with edgeprof.stage("flood"): pass
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
c = edgeprof.counts()
assert c["sent"] == 20010 and c["received"] + c["dropped"] == 20010, c
print(c["dropped"], flush=True)
"""
        with start(code, app_env(self.daemon), stdin=subprocess.PIPE) as app:
            until("it is attached", lambda: app_of(self.daemon, "full"))
            os.kill(self.daemon.pid, signal.SIGSTOP)
            try:
                app.stdin.write("\n")
                app.stdin.flush()
                dropped = app.stdout.readline()
            finally:
                os.kill(self.daemon.pid, signal.SIGCONT)
            app.stdin.write("\n")
            app.stdin.flush()
            self.assertEqual(app.stdout.readline(), dropped)
            self.assertEqual(app.wait(60), 0)
        until("its end", lambda: app_of(self.daemon, "full")["state"] == "ended")
        app = app_of(self.daemon, "full")
        self.assertEqual(app["sent"], app["received"] + app["dropped"], app)
        self.assertEqual((app["dropped"], app["invalid"]), (int(dropped), 0))

    def test_a_signal_handler_inside_an_event_loses_nothing_uncounted(self):
        code = """
import edgeprof, signal, time
edgeprof.connect("signals")
tried = 0
def handler(*_):
    global tried
    with edgeprof.stage("handler"): pass
    edgeprof.tick()
    tried += 2
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
own, end = 0, time.monotonic() + 2
while time.monotonic() < end:
    with edgeprof.stage("body"):
        with edgeprof.stage("inner"): pass
    own += 2
    if own % 4000 == 0:
        while edgeprof.counts()["in_ring"] > 1000: time.sleep(0.001)
signal.setitimer(signal.ITIMER_REAL, 0)
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
c = edgeprof.counts()
assert tried > 100, tried
assert c["sent"] == own + tried and c["received"] + c["dropped"] == c["sent"], (c, own, tried)
assert c["received"] >= own, c
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "signals") or {}).get("state") == "ended")
        self.assertEqual(app_of(self.daemon, "signals")["invalid"], 0)

    def test_a_handler_that_raises_leaves_the_thread_able_to_record(self):
        code = """
import edgeprof, signal, time
edgeprof.connect("interrupted")
class Stop(BaseException): pass
def handler(*_): raise Stop
signal.signal(signal.SIGALRM, handler)
stops = 0
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003)
        while True:
            with edgeprof.stage("body"):
                with edgeprof.stage("inner"): pass
            if edgeprof.counts()["in_ring"] > 1000: time.sleep(0.01)
    except Stop:
        stops += 1
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
before = edgeprof.counts()
for _ in range(100):
    with edgeprof.stage("body"): pass
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
after = edgeprof.counts()
assert stops > 50, stops
assert after["received"] - before["received"] == 100, (before, after)
assert after["sent"] == after["received"] + after["dropped"], after
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "interrupted") or {}).get("state") == "ended")
        self.assertEqual(app_of(self.daemon, "interrupted")["invalid"], 0)

    def test_what_a_thread_leaves_open_is_not_around_the_next_one_s_stages(self):
        code = """
import edgeprof, threading, time
edgeprof.connect("left")
def leave():
    global kept
    kept = edgeprof.stage("open")
    kept.__enter__()
    with edgeprof.stage("inside"): pass
def work():
    with edgeprof.stage("infer"):
        with edgeprof.stage("conv"): pass
for _ in range(5):
    for job in (leave, work):  # each takes the slot that the one before has left
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()
        while edgeprof.counts()["in_ring"]: time.sleep(0.01)
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "left") or {}).get("state") == "ended")
        stages = self.stages("left")
        self.assertEqual({name: (row.get("parent"), row["total_count"]) for name, row in stages.items()},
                         {"inside": (None, 5), "infer": (None, 5), "conv": ("infer", 5)})

    def test_a_generator_that_is_closed_does_not_fail(self):
        code = """
import edgeprof
edgeprof.connect("closed")
def items():
    with edgeprof.frame(), edgeprof.stage("plain"), edgeprof.stage("detailed", cpu_time=True):
        with edgeprof.stage_timer("timer", {}), edgeprof.memory_scope("scope"):
            while True: yield 1
for _ in range(5):
    for item in items(): break
    g = items(); next(g)
    try: g.throw(ValueError)
    except ValueError: pass
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "closed") or {}).get("state") == "ended")
        self.assertEqual({name: (row["total_count"], row["failed"]) for name, row in self.stages("closed").items()},
                         {name: (10, 5) for name in ("plain", "detailed", "timer", "scope")})

    @unittest.skipIf(support.NATIVE, "the recorder in C runs no handler")
    def test_a_handler_that_raises_ahead_of_an_exit_leaves_nothing_around_the_next_stages(self):
        code = """
import edgeprof
edgeprof.connect("orphans")
def walk(n):
    with edgeprof.stage("body"):
        if n: walk(n - 1)
for _ in range(20):
    edgeprof.stage("body").__enter__()  # and nobody has it
    with edgeprof.stage("body"):
        with edgeprof.stage("inside"): pass
walk(3)
kept = edgeprof.stage("body")
kept.__enter__()
with edgeprof.stage("body"): pass
kept.__exit__(None, None, None)
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "orphans") or {}).get("state") == "ended")
        found = []
        with contextlib.closing(self.daemon.client()) as client:
            for reply in client.stream("ExportTrace", app="orphans"):
                records = reply.get("records", {"name": []})
                found += [(reply["names"][name], records["depth"][i]) for i, name in enumerate(records["name"])
                          if records["kind"][i] == "complete"]
        self.assertEqual(found, [("inside", 1), ("body", 0)] * 20 + [("body", d) for d in (3, 2, 1, 0, 1, 0)])

    @unittest.skipIf(support.NATIVE, "the recorder in C runs no handler")
    def test_a_handler_inside_a_begin_leaves_nothing_open(self):
        code = """
import edgeprof, edgeprof._scope as scope
from edgeprof._thread import current
edgeprof.connect("inside")
pack = scope.pack_open
def pack_and_handle(*args):
    pack(*args)
    scope.pack_open = pack
    with edgeprof.stage("handler"): pass
for _ in range(20):
    scope.pack_open = pack_and_handle
    try:
        with edgeprof.stage("body"): raise KeyError  # by the slow way
    except KeyError: pass
    assert current().depth == 0, current().depth
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "inside") or {}).get("state") == "ended")
        self.assertEqual({name: row["total_count"] for name, row in self.stages("inside").items()}, {"body": 20, "handler": 20})

    @unittest.skipIf(support.NATIVE, "the recorder in C runs no handler")
    def test_what_a_handler_raises_while_a_daemon_is_looked_for_reaches_the_program(self):
        code = """
import edgeprof, signal
from edgeprof._process import process
edgeprof.connect("looking")
class Stop(Exception): pass
class Handler:
    def on_alarm(self, *_): raise Stop
signal.signal(signal.SIGALRM, Handler().on_alarm)
alive, process.channel.alive = process.channel.alive, lambda: signal.raise_signal(signal.SIGALRM)
stops = 0
for _ in range(3):
    process.due = 0
    process.ring_gates()
    try:
        with edgeprof.stage("infer"): pass
    except Stop: stops += 1
process.channel.alive = alive
with edgeprof.stage("infer"): pass
assert stops == 3 and not process._incapable, stops
"""
        run(code, app_env(self.daemon))
        until("the app ended", lambda: (app_of(self.daemon, "looking") or {}).get("state") == "ended")
        self.assertEqual(app_of(self.daemon, "looking")["invalid"], 0)

    def test_late_destructors_do_not_notice(self):
        code = """
import edgeprof
edgeprof.connect("late")
with edgeprof.stage("known"): pass
class Late:
    def __del__(self, e=edgeprof.__dict__.copy()):
        with e["frame"](), e["stage"]("known"), e["stage"]("new"), e["stage"]("known", unit="gpu", attributes={"n": 1}): pass
        e["gauge"]("g", 1), e["counter"]("c"), e["mark"]("m", n=1), e["begin"]("b", 1), e["end"]("b", 1), e["tick"]()
        e["timed"]("t"), e["deadline"]("known", 1), e["advice"](), e["counts"]()
        print("late", flush=True)
late = Late()
if %r:
    import asyncio
    async def once():
        with edgeprof.stage("task"): pass
    asyncio.run(once())
"""
        for tasks in (False, True):
            self.assertEqual(run(code % tasks, app_env(self.daemon)), ("late\n", ""))

    def test_more_names_than_a_process_may_have_are_counted(self):
        code = """
import edgeprof, time
edgeprof.connect("names")
for i in range(1000):
    with edgeprof.stage("name%d" % i): pass
    edgeprof.gauge("gauge%d" % i, 1)
with edgeprof.stage("name3"): pass
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
c = edgeprof.counts()
assert c["sent"] == 2001 and c["received"] == 129 and c["dropped"] == 2001 - 129, c
"""
        run(code, app_env(self.daemon))

    def test_names_are_cleaned_and_told_apart(self):
        code = """
import edgeprof
edgeprof.connect("we\\u00efrd app/..")
for name in ("a b", "a_b", "...", "x" * 60, "x" * 61, "\\u00e9", "\\udcff", "a\\0b"):
    with edgeprof.stage(name): pass
"""
        run(code, app_env(self.daemon))
        until("the app", lambda: app_of(self.daemon, "we__rd_app_.."))
        until("its end", lambda: app_of(self.daemon, "we__rd_app_..")["state"] == "ended")
        names = set(self.stages("we__rd_app_.."))
        self.assertEqual(names, {"a_b", "a_b.2", "___", "x" * 48, "x" * 46 + ".2", "__", "_", "a_b.3"})


if __name__ == "__main__":
    support.main()
