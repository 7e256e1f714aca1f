#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One path through everything: sensors and events -> statistics -> history -> alerts -> answers."""
# covers G2.1
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from harness import DEMO, SHARED, WRITER, Daemon, VarlinkError, board, program, run_tests, until


def test_sensors_of_this_machine_have_values_states_and_reasons():
    with Daemon() as daemon:
        until("two samples of the processor", lambda: (daemon.metric("cpu/utilization") or {}).get("value") is not None)
        cpu = daemon.metric("cpu/utilization")
        assert 0 <= cpu["value"] <= 100 and cpu["unit"] == "percent" and cpu["source"] == "cpu", cpu
        memory = {m["name"]: m for m in daemon.call("ListMetrics", glob="memory/*")["metrics"]}
        with open("/proc/meminfo", encoding="ascii") as text:
            info = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in text}
        used = info["MemTotal"] - info["MemAvailable"]
        assert abs(memory["memory/used"]["value"] - used) < 512 << 20, (memory, used)
        sources = {s["name"]: s for s in daemon.call("ListSources")["sources"]}
        assert sources["cpu"]["state"] == "ok", sources["cpu"]
        for source in sources.values():
            assert source["state"] == "ok" or source["reason"], source
        for metric in daemon.call("ListMetrics")["metrics"]:
            assert "value" in metric, metric
            assert metric["value"] is not None or metric.get("reason"), metric


def overlay(device, target, snapshot=False):
    tree = SHARED / "fixtures" / "sysroot" / device
    if not snapshot:
        shutil.copytree(tree, target, symlinks=True)
        subprocess.run(["chmod", "-R", "u+w", str(target)], check=True)
    else:
        for file in (tree / "snap2").rglob("*"):
            if file.is_file():
                place = target / file.relative_to(tree / "snap2")
                place.write_bytes(file.read_bytes())


def check_device(device):
    tree = SHARED / "fixtures" / "sysroot" / device
    expected = json.loads((tree / "expected.json").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch) / "root"
        overlay(device, root)
        with Daemon("[sampling]\ninterval = 200ms\n", root=root) as daemon:
            until("the first samples", lambda: daemon.metric("memory/used") is not None)
            values = {m["name"]: m for m in daemon.call("ListMetrics")["metrics"]}
            for key, celsius in expected["zones"].items():
                zone = key.split(":", 1)[1].replace(" ", "_")
                metric = values["temperature/" + zone]
                if celsius is None:
                    assert metric["value"] is None and metric["reason"], metric
                else:
                    assert abs(metric["value"] - celsius) < 0.001, (device, metric, celsius)
            real = [
                celsius
                for key, celsius in expected["zones"].items()
                if celsius is not None and not any(i.startswith(key.split(":", 1)[1]) for i in expected.get("ignore_zones", []))
            ]
            if real:
                assert abs(values["temperature/max"]["value"] - max(real)) < 0.001, (device, values["temperature/max"])
            if expected["mem_kb"]["available"] is not None:
                assert values["memory/available"]["value"] == expected["mem_kb"]["available"] * 1024
            else:
                assert values["memory/available"]["value"] is None
            load = [values["cpu/load" + n]["value"] for n in ("1", "5", "15")]
            assert all(abs(a - b) < 1e-9 for a, b in zip(load, expected["loadavg"])), (device, load)
            overlay(device, root, snapshot=True)
            wanted = expected["cpu_pct_between_stat_and_snap2"]["cpu"]

            def between():
                history = daemon.call("GetHistory", glob="cpu/utilization")["series"]
                return any(abs(v - wanted) < 0.02 for s in history for v in s["mean"])

            until(f"{device}: {wanted} % between the two snapshots", between)
            if expected.get("model"):
                assert daemon.call("GetStatus")["model"].startswith(expected["model"]), device


# covers G0.11
def test_fixture_trees_read_right():
    if not (SHARED / "fixtures" / "sysroot").is_dir():
        return "no ../shared/fixtures here"
    for device in ("jetson-nano-jp4", "jetson-orin-nano-jp6", "rpi4", "rpi5", "vm-generic", "x86-laptop"):
        check_device(device)


def stages_of(daemon, app):
    try:
        return daemon.call("ListStages", app=app)["stages"]
    except VarlinkError as error:
        assert error.name == "io.edgeprof.NotFound", error
        return []


# covers G0.4 (data), G0.2, G2.1
def test_demo_pipeline_is_profiled():
    with Daemon() as daemon, program([DEMO, "--app", "demo", "--fps", "60"], daemon.env):
        until(
            "every stage of the demo has events",
            lambda: len([s for s in stages_of(daemon, "demo") if s["count"] > 30]) >= 5,
        )
        reply = daemon.call("ListStages", app="demo")
        names = [s["stage"] for s in reply["stages"]]
        assert set(names) >= {"capture", "preprocess", "infer", "postprocess", "publish"}, names
        for stage in reply["stages"]:
            assert stage["min_ms"] <= stage["p50_ms"] <= stage["p90_ms"] <= stage["p95_ms"] <= stage["p99_ms"] <= stage["max_ms"]
            assert stage["median_ms"] == stage["p50_ms"] and stage["exact"] is True
        total = reply["totals"][0]
        per_frame = sum(s["per_frame_ms"] for s in reply["stages"] if s["stage"] != "total")
        assert abs(total["mean_ms"] - per_frame) < 1e-6, (total, per_frame)
        assert abs(total["max_fps"] - 1000 / total["mean_ms"]) < 1e-6 and total["max_fps"] == total["throughput_fps"]
        frames = daemon.call("GetFrames", app="demo")["frames"][0]
        assert frames["status"] == "ok" and 1 < frames["fps"] < 100, frames
        assert frames["fps_min"] <= frames["fps_mean"] <= frames["fps_max"]
        app = daemon.call("ListApps")["apps"][0]
        assert app["sent"] == app["received"] + app["dropped"] + app["in_ring"] and app["received"] > 0, app
        until("stage metrics", lambda: (daemon.metric("stage/demo/infer/p95_ms") or {}).get("value"))
        until("the app's process is watched", lambda: (daemon.metric("process/demo/rss") or {}).get("value"))
        until(
            "stage history",
            lambda: sum(len(s["mean"]) for s in daemon.call("GetHistory", glob="stage/demo/*/p95_ms")["series"]) > 5,
        )


# covers G0.3
def test_app_that_is_killed_leaves_its_last_words():
    with Daemon() as daemon:
        with program([WRITER, "cam", "100000000", "2", "1000", "0"], daemon.env, stdout=subprocess.PIPE) as app:
            until("the app is seen", lambda: daemon.call("ListApps")["apps"])
            app.send_signal(signal.SIGKILL)

            def died():
                return [e for e in daemon.call("ListEvents")["events"] if e["subject"] == "cam" and "died" in e["text"]]

            event = until("the death is on the timeline", died)[0]
        assert event["kind"] == "app" and event["severity"] == "warning", event
        apps = daemon.call("ListApps")["apps"]
        assert apps[0]["state"] == "killed" and apps[0]["processes"] == [], apps
        assert apps[0]["sent"] == apps[0]["received"] + apps[0]["dropped"]


def test_events_are_counted_exactly_across_kill_of_the_daemon():
    daemon = Daemon()
    try:
        daemon.start()
        command = [WRITER, "cam", "240000", "3", "100", "30"]
        with program(command, daemon.env, stdout=subprocess.PIPE, text=True) as app:
            for _ in range(6):
                until("events flow", lambda: any(a["received"] > 100 for a in daemon.call("ListApps")["apps"]))
                daemon.kill()
                daemon.start()
            counts = json.loads(app.stdout.readline())
        assert counts["unattached"] == 0, counts
        assert counts["sent"] == counts["calls"], counts
        assert counts["in_ring"] == 0 and counts["sent"] == counts["received"] + counts["dropped"], counts
        assert counts["received"] > 0, counts
        daemon.stop()
    finally:
        daemon.clean()


def test_history_survives_kill_9():
    daemon = Daemon("[sampling]\ninterval = 100ms\n")
    try:
        daemon.start()
        until("some history", lambda: sum(len(s["mean"]) for s in daemon.call("GetHistory", glob="cpu/load1")["series"]) > 10)
        before = daemon.call("GetHistory", glob="cpu/load1")["series"][0]
        daemon.kill()
        daemon.start()
        after = daemon.call("GetHistory", glob="cpu/load1", max_points=500)["series"][0]
        old = dict(zip(before["time_us"], before["mean"]))
        new = {t: v for t, v in zip(after["time_us"], after["mean"])}
        # wall times are made from the clock offset of now: they may move by microseconds
        kept = [v for t, v in old.items() if any(abs(t - u) < 5000 and v == w for u, w in new.items())]
        assert len(kept) >= len(old) - 1, (len(kept), len(old))
        daemon.stop()
    finally:
        daemon.clean()


def test_alerts_go_on_after_kill_9_and_are_not_told_again():
    config = "[sampling]\ninterval = 100ms\n[alert used]\nmetric = memory/used_percent\nabove = 0\nfor = 0s\n"
    with Daemon(config) as daemon:
        def alert():
            return [a for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "used" and a["state"] == "firing"]

        def told():
            return [e for e in daemon.call("ListEvents")["events"] if e["kind"] == "alert" and e["subject"] == "used"]

        before = until("it fires", alert)[0]
        assert len(told()) == 1
        for _ in range(3):
            daemon.kill()
            daemon.start()
            after = until("it goes on firing", alert)[0]
            assert abs(after["since_us"] - before["since_us"]) < 100_000, (before, after)
            assert after["text"] == before["text"]
            assert daemon.call("GetStatus")["time_us"] > 0
        assert len(told()) == 1, told()


# covers G0.16 (transitions)
def test_timeline_survives_kill_9():
    with Daemon() as daemon:
        daemon.call("Mark", label="before the kill")
        before = daemon.call("ListEvents")["events"]
        assert before[-1]["text"] == "before the kill", before[-1]
        daemon.kill()
        daemon.start()
        after = daemon.call("ListEvents")["events"]
        # wall times are made from the clock offset of now: they may move by microseconds
        same = [[{k: v for k, v in e.items() if k != "time_us"} for e in events] for events in (before, after)]
        assert same[1][: len(before)] == same[0], after
        assert after[len(before)]["kind"] == "daemon" and after[-1]["serial"] == after[0]["serial"] + len(after) - 1
        daemon.call("Mark", label="after it")
        assert daemon.call("ListEvents", from_serial=after[-1]["serial"] + 1)["events"][0]["text"] == "after it"


def test_alert_fires_once_and_clears():
    with tempfile.TemporaryDirectory() as scratch:
        root, temp = board(scratch)
        config = "[sampling]\ninterval = 100ms\n[alert temperature]\nclear_for = 200ms\n"
        with Daemon(config, root=root) as daemon, contextlib.closing(daemon.client(60)) as client:
            until("the temperature", lambda: (daemon.metric("temperature/max") or {}).get("value") == 50)
            stream = client.stream("Subscribe", events=True, metrics=False)
            assert next(stream).get("alerts") == []
            temp.write_text("81234\n")
            event = next(e for reply in stream for e in reply.get("events", []) if e["kind"] == "alert")
            assert event["text"] == "THERMAL WARNING: 81.2C (threshold: 75.0)", event
            assert event["severity"] == "warning" and event["subject"] == "temperature", event
            alerts = daemon.call("ListAlerts")["alerts"]
            assert [a["rule"] for a in alerts] == ["temperature"] and alerts[0]["state"] == "firing", alerts
            assert daemon.ctl("alerts", "--check").returncode == 1
            temp.write_text("84000\n")
            event = next(e for reply in stream for e in reply.get("events", []) if e["kind"] == "alert")
            assert event["text"] == "THERMAL CRITICAL: 84.0C (threshold: 82.0)", event
            temp.write_text("50000\n")
            event = next(e for reply in stream for e in reply.get("events", []) if e["kind"] == "alert")
            assert event["severity"] == "info", event
            until("no alert is left", lambda: daemon.call("ListAlerts")["alerts"] == [])
            told = [e for e in daemon.call("ListEvents")["events"] if e["kind"] == "alert"]
            assert len(told) == 3, told
            assert daemon.ctl("alerts", "--check").returncode == 0
            assert daemon.log().count("THERMAL WARNING") == 1, daemon.log()


def test_unreadable_zone_is_null_alone():
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch) / "root"
        for n, (kind, temp) in enumerate([("cpu", "40000\n"), ("gpu", ""), ("odd/na me", "x" * 9000), ("cv0", None)]):
            zone = root / f"sys/class/thermal/thermal_zone{n}"
            zone.mkdir(parents=True)
            (zone / "type").write_text(kind + "\n")
            if temp is not None:
                (zone / "temp").write_text(temp)
        (root / "proc").mkdir()
        with Daemon("[sampling]\ninterval = 100ms\n", root=root) as daemon:
            until("the good zone", lambda: (daemon.metric("temperature/cpu") or {}).get("value") == 40)
            for name in ("gpu", "odd_na_me", "cv0"):
                metric = daemon.metric("temperature/" + name)
                assert metric["value"] is None and metric["reason"], metric
            sources = {s["name"]: s for s in daemon.call("ListSources")["sources"]}
            assert sources["thermal"]["state"] == "ok"
            assert sources["memory"]["state"] != "ok" and sources["memory"]["reason"], sources["memory"]


def test_app_without_daemon_attaches_when_one_comes():
    daemon = Daemon()
    try:
        with program([DEMO, "--app", "early", "--fps", "30"], daemon.env):
            time.sleep(0.5)  # nothing to await: the app must be running with nobody there
            daemon.start()
            until("the app attached by itself", lambda: [a for a in daemon.call("ListApps")["apps"] if a["received"] > 0])
        daemon.stop()
    finally:
        daemon.clean()


def test_configured_process_pattern_is_watched():
    with Daemon("[process napper]\nmatch = sleep\n") as daemon, program(["sleep", "1000"], daemon.env) as child:
        # other processes of that name may run here: wait for this one
        until("the pattern's process", lambda: any(r["pid"] == child.pid for r in daemon.call("ListProcesses")["processes"]))
        rows = [r for r in daemon.call("ListProcesses")["processes"] if r["pid"] == child.pid]
        assert rows and rows[0]["comm"] == "sleep" and rows[0]["name"] == "napper", rows
        itself = [r for r in daemon.call("ListProcesses")["processes"] if r["pid"] == daemon.pid]
        assert itself and itself[0]["rss_bytes"] > 0, itself


# covers G1.9 covers G1.16 G1.21 G2.4
def test_process_is_watched_at_run_time():
    with Daemon("[process small]\nmatch = sleep\nmemory_limit = 4K\n") as daemon, program(["sleep", "1000"], daemon.env) as child:
        os.sched_setaffinity(child.pid, {0})
        nice = min(os.nice(0) + 5, 19)
        os.setpriority(os.PRIO_PROCESS, child.pid, nice)
        assert daemon.ctl("ps", "--watch", str(child.pid), "--name", "mine").returncode == 0
        until("its metrics", lambda: (daemon.metric("process/mine/voluntary_switches") or {}).get("value") is not None)
        def of_child():
            rows = daemon.call("ListProcesses", threads=True)["processes"]
            return {r["name"]: r for r in rows if r["pid"] == child.pid}

        until("both its names", lambda: {"mine", "small"} <= set(of_child()))
        until("its memory map was read", lambda: of_child()["mine"].get("pss_bytes") is not None)
        rows = of_child()
        row = rows["mine"]
        assert row["affinity"] == "0" and row["nice"] == nice and row["policy"] == "SCHED_OTHER", row
        assert row["busiest"][0]["tid"] == child.pid and row["fds"] >= 0 and row["pss_bytes"] > 0, row
        assert "cycles" in row or row["counters_reason"], row
        assert rows["small"]["threshold_exceeded"] is True and "threshold_exceeded" not in row, rows
        assert "SCHED_OTHER" in daemon.ctl("ps").stdout
        assert daemon.ctl("ps", "--unwatch", "mine").returncode == 0
        until("its metrics go", lambda: daemon.metric("process/mine/rss") is None)
        assert daemon.ctl("ps", "--unwatch", "small").returncode == 2  # the configuration's stay
        assert daemon.ctl("ps", "--name", "x").returncode == 64


def test_second_daemon_is_refused_and_harms_nothing():
    with Daemon() as daemon:
        other = subprocess.run(
            [daemon.process.args[0], "-c", str(daemon.config_path)], env=daemon.env, capture_output=True, text=True, timeout=30
        )
        assert other.returncode == 69, other
        assert "another edgeprofd is running" in other.stderr or "in use" in other.stderr, other.stderr
        assert daemon.call("GetStatus")["version"]


if __name__ == "__main__":
    run_tests(dict(globals()))
