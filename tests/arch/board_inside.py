#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs on the board that board.py boots, as root, once in each boot: does edgeprofd do there what it is for? The
functions of a boot build on each other, in this order; the second boot is asked for what the first has left."""
import contextlib
import functools
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(HERE / "tests/system"))
import service  # noqa: E402
from service import SERVICE, SOCKET, call, ctl, journal, messages, metric, pid, shell, show, systemctl  # noqa: E402
from features import ENVIRONMENT, PERSIST, PYTHON_APP, QUICK, RULE, alert, boot_seq, frames  # noqa: E402
from harness import program, run_tests  # noqa: E402
import mosquitto  # noqa: E402

LEFT = HERE / "first-boot.json"  # what the second boot has to find
until = functools.partial(service.until, patience=120)
VISITOR = {"user": "visitor", "group": "visitor", "extra_groups": []}
CONFIG = service.CONFIG_DIR / "board.conf"
MEMORY = "memory/used_percent"
ENDED = ("ended", "died", "killed")
LIVE = [["demo-pipeline", "--app", "camera", "--fps", "5"], ["python3", "-c", PYTHON_APP]]


def app(name):
    return next((row for row in call("ListApps", all=True)["apps"] if row["name"] == name), None)


def samples():
    """{boot: number of samples of MEMORY} of all there is."""
    counts = {}
    with contextlib.closing(service.Varlink(service.RUN_DIR / "io.edgeprof", 60.0)) as client:
        for chunk in client.stream("GetHistory", glob=MEMORY, from_us=0):
            for series in chunk["series"]:
                boot = series.get("boot_seq")
                counts[boot] = counts.get(boot, 0) + sum(series["count"])
    return counts


def check_account(name, slack=0):
    row = app(name)
    lost = row["sent"] - row["received"] - row["dropped"] - row["in_ring"]
    assert abs(lost) <= slack and row["invalid"] == 0 and row["sent"] > 0, row


def run_app(name, *command):
    """To its end, after which its account is exact."""
    subprocess.run(command, env=ENVIRONMENT, timeout=600, check=True, **VISITOR)
    until(f"{name} has ended", lambda: (app(name) or {}).get("state") in ENDED)
    check_account(name)
    return {row["stage"]: row for row in call("ListStages", app=name)["stages"]}, app(name)


def test_the_kernel_is_the_wanted_one():
    print("  ", platform.platform(), os.sysconf("SC_PAGESIZE"))
    assert platform.machine() == "aarch64"
    assert os.sysconf("SC_PAGESIZE") == int((HERE / "pages").read_text())
    assert pathlib.Path("/proc/1/comm").read_text() == "systemd\n"


def test_the_installed_service_runs():
    for unit in (SERVICE, SOCKET):
        assert systemctl("is-enabled", unit).stdout.strip() == "enabled", unit
        until(f"{unit} is active", lambda unit=unit: show("ActiveState", unit) == "active")
    assert call("GetStatus")["page_bytes"] == os.sysconf("SC_PAGESIZE")
    assert show("User") == "edgeprof" and show("NRestarts") == "0"
    for name in ("io.edgeprof", "events"):
        assert (service.RUN_DIR / name).is_socket(), list(service.RUN_DIR.iterdir())
    complaints = [entry["MESSAGE"] for entry in journal("-b", "-p", "warning")]
    assert not complaints, complaints
    until("a second sample", lambda: (metric("cpu/utilization") or {}).get("value") is not None)
    print("  ", "; ".join(messages()), *(f"\n   {row['name']}: {row['state']} {row.get('reason') or ''}"
                                        for row in call("ListSources")["sources"]))


def test_events_of_c_and_python_are_counted_exactly():
    shell("useradd", "visitor")
    stages, row = run_app("demo", "demo-pipeline", "--app", "demo", "--frames", "100", "--fps", "0")
    assert row["dropped"] > 0 or stages["infer"]["total_count"] == 100, (row, stages["infer"])
    where = shell("python3", "-c", "import edgeprof._fast as fast; print(fast.__file__)").stdout
    assert where.startswith("/usr/lib/python3/dist-packages/edgeprof/_fast."), where
    stages, row = run_app("hello", "python3", HERE / "client/examples/hello_stages.py", "100")
    assert row["dropped"] > 0 or stages["infer"]["total_count"] == 100, (row, stages["infer"])


def test_a_broker_hears_of_it():
    with mosquitto.Broker() as broker:
        CONFIG.parent.mkdir(parents=True, exist_ok=True)
        CONFIG.write_text(f"{QUICK}[mqtt]\nhost = localhost\nport = {broker.port}\n"
                          "summary_interval = 1s\ndevice_id = board\n")
        systemctl("reload", SERVICE)
        broker.subscribe("edgeprof/board/#", timeout=120,
                         until=lambda seen: any(topic.endswith("/summary") for topic, _ in seen))


def test_a_killed_daemon_is_back_and_knows_everything():
    CONFIG.write_text(QUICK + PERSIST + RULE)
    systemctl("restart", SERVICE)
    with program(LIVE[0], ENVIRONMENT, **VISITOR), program(LIVE[1], ENVIRONMENT, **VISITOR):
        until("apps are counted", lambda: frames("camera") > 5 and frames("py") > 5)
        until("it fires", lambda: (alert("tight") or {}).get("state") == "firing")
        assert ctl("ack", "tight", "-m", "known").returncode == 0
        old, counted, recorded = pid(), {name: frames(name) for name in ("camera", "py")}, sum(samples().values())
        os.kill(old, signal.SIGKILL)
        until("another process answers", lambda: pid() not in (0, old) and ctl("status").returncode == 0)
        assert alert("tight")["acked"] and alert("tight")["state"] == "firing", alert("tight")
        for name, events in counted.items():
            until(f"{name} goes on", lambda name=name, events=events: frames(name) > events + 5)
            check_account(name, slack=64)  # events go on between the looks
        assert sum(samples().values()) >= recorded - 1, (recorded, samples())
    assert show("NRestarts") == "1"
    until("both ended", lambda: all(app(name)["state"] in ENDED for name in counted))
    for name in counted:
        check_account(name)


def test_it_is_ready_for_a_reboot():
    assert until("the archive was read", boot_seq) == 1
    assert ctl("mark", "before the reboot").returncode == 0
    until("a minute of history", lambda: sum(samples().values()) > 200)
    LEFT.write_text(json.dumps({"samples": sum(samples().values()), "since_us": alert("tight")["since_us"]}))


def test_both_boots_are_known():
    left = json.loads(LEFT.read_text())
    assert until("the archive was read", boot_seq) == 2
    boots = call("ListBoots")["boots"]
    assert [(boot["boot_seq"], boot["end"]) for boot in boots] == [(1, "stopped"), (2, "running")], boots
    listed = ctl("history", "--boots")
    print(listed.stdout)
    events = call("ListEvents")["events"]
    assert any(row["text"] == "before the reboot" and row["boot_seq"] == 1 for row in events), events
    assert any(row["text"].startswith("reboot: boot 2") for row in events), events
    until("this boot has history", lambda: samples().get(2, 0) > 5)
    assert samples()[1] >= left["samples"], (left, samples())
    row = until("the alert is judged again", lambda: alert("tight"))
    assert row["state"] == "firing" and row["acked"] and row["ack_note"] == "known", row
    assert abs(row["since_us"] - left["since_us"]) < 1_000_000, (row, left)


EACH_BOOT = [test_the_kernel_is_the_wanted_one, test_the_installed_service_runs]
BOOTS = [[test_events_of_c_and_python_are_counted_exactly, test_a_broker_hears_of_it,
          test_a_killed_daemon_is_back_and_knows_everything, test_it_is_ready_for_a_reboot], [test_both_boots_are_known]]

if __name__ == "__main__":
    run_tests({test.__name__: test for test in [*EACH_BOOT, *BOOTS[LEFT.exists()]]})
