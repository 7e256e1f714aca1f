#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Diagnose, Explain and Forecast of the real daemon, of frames that a script says on a board; and what is
made of a diagnosis without asking: in ListApps, the report, the texts of alerts, and over MQTT."""
import contextlib
import json
import signal
import sys
import tempfile
import threading
import time

from harness import SOURCE, Daemon, VarlinkError, board, program, run_tests_with_broker, until

import mosquitto
import varlink_idl
from payload_schemas import check_message
from reckoning import MS, Script

INTERFACE = varlink_idl.load(SOURCE / "proto" / "io.edgeprof.varlink")
DEVICE = "bench"
CAMERA = """
import time
import edgeprof
edgeprof.connect("cam")
while True:
    with edgeprof.frame(), edgeprof.stage("capture"):
        time.sleep(0.02)
"""
SLOW = "[sampling]\ninterval = 200ms\n"


def ask(daemon, method, **parameters):
    reply = daemon.call(method, **parameters)
    INTERFACE.check_reply(method, {"parameters": reply})
    return reply


def refused(daemon, method, **parameters):
    try:
        daemon.call(method, **parameters)
    except VarlinkError as error:
        return error.name.split(".")[-1]
    return None


class Camera:
    """Frames at 30 a second, as they come, of the stages preprocess and infer."""

    def __init__(self, script, infer_ms=20, slow_ms=0):
        self.script, self.infer_ms, self.slow_ms = script, infer_ms, slow_ms  # of frame 40
        self.number = 0
        self.due = time.monotonic_ns() + 33 * MS
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.play)

    def frames(self, until_ns):
        while self.due < until_ns:
            infer = self.infer_ms + (self.slow_ms if self.number == 40 else 0)
            start = self.due - (5 + infer) * MS
            yield f"0 complete {start + 5 * MS} preprocess {5 * MS} {self.number}"
            yield f"0 complete {self.due} infer {infer * MS} {self.number}"
            yield f"0 frame {self.due} {self.number} {start}"
            self.number += 1
            self.due += max(33, infer + 6) * MS

    def play(self):
        while not self.done.wait(0.1):
            self.script.tell(list(self.frames(time.monotonic_ns() - MS)))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def diagnosis(daemon, app="cam"):
    return ask(daemon, "Diagnose", app=app)["diagnoses"][0]


def test_one_app_is_diagnosed_now():
    # covers G2.16, covers G3.8, covers G3.9
    with tempfile.TemporaryDirectory() as scratch:
        with Daemon(SLOW, root=board(scratch)[0]) as daemon, Script(daemon) as script:
            assert ask(daemon, "Diagnose", app="cam")["diagnoses"][0]["status"] == "insufficient_data"
            assert refused(daemon, "Diagnose", app="nobody") == "NotFound"
            assert refused(daemon, "Forecast", app="nobody") == "NotFound"
            with Camera(script):
                found = until("it is healthy", lambda: (lambda d: d if d["status"] == "healthy" else None)(
                    diagnosis(daemon)), pause=0.2)
                until("60 frames", lambda: diagnosis(daemon)["frames"] > 60, pause=0.2)
            assert all(f["confidence"] == "low" for f in found["findings"]), found
            first = found["optimization_opportunities"][0]
            assert (first["stage"], first["priority"], first["gain_low_percent"]) == ("infer", "HIGH", 15), first
            assert any("INT8" in line for line in found["recommendations"]), found
            assert found["throttle_tax"]["reason"], found
            everyone = [d["app"] for part in daemon_stream(daemon, "Diagnose") for d in part["diagnoses"]]
            assert everyone == ["cam"], everyone
            plans = ask(daemon, "Forecast", app="cam", fps=30)["plans"]
            assert [p["arrangement"] for p in plans] == ["sequential", "pipelined"], plans
            assert all(p["miss_rate"] == 0 and 24 < p["latency_p95_ms"] < 27 for p in plans), plans
            assert ask(daemon, "Forecast", app="cam", fps=50)["plans"][0]["miss_rate"] > 0.9
            daemon.config_path.write_text(SLOW + "[diagnosis]\nhigh_priority = 99\ninfer_share = 99\n")
            daemon.process.send_signal(signal.SIGHUP)
            first = until("other limits", lambda: (lambda o: o if o["priority"] == "MEDIUM" else None)(
                diagnosis(daemon)["optimization_opportunities"][0]))
            assert first["stage"] == "infer" and first.get("gain_low_percent") is None, first
            zone = ask(daemon, "Forecast")["temperatures"]
            assert [z["metric"] for z in zone] == ["temperature/cpu-thermal"], zone
            assert zone[0]["trip_celsius"] == 85 and zone[0]["celsius"] == 50, zone


def test_a_capture_that_waits_is_not_planned_and_named():
    with Daemon(SLOW) as daemon, Script(daemon) as script:
        time.sleep(1.4)  # frames from before the app are not its own
        start = time.monotonic_ns() - 40 * 33 * MS
        for frame in range(40):
            end = start + (frame + 1) * 33 * MS
            script.tell([f"0 complete {end - 8 * MS} capture {25 * MS} {frame}", f"0 complete {end} infer {8 * MS} {frame}",
                         f"0 frame {end} {frame} {end - 33 * MS}"])
        plan = until("it is known what the stages are", lambda: (lambda p: p if p.get("reason", "").startswith("without") else None)(
            ask(daemon, "Forecast", app="cam", fps=30)["plans"][0]), pause=0.5)
        assert 7 < plan["latency_p50_ms"] < 9, plan
        assert "without capture, which waits" in daemon.ctl("forecast", "cam", "--fps", "30").stdout


def test_a_plan_says_that_the_app_runs_frames_in_parallel():
    with Daemon(SLOW) as daemon, Script(daemon) as script:
        time.sleep(1.4)
        start = time.monotonic_ns() - 30 * 40 * MS
        for frame in range(4 * 30):  # four at a time
            end = start + (frame // 4 + 1) * 40 * MS + frame % 4 * 1000
            script.tell([f"0 complete {end} infer {40 * MS} {frame}", f"0 frame {end} {frame} {end - 40 * MS}"])
        plan = until("it is known how they run", lambda: (lambda p: p if p.get("reason", "").startswith("unlike") else None)(
            ask(daemon, "Forecast", app="cam", fps=60, deadline_ms=60)["plans"][1]), pause=0.5)
        assert plan["miss_rate"] == 1 and plan["reason"] == "unlike the app, whose frames run in parallel", plan


def test_a_slow_frame_is_explained():
    with tempfile.TemporaryDirectory() as scratch:
        with Daemon(SLOW, root=board(scratch)[0]) as daemon, Script(daemon) as script:
            assert refused(daemon, "Explain", app="nobody") == "NotFound"
            assert refused(daemon, "Explain", app="cam") == "NotFound"
            assert "no frame of that time is kept" in daemon.ctl("why", "cam", "2001-01-01").stderr
            with Camera(script, slow_ms=70) as camera:
                until("70 frames", lambda: camera.number > 70)
            worst = until("the frame is there", lambda: (lambda e: e if e.get("frame") == 40 else None)(
                ask(daemon, "Explain", app="cam")))
            assert abs(worst["took_ms"] - 95) < 1 and abs(worst["usual_ms"] - 25) < 1, worst
            first = worst["differences"][0]
            assert "infer" in first["what"] and abs(first["explained_ms"] - 70) < 1, worst
            assert "infer" in worst["summary"] and "40" in worst["summary"], worst
            middle = (worst["start_us"] + worst["end_us"]) // 2
            assert ask(daemon, "Explain", app="cam", time_us=middle)["frame"] == 40
            usual = ask(daemon, "Explain", app="cam", frame=50)
            assert usual["frame"] == 50 and "not slow" in usual["summary"], usual
            assert refused(daemon, "Explain", app="cam", frame=10**6) == "NotFound"
            assert refused(daemon, "Explain", app="cam", frame=50, time_us=middle) == "InvalidParameter"


def test_a_frame_in_which_the_app_was_stopped_says_so():
    with Daemon("[sampling]\ninterval = 100ms\n") as daemon:
        env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client" / "python"))
        with program([sys.executable, "-c", CAMERA], env) as app:
            until("there are frames", lambda: any(
                row["frame_count"] > 100 for row in daemon.call("GetFrames")["frames"]))
            app.send_signal(signal.SIGSTOP)
            until("it is seen", lambda: (daemon.metric("process/cam/stopped") or {}).get("value"))
            begun = daemon.call("GetStatus")["mono_us"]
            until("it lasts", lambda: daemon.call("GetStatus")["mono_us"] > begun + 2000000)
            app.send_signal(signal.SIGCONT)

            def explained():
                found = daemon.call("Explain", app="cam")
                return found if found["took_ms"] > 2000 else None
            found = until("the frame has ended", explained)
            assert "process/cam/stopped 1, usually 0" in found["summary"], found


def daemon_stream(daemon, method):
    with contextlib.closing(daemon.client()) as client:
        for reply in client.stream(method):
            INTERFACE.check_reply(method, {"parameters": reply})
            yield reply


def test_what_is_wrong_is_said_without_asking():
    # covers design §9 (diagnosis)
    topic = f"edgeprof/{DEVICE}/diagnosis/cam"
    with tempfile.TemporaryDirectory() as scratch, mosquitto.Broker() as broker:
        config = (f"{SLOW}[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\ndevice_id = {DEVICE}\n"
                  "[frame cam]\ndeadline = 40ms\n"
                  "[alert slow]\nmetric = frame/cam/fps\nbelow = 1000\nfor = 3s\n"
                  "[alert warm]\nmetric = temperature/max\nabove = 10\n")
        with Daemon(config, root=board(scratch)[0]) as daemon:
            with Script(daemon) as script, Camera(script, infer_ms=80):
                summary = until("ListApps says it", lambda: ask(daemon, "ListApps")["apps"][0].get("diagnosis"))
                assert "infer" in summary, summary
                texts = until("the alert says it", lambda: [
                    a["text"] for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "slow" and "; " in a["text"]])
                assert "infer" in texts[0], texts
                assert all("; " not in a["text"] for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "warm")
                assert daemon.call("GetReport", app="cam")["text"].splitlines()[-1].startswith("Diagnosis: ")
                got = broker.subscribe(topic, until=lambda seen: seen)
                name, payload = check_message(*got[0], f"edgeprof/{DEVICE}")
                assert name == "diagnosis" and payload["app"] == "cam" and payload["status"] == "findings", payload
                assert payload["cause"] == diagnosis(daemon)["findings"][0]["cause"], payload
                assert payload["evidence_1"] and payload["advice_1"], payload
            broker.subscribe(topic, until=lambda seen: seen and seen[-1][1] == "", ready=lambda: None)


def test_a_diagnosis_at_the_broker_does_not_outlive_its_truth():
    topic = f"edgeprof/{DEVICE}/diagnosis/cam"
    with tempfile.TemporaryDirectory() as scratch, mosquitto.Broker() as broker:
        config = f"{SLOW}[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\ndevice_id = {DEVICE}\n"
        with Daemon(config, root=board(scratch)[0]) as daemon:
            with Script(daemon) as script, Camera(script):
                assert broker.subscribe(topic, until=lambda seen: seen)[0][1]
                daemon.kill()  # and the app does not come back
            broker.subscribe(topic, until=lambda seen: seen and seen[-1][1] == "", ready=daemon.start)
            with Script(daemon) as script, Camera(script):
                broker.subscribe(topic, until=lambda seen: seen)
                daemon.stop()
        everything = f"edgeprof/{DEVICE}/#"
        kept = dict(broker.subscribe(everything, until=lambda seen: dict(seen).get(f"edgeprof/{DEVICE}/info")))
        assert topic not in kept, kept
        status = broker.subscribe(f"edgeprof/{DEVICE}/status", until=lambda seen: seen)
        assert status[0][1] == "offline", status


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
