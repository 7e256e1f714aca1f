#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The alerts that are built in: nothing is told of what is fine, and each fires and clears when its
time has come. Hold times are shortened, limits and metrics are those that are shipped."""
import contextlib
import pathlib
import re
import shutil
import signal
import tempfile

from harness import SOURCE, Daemon, run_tests, until
import mosquitto
from test_apps import Actor
from test_stages import Writer

FIXTURES = SOURCE / "tests" / "fixtures" / "sysroot"
ZONE = "sys/devices/virtual/thermal/thermal_zone0/temp"
THROTTLED = "sys/devices/platform/soc/soc:firmware/get_throttled"
RULES = ("temperature", "temperature_limit", "throttled", "under_voltage", "memory", "cpu", "power", "leak",
         "process_memory", "stage_memory", "deadline_misses", "frame_misses", "fps_low", "app_hung", "app_gone",
         "source_stale", "events_dropped", "history_degraded", "broker_away")


def quick(*rules, more=""):
    """A configuration in which only these rules are on, and hold for a moment."""
    off = "".join(f"[alert {name}]\nenabled = no\n" for name in RULES if name not in rules)
    hold = {"app_gone": "0", "events_dropped": "0", "stage_memory": "0"}
    on = "".join(f"[alert {name}]\nfor = {hold.get(name, '300ms')}\nclear_for = 300ms\n" for name in rules)
    return f"[sampling]\ninterval = 100ms\n{off}{on}{more}"


@contextlib.contextmanager
def tree(name="board"):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-alerts."))
    try:
        shutil.copytree(FIXTURES / name, folder / "root", symlinks=True)
        yield folder / "root"
    finally:
        shutil.rmtree(folder)


def write(root, path, text):
    """In place: what the daemon has open sees it."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    with open(root / path, "w", encoding="ascii") as file:
        file.write(f"{text}\n")


def alerts(daemon):
    """What is not ok, by rule and instance."""
    return {(a["rule"], a["instance"]): a for a in daemon.call("ListAlerts")["alerts"]}


def firing(daemon, rule, instance="_"):
    alert = alerts(daemon).get((rule, instance))
    return alert if alert and alert["state"] == "firing" else None


def fires(daemon, rule, instance="_"):
    return until(f"{rule} fires", lambda: firing(daemon, rule, instance))


def clears(daemon, rule, instance="_"):
    until(f"{rule} clears", lambda: (rule, instance) not in alerts(daemon))


def told(daemon):
    return [e for e in daemon.call("ListEvents", limit=200)["events"] if e["kind"] == "alert"]


def ticks(daemon, count):
    source = next(s for s in daemon.call("ListSources")["sources"] if s["name"] == "self")
    return source["ticks"] >= count


# covers G2.13: no message at the start of what is fine, of what the machine has not, or of a broker
# that has been away for less than a minute
def test_a_healthy_start_is_silent():
    for name in ("board", "xavier-nx-jp5", "rk3588"):
        with tree(name) as root:
            config = "[sampling]\ninterval = 100ms\n[mqtt]\nhost = 127.0.0.1\nport = 1\n[process x]\nmatch = *\n"
            with Daemon(config, root=root) as daemon, Actor(daemon) as cam:
                cam.do("runs infer 20 1000", "frames 5 1000")
                until("some samples", lambda: ticks(daemon, 40))
                assert told(daemon) == [], told(daemon)
                noisy = [a for a in alerts(daemon).values() if a["state"] == "firing"]
                assert noisy == [], noisy
                have = {a["rule"] for a in daemon.call("ListAlerts", all=True)["alerts"]}
                assert have >= {"cpu", "memory", "leak", "source_stale", "events_dropped", "broker_away",
                                "deadline_misses", "app_hung", "app_gone"}, have


# covers G0.16, G2.13
def test_temperature_steps_and_its_limit():
    with tree() as root, Daemon(quick("temperature", "temperature_limit"), root=root) as daemon:
        write(root, ZONE, 76000)
        alert = fires(daemon, "temperature")
        assert alert["severity"] == "warning" and alert["text"] == "THERMAL WARNING: 76.0C (threshold: 75.0)", alert
        write(root, ZONE, 86000)
        assert fires(daemon, "temperature_limit")["severity"] == "critical"
        until("critical", lambda: firing(daemon, "temperature")["severity"] == "critical")
        write(root, ZONE, 73000)
        clears(daemon, "temperature_limit")
        assert firing(daemon, "temperature"), "73 is inside the hysteresis"
        write(root, ZONE, 71000)
        clears(daemon, "temperature")


def test_throttling_and_under_voltage_of_a_pi():
    with tree() as root:
        write(root, "proc/device-tree/compatible", "raspberrypi,4-model-b\0brcm,bcm2711")
        write(root, THROTTLED, "50000")  # has occurred: that is not now
        with Daemon(quick("throttled", "under_voltage"), root=root) as daemon:
            until("the word is read", lambda: (daemon.metric("throttle/under_voltage") or {}).get("value") is False
                  or (daemon.metric("throttle/under_voltage") or {}).get("value") == 0)
            assert alerts(daemon) == {}
            write(root, THROTTLED, "50005")
            assert fires(daemon, "under_voltage")["text"] == "supply voltage too low"
            assert fires(daemon, "throttled")["text"] == "hardware throttling active"
            write(root, THROTTLED, "50000")
            clears(daemon, "under_voltage")
            clears(daemon, "throttled")


# covers G2.13
def test_memory_and_cpu():
    with tree() as root, Daemon(quick("memory", "cpu"), root=root) as daemon:
        meminfo = (root / "proc/meminfo").read_text()
        total = int(meminfo.split("MemTotal:")[1].split()[0])
        lines = [f"MemAvailable: {total // 50} kB" if line.startswith("MemAvailable") else line
                 for line in meminfo.splitlines()]
        write(root, "proc/meminfo", "\n".join(lines))
        assert fires(daemon, "memory")["value"] > 95
        write(root, "proc/meminfo", meminfo)
        clears(daemon, "memory")
        user, idle = 3000, 90000

        def load(more_user, more_idle):
            nonlocal user, idle
            user, idle = user + more_user, idle + more_idle
            write(root, "proc/stat", f"cpu  {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 {user} 0 0 {idle} 0 0 0 0 0 0")

        def loaded():
            load(50, 1)
            return firing(daemon, "cpu")

        def idling():
            load(1, 50)
            return ("cpu", "_") not in alerts(daemon)

        assert until("cpu fires", loaded, pause=0.05)["value"] > 90
        until("cpu clears", idling, pause=0.05)


# covers G2.13: power only where the board states a budget
def test_power_over_the_budget_of_the_mode():
    current = "sys/devices/platform/c250000.i2c/i2c-7/7-0040/hwmon/hwmon0/curr1_input"
    with tree("xavier-nx-jp5") as root, Daemon(quick("power"), root=root) as daemon:
        before = (root / current).read_text().strip()
        until("a budget", lambda: isinstance(daemon.metric("budget/power") and
                                             daemon.metric("budget/power")["value"], (int, float)))
        assert alerts(daemon) == {}
        write(root, current, 40000)
        alert = fires(daemon, "power")
        assert alert["value"] > 100 and "of what the power mode allows" in alert["text"], alert
        write(root, current, before)
        clears(daemon, "power")


# covers G3.7
def test_a_leak_and_a_memory_limit():
    more = "[alert leak]\nover = 10s\n[process limited]\nmatch = *app-actor leaky\nmemory_limit = 4M\n"
    # a name of its own: other tests run app-actor at the same time
    with Daemon(quick("leak", "process_memory", more=more)) as daemon, Actor(daemon, "leaky") as app:
        def grown():
            app.do("alloc 1")
            return firing(daemon, "leak", "leaky")

        alert = until("leak fires", grown, pause=0.1)
        assert " grows by " in alert["text"] and "MiB per minute" in alert["text"], alert
        assert fires(daemon, "process_memory", "limited")["text"] == "limited exceeds its memory_limit"
        app.end()
        clears(daemon, "leak", "leaky")
        until("no process, so nobody is over the limit",
              lambda: daemon.metric("process/limited/over_limit")["value"] is None)


# covers G2.3
def test_a_stage_whose_run_takes_more_than_ten_mib():
    more = "[stage cam/model]\nrss_growth_limit = 64M\n"
    with Daemon(quick("stage_memory", more=more)) as daemon, Writer(daemon) as cam:
        # what a stage needs is allocated in its first execution
        cam.do("measure load", "measure model", "grow load 200", "grow load 5", "grow model 24", "grow model 24")
        until("it is measured", lambda: (daemon.metric("stage/cam/model/growth_over_limit") or {}).get("value") == 0)
        assert alerts(daemon) == {}
        cam.do("grow load 24")
        alert = fires(daemon, "stage_memory", "cam:load")
        assert re.fullmatch(r"High memory usage in load: 24\.\dMB \(limit 10\.0 MiB\)", alert["text"]), alert
        assert alert["metric"] == "stage/cam/load/growth_over_limit" and alert["threshold"] == 10 << 20, alert
        assert 24 << 20 <= alert["value"] < 26 << 20, alert  # also when the next interval had no execution
        clears(daemon, "stage_memory", "cam:load")
        assert [e["subject"] for e in told(daemon)] == ["stage_memory:cam:load"] * 2, told(daemon)


# covers G1.12
def test_missed_deadlines_and_a_low_frame_rate():
    more = "[stage cam/infer]\ndeadline = 2ms\n[frame cam]\ndeadline = 10ms\ntarget_fps = 200\n"
    with Daemon(quick("deadline_misses", "frame_misses", "fps_low", more=more)) as daemon, Actor(daemon) as cam:
        def slow(rule, instance):
            cam.do("runs infer 1 5000", "frames 1 20000")
            return firing(daemon, rule, instance)

        text = until("deadline_misses fires", lambda: slow("deadline_misses", "cam:infer"), pause=0)["text"]
        assert "of its executions missed the deadline" in text, text
        until("frame_misses fires", lambda: slow("frame_misses", "cam"), pause=0)
        assert until("fps_low fires", lambda: slow("fps_low", "cam"), pause=0)["value"] < 90

        def brisk(rule, instance):
            cam.do("runs infer 5 0", "frames 20 0")
            return (rule, instance) not in alerts(daemon)

        until("deadline_misses clears", lambda: brisk("deadline_misses", "cam:infer"), pause=0)
        until("frame_misses clears", lambda: brisk("frame_misses", "cam"), pause=0)
        # no frame at all is no frame rate
        until("fps_low of an app that stands still", lambda: (daemon.metric("frame/cam/target_percent")["value"]
                                                              or 100) < 50)
        fires(daemon, "fps_low", "cam")
        until("deadline_misses fires", lambda: slow("deadline_misses", "cam:infer"), pause=0)
        cam.end()
        # who has ended misses nothing
        clears(daemon, "fps_low", "cam")
        clears(daemon, "deadline_misses", "cam:infer")
        assert alerts(daemon) == {}, alerts(daemon)


def test_an_app_that_hangs_and_one_that_died():
    with Daemon(quick("app_hung", "app_gone") + "[app *]\nrestart_within = 0\n") as daemon:
        with Actor(daemon) as cam:
            cam.do("runs infer 40 1000", "open infer")
            text = fires(daemon, "app_hung", "cam")["text"]
            assert text == "cam hangs" or text.startswith("cam hangs; "), text  # with a diagnosis
            daemon.kill()
            daemon.start()
            until("some samples", lambda: ticks(daemon, 20))
            assert firing(daemon, "app_hung", "cam")["value"] is None, "it cannot attach: it hangs"
            cam.do("close")
            clears(daemon, "app_hung", "cam")
            cam.kill(signal.SIGKILL)
            alert = fires(daemon, "app_gone", "cam")
            assert alert["text"] == "cam died and has not been restarted" and alert["severity"] == "critical", alert
        with Actor(daemon) as cam:
            cam.do("runs infer 1 0")
            clears(daemon, "app_gone", "cam")
            cam.end()
        until("it has ended", lambda: daemon.metric("app/cam/processes")["value"] == 0)
        until("some samples more", lambda: ticks(daemon, 60))
        assert not firing(daemon, "app_gone", "cam"), "it ended as it should"


def test_a_restart_of_the_daemon_begins_and_ends_nothing():
    more = "[app *]\nrestart_within = 0\n"
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tree())
        write(root, "proc/device-tree/compatible", "raspberrypi,4-model-b\0brcm,bcm2711")
        write(root, THROTTLED, "50005")
        daemon = stack.enter_context(Daemon(quick("app_gone", "throttled") + more, root=root))
        eye = stack.enter_context(Actor(daemon, "eye"))
        eye.do("runs infer 1 0")
        fires(daemon, "throttled")
        with Actor(daemon) as cam:
            cam.do("runs infer 1 0")
            cam.kill(signal.SIGKILL)
            gone = fires(daemon, "app_gone", "cam")
        until("both are logged", lambda: len(told(daemon)) == 2)
        texts = lambda: [e["text"] for e in daemon.call("ListEvents", limit=1000)["events"] if e["kind"] in ("throttle", "app", "alert")]
        before = texts()
        for end in (daemon.kill, daemon.stop, daemon.kill):
            end()
            daemon.start()
            again = firing(daemon, "app_gone", "cam")
            # the offset of the wall clock is measured anew
            assert again and abs(again["since_us"] - gone["since_us"]) < 100_000 and again["value"] == 1, (again, gone)
            assert firing(daemon, "throttled"), "it is listed before its metric is read"
            def is_back():  # an app looks for a daemon once a second, when it has an event
                eye.do("runs infer 1 0")
                return (daemon.metric("app/eye/processes") or {}).get("value") == 1
            until("the other app is back", is_back)
            until("some samples", lambda: ticks(daemon, 10))
            assert firing(daemon, "app_gone", "cam") and firing(daemon, "throttled")
            assert texts() == before, texts()[len(before):]
        with Actor(daemon) as cam:
            cam.do("runs infer 1 0")
            clears(daemon, "app_gone", "cam")


def test_a_source_that_falls_silent():
    with tree() as root, Daemon(quick("source_stale"), root=root) as daemon:
        until("it is read", lambda: (daemon.metric("collector/load/stale") or {}).get("value") == 0)
        before = (root / "proc/loadavg").read_text()
        write(root, "proc/loadavg", "")
        assert fires(daemon, "source_stale", "load")["text"] == "the source load no longer delivers readings"
        write(root, "proc/loadavg", before)
        clears(daemon, "source_stale", "load")
        # what is switched off is not missed
        daemon.ctl("source", "disable", "load")
        until("null", lambda: daemon.metric("collector/load/stale")["value"] is None)
        assert alerts(daemon) == {}


def test_events_that_are_lost():
    with Daemon(quick("events_dropped")) as daemon, Actor(daemon) as cam:
        cam.do("runs infer 10 0")
        until("attached", lambda: daemon.metric("app/cam/processes"))
        daemon.process.send_signal(signal.SIGSTOP)
        cam.do("runs infer 60000 0")
        daemon.process.send_signal(signal.SIGCONT)
        assert "events of apps are lost" in fires(daemon, "events_dropped")["text"]
        clears(daemon, "events_dropped")
        # those of before are no news to the next daemon
        daemon.kill()
        daemon.start()
        until("attached again", lambda: cam.do("runs infer 1 0") and daemon.metric("app/cam/processes"))
        until("some samples", lambda: ticks(daemon, 20))
        assert len(told(daemon)) == 2, told(daemon)


def test_a_broker_that_is_away():
    try:
        broker = mosquitto.Broker()
    except mosquitto.Absent as reason:
        return str(reason)
    with broker:
        config = quick("broker_away", more=f"[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\n")
        with Daemon(config) as daemon:
            until("connected", lambda: (daemon.metric("self/broker_away") or {}).get("value") == 0)
            broker.kill()
            assert fires(daemon, "broker_away")["text"] == "the MQTT broker is unreachable"
            broker.start()
            clears(daemon, "broker_away")


def test_a_rule_is_off_by_its_name():
    with tree() as root:
        write(root, ZONE, 90000)
        config = "[sampling]\ninterval = 100ms\n[alert temperature]\nenabled = no\n"
        with Daemon(config, root=root) as daemon:
            fires(daemon, "temperature_limit")
            assert ("temperature", "_") not in alerts(daemon)


if __name__ == "__main__":
    run_tests(dict(globals()))
