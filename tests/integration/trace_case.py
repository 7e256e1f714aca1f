# SPDX-License-Identifier: Apache-2.0
"""What tests of trace files share: a reader, and what the Trace Event Format demands of one."""
import collections
import json

NEEDED = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid"},
    "b": {"name", "cat", "ts", "id", "pid", "tid"},
    "e": {"name", "cat", "ts", "id", "pid", "tid"},
    "s": {"name", "cat", "ts", "id", "pid", "tid"},
    "t": {"name", "cat", "ts", "id", "pid", "tid"},
    "f": {"name", "cat", "ts", "id", "pid", "tid", "bp"},
    "C": {"name", "ts", "pid", "args"},
    "i": {"name", "cat", "ts", "s", "pid", "tid"},
    "M": {"name", "pid", "tid", "args"},
}


def no_double(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a name twice: {names}"
    return dict(pairs)


def ns(number):
    """Microseconds of the file in nanoseconds, exact."""
    whole, _, part = number.partition(".")
    assert len(part) == 3, number
    return int(whole) * 1000 + int(part)


def read(text):
    """The trace, with its times in ns."""
    text.encode("utf-8")
    trace = json.loads(text, object_pairs_hook=no_double, parse_float=str)
    for event in trace["traceEvents"]:
        for key in ("ts", "dur"):
            if key in event:
                event[key] = ns(event[key])
    return trace


def check_nested(events):
    """Slices of one thread are nested or apart."""
    threads = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append(event)
    for slices in threads.values():
        open_until = []
        for event in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1], (event, open_until)
            open_until.append(end)
    return threads


def check_pairs(events):
    """Each asynchronous slice begins and ends once; each flow has one start and one end, in time."""
    asynchronous = collections.defaultdict(list)
    flows = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "be":
            asynchronous[event["cat"], event["id"]].append(event)
        elif event["ph"] in "stf":
            flows[event["cat"], event["id"], event["name"]].append(event)
    for pair in asynchronous.values():
        assert [event["ph"] for event in pair] == ["b", "e"], pair
        assert pair[0]["ts"] <= pair[1]["ts"] and pair[0]["pid"] == pair[1]["pid"], pair
        assert pair[0]["name"] == pair[1]["name"], pair
    for flow in flows.values():
        phases = "".join(event["ph"] for event in flow)
        assert phases == "s" + "t" * (len(flow) - 2) + "f", phases
        times = [event["ts"] for event in flow]
        assert times == sorted(times), flow
    return asynchronous, flows


def check_flows_meet_slices(flows, threads):
    starts = {(pid, tid): {e["ts"] for e in slices} for (pid, tid), slices in threads.items()}
    for flow in flows.values():
        for event in flow:
            assert event["ts"] in starts.get((event["pid"], event["tid"]), ()), event


def check(trace):
    """The rules of the format; returns the events by phase."""
    events = trace["traceEvents"]
    named = {"process_name": set(), "thread_name": set()}
    by_phase = collections.defaultdict(list)
    for event in events:
        phase = event["ph"]
        missing = NEEDED[phase] - set(event)
        assert not missing, (missing, event)
        assert event["name"] and isinstance(event["pid"], int), event
        assert event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0, event
        by_phase[phase].append(event)
        if event["name"] == "process_name":
            named["process_name"].add(event["pid"])
        elif event["name"] == "thread_name":
            named["thread_name"].add((event["pid"], event["tid"]))
    tids = [tid for _, tid in named["thread_name"]]
    assert len(tids) == len(set(tids)), "a tid of two processes"
    for event in events:
        assert event["pid"] in named["process_name"], event
        assert "tid" not in event or (event["pid"], event["tid"]) in named["thread_name"], event
        if event["ph"] == "i":
            assert event["s"] in "gpt", event
        if event["ph"] == "C":
            assert all(isinstance(v, (int, str)) and float(v) == float(v) for v in event["args"].values()), event
    threads = check_nested(events)
    asynchronous, flows = check_pairs(events)
    check_flows_meet_slices(flows, threads)
    return by_phase, threads, asynchronous, flows


def about(trace, **want):
    other = trace["otherData"]
    for key in ("version", "hostname", "boot_id", "start_time", "end_time", "clock_synced", "span_s"):
        assert key in other, (key, other)
    for key, value in want.items():
        assert other[key] == value, (key, other)
    return other


def names(events):
    return collections.Counter(event["name"] for event in events)
