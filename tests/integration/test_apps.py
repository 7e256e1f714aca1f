#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What apps tell beside their stages, and what is told of them: marks with memory, gauges, counters,
attributes, hangs, last words, forks and containers, the limits between users."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from harness import BUILD, WRITER, Daemon, program, run_tests, until
from reckoning import Script

ACTOR = BUILD / "tests" / "integration" / "app-actor"


class Actor:
    """An instrumented program that obeys, line by line."""

    def __init__(self, daemon, name="cam", prefix=(), **options):
        self.process = subprocess.Popen([*prefix, str(ACTOR), name], env=daemon.env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options)

    def do(self, *lines):
        answer = None
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().split()
        return answer

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(20) == 0
        self.process.stdout.close()

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait(20)
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            if kind is None:
                self.end()
            else:
                self.kill()


def app_of(daemon, name="cam"):
    return next((a for a in daemon.call("ListApps")["apps"] if a["name"] == name), None)


def open_stages(daemon):
    """Of each process of the app."""
    return {p["pid"]: [o["stage"] for o in p["open"]] for p in app_of(daemon)["processes"]}


def events(daemon):
    return [e["text"] for e in daemon.call("ListEvents", limit=1000)["events"]]


def attached(daemon, actor, name="cam"):
    """The first event of a second looks for a daemon."""
    def there():
        actor.do("runs hello 1 0")
        app = app_of(daemon, name)
        return app if app and app["processes"] else None
    return until(f"{name} is attached", there, pause=0.1)


# covers G0.5 G0.20 G1.11
def test_the_name_that_an_app_gave_itself_finds_it():
    name = 'my "app" é'
    with Daemon() as daemon, Actor(daemon, name) as actor:
        cleaned = "my__app____"
        attached(daemon, actor, cleaned)
        until("its stage", lambda: daemon.call("ListStages", app=name)["stages"])
        until("its process", lambda: daemon.metric(f"process/{cleaned}/rss"))
        card = daemon.ctl("report", name, "--card")
        assert card.returncode == 0 and "App " in card.stdout and "\nPID " in card.stdout and ", 1 thread," in card.stdout, card
        report = daemon.ctl("report", name, "--format", "json")
        assert report.returncode == 0 and '"hello"' in report.stdout, report
        trace = daemon.ctl("trace", name, "--format", "json", "--sensors", "")
        assert trace.returncode == 0 and '"hello"' in trace.stdout, trace


# covers G0.8 G0.9 G0.10
def test_a_mistyped_name_is_answered_by_the_one_that_was_meant():
    with Daemon() as daemon, Script(daemon, "camera") as script:
        script.tell([f"0 complete {time.monotonic_ns()} infer 1000 1"])
        until("its metrics", lambda: daemon.metric("stage/camera/infer/p95_ms"))
        daemon.call("StartSession", name="night", seconds=0.01)
        until("it ended", lambda: daemon.call("ListSessions")["sessions"][0]["state"] == "finished")
        for words, meant in {
            ("stages", "camra"): "there is no app 'camra'; did you mean 'camera'?",
            ("diagnose", "Camera2"): "there is no app 'Camera2'; did you mean 'camera'?",
            ("frames", "cam"): "there is no app 'cam'; did you mean 'camera'?",
            ("frames", "camear"): "there is no app 'camear'; did you mean 'camera'?",
            ("rules", "cup"): "no alert rule matches 'cup'; did you mean 'cpu'?",
            ("frames", "other"): "there is no app 'other'; 'edgeprofctl apps' lists them",
            ("report", "camrea", "-o", "x.html"): "no session, recording, app or file is named 'camrea'; did you mean 'camera'?",
            ("sensors", "memroy"): "there is no metric 'memroy'; did you mean 'memory'?",
            ("history", "stage/camera/infr/p95_ms"):
                "there is no metric 'stage/camera/infr/p95_ms'; did you mean 'stage/camera/infer/p95_ms'?",
            ("history", "nothing_of_the_kind"):
                "there is no metric 'nothing_of_the_kind'; 'edgeprofctl sensors --all' lists them",
            ("source", "disable", "porcess"): "there is no source 'porcess'; did you mean 'process'?",
            ("silence", "tempreature", "1h"): "there is no alert rule 'tempreature'; did you mean 'temperature'?",
            ("alerts", "tempreature"): "no alert or rule matches 'tempreature'; did you mean 'temperature'?",
            ("alerts", "--all", "cpu:x"): "no alert or rule matches 'cpu:x'; did you mean 'cpu'?",
            ("alerts", "--recent", "x*"): "no alert or rule matches 'x*'; 'edgeprofctl rules' lists them",
            ("rules", "memroy"): "no alert rule matches 'memroy'; did you mean 'memory'?",
            ("session", "show", "one"): "there is no session 'one'; 'edgeprofctl session list' lists them",
            ("session", "show", "nigth"): "there is no session 'nigth'; did you mean 'night'?",
            ("compare", "night", "nigth"):
                "no session, recording, app or file is named 'nigth'; did you mean 'night'?",
        }.items():
            done = daemon.ctl(*words)
            assert (done.returncode, done.stderr) == (2, f"edgeprofctl: {meant}\n"), (words, done)
            assert daemon.ctl("-j", *words).stderr == done.stderr, words
        for words in (["temperature"], ["--recent", "temperature"], ["--all", "cpu"], ["cpu/utilization"]):
            done = daemon.ctl("alerts", *words)  # rules without anything to watch, and one that is fine
            assert (done.returncode, done.stderr) == (0, ""), (words, done)


def test_pair_of_marks_around_a_load_tells_its_memory():
    with Daemon() as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        until("the system's memory", lambda: (daemon.metric("memory/total") or {}).get("value"))
        actor.do("mark before_model_load", "alloc 64", "loaded after_model_load 13.5")
        marks = until("two marks", lambda: (m := daemon.call("ListMarks", app="cam")["marks"]) and len(m) == 2 and m[1]["attributes"] and m)
        before, after = marks
        assert before["label"].replace("_", " ") == "before model load" and "rss_delta_bytes" not in before, before
        assert after["rss_delta_bytes"] == after["rss_bytes"] - before["rss_bytes"], after
        assert 64 <= after["runtime_memory_mb"] < 80, after
        assert after["peak_rss_bytes"] >= after["rss_bytes"] and after["vms_bytes"] > after["rss_bytes"], after
        assert after["memory_source"] == "app", after
        assert [(a["name"], a["value"]) for a in after["attributes"]] == [
            ("file_size_mb", 13.5), ("num_threads", 4), ("input_tensor_sizes_kb", 588), ("input_tensor_sizes_kb", 4)]
        total, available = after["system_total_bytes"], after["system_available_bytes"]
        assert abs(after["system_percent_used"] - (total - available) / total * 100) < 0.1, after
        assert 0 <= after["system_memory_delay_ms"] < 5000, after
        text = daemon.ctl("marks", "cam").stdout
        line = re.compile(r"^\[after[ _]model[ _]load\] RSS: [0-9.]+MB \(peak: [0-9.]+MB\) \| System: [0-9]+% used \([0-9]+MB free\)$", re.M)
        assert line.search(text), text
        assert "file_size_mb 13.5" in text and re.search(r"RSS \+(6[4-9]|7\d)\.", text), text
        assert daemon.call("ListStages", app="cam")["stages"][0]["stage"] == "hello"


# covers G0.9
def test_mark_by_hand_is_in_the_list_with_the_sampled_memory():
    with Daemon("[sampling]\ninterval = 200ms\n") as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        until("its process", lambda: (daemon.metric("process/cam/rss") or {}).get("value"))
        assert daemon.ctl("mark", "by hand", "--app", "cam").returncode == 0
        assert daemon.ctl("mark", "again", "--app", "cam").returncode == 0
        assert daemon.ctl("mark", "of nobody").returncode == 0
        assert daemon.ctl("mark", "lost", "--app", "nobody").returncode == 0
        hand, again = daemon.call("ListMarks", app="cam")["marks"]
        assert hand["label"] == "by hand" and hand["memory_source"] == "sample", hand
        assert 0 <= hand["memory_age_ms"] < 5000 and hand["rss_bytes"] > 1 << 20, hand
        assert "rss_delta_bytes" in again and again["since_previous_ms"] > 0, again
        everything = daemon.call("ListMarks")["marks"]
        assert [m["label"] for m in everything] == ["by hand", "again", "of nobody", "lost"], everything
        assert everything[2]["memory_reason"] == "the mark is of no app", everything[2]
        assert everything[3]["memory_reason"] == "no app of this name has attached", everything[3]
        assert "[of nobody] RSS: - (peak: -) | System: " in daemon.ctl("marks").stdout
        empty = daemon.ctl("marks", "nothing")
        assert empty.returncode == 2 and "'edgeprofctl marks' lists all" in empty.stderr, empty
        for label in ("", "x" * 201):
            wrong = daemon.ctl("mark", label)
            assert wrong.returncode == 64 and "1 to 200 bytes" in wrong.stderr, wrong
        serial = daemon.call("ListEvents", limit=1)["last_serial"]
        assert everything[3]["serial"] <= serial


# covers G3.10
def test_gauges_counters_and_attributes():
    with Daemon() as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        actor.do("gauge board_temperature 41.5", "counter frames_in 2", "counter frames_in 3", "gauge bad nan",
                 "runs infer 1 0", "attribute infer partitions 28", "attribute infer partitions 18")
        stage = until("its attributes", lambda: next((s for s in daemon.call("ListStages", app="cam")["stages"] if s.get("attributes")), None))
        assert stage["stage"] == "infer" and stage["attributes"] == [
            {"name": "partitions", "count": 2, "last": 18, "mean": 23, "min": 18, "max": 28}], stage
        wide = daemon.ctl("stages", "cam", "--wide").stdout
        assert re.search(r"^infer +partitions +2 +18 +23 +18 +28$", wide, re.M), wide
        gauge = until("the gauge", lambda: (m := daemon.metric("gauge/cam/board_temperature")) and m["value"] is not None and m)
        assert gauge["value"] == 41.5 and gauge["unit"] == "celsius", gauge
        assert until("the counter", lambda: (daemon.metric("counter/cam/frames_in") or {}).get("value") == 5)
        gauge = until("the gauge grows old", lambda: (m := daemon.metric("gauge/cam/board_temperature"))["age_ms"] > 2100 and m)
        assert gauge["value"] == 41.5, gauge
        actor.do("gauge board_temperature 43")
        gauge = until("it is set again", lambda: (m := daemon.metric("gauge/cam/board_temperature"))["value"] == 43 and m)
        assert gauge["age_ms"] < 2100, gauge
        app = app_of(daemon)
        assert app["values"] == 2 and app["values_refused"] == 0, app
        assert daemon.metric("app/cam/processes")["value"] == 1
        assert daemon.metric("app/cam/hung")["value"] == 0
        for number in range(128):
            actor.do(f"gauge g{number} 1")
        app = until("refusals", lambda: (a := app_of(daemon)) and a["values_refused"] > 0 and a)
        assert app["values"] == 64, app


def test_more_gauges_than_metrics_are_all_reachable_or_counted():
    apps, each = 32, 70  # of either kind
    offered = 2 * apps * each

    def names():
        return [m["name"] for reply in client.stream("ListMetrics", glob="gauge/**") for m in reply["metrics"]]

    def total(rows, key):
        return sum(row[key] for row in rows)

    with Daemon("[statsd]\nenabled = yes\n") as daemon, contextlib.ExitStack() as stack:
        actors = [stack.enter_context(Actor(daemon, f"own{i}")) for i in range(apps)]
        for i, actor in enumerate(actors):
            attached(daemon, actor, f"own{i}")
        out = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        for i, actor in enumerate(actors):
            actor.do(*(f"gauge g{number} 1" for number in range(each)))
            out.sendto("\n".join(f"g{number}:1|g|#app:sent{i}" for number in range(each)).encode(), str(daemon.run_dir / "statsd"))
        client = stack.enter_context(contextlib.closing(daemon.client()))
        rows = until("all arrived", lambda: (
            lambda rows: total(rows, "values") + total(rows, "values_refused") == offered and rows)(daemon.call("ListApps")["apps"]))
        reachable = len(names())
        own = daemon.call("GetSelf")
        assert reachable == total(rows, "values") and reachable < offered, (reachable, rows)
        assert own["metrics"] >= own["metrics_max"] == 4096 and own["statsd_refused"] == 0, own
        assert reachable + own["metrics_refused"] >= offered, (reachable, own)  # what else comes finds no room, either
        for actor in actors[:8]:
            actor.end()
        with Actor(daemon, "late") as late:  # what ended makes room
            attached(daemon, late, "late")
            late.do(*(f"gauge g{number} 1" for number in range(each)))
            until("its gauges", lambda: app_of(daemon, "late")["values"] == 64)


def test_memory_of_anothers_app_is_not_told():
    if os.geteuid() != 0:
        return "needs root to become somebody else"
    with Daemon() as daemon, Actor(daemon) as actor:
        os.chmod(daemon.dir, 0o755)
        attached(daemon, actor)
        actor.do("loaded secret 1")
        until("the mark", lambda: daemon.call("ListMarks")["marks"])
        child = os.fork()
        if child == 0:  # an ordinary user
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            marks = daemon.call("ListMarks")["marks"]
            fine = len(marks) == 1 and "rss_bytes" not in marks[0] and marks[0]["memory_reason"] == "the app is another user's"
            os._exit(0 if fine and not app_of(daemon)["processes"] else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_stopped_process_hangs_and_goes_on():
    with Daemon() as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        actor.do("runs infer 40 100", "frame 8841", "open infer")
        until("the open stage", lambda: app_of(daemon)["processes"][0]["open"])
        actor.process.send_signal(signal.SIGSTOP)
        until("the hang", lambda: any(re.fullmatch(r"hangs in `infer` for [0-9.]+ s, frame 8841", e) for e in events(daemon)))
        app = until("its row", lambda: (a := app_of(daemon))["hung"] and a)
        assert app["hangs"] == 1 and app["state"] == "hung", app
        until("the metric", lambda: daemon.metric("app/cam/hung")["value"] == 1)
        assert re.search(r"^cam\s+hung", daemon.ctl("apps").stdout, re.M)
        actor.process.send_signal(signal.SIGCONT)
        actor.do("close")
        until("it went on", lambda: any(e.startswith("went on in `infer` after ") for e in events(daemon)))
        assert not app_of(daemon)["hung"]
        assert len([e for e in events(daemon) if e.startswith("hangs")]) == 1


def test_exit_exec_and_kill_are_told_apart():
    with Daemon() as daemon:
        with Actor(daemon) as actor:
            attached(daemon, actor)
            actor.end()
        until("it ended", lambda: "ended" in events(daemon))
        actor = Actor(daemon)
        attached(daemon, actor)
        actor.do("frame 8841", "open total", "open infer")
        actor.kill()
        until("its last words", lambda: "died in `infer`, frame 8841" in events(daemon))
        app = app_of(daemon)
        assert app["state"] == "killed" and app["last_words"] == "died in `infer`, frame 8841", app
        with Actor(daemon, "first") as actor:
            app = attached(daemon, actor, "first")
            pid = app["processes"][0]["pid"]
            actor.process.stdin.write(f"exec {ACTOR} second\n")
            actor.process.stdin.flush()
            until("it is another program", lambda: b"second" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
            app = attached(daemon, actor, "second")
            assert app["processes"][0]["pid"] == pid
            until("the first has no process", lambda: not app_of(daemon, "first")["processes"])
            assert "last_words" not in app_of(daemon, "first")


def test_forked_child_is_a_process_of_its_own():
    with Daemon() as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        actor.do("open infer")
        child = int(actor.do("fork")[0])
        # the child shows itself by a short stage of its own
        until("the parent's stage is the parent's", lambda: open_stages(daemon) == {actor.process.pid: ["infer"], child: []})
        os.kill(child, signal.SIGKILL)
        until("the child's end", lambda: len(app_of(daemon)["processes"]) == 1)
        until("it is told", lambda: "died" in events(daemon))
        actor.do("close")


def test_numbers_of_a_container_are_mapped():
    unshare = shutil.which("unshare")
    if not unshare or subprocess.run([unshare, "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        return "no process namespace can be made here"
    with Daemon() as daemon:
        actor = Actor(daemon, prefix=[unshare, "--pid", "--fork", "--kill-child"])
        with actor:
            process = attached(daemon, actor)["processes"][0]
            assert process["ns_pid"] == 1 and process["pid"] > 1, process
            assert pathlib.Path(f"/proc/{process['pid']}/comm").read_text() == "app-actor\n"
            actor.do("thread infer", "open total")
            process = until("both threads are known", lambda: (p := app_of(daemon)["processes"][0]) and len(p["open"]) == 2 and all("tid" in o for o in p["open"]) and p)
            tids = set(map(int, os.listdir(f"/proc/{process['pid']}/task")))
            opened = {o["stage"]: o for o in process["open"]}
            assert opened["total"]["tid"] == process["pid"] and opened["total"]["ns_tid"] == 1, opened
            assert opened["infer"]["tid"] in tids - {process["pid"]} and opened["infer"]["ns_tid"] == 2, opened
            assert f"{process['pid']}/1" in daemon.ctl("apps").stdout


def test_sixty_four_apps_of_one_user_fit():
    with Daemon() as daemon, contextlib.ExitStack() as stack:
        for number in range(64):
            stack.enter_context(program([WRITER, f"app{number}", "100000000", "1", "100000", "0"], daemon.env,
                                        stdout=subprocess.DEVNULL))
        until("all of them", lambda: daemon.call("GetSelf")["attaches"] + daemon.call("GetSelf")["attaches_refused"] >= 64)
        assert daemon.call("GetSelf")["attaches_refused"] == 0


def test_stages_beyond_the_limit_are_named_in_the_status():
    with Daemon() as daemon, Actor(daemon, "first") as first, Actor(daemon, "second") as second, Actor(daemon, "third") as third:
        for actor, name in ((first, "first"), (second, "second"), (third, "third")):
            attached(daemon, actor, name)
            if name == "third":  # new names are taken by turns
                until("the others' stages are there", lambda: daemon.call("GetSelf")["stages"] >= 252)
            for number in range(126 if name != "third" else 8):
                actor.do(f"runs s{number} 1 0")
        until("some went into __other__", lambda: daemon.call("GetSelf")["stages_refused"] > 0)
        text = until("the status says which", lambda: [t for t in daemon.call("GetStatus")["degraded"] if "__other__" in t])[0]
        assert re.search(r"third/s[0-7]", text), text
        with contextlib.closing(daemon.client()) as client:
            stages = [s for chunk in client.stream("ListStages", app="third") for s in chunk["stages"]]
        other = next(s for s in stages if s["stage"] == "__other__")
        assert other["total_count"] >= 1 and len(stages) < 9, stages


def test_a_stopped_daemon_does_not_stop_an_app():
    with Daemon() as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            for _ in range(20):  # more than the ring holds
                answer = actor.do("runs flood 1000 0", "mark here", "gauge g 1")
            assert time.monotonic() - begin < 20
            sent, received, dropped = map(int, answer[1:])
            assert dropped > 0 and sent > 20000, answer
            with Actor(daemon, "late") as late:  # one that attaches now does not wait either
                late.do("runs flood 1000 0")
        finally:
            os.kill(daemon.pid, signal.SIGCONT)

        def account():
            sent, received, dropped = map(int, actor.do("frame 1")[1:])
            app = app_of(daemon)
            return app["in_ring"] == 0 and received == app["received"] and (sent, received + dropped, dropped) == (
                app["sent"], app["sent"], app["dropped"])
        until("the account is exact", account)


if __name__ == "__main__":
    run_tests(dict(globals()))
