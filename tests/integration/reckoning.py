# SPDX-License-Identifier: Apache-2.0
"""An independent reckoning of what the daemon says about stages and frames, in plain Python: the
definitions of the numeric contract and nothing of the daemon's; and the program that feeds it."""
import contextlib
import math
import os
import random
import signal
import subprocess
import time

from harness import BUILD, VarlinkError, until

SCRIPT = BUILD / "tests" / "integration" / "script-writer"
SEED = int(os.environ.get("EDGEPROF_SEED", "4"))
MS = 1_000_000


class Script:
    """An instrumented process that says what it is told, at the times it is told."""

    def __init__(self, daemon, app="cam", **env):
        self.daemon, self.app = daemon, app
        # no records that nobody asked for, and room for a whole round
        env = dict(daemon.env, EDGEPROF_CONTEXT="0", EDGEPROF_MAPPING_SIZE="1048576", **env)
        self.process = subprocess.Popen([str(SCRIPT), app], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        until(f"{app} is attached", lambda: any(
            p.get("pid") == self.process.pid for a in daemon.call("ListApps")["apps"] for p in a["processes"]))

    def tell(self, lines):
        """Returns when the library has all of it; nothing was dropped."""
        self.process.stdin.write("".join(line + "\n" for line in lines) + "sync\n")
        self.process.stdin.flush()
        sent, received, dropped = map(int, self.process.stdout.readline().split())
        assert dropped == 0, (sent, received, dropped)
        return sent

    def ask(self, word):
        """The answer to a command that has one."""
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


@contextlib.contextmanager
def blind(daemon):
    """The daemon sees what is told in this block at once, in one pass; the block is < 1 s."""
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        yield time.monotonic_ns() + MS
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


def percentile(values, p, method="linear"):
    values = sorted(values)
    if method == "nearest":
        return values[min(len(values) * p // 100, len(values) - 1)]
    k = (len(values) - 1) * p / 100
    low = math.floor(k)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (k - low)


def deviation(values, ddof=0):
    mean = math.fsum(values) / len(values)
    if len(values) <= ddof:
        return None
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - ddof))


def summary(values, method="linear"):
    """All of G0.4, in the values' unit."""
    mean = math.fsum(values) / len(values)
    fields = {f"p{p}_ms": percentile(values, p, method) for p in (50, 90, 95, 99)}
    fields.update(mean_ms=mean, median_ms=fields["p50_ms"], min_ms=min(values), max_ms=max(values),
                  std_ms=deviation(values), std_sample_ms=deviation(values, 1))
    if mean > 0:
        fields.update(max_fps=1000 / mean, throughput_fps=1000 / mean, tail_ratio=fields["p99_ms"] / mean)
    return {name: value for name, value in fields.items() if value is not None}


def same(got, want, error=1e-9, of=""):
    """Every wanted field is there and is that number; None: it must not be there."""
    for name, value in want.items():
        have = got.get(name)
        if value is None or have is None or isinstance(value, (str, bool)):
            assert have == value, (of, name, have, value, got)
        else:
            # twelve digits are told; a spread of 0 may come out as its rounding error
            assert abs(have - value) <= error * abs(value) + 1e-9, (of, name, have, value, got)


def stages_of(daemon, app="cam", **parameters):
    with contextlib.closing(daemon.client()) as client:
        chunks = list(client.stream("ListStages", app=app, **parameters))
    return {s["stage"]: s for chunk in chunks for s in chunk["stages"]}, chunks[-1]


def arrived(daemon, counts, app="cam"):
    """The stages, when each has its count."""
    def there():
        try:
            stages, _ = stages_of(daemon, app)
        except VarlinkError:
            return None
        return stages if all(stages.get(n, {}).get("total_count") == c for n, c in counts.items()) else None
    return until(f"the daemon has {counts}", there)


def frames_of(daemon, app="cam", **parameters):
    try:
        return daemon.call("GetFrames", app=app, **parameters)["frames"][0]
    except VarlinkError as error:
        assert error.name == "io.edgeprof.NotFound", error
        return {"total_count": 0}


def durations(kind, n, rng):
    """In ns."""
    def one():
        if kind == "lognormal":
            return rng.lognormvariate(math.log(8 * MS), 0.6)
        if kind == "bimodal":
            return rng.gauss(3 * MS, 0.2 * MS) if rng.random() < 0.7 else rng.gauss(40 * MS, 3 * MS)
        if kind == "constant":
            return 33_333_333
        return min(0.5 * MS * rng.paretovariate(1.2), 3600e3 * MS)  # heavy tail
    return [max(1, int(one())) for _ in range(n)]


class Frame:
    def __init__(self, number):
        self.id = number
        self.record = None  # start and end of its FRAME record; equal = only a tick
        self.pieces = []  # stage, start, end, counts in the sum, thread

    def run(self, stage, start, end, thread=0, counts=True):
        self.pieces.append((stage, start, end, counts, thread))

    @property
    def start(self):
        starts = [p[1] for p in self.pieces]
        return min(starts + ([self.record[0]] if self.record and self.record[0] < self.record[1] else []))

    @property
    def end(self):
        return max([p[2] for p in self.pieces] + ([self.record[1]] if self.record else []))

    @property
    def tick(self):
        return self.record[1] if self.record else self.end

    @property
    def sum(self):
        return sum(p[2] - p[1] for p in self.pieces if p[3])

    @property
    def latency(self):
        return self.end - self.start if self.pieces or self.record[0] < self.record[1] else 0

    def row(self, before):
        """As GetFrames lists it; before: the tick in front of its own."""
        stages = {}
        for stage, start, end, _, _ in self.pieces:
            first, busy, runs = stages.get(stage, (start, 0, 0))
            stages[stage] = (min(first, start), busy + end - start, runs + 1)
        return {"frame": self.id, "end_to_end_ms": self.latency / MS, "frame_time_ms": (self.tick - before) / MS,
                "stage_sum_ms": self.sum / MS, "threads": len({p[4] for p in self.pieces})}, {
            stage: ((start - self.start) / MS, busy / MS, runs) for stage, (start, busy, runs) in stages.items()}


def rates(deltas, method="linear"):
    """G0.2 of deltas in ns."""
    if len(deltas) < 2:
        return {"frame_count": len(deltas), "status": "insufficient data"}
    times = [d / MS for d in deltas]
    fps = [1000 / t for t in times if t > 0]
    return {"frame_count": len(deltas), "status": "ok", "fps_mean": math.fsum(fps) / len(fps), "fps_min": min(fps),
            "fps_max": max(fps), "fps_p5": percentile(fps, 5, method), "fps_p95": percentile(fps, 95, method),
            "frame_time_mean_ms": math.fsum(times) / len(times), "frame_time_p50_ms": percentile(times, 50, method),
            "frame_time_p95_ms": percentile(times, 95, method), "frame_time_p99_ms": percentile(times, 99, method),
            "jitter_ms": deviation(times)}


def latencies(frames, method="linear"):
    values = [f.latency / MS for f in frames if f.latency > 0]
    if not values:
        return {}
    fields = {"end_to_end_mean_ms": math.fsum(values) / len(values), "end_to_end_max_ms": max(values),
              "stage_sum_mean_ms": math.fsum(f.sum for f in frames) / MS / len(values)}
    for p in (50, 95, 99):
        fields[f"end_to_end_p{p}_ms"] = percentile(values, p, method)
    return fields


def seconds(ticks):
    """Frames of each full second since the first tick (G3.13)."""
    counts, start, count = [], ticks[0], 0
    for tick in ticks[1:]:
        while tick - start > 1000 * MS:
            counts.append(count)
            start, count = start + 1000 * MS, 0
        count += 1
    return counts


def stream(frames, method="linear", window=300):
    """All that GetFrames says of the recent frames, in the order of their ticks."""
    frames = sorted(frames, key=lambda f: f.tick)
    ticks = [f.tick for f in frames]
    deltas = [b - a for a, b in zip(ticks, ticks[1:])]
    fields = rates(deltas[-window:], method)
    done = sorted(frames, key=lambda f: f.end)[-window:]
    fields.update(latencies(done, method))
    last = ticks[-60:]
    fields["fps"] = (len(last) - 1) / ((last[-1] - last[0]) / 1e9)
    fields["frame_time_ms"] = 1000 / fields["fps"]
    if "end_to_end_mean_ms" in fields:
        fields["in_flight"] = fields["end_to_end_mean_ms"] / fields["frame_time_mean_ms"]
    full = seconds(ticks)
    if full:
        fields.update(fps_1s_min=min(full[-60:]), fps_1s_max=max(full[-60:]))
    ids = [f.id for f in frames if f.id is not None]
    high, late = -1, 0
    for number in ids:
        late += number < high
        high = max(high, number)
    fields.update(total_count=len(frames), out_of_order=late, late=0, forced=0, unfinished=0,
                  skipped_ids=len(set(range(min(ids), max(ids) + 1)) - set(ids)) if ids else 0)
    return fields


def deadline(took, limit):
    """Misses of durations in the order of time."""
    row = longest = misses = 0
    for value in took:
        row = row + 1 if value > limit else 0
        misses += value > limit
        longest = max(longest, row)
    worst = max((v for v in took if v > limit), default=None)
    return {"deadline_ms": limit / MS, "misses": misses, "miss_rate": misses / len(took), "consecutive_misses": row,
            "longest_consecutive_misses": longest, "worst_ms": worst and worst / MS}


def generator(name):
    """The same numbers in every run of a test; EDGEPROF_SEED gives others."""
    print(f"  seed {SEED} of {name}")
    return random.Random(f"{SEED} {name}")
