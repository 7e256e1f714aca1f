#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the booted tree after inside.py: does all that edgeprofd can do work in the sandbox of its
unit, as its user and with its drop-ins, does it outlive what can happen to a service, and is what hangs
noticed? The functions build on each other."""
import contextlib
import os
import pathlib
import pwd
import re
import signal
import subprocess
import time

from service import (
    RUN_DIR, SERVICE, SOCKET, VarlinkError, add_users, answers_again, call, configuration, count, ctl, dropin, journal,
    messages, metric, pid, process_status, said, shell, show, source, systemctl, unit_setting, until,
)
from harness import program, run_tests  # service knows where it is
import mosquitto  # and this

HERE = pathlib.Path("/edgeprof-tests")
HANG = pathlib.Path("/run/edgeprof-hang")  # preload.c
BOOT_ID = pathlib.Path("/run/edgeprof-boot-id")
STATE = pathlib.Path("/var/lib/edgeprofd")
BOARD = HERE / "board"
FIRING = "3340108b5e98413b831101baa2d42aad"
CAP_PERFMON = 38
PASSWORD = "open sesame"
C_USER, PYTHON_USER, STATSD_USER = ({"user": name, "group": name, "extra_groups": []} for name in (
    "visitor", "keeper", "sender"))
ENVIRONMENT = {"PATH": os.environ["PATH"]}
PYTHON_APP = """
import edgeprof, time
edgeprof.connect("py")
while True:
    with edgeprof.frame(), edgeprof.stage("look"):
        time.sleep(0.02)
"""
QUICK = "[sampling]\ninterval = 200ms\n"
PERSIST = "[history]\npersist = yes\n"
STATSD = "[statsd]\nenabled = yes\n"
RULE = "[alert tight]\nmetric = memory/used\nabove = 1\nfor = 0\nseverity = warning\n"
MQTT = """[mqtt]
host = localhost
port = {port}
device_id = board
summary_interval = 1s
username = device-7
password_file = /run/credentials/edgeprofd.service/mqtt-password
"""


def app(name):
    return next((row for row in call("ListApps")["apps"] if row["name"] == name), None)


def frames(name):
    try:
        return sum(row["total_count"] for row in call("ListStages")["stages"] if row["app"] == name)
    except VarlinkError:
        return 0


def alert(rule):
    return next((row for row in call("ListAlerts")["alerts"] if row["rule"] == rule), None)


def start_afresh():
    systemctl("stop", SERVICE, SOCKET, check=False)
    systemctl("reset-failed", SERVICE, SOCKET, check=False)
    systemctl("start", SERVICE)


@contextlib.contextmanager
def three_apps():
    """Of three users: with the C library, with the Python module, and by datagrams."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(program(["demo-pipeline", "--app", "camera", "--fps", "60"], ENVIRONMENT, **C_USER))
        stack.enter_context(program(["python3", "-c", PYTHON_APP], ENVIRONMENT, **PYTHON_USER))
        loop = "while sleep 0.05; do edgeprofctl emit --app sh step 5ms; done"
        stack.enter_context(program(["sh", "-c", loop], ENVIRONMENT, stderr=subprocess.DEVNULL, **STATSD_USER))
        for name in ("camera", "py", "sh"):
            until(f"{name} is counted", lambda: frames(name) > 5)
        yield


@contextlib.contextmanager
def everything_on():
    """A broker that wants a password, which is a credential by the drop-in, and all that can be switched on."""
    secret, known = pathlib.Path("/etc/edgeprofd/mqtt-password"), pathlib.Path("/run/broker-users")
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o600)
    shell("mosquitto_passwd", "-b", "-c", known, "device-7", PASSWORD)
    with mosquitto.Broker(access=f"allow_anonymous false\npassword_file {known}") as broker:
        with configuration(QUICK + PERSIST + STATSD + RULE + MQTT.format(port=broker.port)), dropin("mqtt-password.conf"):
            yield broker
    secret.unlink()


def test_the_users_are_there():
    add_users("visitor", "keeper", "sender")
    start_afresh()


def test_a_client_that_starts_a_misconfigured_service_learns_why():
    systemctl("stop", SERVICE)
    systemctl("reset-failed", SERVICE)
    with configuration("[sampling]\nintervall = 1s\n"):
        for _ in range(2):  # a further one, too
            refused = ctl("status")
            assert refused.returncode == 69, refused
            assert "90-test.conf:2: [sampling] intervall = 1s: unknown key" in refused.stderr and "--check-config" in refused.stderr, refused
        other = ctl("status", **C_USER)  # the file may not be readable for others
        assert other.returncode == 69 and "--check-config" in other.stderr, other
        assert "intervall" not in other.stderr, other
        until("it has ended", lambda: show("ActiveState") == "failed")
        assert show("ExecMainStatus") == "78" and show("ActiveState", SOCKET) == "active"
        starts = sum("90-test.conf:2" in text for text in messages())
        time.sleep(0.5)  # nothing shall happen in this time
        assert sum("90-test.conf:2" in text for text in messages()) == starts, "it is started again and again"
    assert ctl("status").returncode == 0, "the mended service is started by the next client"


def test_all_features_work_in_the_sandbox():
    with everything_on() as broker, three_apps():
        uids = {row["name"]: row["uid"] for row in call("ListApps")["apps"]}
        assert uids == {name: pwd.getpwnam(user["user"]).pw_uid for name, user in (
            ("camera", C_USER), ("py", PYTHON_USER), ("sh", STATSD_USER))}, uids
        heard = shell("mosquitto_sub", "-h", "127.0.0.1", "-p", broker.port, "-u", "device-7", "-P", PASSWORD,
                      "-t", "edgeprof/board/#", "-F", "%t %p", "-C", "8", "-W", "30", check=False)
        assert "edgeprof/board/" in heard.stdout, heard
        assert call("GetStatus")["broker"]["state"] == "connected"
        assert not any(PASSWORD in text for text in messages()), "the journal must not know it"
        session = ctl("session", "start", "trial", "camera", "--frames=30", "--warmup", "1")
        assert session.returncode == 0, session
        recording = ctl("record", "now", "look", "1s", "0s")
        assert recording.returncode == 0, recording
        report = ctl("report", "camera")
        assert report.returncode == 0 and "infer" in report.stdout, report
        assert ctl("mark", "here").returncode == 0
        assert ctl("diagnose", "camera").returncode in (0, 1, 2)
        assert call("GetSelf")["history_persist_state"] == "ok", call("GetSelf")
    until("the reports of apps that ended", lambda: {"camera.txt", "py.txt"} <= {
        file.name for file in (RUN_DIR / "reports").iterdir()})
    until("its session", lambda: list((STATE / "sessions").glob("*trial*")))
    user = pwd.getpwnam("edgeprof").pw_uid
    for name in ("history", "recordings", "sessions"):
        assert (STATE / name).stat().st_uid == user, name
    assert list((STATE / "recordings").iterdir())


@contextlib.contextmanager
def another_boot():
    """The run directory is empty but for the service manager's socket, and for the service the boot has another name."""
    for file in RUN_DIR.iterdir():
        if file.is_file():
            file.unlink()
    BOOT_ID.write_text("11111111-2222-3333-4444-555555555555\n")
    with unit_setting(f"[Service]\nEnvironment=LD_PRELOAD={HERE}/preload.so\n"):
        yield
        BOOT_ID.unlink()


def boot_seq():
    return call("GetStatus").get("boot_seq")


def test_what_is_on_disk_outlives_a_boot():
    with configuration(QUICK + PERSIST):
        systemctl("restart", SERVICE)
        assert until("the archive was read", boot_seq) == 1
        assert ctl("mark", "before").returncode == 0
        systemctl("stop", SERVICE)
        with another_boot():
            assert until("the archive was read", boot_seq) == 2
            until("the mark of before", lambda: any(row["text"] == "before" for row in call("ListEvents")["events"]))
            assert any(row["name"] == "trial" for row in call("ListSessions")["sessions"])
    systemctl("restart", SERVICE)


def test_alerts_and_apps_outlive_a_kill_and_a_restart():
    with configuration(QUICK + STATSD + RULE):
        systemctl("restart", SERVICE)
        with three_apps():
            until("it fires", lambda: (alert("tight") or {}).get("state") == "firing")
            assert ctl("ack", "tight", "-m", "known").returncode == 0
            before, told = alert("tight"), len(journal(f"MESSAGE_ID={FIRING}", "EDGEPROF_RULE=tight"))
            for end in (lambda: os.kill(pid(), signal.SIGKILL), lambda: systemctl("restart", SERVICE)):
                old, counted = pid(), {name: frames(name) for name in ("camera", "py", "sh")}
                end()
                answers_again(old)
                after = until("it still fires", lambda: alert("tight"))
                for key in ("state", "since_us", "acked", "ack_note", "acked_us"):
                    same = after[key] == before[key] or key.endswith("_us") and abs(after[key] - before[key]) < 10_000
                    assert same, (key, before, after)
                for name, events in counted.items():
                    until(f"{name} is back and goes on", lambda: frames(name) > events + 5)
                for name in ("camera", "py"):
                    row = app(name)
                    assert row["run"] == 1 or row["restarts"] == 0, row
                    assert row["sent"] - row["received"] - row["dropped"] - row["in_ring"] in range(-64, 65), row
            assert len(journal(f"MESSAGE_ID={FIRING}", "EDGEPROF_RULE=tight")) == told, "it fired again"
    systemctl("restart", SERVICE)


def test_the_catalog_explains_whatever_the_daemon_says():
    shell("journalctl", "--update-catalog")
    listed = shell("journalctl", "--list-catalog").stdout
    kinds = {entry["MESSAGE_ID"] for entry in journal() if "EDGEPROF_SUBJECT" in entry or "EDGEPROF_RULE" in entry}
    assert len(kinds) >= 5 and all(kind in listed for kind in kinds), (kinds, listed)
    text = shell("journalctl", "-x", "--no-pager", "-u", SERVICE).stdout
    assert not re.search(r"@EDGEPROF_[A-Z]+@", text), re.search(r".*@EDGEPROF_[A-Z]+@.*", text).group()


def migrations():
    """The metric once it has a number, or a reason why it has none."""
    row = metric("process/busy/migrations") or {}
    return row if row.get("value") is not None or row.get("reason") not in (
        None, "not looked for yet", "needs two samples") else None


def test_the_drop_in_for_counters_is_one_capability():
    with configuration(QUICK + "[process busy]\nmatch = sh\n"), program(["sh", "-c", "while :; do :; done"], None, **C_USER):
        systemctl("restart", SERVICE)
        refused = until("a reason", migrations)
        assert "CAP_PERFMON" in refused["reason"], refused
        with dropin("perf-counters.conf"):
            assert int(process_status()["CapEff"], 16) == int(process_status()["CapBnd"], 16) == 1 << CAP_PERFMON
            counted = until("a number or a reason", migrations)
            assert counted["value"] is not None, counted


def test_the_drop_in_for_a_pi_is_one_device():
    """What is bound here is a device whose driver knows no firmware: it can be opened, and that is all."""
    if not pathlib.Path("/dev/vcio").exists():
        return "no /dev/vcio was bound into this container"
    assert source("pi")["reason"].startswith("no /dev/vcio"), source("pi")
    with dropin("raspberry-pi.conf"):
        pi = until("the source was tried", lambda: source("pi"))
        assert not pi["reason"].startswith("no /dev/vcio") and "denied" not in pi["reason"] and "permitted" not in pi["reason"], pi
        print("  with:", pi["state"], pi["reason"])
        group = shell("getent", "group", "video").stdout.split(":")[2]
        assert group in process_status()["Groups"].split()
    return None


@contextlib.contextmanager
def hanging(where):
    """From here on, where names it; over when the service's process is over or the block is left."""
    part = HANG.with_suffix(".part")
    part.write_text(where)
    part.rename(HANG)
    try:
        yield
    finally:
        HANG.unlink(missing_ok=True)


def bitten(where):
    old, before = pid(), count("Watchdog timeout")
    with hanging(where):
        until("the watchdog ends it", lambda: pid() != old)
    answers_again(old)
    until("that was the watchdog", lambda: said("Watchdog timeout", before))


def test_what_hangs_in_the_daemon():
    for name, text in {"type": "soc", "temp": "45000"}.items():
        (BOARD / "sys/class/thermal/thermal_zone0").mkdir(parents=True, exist_ok=True)
        (BOARD / "sys/class/thermal/thermal_zone0" / name).write_text(text + "\n")
    (BOARD / "proc").mkdir()
    (BOARD / "proc/loadavg").write_text("0.10 0.20 0.30 1/100 4242\n")
    setting = f"""[Service]
WatchdogSec=2s
RestartSec=100ms
Environment=LD_PRELOAD={HERE}/preload.so
ExecStart=
ExecStart=/usr/sbin/edgeprofd --root {BOARD}
"""
    with configuration(QUICK), unit_setting(setting):
        old = pid()
        until("the zone is read", lambda: (metric("temperature/soc") or {}).get("value") == 45)
        with hanging("thermal_zone0/temp"):
            until("the source is late", lambda: source("thermal")["state"] == "error")
            fed = int(show("WatchdogTimestampMonotonic"))
            until("and the watchdog is fed for longer than its time",
                  lambda: int(show("WatchdogTimestampMonotonic")) > fed + 3_000_000)
            assert source("load")["state"] == "ok" and pid() == old, "one source took all others along"
        until("it is fine again", lambda: source("thermal")["state"] == "ok")
        assert pid() == old
        bitten("/loadavg")  # a sampler that never comes back
        bitten("clock")  # the loop itself
        until("all is well", lambda: source("load")["state"] == "ok")


def test_nothing_was_wrong_but_what_the_tests_did():
    systemctl("stop", SOCKET, SERVICE)
    assert show("Result") == "success"
    crashes = [text for text in messages() if "status=11" in text or "core-dump" in text]
    assert not crashes, crashes


if __name__ == "__main__":
    run_tests({name: value for name, value in globals().items() if callable(value)})
