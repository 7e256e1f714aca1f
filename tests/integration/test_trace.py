#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`edgeprofctl trace` against the real daemon: what it writes is a trace as the Trace Event Format
wants it, whole, exact, and closed also when the daemon dies in between."""
import collections
import csv
import io
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import stat
import subprocess
import tempfile

from harness import BUILD, CTL, DEMO, SOURCE, WRITER, Daemon, VarlinkError, program, run_tests, until
from trace_case import about, check, names, read

from fake_daemon import FakeDaemon  # harness has put tests/tools on the path

SANITIZED = b"__asan_init" in CTL.read_bytes()
EXAMPLES = BUILD / "client" / "examples"
CONFIG = """
[sampling]
interval = 200ms
[alert always]
metric = memory/used_percent
above = 0
for = 0s
"""


def app_state(daemon, name):
    return next((a["state"] for a in daemon.call("ListApps")["apps"] if a["name"] == name), None)


def busy(daemon):
    """Everything that a trace can show, once."""
    run = [str(DEMO), "--app", "cam", "--frames", "60", "--fps", "60", "--load", "1", "--threads", "2"]
    subprocess.run(run, env=daemon.env, check=True, timeout=60)
    subprocess.run([str(EXAMPLES / "hello-stages"), "40"], env=daemon.env, check=True, timeout=60)
    for words in (["step", "12.5ms", "--app", "shell", "--frame", "7"], ["depth", "3"], ["jobs", "5c"]):
        done = daemon.ctl("emit", *words)
        assert done.returncode == 0, done
    assert daemon.ctl("mark", "by hand", "--app", "cam").returncode == 0
    until("the apps have ended", lambda: all(app_state(daemon, a) in ("ended", "exited") for a in ("cam", "hello")))
    until("statsd came", lambda: app_state(daemon, "shell"))
    until("the alert fires", lambda: daemon.call("ListAlerts")["alerts"])
    # the oldest alert transition must lie in the span: sensors cover the records' span
    return daemon


def test_an_output_that_cannot_be_written_says_why():
    with Daemon() as daemon, open("/dev/full", "wb") as full:
        for prepare, reason in ((lambda: os.close(1), "Bad file descriptor"), (None, "No space left on device")):
            done = subprocess.run([CTL, "trace"], env=daemon.env, stdout=full, stderr=subprocess.PIPE,
                                  preexec_fn=prepare, text=True, timeout=60)
            assert (done.returncode, done.stderr) == (74, f"edgeprofctl: cannot write '-': {reason}\n"), done


# covers G0.20, G3.16
def test_a_reader_that_has_enough_is_no_error():
    with Daemon() as daemon:
        for more in ([], ["-o", "-"]):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([str(CTL), "trace", *more], env=daemon.env, stdout=writer, stderr=subprocess.PIPE, timeout=60)
            os.close(writer)
            assert (done.returncode, done.stderr) == (0, b""), (more, done)
        path = os.path.join(daemon.dir, "a\x1bb.json")
        assert "wrote " + path.replace("\x1b", "?") + ": " in daemon.ctl("trace", "-o", path).stderr


def test_chrome_trace_of_everything():
    with Daemon(CONFIG) as daemon, tempfile.TemporaryDirectory() as folder:
        until("sampled", lambda: daemon.call("ListAlerts")["alerts"])
        busy(daemon)
        path = pathlib.Path(folder) / "out.json"
        done = daemon.ctl("trace", "-o", str(path), "--since", "1min")
        assert done.returncode == 0 and not done.stdout and "wrote " in done.stderr, done
        assert os.listdir(folder) == ["out.json"]
        umask = os.umask(0)
        os.umask(umask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
        trace = read(path.read_text())
        by_phase, threads, asynchronous, flows = check(trace)
        other = about(trace, truncated=False, records_lost=0, records_overwritten=0, left_out=0)
        runs = names(by_phase["X"])
        assert runs["capture"] == 60 + 40 and runs["infer"] == 60 + 40 and runs["preprocess"] == 60, runs
        assert runs["step"] == 1, runs
        # one arrow chain a frame: two threads of cam, one of hello
        assert len(flows) == 60 + 40, len(flows)
        assert {len(flow) for flow in flows.values()} == {3, 5}, collections.Counter(map(len, flows.values()))
        crossing = [f for f in flows.values() if len({e["tid"] for e in f}) > 1]
        assert len(crossing) == 60, len(crossing)
        assert sum(pair[0]["cat"] == "frame" for pair in asynchronous.values()) >= 40
        counters = names(by_phase["C"])
        assert counters["queue"] == 40 and counters["infer.boxes"] == 40 and counters["postprocess.boxes"] == 60, counters
        assert counters["memory/used_percent"] > 3 and counters["cpu/utilization"] > 3, counters
        assert counters["depth"] == 1 and counters["jobs"] == 1, counters
        instants = names(by_phase["i"])
        assert instants["mark: model_loaded"] == 1, instants
        assert instants["mark: before_model_load"] == 1, instants
        assert sum(count for name, count in instants.items() if "by hand" in name) == 1, instants
        assert any(name.startswith("alert always") for name in instants), instants
        assert any(name.startswith("app cam") for name in instants), instants
        processes = {e["args"]["name"] for e in by_phase["M"] if e["name"] == "process_name"}
        assert {"cam", "hello", "shell", "statsd", other["hostname"]} <= processes, processes
        span = range(other["start_mono_us"], other["end_mono_us"] + 1)
        assert all(e["ts"] // 1000 in span for e in by_phase["C"] + by_phase["i"])
        # nanoseconds survive: they are not all whole microseconds
        assert any(e["dur"] % 1000 for e in by_phase["X"])
        check_against_the_daemon(daemon, by_phase)


def check_against_the_daemon(daemon, by_phase):
    """The slices are the runs that the statistics are of."""
    cam = {e["pid"] for e in by_phase["M"] if e["name"] == "process_name" and e["args"]["name"] == "cam"}
    for stage in daemon.call("ListStages", app="cam")["stages"]:
        took = [e["dur"] for e in by_phase["X"] if e["name"] == stage["stage"] and e["pid"] in cam]
        assert len(took) == stage["total_count"], stage
        assert abs(sum(took) / len(took) / 1e6 - stage["mean_ms"]) < 1e-6, stage


def test_one_app_and_a_span():
    with Daemon(CONFIG) as daemon:
        busy(daemon)
        trace = read(daemon.ctl("trace", "hello").stdout)
        by_phase = check(trace)[0]
        assert set(names(by_phase["X"])) == {"capture", "infer", "publish"}, names(by_phase["X"])
        assert not any(n.startswith(("app cam", "mark cam")) for n in names(by_phase["i"])), names(by_phase["i"])
        assert [app["app"] for app in trace["otherData"]["apps"]] == ["hello"]
        first = min(e["ts"] for e in by_phase["X"])
        assert abs(trace["otherData"]["start_mono_us"] * 1000 - first) < 1e9  # a busy machine; the run is later
        # a part of the slices only: what reaches into it; the trace goes on until the end of the app was seen
        shift = trace["otherData"]["start_time_us"] - trace["otherData"]["start_mono_us"]
        begin, end = (shift + ns // 1000 for ns in (first, max(e["ts"] for e in by_phase["X"])))
        quarter = (end - begin) // 4
        part = daemon.ctl("trace", "hello", "--since", f"@{(begin + quarter) / 1e6:.6f}", "--until", f"@{(begin + 2 * quarter) / 1e6:.6f}",
                          "--sensors", "")
        some = check(read(part.stdout))[0]
        low, high = read(part.stdout)["otherData"]["start_mono_us"], read(part.stdout)["otherData"]["end_mono_us"]
        assert 0 < len(some["X"]) < len(by_phase["X"]), len(some["X"])
        assert all(e["ts"] + e["dur"] >= low * 1000 and e["ts"] <= high * 1000 + 999 for e in some["X"])
        assert not [e for e in some["C"] if "/" in e["name"]]
        assert daemon.ctl("trace", "nobody").returncode == 2
        assert daemon.ctl("trace", "--since", "nonsense").returncode == 64
        assert daemon.ctl("trace", "--format", "svg").returncode == 64
        assert daemon.ctl("trace", "-o", "/nonexistent/x").returncode == 74
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.json"
            said = daemon.ctl("trace", "-o", str(path)).stderr
            told = re.search(r"wrote (.*): (\d+) events over [\d.]+ (?:s|min .*), [\d.]+ (?:B|KiB|MiB)\n$", said)
            assert told and told[1] == str(path) and int(told[2]) > 0, said
            assert daemon.ctl("trace", "-o", "-").stderr == ""
        glob = daemon.ctl("trace", "hello", "--sensors", "memory/used_percent")
        assert glob.returncode == 0 and names(check(read(glob.stdout))[0]["C"])["memory/used_percent"] >= 1


def test_csv_and_json_tell_the_same():
    with Daemon(CONFIG) as daemon:
        busy(daemon)
        rows = list(csv.DictReader(io.StringIO(daemon.ctl("trace", "cam", "--format", "csv", "--sensors", "").stdout)))
        plain = json.loads(daemon.ctl("trace", "cam", "-j", "--sensors", "").stdout, parse_float=str)
        records = [r for r in rows if r["thread"]]
        events = [e for e in plain["events"] if "thread" in e]
        assert len(records) == len(events) == plain["otherData"]["records"] > 400
        for row, event in zip(records, events):
            assert row["mono_us"] == event["mono_us"] and row["kind"] == event["kind"], (row, event)
            assert row["duration_us"] == event.get("duration_us", ""), (row, event)
            assert row["frame"] == event.get("frame", ""), (row, event)
            assert row["name"] == event.get("name", ""), (row, event)
        assert {r["kind"] for r in rows} >= {"complete", "gauge", "mark", "attribute", "app"}, {r["kind"] for r in rows}
        assert plain["schema"] == plain["otherData"]["schema"] == "edgeprof.trace/1"


UNITS = f"""
import sys
sys.path.insert(0, {str(SOURCE / 'client' / 'python')!r})
import edgeprof
edgeprof.connect("units")
if len(sys.argv) == 1:
    with edgeprof.stage("infer", unit="gpu", category="inference"):
        with edgeprof.stage("inner"):
            pass
    with edgeprof.stage("infer", unit="cpu", category="inference"):
        pass
    edgeprof.begin("flight@npu", 1)
    edgeprof.end("flight@npu", 1)
    edgeprof.gauge("load", 1)
else:
    with edgeprof.stage("plain"):
        pass
"""


# covers G3.4, G3.16
def test_slices_have_compute_unit_and_category_also_of_a_run_before():
    with Daemon() as daemon:
        for words in ([], ["again"]):
            done = subprocess.run(["python3", "-c", UNITS, *words], env=daemon.env, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            until("it has ended", lambda: app_state(daemon, "units") in ("ended", "exited"))
        want = {"infer": ("gpu", "inference"), "inner": ("gpu", ""), "infer_cpu": ("cpu", "inference"), "plain": ("", "")}
        by_phase, _, asynchronous, _ = check(read(daemon.ctl("trace", "units").stdout))
        slices = {e["name"]: (e["args"].get("unit", ""), e["args"].get("category", "")) for e in by_phase["X"]}
        assert slices == want, slices
        flight = next(pair[0] for pair in asynchronous.values() if pair[0]["name"] == "flight")
        assert flight["args"] == {"unit": "npu", "id": "1"}, flight
        text = daemon.ctl("trace", "units", "--format", "csv", "--sensors", "").stdout
        rows = {r["name"]: (r["unit"], r["category"]) for r in csv.DictReader(io.StringIO(text)) if r["thread"]}
        assert rows == dict(want, flight=("npu", ""), load=("", "")), rows
        plain = json.loads(daemon.ctl("trace", "units", "-j", "--sensors", "").stdout)
        told = {e["name"]: (e.get("unit", ""), e.get("category", "")) for e in plain["events"] if e["kind"] == "complete"}
        assert told == want, told


def test_frames_have_the_name_of_no_stage():
    code = "import edgeprof\nedgeprof.connect('cam')\nfor i in range(9):\n  with edgeprof.frame(i), edgeprof.stage('infer'): pass"
    with Daemon() as daemon:
        env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client" / "python"))
        subprocess.run(["python3", "-c", code], env=env, check=True, timeout=60)
        until("it has ended", lambda: app_state(daemon, "cam") == "ended")
        text = daemon.ctl("trace", "cam", "--format", "csv", "--sensors", "").stdout
        names = sorted((r["kind"], r["name"]) for r in csv.DictReader(io.StringIO(text)) if r["thread"])
        assert names == [("complete", "infer")] * 9 + [("frame", "")] * 9, names


def send_statsd(daemon, lines):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(5)
        for line in lines:
            sender.sendto(line, str(daemon.run_dir / "statsd"))


def test_hostile_names_and_overlaps():
    with Daemon() as daemon:
        # durations that end at the same time and overlap in every way; names of any bytes
        lines = [b"a\"},{\\b:%d|ms|#app:ev\"il,frame:%d" % (1 + 7 * i % 50, i) for i in range(60)]
        lines += [b"\xc3\xa9 \"}]'\\n:%d.5|ms|#app:ev\"il" % (i % 9) for i in range(40)]
        lines += [b"g'\"\\:1e308|g|#app:ev\"il", b"long:9000|ms|#app:ev\"il"]
        send_statsd(daemon, lines)
        label = "say \"hi\" \\ \x01\x7f \u202e é 漢字 {}[],"
        with_label = daemon.call("Mark", label=label)
        assert with_label["serial"]
        until("they came", lambda: sum(a["received"] for a in daemon.call("ListApps")["apps"]) >= 102)
        trace = read(daemon.ctl("trace").stdout)
        by_phase, threads, asynchronous, _ = check(trace)
        slices = len(by_phase["X"]) + sum(p[0]["cat"] == "stage" for p in asynchronous.values())
        assert slices == 101, (slices, names(by_phase["X"]))
        assert any("漢字" in e["name"] and "é" in e["name"] for e in by_phase["i"]), names(by_phase["i"])
        assert asynchronous or len(threads) > 1, "nothing overlapped"
        # a file does not depend on what the terminal's locale can show
        plain = subprocess.run([str(CTL), "trace"], env=dict(daemon.env, LC_ALL="C"), capture_output=True, timeout=60)
        assert "漢字".encode() in plain.stdout, plain


HOSTILE = "q\"\\\\b\x01\x1b]0;x\x07\x7f\u009b\u202e\ufeff é漢\U0001f600 </script>,{}[]\n\t"


def columns(rows, **more):
    """Records of a daemon that keeps to the types and to nothing else."""
    one = {"kind": "complete", "name": 0, "of": -1, "pid": 7, "process": 1, "thread": 0, "mono_us": 1000, "mono_ns": 1,
           "duration_us": 10, "duration_ns": 0, "frame": "", "id": "", "value": 0.0, "cpu_us": -1, "depth": 0,
           "failed": False, "throttled": -1}
    return dict({name: [value] * rows for name, value in one.items()}, **more)


# a daemon that lies can spoil numbers, never the file
def test_hostile_daemon():
    begin = {"version": HOSTILE, "hostname": HOSTILE, "boot_id": HOSTILE, "clock_synced": True, "from_mono_us": 5, "to_mono_us": 10**9,
             "from_us": 0, "to_us": 1, "clock_mono_us": [10, 5], "clock_time_us": [10**15], "apps": [
                 {"app": HOSTILE, "uid": 0, "records": 1, "overwritten": -3, "reason": HOSTILE}]}
    kinds = ["complete", "begin", "end", "frame", "mark", "gauge", "counter", "attribute", "novelty"]
    chunks = [
        {"app": HOSTILE, "names": [HOSTILE, ""], "lost": 0, "records": columns(9, kind=kinds)},
        {"app": "x" * 9000, "names": ["y" * 9000], "lost": 2**53, "records": columns(9, kind=kinds, frame=["1"] * 9, of=[0] * 9)},
        {"app": "cam", "names": [], "lost": -1, "records": columns(3, name=[0, -5, 10**9], mono_us=[2**60, -7, 1.5])},
        {"app": "cam", "names": ["n"], "lost": 0, "records": columns(4, frame=["99999999999999999999999", "-1", "18446744073709551615", "x"],
                                                                     duration_us=[10**17, -1, 2**52, 0], value=[1e308] * 4)},
        {"app": "cam", "names": ["n"], "lost": 0, "records": columns(4, kind=["complete"])},  # columns of two lengths
        {"app": "cam", "lost": 0, "records": {}}, {"lost": 0}]
    series = {"series": [{"name": HOSTILE, "unit": HOSTILE, "step_ms": 0, "time_us": [1, 2, 10**15], "mean": [1.5, None, 2], "min": [],
                          "max": [], "count": []}]}
    event = {"serial": 1, "time_us": 1, "mono_us": 500, "kind": HOSTILE, "severity": HOSTILE, "subject": HOSTILE, "text": HOSTILE}
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, EDGEPROF_RUNTIME_DIR=folder)
        replies = {"ExportTrace": [{"start": begin, "lost": 0}, *chunks], "GetHistory": series,
                   "ListEvents": {"events": [event], "last_serial": 1}}
        with FakeDaemon(folder, replies):
            done = subprocess.run([str(CTL), "trace"], env=env, capture_output=True, timeout=60)
            assert done.returncode == 0 and b"Sanitizer" not in done.stderr, done
            assert not any(byte < 0x20 and byte != 10 for byte in done.stdout), done.stdout
            trace = read(done.stdout.decode())
            check(trace)
            assert trace["otherData"]["hostname"] == HOSTILE
            for words in (["--format", "csv"], ["-j"]):
                done = subprocess.run([str(CTL), "trace", *words], env=env, capture_output=True, timeout=60)
                assert done.returncode == 0 and b"Sanitizer" not in done.stderr, done
                text = done.stdout.decode()
                lengths = {len(row) for row in csv.reader(io.StringIO(text))} if words[0] != "-j" else {len(json.loads(text))}
                assert len(lengths) == 1, lengths
        replies["ExportTrace"] = [{"lost": 0}]  # no start
        with FakeDaemon(folder, replies):
            done = subprocess.run([str(CTL), "trace"], env=env, capture_output=True, timeout=60)
            assert done.returncode == 69 and not done.stdout, done


def test_by_id_across_threads():
    code = f"""
import sys, threading
sys.path.insert(0, {str(SOURCE / 'client' / 'python')!r})
import edgeprof
edgeprof.connect("ids")
for i in range(50):
    edgeprof.begin("flight", i)
    if i % 2:
        t = threading.Thread(target=edgeprof.end, args=("flight", i - 1)); t.start(); t.join()
edgeprof.end("flight", 2**63 + 5)
"""
    with Daemon() as daemon:
        done = subprocess.run(["python3", "-c", code], env=daemon.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        until("it has ended", lambda: app_state(daemon, "ids") in ("ended", "exited", "died"))
        by_phase, _, asynchronous, _ = check(read(daemon.ctl("trace", "ids").stdout))
        flights = [p for p in asynchronous.values() if p[0]["name"] == "flight"]
        assert len(flights) == 25, len(flights)
        alone = names(by_phase["i"])
        assert alone["open: flight"] == 25 and alone["end only: flight"] == 1, alone


def test_the_daemon_dies_in_between():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(WRITER), "cam", "4000", "2", "50", "30"], env=daemon.env, check=True, timeout=120, stdout=subprocess.DEVNULL)
        # a relay that lets some chunks through, then is gone as a killed daemon would be
        relay = pathlib.Path(folder) / "io.edgeprof"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(relay))
        listener.listen(1)
        out = pathlib.Path(folder) / "part.json"
        command = [str(CTL), "trace", "--socket", str(relay), "-o", str(out)]
        with program(command, daemon.env, stderr=subprocess.PIPE, text=True) as ctl:
            peer, _ = listener.accept()
            upstream = daemon.client()
            upstream.socket.sendall(peer.recv(65536))
            for _ in range(4):
                peer.sendall(json.dumps(upstream.receive()).encode() + b"\0")
            peer.sendall(b'{"parameters":{"app":"cam","names":["in')
            peer.close()
            upstream.close()
            said = ctl.communicate(timeout=60)[1]
        assert ctl.returncode == 1, (ctl.returncode, said)
        assert "incomplete" in said, said
        trace = read(out.read_text())
        about(trace, truncated=True)
        assert len(check(trace)[0]["X"]) > 100
        assert sorted(os.listdir(folder)) == ["io.edgeprof", "part.json"]
        listener.close()
        # gone before the start: no file
        done = daemon.ctl("trace", "--socket", str(relay), "-o", str(pathlib.Path(folder) / "none"))
        assert done.returncode == 69 and not (pathlib.Path(folder) / "none").exists(), done


def test_memory_of_a_big_trace_is_bounded():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        run = [str(WRITER), "cam", "200000", "2", "20", "30"]
        with program(run, daemon.env, stdout=subprocess.DEVNULL):  # goes on while the trace is read
            until("the pool is used", lambda: daemon.call("GetSelf")["records"] > 60000, patience=90)
            out = pathlib.Path(folder) / "big.json"
            # heap of a third of what it writes; the sanitizer's shadow would not fit
            limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_DATA, (4 << 20, 4 << 20))
            done = subprocess.run([str(CTL), "trace", "-o", str(out)], env=daemon.env, timeout=120,
                                  capture_output=True, text=True, preexec_fn=limit)
            assert done.returncode == 0, done
        trace = read(out.read_text())
        by_phase = check(trace)[0]
        assert out.stat().st_size > 4 << 20, out.stat().st_size
        assert trace["otherData"]["records"] + trace["otherData"]["records_lost"] >= 60000
        assert len(by_phase["X"]) > 30000


def test_only_with_more_and_for_other_users_no_records():
    with Daemon() as daemon:
        try:
            daemon.call("ExportTrace")
            raise AssertionError("without more")
        except VarlinkError as error:
            assert error.name == "org.varlink.service.ExpectedMore", error
        if os.geteuid() != 0:
            return "only root can become another user"
        subprocess.run([str(EXAMPLES / "hello-stages"), "5"], env=daemon.env, check=True, timeout=60)
        until("it ended", lambda: app_state(daemon, "hello") in ("ended", "exited"))
        os.chmod(daemon.dir, 0o755)
        shutil.copy(SOURCE / "tests" / "integration" / "harness.py", daemon.dir)  # the checkout may be closed to others
        code = f"""
import sys; sys.path.insert(0, {str(daemon.dir)!r})
from harness import Varlink
import json
print(json.dumps(list(Varlink({str(daemon.socket)!r}).stream("ExportTrace"))))
"""
        done = subprocess.run(["python3", "-c", code], env=daemon.env, capture_output=True, text=True, timeout=60,
                              user=65534, group=65534, extra_groups=[])
        assert done.returncode == 0, done.stderr
        chunks = json.loads(done.stdout)
        assert "another user" in chunks[0]["start"]["apps"][0]["reason"], chunks
        assert not any("records" in chunk for chunk in chunks), chunks


if __name__ == "__main__":
    run_tests(globals())
