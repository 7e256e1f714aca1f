#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measurement sessions against the real daemon: they end with the frame that was asked for, their
files hold each record once, and they survive restarts, full disks and other users."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import time

from harness import BUILD, DEMO, Daemon, Varlink, VarlinkError, program, run_tests, until
from reckoning import SCRIPT, Script

FAST = "[sampling]\ninterval = 200ms\n"
MS = 1_000_000


def state_config(place, more=""):
    return FAST + f"[history]\npath = {place}\n[sessions]\n{more}"


def listed(daemon, name=None):
    return daemon.call("ListSessions", **({"name": "=" + name} if name else {}))["sessions"]


def row_of(daemon, name):
    rows = listed(daemon, name)
    assert len(rows) == 1, (name, rows)
    return rows[0]


def ended(daemon, name, state="finished"):
    """The row of a session that has ended, once its file is complete."""
    until(f"{name} is {state}", lambda: row_of(daemon, name)["state"] == state)
    until(f"{name} is written", lambda: '\n{"end":' in (text := text_of(daemon, name))
          and len(text.encode()) == row_of(daemon, name)["bytes"])
    return row_of(daemon, name)


def text_of(daemon, name):
    with contextlib.closing(daemon.client()) as client:
        return "".join(reply["text"] for reply in client.stream("GetSession", name=name))


def lines_of(daemon, name):
    """Every line of the file, all of them JSON."""
    text = text_of(daemon, name)
    assert text.endswith("\n")
    rows = [json.loads(line) for line in text.splitlines()]
    assert rows[0]["schema"] == "edgeprof.session/1", rows[0]
    return rows


def records_of(rows, kind, lower_us=0, upper_us=float("inf")):
    """(end in µs, name, frame) of the records of a kind that ended in the span of CLOCK_MONOTONIC."""
    for row in rows:
        columns = row.get("parameters", {}).get("records") if row.get("call") == "ExportTrace" else None
        for i in range(len(columns["kind"]) if columns else 0):
            end_us = columns["mono_us"][i] + (columns["duration_us"][i] or 0)
            if columns["kind"][i] == kind and lower_us <= end_us <= upper_us:
                name = columns["name"][i]
                frame = columns["frame"][i]
                yield end_us, row["parameters"]["names"][name] if name >= 0 else "", int(frame) if frame else None


def frames(script, count, first=0):
    script.tell([line for i in range(first, first + count) for line in (
        f"0 frame_begin 0 {i}", f"0 complete 0 infer 1000 {i}", "0 frame_end 0")])


def ticks(script, count):
    script.tell([line for _ in range(count) for line in ("0 complete 0 infer 1000 -", "0 tick 0")])


def test_rates_are_those_of_frames_not_of_the_time_around_them():
    # covers G0.24 (progress)
    with Daemon(FAST) as daemon, Script(daemon) as script:
        daemon.call("StartSession", name="run", app="cam", warmup=0)
        at, lines = time.monotonic_ns() + 100 * MS, []  # nothing happens at first
        for i, took_ms in enumerate([4] * 50 + [1] * 10):
            lines += [f"0 frame_begin {at} {i}", f"0 frame_end {(at := at + took_ms * MS)}"]
        until("it is so late", lambda: time.monotonic_ns() > at)
        script.tell(lines)
        until("60 frames", lambda: row_of(daemon, "run")["frames_done"] == 60)
        daemon.call("StopSession", name="run")
        row = ended(daemon, "run", "stopped")
        assert abs(row["progress_mean_ms"] - 4) < 1e-6 and abs(row["recent_mean_ms"] - 3.4) < 1e-6, row
        assert abs(row["fps"] - 59 / 0.206) < 1e-3, row
        assert re.search(r"^run +cam +stopped +60 .* 286\.4 ", (rows := daemon.ctl("session").stdout), re.M), rows


def test_it_ends_with_the_frame_that_was_asked_for():
    # covers G0.24 (warm-up, frames)
    with Daemon(FAST) as daemon, Script(daemon) as script:
        ticks(script, 5)  # nobody asked for these
        row = daemon.call("StartSession", name="run", app="cam", warmup=10, frames=100,
                          tags=[{"name": "model", "value": 'a "b" \\ c'}])["session"]
        assert row["state"] == "warmup" and row["frames"] == 100 and row["tags"] == [{"name": "model", "value": 'a "b" \\ c'}], row
        ticks(script, 10)
        until("it is warm", lambda: row_of(daemon, "run")["state"] == "running")
        assert row_of(daemon, "run")["frames_done"] == 0
        ticks(script, 60)
        until("60 frames", lambda: row_of(daemon, "run")["frames_done"] == 60)
        assert row_of(daemon, "run")["left_s"] > 0 and "recent_mean_ms" in row_of(daemon, "run")
        ticks(script, 60)  # 20 of them too many
        row = ended(daemon, "run")
        assert row["frames_done"] == 100 and row["left_s"] == 0 and row["lost"] == 0 and row["kept_share"] == 1 and "cut" not in row, row
        rows = lines_of(daemon, "run")
        assert len(list(records_of(rows, "frame"))) == 110 and len(list(records_of(rows, "complete"))) == 110
        assert rows[0]["session"]["name"] == "run" and rows[0]["session"]["state"] == "warmup", rows[0]
        end = rows[-1]["end"]
        assert {k: v for k, v in end.items() if k != "bytes"} == {k: v for k, v in row.items() if k != "bytes"}, (end, row)
        # the span that is measured holds just these frames
        clock = next(r["parameters"]["start"] for r in rows if "start" in r.get("parameters", {}))
        offset = clock["clock_time_us"][-1] - clock["clock_mono_us"][-1]
        inside = [one for one in records_of(rows, "frame") if row["measured_us"] < one[0] + offset <= row["ended_us"] + 1]
        assert len(inside) in (99, 100, 101), len(inside)  # µs of two clocks
        for call in ("GetStatus", "GetThrottle", "ListAlerts", "ListApps", "GetHistory", "ListStages", "GetFrames", "GetReport", "ListMarks"):
            assert any(r.get("call") == call for r in rows), call
        assert {"os", "kernel", "cpus", "affinity"} <= {tag["name"] for tag in row["environment"]}, row
        path = daemon.run_dir / "sessions" / "run.jsonl"
        assert path.stat().st_mode & 0o777 == 0o640
        until("its size is known", lambda: path.stat().st_size == row_of(daemon, "run")["bytes"])


def test_frames_by_id_and_by_stages_are_counted():
    with Daemon(FAST) as daemon, Script(daemon, "ids") as ids, Script(daemon, "stages") as stages:
        for app in ("ids", "stages"):
            daemon.call("StartSession", name=app, app=app, warmup=2, frames=20)
        ids.tell([f"0 complete 0 {stage} 1000 {i}" for i in range(30) for stage in ("resize", "infer")])
        stages.tell([f"0 complete 0 {stage} 1000 -" for i in range(30) for stage in ("resize", "infer")])
        for app in ("ids", "stages"):
            assert ended(daemon, app)["frames_done"] == 20
        got = {one[2] for one in records_of(lines_of(daemon, "ids"), "complete")}
        assert got == set(range(22)), got
        got = [one[1] for one in records_of(lines_of(daemon, "stages"), "complete")]
        assert got == ["resize", "infer"] * 22, got


def test_seconds_and_a_session_of_the_device():
    with Daemon(FAST) as daemon:
        row = daemon.call("StartSession", name="idle", seconds=0.5)["session"]
        assert "app" not in row and row["state"] == "running", row
        row = ended(daemon, "idle")
        assert row["elapsed_s"] == 0.5 and row["ended_us"] - row["measured_us"] in range(499_998, 500_003), row
        assert any(r.get("call") == "GetHistory" for r in lines_of(daemon, "idle"))
        try:
            daemon.call("StartSession", name="frames", frames=3)
        except VarlinkError as error:
            assert error.name == "io.edgeprof.SessionFailed" and "no app is running" in error.parameters["text"], error
        else:
            raise AssertionError("frames of nothing")


def test_it_may_precede_its_app_and_ends_with_it():
    # covers G0.24 (an early end keeps what was measured)
    with Daemon(FAST) as daemon:
        daemon.call("StartSession", name="early", app="cam", warmup=1, frames=1000)
        with Script(daemon) as script:
            frames(script, 31)
        row = ended(daemon, "early", "stopped")
        assert row["frames_done"] == 30 and row["elapsed_s"] > 0, row
        assert len(list(records_of(lines_of(daemon, "early"), "frame"))) == 31


def test_stop_error_delete_and_names():
    # covers G0.21 (an errored variant keeps its row)
    with Daemon(FAST) as daemon, Script(daemon) as script:
        names = [daemon.call("StartSession", name="one")["session"]["name"] for _ in range(3)]
        assert names == ["one", "one.2", "one.3"], names
        frames(script, 5)
        row = daemon.call("StopSession", name="one")["session"]
        assert row["state"] == "stopped" and row["app"] == "cam" and row["frames_done"] == 5, row
        row = daemon.call("StopSession", name="one.2", error='Error("x\x1b[2J")')["session"]
        assert row["state"] == "failed" and row["error"] == "Error('x_[2J')", row
        assert ended(daemon, "one.2", "failed")["error"] == row["error"]
        ended(daemon, "one", "stopped")
        for name in ("one.3", "one"):  # active, and finished
            daemon.call("DeleteSession", name=name)
            assert not listed(daemon, name)
        until("the files are gone", lambda: [p.name for p in (daemon.run_dir / "sessions").iterdir()] == ["one.2.jsonl"])
        for method in ("StopSession", "DeleteSession"):
            try:
                daemon.call(method, name="one")
            except VarlinkError as error:
                assert error.name == "io.edgeprof.NotFound", error
            else:
                raise AssertionError(method)
        with Script(daemon, "other"):
            try:
                daemon.call("StartSession", name="which")
            except VarlinkError as error:
                assert error.name == "io.edgeprof.SessionFailed" and "cam, other" in error.parameters["text"], error
            else:
                raise AssertionError("which of two?")


def test_a_stop_keeps_what_came_before():
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o700)
        with Daemon(state_config(place)) as daemon, Script(daemon) as script:
            for n in range(4):
                daemon.call("StartSession", name=f"s{n}", app="cam")
            for i in range(10):
                frames(script, 3000, 3000 * i)
            for n in range(4):
                assert daemon.call("StopSession", name=f"s{n}")["session"]["state"] == "stopped"
            for n in range(4):
                row = ended(daemon, f"s{n}", "stopped")
                assert row["frames_done"] == 30000 and row["lost"] == 0 and row["elapsed_s"] > 0 and row["left_s"] == 0, row


def test_bad_tags_are_refused():
    with Daemon() as daemon:
        bad = [[{"name": "a\n", "value": ""}], [{"name": "", "value": ""}], [{"name": "a", "value": "\u202e"}], [{"name": "a"}],
               [{"name": "a", "value": "x" * 257}], [{"name": "a" * 49, "value": ""}], [{"name": "a", "value": "1"}] * 2,
               [{"name": "a", "value": 1}], "a", [["a", "b"]], [{"name": "a", "value": "b", "more": "c"}]]
        for tags in bad:
            for field in ("tags", "environment"):
                try:
                    daemon.call("StartSession", name="bad", seconds=1, **{field: tags})
                except VarlinkError as error:
                    assert error.name.endswith(".InvalidParameter") and error.parameters["parameter"] == field, (tags, error)
                else:
                    raise AssertionError(tags)
        for count, size in ((33, 1), (32, 256)):
            many = [{"name": f"t{i}" + "x" * 40, "value": "\\" * size} for i in range(count)]
            try:
                row = daemon.call("StartSession", name="many", seconds=1, tags=many)["session"]
            except VarlinkError as error:
                assert count == 33 and error.name == "io.edgeprof.LimitReached", error
            else:
                assert count == 32 and row["tags"] == many
                assert ended(daemon, "many")["tags"] == many == lines_of(daemon, "many")[0]["session"]["tags"]
        assert [row["name"] for row in listed(daemon)] == ["many"]


def restarted(daemon, end):
    end(daemon)
    daemon.start()


def going_on(daemon, script, first):
    """A condition: frames come, one a look, until the daemon has the app again; how many there were."""
    sent = [first]

    def look():
        if daemon.call("ListApps")["apps"]:
            return sent[0]
        frames(script, 1, sent[0])
        sent[0] += 1
    return look


def test_it_goes_on_after_a_restart():
    for end in (Daemon.stop, Daemon.kill):
        with Daemon(FAST) as daemon, Script(daemon) as script:
            daemon.call("StartSession", name="long", app="cam", warmup=5, frames=200, tags=[{"name": "k", "value": "v"}])
            frames(script, 55)
            until("50 frames", lambda: row_of(daemon, "long")["frames_done"] == 50)
            before = row_of(daemon, "long")
            if end == Daemon.kill:  # of what is not written yet nothing survives
                until("a block is written", lambda: '"frames_done":50' in text_of(daemon, "long"))
            restarted(daemon, end)
            row = row_of(daemon, "long")
            assert row["state"] == "running" and row["frames_done"] == 50 and row["measured_us"] == before["measured_us"], row
            assert row["tags"] == before["tags"] and row["environment"] == before["environment"], row
            sent = until("the app is back", going_on(daemon, script, 55))
            frames(script, 210 - sent, sent)
            row = ended(daemon, "long")
            assert row["frames_done"] == 200 and row["started_us"] == before["started_us"], row
            rows = lines_of(daemon, "long")
            ids = [one[2] for one in records_of(rows, "frame")]
            assert ids == list(range(205)), ids
            assert sum("restart" in r for r in rows) == 1 and sum("end" in r for r in rows) == 1
            blocks = [r["block"] for r in rows if "block" in r]
            assert [b["block"] for b in blocks] == list(range(len(blocks))), blocks
            assert all(a["to_us"] == b["from_us"] for a, b in zip(blocks, blocks[1:])), blocks
            restarted(daemon, end)
            assert row_of(daemon, "long") == row


def test_the_rate_is_of_all_frames_also_after_a_restart():
    with Daemon(FAST) as daemon, Script(daemon) as script:
        daemon.call("StartSession", name="long", app="cam", warmup=0)
        frames(script, 5)
        until("5 frames", lambda: row_of(daemon, "long")["frames_done"] == 5)
        begin_ns = time.monotonic_ns()
        restarted(daemon, Daemon.stop)
        sent = until("the app is back", going_on(daemon, script, 5))
        end_ns = time.monotonic_ns()
        frames(script, 20, sent)
        until("all frames", lambda: row_of(daemon, "long")["frames_done"] == sent + 20)
        daemon.call("StopSession", name="long")
        row = ended(daemon, "long", "stopped")
        assert row["fps"] <= (row["frames_done"] - 1) * 1e9 / (end_ns - begin_ns), row


def test_what_was_written_of_a_killed_one_is_valid():
    with Daemon(FAST) as daemon, Script(daemon) as script:
        daemon.call("StartSession", name="torn", app="cam")
        frames(script, 20)
        until("it has begun", lambda: '"block"' in text_of(daemon, "torn"))
        daemon.kill()
        path = daemon.run_dir / "sessions" / "torn.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"call":"ExportTrace","parameters":{"app":"cam","records"')
        # another boot's, an unreadable one, and foreign names
        other = path.with_name("boot.jsonl")
        other.write_bytes(whole.replace(b'"name":"torn"', b'"name":"boot"').replace(b'"boot_id":"', b'"boot_id":"0'))
        path.with_name("bad.jsonl").write_bytes(b"\x00\xff not JSON\n" * 100)
        path.with_name("torn.jsonl.new").write_bytes(b"x")
        path.with_name("link.jsonl").symlink_to("/etc/passwd")
        os.mkfifo(path.with_name("fifo.jsonl"))
        # what a power cut leaves of files that were not on the disk yet
        for name, text in (("empty", b""), ("zeroed", bytes(4096)), ("half", whole[:100])):
            path.with_name(name + ".jsonl").write_bytes(text)
        first = whole[:whole.index(b"\n") + 1].replace(b'"name":"torn"', b'"name":"first"')
        path.with_name("first.jsonl").write_bytes(first + b'{"call":')
        path.with_name("README").write_bytes(b"mine")
        daemon.start()
        assert sorted(row["name"] for row in listed(daemon)) == ["boot", "first", "torn"], listed(daemon)
        for name, cut in (("boot", "the device was restarted"), ("first", "edgeprofd was killed")):
            row = row_of(daemon, name)
            assert row["state"] == "interrupted" and row["cut"] == cut and row["bytes"] == path.with_name(name + ".jsonl").stat().st_size, row
            assert lines_of(daemon, name)[-1]["end"]["state"] == "interrupted"
        for name in ("empty", "zeroed", "half"):  # their names are free
            daemon.call("StartSession", name=name, seconds=0.01)
            ended(daemon, name)
        until("the app is back", going_on(daemon, script, 20))
        frames(script, 5, 10000)
        until("5 frames", lambda: row_of(daemon, "torn")["frames_done"] >= 5)
        daemon.call("StopSession", name="torn")
        ended(daemon, "torn", "stopped")
        lines_of(daemon, "torn")
        assert not path.with_name("torn.jsonl.new").exists() and path.with_name("README").read_bytes() == b"mine"
        assert path.with_name("bad.jsonl").exists() and path.with_name("link.jsonl").is_symlink()


def test_an_app_that_does_not_return_after_a_restart_has_ended():
    with Daemon(FAST) as daemon:
        with Script(daemon) as script:
            daemon.call("StartSession", name="gone", app="cam", warmup=1)
            frames(script, 11)
            until("10 frames", lambda: row_of(daemon, "gone")["frames_done"] == 10)
            daemon.stop()
        daemon.start()
        row = until("it has ended", lambda: [r for r in listed(daemon) if r["state"] == "stopped"], patience=60)[0]
        assert row["frames_done"] == 10, row


def test_past_its_size_blocks_of_time_are_dropped():
    # covers G2.18 (size limit)
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o700)
        with Daemon(state_config(place, "max_size = 1M\n")) as daemon, Script(daemon) as script:
            daemon.call("StartSession", name="large", app="cam", warmup=1)
            for i in range(40):
                frames(script, 500, 500 * i)
                until("they are counted", lambda n=i: row_of(daemon, "large")["frames_done"] == 500 * n + 499)
            daemon.call("StopSession", name="large")
            row = ended(daemon, "large", "stopped")
            assert row["frames_done"] == 19999 and 0 < row["kept_share"] < 0.9 and row["cut"].startswith("thinned"), row
            path = pathlib.Path(place) / "sessions" / "large.jsonl"
            assert path.stat().st_size == row["bytes"] < 5 << 18, row
            rows = lines_of(daemon, "large")
            ids = [one[2] for one in records_of(rows, "frame")]
            assert ids == sorted(set(ids)) and 500 < len(ids) < 19000 and ids[-1] == 19999, (len(ids), ids[-1])
            blocks = [r["block"] for r in rows if "block" in r]
            assert blocks[0]["block"] == 0 and rows[-1]["end"]["frames_done"] == 19999
            kept = sum(b["mono_us"] - b["from_mono_us"] for b in blocks) / 1e6
            assert abs(kept / blocks[-1]["total_s"] - row["kept_share"]) < 0.01, (kept, blocks[-1], row)
            # a long file is read from near its end after a kill
            path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:-1] + [b'{"call":"GetHi']))
            daemon.kill()
            daemon.start()
            again = row_of(daemon, "large")
            assert again["state"] in ("running", "stopped") and again["frames_done"] == 19999, again
            assert abs(again["kept_share"] - row["kept_share"]) < 0.2 and "not all was kept" in again["cut"], (again, row)


def test_the_oldest_finished_one_goes_first():
    # covers G2.19
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o700)
        with Daemon(state_config(place, "max_size = 256K\ntotal_size = 256K\n")) as daemon, Script(daemon) as script:
            for n in range(6):
                daemon.call("StartSession", name=f"s{n}", app="cam", frames=600)
                frames(script, 600)
                ended(daemon, f"s{n}")
            answer = until("some are gone", lambda: (a := daemon.call("ListSessions"))["bytes"] <= a["limit_bytes"] and a)
            names = [row["name"] for row in answer["sessions"]]
            assert answer["evictions"] > 0 and names == [f"s{n}" for n in range(6)][-len(names):] and names, answer
            assert answer["dir"] == f"{place}/sessions" and answer["limit_bytes"] == 256 * 1024, answer
            until("so are their files", lambda: sorted(p.name for p in pathlib.Path(answer["dir"]).iterdir()) == [n + ".jsonl" for n in names])
            assert answer["bytes"] == sum(p.stat().st_size for p in pathlib.Path(answer["dir"]).iterdir())
            daemon.stop()
            daemon.start()
            again = daemon.call("ListSessions")
            assert again["sessions"] == answer["sessions"] and again["bytes"] == answer["bytes"], (again, answer)


def as_nobody(daemon, method, **parameters):
    """The reply to, or the error of, another user's call."""
    code = ("import sys, json; sys.path.insert(0, sys.argv[1])\nfrom harness import Varlink, VarlinkError\n"
            "try: print(json.dumps(list(Varlink(sys.argv[2]).stream(sys.argv[3], **json.loads(sys.argv[4])))))\n"
            "except VarlinkError as error: print(json.dumps(error.name))")
    here = str(pathlib.Path(__file__).parent)
    done = subprocess.run(["python3", "-B", "-c", code, here, str(daemon.socket), method, json.dumps(parameters)], user=65534,
                          group=65534, extra_groups=[], capture_output=True, text=True, timeout=60, env=daemon.env)
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    return answer if isinstance(answer, str) or method == "GetSession" else answer[0]


def test_users_have_their_own():
    if os.geteuid() != 0:
        return "needs root to become somebody else"
    if subprocess.run(["python3", "-c", "import sys; sys.path.insert(0, sys.argv[1]); import harness", str(pathlib.Path(__file__).parent)],
                      user=65534, group=65534, extra_groups=[], capture_output=True).returncode != 0:
        return "another user cannot read the tests"
    with Daemon(FAST) as daemon, Script(daemon):
        os.chmod(daemon.dir, 0o755)
        daemon.call("StartSession", name="roots", app="cam")
        assert as_nobody(daemon, "StartSession", name="mine", app="cam") == "io.edgeprof.NotPermitted"
        assert as_nobody(daemon, "StartSession", name="mine", seconds=5) == "io.edgeprof.SessionFailed"
        assert as_nobody(daemon, "GetSession", name="roots") == "io.edgeprof.NotFound"
        assert as_nobody(daemon, "StopSession", name="roots") == "io.edgeprof.NotFound"
        assert as_nobody(daemon, "DeleteSession", name="roots") == "io.edgeprof.NotFound"
        assert as_nobody(daemon, "ListSessions")["sessions"] == []
        for n in range(2):
            assert as_nobody(daemon, "StartSession", name=f"mine{n}", app="theirs")["session"]["uid"] == 65534
        assert as_nobody(daemon, "StartSession", name="mine3", app="theirs") == "io.edgeprof.LimitReached"
        with Script(daemon, "theirs") as script:  # the name is root's now: not the app that was meant
            frames(script, 5)
            assert row_of(daemon, "mine0")["state"] == "warmup"
            assert as_nobody(daemon, "DeleteSession", name="mine1") == {}
        row = as_nobody(daemon, "StopSession", name="mine0")["session"]
        assert row["frames_done"] == 0, row
        assert [r["name"] for r in as_nobody(daemon, "ListSessions")["sessions"]] == ["mine0"]
        assert sorted(r["name"] for r in listed(daemon)) == ["mine0", "roots"]
        text = until("it is written", lambda: (t := "".join(r["text"] for r in as_nobody(daemon, "GetSession", name="mine0"))).count('{"end"') and t)
        apps = next(json.loads(line) for line in text.splitlines() if '"ListApps"' in line)
        assert all(app.get("processes", []) == [] for app in apps["parameters"]["apps"]), apps


def test_a_deleted_name_is_free_at_once():
    with Daemon(FAST) as daemon, Script(daemon) as script:
        for i in range(50):
            assert daemon.call("StartSession", name="again", app="cam")["session"]["name"] == "again"
            frames(script, 200, 200 * i)
            daemon.call("StopSession" if i % 2 else "ListSessions", **({"name": "again"} if i % 2 else {}))
            daemon.call("DeleteSession", name="again")
        daemon.call("StartSession", name="again", app="cam", frames=10)
        frames(script, 20, 10000)
        assert ended(daemon, "again")["frames_done"] == 10
        until("one file is left", lambda: [p.name for p in (daemon.run_dir / "sessions").iterdir()] == ["again.jsonl"])


def test_at_most_eight_are_active():
    with Daemon() as daemon:
        for n in range(8):
            daemon.call("StartSession", name=f"s{n}", seconds=600)
        try:
            daemon.call("StartSession", name="s8", seconds=600)
        except VarlinkError as error:
            assert error.name == "io.edgeprof.LimitReached" and error.parameters == {"what": "active sessions", "limit": 8}, error
        else:
            raise AssertionError("nine")
        daemon.call("StopSession", name="s3")
        daemon.call("StartSession", name="s8", seconds=600)


def test_a_full_disk_costs_what_cannot_be_written():
    from test_persist_disk import mount, mounted, without_mounts
    if reason := without_mounts():
        return reason
    with tempfile.TemporaryDirectory() as above:
        with mounted(pathlib.Path(above) / "disk", "-t", "tmpfs", "-o", "size=512K,mode=700", "none") as disk:
            with Daemon(state_config(disk)) as daemon, Script(daemon) as script:
                daemon.call("StartSession", name="full", app="cam")
                for i in range(20):
                    frames(script, 500, 500 * i)
                    until("they are counted", lambda n=i: row_of(daemon, "full")["frames_done"] == 500 * n + 500)
                row = until("it says so", lambda: (r := row_of(daemon, "full")).get("cut") and r)
                assert "No space left on device" in row["cut"] and row["state"] == "running", row
                daemon.call("StopSession", name="full")
                row = ended(daemon, "full", "stopped")
                assert 0 < row["kept_share"] < 1, row
                assert row["frames_done"] == 10000 and lines_of(daemon, "full")[-1]["end"]["cut"] == row["cut"], row
                with contextlib.suppress(OSError), open(disk / "ballast", "wb", 0) as ballast:
                    while True:
                        ballast.write(bytes(4096))
                daemon.call("StartSession", name="none", app="cam")
                row = until("it failed", lambda: (r := row_of(daemon, "none"))["state"] == "failed" and r)
                assert "No space left on device" in row["error"], row
                assert daemon.call("GetStatus")["version"]


def test_runs_become_sessions():
    # covers G2.18 (automatic ones)
    with Daemon(FAST + "[sessions]\nautomatic = yes\nttl = 2s\n") as daemon:
        with program([DEMO, "--app", "demo", "--fps", "30"], daemon.env, stdout=subprocess.DEVNULL):
            row = until("it is there", lambda: listed(daemon), patience=60)[0]
            assert row["name"] == "demo-run" and row["automatic"] and row["app"] == "demo", row
            until("it measures", lambda: row_of(daemon, "demo-run")["frames_done"] > 10)
        until("it expired", lambda: daemon.call("ListSessions")["expired"] == 1)
        assert not listed(daemon)


def test_sessions_of_before_the_clock_was_synchronised_get_their_times():
    """One that ends before, automatic, which its age of decades would delete; one that ends after."""
    with tempfile.TemporaryDirectory() as folder:
        fifo = pathlib.Path(folder) / "fifo"
        os.mkfifo(fifo, 0o600)
        clock = os.open(fifo, os.O_RDWR)
        env = dict(LD_PRELOAD=str(BUILD / "tests/integration/clock-shim.so"), CLOCK_SHIM=str(fifo),
                   ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
        with Daemon(FAST + "[sessions]\nautomatic = yes\n", env=env) as daemon:
            daemon.env.pop("LD_PRELOAD")
            daemon.call("StartSession", name="over")
            with program([DEMO, "--app", "demo", "--fps", "30"], daemon.env, stdout=subprocess.DEVNULL):
                until("the automatic one", lambda: listed(daemon, "demo-run"), patience=60)
                until("it measures", lambda: row_of(daemon, "demo-run")["frames_done"] > 10)
            until("it ended", lambda: row_of(daemon, "demo-run")["state"] == "stopped")
            assert all(row["started_us"] < 86400e6 for row in listed(daemon)), listed(daemon)
            os.write(clock, struct.pack("=3q", 1, 0, 1))
            until("it has its time", lambda: row_of(daemon, "demo-run")["started_us"] > 86400e6)
            daemon.call("StopSession", name="over")
            for row in until("both", lambda: len(rows := listed(daemon)) == 2 and rows):
                assert abs(time.time() - row["started_us"] / 1e6) < 120, row
                assert 0 <= row["ended_us"] - row["started_us"] < 120e6, row
        os.close(clock)


if __name__ == "__main__":
    run_tests(dict(globals()))
