#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flight recorder against the real daemon: each trigger makes one file that holds what was sent
around it, twelve a day, whole or not at all, and it is announced."""
import collections
import contextlib
import json
import os
import pathlib
import tempfile
import time

from harness import Daemon, VarlinkError, board, run_tests, until
from reckoning import Script

SPAN = "[recorder]\nbefore = 30s\nafter = 1s\n"
QUIET = "triggers = none\n"
FAST = "[sampling]\ninterval = 200ms\n"


def lines_of(path):
    """header, replies by method, end; each line one JSON object."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    assert text.endswith("\n")
    rows = [json.loads(line) for line in text.splitlines()]
    replies = collections.defaultdict(list)
    for row in rows[1:-1]:
        if "part" not in row:  # how far it was
            replies[row["call"]].append(row["parameters"])
    assert rows[0]["schema"] == "edgeprof.recording/1", rows[0]
    return rows[0], replies, rows[-1]["end"]


def records_of(replies):
    """(app, kind, name, start_ns, frame) of every record."""
    for chunk in replies["ExportTrace"]:
        columns = chunk.get("records")
        for i in range(len(columns["kind"]) if columns else 0):
            name = columns["name"][i]
            yield (chunk["app"], columns["kind"][i], chunk["names"][name] if name >= 0 else "",
                   columns["mono_us"][i] * 1000 + columns["mono_ns"][i], columns["frame"][i])


def listed(daemon):
    return daemon.call("ListRecordings")["recordings"]


def wait_for(daemon, count=1):
    until(f"{count} recordings", lambda: len(listed(daemon)) >= count and "open" not in daemon.call("ListRecordings"))
    rows = listed(daemon)
    assert len(rows) == count, rows
    return rows


def path_of(daemon, row):
    return daemon.run_dir / "recordings" / (row["name"] + ".jsonl")


def told(daemon, text):
    return [e for e in daemon.call("ListEvents", limit=200)["events"] if e["subject"] == "recorder" and text in e["text"]]


def test_what_was_sent_around_the_moment_is_in_the_file_once_each():
    # covers design §7 (flight recorder)
    with Daemon(FAST + SPAN + QUIET) as daemon, Script(daemon) as script:
        sent = []

        def say(count):
            for _ in range(count):
                at = time.monotonic_ns()
                sent.append((at - 1000000, str(len(sent))))
                script.tell([f"0 complete {at} infer 1000000 {len(sent) - 1}"])

        say(200)
        name = daemon.call("RecordNow", label="by hand")["name"]
        at_ns = time.monotonic_ns()
        while "open" in daemon.call("ListRecordings"):
            say(10)
        row = wait_for(daemon)[0]
        assert row["name"] == name and name.endswith("-now-by_hand"), row
        header, replies, end = lines_of(path_of(daemon, row))
        assert header["trigger"] == {"kind": "now", "subject": "by hand", "text": "now: by hand"}, header
        assert abs(header["mono_us"] * 1000 - at_ns) < 2e9 and header["to_mono_us"] - header["mono_us"] == 1000000
        got = [(start, frame) for _, kind, stage, start, frame in records_of(replies) if stage == "infer"]
        to_ns = header["to_mono_us"] * 1000
        inside = [one for one in sent if one[0] + 1000000 < to_ns - 1000000]
        assert len(inside) > 210 and len(set(got)) == len(got), (len(inside), len(got))
        assert set(inside) <= set(got) <= set(sent), set(inside) ^ set(got)
        assert end["records"] == sum(1 for _ in records_of(replies)) == row["records"] and end["lost"] == 0, end
        for method in ("GetStatus", "GetThrottle", "ListStages", "ListApps", "GetHistory", "ListEvents"):
            assert replies[method], (method, list(replies))
        assert path_of(daemon, row).stat().st_size == row["bytes"]
        assert path_of(daemon, row).stat().st_mode & 0o777 == 0o640
        assert len(told(daemon, name)) == 1


def test_an_alert_makes_one_recording():
    rule = "[alert always]\nmetric = memory/used_percent\nabove = 0\nfor = 1s\n" \
           "[alert told]\nmetric = memory/used_percent\nabove = 0\nseverity = info\n"
    with Daemon(FAST + SPAN + rule) as daemon:
        row = wait_for(daemon)[0]
        header, _, end = lines_of(path_of(daemon, row))
        assert header["trigger"]["kind"] == "alert" and header["trigger"]["subject"] == "always", header
        alert = next(a for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "always")
        assert abs(alert["since_us"] - header["time_us"]) < 300000, (alert, header)
        assert row["triggers"] == 1 and row["after_s"] == 1 and row["span_s"] == row["before_s"] + 1, row
        started = min(e["mono_us"] for e in daemon.call("ListEvents")["events"])
        assert header["from_mono_us"] >= started - 1000000, (header, started)
        assert end["time_us"] == header["time_us"]


def test_missed_deadlines_and_a_hang_make_one_each():
    # built-in alerts tell the same things: they would come first, and these join
    with Daemon(FAST + "[recorder]\nafter = 0s\ntriggers = misses hangs\n") as daemon, Script(daemon) as script:
        script.tell(["0 deadline 0 infer 1000000"] + [f"0 complete 0 infer 500000 {i}" for i in range(40)])
        script.tell([f"0 complete 0 infer 5000000 {i}" for i in range(40, 44)])  # 4 are no burst
        until("the misses are seen", lambda: daemon.call("ListStages", app="cam")["stages"][0]["misses"] == 4)
        until("an interval later", lambda: (daemon.metric("stage/cam/infer/misses") or {}).get("value") in (None, 0))
        assert listed(daemon) == []
        script.tell([f"0 complete 0 infer 5000000 {i}" for i in range(44, 56)])
        row = wait_for(daemon)[0]
        assert row["trigger"].startswith("misses cam/infer: ") and "-misses-cam-infer" in row["name"], row
        script.tell([f"0 complete 0 infer 5000000 {i}" for i in range(56, 70)])  # the same burst
        script.tell(["1 begin 0 infer"])
        row = wait_for(daemon, 2)[1]
        assert row["trigger"] == "hang cam: in infer" and "-hang-cam-infer" in row["name"], row
        script.tell(["1 end 0"])


def test_apps_cannot_use_up_what_is_for_the_device():
    rule = "[alert hot]\nmetric = memory/used_percent\nabove = {}\nfor = 0s\n"
    more = "[recorder]\nafter = 0s\nbefore = 1s\ntriggers = {}\n"
    with Daemon(FAST + more.format("misses") + rule.format(1000)) as daemon, Script(daemon) as script:
        for i in range(7):  # a burst in one stage after the other
            script.tell([f"0 deadline 0 s{i} 1000000"] + [f"0 complete 0 s{i} 5000000 {n}" for n in range(12)])
            until("it is made or refused", lambda n=i: len(listed(daemon)) + daemon.call("ListRecordings")["refused"] > n)
        assert len(listed(daemon)) == 6 and daemon.call("ListRecordings")["refused"] == 1
        assert len(told(daemon, "the limit of apps in 24 hours is reached")) == 1
        daemon.config_path.write_text(daemon.config_path.read_text().replace("above = 1000", "above = 0").replace("= misses", "= alerts"))
        daemon.call("Reload")
        rows = until("the alert of the device", lambda: listed(daemon)[6:])
        assert rows[0]["trigger"].startswith("alert hot ("), rows


def test_a_trigger_past_the_span_gets_a_recording_of_its_own():
    with Daemon(FAST + "[recorder]\nafter = 0s\n" + QUIET) as daemon, contextlib.closing(daemon.client()) as client:
        # in one go: the second comes before the thread of the first has written anything
        names = [client.call("RecordNow", label="twin") for _ in range(2)]
        assert not any(one["joined"] for one in names) and names[0]["name"] != names[1]["name"], names
        rows = wait_for(daemon, 2)
        assert [row["name"] for row in rows] == [one["name"] for one in names] and all(row["triggers"] == 1 for row in rows), rows
        for row in rows:
            header, _, end = lines_of(path_of(daemon, row))
            assert header["name"] == row["name"] and header["from_mono_us"] < header["mono_us"] == header["to_mono_us"], header
            assert end["time_us"] == header["time_us"] == row["time_us"]


def test_a_device_without_apps_keeps_what_it_has_when_it_stops():
    with Daemon(FAST + "[recorder]\nafter = 60s\n" + QUIET) as daemon:
        name = daemon.call("RecordNow")["name"]
        begun = daemon.run_dir / "recordings" / f"{name}.jsonl.new"
        until("something is written", lambda: begun.exists() and b"ListStages" in begun.read_bytes())
        daemon.stop()
        daemon.start()
        row = wait_for(daemon)[0]
        assert row["cut"] == "the daemon stopped" and row["records"] == 0 and lines_of(path_of(daemon, row))[1]["GetStatus"], row
        assert "the daemon stopped" in daemon.ctl("record", "show", name).stdout


def test_further_triggers_join_the_open_recording():
    with Daemon(FAST + SPAN + QUIET) as daemon:
        first = daemon.call("RecordNow")
        second = daemon.call("RecordNow", label="x\"\\y")
        assert second == {"name": first["name"], "joined": True}, (first, second)
        row = wait_for(daemon)[0]
        assert row["triggers"] == 2, row
        assert [one["text"] for one in lines_of(path_of(daemon, row))[2]["joined"]] == ["now: x__y"]


def test_twelve_in_a_day_also_over_restarts():
    with Daemon(FAST + "[recorder]\nafter = 0s\nkeep = 3\n" + QUIET) as daemon:
        for i in range(12):
            if i == 6:
                daemon.kill()
                daemon.start()
            daemon.call("RecordNow", label=f"n{i}", before_s=1)
            until("it is there", lambda i=i: any(r["trigger"] == f"now: n{i}" for r in listed(daemon)))
        assert [r["trigger"] for r in listed(daemon)] == ["now: n9", "now: n10", "now: n11"]
        assert len(os.listdir(daemon.run_dir / "recordings")) == 3
        for _ in range(2):
            daemon.stop()
            daemon.start()
            for _ in range(2):
                with contextlib.suppress(VarlinkError):
                    raise AssertionError(daemon.call("RecordNow"))
            done = daemon.ctl("record", "now")
            assert done.returncode == 1 and "limit of 12 recordings in 24 hours" in done.stderr, done
        assert daemon.call("ListRecordings")["refused"] == 3
        assert len(told(daemon, "the limit of requests in 24 hours is reached")) == 2  # once in each life


def flood_of_warnings(daemon, root, rule, count):
    """So many alerts of the rule one after the other, each with a recording of its own."""
    temp = root / "sys/class/thermal/thermal_zone0/temp"
    for i in range(count):
        temp.write_text("90000\n")
        until("it fires", lambda: any(a["rule"] == rule and a["state"] == "firing" for a in daemon.call("ListAlerts")["alerts"]))
        until("it is made or refused", lambda n=i: "open" not in daemon.call("ListRecordings") and
              len(listed(daemon)) + daemon.call("ListRecordings")["refused"] > n)
        temp.write_text("50000\n")
        until("it is over", lambda: not daemon.call("ListAlerts")["alerts"])


def test_warnings_leave_recordings_for_critical_alerts_and_for_people():
    rules = "[alert temperature]\nenabled = no\n[alert temperature_limit]\nenabled = no\n" \
            "[alert warm]\nmetric = temperature/max\nabove = {}\nmax_per_hour = 0\n" \
            "[alert burning]\nmetric = temperature/max\nabove = {}\nseverity = critical\n"
    with tempfile.TemporaryDirectory() as scratch:
        root, temp = board(scratch)
        with Daemon(FAST + "[recorder]\nbefore = 1s\nafter = 0s\n" + rules.format(80, 1000), root=root) as daemon:
            flood_of_warnings(daemon, root, "warm", 10)
            assert len(listed(daemon)) == 8 and daemon.call("ListRecordings")["refused"] == 2
            daemon.config_path.write_text(daemon.config_path.read_text().replace("above = 80", "above = 500").replace("above = 1000", "above = 80"))
            assert daemon.ctl("reload").returncode == 0
            temp.write_text("90000\n")
            until("the critical one", lambda: any(r["trigger"].startswith("alert burning") for r in listed(daemon)))
            first = listed(daemon)[0]["name"]
            for i in range(4):  # two are free; then the oldest warnings go
                done = daemon.ctl("record", "now", f"hand{i}", "0s", "0s")
                assert done.returncode == 0, done
                until("it is there", lambda n=i: any(r["trigger"] == f"now: hand{n}" for r in listed(daemon)))
            names = [r["name"] for r in listed(daemon)]
            assert len(names) == 12 and first not in names and any("-alert-burning" in n for n in names), names


def test_a_step_to_critical_is_recorded_after_the_warning():
    rule = "[alert temperature]\nclear_for = 0s\n[alert temperature_limit]\nenabled = no\n"
    with tempfile.TemporaryDirectory() as scratch:
        root, temp = board(scratch)
        with Daemon(FAST + "[recorder]\nbefore = 1s\nafter = 0s\n" + rule, root=root) as daemon:
            until("watched", lambda: daemon.call("ListAlerts", all=True)["alerts"])
            temp.write_text("77000\n")
            wait_for(daemon)
            temp.write_text("90000\n")
            row = wait_for(daemon, 2)[1]
            assert row["trigger"].startswith("alert temperature (critical)"), row


if __name__ == "__main__":
    run_tests(globals())
