#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports made of raw records: of composed session files, whose numbers are known, of a live app and
of its recording; every format, targets, files, and what a damaged or hostile file does."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import xml.etree.ElementTree

import sessions
from harness import CTL, SOURCE, Daemon, run_tests, until
from reckoning import Script

TARGETS = str(SOURCE / "config" / "targets.conf")
T0 = 5_000_000_000  # of CLOCK_MONOTONIC, in us
COLUMNS = ("kind", "name", "of", "pid", "process", "thread", "mono_us", "mono_ns", "duration_us", "duration_ns",
           "frame", "id", "value", "cpu_us", "depth", "failed", "throttled")


def record(kind, name, start_ms, ms, frame):
    return (kind, name, -1, 1, 1, 0, T0 + round(start_ms * 1000), 0, round(ms * 1000), 0, frame, "", 0, -1, 0, False, 0)


def session(name="one", app="cam", frames=300, warmup=10, infer=lambda i: 20, tags=(), end=True, interval=50, extra=5, late=0):
    """A session's file: frames, 50 ms apart, in which capture takes 5 ms and infer what the function says."""
    row = {"name": name, "app": app, "state": "finished", "warmup": warmup, "frames": frames, "kept_share": 1,
           "started_us": 1_700_000_000_000_000, "elapsed_s": 15,
           "tags": [{"name": k, "value": v} for k, v in tags], "environment": [{"name": "kernel", "value": "6.6"}]}
    start = {"from_mono_us": T0, "to_mono_us": T0 + 60_000_000, "clock_mono_us": [0],
             "clock_time_us": [1_700_000_000_000_000], "apps": [{"app": app}]}
    lines = [{"schema": "edgeprof.session/1", "session": row},
             {"call": "ExportTrace", "parameters": {"start": start, "lost": 0}, "continues": True}]
    for first in range(0, warmup + frames + extra, 20):
        records = []
        for i in range(first, min(first + 20, warmup + frames + extra)):
            at = interval * i
            took = 44 if i < warmup else infer(i - warmup)
            records += [record("complete", 0, at, 5, str(i)), record("complete", 1, at + 5, took, str(i)),
                        record("frame", -1, at, 5 + took, str(i))]
            del records[-2 : -2 + (i >= warmup + frames - late and late > 0)]  # another thread has not reached it
        chunk = {"app": app, "records": {c: [r[k] for r in records] for k, c in enumerate(COLUMNS)},
                 "names": ["capture", "infer"], "units": ["", "gpu"], "categories": ["io", "model"], "lost": 0}
        lines.append({"call": "ExportTrace", "parameters": chunk, "continues": True})
    rows = [{"app": app, "stage": "infer", "unit": "gpu", "deadline_ms": 50}]
    lines.append({"call": "ListStages", "parameters": {"stages": rows}})
    lines += [{"end": row}] if end else []
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def ctl(*arguments, columns=120):
    env = {**os.environ, "EDGEPROF_RUNTIME_DIR": "/nonexistent", "COLUMNS": str(columns), "LC_ALL": "C.UTF-8",
           "TZ": "UTC"}
    return subprocess.run([str(CTL), *map(str, arguments)], env=env, capture_output=True, text=True, timeout=120)


def with_file(text, use):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "s.jsonl"
        path.write_text(text)
        return use(path)


def table_row(text, name):
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [name])


# covers G0.5, G1.15
def test_frames_that_a_stage_has_not_reached_cost_nothing_less():
    """Where frames overlap. One thread that leaves the stage out at the end did not run it."""
    for interval, iterations, runs, total in (20, 16, 1, 25), (50, 20, 0.8, 21):
        done = with_file(session(warmup=0, interval=interval, frames=20, extra=0, late=4), lambda path: ctl("report", path, "-j"))
        tree = json.loads(done.stdout)
        infer = next(s for s in tree["stages"] if s["stage"] == "infer")
        assert (infer["count"], infer["runs_per_frame"], infer["per_frame_ms"]) == (16, runs, 20 * runs), infer
        assert (tree["totals"][0]["mean_ms"], tree["totals"][0]["iterations"]) == (total, iterations), tree["totals"]
        assert tree["frames"]["total_count"] == 20 and tree["frames"]["end_to_end_max_ms"] == 25, tree["frames"]


# covers G0.24
def test_the_profile_of_three_hundred_frames_is_exact():
    text = session(interval=200, infer=lambda i: i % 100 + 1, tags=[("model", "m.tflite"), ("input_size", "320x240")])
    done = with_file(text, lambda path: ctl("report", path, "--format", "profile"))
    assert done.returncode == 0, done
    infer = {"mean_ms": 50.5, "median_ms": 50.5, "p95_ms": 95.05, "p99_ms": 99.01, "min_ms": 1, "max_ms": 100}  # numpy, of three times 1 to 100
    profile = json.loads(done.stdout)
    assert profile["infer"] == infer, profile
    assert profile["capture"] == dict.fromkeys(infer, 5), profile
    assert profile["total"]["mean_ms"] == 55.5, profile
    assert profile["summary"] == {"frames_profiled": 300, "mean_fps": 18.0,
                                  "p95_fps": round(1000 / profile["total"]["p95_ms"], 1),
                                  "model": "m.tflite", "input_size": "320x240"}, profile


# covers G0.24
def test_a_session_without_frames_has_nulls_and_status_two():
    done = with_file(session(frames=0, warmup=10, extra=0), lambda path: ctl("report", path, "--format", "profile"))
    assert done.returncode == 2 and "no frames were measured" in done.stderr, done
    profile = json.loads(done.stdout)
    assert profile["summary"]["frames_profiled"] == 0 and profile["summary"]["mean_fps"] is None, profile
    assert profile["total"]["mean_ms"] is None, profile


# covers G0.5 G0.6 G1.3 G1.12 G1.16 G3.11 G3.15 G4.5 G4.6 G4.9
def test_the_text_has_every_section():
    done = with_file(session(infer=lambda i: 60 if i % 10 == 5 else 20), lambda path: ctl("report", path))
    assert done.returncode == 0, done
    text = done.stdout
    assert table_row(text, "capture")[1:] == ["5.0", "5.0", "5.0", "300"], text
    assert table_row(text, "infer@gpu")[1:] == ["24.0", "60.0", "60.0", "300"], text
    # infer of 60 ms reaches into the next frame, 50 ms after this one
    assert table_row(text, "TOTAL")[1:] == ["(sequential)", "29.0"] and "MAX FPS" in text, text
    for part in ("PIPELINE PROFILING REPORT", "Most time in  infer@gpu 82.8 %, capture 17.2 %", "By compute unit",
                 "Rate          20.0 fps, ", "10 of warm-up skipped"):
        assert part in text, (part, text)
    late = next(line for line in text.split("Deadlines")[1].splitlines() if "infer" in line)
    assert late.split() == ["infer@gpu", "50", "30", "10.00", "%", "1", "60.0"], text
    narrow = with_file(session(), lambda path: ctl("report", path, columns=60))
    assert max(map(len, narrow.stdout.splitlines())) <= 60, narrow.stdout


# covers G3.8
def test_priorities_change_above_20_and_at_5_percent():
    ms = {"a": 2, "b": 0.5, "c": 0.499, "d": 1.01, "e": 3.01, "f": 0.51, "g": 2.471}  # 10 in all
    truth = {name: "HIGH" if took > 2 else "MEDIUM" if took >= 0.5 else "LOW" for name, took in ms.items()}
    with tempfile.TemporaryDirectory() as folder:
        for frames in (150, 1077):  # sums whose last digits are above and below
            stages = {name: [took] * frames for name, took in ms.items()}
            path = sessions.write(pathlib.Path(folder) / "s.jsonl", "one", stages)
            rows = json.loads(ctl("report", path, "--format", "json").stdout)["stages"]
            assert {row["stage"]: row["priority"] for row in rows} == truth, rows


# covers G3.6
def test_json_markdown_and_junit_go_to_files_by_name():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "s.jsonl").write_text(session(name="a|b_<i>", infer=lambda i: 60 if i == 7 else 20))
        for name in ("r.json", "r.md", "r.xml", "r.txt"):
            done = ctl("report", folder / "s.jsonl", "-o", folder / name)
            assert (done.returncode, done.stdout) == (0, ""), done
        tree = json.loads((folder / "r.json").read_text())
        assert tree["summary"]["frames_profiled"] == 300 and tree["environment"] == {"kernel": "6.6"}, tree
        assert {"session", "frames", "stages", "units", "categories", "series", "events", "warnings"} <= set(tree)
        stage = next(s for s in tree["stages"] if s["stage"] == "infer")
        assert (stage["misses"], stage["runs_per_frame"], stage["unit"]) == (1, 1, "gpu"), stage
        markdown = (folder / "r.md").read_text()
        assert markdown.startswith("# Report of a\\|b\\_\\<i\\>\n") and "| infer@gpu | 20.1 |" in markdown, markdown
        suite = xml.etree.ElementTree.parse(folder / "r.xml").getroot()
        assert (suite.attrib["tests"], suite.attrib["failures"]) == ("3", "1"), suite.attrib
        assert [c.attrib["name"] for c in suite] == ["a|b_<i>: frames", "a|b_<i>: stage capture", "a|b_<i>: stage infer@gpu"]
        assert suite.findall("testcase/failure")[0].attrib["message"].startswith("1 over the deadline of 50 ms")
        assert sorted(p.name for p in folder.iterdir()) == ["r.json", "r.md", "r.txt", "r.xml", "s.jsonl"]
        assert ctl("report", folder / "s.jsonl", "-o", folder / "r.pdf").returncode == 64
        assert ctl("report", folder / "s.jsonl", "-o", "-").stdout.startswith("Report of a|b_<i>\n")
        absent = ctl("report", folder / "s.jsonl", "--app", "nobody")
        assert absent.returncode == 2 and "no records of app 'nobody'" in absent.stderr, absent
        assert ctl("report", folder / "s.jsonl", "--card", "-o", folder / "c.txt").returncode == 64
        assert ctl("report", folder / "s.jsonl", "-o", folder / "none" / "r.md").returncode == 74
        assert ctl("report", folder / "s.jsonl", "-o", "/dev/full", "--format", "text").returncode == 74


def test_a_session_that_states_its_end_in_its_points_has_its_sensors_and_events():
    lines = session().splitlines(keepends=True)
    lines[1] = lines[1].replace(f'"to_mono_us":{T0 + 60_000_000}', f'"to_mono_us":{T0}')  # as the daemon does
    times = [1_700_000_000_000_000 + T0 + s * 1_000_000 for s in range(1, 15)]
    series = [{"name": n, "unit": "celsius", "step_ms": 0, "time_us": times, "count": [1] * 14, "mean": list(range(14)),
               "min": [0] * 14, "max": [9] * 14} for n in ("temperature/max", *[f"throttle/bit{i}" for i in range(20)], "gpu/utilization")]
    event = {"serial": 1, "time_us": times[8], "mono_us": T0 + 9_000_000, "kind": "alert", "text": "hot", "severity": "warning"}
    lines[-1:-1] = [json.dumps(line, separators=(",", ":")) + "\n" for line in (
        {"call": "GetHistory", "parameters": {"series": series}},
        {"part": {"block": 1, "mono_us": T0 + 10_000_000, "measured_mono_us": T0 + 500_000}},
        {"call": "ListEvents", "parameters": {"events": [event], "last_serial": 1}})]
    text = "".join(lines)
    tree = json.loads(with_file(text, lambda path: ctl("report", path, "--format", "json")).stdout)
    assert (tree["series"]["temperature/max"]["max"], tree["series"]["temperature/max"]["last"]) == (13, 13), tree["series"]
    assert [e["text"] for e in tree["events"]] == ["hot"] and 8.9 < tree["events"][0]["at_s"] < 9.1, tree["events"]
    shown = with_file(text, lambda path: ctl("report", path)).stdout
    assert "gpu/utilization" in shown and "hot" in shown, shown
    assert "no sensor was read" not in shown and "unsampled" not in tree["recording"], shown


def test_a_session_between_two_samples_says_that_no_sensor_was_read():
    tree = json.loads(with_file(session(frames=10), lambda path: ctl("report", path, "--format", "json")).stdout)
    assert not tree["series"] and tree["recording"]["unsampled"] is True, tree
    shown = with_file(session(frames=10), lambda path: ctl("report", path)).stdout
    assert "\nMemory        - (no sensor was read in this time)\n" in shown, shown
    assert "\n- no sensor was read in this time: memory, temperature and power are not known\n" in shown, shown


def test_blocks_of_time_that_were_dropped_are_not_one_long_frame():
    """The start of the records was in one of them, as the daemon writes it."""
    lines = session(warmup=0, frames=0, extra=400).splitlines(keepends=True)
    header = json.loads(lines[0])
    header.update(time_us=1_700_000_000_000_000, mono_us=T0)
    header["session"].update(frames=0, warmup=10, kept_share=0.5, measured_us=header["time_us"] + 500_000)
    blocks = [f'{{"block":{{"block":{i},"mono_us":{T0 + i * 5_000_000}}}}}\n' for i in range(5)]
    chunks = lines[2:22]  # of a second each
    text = [json.dumps(header, separators=(",", ":")) + "\n", blocks[0], *chunks[5:10], blocks[2], *chunks[15:20], blocks[4], *lines[22:-1], json.dumps({"end": header["session"]}) + "\n"]
    assert lines[1].count("start") and len(chunks) == 20
    done = with_file("".join(text), lambda path: ctl("report", path, "--format", "json"))
    assert done.returncode == 0, done
    tree = json.loads(done.stdout)
    frames = tree["frames"]
    assert (frames["total_count"], frames["frame_count"]) == (200, 198), frames
    assert abs(frames["fps"] - 20) < 1e-6 and (frames["fps_1s_min"], frames["fps_1s_max"]) == (20, 20), frames
    assert frames["frame_time_p99_ms"] == 50, frames
    assert not [w for w in tree["warnings"] if "warm-up" in w], tree["warnings"]


def test_the_page_has_warnings_deadlines_and_the_target():
    text = session(frames=60, infer=lambda i: 60 if i == 7 else 40)
    with tempfile.TemporaryDirectory() as folder:
        path, page = pathlib.Path(folder) / "s.jsonl", pathlib.Path(folder) / "s.html"
        path.write_text(text)
        done = ctl("report", path, "-o", page, "--targets", TARGETS, "--target", "orin-nano/yolov5s-fp16")
        assert done.returncode == 1, done  # outside of the target
        shown = page.read_text()
    for part in ("only 60 frames: percentiles want 100 or more", "only 3.0 s: caches, clocks and heat settle later",
                 "<dd>orin-nano/yolov5s-fp16 (", "<dd>fps 20.0: outside 30 to 60", "<dd>20.0 fps,",
                 '<td>infer@gpu</td><td class="n">50</td><td class="n">1</td><td class="n">1.67 %</td>'):
        assert part in shown, (part, shown)


def test_charts_are_of_the_stages_with_the_most_time():
    lines = session(warmup=0, frames=0, extra=20).splitlines(keepends=True)
    chunk = json.loads(lines[2])
    part = chunk["parameters"]
    rows = list(zip(*part["records"].values()))
    short = [record("complete", 2 + i, 50 * at + 5, 0.1, str(at)) for at in range(20) for i in range(18)]
    rows = [row for row in rows if row[1] == 0] + short + [row for row in rows if row[1] != 0]
    part["records"] = {c: [row[k] for row in rows] for k, c in enumerate(COLUMNS)}
    part["names"] += [f"short{i}" for i in range(18)]
    part.update({key: part[key] + [""] * 18 for key in ("units", "categories")})
    lines[2] = json.dumps(chunk, separators=(",", ":")) + "\n"
    page = with_file("".join(lines), lambda path: ctl("report", path, "--format", "html")).stdout
    charts = re.findall('<div class="card"><h3>(.*?)</h3>', page)
    assert charts == ["End to end", "capture", *(f"short{i}" for i in range(11)), "infer"], charts


def test_what_is_not_known_is_null_and_frames_in_flight_do_not_count():
    lines = session(warmup=0, frames=0, extra=20).splitlines(keepends=True)
    chunk = json.loads(lines[2])
    records = chunk["parameters"]["records"]
    records["throttled"] = [-1] * len(records["throttled"])
    for column in records.values():  # the last frame has not ended
        del column[-1]
    lines[2] = json.dumps(chunk, separators=(",", ":")) + "\n"
    tree = json.loads(with_file("".join(lines), lambda path: ctl("report", path, "--format", "json")).stdout)
    assert tree["frames"]["throttled_count"] is None, tree["frames"]
    assert [(s["count"], s["throttled_count"], "outside_frames" in s) for s in tree["stages"]] == [(19, None, False)] * 2, tree["stages"]


def test_bare_ticks_have_a_rate_and_no_total():
    lines = session(warmup=0, frames=0, extra=20).splitlines(keepends=True)
    chunk = json.loads(lines[2])
    records = chunk["parameters"]["records"]
    keep = [i for i, kind in enumerate(records["kind"]) if kind == "frame"]
    chunk["parameters"]["records"] = {c: [v[i] for i in keep] for c, v in records.items()}
    chunk["parameters"]["records"].update(frame=[""] * len(keep), duration_us=[0] * len(keep))
    lines[2] = json.dumps(chunk, separators=(",", ":")) + "\n"
    tree = json.loads(with_file("".join(lines), lambda path: ctl("report", path, "--format", "json")).stdout)
    assert tree["frames"]["fps"] == 20 and tree["totals"][0]["mean_ms"] is None, tree
    assert tree["summary"]["mean_fps"] is None and tree["frames"]["end_to_end_mean_ms"] is None, tree


def test_files_are_not_wrapped_to_the_terminal():
    text = session(tags=[(f"t{i}", "some words") for i in range(20)])
    for form in ("json", "markdown", "junit", "profile"):
        narrow, wide = (with_file(text, lambda path: ctl("report", path, "--format", form, columns=c)).stdout for c in (60, 500))
        assert narrow == wide, (form, narrow)
    xml.etree.ElementTree.fromstring(with_file(session(name="\uffff"), lambda path: ctl("report", path, "--format", "junit")).stdout)


# covers G0.25
def test_targets_are_listed_and_decide_the_exit_status():
    listed = json.loads(ctl("targets", "--targets", TARGETS, "-j").stdout)["targets"]
    ranges = {t["target"]: (t["fps_min"], t["fps_max"], t["latency_min_ms"], t["latency_max_ms"]) for t in listed}
    assert ranges == {"orin-nano/mobilenetv2-fp16": (60, 120, 8, 16), "orin-nano/yolov5s-fp16": (30, 60, 16, 33),
                      "rpi5/mobilenetv2-int8": (15, 25, 40, 65), "rpi5/ssd-mobilenet-int8": (8, 15, 65, 120),
                      "rpi4/mobilenetv2-int8": (8, 12, 80, 120), "rpi4/ssd-mobilenet-int8": (4, 8, 120, 250),
                      "rpi4-coral/ssd-mobilenet-int8": (30, 60, 16, 33)}, ranges
    assert all(t["note"] for t in listed), listed
    text = session(infer=lambda i: 40)
    for target, status, said in (("rpi5/mobilenetv2-int8", 0, "fps 20.0: inside 15 to 25"),
                                 ("rpi4/mobilenetv2-int8", 0, "fps 20.0: better than 8 to 12"),
                                 ("orin-nano/yolov5s-fp16", 1, "fps 20.0: outside 30 to 60"),
                                 ("rpi9/none", 2, "unknown target 'rpi9/none'; 'edgeprofctl targets' lists them\n"),
                                 ("orin-nano/yolo5s-fp16", 2, "; did you mean 'orin-nano/yolov5s-fp16'?\n")):
        done = with_file(text, lambda path: ctl("report", path, "--targets", TARGETS, "--target", target))
        assert done.returncode == status and said in done.stdout + done.stderr, (target, done)


def test_damaged_and_hostile_files_are_refused_or_clean():
    lines = session(frames=20, warmup=0).splitlines(keepends=True)
    broken = "".join(lines[:3]) + lines[3][:100] + "\n" + "".join(lines[4:])
    done = with_file(broken, lambda path: ctl("report", path))
    assert done.returncode == 66 and "line 4: damaged" in done.stderr, done
    for text in ("", "{}\n", "{\"schema\":\"edgeprof.session/1\"\n", "\0\0\n", "x" * 100000):
        done = with_file(text, lambda path: ctl("report", path))
        assert done.returncode == 66 and "is not a recording" in done.stderr, done
    headless = "".join(lines[:2]) + lines[2][50:] + "".join(lines[3:])
    done = with_file(headless, lambda path: ctl("report", path))
    assert done.returncode == 66 and "line 3: damaged" in done.stderr, done
    startless = "".join(lines[:1] + [line.replace('"start":{', '"start":1,"x":{') for line in lines[1:]])
    done = with_file(startless, lambda path: ctl("report", path))
    assert done.returncode == 66 and "the recording is damaged" in done.stderr, done
    torn = with_file(session(frames=20, end=False)[:-30], lambda path: ctl("report", path))
    assert torn.returncode == 0 and "still running or broke off" in torn.stdout, torn
    evil = session(frames=20, name="a\x1b[31m", app="cam\u202e")
    for form in ("text", "markdown", "junit", "json", "profile"):
        done = with_file(evil, lambda path: ctl("report", path, "--format", form))
        assert done.returncode == 0 and "\x1b" not in done.stdout and "\u202e" not in done.stdout, done


def test_events_that_a_live_app_dropped_are_said():
    with Daemon() as daemon, Script(daemon) as script:
        for i in range(200):  # more names than an app may have
            script.process.stdin.write(f"0 complete {time.monotonic_ns()} n{i} 1000000 {i}\n")
        sent, _, dropped = map(int, script.ask("sync").split())
        assert dropped > 0
        app = until("its app", lambda: daemon.call("ListApps")["apps"])[0]["name"]
        until("its drops", lambda: daemon.call("ListApps")["apps"][0]["dropped"] == dropped)
        told = f"{dropped} of {sent} events were dropped: counts and sums are too low"
        live = daemon.ctl("report", app, "--format", "json")
        assert told in json.loads(live.stdout)["warnings"], live


# covers G0.5 covers G1.11
def test_a_live_app_and_its_recording_report_the_same_stages():
    with Daemon("[recorder]\nbefore = 30s\nafter = 1s\ntriggers = none\n") as daemon, Script(daemon) as script:
        for i in range(120):
            at = time.monotonic_ns()
            script.tell([f"0 complete {at} infer 1000000 {i}"])
        app = until("its app", lambda: daemon.call("ListApps")["apps"])[0]["name"]
        until("its runs", lambda: daemon.call("ListStages", app=app)["stages"][0]["total_count"] == 120)
        live = daemon.ctl("report", app, "--format", "json")
        assert live.returncode == 0, live
        stages = {s["stage"]: s for s in json.loads(live.stdout)["stages"]}
        assert stages["infer"]["count"] == 120 and abs(stages["infer"]["mean_ms"] - 1) < 1e-6, stages
        name = daemon.call("RecordNow", label="x")["name"]
        until("the recording", lambda: "open" not in daemon.call("ListRecordings"))
        stored = json.loads(daemon.ctl("report", name, "--format", "json").stdout)
        assert {s["stage"]: s["count"] for s in stored["stages"]} == {"infer": 120}, stored
        with tempfile.TemporaryDirectory() as place:  # the program often lies there under its app's name
            (pathlib.Path(place) / app).write_text("no recording")
            done = subprocess.run([CTL, "report", app, "--format", "json"], cwd=place, env=daemon.env, capture_output=True)
            assert done.returncode == 0, done
        # covers G1.10, G1.11
        card = daemon.ctl("report", app, "--card")
        assert card.returncode == 0 and "App " in card.stdout and "uggestion" in card.stdout, card
        assert "PIPELINE PROFILING REPORT" in card.stdout, card


# covers G3.4
def test_a_stage_that_fell_back_to_the_cpu_is_told():
    with Daemon() as daemon:
        daemon.ctl("emit", "other", "1ms", "--app", "cam")
        until("the app", lambda: daemon.ctl("session", "start", "s", "cam", "--warmup", "0", "--detach").returncode == 0)
        for unit in ("gpu", "cpu"):
            daemon.ctl("emit", "infer", "1ms", "--unit", unit, "--app", "cam")
            until(unit, lambda: daemon.ctl("assert", f"stages.infer@{unit}.count == 1", "--app", "cam").returncode == 0)
        assert daemon.ctl("session", "stop", "s").returncode == 0
        for name in ("cam", "s"):
            tree = json.loads(daemon.ctl("report", name, "--format", "json").stdout)
            told = {s["unit"]: s.get("expected_unit") for s in tree["stages"] if s["stage"] == "infer"}
            assert told == {"gpu": None, "cpu": "gpu"}, (name, told)
            for format in ("text", "html", "markdown"):
                shown = daemon.ctl("report", name, "--format", format).stdout
                assert shown.count("infer: running on CPU fallback, expected on gpu") == 1, (name, format, shown)


# covers G0.5 covers G3.11
def test_a_live_app_and_its_report_have_the_same_frames():
    ms = 1_000_000
    with Daemon() as daemon, Script(daemon) as script:
        for i in range(40):
            at = time.monotonic_ns()
            script.tell([f"0 complete {at - 9 * ms} capture {2 * ms} {i}", f"1 complete {at} infer {8 * ms} {i}",
                         f"2 complete {at} transit {12 * ms} -"])
        until("its frames", lambda: daemon.call("GetFrames", app="cam")["frames"][0]["total_count"] == 40)
        live, total = daemon.call("GetFrames", app="cam")["frames"][0], daemon.call("ListStages", app="cam")["totals"][0]
        tree = json.loads(daemon.ctl("report", "cam", "--format", "json").stdout)
        assert tree["summary"]["frames_profiled"] == 40, tree["summary"]
        for name in ("fps_mean", "frame_time_mean_ms", "frame_time_p95_ms", "jitter_ms", "end_to_end_mean_ms"):
            assert abs(tree["frames"][name] / live[name] - 1) < 1e-6, (name, tree["frames"][name], live[name])
        assert abs(live["end_to_end_mean_ms"] - 11) < 1e-6 and abs(total["mean_ms"] - 10) < 1e-6, (live, total)
        costs = {s["stage"]: round(s["per_frame_ms"], 6) for s in tree["stages"]}
        assert costs == {"capture": 2, "infer": 8, "transit": 0}, costs


def test_the_report_begins_with_the_oldest_record_that_is_kept():
    with Daemon("[recorder]\nmemory = 64K\n") as daemon, Script(daemon) as script:
        began = time.monotonic_ns()
        until("a second later", lambda: time.monotonic_ns() - began > 1e9)
        for i in range(5000):
            script.tell([f"0 complete {time.monotonic_ns()} infer 1000 {i}"])
        until("all of it", lambda: daemon.call("ListStages", app="cam")["stages"][0]["total_count"] == 5000)
        run = daemon.call("ListStages", app="cam", run=0)["totals"][0]
        tree = json.loads(daemon.ctl("report", "cam", "--format", "json").stdout)
        assert tree["summary"]["frames_profiled"] < 5000 and tree["recording"]["overwritten"], tree["recording"]
        assert tree["session"]["started_us"] > run["since_us"] + 1e6, (tree["session"], run)
        assert "the run began earlier: its older records were overwritten" in tree["warnings"], tree["warnings"]
        assert not any(w.startswith("no warm-up") for w in tree["warnings"]), tree["warnings"]


def test_the_report_of_an_app_that_ended_ends_with_it():
    with Daemon() as daemon:
        with Script(daemon) as script:
            script.tell([f"0 complete {time.monotonic_ns()} infer 1000000 1"])
            until("its run", lambda: daemon.call("ListApps")["apps"])
        app = until("it ended", lambda: [a for a in daemon.call("ListApps")["apps"] if a["state"] == "ended"])[0]
        until("samples from after its end", lambda: daemon.call("GetStatus")["time_us"] > app["until_us"] + 3_000_000)
        tree = json.loads(daemon.ctl("report", app["name"], "--format", "json").stdout)
        ran_s = (app["until_us"] - app["since_us"]) / 1e6
        assert ran_s <= tree["session"]["elapsed_s"] < ran_s + 1, (ran_s, tree["session"])
        assert any(e["text"].endswith(": ended") for e in tree["events"]), tree["events"]


if __name__ == "__main__":
    run_tests(globals())
