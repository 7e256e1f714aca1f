# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: what must be reached, and how a row is printed. docs/performance.md explains the columns.

A part of the benches prints lines "KEY NUMBER", once each repetition, "KEY.floor NUMBER" for the same without
edgeprofd, "KEY.peer.NAME NUMBER" for another program; "KEY - WHY" where this machine cannot measure it, and
"KEY ! WHY" where edgeprofd cannot do it yet, which is a bar that is missed."""
import fnmatch
import statistics
import typing

NOISY_SPREAD = 15  # percent
TIMES = ("ns", "us", "ms", "us a second", "% of a core")  # units whose bars are of the machine that has the next line
YARDSTICK = "python.pure.stage.floor", 1284  # ns: the contextmanager profiler, where the bars were set
# And the row's own floor there, where what it consists of may be slower than Python is: switches between processes,
# faults of pages.
FLOORS = {"python.fast.profiler": 313, "query.p50": 10.4, "query.status": 11.3, "query.list16": 14.6, "query.list240": 41.8,
          "query.toolarge": 5.87, "ready.full": 7.71}  # fmt: skip


class Row(typing.NamedTuple):
    key: str  # a pattern stands for the worst of the keys that match
    what: str
    unit: str
    bar: typing.Optional[float] = None
    aim: typing.Optional[float] = None
    floor: str = ""  # where it is not measured: what it is in theory, or its unit
    peer: str = ""  # measured once elsewhere; --peers measures some again
    take: typing.Callable = statistics.median
    least: bool = False  # the bar is a minimum


TRACERS = "Tracy 0.65-1.3 (TSC), lttng-ust 6-7, Perfetto 9-13, UDP statsd 66"
CLOCKS = "ns, two clock_gettime"
STALL = "ms, longest stall of the machine"
SAMPLERS = "collectd 3.3-38, psutil 10, node_exporter 25-100, netdata 110"

ROWS = [
    *(Row(f"stage.hot.{n}", f"C stage, hot, {n} thread{'s' * (n > 1)}", "x", 1.10, 1.06, CLOCKS, TRACERS if n == 1 else "")
      for n in (1, 2, 4)),
    *(Row(f"stage.cold.{size}", f"C stage, cold, {size[:-1]} {size[-1]}iB touched between", "x", bar, None, CLOCKS)
      for size, bar in (("512K", 1.15), ("4M", 1.25), ("40M", 1.40))),
    Row("stage.tsc", "C stage, EDGEPROF_CLOCK=tsc", "x", 0.55, None, CLOCKS),
    Row("stage.tsc_error", "the same: largest error in 10 s", "us", 1, None, "", "", max),
    Row("stage.scope", 'C stage, EDGEPROF_SCOPE("infer")', "x", 1.05, None, "ns, begin and end"),
    Row("stage.nobody", "C stage, nobody listening", "ns", 2.5, 2, "", "tracers 2-4"),
    *(Row(f"python.fast.{key}", f"Python with the C extension: {what}", "ns", bar, None, "ns, " + floor)
      for key, what, bar, floor in (
          ("stage", "with stage()", 200, "a contextmanager profiler"), ("frame", "with frame()", 350, "an empty with"),
          ("kept", "with a kept object", 200, "an empty with"), ("profiler", "StageProfiler start, stop", 300, "a start/stop profiler"))),
    Row("python.fast.task", "Python with the C extension: with stage() in an asyncio loop", "ns"),
    Row("python.pure.stage", "pure Python: with stage()", "ns", 1250, 800, "ns, a contextmanager profiler"),
    Row("python.pure.kept", "pure Python: a kept object : with stage()", "x", 1),
    Row("python.pure.wrapped", "pure Python: capture under edgeprof run : contextmanager profiler", "x", 2.34),
    Row("python.pure.task", "pure Python: with stage() in an asyncio loop", "ns"),
    Row("drain.events", "drain, writer on another core, a stage event", "ns", 25, 18, "ns, reading it", "brubeck 126, statsite 556, npm's statsd 5305"),
    Row("drain.ids", "the same, of one of 8 stages with a frame's id", "ns", 35, None, "ns, reading it"),
    Row("drain.frames", "the same, a record of frames of 8 stages", "ns", 35, None, "ns, reading it"),
    Row("rate.lost", "1 M events/s for 12 s, a busy neighbour: lost", "events", 0, None, "", "brubeck 33 %", sum),
    Row("rate.share", "the same: the daemon's share", "% of a core", 3, 2),
    Row("framed.lost", "the same with 125 k frames/s: lost", "events", 0, None, "", "", sum),
    Row("framed.share", "the same: the daemon's share", "% of a core"),
    Row("statsd.line", "statsd, 20 lines a datagram, a line", "ns", 120, None, "ns, recvmmsg alone", "brubeck 126, collectd 418, statsite 635"),
    Row("statsd.apart", "the same, each line of another frame", "ns"),
    Row("statsd.turn", "hostile datagrams: longest turn", "ms", 2, None, "", "", max),
    Row("histogram.add", "histogram: adding a value", "ns", 8, 6, "ns, appending a float", "HdrHistogram_c 6.7"),
    Row("histogram.size", "histogram: memory", "KiB", 10, None, "", "HdrHistogram_c 21"),
    Row("histogram.error", "histogram: largest error of p50, p90, p95, p99", "%", 1, None, "", "HdrHistogram_c 0.5", max),
    Row("sample.here", "a second of sampling, this machine", "x", 2, 1.5, "us, preads on kept descriptors", SAMPLERS),
    Row("sample.tree.*", "the same, worst board tree", "x", 2, 1.5, "us, preads on kept descriptors"),
    Row("idle.cpu", "idle daemon, this machine", "us a second", None, None, "", "see --peers"),
    Row("wakeups.*", "wakeups at idle, by the kernel, worst tree", "a second", 2.5, 2, "1", "collectd 12"),
    Row("self_wakeups.*", "self/wakeups: off the kernel's count by", "%", 10),
    Row("memory.stages16", "memory without history, 16 stages", "MiB", 4, 2, "0.7, the libraries", "collectd 3.2 RSS, psutil 12.6, node_exporter 20, netdata 46"),
    Row("memory.stages256", "anonymous memory, 256 stages", "MiB", 6),
    Row("memory.pss512", "PSS at idle, a board of 512 MiB", "MiB", 6),
    Row("query.p50", "query of about 1 KiB, p50", "us", 100, 40, "us, C echo", "cJSON server 69, collectd LISTVAL 91"),
    Row("query.p99", "the same, p99", "us", 300, 100, "us, C echo", "cJSON server 112, collectd LISTVAL 132"),
    Row("query.busy_p99", "the same with 100 k events/s, p99", "us", 1000, 300, "us, C echo"),
    *(Row(f"query.{key}", f"CPU of {what}", "us", bar, None, "us, C echo")
      for key, what, bar in (("status", "GetStatus", 12), ("list16", "ListStages, 16 stages", 60), ("list240", "ListStages, 240 stages", 500))),
    Row("query.toolarge", "CPU of a refusal: ListStages of 240 in one reply", "us", 500, None, "us, C echo"),
    Row("query.wait240", "GetStatus during ListStages of 240, p99", "us", None, None, "us, C echo"),
    Row("mqtt.after", "sample above a limit to MQTT subscriber, p99", "ms", 10, 2),
    Row("mqtt.message", "CPU of a QoS 1 message", "us", None, None, "us, a bare libmosquitto loop"),
    Row("history.bytes", "history, mixed series, a sample", "bytes", 1.5, None, "bytes, floats", "Gorilla 0.3-3.3"),
    *(Row(f"history.bytes.{kind}", f"history, {kind} walk, a sample", "bytes") for kind in ("cpu", "latency", "memory", "temperature")),
    Row("history.read", "reading one series, a row", "ns", 20, None, "ns, an array"),
    Row("ready.full", "READY with a full history file", "ms", 10, None, "ms, an empty one"),
    Row("scale.attached", "64 apps of one user at once: attached", "apps", 64, take=min, least=True),
    Row("scale.turn_start", "the same: longest turn while they start", "ms", 2, None, STALL),
    Row("scale.turn", "64 apps, 192 stages: longest turn", "ms", 2, None, STALL),
    Row("scale.turn240", "2 apps, 240 stages, 50 k events/s: longest turn", "ms", 2, None, STALL),
    Row("scale.turn_longest", "longest turn of all repetitions", "ms", take=max),
    Row("scale.metrics", "4480 gauges offered: metrics reachable", "metrics", 4096, take=min, least=True),
    Row("scale.uncounted", "the same: refusals not counted", "gauges", 0, take=max),
    Row("heap.idle", "heap allocations a second, idle", "", 0, take=max),
    Row("heap.busy", "heap allocations a second, 100 k events/s", "", 0, take=max),
]  # fmt: skip


def number(value):
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def spread(values):
    """Half the distance between the quartiles, in percent of the median."""
    middle = statistics.median(values)
    if len(values) < 4 or not middle:
        return 0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return 50 * (high - low) / abs(middle)


def slowness(values, key=None):
    """How many times longer this machine takes than that of the bars: for all rows, or for that of the key; 1 where it is
    faster, or was not measured."""
    measures = [YARDSTICK, (f"{key}.floor", FLOORS.get(key))]
    return max([1, *(statistics.median(values[name]) / there for name, there in measures if there and values.get(name))])


def benchmark(values):
    """In the usual names: what the daemon takes in beside a busy neighbour, and what it could; None: not measured."""
    def median(key):
        return statistics.median(values[key]) if values.get(key) else None

    ns = median("drain.events")
    return {"events_per_sec": median("rate.events"), "daemon_cpu_percent": median("rate.share"), "ns_per_event": ns,
            "throughput_ops_per_sec": 1e9 / ns if ns else None}


def judge(row, value, scale):
    over = (lambda limit: value < limit) if row.least else (lambda limit: value > limit * scale)
    if row.bar is None:
        return "figure"
    if over(row.bar):
        return "MISSED"
    return "aim" if row.aim is not None and not over(row.aim) else "ok"


def worst_of(row, values):
    """The key that stands for the row: the worst of those that match."""
    keys = [key for key in values if fnmatch.fnmatchcase(key, row.key) and not key.endswith(".floor") and ".peer." not in key]
    pick = min if row.least else max
    return pick(keys, key=lambda key: row.take(values[key]), default=None)


def result(row, values, reasons, noisy):
    """What the table and JSON show of a row. values: lists by key, reasons: (mark, why) by key."""
    key = worst_of(row, values)
    shown = {"row": row.key, "what": row.what, "unit": row.unit, "bar": row.bar, "aim": row.aim, "peer": row.peer}
    base = row.key[:-2] if row.key.endswith(".*") else row.key
    measured = {name.split(".peer.")[1]: statistics.median(list_) for name, list_ in values.items()
                if name.startswith(base + ".peer.")}
    shown.update(peers=measured, value=None, spread=None, floor=None, floor_of=row.floor, of=None, n=0, noisy=False, scale=None)
    if key is None:
        mark, why = next((r for k, r in reasons.items() if fnmatch.fnmatchcase(k, row.key)), ("-", "not measured"))
        return {**shown, "verdict": "ABSENT" if mark == "!" else "skipped", "why": why}
    list_, floors = values[key], values.get(key + ".floor")
    shown.update(value=row.take(list_), spread=spread(list_), n=len(list_), values=list_)
    shown.update(floor=statistics.median(floors) if floors else None)
    shown.update(noisy=noisy.get(key, False) or shown["spread"] > NOISY_SPREAD)
    scale = slowness(values, row.key) if row.unit in TIMES else 1
    shown.update(of=key[len(row.key) - 1:] if row.key.endswith("*") else None, verdict=judge(row, shown["value"], scale), why="")
    shown.update(scale=scale if scale > slowness(values) else None)
    return shown


def cells(shown, elsewhere=True):
    """As the table has it, one text a column; elsewhere: also peers that were measured on another machine."""
    floor = shown["floor_of"] if shown["floor"] is None else f"{number(shown['floor'])} {shown['floor_of']}"
    if shown["floor"] is None and floor[:3] in ("ns,", "us,", "ms,"):
        floor = ""
    bar = "" if shown["bar"] is None else number(shown["bar"]) + (f" ({number(shown['aim'])})" if shown["aim"] else "")
    peer = ", ".join(f"{name} {number(value)} now" for name, value in shown["peers"].items())
    value = "" if shown["value"] is None else f"{number(shown['value'])} {shown['unit']}".strip()
    value += f" ({shown['of']})" if shown["of"] else ""
    about = f"±{shown['spread']:.0f} %" if shown["n"] > 3 else ""
    verdict = shown["verdict"] + (f", bar x {shown['scale']:.2f}" if shown["scale"] else "") + (", noisy" if shown["noisy"] else "") + (f": {shown['why']}" if shown["why"] else "")
    return shown["what"], floor, peer or (shown["peer"] if elsewhere else ""), bar, value, about, verdict


HEADER = ("what", "floor", "peer", "bar (aim)", "value", "spread", "verdict")


def text(results):
    """Columns for a terminal."""
    lines = [HEADER, *(cells(shown, elsewhere=False) for shown in results)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)


def markdown(results):
    lines = [HEADER, ("---",) * len(HEADER), *map(cells, results)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
