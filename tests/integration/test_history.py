#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The past, asked for through edgeprofctl; and what a kill -9 at any moment leaves of it."""
import contextlib
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

from harness import BUILD, CTL, DAEMON, DEMO, Daemon, Varlink, VarlinkError, program, run_tests, until
from test_apps import Actor

KILLS = int(os.environ.get("EDGEPROF_KILLS", 60))


def around(daemon, *words):
    done = daemon.ctl("history", "--around", "now", "-j", *words)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_words_and_globs_find_the_same_everywhere():
    def listed(**parameters):
        return {m["name"] for m in daemon.call("ListMetrics", **parameters)["metrics"]}

    def recorded(glob):
        with contextlib.closing(daemon.client()) as client:
            return {s["name"] for chunk in client.stream("GetHistory", glob=glob) for s in chunk["series"]}

    def subscribed(glob):
        with contextlib.closing(daemon.client()) as client:
            return {m["name"] for m in next(client.stream("Subscribe", glob=glob, events=False))["metrics"]}

    with Daemon("[sampling]\ninterval = 100ms\n") as daemon:
        loads = {"cpu/load1", "cpu/load5", "cpu/load15"}
        until("rows", lambda: len(recorded("cpu/load*")) == 3)
        for ask in (lambda glob: listed(glob=glob), recorded, subscribed):
            assert ask("cpu/load1") == {"cpu/load1"}, "a metric's name is that metric"
            assert ask("load") == ask("load*") >= loads and ask("cpu/load") == loads, ask("load")
            assert loads < ask("cpu") and all(re.search("(^|/)cpu", name) for name in ask("cpu")), ask("cpu")
            assert len(ask("*")) > len(ask("cpu")) > 3
        for method in ("ListMetrics", "GetHistory"):
            try:
                daemon.call(method, glob="nosuchmetric")
                raise AssertionError(method)
            except VarlinkError as error:
                assert error.name == "io.edgeprof.NotFound", error
        for verb in ("sensors", "history"):
            done = daemon.ctl(verb, "nosuchmetric")
            assert done.returncode == 2 and "'edgeprofctl sensors --all' lists them" in done.stderr, done
        assert daemon.ctl("watch", "load", "--count", "1").stdout.count("cpu/load") == 3


def test_the_log_says_once_what_this_machine_has():
    with Daemon("[source load]\nenabled = no\n") as daemon:
        until("it started", lambda: "started, version" in daemon.log())
        lines = [line for line in daemon.log().splitlines() if "source" in line]
        assert len(lines) == 1, lines
        assert re.search(r"\d+ sources active(; not available on this machine: [a-z, ]+)?; switched off: load$", lines[0]), lines
        assert "0 failing" not in daemon.ctl("status").stdout
        assert re.search(r"^Sources +\d+ ok, \d+ metrics$", daemon.ctl("status").stdout, re.M)


def test_what_happened_is_one_command():
    config = "[sampling]\ninterval = 100ms\n[alert used]\nmetric = memory/used_percent\nabove = 0\nfor = 0s\n"
    with Daemon(config) as daemon:
        until("rows", lambda: len(daemon.call("GetHistory", glob="cpu/utilization")["series"]) == 1)
        time.sleep(3)  # what is compared with must be the past
        middle = time.time() - 0.2
        daemon.call("Mark", label="model loaded")
        with program(["sh", "-c", "while :; do :; done"], daemon.env):
            def busy():
                told = around(daemon, "--span", "2s")
                return told if "model loaded" in str(told["events"]) and told["series"] else None
            told = until("a change next to the mark", busy)
        for event in told["events"]:
            assert told["from_us"] <= event["time_us"] <= told["to_us"], event
        for series in told["series"]:
            assert series["score"] > 0 and not series["name"].startswith(("self/", "collector/")), series
        scores = [series["score"] for series in told["series"]]
        assert scores == sorted(scores, reverse=True)
        text = daemon.ctl("history", "--around", f"@{middle:.1f}", "--span", "5s", "--no-pager")
        assert text.returncode == 0, text
        assert "model loaded" in text.stdout and "series left their range" in text.stdout, text.stdout
        times = [line.split()[0] for line in text.stdout.splitlines()[1:]]
        assert times == sorted(times), times
        assert len(daemon.ctl("history", "--around", "now", "-n", "1", "--span", "5s").stdout) > 0
        for wrong in (["--around", "tomorrow"], ["--around", "now", "--csv"], ["--span", "5s", "cpu/*"],
                      ["--around", "now", "--span", "recent"], ["--plot", "--csv", "cpu/*"], []):
            assert daemon.ctl("history", *wrong).returncode == 64, wrong
        assert daemon.ctl("history", "--around", "2001-01-01").returncode == 2
        assert daemon.ctl("stages", "--span", "5min").returncode == 64


# A step of the window is 2 s here; what an app changed is not shown before the app.
def test_a_change_is_not_before_what_caused_it():
    with Daemon("[sampling]\ninterval = 100ms\n") as daemon:
        until("rows", lambda: len(daemon.call("GetHistory", glob="cpu/utilization")["series"]) == 1)
        for app in "abcdef":
            for value in 1, 9:
                daemon.ctl("emit", "depth", str(value), "--app", app)
                until("it is sampled", lambda: [s for s in daemon.call("GetHistory", glob="gauge/*/depth")["series"]
                                                if s["name"].split("/")[1] == app and s["max"][-1] == value])
        told = around(daemon, "--span", "120s", "gauge/*/depth")
        began = {e["subject"]: e["time_us"] for e in told["events"] if e["kind"] == "app"}
        changed = {s["name"].split("/")[1]: s["change_us"] for s in told["series"]}
        assert len(changed) == len(began) == 6, told
        order = sorted([(t, "began", app) for app, t in began.items()] + [(t, "changed", app) for app, t in changed.items()])
        assert [row[1:] for row in order] == [(what, app) for app in "abcdef" for what in ("began", "changed")], order


def test_plots_and_tables():
    with Daemon("[sampling]\ninterval = 100ms\n") as daemon:
        until("rows", lambda: sum(len(s["mean"]) for s in daemon.call("GetHistory", glob="cpu/utilization")["series"]) > 20)
        utf8 = dict(daemon.env, LC_ALL="C.UTF-8", COLUMNS="80")
        for env, dots in ((utf8, re.compile("[\u2801-\u28ff]")), (dict(utf8, LC_ALL="C"), re.compile("[.':]"))):
            lines = subprocess.run([str(CTL), "history", "cpu/utilization", "--plot"], env=env,
                                   capture_output=True, check=True, timeout=60).stdout.decode().splitlines()
            assert lines[0] == "cpu/utilization" and len(lines) == 10, lines
            assert any(dots.search(line) for line in lines[1:9]), lines
            assert max(map(len, lines)) <= 80, lines
        table = daemon.ctl("history", "cpu/*", "--table", "--since", "10s").stdout.splitlines()
        assert table[0].split()[0] == "TIME" and "cpu/utilization" in table[0], table
        assert 2 <= len(table) <= 15, table
        times = [line[:19] for line in table[1:] if line[0].isdigit()]
        assert len(set(times)) == len(times) and times == sorted(times), times


# covers G2.12
def test_ten_samples_a_second():
    with Daemon("[sampling]\ninterval = 100ms\n") as daemon:
        def rows():
            series = daemon.call("GetHistory", glob="cpu/utilization")["series"]
            return series[0]["time_us"] if series and len(series[0]["time_us"]) >= 30 else None
        times = until("three seconds", rows)
        gaps = [b - a for a, b in zip(times, times[1:])]
        assert 95_000 < statistics.median(gaps) < 105_000, gaps


def test_one_number_of_each_step():
    """mean, min, max or count, in lines, tables and plots. The metric is an app's, so its numbers are known."""
    with Daemon("[sampling]\ninterval = 100ms\n") as daemon, Actor(daemon) as cam:
        def sampled():
            try:
                series = daemon.call("GetHistory", glob="gauge/cam/load")["series"]
            except VarlinkError:
                return []  # history keeps a new name from its second sample on
            return series[0]["max"] if series else []

        for value in (10, 70):
            cam.do(f"gauge load {value}")
            until("history has it", lambda: value in sampled())
        cam.end()
        until("null behind it", lambda: daemon.metric("gauge/cam/load")["value"] is None)

        def column(*words):
            done = daemon.ctl("history", "gauge/cam/load", "--table", "--step", "1h", *words)
            assert done.returncode == 0, done
            return [float(line.split()[2]) for line in done.stdout.splitlines()[1:] if line[0].isdigit()]

        rows = daemon.call("GetHistory", glob="gauge/cam/load", step_ms=3600000)["series"][0]
        assert min(rows["min"]) == 10 and max(rows["max"]) == 70 and sum(rows["count"]) >= 2, rows
        for word in ("mean", "min", "max", "count"):
            told = column("--aggregate", word)
            assert len(told) == len(rows[word]) and all(abs(a - b) < 0.06 for a, b in zip(told, rows[word])), (word, told)
        assert column() == column("--aggregate", "mean")
        plot = [daemon.ctl("history", "gauge/cam/load", "--plot", "--step", "1h", "--aggregate", w).stdout
                for w in ("min", "max")]
        assert "70" in plot[1] and "70" not in plot[0].splitlines()[1], plot
        for wrong in (["--aggregate", "last"], ["--aggregate", "max", "--csv"], ["--aggregate", "max", "-j"]):
            assert daemon.ctl("history", "gauge/cam/load", *wrong).returncode == 64, wrong


def test_events_of_a_time():
    with Daemon() as daemon:
        for n in range(3):
            daemon.call("Mark", label=f"mark {n}")
            time.sleep(0.05)
        marks = [e for e in daemon.call("ListEvents")["events"] if e["kind"] == "mark"]

        def told(*words):
            done = daemon.ctl("events", "-j", *words)
            assert done.returncode == 0, done
            return [e["text"] for e in json.loads(done.stdout)["events"] if e["kind"] == "mark"]

        middle = f"@{marks[1]['time_us'] / 1e6:.6f}"
        assert len(told()) == 3
        assert told("--since", middle) == [m["text"] for m in marks[1:]]
        assert told("--until", middle) == [m["text"] for m in marks[:2]]
        assert told("--since", middle, "--until", middle) == [marks[1]["text"]]
        assert told("--since", middle, "-n", "1") == [marks[2]["text"]]
        assert told("--until", "1h") == []
        assert daemon.ctl("events", "--since", "tomorrow").returncode == 64


FAKETIME = next((path for path in pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)


def test_a_clock_that_starts_in_1970_leaves_rows_in_order():
    """Only the wall clock is faked; the daemon sees the change when it reads the clock again, each minute."""
    if FAKETIME is None:
        return "no libfaketime"
    if b"__asan_init" in DAEMON.read_bytes():
        return "libfaketime and the address sanitizer exclude each other: needs a build without"
    with tempfile.TemporaryDirectory() as directory:
        clock = pathlib.Path(directory) / "clock"
        clock.write_text("@1970-01-01 12:10:00\n")
        env = dict(LD_PRELOAD=str(FAKETIME), FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1",
                   FAKETIME_TIMESTAMP_FILE=str(clock), TZ="UTC")
        with Daemon("[sampling]\ninterval = 100ms\n", env=env) as daemon:
            def rows():
                with contextlib.closing(daemon.client(60)) as client:
                    return [row for chunk in client.stream("GetHistory", glob="cpu/load1", from_us=0)
                            for series in chunk["series"] for row in zip(series["time_us"], series["mean"])]

            until("rows of 1970", lambda: len(rows()) > 20)
            if daemon.call("GetStatus")["time_us"] > 86400e6:
                return "libfaketime takes no effect on the daemon"
            before = rows()
            assert before[-1][0] < 86400e6, before[-1]
            clock.write_text("+0\n")
            event = until("the step is told", lambda: [e for e in daemon.call("ListEvents")["events"]
                                                       if e["kind"] == "clock" and "was set by +" in e["text"]], 90)[0]
            now_us = time.time() * 1e6
            assert abs(float(event["text"].split("+")[1].split()[0]) * 1e6 - now_us) < 2 * 86400e6, event
            status = daemon.call("GetStatus")
            assert abs(status["time_us"] - now_us) < 5e6, status
            until("rows of now", lambda: abs(rows()[-1][0] - time.time() * 1e6) < 5e6)
            after = rows()
            assert [row[1] for row in after[:len(before)]] == [row[1] for row in before]
            times = [row[0] for row in after]
            assert times == sorted(times)
            if status["clock_synced"]:  # then they are told with the time they really had
                assert abs(times[0] - now_us) < 3600e6, times[0]


class Slow(Daemon):
    """Its wall clock is slow by more[1] seconds."""

    program = [str(BUILD / "tests" / "integration" / "odd-daemon"), "-c"]
    more = ["slow", "0"]


def test_what_was_before_the_clock_was_set_keeps_its_time_over_a_restart():
    daemon = Slow()
    try:
        for slow_s in (18000, 18000, 7200, 0):
            daemon.more = ["slow", str(slow_s)]
            daemon.start()
            daemon.call("Mark", label=f"slow by {slow_s} s")
            daemon.stop()
        daemon.start()
        now_s = time.time()
        told = {e["text"]: (now_s - e["time_us"] / 1e6) for e in daemon.call("ListEvents")["events"] if e["kind"] == "mark"}
        assert len(told) == 3, told
        for text, ago_s in told.items():
            assert abs(ago_s - int(text.split()[2])) < 60, told
        daemon.stop()
    finally:
        daemon.clean()


def test_for_how_long_an_alert_fires_is_of_the_device_s_clock():
    daemon = Slow("[alert loaded]\nmetric = cpu/load1\nabove = -1\n")
    daemon.more = ["slow", "18000"]
    with daemon:
        alert = until("it fires", lambda: next((a for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "loaded"), None))
        assert 0 <= alert["age_ms"] < 60000 and time.time() - alert["since_us"] / 1e6 > 17000, alert
        assert re.search(r"loaded .* [0-9.]+ m?s  ", daemon.ctl("alerts", "--no-pager").stdout), daemon.ctl("alerts").stdout


def test_kills_at_full_rate_lose_at_most_one_sample():
    """Long form: EDGEPROF_KILLS=5000."""
    random.seed(5)
    daemon = Daemon("[sampling]\ninterval = 100ms\nadaptive = no\n[history]\nmemory = 4M\n")
    glob, answers, lost = "**", [], 0

    def read(**parameters):
        with contextlib.closing(daemon.client(60)) as client:
            rows = {}
            for chunk in client.stream("GetHistory", glob=glob, **parameters):
                for s in chunk["series"]:
                    if not s["name"].startswith(("self/", "collector/")):
                        rows.setdefault(s["name"], []).extend(zip(s["time_us"], s["mean"], s["min"], s["max"], s["count"]))
            return rows

    def values(rows):
        # wall times of an earlier process may differ by microseconds: gaps between them do not
        return [row[1:] for row in rows]

    def answer():
        begin = time.monotonic()
        while True:
            with contextlib.suppress(OSError, EOFError):
                with contextlib.closing(Varlink(daemon.socket, 2.0)) as client:
                    client.call("org.varlink.service.GetInfo")
                    return time.monotonic() - begin
            if daemon.process.poll() is not None or time.monotonic() - begin > 30:
                raise AssertionError(daemon.log())
            time.sleep(0.001)

    try:
        daemon.start()
        with program([DEMO], daemon.env, stdout=subprocess.DEVNULL):
            until("tens of series", lambda: len(read()) > 20)
            for _ in range(KILLS):
                since = int((time.time() - 5) * 1e6)
                kept = read(from_us=since)
                last = max(row[0] for rows in kept.values() for row in rows)
                time.sleep(random.random() * 0.15)  # more than a sample of 100 ms
                daemon.kill()
                daemon.start(wait=False)
                answers.append(answer())
                after = read(from_us=since - 1_000_000)
                for name, rows in kept.items():
                    # bit-identical but for the one that may have been half written
                    there = values(after.get(name, []))
                    wanted = values(rows)
                    found = next((n for n in (0, 1) for at in range(len(there))
                                  if there[at:at + len(wanted) - n] == wanted[:len(wanted) - n]), None)
                    assert found is not None, (name, rows, after.get(name))
                    lost = max(lost, found)
            # no process lived through a bucket so far: they are made when one has
            def made():
                return [t for t in daemon.call("GetSelf")["history_tiers"] if t["step_s"] == 10][0]["samples"]
            before = made()
            until("buckets are made", lambda: made() > before + 100, 60)
            buckets = read(step_ms=10000)
            full = read()
        compared = 0
        for name, rows in buckets.items():
            last = rows[-1][0]  # still open
            counted = sum(row[4] for row in full[name] if row[0] < last)
            # each row once, whatever was killed in the middle of its bucket
            assert sum(row[4] for row in rows[:-1]) == counted, (name, rows, counted)
            compared += len(rows) - 1
        assert compared > len(buckets), compared
        print(f"{KILLS} kills, {len(full)} series: at most {lost} sample lost; first answer "
              f"{statistics.median(answers) * 1000:.0f} ms median, {max(answers) * 1000:.0f} ms worst")
        daemon.stop()
    finally:
        daemon.clean()


if __name__ == "__main__":
    run_tests(globals())
