#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the booted tree, as root, as a unit of its own: is edgeprofd.service what its files
promise? The functions build on each other, in this order, as an administrator's day would."""
import grp
import json
import os
import pathlib
import pwd
import re
import signal
import socket
import subprocess

from service import (
    RUN_DIR, SERVICE, SOCKET, add_users, answers_again, call, configuration, count, ctl, journal, metric, pid,
    process_status, said, shell, show, systemctl, until,
)
from harness import program, run_tests  # service knows where it is

MEMORY_LIMIT = 64 << 20
FIRING = "3340108b5e98413b831101baa2d42aad"
OVER = "6fc1bc99924b4dae9d79666835330845"
HISTORY_KEPT = "restored the history recorded before the restart"
USER = {"user": "visitor", "group": "visitor", "extra_groups": []}
MEMBER = {"user": "keeper", "group": "keeper", "extra_groups": ["edgeprof"]}


def test_the_user_and_the_group_come_with_the_installation():
    add_users("visitor")
    add_users("keeper", groups=["edgeprof"])
    user = pwd.getpwnam("edgeprof")
    assert user.pw_uid != 0 and user.pw_shell.endswith("nologin"), user
    assert grp.getgrgid(user.pw_gid).gr_name == "edgeprof", user


def test_a_connection_starts_the_service():
    shell("mkdir", "-p", "/run/systemd/timesync")
    shell("touch", "/run/systemd/timesync/synchronized")
    systemctl("start", SOCKET)
    assert show("ActiveState") == "inactive", show("ActiveState")
    assert call("org.varlink.service.GetInfo")["product"], "no answer"
    until("the service is active", lambda: show("ActiveState") == "active")
    assert show("Type") == "notify" and show("NRestarts") == "0"


# covers G1.9
def test_a_quota_is_a_control_group_of_its_own():
    code = "import pathlib; print(pathlib.Path('/proc/self/cgroup').read_text())"
    done = ctl("exec", "-j", "--quota", "20%", "--", "python3", "-c", code)
    if done.returncode == 69:  # a container may have no cpu controller
        assert "cannot set a CPU quota" in done.stderr and "systemd-run" in done.stderr and done.stdout == "", done
        return "no cpu controller in this container"
    assert done.returncode == 0 and json.loads(done.stderr)["controls"]["quota_percent"] == 20, done
    group = re.search(r"/edgeprofctl-exec-\d+$", done.stdout, re.M)
    assert group and not list(pathlib.Path("/sys/fs/cgroup").glob(f"**{group.group()}")), done


def test_the_service_manager_knows_how_it_is():
    status = show("StatusText")
    assert re.fullmatch(r"\d+ of \d+ sources, \d+ metrics, socket /run/edgeprofd/io\.edgeprof", status), status
    assert show("WatchdogUSec") == "30s" and int(show("WatchdogTimestampMonotonic")) > 0


def test_it_runs_as_its_user_without_any_privilege():
    status = process_status()
    assert set(status["Uid"].split()) == {str(pwd.getpwnam("edgeprof").pw_uid)}, status["Uid"]
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, (name, status[name])
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status


def test_a_start_complains_about_nothing():
    complaints = [entry["MESSAGE"] for entry in journal("PRIORITY=0", "PRIORITY=1", "PRIORITY=2", "PRIORITY=3",
                                                        "PRIORITY=4")]
    assert not complaints, complaints


def test_the_sandbox_hides_no_sensor():
    until("a second sample", lambda: (metric("cpu/utilization") or {}).get("value") is not None)
    sources = {source["name"]: source for source in call("ListSources")["sources"]}
    wanted = {"cpu", "memory", "load", "process", "self", "collector"}
    if os.access("/proc/pressure/cpu", os.R_OK):
        wanted.add("pressure")
    if list(pathlib.Path("/sys/class/thermal").glob("thermal_zone*/temp")):
        wanted.add("thermal")
    if list(pathlib.Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_cur_freq")):
        wanted.add("cpufreq")
    for source in sources.values():
        print("  source", source["name"], source["state"], source.get("reason") or "")
    for name in wanted:
        assert sources[name]["state"] == "ok", sources[name]
    for source in sources.values():
        assert source["state"] == "ok" or source["reason"], source


def test_a_refused_adjtimex_is_made_up_for_by_timesyncds_file():
    assert call("GetStatus")["clock_synced"] is True
    assert show("NRestarts") == "0"


def test_it_stays_far_below_its_memory_limit():
    assert int(show("MemoryMax")) == MEMORY_LIMIT, show("MemoryMax")
    rss = int(process_status()["VmRSS"].split()[0]) << 10
    print(f"  RSS {rss / (1 << 20):.1f} MiB, {process_status()['Threads']} threads")
    assert rss < MEMORY_LIMIT / 2, rss


def test_the_kernel_knows_the_memory_limit():
    group = pathlib.Path("/sys/fs/cgroup" + show("ControlGroup"))
    if not (group / "memory.max").exists():
        return "this machine's memory controller is not in the unified hierarchy"
    assert int((group / "memory.max").read_text()) == MEMORY_LIMIT
    assert int((group / "memory.current").read_text()) < MEMORY_LIMIT
    return None


def test_an_app_of_an_ordinary_user_is_profiled():
    environment = {"PATH": os.environ["PATH"]}
    with program(["demo-pipeline", "--app", "camera", "--fps", "60"], environment, **USER) as demo:
        def seen():
            stages = [stage for stage in call("ListStages")["stages"] if stage["app"] == "camera"]
            return len(stages) > 2 and all(stage["total_count"] > 5 for stage in stages)

        until("its stages are counted", seen)
        app = next(app for app in call("ListApps")["apps"] if app["name"] == "camera")
        assert app["uid"] == pwd.getpwnam("visitor").pw_uid, app
        assert app["processes"][0]["pid"] == demo.pid and app["dropped"] == 0, app
        until("its memory is known", lambda: (metric("process/camera/rss") or {}).get("value"))
        def listed(who):
            return {row["pid"]: row for row in json.loads(ctl("-j", "ps", **who).stdout)["processes"]}

        assert listed(MEMBER)[demo.pid]["rss_bytes"] > 0
        assert pid() in listed(MEMBER) and pid() not in listed(USER), "another user's row"


def test_a_process_of_another_user_can_be_watched():
    with program(["sleep", "600"], None, **USER):
        with configuration("[process lazy]\nmatch = sleep\n"):
            systemctl("reload", SERVICE)
            value = until("its memory", lambda: (metric("process/lazy/rss") or {}).get("value"))
            assert value > 0, value
    systemctl("reload", SERVICE)


def test_everybody_may_ask_and_the_group_may_change():
    asked = ctl("status", **USER)
    assert asked.returncode == 0 and "edgeprof" in asked.stdout, asked
    refused = ctl("source", "disable", "load", **USER)
    assert refused.returncode == 77 and "group edgeprof" in refused.stderr, refused
    done = ctl("source", "disable", "load", **MEMBER)
    assert done.returncode == 0, done
    done = ctl("source", "enable", "load", **MEMBER)
    assert done.returncode == 0, done


def test_reload_takes_over_a_good_configuration_and_refuses_a_bad_one():
    before, old = count("configuration reloaded"), pid()
    with configuration("[sampling]\ninterval = 200ms\n"):
        systemctl("reload", SERVICE)
        until("it says so", lambda: said("configuration reloaded", before))
        until("it is active again", lambda: show("ActiveState") == "active")
    with configuration("[sampling]\ninterval = soon\n"):
        refused = shell("systemctl", "reload", SERVICE, check=False)
        assert refused.returncode == 1, refused
        until("it names the line", lambda: said("90-test.conf:2"))
        assert show("ActiveState") == "active"
        assert ctl("reload").returncode == 1  # the daemon asked itself refuses, too
        until("it says what it does", lambda: said("the previous configuration stays in effect"))
    assert call("org.varlink.service.GetInfo") and pid() == old
    systemctl("reload", SERVICE)


def test_an_alert_is_a_structured_entry_with_an_explanation():
    shell("journalctl", "--update-catalog")
    with configuration("[alert tight]\nmetric = memory/used\nabove = 1\nfor = 0\nseverity = warning\n"):
        systemctl("reload", SERVICE)
        found = until("the alert's entry", lambda: journal(f"MESSAGE_ID={FIRING}", "EDGEPROF_RULE=tight"))
        entry = found[-1]
        assert entry["EDGEPROF_METRIC"] == "memory/used" and entry["EDGEPROF_STATE"] == "firing", entry
        assert entry["EDGEPROF_SEVERITY"] == "warning" and entry["PRIORITY"] == "4", entry
        assert float(entry["EDGEPROF_VALUE"]) > float(entry["EDGEPROF_THRESHOLD"]) == 1, entry
        assert entry["_SYSTEMD_UNIT"] == SERVICE and entry["MESSAGE"], entry
        text = shell("journalctl", "-x", "--no-pager", f"MESSAGE_ID={FIRING}").stdout
        assert re.search(r"Subject: Alert tight is firing for \S", text), text
        assert "@EDGEPROF" not in text and "edgeprofctl alerts" in text, text
    systemctl("reload", SERVICE)
    entry = until("its end", lambda: journal(f"MESSAGE_ID={OVER}", "EDGEPROF_RULE=tight"))[-1]
    assert entry["EDGEPROF_STATE"] == "ok" and entry["EDGEPROF_FROM_STATE"] == "firing", entry
    text = shell("journalctl", "-x", "--no-pager", f"MESSAGE_ID={OVER}").stdout
    assert re.search(r"Subject: Alert tight is over for \S", text) and "@EDGEPROF" not in text, text


def test_a_silenced_alert_is_an_entry_that_calls_nobody():
    rule = "[alert hushed]\nmetric = memory/used\nabove = {}\nfor = 0\nseverity = critical\n"
    with configuration(rule.format(1 << 50)):
        systemctl("reload", SERVICE)
        assert ctl("silence", "hush*", "1h", "-m", "known").returncode == 0
    with configuration(rule.format(1)):
        systemctl("reload", SERVICE)
        entry = until("its entry", lambda: journal(f"MESSAGE_ID={FIRING}", "EDGEPROF_RULE=hushed"))[-1]
        assert entry["PRIORITY"] == "6" and entry["EDGEPROF_SILENCED"] == "1", entry
        assert ctl("alerts", "--check", "hushed").returncode == 0
        assert ctl("silence", "--remove", "hush*").returncode == 0
        entry = until("it is told", lambda: journal(f"MESSAGE_ID={FIRING}", "EDGEPROF_RULE=hushed", "PRIORITY=3"))[-1]
        assert "EDGEPROF_SILENCED" not in entry, entry
        assert ctl("alerts", "--check", "hushed").returncode == 1
    systemctl("reload", SERVICE)


def test_the_chain_to_the_journal_is_proved():
    result = ctl("test-alert", "info", "-m", "only a test")
    assert result.returncode == 0, result
    assert len(re.findall(r"journal +yes +accepted, with MESSAGE_ID", result.stdout)) == 2, result.stdout
    told = journal("EDGEPROF_TEST=1")
    assert [entry["MESSAGE_ID"] for entry in told] == [FIRING, OVER], told
    assert "only a test" in told[0]["MESSAGE"] and told[0]["PRIORITY"] == "5", told[0]


def newest(name):
    """The time of the newest row of the metric's history, and the number of rows."""
    times = call("GetHistory", glob=name)["series"][0]["time_us"]
    return times[-1], len(times)


def test_a_stopped_service_takes_its_events_socket_along_and_no_other():
    systemctl("stop", SERVICE)
    assert show("ActiveState") == "inactive" and show("ExecMainStatus") == "0"
    assert show("ActiveState", SOCKET) == "active"
    assert (RUN_DIR / "io.edgeprof").is_socket()
    assert not (RUN_DIR / "events").exists(), "apps that look for it would wait"
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        assert probe.connect_ex(str(RUN_DIR / "events")) != 0
    finally:
        probe.close()
    assert show("ActiveState") == "inactive", "looking for events must not start it"


def test_a_started_service_knows_what_was_before():
    kept, stopped_us = count(HISTORY_KEPT), int(show("InactiveEnterTimestampMonotonic"))
    begun = call("GetHistory", glob="memory/used")["series"][0]["time_us"][0]
    until("it says that history was kept", lambda: said(HISTORY_KEPT, kept))
    status = call("GetStatus")
    assert begun - (status["time_us"] - status["mono_us"]) < stopped_us, (begun, stopped_us)
    assert (RUN_DIR / "events").is_socket()


def test_a_killed_service_comes_back_with_its_history():
    kept, restarts, old = count(HISTORY_KEPT), int(show("NRestarts")), pid()
    until("two rows of history", lambda: newest("memory/used")[1] >= 2)
    last = newest("memory/used")[0]
    os.kill(old, signal.SIGKILL)
    answers_again(old)
    assert int(show("NRestarts")) == restarts + 1
    until("it says that history was kept", lambda: said(HISTORY_KEPT, kept))
    times = call("GetHistory", glob="memory/used")["series"][0]["time_us"]
    assert any(abs(time_us - last) < 1000 for time_us in times), (last, times[-10:])


def test_a_wrong_configuration_is_exit_status_78():
    systemctl("stop", SERVICE)
    systemctl("reset-failed", SERVICE)
    with configuration("[sampling]\nintervall = 1s\n"):
        assert systemctl("start", SERVICE, check=False).returncode != 0
        assert show("ExecMainStatus") == "78", show("ExecMainStatus")
        assert show("ActiveState") == "failed", "trying again does not mend a file"
        assert said("90-test.conf:2")
    systemctl("restart", SERVICE)
    assert show("ActiveState") == "active"
    assert call("org.varlink.service.GetInfo")["product"]


def test_enabling_takes_the_socket_along():
    systemctl("enable", SERVICE)
    for unit in (SERVICE, SOCKET):
        assert systemctl("is-enabled", unit).stdout.strip() == "enabled"
    systemctl("disable", SERVICE)
    assert systemctl("is-enabled", SOCKET, check=False).stdout.strip() == "disabled"


def test_the_end_of_the_socket_is_the_end_of_both():
    systemctl("stop", SOCKET, SERVICE)
    assert show("ActiveState") == "inactive" and show("Result") == "success"
    assert show("ActiveState", SOCKET) == "inactive"
    assert subprocess.run(["pidof", "edgeprofd"], stdout=subprocess.DEVNULL, check=False).returncode == 1


if __name__ == "__main__":
    run_tests({name: value for name, value in globals().items() if callable(value)})
