#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every number of ListStages against an independent reckoning (reckoning.py), through the library,
the mapping, the daemon and its answers. EDGEPROF_SEED=N takes other random data."""
import time

from harness import Daemon, run_tests, until
from reckoning import MS, Script, arrived, blind, deadline, durations, generator, same, stages_of, summary

KINDS = ("lognormal", "bimodal", "constant", "heavy")


def completes(stage, values, thread=0, frames=None):
    return [f"{thread} complete 0 {stage} {v} {frames[i] if frames else '-'}" for i, v in enumerate(values)]


def in_ms(values):
    return [v / MS for v in values]


# covers G0.4 G1.3 G2.6 G4.1 G4.4 covers G4.7 (the averages of a whole run are its lifetime's)
def test_four_distributions_in_window_and_lifetime():
    rng = generator("distributions")
    data = {kind: durations(kind, rng.randrange(4000, 6000), rng) for kind in KINDS}
    few = {f"few{n}": durations("lognormal", n, rng) for n in (1, 2, 3)}
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([line for name, values in few.items() for line in completes(name, values)])
        for start in range(0, 6000, 2000):
            script.tell([line for i, kind in enumerate(KINDS)
                         for line in completes(kind, data[kind][start:start + 2000], thread=i)])
            arrived(daemon, {kind: min(len(data[kind]), start + 2000) for kind in KINDS})
        data.update(few)
        for method in ("linear", "nearest"):
            recent, _ = stages_of(daemon, percentile_method=method)
            lifetime, _ = stages_of(daemon, span="lifetime", percentile_method=method)
            for name, values in data.items():
                window = in_ms(values[-1024:])
                same(recent[name], dict(summary(window, method), count=len(window), total_count=len(values), exact=True,
                                        percentile_method=method, span="recent", failed=0), of=name)
                want = summary(in_ms(values), method)
                rough = {field: want.pop(field) for field in list(want) if field[0] == "p" or field in ("median_ms", "tail_ratio")}
                same(lifetime[name], rough, 0.01, of=name)
                same(lifetime[name], dict(want, count=len(values), exact=False), 1e-6, of=name)


# covers G0.4 G2.6
def test_golden_vector_b():
    with Daemon() as daemon, Script(daemon) as script:
        script.tell(completes("infer", [i * MS for i in range(1, 101)]))
        want = {"p50_ms": 50.5, "median_ms": 50.5, "p90_ms": 90.1, "p95_ms": 95.05, "p99_ms": 99.01}
        arrived(daemon, {"infer": 100})
        same(stages_of(daemon)[0]["infer"], dict(want, std_ms=28.8660700, std_sample_ms=29.0114920, mean_ms=50.5), 1e-8)
        same(stages_of(daemon, span="lifetime")[0]["infer"], want, 0.01)
        nearest = stages_of(daemon, percentile_method="nearest")[0]["infer"]
        same(nearest, {"p50_ms": 51, "p90_ms": 91, "p95_ms": 96, "p99_ms": 100})


# covers G3.2 G3.3 covers G3.5 covers G4.5 covers G4.6
def test_golden_vector_c():
    ops = {"decode": 112345, "detect": 48672, "embed": 37217}
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([f"0 declare 0 {name} model gpu 0" for name in ops] + ["0 declare 0 copy memory cpu 0"])
        script.tell([line for name, ms in ops.items() for line in completes(name, [ms * MS])] + completes("copy", [37244 * MS]))
        stages = arrived(daemon, {"copy": 1})
        for name, of_category, of_total in (("decode", 56.67, 47.71), ("detect", 24.55, 20.67), ("embed", 18.77, 15.80)):
            assert round(stages[name]["percent_of_category"], 2) == of_category, stages[name]
            assert round(stages[name]["percent_of_total"], 2) == of_total, stages[name]
        _, tail = stages_of(daemon)
        groups = {c["category"]: c for c in tail["categories"]}
        assert round(groups["model"]["percent_of_total"], 1) == 84.2, groups
        same(groups["model"], {"stages": 3, "count": 3, "total_ms": 198234, "mean_ms": 198234 / 3})
        same(groups["memory"], {"stages": 1, "count": 1, "total_ms": 37244, "percent_of_total": 100 * 37244 / 235478})
        same(tail["totals"][0], {"total_ms": 235478, "mean_ms": 235478, "max_fps": 1000 / 235478})
        units = {u["unit"]: u for u in tail["units"]}
        same(units["gpu"], {"stages": 3, "count": 3, "total_ms": 198234, "percent_of_total": 100 * 198234 / 235478})
        same(units["gpu"], {"p50_ms": 48672, "p99_ms": 112345 - 0.02 * (112345 - 48672)}, 0.01)


class Tree:
    """One run of the pipeline, nested, by begin and end; and what it comes to."""

    def __init__(self, rng):
        self.rng, self.lines, self.ns = rng, [], {}
        self.now = time.monotonic_ns()

    def stage(self, name, *children, fails=False):
        start = self.now
        self.lines.append(f"0 begin {self.now} {name}")
        self.now += self.rng.randrange(1, 400_000)
        for child in children:
            child()
            self.now += self.rng.randrange(1, 20_000)
        self.lines.append(f"0 {'failed' if fails else 'end'} {self.now} ")
        self.ns.setdefault(name, []).append(self.now - start)

    def frame(self):
        self.stage("total",
                   lambda: self.stage("preprocess", lambda: self.stage("resize")),
                   lambda: self.stage("infer", lambda: self.stage("conv"), lambda: self.stage("nms", fails=self.rng.random() < 0.3)),
                   lambda: self.stage("publish"))
        self.now += 1000


# covers G0.3 G3.12 G4.6
def test_nested_stages_add_up():
    parents = {"resize": "preprocess", "conv": "infer", "nms": "infer", "preprocess": "total", "infer": "total",
               "publish": "total"}
    category = {"conv": "model", "infer": "model", "nms": "boxes"}
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([f"0 declare 0 {name} {word} - 0" for name, word in category.items()])
        tree = Tree(generator("nested"))
        for _ in range(500):
            tree.frame()
        script.tell(tree.lines)
        stages = arrived(daemon, {name: 500 for name in tree.ns})
        assert stages["nms"]["failed"] == sum(line.split()[1] == "failed" for line in tree.lines) > 0
        total = {name: sum(values) for name, values in tree.ns.items()}
        whole = total["preprocess"] + total["infer"] + total["publish"]
        inside = {name: sum(total[child] for child, parent in parents.items() if parent == name) for name in total}
        own = {name: total[name] - inside[name] for name in total}  # time counts once
        groups = {"model": own["infer"] + own["conv"], "boxes": own["nms"],
                  "": own["preprocess"] + own["resize"] + own["publish"]}
        for name, values in tree.ns.items():
            parent = parents.get(name)
            want = dict(summary(in_ms(values)), total_ms=total[name] / MS, parent=parent,
                        depth={None: 0, "total": 1}.get(parent, 2))
            if parent:
                want["percent_of_parent"] = 100 * total[name] / total[parent]
            if name != "total":  # counting it would count all of them twice
                want["self_ms"] = own[name] / MS
                want["percent_inclusive"] = 100 * total[name] / whole
                want["percent_of_total"] = 100 * own[name] / whole
                want["percent_of_category"] = 100 * own[name] / groups[category.get(name, "")]
            same(stages[name], want, of=name)
        _, tail = stages_of(daemon)
        mean = whole / 500 / MS
        same(tail["totals"][0], {"mean_ms": mean, "max_fps": 1000 / mean, "total_ms": whole / MS})
        for row in tail["categories"]:
            same(row, {"total_ms": groups[row["category"]] / MS, "percent_of_total": 100 * groups[row["category"]] / whole})


def overlapping(rng, n, now):
    """Begins and ends by id, of two threads, in the order of time; what they come to. 32 may be open:
    at most 13, and those begun anew, whose first begin is given up in the pass after."""
    lines, opened, took, counts = [], {}, [], {"orphan_end": 0, "abandoned": 0}
    for number in range(n):
        now += rng.randrange(1, 30_000)
        thread, chance = rng.randrange(2), rng.random()
        if chance < 0.04:
            lines.append(f"{thread} idend {now} io {10_000 + number}")
            counts["orphan_end"] += 1
        elif chance < 0.045 and opened:
            again = rng.choice(sorted(opened))
            lines.append(f"{thread} idbegin {now} io {again}")
            counts["abandoned"] += 1
            opened[again] = now
        elif opened and (chance < 0.5 or len(opened) > 12):
            over = rng.choice(sorted(opened))
            lines.append(f"{thread} idend {now} io {over}")
            took.append(now - opened.pop(over))
        else:
            lines.append(f"{thread} idbegin {now} io {number}")
            opened[number] = now
    for over in sorted(opened):
        now += 10
        lines.append(f"{rng.randrange(2)} idend {now} io {over}")
        took.append(now - opened[over])
    return lines, took, counts


# covers G0.3 G4.11
def test_overlapping_stages_of_two_threads_by_id():
    rng = generator("overlapping")
    with Daemon() as daemon, Script(daemon) as script:
        with blind(daemon) as now:
            lines, took, counts = overlapping(rng, 2000, now - 500 * MS)
            script.tell(lines)
        arrived(daemon, {"io": len(took)})
        stage = until("its orphans", lambda: (s := stages_of(daemon)[0]["io"])["orphan_end"] == counts["orphan_end"] and s)
        same(stage, dict(summary(in_ms(took[-1024:])), **counts, total_count=len(took)))


# covers G1.12
def test_deadlines_and_warm_up_of_random_runs():
    rng = generator("deadlines")
    config = "[stage cam/infer]\nwarmup = 25\n[stage cam/post]\ndeadline = 5ms\n"
    with Daemon(config) as daemon, Script(daemon) as script:
        data = {name: durations("lognormal", 700, rng) for name in ("infer", "post", "free")}
        script.tell([f"0 declare 0 infer - - {9 * MS}", f"0 declare 0 post - - {9 * MS}"])
        script.tell([line for name, values in data.items() for line in completes(name, values)])
        stages = arrived(daemon, {"infer": 675, "post": 700, "free": 700})
        data["infer"] = data["infer"][25:]
        assert stages["infer"]["warmup_skipped"] == 25 and stages["infer"]["count"] == 675, stages["infer"]
        same(stages["infer"], dict(summary(in_ms(data["infer"])), deadline_source="declared", **deadline(data["infer"], 9 * MS)))
        same(stages["post"], dict(summary(in_ms(data["post"])), deadline_source="configured", **deadline(data["post"], 5 * MS)))
        same(stages["free"], {"misses": 0, "miss_rate": None, "deadline_ms": None, "worst_ms": None})


# covers G3.11
def test_ops_of_every_kth_frame():
    rng = generator("every k")
    every = {"capture": 1, "detect": 3, "track": 5, "reid": 7}
    data = {name: [] for name in every}
    lines = []
    for frame in range(840):
        for name, k in every.items():
            if frame % k == 0:
                value = durations("lognormal", 1, rng)[0]
                data[name].append(value)
                lines.append(f"0 complete 0 {name} {value} {frame}")
    with Daemon() as daemon, Script(daemon) as script:
        script.tell(lines)
        stages = arrived(daemon, {name: len(values) for name, values in data.items()})
        cost = 0
        for name, k in every.items():
            mean = sum(data[name]) / len(data[name]) / MS
            same(stages[name], {"mean_ms": mean}, of=name)
            # of about the last 300 frames
            recent = sum(data[name][-(300 // k):]) / 300 / MS
            same(stages[name], {"runs_per_frame": 1 / k, "per_frame_ms": recent}, 0.06, of=name)
            cost += recent
        _, tail = stages_of(daemon)
        same(tail["totals"][0], {"mean_ms": cost, "max_fps": 1000 / cost}, 0.06)


# covers G3.10
def test_attributes_of_a_stage():
    rng = generator("attributes")
    values = [rng.choice((3, 18, 28)) + rng.random() for _ in range(200)]
    with Daemon() as daemon, Script(daemon) as script:
        script.tell(completes("infer", [MS]) + [f"0 attribute 0 infer partitions {v!r}" for v in values])
        row = until("all", lambda: next((a for a in stages_of(daemon)[0].get("infer", {}).get("attributes", [])
                                         if a["count"] == 200), None))
        same(row, {"name": "partitions", "last": values[-1], "mean": sum(values) / 200, "min": min(values),
                   "max": max(values)})


# covers G0.4
def test_two_processes_of_one_app_make_one_stage():
    rng = generator("processes")
    data = [durations("heavy", 500, rng) for _ in range(2)]
    with Daemon() as daemon, Script(daemon) as one, Script(daemon) as two:
        one.tell(completes("infer", data[0]))
        two.tell(completes("infer", data[1]))
        stages = arrived(daemon, {"infer": 1000})
        same(stages["infer"], dict(summary(in_ms(data[0] + data[1])), total_count=1000))


# covers G0.6 covers G1.18
def test_any_stage_name_is_accepted():
    names = {"d\u00e9tection/visage:v2": "d__tection_visage_v2", "a/b": "a_b", "a:b": "a_b.2", "../..": ".._..",
             "y" * 60: "y" * 48, "asr@npu": "asr", "total": "total", "lidar.scan-2": "lidar.scan-2"}
    with Daemon() as daemon, Script(daemon) as script:
        script.tell([line for i, name in enumerate(names) for line in completes(name, [(i + 1) * MS] * (i + 1))])
        stages = arrived(daemon, {kept: i + 1 for i, kept in enumerate(names.values())})
        for i, kept in enumerate(names.values()):
            same(stages[kept], {"mean_ms": i + 1, "unit": "npu" if kept == "asr" else None}, of=kept)


def test_an_app_is_found_by_the_name_it_gave():
    name = "a very long name of an application in a container, it is"
    with Daemon() as daemon, Script(daemon, name) as script:
        script.tell(completes("infer", [MS]) + ["0 tick 0"])
        kept = daemon.call("ListApps")["apps"][0]["name"]
        assert len(kept) == 48 and kept.startswith("a_very_long_name"), kept
        for asked in (name, kept):
            arrived(daemon, {"infer": 1}, asked)
            assert daemon.call("GetFrames", app=asked)["frames"][0]["app"] == kept
            assert daemon.ctl("report", asked).returncode == 0
        assert daemon.ctl("stages", "a very long name").returncode == 2


if __name__ == "__main__":
    run_tests(dict(globals()))
