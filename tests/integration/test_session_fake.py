#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl session against a daemon of canned answers: calls, texts, exit codes, Ctrl-C."""
import hashlib
import json
import os
import queue
import signal
import subprocess
import unittest

from ctl_case import CTL, HOSTILE, Case, T, error


def row(**more):
    return dict({"name": "day", "app": "cam", "uid": 1000, "state": "finished", "tags": [], "environment": [],
                 "warmup": 10, "frames": 300, "started_us": T, "measured_us": T + 500000, "ended_us": T + 10500000,
                 "frames_done": 300, "elapsed_s": 10.0, "recent_mean_ms": 33.4, "progress_mean_ms": 33.4, "fps": 30.0, "bytes": 123456,
                 "kept_share": 1, "lost": 0, "automatic": False}, **more)


def listing(*rows):
    return {"sessions": list(rows), "dir": "/var/lib/edgeprofd/sessions", "bytes": 123456,
            "limit_bytes": 100 << 20, "evictions": 0, "expired": 0}


class Progress:
    """A session that has more frames each time it is listed."""

    def __init__(self, *done, end=None):
        self.rows = [row(state="running", ended_us=None, frames_done=n, elapsed_s=n / 30, left_s=10 - n / 30)
                     for n in done]
        self.end = end or row()

    def __call__(self, parameters):
        assert parameters == {"name": "day"}
        return listing(self.rows.pop(0) if self.rows else self.end)


STARTED = {"session": row(state="warmup", frames_done=0, measured_us=None, ended_us=None, recent_mean_ms=None, progress_mean_ms=None, fps=None)}


class Sessions(Case):
    def test_start_follows_to_the_end_with_a_line_each_50_frames(self):
        # covers G0.24
        with self.daemon(StartSession=STARTED, ListSessions=Progress(20, 60, 160)) as daemon:
            text, _ = self.ctl("session", "start", "day", "cam", "--frames", "300")
        self.assertEqual(text, "".join(f"Frame {i}/300: 29.9 fps\n" for i in range(50, 301, 50)) +
                         "Session 'day' finished: 300 of 300 frames in 10 s, 30.0 fps.\n")
        self.assertEqual(daemon.calls[1]["parameters"], {"name": "day", "app": "cam", "frames": 300, "warmup": 10,
                                                         "tags": []})

    def test_start_sends_tags_and_the_model(self):
        # covers G0.21, G0.22, G0.23
        model = os.path.join(self.directory.name, "net.tflite")
        with open(model, "wb") as file:
            file.write(b"weights")
        with self.daemon(StartSession=STARTED) as daemon:
            self.ctl("session", "start", "day", "--tag", "threads=4", "--tag", "note=a=b", "--tag", "empty=",
                     "--model", model, "--input", "640x480", "--warmup", "0", "--duration", "1min", "--detach")
            self.assertEqual(daemon.calls[1]["parameters"], {
                "name": "day", "warmup": 0, "seconds": 60,
                "tags": [{"name": name, "value": value} for name, value in (
                    ("threads", "4"), ("note", "a=b"), ("empty", ""), ("input_size", "640x480"),
                    ("model", "net.tflite"), ("model_bytes", "7"),
                    ("model_sha256", hashlib.sha256(b"weights").hexdigest()))]})
            self.ctl("session", "start", "day", "--frames", "--detach")
            self.assertEqual(daemon.calls[-1]["parameters"]["frames"], 300)
            self.assertIn("Is a directory", self.ctl("session", "start", "x", "--model", "/tmp", status=66)[1])
            self.assertIn("cannot read model '/nowhere'", self.ctl(
                "session", "start", "x", "--model", "/nowhere", status=66)[1])
            for bad in ("--tag", "novalue"), ("--tag", "=x"), ("--input", "640"), ("--input", "x2"), (
                    "--warmup", "-1"), ("--warmup", "x"), ("--frames=0",), ("--duration", "soon"):
                self.ctl("session", "start", "x", *bad, status=64)
            self.ctl("session", "start", "x", *("--tag a=b " * 33).split(), status=64)
            for words in ("my run",), ("x", "cam/1"), ("x" * 49,), ("",):
                self.assertIn("invalid name", self.ctl("session", "start", *words, status=64)[1])

    def test_without_an_end_start_returns_and_says_how_to_stop(self):
        with self.daemon(StartSession={"session": row(state="warmup", frames=None)}):
            self.assertEqual(self.ctl("session", "start", "day")[0],
                             "Session 'day' of cam started; the first 10 frames are not counted.\n"
                             "'edgeprofctl session stop day' ends it.\n")

    def test_json_is_the_final_reply_alone(self):
        with self.daemon(StartSession=STARTED, ListSessions=Progress(60), StopSession={"session": row()}):
            self.assertEqual(json.loads(self.ctl("session", "start", "day", "--frames", "300", "-j")[0]),
                             {"session": row()})
            self.assertEqual(json.loads(self.ctl("session", "stop", "day", "-j")[0]), {"session": row()})

    def follow(self, stopped, expected, **replies):
        """Starts a session that never ends by itself; after the first line comes Ctrl-C."""
        progress = Progress(60, *[60] * 100000)
        with self.daemon(StartSession=STARTED, ListSessions=progress, StopSession={"session": stopped}, **replies):
            child = subprocess.Popen([CTL, "session", "start", "day", "--frames", "300"], env=self.environment,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            seen = self.read_until(child.stdout, b"Frame 50/300: 29.9 fps\n")
            child.send_signal(signal.SIGINT)
            text, said = child.communicate(timeout=30)
            self.assertEqual(child.returncode, expected, said)
            return (seen + text).decode(), said.decode()

    def test_ctrl_c_keeps_what_was_measured(self):
        # covers G0.24
        text, _ = self.follow(row(state="stopped", frames_done=120, ended_us=T + 4500000), 0)
        self.assertTrue(text.endswith("Session 'day' ended early: 120 of 300 frames in 4.0 s, 30.0 fps.\n"), text)
        text, _ = self.follow(row(state="stopped", frames_done=1, ended_us=T + 533333, fps=None), 0)
        self.assertTrue(text.endswith("Session 'day' ended early: 1 of 300 frames in 0.0 s.\n"), text)

    def test_no_frame_is_no_data(self):
        # covers G0.24
        none = row(state="stopped", frames_done=0, measured_us=None, recent_mean_ms=None, progress_mean_ms=None, fps=None)
        text, said = self.follow(none, 2)
        self.assertIn("Session 'day' ended early: 0 of 300 frames.\n", text)
        self.assertEqual(said, "edgeprofctl: no frame was measured\n")

    def test_ctrl_c_during_the_start_ends_it(self):
        children = queue.SimpleQueue()

        def start(_):
            children.get().send_signal(signal.SIGINT)
            return STARTED

        none = row(state="stopped", frames_done=0, measured_us=None, recent_mean_ms=None, progress_mean_ms=None, fps=None)
        with self.daemon(StartSession=start, ListSessions=Progress(*[60] * 100000), StopSession={"session": none}) as daemon:
            child = subprocess.Popen([CTL, "session", "start", "day", "--frames", "300"], env=self.environment,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            children.put(child)
            said = child.communicate(timeout=30)[1]
        self.assertEqual((child.returncode, said), (2, b"edgeprofctl: no frame was measured\n"))
        self.assertEqual(daemon.calls[-1]["method"], "io.edgeprof.StopSession")

    def test_a_session_that_fails_is_bad_news(self):
        failed = row(state="failed", error="no camera", frames_done=1)
        with self.daemon(StartSession=STARTED, ListSessions=Progress(end=failed)):
            self.assertIn("failed: no camera: 1 of 300 frames in",
                          self.ctl("session", "start", "day", "--frames", "300", status=1)[0])

    def test_a_daemon_that_restarts_is_waited_for(self):
        with self.daemon(StartSession=STARTED, ListSessions=Progress(60, *[60] * 100000)):
            child = subprocess.Popen([CTL, "session", "start", "day", "--frames", "300"], env=self.environment,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            seen = self.read_until(child.stdout, b"Frame 50/300: 29.9 fps\n")
        with self.daemon(ListSessions=Progress(160)):
            text, said = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 0, said)
        self.assertEqual((seen + text).decode().count("Frame "), 6)
        self.assertEqual(said, b"")

    def test_a_session_that_is_gone_ends_the_wait(self):
        with self.daemon(StartSession=STARTED, ListSessions=listing()):
            self.assertIn("no session 'day'", self.ctl("session", "start", "day", "--frames", "9", status=2)[1])

    def test_on_a_terminal_there_is_a_bar(self):
        # covers G0.24
        with self.daemon(StartSession=STARTED, ListSessions=Progress(*[150] * 30)):
            child, terminal = self.on_terminal("session", "start", "day", "--frames", "300", COLUMNS="60")
            seen = self.read_until(terminal, "█████░░░░░ running: ".encode()).decode()
            seen += self.read_until(terminal, b"fps.\r\n").decode()
            self.assertEqual(child.wait(30), 0)
        self.assertIn("running: 150 of 300 frames in 5.0 s, 5.0 s left", seen)
        for line in seen.split("\r\n"):
            shown = line.rsplit("\x1b[K", 1)[-1]
            self.assertRegex(shown, r"^(Frame \d+/300: 29\.9 fps|Session 'day' finished.*fps\.|)$")

    def test_list_shows_matches_and_the_space_that_is_used(self):
        rows = [row(tags=[{"name": "threads", "value": "4"}, {"name": "delegate", "value": "XNNPACK"}]),
                row(name="night", app=None, state="failed", error="no camera", frames_done=0, measured_us=None, fps=None)]
        with self.daemon(ListSessions=lambda _: listing(*rows)):
            text = self.ctl("session")[0]
            self.assertRegex(text, r"day +cam +finished +300 +10 s +30.0 +threads=4, delegate=XNNPACK +"
                                   r"2025-11-21 05:40:25 +120\.6 KiB\n")
            self.assertRegex(text, r"night +- +failed +0 +- +- +no camera +2025-11-21 05:40:25 +120\.6 KiB\n")
            self.assertTrue(text.endswith("120.6 KiB of 100.0 MiB used in /var/lib/edgeprofd/sessions\n"), text)
            self.assertEqual(self.ctl("session", "list")[0], text)
            self.assertNotIn("day ", self.ctl("session", "nigh*")[0])
            self.assertNotIn("night ", self.ctl("session", "list", "--tag", "threads=4")[0])
            one = json.loads(self.ctl("session", "list", "day", "-j")[0])
            self.assertEqual(one, listing(rows[0]))
            self.ctl("session", "list", "nothing", status=2)
            self.ctl("session", "--tag", "threads=5", status=2)
            for width in (60, 80, 120):
                self.assertLessEqual(max(map(len, self.ctl("session", COLUMNS=str(width))[0].splitlines()[:-1])), width)
        with self.daemon(ListSessions=dict(listing(), bytes=0)):
            self.assertIn("no sessions yet", self.ctl("session", status=2)[1])
        with self.daemon(ListSessions=listing()):  # they are another user's
            for words in ("session",), ("session", "list", "cam*"):
                self.assertIn("no sessions of yours; those of other users", self.ctl(*words, status=2)[1])

    def test_show_has_the_circumstances_and_their_fingerprint(self):
        # covers G1.8, G2.18
        environment = [{"name": "kernel", "value": "6.6.31"}, {"name": "OMP_NUM_THREADS", "value": "4"},
                       {"name": "model", "value": "Pi \u00fc"}]
        shown = row(tags=[{"name": "affinity", "value": "0-3"}], environment=environment, kept_share=0.5, lost=3)
        lines = sorted(f"{t['name']}={t['value']}\n".encode() for t in shown["tags"] + environment)
        digest = hashlib.sha256(b"".join(lines)).hexdigest()
        with self.daemon(ListSessions=lambda _: listing(row(name="other"), shown)):
            for locale in "C", "C.UTF-8":
                text = self.ctl("session", "show", "day", LC_ALL=locale)[0]
                self.assertRegex(text, r"Frames +300 of 300 in 10 s, 30.0 fps\n")
                self.assertRegex(text, r"50.00 % of the time kept\n")
                self.assertRegex(text, r"\n  affinity +0-3\n")
                self.assertRegex(text, r"\n  OMP_NUM_THREADS +4\n")
                self.assertRegex(text, rf"Fingerprint +{digest[:12]}\n")
            self.assertEqual(json.loads(self.ctl("session", "show", "day", "-j")[0]),
                             {"session": shown, "fingerprint": digest})
            self.assertIn("no session 'x'", self.ctl("session", "show", "x", status=2)[1])

    def test_delete_goes_on_after_one_that_is_absent(self):
        answers = {"a": {}, "b": error("io.edgeprof.NotFound", what="session", name="b"), "c": {}}
        with self.daemon(DeleteSession=lambda parameters: answers[parameters["name"]]):
            text, said = self.ctl("session", "delete", "a", "b", "c", status=2)
        self.assertEqual(text, "Session 'a' deleted.\nSession 'c' deleted.\n")
        self.assertEqual(said, "edgeprofctl: there is no session 'b'; 'edgeprofctl session list' lists them\n")

    def test_what_the_daemon_refuses_is_explained(self):
        for reply, status, text in (
                (error("io.edgeprof.SessionFailed", text="several apps are running: cam, mic"), 1, "cam, mic"),
                (error("io.edgeprof.NotPermitted", group="edgeprof"), 77, "another user's app"),
                (error("io.edgeprof.LimitReached", what="active sessions", limit=8), 1, "limit of 8 active sessions"),
                (error("org.varlink.service.MethodNotFound", method="x"), 69, "older than edgeprofctl")):
            with self.daemon(StartSession=reply):
                self.assertIn(text, self.ctl("session", "start", "day", status=status)[1])

    def test_usage(self):
        with self.daemon():
            for words in ("start",), ("stop",), ("show",), ("delete",), ("strat", "day"), ("list", "a", "b"), (
                    "start", "a", "b", "c"):
                self.assertIn("usage: edgeprofctl session", self.ctl("session", *words, status=64)[1])

    def test_an_option_of_another_form_is_refused(self):
        with self.daemon(StopSession={"session": row()}, ListSources={"sources": []}) as daemon:
            for words, form in ((["session", "stop", "day", "--tag", "a=b"], "session stop"),
                                (["session", "--frames", "3", "day*"], "session list"),
                                (["record", "--output", "x"], "record list"),
                                (["source", "disable", "cpu", "--interval", "1s"], "source disable")):
                option = next(word for word in words if word[:2] == "--")
                self.assertIn(f"'{form}' has no option '{option}'", self.ctl(*words, status=64)[1])
            self.assertEqual(daemon.calls, [])
            self.assertIn("Usage", self.ctl("session", "--frames", "--help")[0])

    def test_nothing_hostile_reaches_the_terminal(self):
        bad = row(name=HOSTILE, app=HOSTILE, state=HOSTILE, error=HOSTILE, cut=HOSTILE, lost=1, kept_share=0.2,
                  tags=[{"name": HOSTILE, "value": HOSTILE}], environment=[{"name": HOSTILE, "value": HOSTILE}])
        odd = {"name": "x", "tags": 7, "environment": [3], "frames_done": "x", "state": None}
        with self.daemon(ListSessions=lambda p: listing(bad, odd), StopSession={"session": bad},
                         StartSession={"session": bad}):
            for words in ("list",), ("show", HOSTILE), ("show", "x"), ("stop", "x"), ("start", "x"), (
                    "start", "x", "--frames", "9"):
                done = subprocess.run([CTL, "session", *words], env=self.environment, capture_output=True, timeout=60)
                out = (done.stdout + done.stderr).decode()
                self.assertNotIn("Sanitizer", out)
                for byte in "\x1b\x07\u009b\u202e":
                    self.assertNotIn(byte, out)

    def test_names_are_completed(self):
        with self.daemon(ListSessions=listing(row(), row(name="night"))):
            for words in (["show", "n"], ["delete", "day", "n"], ["delete", "day", "day", "n"]):
                done = subprocess.run([CTL, "--complete", "session", *words], env=self.environment,
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(done.stdout.split(), ["night"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
