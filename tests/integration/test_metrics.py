#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl metrics: the text that Prometheus reads, checked with promtool and by a real Prometheus;
and the alert rules and the dashboard that are built on its names."""
import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from ctl_case import ALERT, REPLIES, STATUS, FakeDaemon, error, metric, stage
from harness import CTL, SOURCE, Daemon, board, program, run_tests, until
from test_apps import Actor, attached

RULES = SOURCE / "config" / "prometheus" / "edgeprof.rules.yml"
DASHBOARD = SOURCE / "config" / "grafana" / "edgeprof.json"
SAMPLE = re.compile(r'([a-z][a-z0-9_]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')


def lint(text):
    """Neither errors nor warnings of promtool."""
    if not shutil.which("promtool"):
        return
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr


def parse(text):
    """{family: type}, {"name{labels}": value}; fails where a family is not in one piece, or a sample comes twice."""
    types, samples, current = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split()[2]
            assert current not in types and len(line.split()) > 3, line
        elif line.startswith("# TYPE "):
            assert line.split()[2] == current, line
            types[current] = line.split()[3]
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            key = f"{name}{{{labels}}}" if labels else name
            assert name in (current, current + "_sum", current + "_count"), (line, current)
            assert key not in samples, key
            samples[key] = float(value)
    return types, samples


def metrics(daemon, *words, status=0):
    done = daemon.ctl("metrics", *words)
    assert done.returncode == status and "Sanitizer" not in done.stderr, done
    return done.stdout


@contextlib.contextmanager
def fake(**replies):
    """edgeprofctl's environment, with a daemon of canned answers."""
    with tempfile.TemporaryDirectory() as folder, FakeDaemon(folder, dict(REPLIES, **replies)):
        yield dict(os.environ, EDGEPROF_RUNTIME_DIR=folder, LC_ALL="C")


def run(env, *words):
    return subprocess.run([str(CTL), "metrics", *words], env=env, capture_output=True, text=True, timeout=60)


# Every path of edgeprof-metrics(7), with its unit.
PATHS = """temperature/max celsius|temperature/cpu celsius|temperature_peak/cpu celsius|headroom/cpu celsius
cooling/fan state|fan/pwm rpm|fan_duty/pwm percent|throttle/active bool|throttle/under_voltage_occurred bool
throttle/oc1_rate per_second|throttle/core_events count|throttle/package_events count|power/total milliwatts
power/VIN milliwatts|power_average/VIN milliwatts|power_peak/VIN milliwatts|power_limit/usb milliwatts
budget/power percent|energy/total millijoules|energy/gap_time seconds|cpu/utilization percent|cpu/iowait percent|cpu/steal percent
cpu/0/utilization percent|cpu/0/frequency hertz|cpu/load1 |cpu/load5 |cpu/load15 |memory/total bytes
memory/available bytes|memory/used bytes|memory/used_percent percent|swap/total bytes|swap/used bytes
swap/cached bytes|pressure/cpu/some percent|pressure/io/full percent|gpu/utilization percent|gpu/frequency hertz
emc/utilization percent|engine/nvenc/utilization percent|tegra/lfb bytes|tegra/mts_fg percent|clock/core hertz
voltage/core volts|memory_split/gpu bytes|process/cam/rss bytes|process/cam/pss bytes|process/cam/vms bytes
process/cam/peak_rss bytes|process/cam/cpu percent|process/cam/user percent|process/cam/system percent
process/cam/threads count|process/cam/fds count|process/cam/minor_faults per_second|process/cam/count count
process/cam/mem_percent percent|process/cam/run_delay percent|process/cam/iodelay percent|process/cam/ipc
process/cam/stopped count|process/cam/read_bytes per_second|process/cam/over_limit count|stage/cam/infer/p95_ms milliseconds
stage/cam/infer/growth_over_limit bytes|frame/cam/fps fps|frame/cam/target_percent percent|gauge/cam/depth count
gauge/cam/heat celsius|counter/cam/hits count|app/cam/hung bool|app/cam/processes count|app/cam/died bool
self/rss bytes|self/cpu percent|self/loop_lag_max microseconds|self/events_dropped count|self/api_calls count
self/events_dropped_rate per_second|self/history_written_bytes bytes|collector/cpu/duration_us microseconds
collector/cpu/errors count|collector/cpu/age_s seconds|collector/cpu/stale bool|collector/t/lines_cut count"""
FRAMES = {"frames": [{"app": "cam", "state": "running", "fps": 29.5, "frame_time_p50_ms": 33.0, "frame_time_p95_ms": 40,
                      "end_to_end_p95_ms": 50, "end_to_end_mean_ms": 30, "frame_time_mean_ms": 20, "frame_count": 100,
                      "total_count": 101, "deadline_ms": 100, "misses": 3, "target_fps": 30}]}


def all_paths():
    return [metric(*row.rsplit(" ", 1)[:1], 50, row.rsplit(" ", 1)[1])
            for row in "|".join(line if line.split("|")[-1].count(" ") else line + " "
                                for line in PATHS.splitlines()).split("|")]


def everything():
    """The output of a daemon that has all metrics there are."""
    with fake(ListMetrics={"metrics": all_paths()}, GetFrames=FRAMES,
              ListStages={"stages": [stage("infer", 18.5, 22.2, 25.9, 1024, unit="gpu", deadline_ms=33.3, misses=7,
                                           total_ms=20000.0, age_ms=5)], "totals": []}) as env:
        done = run(env)
        assert done.returncode == 0, done
        return done.stdout


# covers G4.9
def test_every_metric_is_a_family_in_base_units():
    text = everything()
    lint(text)
    types, samples = parse(text)
    assert len(types) > 90, sorted(types)
    for name, value in {
        'edgeprof_temperature_celsius{zone="cpu"}': 50, 'edgeprof_power_watts{rail="VIN"}': 0.05,
        "edgeprof_power_board_watts": 0.05, "edgeprof_cpu_utilization_ratio": 0.5, "edgeprof_energy_joules_total": 0.05,
        'edgeprof_stage_seconds{app="cam",stage="infer",unit="gpu",quantile="0.95"}': 0.0222,
        'edgeprof_stage_seconds_sum{app="cam",stage="infer",unit="gpu"}': 20,
        'edgeprof_stage_seconds_count{app="cam",stage="infer",unit="gpu"}': 1024,
        'edgeprof_stage_deadline_misses_total{app="cam",stage="infer",unit="gpu"}': 7,
        'edgeprof_frame_seconds{app="cam",quantile="0.5"}': 0.033, 'edgeprof_frame_seconds_sum{app="cam"}': 2,
        'edgeprof_frame_end_to_end_seconds_sum{app="cam"}': 3, 'edgeprof_frames_per_second{app="cam"}': 29.5,
        'edgeprof_alert_firing{rule="temperature",alert_instance="max",severity="critical"}': 1,
        'edgeprof_process_resident_memory_bytes{process="cam"}': 50, 'edgeprof_app_value{app="cam",name="depth"}': 50,
        'edgeprof_app_value{app="cam",name="heat",unit="celsius"}': 50, 'edgeprof_app_count_total{app="cam",name="hits"}': 50,
        'edgeprof_pressure_ratio{resource="cpu",kind="some"}': 0.5, 'edgeprof_throttle{flag="active"}': 50,
        'edgeprof_self_loop_lag_max_seconds': 5e-5, 'edgeprof_source_read_seconds{source="cpu"}': 5e-5,
        'edgeprof_source_lines_cut_total{source="t"}': 50, 'edgeprof_voltage_volts{rail="core"}': 50, "edgeprof_up": 1,
    }.items():
        assert abs(samples[name] - value) < 1e-9, (name, samples.get(name))
    for name, kind in types.items():
        assert kind == ("summary" if f"{name}_sum" in "".join(samples) else "counter" if name.endswith("_total") else "gauge")
        assert not re.search("_(ms|mw|percent|us|mj|milli.*)$", name), name
    assert text == everything(), "the order is not deterministic"
    # as the daemon counts, in the reply itself
    with fake(ListMetrics={"metrics": all_paths()}) as env:
        assert json.loads(run(env, "-j").stdout)["metrics"] == all_paths()


def test_names_of_rules_and_dashboard_exist():
    families = set(parse(everything())[0])
    for path in (RULES, DASHBOARD):
        names = set(re.findall(r"edgeprof_[a-z0-9_]+", path.read_text()))
        assert len(names) > 8, path
        missing = {n for n in names if n not in families and re.sub("_(sum|count)$", "", n) not in families}
        assert not missing, (path, missing)
    dashboard = json.loads(DASHBOARD.read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids) > 15
    assert {v["name"] for v in dashboard["templating"]["list"]} == {"datasource", "instance", "app", "quantile"}
    if not shutil.which("promtool"):
        return "promtool is not installed: rules are not checked"
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "SUCCESS: 9 rules" in done.stdout, done


def test_what_is_not_known_or_not_current_is_absent():
    rows = [metric("temperature/a", None, "celsius", reason="off"), metric("temperature/b", 40, "celsius", state="stale"),
            metric("temperature/c", 41, "celsius"), metric("cooling/x", 2, "state", max=4)]
    idle = {"frames": [dict(FRAMES["frames"][0], fps=None, idle_ms=9000)]}
    old = stage("infer", 18.5, 22.2, 25.9, 1024, total_ms=20000.0, age_ms=61000)
    with fake(ListMetrics={"metrics": rows}, GetFrames=idle, ListStages={"stages": [old], "totals": []}) as env:
        text = run(env).stdout
    lint(text)
    samples = parse(text)[1]
    assert [s for s in samples if "temperature" in s and "alert" not in s] == ['edgeprof_temperature_celsius{zone="c"}']
    assert samples['edgeprof_cooling_state_max{device="x"}'] == 4
    assert not [s for s in samples if "quantile" in s] and "edgeprof_frames_per_second" not in text, text
    assert samples['edgeprof_stage_seconds_count{app="cam",stage="infer"}'] == 1024


def test_names_are_escaped_and_never_break_the_text():
    names = ['a"b', "a\\b", "a\nb", "a\x1bb", "ä", "ö", "x" * 4000, "\u202ex"]
    with fake(ListMetrics={"metrics": [metric(f"newkind/{n}", 1, "celsius") for n in ["p", "p", "q-r"]] +
                           [metric("newkind", 1, ""), metric("self/a.x", 1, ""), metric("self/a-x", 2, "")]},
              ListStages={"stages": [stage(n, 1, 2, 3, 4, total_ms=1.0, age_ms=1) for n in names], "totals": []},
              GetStatus=dict(STATUS, model='"}\n# TYPE x gauge\\' + " Super" * 9),
              ListAlerts={"alerts": [dict(ALERT, instance=n) for n in names]}) as env:
        text = run(dict(env, COLUMNS="60")).stdout
    lint(text)
    samples = parse(text)[1]
    assert samples['edgeprof_newkind_celsius{name="p"}'] == 1 and samples["edgeprof_self_a_x"] == 1, text
    assert 'stage="a\\"b"' in text and 'stage="a\\\\b"' in text and 'stage="ä"' in text and 'stage="ö"' in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", text) and "xxxx" not in text


def test_without_a_reply_the_file_says_down():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "edgeprof.prom"
        with fake() as env:
            assert run(env, "-o", str(path)).returncode == 0
            good = path.read_text()
            assert "edgeprof_up 1\n" in good and path.stat().st_mode & 0o777 == 0o644 & ~current_umask()
            assert run(env, "-o", str(path / "x")).returncode == 74
            assert run(env, "-j", "-o", str(path)).returncode == 64 and path.read_text() == good
        done = run(env, "-o", str(path))
        down = "# HELP edgeprof_up 1 when the daemon replied.\n# TYPE edgeprof_up gauge\nedgeprof_up 0\n"
        assert done.returncode == 69 and path.read_text() == down and "cannot connect" in done.stderr, done
        done = run(env)
        assert done.returncode == 69 and done.stdout == down
        # a daemon that fails in the middle: half of the families would be read as metrics that ended
        with fake(ListStages=error("io.edgeprof.LimitReached", what="calls", limit=1)) as env:
            assert run(env, "-o", str(path)).returncode == 1 and path.read_text() == down
        assert os.listdir(folder) == ["edgeprof.prom"]
    with open("/dev/full", "w", encoding="ascii") as full, fake() as env:
        done = subprocess.run([str(CTL), "metrics"], env=env, stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 74, done


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {".prom": "text/plain; version=0.0.4"}

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def query(port, expression):
    """The result of an instant query: [(labels, value)]; empty while Prometheus starts."""
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            rows = json.load(reply)["data"]["result"]
    except OSError:
        return []
    return [(row["metric"], float(row["value"][1])) for row in rows]


def test_a_real_prometheus_scrapes_it():
    if not shutil.which("prometheus"):
        return "prometheus is not installed"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path = folder / "edgeprof.prom"
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"}, "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "board", "metrics_path": "/edgeprof.prom",
                                "static_configs": [{"targets": [f"127.0.0.1:{server.server_address[1]}"]}]}]}))
        prometheus = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                      f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
        with Daemon(root=board(folder)[0]) as daemon, Actor(daemon) as actor, \
                open(folder / "log", "wb") as log, program(prometheus, os.environ, stdout=log, stderr=log):
            attached(daemon, actor)
            actor.do("runs infer 20 1000", "gauge depth 7")
            until("the stage is counted", lambda: "edgeprof_stage_seconds_count" in metrics(daemon, "-o", "-"))
            # the textfile of a running machine: written again and again, and replaced as a whole
            end = time.monotonic() + 60
            rows = []
            while not rows and time.monotonic() < end:
                assert metrics(daemon, "--output", str(path)) == ""
                rows = query(port, 'edgeprof_stage_seconds_count{app="cam",stage="infer"} == 20')
            assert rows, (folder / "log").read_text()
            assert query(port, 'edgeprof_temperature_celsius{zone="cpu-thermal"}')[0][1] == 50
            assert query(port, 'edgeprof_app_value{app="cam",name="depth"}')[0][1] == 7
            quantile = query(port, 'edgeprof_stage_seconds{stage="infer",quantile="0.5"}')[0]
            assert quantile[0]["instance"].startswith("127.0.0.1:") and 0.001 <= quantile[1] < 1, quantile
            assert query(port, "scrape_samples_scraped")[0][1] > 100
            assert query(port, "count(edgeprof_up)")[0][1] == 1
        assert daemon.ctl("metrics", "-o", str(path)).returncode == 69
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    run_tests(globals())
