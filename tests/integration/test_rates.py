#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rates are of now: an app that fell silent, one that ended, and what queued while the daemon was down."""
import re
import threading

from harness import Daemon, VarlinkError, run_tests, until
from test_apps import Actor, app_of, attached


def frames_of(daemon):
    return next((f for f in daemon.call("GetFrames")["frames"] if f["app"] == "cam"), None)


def test_an_app_that_fell_silent_has_no_rate_in_any_view():
    with Daemon() as daemon, Actor(daemon) as actor:
        actor.do("runs infer 5 2000", "frames 60 20000")
        app = until("its rate", lambda: (a := app_of(daemon)) and a.get("fps") and a)
        assert app["state"] == "running" and "last_fps" not in app, app
        app = until("it is idle", lambda: (a := app_of(daemon))["state"] == "idle" and a)
        fps = app["last_fps"]
        assert 30 < fps < 52, app
        assert app["fps"] is None and app["idle_ms"] > 2000 and app["age_ms"] > 2000, app
        assert re.fullmatch(r"no event for \d+ s", app["fps_reason"]), app
        frames = frames_of(daemon)
        assert frames["fps"] is None and frames["last_fps"] == fps and "frame_time_ms" not in frames, frames
        assert frames["age_ms"] > 2000 and frames["frame_time_p95_ms"] > 15, frames
        assert daemon.call("GetStatus")["apps"][0]["fps"] is None
        metric = until("the metric", lambda: (m := daemon.metric("frame/cam/fps"))["reason"].startswith("no event") and m)
        assert metric["value"] is None and re.fullmatch(r"no event for \d+ s", metric["reason"]), metric
        rate = until("the stage's", lambda: (m := daemon.metric("stage/cam/infer/rate"))["value"] is None and m)
        assert re.fullmatch(r"no event for \d+ s", rate["reason"]), rate
        last = rf"last {fps:.1f} fps \d+ s ago"
        for words, pattern in ((("apps",), rf"^cam: {last}$"), (("apps",), r"^cam +idle +\d+ +\d+ +1 +- "),
                               (("status",), rf"^  cam +idle, {last}, 1 stage$"),
                               (("frames",), rf"^cam +- +- .*{last}$"), (("stages",), r"^PIPELINE .*: cam \(\d+ s ago\)$"),
                               (("watch", "--count", "1"), rf"^cam +- +- .*{last}$")):
            text = daemon.ctl(*words).stdout
            assert re.search(pattern, text, re.M), (words, pattern, text)
        actor.do("frames 60 20000")
        assert app_of(daemon)["fps"] > 0 and app_of(daemon)["state"] == "running"


def test_stages_become_metrics_at_the_interval_of_the_sensors():
    def steps(daemon):
        """Seconds between the rows of what the app has all the time."""
        try:
            series = daemon.call("GetHistory", glob="app/cam/processes")["series"]
        except VarlinkError:  # it is not there yet
            return []
        times = [t for s in series for t in s["time_us"]]
        return [(b - a) / 1e6 for a, b in zip(times, times[1:])]

    def source(daemon):
        return next(s for s in daemon.call("ListSources")["sources"] if s["name"] == "stages")

    with Daemon("[sampling]\ninterval = 3s\n") as daemon, Actor(daemon):
        until("three rows", lambda: len(steps(daemon)) >= 2)
        assert min(steps(daemon)) > 2 and source(daemon)["interval_ms"] == 3000, steps(daemon)
        daemon.config_path.write_text("[sampling]\ninterval = 100ms\n")
        before = len(steps(daemon))
        assert daemon.ctl("reload").returncode == 0 and source(daemon)["interval_ms"] == 100
        until("more rows", lambda: len(steps(daemon)) > before + 20)
        assert sorted(steps(daemon)[before + 2:])[5] < 0.5, steps(daemon)


def test_advice_does_not_wait_for_the_interval():
    with Daemon("[sampling]\ninterval = 1h\n[frame cam]\ndeadline = 5ms\n") as daemon, Actor(daemon) as actor:
        actor.do("frames 60 20000")
        until("it is judged", lambda: (app_of(daemon) or {}).get("advice", {}).get("level") in ("reduced", "minimal"))


def test_an_ended_app_leaves_the_live_views():
    with Daemon() as daemon:
        with Actor(daemon) as actor:
            actor.do("runs infer 50 2000", "frames 30 5000")
            until("its latency", lambda: daemon.metric("stage/cam/infer/mean_ms"))
        app = until("it ended", lambda: (a := app_of(daemon))["state"] == "ended" and a)
        assert app["fps"] is None and app["fps_reason"] == "app ended" and app["last_fps"] > 0, app
        until("it left", lambda: not app_of(daemon), 20)
        for method, member in (("ListApps", "apps"), ("GetStatus", "apps"), ("GetFrames", "frames"), ("ListStages", "stages")):
            assert daemon.call(method)[member] == [], method
            assert len(daemon.call(method, all=True)[member]) == 1, method
        assert daemon.call("GetFrames", app="cam")["frames"] and daemon.call("ListStages", app="cam")["stages"]
        apps = daemon.ctl("apps")
        assert apps.returncode == 2 and "--all" in apps.stderr, apps
        for verb in ("apps", "status", "frames", "stages"):
            assert "cam" in daemon.ctl(verb, "--all").stdout, verb
            assert "cam" not in daemon.ctl(verb).stdout, verb


def test_what_queued_while_the_daemon_was_down_is_no_rate():
    with Daemon() as daemon, Actor(daemon) as actor:
        rates, stop = [], threading.Event()
        work = threading.Thread(target=actor.do, args=["runs infer 450 20000"])
        attached(daemon, actor)
        work.start()
        until("its rate", lambda: (daemon.metric("stage/cam/infer/rate") or {}).get("value"))
        daemon.kill()
        stop.wait(4)
        daemon.start()
        with_rates = daemon.client(30)
        with_rates.send("Subscribe", {"glob": "**", "metrics": True, "interval_ms": 100}, more=True)
        while len(rates) < 3:
            rates += [m["value"] for m in with_rates.reply()["parameters"].get("metrics") or ()
                      if m["name"] == "stage/cam/infer/rate" and m["value"]]
        with_rates.close()
        assert max(rates) < 55, rates
        work.join()


if __name__ == "__main__":
    run_tests(dict(globals()))
