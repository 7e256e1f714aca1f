# SPDX-License-Identifier: Apache-2.0
"""Session files of which the truth is known: frames of stages that follow each other, and sensors."""
import json
import random

T0_US = 1_000_000_000
CLOCK_US = 1_700_000_000_000_000


def noise(seed, count, mean, spread=0.07, correlation=0.3):
    """Autocorrelated values around the mean."""
    dice, value, values = random.Random(seed), 0.0, []
    for _ in range(count):
        value = correlation * value + (1 - correlation**2) ** 0.5 * dice.gauss(0, 1)
        values.append(max(mean * (1 + spread * value), mean / 20))
    return values


def rows_of(stages, period_ms):
    """Records of frames, in the order of their ends, in nanoseconds after the begin."""
    names, at, rows = list(stages), 0, []
    for i in range(len(stages[names[0]])):
        start = at
        for name in names:
            took = int(stages[name][i] * 1e6)
            rows.append(("complete", names.index(name), at, took, i))
            at += took
        rows.append(("frame", -1, start, at - start, i))
        at = max(at, start + int(period_ms * 1e6))
    return rows, at


def trace(names, rows):
    columns = {
        "kind": [r[0] for r in rows], "name": [r[1] for r in rows],
        "mono_us": [T0_US + r[2] // 1000 for r in rows], "mono_ns": [r[2] % 1000 for r in rows],
        "duration_us": [r[3] // 1000 for r in rows], "duration_ns": [r[3] % 1000 for r in rows],
        "frame": [str(r[4]) for r in rows], "id": [""] * len(rows)}  # fmt: skip
    for name in ("of", "pid", "process", "thread", "value", "depth"):
        columns[name] = [0] * len(rows)
    columns.update(cpu_us=[-1] * len(rows), throttled=[-1] * len(rows), failed=[False] * len(rows))
    parameters = {"app": "cam", "records": columns, "names": names, "units": [""] * len(names)}
    parameters.update(categories=[""] * len(names), lost=0)
    return {"call": "ExportTrace", "parameters": parameters, "continues": True}


def history(name, unit, points):
    """Of (seconds, value)."""
    values = [p[1] for p in points]
    series = {"name": name, "unit": unit, "step_ms": 0, "mean": values, "min": values, "max": values}
    series["time_us"] = [CLOCK_US + T0_US + int(p[0] * 1e6) for p in points]
    series["count"] = [1] * len(points)
    return {"call": "GetHistory", "parameters": {"series": [series]}}


def write(path, name, stages, period_ms=0, sensors=(), tags=None, environment=None, error=None):
    """A session; stages: name -> milliseconds of each frame. Sensors: (name, unit, points)."""
    pairs = [[{"name": k, "value": v} for k, v in (d or {}).items()] for d in (tags, environment)]
    row = {"name": name, "app": "cam", "uid": 0, "state": "failed" if error else "finished"}
    row.update(tags=pairs[0], environment=pairs[1], warmup=0, kept_share=1.0)
    if error:
        row["error"] = error
    rows, end_ns = rows_of(stages, period_ms) if stages else ([], 0)
    start = {"from_mono_us": T0_US, "to_mono_us": T0_US + end_ns // 1000 + 1, "clock_mono_us": [0]}
    start.update(clock_time_us=[CLOCK_US], apps=[{"app": "cam"}])
    lines = [
        {"schema": "edgeprof.session/1", "session": row},
        {"call": "ExportTrace", "parameters": {"start": start, "lost": 0}, "continues": True},
    ]
    lines += [trace(list(stages), rows)] if stages else []
    lines += [history(*sensor) for sensor in sensors] + [{"end": row}]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return str(path)
