#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stage statistics through the whole path: a program whose runs take as long as it is told, the real
daemon, its answers and edgeprofctl's."""
import contextlib
import pathlib
import random
import re
import statistics
import subprocess
import tempfile

from harness import BUILD, Daemon, VarlinkError, run_tests, until

WRITER = BUILD / "tests" / "integration" / "stage-writer"
FAST = "[sampling]\ninterval = 100ms\n"


class Writer:
    def __init__(self, daemon, name="cam"):
        self.process = subprocess.Popen([str(WRITER), name], env=daemon.env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def do(self, *lines):
        for start in range(0, len(lines), 500):  # the ring holds some thousand events
            part = lines[start:start + 500]
            self.process.stdin.write("".join(line + "\n" for line in part))
            self.process.stdin.flush()
            for line in part:
                assert self.process.stdout.readline() == "ok\n", line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def stages_of(daemon, **parameters):
    with contextlib.closing(daemon.client()) as client:  # in chunks: a hundred stages fit in no frame
        chunks = list(client.stream("ListStages", app="cam", **parameters))
    return {s["stage"]: s for chunk in chunks for s in chunk["stages"]}


def wait_for(daemon, **counts):
    def arrived():
        try:
            stages = stages_of(daemon)
        except VarlinkError:
            return None
        return stages if all(stages.get(n, {}).get("total_count") == c for n, c in counts.items()) else None
    return until(f"the daemon has {counts}", arrived)


def near(value, want, error=1e-9):
    assert abs(value - want) <= error * abs(want) + 1e-12, (value, want)


# covers G0.4 G1.3 G4.4
def test_window_and_lifetime_against_an_independent_reckoning():
    rng = random.Random(7)
    values = [int(rng.lognormvariate(9, 0.7)) + 1 for _ in range(3000)]  # us
    with Daemon() as daemon, Writer(daemon) as writer:
        for start in range(0, 3000, 1000):
            writer.do(*(f"run infer {v}" for v in values[start:start + 1000]))
            wait_for(daemon, infer=start + 1000)
        recent = stages_of(daemon)["infer"]
        window = sorted(v / 1000 for v in values[-1024:])
        cuts = statistics.quantiles(window, n=100, method="inclusive")
        assert recent["count"] == 1024 and recent["total_count"] == 3000 and recent["exact"] is True
        for name, p in (("p50_ms", 50), ("median_ms", 50), ("p90_ms", 90), ("p95_ms", 95), ("p99_ms", 99)):
            near(recent[name], cuts[p - 1])
        near(recent["mean_ms"], statistics.fmean(window))
        near(recent["std_ms"], statistics.pstdev(window))
        near(recent["std_sample_ms"], statistics.stdev(window))
        near(recent["throughput_fps"], 1000 / statistics.fmean(window))
        near(recent["tail_ratio"], cuts[98] / statistics.fmean(window))
        nearest = stages_of(daemon, percentile_method="nearest")["infer"]
        near(nearest["p95_ms"], window[int(1024 * 0.95)])
        everything = sorted(v / 1000 for v in values)
        cuts = statistics.quantiles(everything, n=100, method="inclusive")
        lifetime = stages_of(daemon, span="lifetime")["infer"]
        assert lifetime["count"] == 3000 and lifetime["exact"] is False and lifetime["span"] == "lifetime"
        for name, p in (("p50_ms", 50), ("p90_ms", 90), ("p95_ms", 95), ("p99_ms", 99)):
            near(lifetime[name], cuts[p - 1], 0.01)
        near(lifetime["mean_ms"], statistics.fmean(everything))
        near(lifetime["std_ms"], statistics.pstdev(everything), 1e-6)
        near(lifetime["max_ms"], everything[-1])
        # TOTAL is of the window all the same, and says so
        assert re.search(r"^TOTAL \(last 1\d{3} iterations\) ", daemon.ctl("stages", "--span", "lifetime").stdout, re.M)
        assert re.search(r"^TOTAL +[\d.]+ \(last 1\d{3} iterations\)$", daemon.ctl("report").stdout, re.M)


# covers G3.2 G3.3 G3.4 G4.5
def test_categories_and_units_like_the_guide_s_report():
    ops = (("detect@gpu", 112345), ("pose_coreml", 48672), ("seg_onnx_cpu", 37217))
    with Daemon() as daemon, Writer(daemon) as writer:
        writer.do(*(f"stage {name} inference - 0" for name, _ in ops), "stage copy memory cpu 0")
        writer.do(*(f"run {name} {ms}" for name, ms in ops), "run copy 37244")
        wait_for(daemon, copy=1)
        stages = stages_of(daemon, span="lifetime")
        for name, unit, of_category, of_total in (("detect", "gpu", 56.67, 47.71), ("pose", "coreml", 24.55, 20.67),
                                                  ("seg", "cpu", 18.77, 15.80)):
            assert stages[name]["unit"] == unit and stages[name]["category"] == "inference"
            assert round(stages[name]["percent_of_category"], 2) == of_category
            assert round(stages[name]["percent_of_total"], 2) == of_total
        reply = daemon.call("ListStages", app="cam")
        inference = next(c for c in reply["categories"] if c["category"] == "inference")
        assert inference["stages"] == 3 and round(inference["percent_of_total"], 1) == 84.2
        units = {u["unit"]: u for u in reply["units"]}
        assert units["cpu"]["stages"] == 2 and units["cpu"]["count"] == 2
        near(units["gpu"]["p99_ms"], 112.345, 0.01)
        text = daemon.ctl("stages", "cam", "--by", "category").stdout.splitlines()
        assert "total profiled time 0.235 s" in text[0], text
        first = [line.split()[0] for line in text[2:]]
        assert first == ["inference", "detect@gpu", "pose@coreml", "seg@cpu", "memory", "copy@cpu"], text
        assert "56.67" in text[3] and "47.71" in text[3]
        text = daemon.ctl("stages", "cam", "--by", "unit").stdout
        assert [line.split()[0] for line in text.splitlines()[2:]] == ["gpu", "cpu", "coreml"], text


# covers G3.4
def test_the_configured_unit_is_the_expected_one():
    config = FAST + "[stage cam/MTL]\nunit = coreml\n[stage cam/plain]\nunit = npu\n"
    with Daemon(config) as daemon, Writer(daemon) as writer:
        writer.do("run MTL_onnx_cpu 9000", "run plain 1000", "stage late - gpu 0", "run late 1000", "run late@cpu 2000",
                  "stage outer - dla 0", "begin outer", "begin inner", "spin 100", "end", "end")
        until("outer", lambda: any(s["stage"] == "outer" for s in daemon.call("ListStages", app="cam")["stages"]))
        reply = daemon.call("ListStages", app="cam")
        rows = sorted((s["stage"], s.get("unit"), s.get("expected_unit"), s.get("cpu_fallback")) for s in reply["stages"])
        assert rows == [("MTL", "cpu", "coreml", True), ("inner", "dla", None, None), ("late", "cpu", "gpu", True),
                        ("late", "gpu", None, None), ("outer", "dla", None, None), ("plain", "npu", None, None)], rows
        inner = next(s for s in reply["stages"] if s["stage"] == "inner")
        assert (inner["parent"], inner["parent_unit"]) == ("outer", "dla")
        assert {u["unit"]: u["stages"] for u in reply["units"]} == {"cpu": 2, "npu": 1, "gpu": 1, "dla": 2}
        assert daemon.call("ListMetrics", glob="stage/cam/late_cpu/*")["metrics"]
        for text in (daemon.ctl("stages", "cam").stdout, daemon.ctl("report", "cam").stdout):
            told = [line.split()[0] for line in text.splitlines() if line.endswith("running on CPU fallback")]
            assert told == ["MTL@cpu", "late@cpu"], text
            assert "late@gpu" in text and "inner@dla" in text and "plain@npu" in text and "onnx" not in text, text
        for view in (["--tree"], ["--wide"], ["--by", "category"]):
            text = daemon.ctl("stages", "cam", *view).stdout
            assert "late@cpu" in text and "late@gpu" in text and "late_cpu" not in text, text
            assert ("lifetime" in text.lower()) == (view == ["--wide"]), text
            text = daemon.ctl("stages", "cam", *view, "--span", "recent").stdout
            assert "recent" in text and "lifetime" in text.lower(), text


# covers G3.12
def test_nested_stages_are_a_tree():
    nested = ["begin total", "begin infer", "begin conv", "spin 300", "end", "begin nms", "spin 100", "end", "end",
              "begin publish", "spin 100", "failed", "end"]
    with Daemon() as daemon, Writer(daemon) as writer:
        writer.do(*(nested * 10))
        stages = wait_for(daemon, total=10, publish=10)
        assert {n: s.get("parent") for n, s in stages.items()} == {
            "total": None, "infer": "total", "conv": "infer", "nms": "infer", "publish": "total"}
        assert stages["conv"]["depth"] == 2 and stages["publish"]["failed"] == 10
        near(stages["conv"]["percent_of_parent"], 100 * stages["conv"]["total_ms"] / stages["infer"]["total_ms"])
        total = daemon.call("ListStages", app="cam")["totals"][0]
        near(total["mean_ms"], stages["infer"]["mean_ms"] + stages["publish"]["mean_ms"], 1e-6)
        lines = daemon.ctl("stages", "cam", "--tree").stdout.splitlines()[2:]
        assert [(len(line) - len(line.lstrip()), line.split()[0]) for line in lines] == [
            (0, "total"), (2, "infer"), (4, "conv"), (4, "nms"), (2, "publish")], lines


# covers G3.11
def test_an_op_of_every_fifth_frame_has_two_costs():
    lines = []
    for frame in range(300):
        lines.append(f"run track 4000 {frame}")
        if frame % 5 == 0:
            lines.append(f"run detect 50000 {frame}")
    with Daemon() as daemon, Writer(daemon) as writer:
        writer.do(*lines)
        stages = wait_for(daemon, track=300, detect=60)
        near(stages["detect"]["mean_ms"], 50)
        near(stages["detect"]["runs_per_frame"], 0.2)
        near(stages["detect"]["per_frame_ms"], 10)
        total = daemon.call("ListStages", app="cam")["totals"][0]
        near(total["mean_ms"], 14, 1e-6)
        near(total["max_fps"], 1000 / 14, 1e-6)


# covers G1.12
def test_deadlines_in_a_row_and_changed_at_run_time():
    with Daemon() as daemon, Writer(daemon) as writer:
        writer.do("stage infer - - 10000", *(f"run infer {us}" for us in (11000, 25000, 9000, 12000)))
        stage = wait_for(daemon, infer=4)["infer"]
        assert (stage["misses"], stage["longest_consecutive_misses"], stage["consecutive_misses"]) == (3, 2, 1)
        near(stage["miss_rate"], 0.75)
        near(stage["worst_ms"], 25)
        near(stage["deadline_ms"], 10)
        writer.do("deadline infer 50000", *["run infer 30000"] * 4)
        stage = wait_for(daemon, infer=8)["infer"]
        assert stage["misses"] == 3 and stage["consecutive_misses"] == 0
        near(stage["deadline_ms"], 50)


# covers G1.1 G2.3
def test_cpu_time_and_memory_growth_of_a_stage():
    with Daemon() as daemon, Writer(daemon) as writer:
        writer.do("measure work", *["begin work", "spin 3000", "end"] * 5, "run plain 1000")
        stages = wait_for(daemon, work=5, plain=1)
        work = stages["work"]
        assert 0 < work["cpu_ms"] <= work["wall_ms"] * 1.1 and work["process_cpu_ms"] > 0 and work["cpu_ratio"] > 0, work
        assert "cpu_ms" not in stages["plain"] and "rss_growth_max_bytes" not in stages["plain"]
        writer.do("measure load", "grow load 5", "grow load 24")
        load = wait_for(daemon, load=2)["load"]
        assert load["rss_growth_max_bytes"] >= 24 << 20 and load["rss_growth_total_bytes"] >= 29 << 20, load
        told = [e["text"] for e in daemon.call("ListEvents", limit=1000)["events"] if "memory usage" in e["text"]]
        assert len(told) == 1 and told[0].startswith("High memory usage in load: 24."), told


# covers G0.3 G4.11
def test_a_flood_of_ids_without_ends_is_counted():
    with Daemon() as daemon, Writer(daemon) as writer:
        writer.do(*(f"idbegin io {i}" for i in range(1000)), "idend io 999", "idend io 5")
        stage = until("begins are given up", lambda: (
            lambda s: s if s.get("orphan_end") == 1 and s["total_count"] == 1 else None)(stages_of_or_none(daemon)))
        assert stage["abandoned"] == 1000 - 32


def stages_of_or_none(daemon):
    try:
        return stages_of(daemon).get("io", {})
    except VarlinkError:
        return {}


def cooling_root(folder, state):
    device = pathlib.Path(folder) / "sys/class/thermal/cooling_device0"
    device.mkdir(parents=True, exist_ok=True)
    (device / "type").write_text("cpufreq-cpu0\n")
    (device / "max_state").write_text("4\n")
    (device / "cur_state").write_text(f"{state}\n")


def test_statistics_of_throttled_time_apart():
    with tempfile.TemporaryDirectory() as root:
        cooling_root(root, 0)
        with Daemon(config=FAST, root=root) as daemon, Writer(daemon) as writer:
            until("the hardware tells", lambda: daemon.call("GetThrottle")["is_throttling"] is False)
            writer.do(*["run infer 10000"] * 30)
            wait_for(daemon, infer=30)
            cooling_root(root, 2)
            until("it throttles", lambda: daemon.call("GetThrottle")["is_throttling"] is True)
            writer.do(*["run infer 25000"] * 10)
            everything = wait_for(daemon, infer=40)["infer"]
            assert everything["throttled_count"] == 10 and everything["throttle_unknown_count"] == 0, everything
            for span, error in (("recent", 1e-9), ("lifetime", 0.01)):
                hot = stages_of(daemon, span=span, throttle="throttled")["infer"]
                cool = stages_of(daemon, span=span, throttle="unthrottled")["infer"]
                assert (hot["count"], cool["count"]) == (10, 30), (span, hot, cool)
                near(hot["p99_ms"], 25, error)
                near(cool["p99_ms"], 10, error)
            assert "25.0" in daemon.ctl("stages", "--throttle", "throttled").stdout


def test_where_nobody_tells_of_throttling_the_split_is_null_with_a_reason():
    with tempfile.TemporaryDirectory() as root:
        with Daemon(root=root) as daemon, Writer(daemon) as writer:
            writer.do(*["run infer 10000"] * 3)
            wait_for(daemon, infer=3)
            for throttle in ("throttled", "unthrottled"):
                stage = stages_of(daemon, throttle=throttle)["infer"]
                assert stage["count"] == 0 and "mean_ms" not in stage and "not known" in stage["reason"], stage
            shown = daemon.ctl("stages", "--throttle", "unthrottled")
            assert "not known" in shown.stdout, shown
            words = [line.split() for line in shown.stdout.splitlines()]
            assert words[0][-1] == "unthrottled" and ["TOTAL", "-"] in words and ["MAX", "FPS", "-"] in words, shown


def test_wrong_words_are_refused():
    with Daemon() as daemon:
        for wrong in ({"span": "minute"}, {"percentile_method": "x"}, {"throttle": ""}, {"span": 1}):
            try:
                daemon.call("ListStages", **wrong)
            except VarlinkError as error:
                assert error.parameters["parameter"] in wrong, error
            else:
                raise AssertionError(wrong)
        for arguments in (["--span", "minute"], ["--by", "x"], ["--tree", "--wide"]):
            assert daemon.ctl("stages", *arguments).returncode == 64, arguments


def anonymous_kib(daemon):
    """What the process has for itself: of /proc/PID/smaps_rollup, which every kernel has."""
    text = pathlib.Path(f"/proc/{daemon.pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Anonymous:"))


# covers G2.2
def test_every_pool_tells_its_use_limit_and_high_water():
    def pools(daemon):
        return {p["name"]: p for p in daemon.call("GetSelf")["pools"]}

    with Daemon("[stages]\nmemory = 2M\n[recorder]\nmemory = 128K\n[history]\nmemory = 1M\n") as daemon:
        before = pools(daemon)
        limits = {name: pool["limit"] for name, pool in before.items()}
        assert limits == {"history": 1 << 20, "records": 128 << 10, "stages": 2 << 20, "mappings": 16 << 20,
                          "answers": 5 << 20, "connections": 128, "event_connections": 64, "apps": 64, "metrics": 4096}, limits
        with Writer(daemon) as writer:
            writer.do(*(f"run stage{i} 1000" for i in range(20)))
            wait_for(daemon, stage19=1)
            busy = pools(daemon)
            assert busy["mappings"]["used"] == 256 << 10 and busy["stages"]["used"] >= 20 * 8192, busy
            assert busy["event_connections"]["used"] == busy["apps"]["used"] == 1, busy
            assert busy["records"]["used"] > 0 and busy["metrics"]["used"] > before["metrics"]["used"], busy
        after = until("the app is gone", lambda: (
            lambda p: p if p["mappings"]["used"] == 0 else None)(pools(daemon)))
        assert [(after[n]["used"], after[n]["high_water"]) for n in ("event_connections", "apps")] == [(0, 1)] * 2, after
        assert after["mappings"]["high_water"] == 256 << 10 and after["connections"]["high_water"] >= 1, after
        assert all(p["used"] <= p["high_water"] <= p["limit"] for p in after.values()), after
        clients = [daemon.client() for _ in range(9)]
        for client in clients:
            client.call("GetStatus")
        for client in clients:
            client.close()
        assert until("they were counted", lambda: pools(daemon)["connections"])["high_water"] >= 9
        text = daemon.ctl("self").stdout
        assert "mappings" in text and "at most 256.0 KiB so far" in text, text


# covers G2.2
def test_memory_is_bounded_by_the_window_and_the_histogram():
    with Daemon() as daemon, Writer(daemon) as writer:
        writer.do("run warm 1000")
        wait_for(daemon, warm=1)
        daemon.ctl("stages", "--wide")
        before = anonymous_kib(daemon)
        for part in range(10):
            writer.do(*(f"run stage{i % 100} {1000 + 37 * i % 90000}" for i in range(2000)))
            wait_for(daemon, stage0=20 * (part + 1), stage99=20 * (part + 1))
        grown = anonymous_kib(daemon) - before
        if "libasan" in pathlib.Path(f"/proc/{daemon.pid}/maps").read_text():
            return "the sanitizer's own memory is in the way"
        # beside the stages: 20000 raw records of 32 bytes, 800 metrics, what answers were made of
        assert grown <= 100 * 18 + 625 + 800, grown


if __name__ == "__main__":
    run_tests(globals())
