#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of an app: each has its own statistics, the last ones are kept, and how it ended is told."""
import json
import re
import signal

from harness import Daemon, VarlinkError, ends_are_hidden, run_tests, until
from reckoning import MS, Script, arrived
from test_apps import Actor

NEVER_BACK = "[app *]\nrestart_within = 0\n"


def app_of(daemon, name="cam"):
    return next((a for a in daemon.call("ListApps")["apps"] if a["name"] == name), None)


def events(daemon, name="cam"):
    return [e["text"] for e in daemon.call("ListEvents", limit=1000)["events"] if e["subject"] == name]


def ended(daemon, state="ended"):
    return until(f"it is {state}", lambda: (a := app_of(daemon)) and not a["processes"] and a["state"] == state and a)


def one_run(daemon, duration_ms, count):
    with Script(daemon) as script:
        script.tell([f"0 complete 0 infer {duration_ms * MS} {i}" for i in range(count)])
        arrived(daemon, {"infer": count})
    ended(daemon)


def stage(daemon, **parameters):
    reply = daemon.call("ListStages", app="cam", **parameters)
    return next(s for s in reply["stages"] if s["stage"] == "infer"), reply["totals"][0]


def refused(call, error, **parameters):
    try:
        call(**parameters)
    except VarlinkError as e:
        assert e.name.endswith(error), e
        return e.parameters
    raise AssertionError(f"{parameters} was taken")


def test_total_of_all_runs_says_that_it_is_of_the_latest():
    with Daemon() as daemon:
        for duration in (2, 10):
            with Script(daemon) as script:
                script.tell([line for i in range(30) for line in (
                    f"0 frame_begin {i}", f"0 complete 0 infer {duration * MS} {i}", "0 frame_end")])
                arrived(daemon, {"infer": 30})
            ended(daemon)
        assert re.search(r"^TOTAL +10\.0$", daemon.ctl("report", "cam").stdout, re.M)
        shown = daemon.ctl("report", "cam", "--all-runs").stdout
        assert re.search(r"^infer +6\.0 .* 60$", shown, re.M), shown
        assert re.search(r"^TOTAL +10\.0 \(last 30 frames\)$", shown, re.M), shown


def test_total_of_all_runs_is_without_stages_that_the_latest_lacks():
    # covers G0.5
    with Daemon() as daemon:
        for stages in (("infer@gpu", "resize"), ("infer@cpu",)):
            with Script(daemon) as script:
                script.tell([line for i in range(30) for line in (
                    f"0 frame_begin {i}", *(f"0 complete 0 {name} {8 * MS} {i}" for name in stages), "0 frame_end")])
                arrived(daemon, {"infer": 30})
            ended(daemon)
        reply = daemon.call("ListStages", app="cam", all_runs=True)
        assert reply["totals"][0]["mean_ms"] == 8 and reply["totals"][0]["max_fps"] == 125, reply["totals"]
        rows = {s["stage"] + "@" + s.get("unit", ""): (s["count"], s["per_frame_ms"]) for s in reply["stages"]}
        assert rows == {"infer@cpu": (30, 8), "infer@gpu": (30, 0), "resize@": (30, 0)}, rows


def test_each_run_has_its_own_statistics():
    with Daemon() as daemon:
        one_run(daemon, 10, 100)
        first = app_of(daemon)
        assert first["run"] == 1 and first["until_us"] > first["since_us"], first
        one_run(daemon, 2, 300)
        second, total = stage(daemon)
        assert (second["run"], second["count"], round(second["mean_ms"], 6)) == (2, 300, 2), second
        assert total["run"] == 2 and total["state"] == "ended" and total["since_us"] > first["until_us"], total
        before, total = stage(daemon, run=-1)
        assert (before["run"], before["count"], round(before["mean_ms"], 6)) == (1, 100, 10), before
        assert total["since_us"] == first["since_us"] and total["until_us"] == first["until_us"], (total, first)
        both, total = stage(daemon, all_runs=True)
        assert both["count"] == 400 and round(both["mean_ms"], 6) == 4 and not both["exact"], both
        assert total["since_us"] == first["since_us"], total

        report = daemon.call("GetReport", app="cam", run=-1)
        assert report["run"] == 1 and report["until_us"] == first["until_us"], report
        assert re.search(r"^infer +10\.0 .* 100$", report["text"], re.M), report["text"]
        assert re.search(r"^infer +2\.0 .* 300$", daemon.ctl("report", "cam").stdout, re.M)
        assert re.search(r"^infer +10\.0 .* 100$", daemon.ctl("report", "cam", "--run", "-1").stdout, re.M)
        assert re.search(r"^infer +4\.0 .* 400$", daemon.ctl("report", "cam", "--all-runs").stdout, re.M)
        shown = daemon.ctl("stages", "cam", "--run=-1").stdout
        assert "run 1 (ended)" in shown and re.search(r"^infer +10\.0 .* 100", shown, re.M), shown
        assert json.loads(daemon.ctl("frames", "cam", "--run", "-1", "-j").stdout)["frames"][0]["run"] == 1

        for method in ("ListStages", "GetFrames", "GetReport"):
            call = lambda **more: daemon.call(method, app="cam", **more)
            assert refused(call, "NotFound", run=-2) == {"what": "run", "name": "-2"}
            assert refused(call, "InvalidParameter", run=1) == {"parameter": "run"}
            assert refused(call, "InvalidParameter", run=-9) == {"parameter": "run"}
            assert refused(call, "InvalidParameter", run=-1, all_runs=True) == {"parameter": "all_runs"}
        for value in ("1", "x", "-9", "", "-"):
            result = daemon.ctl("report", "cam", "--run", value)
            assert result.returncode == 64 and "--run; use 0|-1|-2|-3|-4|-5|-6|-7|-8\n" in result.stderr, (value, result)


def test_slow_frames_of_all_runs_add_up():
    # covers G0.24
    with Daemon("[frame cam]\ndeadline = 5ms\n") as daemon:
        for _ in range(2):
            with Script(daemon) as script:
                script.tell([line for i in range(30) for line in (
                    f"0 frame_begin 0 {i}", f"0 complete 0 infer {10 * MS} {i}", "0 frame_end 0")])
                arrived(daemon, {"infer": 30})
            ended(daemon)
        for more, count in (({}, 30), ({"run": -1}, 30), ({"all_runs": True}, 60)):
            row = daemon.call("GetFrames", app="cam", **more)["frames"][0]
            assert row["misses"] == row["slow_count"] == count, (more, row)
        assert " slow frames (60 in all)" in daemon.ctl("report", "cam", "--all-runs").stdout


def test_frames_of_all_runs_are_listed_newest_first():
    # covers G0.24
    with Daemon("[frame cam]\ndeadline = 5ms\n") as daemon:
        for first in (0, 100):
            with Script(daemon) as script:
                script.tell([line for i in range(first, first + 3) for line in (
                    f"0 frame_begin 0 {i}", f"0 complete 0 infer {10 * MS} {i}", "0 frame_end 0")])
                arrived(daemon, {"infer": 3})
            ended(daemon)
        listed = lambda **more: [f["frame"] for f in daemon.call("GetFrames", app="cam", **more)["list"]]
        both = [102, 101, 100, 2, 1, 0]
        for what in ({"slow": True}, {"recent": 6}, {"slow": True, "recent": 128}):
            assert listed(all_runs=True, **what) == both, (what, listed(all_runs=True, **what))
            assert listed(**what) == both[:3] and listed(run=-1, **what) == both[3:], what
        assert listed(all_runs=True, recent=4) == both[:4]
        shown = daemon.ctl("frames", "cam", "--slow", "--all-runs").stdout
        assert re.findall(r"^cam frame (\d+)", shown, re.M) == [str(i) for i in both], shown


def test_reports_of_records_are_of_the_run_that_is_asked_for():
    # covers G0.24
    with Daemon() as daemon:
        one_run(daemon, 10, 40)
        one_run(daemon, 2, 60)
        daemon.call("StartSession", name="s", seconds=0.01)
        for more, count, mean_ms in ((), 60, 2), (("--run", "0"), 60, 2), (("--run", "-1"), 40, 10):
            profile = json.loads(daemon.ctl("report", "cam", "--format", "profile", *more).stdout)
            assert (profile["summary"]["frames_profiled"], profile["infer"]["mean_ms"]) == (count, mean_ms), (more, profile)
        assert daemon.ctl("report", "cam", "--format", "profile", "--run", "-2").returncode == 2
        for words in (["cam", "--all-runs", "--format", "json"], ["cam", "--all-runs", "--target", "x/y"],
                      ["cam", "--card", "--run", "-1"], ["s", "--run", "-1"], ["s", "--all-runs"]):
            refused = daemon.ctl("report", *words)
            assert refused.returncode == 64 and "run" in refused.stderr and not refused.stdout, refused


def test_processes_that_overlap_are_one_run():
    with Daemon() as daemon:
        with Script(daemon) as script:
            script.tell([f"0 complete 0 infer {10 * MS} {i}" for i in range(50)])
            with Script(daemon) as other:
                other.tell([f"0 complete 0 infer {20 * MS} {i}" for i in range(50)])
                arrived(daemon, {"infer": 100})
            until("one is left", lambda: len(app_of(daemon)["processes"]) == 1)
            assert app_of(daemon)["run"] == 1 and "until_us" not in app_of(daemon)
        assert ended(daemon)["run"] == 1
        assert round(stage(daemon)[0]["mean_ms"], 6) == 15


def ends(daemon, how):
    actor = Actor(daemon)
    with actor:
        until("it is attached", lambda: (a := app_of(daemon)) and a["processes"])
        actor.do("runs infer 3 0")
        how(actor)
        actor.process.wait(20)
    return until("its end", lambda: (a := app_of(daemon)) and not a["processes"] and a)


def test_how_a_run_ended_is_what_the_kernel_reports():
    if hidden := ends_are_hidden():
        return hidden
    ways = [
        (lambda a: a.end(), "ended", None, "ended"),
        (lambda a: a.process.send_signal(signal.SIGTERM), "ended", None, "ended by SIGTERM"),
        (lambda a: a.process.send_signal(signal.SIGINT), "ended", None, "ended by SIGINT"),
        (lambda a: a.process.send_signal(signal.SIGHUP), "ended", None, "ended by SIGHUP"),
        (lambda a: a.process.send_signal(signal.SIGKILL), "killed", "died", "died"),
        (lambda a: a.process.send_signal(signal.SIGQUIT), "died", "died of SIGQUIT", "died of SIGQUIT"),
        (lambda a: a.process.send_signal(signal.SIGUSR1), "died", "died of SIGUSR1", "died of SIGUSR1"),
    ]
    with Daemon(NEVER_BACK) as daemon:
        for number, (how, state, words, text) in enumerate(ways):
            app = ends(daemon, how)
            assert app["run"] == number + 1 and app["state"] == state and app.get("last_words") == words, (app, text)
            assert text in events(daemon)[-3:], (text, events(daemon))
            # both are of one sample, taken after the end
            until(f"app_gone after {text}", lambda: (m := daemon.metric("app/cam/died")) and
                  m["time_us"] > app["until_us"] and m["value"] == (state != "ended"))


def test_an_exit_status_decides_over_the_goodbye_of_the_library():
    # 143: by SIGTERM, which it caught
    for status, state, words in ((3, "died", "exited with status 3"), (143, "ended", None), (139, "died", "exited with status 139")):
        with Daemon() as daemon, Script(daemon) as script:
            script.tell(["0 complete 0 infer 1000 -"])
            script.process.stdin.write(f"exit {status}\n")
            script.process.stdin.flush()
            app = ended(daemon, state)
            script.process.wait(20)
            assert app.get("last_words") == words, app
            assert f"exited with status {status}" in events(daemon), events(daemon)


def test_a_process_that_nobody_waits_for_has_ended_all_the_same():
    """Its parent lives on without waiting, so the kernel keeps its status to itself."""
    with Daemon() as daemon:
        actor = Actor(daemon)
        until("it is attached", lambda: (a := app_of(daemon)) and a["processes"])
        actor.do("runs infer 3 0")
        actor.process.stdin.close()  # nobody calls wait() or poll() meanwhile
        app = until("its end", lambda: (a := app_of(daemon)) and not a["processes"] and a, 10)
        assert app["state"] == "ended", app
        actor.process.wait(20)


def round_of(script, first, count):
    script.tell([f"0 complete 0 infer {10 * MS} {i}" for i in range(first, first + count)])


def came_back(daemon, script):
    """The library looks for the daemon when it has something to say."""
    def there():
        script.tell(["0 complete 0 other 1000 -"])
        app = app_of(daemon)
        return app and app["processes"]

    until("it is attached again", there, pause=0.2)


def test_a_run_goes_on_over_kill_9_of_the_daemon():
    with Daemon() as daemon, Script(daemon) as script:
        round_of(script, 0, 3000)
        arrived(daemon, {"infer": 3000})
        before = stage(daemon, span="lifetime")[0], app_of(daemon)
        recent = stage(daemon)[0]
        until("it is saved", lambda: (daemon.run_dir / "runs").stat().st_blocks > 16)
        wait_for_samples(daemon, 3)
        daemon.kill()
        daemon.start()
        came_back(daemon, script)
        row, total = stage(daemon, span="lifetime")
        for field in ("run", "count", "mean_ms", "p99_ms", "std_ms", "max_ms", "total_count"):
            assert row[field] == before[0][field], (field, row, before[0])
        assert stage(daemon)[0]["count"] == recent["count"]
        # a time of the wall clock, which another process reads at another moment
        assert abs(total["since_us"] - before[1]["since_us"]) < 10_000, (total, before)
        assert "missing" not in total and "covers_since_us" not in total, total
        wait_for_samples(daemon, 3)
        daemon.kill()
        round_of(script, 3000, 1000)  # nobody reads them meanwhile
        daemon.start()
        came_back(daemon, script)
        arrived(daemon, {"infer": 4000})
        round_of(script, 4000, 1000)
        arrived(daemon, {"infer": 5000})
        daemon.stop()  # and an ordinary restart
        daemon.start()
        came_back(daemon, script)
        app = app_of(daemon)
        assert app["sent"] == app["received"] + app["in_ring"] and app["dropped"] == 0 and app["run"] == 1, app
        report = daemon.call("GetReport", app="cam")
        assert re.search(r"^infer +10\.0 .* 5000$", report["text"], re.M), report["text"]
        assert "missing" not in report, report
        frames = daemon.call("GetFrames", app="cam", span="lifetime")["frames"][0]
        assert frames["total_count"] == 5000, frames


def wait_for_samples(daemon, count):
    first = until("a sample", lambda: daemon.metric("app/cam/processes"))["time_us"]
    until("samples", lambda: daemon.metric("app/cam/processes")["time_us"] > first + (count - 0.5) * 1e6)


def test_a_run_that_ended_without_a_daemon_is_reported():
    with Daemon() as daemon, Script(daemon) as script, Script(daemon, app="late") as late:
        for one, app in ((script, "cam"), (late, "late")):
            round_of(one, 0, 1000)
            arrived(daemon, {"infer": 1000}, app=app)
        wait_for_samples(daemon, 3)
        sent = app_of(daemon)["sent"]
        daemon.kill()
        script.process.kill()
        script.process.wait()
        daemon.start()
        app = app_of(daemon)
        assert (app["state"], app["run"], app["sent"], app["received"]) == ("ended", 1, sent, sent), app
        assert app["last_words"] == "ended while the daemon was away", app
        assert stage(daemon)[0]["count"] == 1000 and "ended while the daemon was away" in events(daemon), events(daemon)
        until("its report", lambda: " received; what was sent later is not known" in daemon.ctl("report", "cam").stdout)
        assert app_of(daemon, "late") is None  # it may still come back
        late.process.kill()
        late.process.wait()
        until("its end", lambda: app_of(daemon, "late"))
        assert not [a for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "app_gone"]
        with Script(daemon) as again:  # another process begins another run
            round_of(again, 0, 10)
            arrived(daemon, {"infer": 10})
            assert app_of(daemon)["run"] == 2 and stage(daemon, run=-1)[0]["count"] == 1000


def test_what_a_restart_cost_is_labelled():
    with Daemon() as daemon, Script(daemon) as script:
        round_of(script, 0, 100)
        arrived(daemon, {"infer": 100})
        wait_for_samples(daemon, 3)
        before = app_of(daemon)
        daemon.kill()
        (daemon.run_dir / "runs").unlink()
        daemon.start()
        came_back(daemon, script)
        app = app_of(daemon)
        assert app["covers_since_us"] > before["since_us"], (app, before)
        report = daemon.call("GetReport", app="cam")
        assert re.search(r"^Covers .* after a restart of the daemon$", report["text"], re.M), report["text"]
        round_of(script, 100, 10)
        arrived(daemon, {"infer": 10})
        assert "after a restart of the daemon" in daemon.ctl("stages", "cam").stdout


def test_the_report_of_a_run_survives_the_daemon():
    with Daemon() as daemon:
        one_run(daemon, 10, 100)
        first = until("its file", lambda: (daemon.run_dir / "reports" / "cam.txt").exists() and daemon.call("GetReport"))
        daemon.kill()
        daemon.start()
        assert daemon.call("ListApps")["apps"] == []
        for parameters in ({"app": "cam"}, {}):
            report = daemon.call("GetReport", **parameters)
            assert report["text"] == first["text"] and report["app"] == "cam", (report, first)
            assert report["run"] == 1 and report["state"] == "ended" and "last_words" not in report, report
            for field in ("since_us", "until_us"):
                assert abs(report[field] - first[field]) < 2e6, (field, report, first)
        assert daemon.ctl("report", "cam").stdout == first["text"]
        assert refused(lambda **more: daemon.call("GetReport", **more), "NotFound", app="nobody") == {
            "what": "app", "name": "nobody"}
        with Script(daemon) as script:
            round_of(script, 0, 10)
            arrived(daemon, {"infer": 10})
            assert daemon.call("GetReport", app="cam", run=-1)["text"] == first["text"]
            assert daemon.call("GetReport", app="cam")["text"] != first["text"]
        with Actor(daemon, "victim") as actor:
            until("it is attached", lambda: (a := app_of(daemon, "victim")) and a["processes"])
            actor.do("runs infer 3 0", "frame 8841", "open infer")
            until("the open stage", lambda: app_of(daemon, "victim")["processes"][0]["open"])
            actor.process.kill()
            until("its file", (daemon.run_dir / "reports" / "victim.txt").exists)
        daemon.kill()
        daemon.start()
        report = daemon.call("GetReport", app="victim")
        assert report["state"] == "killed" and report["last_words"] == "died in `infer`, frame 8841", report


def test_marks_survive_kill_9_of_the_daemon():
    with Daemon() as daemon:
        with Actor(daemon) as actor:
            until("it is attached", lambda: (a := app_of(daemon)) and a["processes"])
            actor.do("mark before", "alloc 20", "mark after")
            marks = until("both", lambda: (m := daemon.call("ListMarks")["marks"]) and len(m) == 2 and m)
            wait_for_samples(daemon, 3)
            daemon.kill()
            daemon.start()
            again = daemon.call("ListMarks")["marks"]
            # the new process measured the distance to the wall clock again
            moved = [a.pop("time_us") - m.pop("time_us") for a, m in zip(again, marks)]
            assert again == marks and all(abs(us) < 1000 for us in moved), (again, marks, moved)


def test_a_mark_of_nobody_s_app_survives_kill_9_at_once():
    with Daemon() as daemon:
        daemon.call("Mark", label="by hand")
        for _ in range(2):
            daemon.kill()
            daemon.start()
            assert [m["label"] for m in daemon.call("ListMarks")["marks"]] == ["by hand"]


def test_a_name_can_be_reserved():
    with Daemon("[app cam]\nuser = 65534\n[app free]\nuser = root\n[app *]\nuser = 0\n") as daemon:
        with Actor(daemon):
            refusal = until("the refusal", lambda: daemon.call("ListApps")["refused"])[0]
            assert refusal["app"] == "cam" and "reserved" in refusal["reason"] and refusal["uid"] == 0, refusal
            assert not app_of(daemon)
            with Actor(daemon, "free"):
                until("it is attached", lambda: app_of(daemon, "free"))


def test_wrong_rules_of_apps_are_errors():
    for lines, told in (("[app cam]\nuser = nobody-has-this-name", "user"), ("[app cam]\nuser = -1", "user"),
                        ("[app cam]\nuser =", "user"), ("[app cam]\nrestart_within = 25h", "restart_within"),
                        ("[app cam]\nrestart_within = soon", "restart_within"), ("[app a/b]\nuser = 0", "[app APP]"),
                        ("[app cam]\nuid = 0", "uid")):
        daemon = Daemon(lines + "\n")
        try:
            daemon.start(wait=False)
            assert daemon.process.wait(20) == 78
            assert "edgeprofd.conf:2" in daemon.log() and told in daemon.log(), (lines, daemon.log())
        finally:
            daemon.clean()


if __name__ == "__main__":
    run_tests(dict(globals()))
