#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every answer of the real daemon against the interface description, read by a parser of its own;
every verb of edgeprofctl against the real daemon."""
import contextlib
import json
import re
import subprocess

from harness import CTL, DEMO, SOURCE, Daemon, ctl_for_others, run_tests, program, until

import varlink_idl

INTERFACE = varlink_idl.load(SOURCE / "proto" / "io.edgeprof.varlink")

CALLS = [
    ("GetStatus", {}),
    ("ListMetrics", {}),
    ("ListMetrics", {"glob": "stage/*/*/p95_ms"}),
    ("ListSources", {}),
    ("GetHistory", {"glob": "cpu/*"}),
    ("GetHistory", {"glob": "**", "max_points": 10}),
    ("GetHistory", {"glob": "frame/demo/*", "step_ms": 500}),
    ("ListBoots", {}),
    ("GetSnapshot", {}),
    ("GetSnapshot", {"app": "demo"}),
    ("GetSnapshot", {"app": "nobody"}),
    ("GetStatus", {"all": True}),
    ("ListApps", {}),
    ("ListApps", {"all": True}),
    ("ListStages", {}),
    ("ListStages", {"app": "demo"}),
    ("GetFrames", {}),
    ("ExportTrace", {}),
    ("GetReport", {}),
    ("GetReport", {"app": "demo"}),
    ("GetReport", {"app": "demo", "all_runs": True}),
    ("ListStages", {"run": 0}),
    ("ListStages", {"all_runs": True}),
    ("GetFrames", {"app": "demo", "all_runs": True}),
    ("GetReport", {"app": "nobody"}),
    ("ListProcesses", {}),
    ("ListProcesses", {"threads": True}),
    ("WatchProcess", {"pattern": "edgeprof*", "name": "watched"}),
    ("WatchProcess", {"name": "watched", "remove": True}),
    ("WatchProcess", {}),
    ("ListAlerts", {}),
    ("ListAlerts", {"all": True}),
    ("ListRules", {}),
    ("AckAlert", {"rule": "always", "note": "known"}),
    ("SilenceAlert", {"rule": "alw*", "seconds": 60, "note": "works"}),
    ("ListSilences", {}),
    ("ListAlerts", {}),
    ("SilenceAlert", {"rule": "alw*", "remove": True}),
    ("AckAlert", {"rule": "always", "remove": True}),
    ("AckAlert", {"rule": "nothing"}),
    ("TestAlert", {"seconds": 1}),
    ("GetAlertLog", {}),
    ("GetAlertLog", {"limit": 1, "since_us": 1}),
    ("ListEvents", {}),
    ("ListEvents", {"from_serial": 1, "limit": 1}),
    ("Mark", {"label": "before model load"}),
    ("Mark", {"label": "after model load", "app": "demo"}),
    ("ListMarks", {}),
    ("ListMarks", {"app": "demo"}),
    ("ListRecordings", {}),
    ("RecordNow", {"label": "twice", "after_s": 1}),
    ("RecordNow", {"before_s": 1000}),
    ("GetRecording", {"name": "../../etc/passwd"}),
    ("StartSession", {"name": "answers", "app": "demo", "warmup": 1, "frames": 1000, "seconds": 60,
                      "tags": [{"name": "resolution", "value": "320x320"}],
                      "environment": [{"name": "OMP_NUM_THREADS", "value": "2"}]}),
    ("StartSession", {"name": "device", "seconds": 60.5}),
    ("StartSession", {"name": "of/path"}),
    ("StartSession", {"name": "tags", "tags": [{"name": "one"}]}),
    ("ListSessions", {}),
    ("ListSessions", {"name": "ans*"}),
    ("GetSession", {"name": "../../etc/passwd"}),
    ("StopSession", {"name": "answers", "error": "ValueError('x')"}),
    ("StopSession", {"name": "nothing"}),
    ("DeleteSession", {"name": "device"}),
    ("DeleteSession", {"name": "nothing"}),
    ("Diagnose", {}),
    ("Diagnose", {"app": "demo"}),
    ("Diagnose", {"app": "nobody"}),
    ("Explain", {"app": "demo"}),
    ("Explain", {"app": "demo", "frame": 10}),
    ("Explain", {"app": "demo", "time_us": 0}),
    ("Explain", {"app": "demo", "frame": 1, "time_us": 1}),
    ("Forecast", {}),
    ("Forecast", {"app": "demo", "fps": 30, "deadline_ms": 20}),
    ("Forecast", {"fps": -1}),
    ("GetThrottle", {}),
    ("GetSelf", {}),
    ("SetSource", {"name": "load", "enabled": False}),
    ("SetSource", {"name": "load", "enabled": True, "interval_ms": 500}),
    ("Reload", {}),
    ("ListStages", {"app": "nobody"}),
    ("SetSource", {"name": "nothing"}),
    ("ListMetrics", {"glob": 7}),
]


@contextlib.contextmanager
def profiled():
    rule = "[alert always]\nmetric = cpu/load1\nabove = -1\n"
    with Daemon(rule) as daemon, program([DEMO, "--app", "demo", "--fps", "60"], daemon.env):
        until("frames", lambda: any(f["frame_count"] > 30 for f in daemon.call("GetFrames")["frames"]))
        until("an alert", lambda: daemon.call("ListAlerts")["alerts"])
        until("the demo's process", lambda: daemon.metric("process/demo/rss"))
        # an app's metric has history from its second value on
        until("the demo's history", lambda: daemon.ctl("history", "stage/demo/*/p95_ms").returncode == 0)
        yield daemon


def test_every_reply_is_as_described():
    with profiled() as daemon, contextlib.closing(daemon.client()) as client:
        described = client.call("org.varlink.service.GetInterfaceDescription", interface="io.edgeprof")["description"]
        assert described == (SOURCE / "proto" / "io.edgeprof.varlink").read_text()
        for method, parameters in CALLS:
            client.send(method, parameters)
            message = client.receive()
            INTERFACE.check_reply("io.edgeprof." + method, message)
        called = {method for method, _ in CALLS} | {"Subscribe"}
        assert called == set(INTERFACE.methods), called ^ set(INTERFACE.methods)


def test_every_chunk_with_more_is_as_described():
    with profiled() as daemon, contextlib.closing(daemon.client()) as client:
        for method, parameters in (("ListMetrics", {}), ("GetHistory", {"glob": "**"}), ("ExportTrace", {}), ("ExportTrace", {"app": "demo"})):
            client.send(method, parameters, more=True)
            while True:
                message = client.receive()
                INTERFACE.check_reply("io.edgeprof." + method, message)
                if not message.get("continues"):
                    break
        client.send("Subscribe", {"metrics": True, "events": True, "interval_ms": 100, "advice": True}, more=True)
        replies = [client.receive() for _ in range(5)]
        for reply in replies:
            INTERFACE.check_reply("io.edgeprof.Subscribe", reply)
        assert any(reply["parameters"].get("advice") for reply in replies), "the demo is advised"


# covers G3.6
def test_every_verb_answers_in_text_and_json():
    with profiled() as daemon:
        verbs = [
            ["status"], ["sensors"], ["sensors", "cpu/*"], ["stages"], ["stages", "demo"], ["stages", "--tree"], ["stages", "--by", "unit"], ["stages", "--wide"], ["frames"], ["report"], ["report", "demo"], ["report", "demo", "--run", "0"], ["stages", "--all-runs"], ["apps"], ["ps"], ["ps", "--threads"],
            ["history", "cpu/*"], ["history", "stage/demo/*/p95_ms", "--since", "1min"], ["alerts"], ["alerts", "--all"], ["rules"], ["rules", "temp*"],
            ["events"], ["self"], ["throttle"], ["metrics"], ["source", "list"], ["mark", "here"], ["marks"], ["trace"], ["trace", "demo", "--since", "5s"],
        ]
        for verb in verbs:
            text = daemon.ctl(*verb)
            assert text.returncode == 0 and text.stdout.strip() or verb[0] in ("mark",), (verb, text)
            short = daemon.ctl(*verb, "--json=short")
            assert short.returncode == 0, (verb, short)
            assert isinstance(json.loads(short.stdout), dict), (verb, short.stdout[:200])
            pretty = daemon.ctl("--json=pretty", *verb)
            assert isinstance(json.loads(pretty.stdout), dict), verb
        watch = daemon.ctl("watch", "--count", "2", "--interval", "200ms")
        assert watch.returncode == 0 and watch.stdout.count("demo") >= 2, watch
        assert "edgeprofctl" in daemon.ctl("version").stdout


# covers G0.5
def test_text_report_of_the_stages():
    with profiled() as daemon:
        lines = daemon.ctl("stages", "demo").stdout.splitlines()
        assert lines[0].startswith("PIPELINE PROFILING REPORT"), lines
        heading = next(line for line in lines if "Stage" in line)
        assert [heading.index(w) for w in ("Stage", "Mean", "P95", "P99", "Count")] == sorted(
            heading.index(w) for w in ("Stage", "Mean", "P95", "P99", "Count"))
        assert any(line.startswith("TOTAL") for line in lines) and any(line.startswith("MAX FPS") for line in lines), lines
        order = [s["stage"] for s in daemon.call("ListStages", app="demo")["stages"]]
        shown = [w for w in (line.split()[0].split("@")[0] for line in lines if line.split()) if w in order]
        assert shown == order, (shown, order)


def test_the_manual_has_every_error():
    described = (SOURCE / "proto" / "io.edgeprof.varlink").read_text()
    page = (SOURCE / "proto" / "edgeprof-protocol.7.scd").read_text()
    errors = re.findall(r"^error (\w+) \((\w+)", described, re.MULTILINE)
    assert len(errors) > 6 and all(re.search(rf"\b{name} \(\*{field}\*", page) for name, field in errors), errors


def test_exit_codes_tell_what_happened():
    with profiled() as daemon:
        cases = [
            (["stages", "nobody"], 2), (["sensors", "nothing/*"], 2), (["history", "nothing/*"], 2), (["nonsense"], 64),
            (["status", "--nonsense"], 64), ([], 64), (["alerts", "--check"], 1), (["frames", "demo"], 0),
        ]
        for arguments, code in cases:
            done = daemon.ctl(*arguments)
            assert done.returncode == code, (arguments, code, done)
            if code >= 2:  # without arguments, the way to begin is what was asked for
                assert (done.stderr if arguments else done.stdout).strip(), (arguments, done)
    gone = subprocess.run([str(CTL), "status"], env=daemon.env, capture_output=True, text=True, timeout=30)
    assert gone.returncode == 69 and "edgeprofd" in gone.stderr, gone


def test_unprivileged_user_may_ask_but_not_change():
    import os

    if os.geteuid() != 0:
        return "needs root to become somebody else"
    with Daemon() as daemon:
        os.chmod(daemon.dir, 0o755)
        def nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        ctl = ctl_for_others(daemon.dir)
        ask = subprocess.run([str(ctl), "status"], env=daemon.env, capture_output=True, text=True, preexec_fn=nobody, timeout=30)
        assert ask.returncode == 0, ask
        change = subprocess.run(
            [str(ctl), "source", "disable", "load"], env=daemon.env, capture_output=True, text=True, preexec_fn=nobody, timeout=30)
        assert change.returncode == 77 and "edgeprof" in change.stderr, change
        for words in (["ack", "x"], ["silence", "x", "1h"], ["silence", "--remove", "x"], ["test-alert"]):
            change = subprocess.run([str(ctl), *words], env=daemon.env, capture_output=True, text=True, preexec_fn=nobody, timeout=30)
            assert change.returncode == 77 and "Alert is permitted for root and group edgeprof only" in change.stderr, change
        assert {s["name"]: s["state"] for s in daemon.call("ListSources")["sources"]}["load"] == "ok"
        assert daemon.ctl("source", "disable", "load").returncode == 0
        until("it is off", lambda: {s["name"]: s["state"] for s in daemon.call("ListSources")["sources"]}["load"] == "suspended")


if __name__ == "__main__":
    run_tests(dict(globals()))
