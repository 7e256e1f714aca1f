#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every number of GetFrames against an independent reckoning (reckoning.py): ticks, pipelines over
threads and processes, frames that only stages tell, the throttle split, energy."""
import contextlib
import pathlib
import tempfile
import time

from harness import Daemon, run_tests, until
from reckoning import MS, Frame, Script, arrived, blind, deadline, durations, frames_of, generator, percentile, same, stages_of, \
    stream, summary


def counted(daemon, count):
    return until(f"{count} frames", lambda: (f := frames_of(daemon))["total_count"] == count and f)


def ticks_of(deltas, last):
    """Bare ticks with these deltas, the newest at `last`."""
    at = last - sum(deltas)
    frames = [Frame(None)]
    frames[0].record = (at, at)
    for delta in deltas:
        at += delta
        frames.append(Frame(None))
        frames[-1].record = (at, at)
    return frames


# covers G0.1 G0.2
def test_golden_vector_a():
    deltas = [ms * MS for ms in (33, 34, 33, 50, 33, 35, 100, 33, 34, 33)]
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([f"0 tick {f.record[1]}" for f in ticks_of(deltas, time.monotonic_ns())])
        frames = counted(daemon, 11)
        same(frames, {"status": "ok", "fps_mean": 26.8910109, "fps_min": 10, "fps_max": 30.3030303, "fps_p5": 14.5,
                      "fps_p95": 30.3030303, "frame_time_mean_ms": 41.8, "frame_time_p95_ms": 77.5,
                      "frame_time_p99_ms": 95.5, "frame_count": 10, "jitter_ms": 20.0239856, "fps": 23.9234450,
                      "frame_time_ms": 1000 / 23.9234450}, 1e-8)


# covers G0.1 G0.2 G3.13
def test_random_ticks():
    for kind in ("lognormal", "bimodal", "constant", "heavy"):
        rng = generator(f"ticks {kind}")
        deltas = [min(d, 900 * MS) for d in durations(kind, rng.randrange(310, 900), rng)]
        deltas[rng.randrange(len(deltas))] = 0  # two of the same time
        deltas[-1] = 0
        model = ticks_of(deltas, time.monotonic_ns())
        with Daemon() as daemon, Script(daemon) as script:
            script.tell([f"0 tick {f.record[1]}" for f in model])
            counted(daemon, len(model))
            for method in ("linear", "nearest"):
                same(frames_of(daemon, percentile_method=method), dict(stream(model, method), zero_deltas=2), of=kind)
            lifetime = frames_of(daemon, span="lifetime")
            times = [d / MS for d in deltas]
            want = summary(times)
            same(lifetime, {f"frame_time_p{p}_ms": percentile(times, p) for p in (50, 95, 99)}, 0.01, of=kind)
            same(lifetime, {"frame_time_mean_ms": want["mean_ms"], "jitter_ms": want["std_ms"], "exact": False,
                            "frame_count": len(deltas)}, 1e-6, of=kind)
            same(lifetime, {"fps": len(deltas) / (sum(deltas) / 1e9)}, of=kind)


def test_too_few_frames():
    with Daemon() as daemon, Script(daemon) as script:
        script.tell(["0 tick 0"])
        frames = counted(daemon, 1)
        same(frames, {"status": "insufficient data", "frame_count": 0, "fps": None, "fps_mean": None, "jitter_ms": None})


class Pipeline:
    """capture, infer and publish in threads of one or two processes; a frame is captured while the
    one before is inferred. Some ids are dropped, some frames come out late."""

    def __init__(self, name):
        self.rng = generator(name)
        self.frames, self.next = [], 0

    def round(self, base, records):
        """At most 60 frames of about 3 ms from base on: lines of the front and of the back process."""
        rng, front, back = self.rng, [], []
        free = [base, base, base]  # capture, infer, publish
        for _ in range(60):
            number, self.next = self.next, self.next + 1
            if number > 0 and rng.random() < 0.05:
                continue  # dropped
            frame = Frame(number)
            started = free[0] + rng.randrange(1, 300_000)
            captured = free[0] = started + rng.randrange(1 * MS, 3 * MS)
            begun = max(captured, free[1]) + rng.randrange(1, 50_000)
            inferred = free[1] = begun + rng.randrange(1 * MS, 4 * MS)
            sent = max(inferred, free[2])
            finished = sent + rng.randrange(100_000, 600_000)
            if number > 3 and rng.random() < 0.1:
                finished += 9 * MS  # the next ones are before it
            else:
                free[2] = finished
            frame.run("capture", started, captured, 0)
            frame.run("infer", begun, inferred, 1)
            frame.run("publish", sent, finished, 2)
            front.append(f"0 complete {captured} capture {captured - started} {number}")
            front.append(f"1 complete {inferred} infer {inferred - begun} {number}")
            back.append(f"2 complete {finished} publish {finished - sent} {number}")
            if records:
                frame.record = (started, finished)
                back.append(f"2 frame {finished} {number} {started}")
            self.frames.append(frame)
        back.sort(key=lambda line: int(line.split()[2]))
        return front, back

    def play(self, daemon, front, back, rounds, records):
        for _ in range(rounds):
            with blind(daemon) as base:
                lines = self.round(base, records)
                front.tell(lines[0])
                back.tell(lines[1])
                time.sleep(max(0, (max(f.end for f in self.frames) - time.monotonic_ns()) / 1e9))
            counted(daemon, len(self.frames))


def check_pipeline(daemon, model, limit=None):
    for method in ("linear", "nearest"):
        want = stream(model.frames, method)
        if limit:
            want.update(deadline([f.latency for f in sorted(model.frames, key=lambda f: f.end)], limit))
        same(frames_of(daemon, percentile_method=method), want)
    lifetime = frames_of(daemon, span="lifetime")
    took = [f.latency / MS for f in model.frames]
    same(lifetime, {f"end_to_end_p{p}_ms": percentile(took, p) for p in (50, 95, 99)}, 0.01)
    same(lifetime, {"end_to_end_mean_ms": sum(took) / len(took), "end_to_end_max_ms": max(took)}, 1e-6)
    rows = daemon.call("GetFrames", app="cam", recent=20)["list"]
    done = sorted(model.frames, key=lambda f: f.tick)
    for row, at in zip(rows, range(len(done) - 1, 0, -1)):
        fields, parts = done[at].row(done[at - 1].tick)
        same(row, fields)
        told = {s["stage"]: (s["start_ms"], s["busy_ms"], s["runs"]) for s in row["stages"]}
        assert {n: tuple(round(v, 6) for v in p) for n, p in parts.items()} == {
            n: tuple(round(v, 6) for v in p) for n, p in told.items()}, (parts, row)
    stages = stages_of(daemon)[0]
    for stage in ("capture", "infer", "publish"):
        runs = [(p[2] - p[1]) / MS for f in model.frames for p in f.pieces if p[0] == stage]
        if stage == "publish":  # came in the order of its ends
            runs = [(p[2] - p[1]) / MS for f in sorted(model.frames, key=lambda f: f.end) for p in f.pieces if p[0] == stage]
        same(stages[stage], dict(summary(runs[-1024:]), total_count=len(runs)), of=stage)
        same(stages[stage], {"runs_per_frame": 1}, 0.03, of=stage)


# covers G0.1 G0.2 G1.12
def test_a_pipeline_of_three_threads_whose_end_tells_the_frame():
    model = Pipeline("pipeline")
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([f"0 frame_deadline 0 {9 * MS}"])
        model.play(daemon, script, script, 6, records=True)
        check_pipeline(daemon, model, limit=9 * MS)


# covers G0.1 G0.2
def test_a_pipeline_of_two_processes_whose_end_tells_the_frame():
    model = Pipeline("two processes")
    with Daemon() as daemon, Script(daemon) as front, Script(daemon) as back:
        model.play(daemon, front, back, 6, records=True)
        check_pipeline(daemon, model)


def test_a_pipeline_of_two_processes_that_only_tags_its_stages():
    model = Pipeline("only stages")
    with Daemon() as daemon, Script(daemon) as front, Script(daemon) as back:
        model.play(daemon, front, back, 6, records=False)
        check_pipeline(daemon, model)


# covers G0.2 G3.12
def test_frames_of_one_thread_with_nested_stages_and_warm_up():
    rng = generator("one thread")
    with Daemon("[frame cam]\nwarmup = 10\n") as daemon, Script(daemon) as script:
        model, lines = [], []
        now = time.monotonic_ns() - 30_000 * MS
        for number in range(400):
            frame = Frame(number)
            start = now
            lines += [f"0 frame_begin {now} {number}", f"0 begin {now + 10} total", f"0 begin {now + 20} infer"]
            inner = now + 20 + rng.randrange(100)
            now = inner + rng.randrange(1, 5 * MS)
            lines += [f"0 begin {inner} conv", f"0 end {now} -", f"0 end {now + 7} -", f"0 end {now + 9} -"]
            frame.run("conv", inner, now, counts=False)
            frame.run("infer", start + 20, now + 7, counts=False)  # inside of total, which stands for it
            frame.run("total", start + 10, now + 9, counts=False)
            now += rng.randrange(10, MS)
            lines.append(f"0 frame_end {now} -")
            frame.record = (start, now)
            model.append(frame)
            now += rng.randrange(60 * MS)
            if number % 50 == 49:  # 128 frames may be at work at one time
                with blind(daemon):
                    script.tell(lines)
                counted(daemon, number - 9)
                lines = []
        frames = frames_of(daemon)
        want = stream(model[10:])
        del want["stage_sum_mean_ms"], want["skipped_ids"], want["fps_1s_min"], want["fps_1s_max"], want["frame_count"]
        if frames["fps"] is None:  # the frames' times may be some seconds back by now
            frames["fps"] = frames["last_fps"]
            frames["frame_time_ms"] = 1000 / frames["fps"]
        same(frames, dict(want, warmup_skipped=10, frame_count=300))


POWER_MW = 10_000


def device_root(folder, state):
    device = pathlib.Path(folder) / "sys/class/thermal/cooling_device0"
    device.mkdir(parents=True, exist_ok=True)
    (device / "type").write_text("cpufreq-cpu0\n")
    (device / "max_state").write_text("4\n")
    (device / "cur_state").write_text(f"{state}\n")


def throttling(daemon, root, wanted):
    device_root(root, 2 if wanted else 0)
    until(f"throttling {wanted}", lambda: daemon.call("GetThrottle")["is_throttling"] is wanted)
    # an event is judged by the last sample before its end
    before = daemon.metric("throttle/active")["time_us"]
    until("a sample", lambda: daemon.metric("throttle/active")["time_us"] > before)


# covers G0.4
def test_throttled_and_unthrottled_are_all():
    rng = generator("throttle")
    split = {"throttled": ([], [], []), "unthrottled": ([], [], [])}
    all_runs, ticks = [], []
    with tempfile.TemporaryDirectory() as root:
        device_root(root, 0)
        with Daemon("[sampling]\ninterval = 100ms\n", root=root) as daemon, Script(daemon) as script:
            for part in range(6):
                hot = part % 2 == 1
                throttling(daemon, root, hot)
                runs, deltas, latencies = split["throttled" if hot else "unthrottled"]
                lines = []
                for number in range(rng.randrange(40, 120)):
                    duration = int(rng.lognormvariate(15 + hot, 0.5))
                    now = time.monotonic_ns()
                    if ticks:
                        deltas.append((now - ticks[-1]) / MS)
                    ticks.append(now)
                    runs.append(duration / MS)
                    latencies.append(duration / MS)
                    all_runs.append(duration / MS)
                    lines += [f"0 complete {now} infer {duration} -", f"0 frame {now} - {now - duration}"]
                script.tell(lines)
                arrived(daemon, {"infer": len(all_runs)})
                counted(daemon, len(ticks))
            for name, (runs, deltas, latencies) in split.items():
                stage = stages_of(daemon, throttle=name)[0]["infer"]
                same(stage, dict(summary(runs), count=len(runs), total_count=len(all_runs), throttle_unknown_count=0,
                                 throttled_count=len(split["throttled"][0])), of=name)
                lifetime = stages_of(daemon, throttle=name, span="lifetime")[0]["infer"]
                want = summary(runs)
                same(lifetime, {f: want[f] for f in ("p50_ms", "p90_ms", "p95_ms", "p99_ms")}, 0.01, of=name)
                same(lifetime, {"count": len(runs), "mean_ms": want["mean_ms"], "std_ms": want["std_ms"]}, 1e-6, of=name)
                frames = frames_of(daemon, throttle=name, span="lifetime")
                same(frames, {"frame_count": len(deltas), "frame_time_mean_ms": sum(deltas) / len(deltas),
                              "end_to_end_mean_ms": sum(latencies) / len(latencies)}, 1e-6, of=name)
            same(stages_of(daemon)[0]["infer"], dict(summary(all_runs), count=len(all_runs)))
            parts = [frames_of(daemon, throttle=name)["frame_count"] for name in split]
            assert sum(parts) == frames_of(daemon)["frame_count"], parts


def power_root(folder, milliwatts):
    chip = pathlib.Path(folder) / "sys/class/hwmon/hwmon0"
    chip.mkdir(parents=True, exist_ok=True)
    (chip / "name").write_text("ina3221\n")
    (chip / "in1_label").write_text("VDD_IN\n")
    (chip / "in1_input").write_text("5000\n")
    (chip / "curr1_input").write_text(f"{milliwatts // 5}\n")


# covers G2.7
def test_energy_of_a_frame_is_the_integral_over_the_frames():
    with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
        power_root(root, POWER_MW)
        daemon = stack.enter_context(Daemon("[sampling]\ninterval = 500ms\n", root=root))
        script = stack.enter_context(Script(daemon))
        until("power", lambda: (daemon.metric("power/total") or {}).get("value") == POWER_MW)
        seen, number, at = [], 0, time.monotonic_ns()
        while len(set(seen)) < 4 and number < 1000:  # 50 frames a second
            at += 20 * MS
            time.sleep(max(0, (at - time.monotonic_ns()) / 1e9))
            script.tell([f"0 complete {at - 5 * MS} infer {9 * MS} {number}", f"0 complete {at} post {3 * MS} {number}",
                         f"0 frame {at} {number} {at - 14 * MS}"])
            number += 1
            frames = frames_of(daemon)
            if frames.get("energy_mj_per_frame") and number > 60:
                seen.append(frames["energy_mj_per_frame"])
        middle = percentile(seen, 50)
        assert all(abs(value - POWER_MW * 0.02) <= 0.015 * middle for value in seen), set(seen)
        stages = {n: s["energy_mj"] for n, s in stages_of(daemon)[0].items()}
        for name, busy in (("infer", 9), ("post", 3)):  # of the 20 ms from frame to frame
            assert abs(stages[name] - middle * busy / 20) < 0.1 * stages[name], (stages, middle)
        text = daemon.ctl("frames", "cam").stdout
        assert "mJ" in text, text


if __name__ == "__main__":
    run_tests(dict(globals()))
