#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people do about alerts, with the real daemon and a real broker: acknowledge, silence, test the
chain; across restarts and kill -9."""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from harness import CTL, SOURCE, Daemon, VarlinkError, board, program, run_tests, until

import mosquitto

DEVICE = "edge-1"
STATE = f"edgeprof/{DEVICE}/alert/temperature/_"
EVENT = f"edgeprof/{DEVICE}/event/alert"


def config(broker=None):
    mqtt = f"[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\ndevice_id = {DEVICE}\n" if broker else ""
    return f"[sampling]\ninterval = 100ms\n{mqtt}[alert temperature]\nfor = 0s\nclear_for = 0s\n"


def heat(daemon, temp, celsius, state, severity=None):
    temp.write_text(f"{celsius * 1000}\n")
    until(f"{state} at {celsius}", lambda: is_in(daemon, state, severity))


def alert_of(daemon, rule="temperature"):
    return next((a for a in daemon.call("ListAlerts", all=True)["alerts"] if a["rule"] == rule), None)


def is_in(daemon, state, severity):
    alert = alert_of(daemon)
    return alert and alert["state"] == state and severity in (None, alert["severity"])


def events(daemon, kind):
    return [e for e in daemon.call("ListEvents", limit=200)["events"] if e["kind"] == kind]


def connected(daemon):
    until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")


def test_acknowledgement_lasts_over_a_kill_and_ends_when_it_gets_worse():
    with tempfile.TemporaryDirectory() as scratch:
        root, temp = board(scratch)
        with Daemon(config(), root=root) as daemon:
            until("watched", lambda: alert_of(daemon))
            assert daemon.ctl("alerts", "--check").returncode == 0
            assert daemon.ctl("ack", "temperature").returncode == 2  # nothing fires
            heat(daemon, temp, 77, "firing", "warning")
            check = daemon.ctl("alerts", "--check")
            assert check.returncode == 1 and check.stdout.startswith("EDGEPROF WARNING - 1 alert fires: temperature 77"), check
            assert "| firing=1;0;;0 critical=0;;0;0 pending=0" in check.stdout, check.stdout
            check = daemon.ctl("alerts", "--check=critical")
            assert check.returncode == 0 and check.stdout.startswith("EDGEPROF OK - no critical alert fires; 1 warning does"), check
            assert daemon.ctl("ack", "temperature:_", "-m", "fan is ordered").returncode == 0
            for end in (daemon.kill, daemon.stop):
                check = daemon.ctl("alerts", "--check")
                assert check.returncode == 0 and "acked=1" in check.stdout, check
                end()
                assert daemon.ctl("alerts", "--check").returncode == 69
                daemon.start()
                until("taken up", lambda: is_in(daemon, "firing", "warning"))
                alert = alert_of(daemon)
                assert alert["acked"] and alert["ack_note"] == "fan is ordered" and alert["acked_by_uid"] >= 0, alert
            heat(daemon, temp, 90, "firing", "critical")
            assert not alert_of(daemon)["acked"]
            assert daemon.ctl("alerts", "--check=critical").stdout.startswith("EDGEPROF CRITICAL")
            assert daemon.ctl("alerts", "--check", "nothing*").returncode == 2
            assert daemon.ctl("ack", "temperature").returncode == 0
            assert daemon.ctl("ack", "--remove", "temperature").returncode == 0
            assert daemon.ctl("alerts", "--check").returncode == 1
            heat(daemon, temp, 50, "ok")
            log = daemon.call("GetAlertLog")["transitions"]
            steps = [(t["from"], t["to"], t["severity"]) for t in log if t["rule"] == "temperature"]
            assert steps == [("ok", "firing", "warning"), ("firing", "firing", "critical"), ("firing", "ok", "critical")], steps
            recent = daemon.ctl("alerts", "--recent").stdout
            assert recent.count("\n") == 1 + len(log)
            for step in ("ok > firing (warning)", "firing (warning) > firing (critical)", "firing (critical) > ok"):
                assert step in re.sub("->|→", ">", recent), recent


def test_silenced_alert_is_told_nobody_until_the_silence_ends():
    with tempfile.TemporaryDirectory() as scratch, mosquitto.Broker() as broker:
        root, temp = board(scratch)
        with Daemon(config(broker), root=root) as daemon:
            connected(daemon)
            until("watched", lambda: alert_of(daemon))
            assert daemon.ctl("silence", "temp*", "6s", "-m", "works on the fan").returncode == 0
            ends = daemon.call("ListSilences")["silences"][0]["until_us"]
            heat(daemon, temp, 80, "firing")
            # the retained state is true although nobody was called
            seen = broker.subscribe(STATE, until=lambda seen: seen)
            state = json.loads(seen[-1][1])
            assert state["state"] == "firing" and state["silenced"] is True and state["silenced_until_us"] > 0, state
            assert daemon.ctl("alerts", "--check").returncode == 0
            silenced = events(daemon, "silenced")
            assert len(silenced) == 1 and silenced[0]["severity"] == "info", silenced
            assert events(daemon, "alert") == []
            daemon.kill()
            daemon.start()
            connected(daemon)
            until("taken up", lambda: is_in(daemon, "firing", None))
            assert alert_of(daemon)["silenced"]
            assert abs(daemon.call("ListSilences")["silences"][0]["until_us"] - ends) < 100000

            told = broker.subscribe(EVENT, until=lambda seen: seen)
            assert time.time() * 1e6 >= ends - 100000
            event = json.loads(told[0][1])
            assert event["state"] == "firing" and event["from"] == "ok" and event["silenced"] is False, event
            assert len(told) == 1
            assert daemon.ctl("silence").stdout.startswith("No silences.")
            texts = [e["text"] for e in events(daemon, "hold")]
            assert texts[0].startswith("silenced for 6 s by uid") and texts[0].endswith("works on the fan"), texts
            assert texts[-1] == "the silence is over", texts
            assert daemon.ctl("alerts", "--check").returncode == 1
            seen = broker.subscribe(STATE, until=lambda seen: json.loads(seen[-1][1])["silenced"] is False)
            assert seen


def test_silence_that_is_taken_back_tells_at_once():
    with tempfile.TemporaryDirectory() as scratch:
        root, temp = board(scratch)
        with Daemon(config(), root=root) as daemon:
            until("watched", lambda: alert_of(daemon))
            assert daemon.ctl("silence", "*:_", "1h").returncode == 0
            assert "*:_" in daemon.ctl("silence").stdout
            heat(daemon, temp, 80, "firing")
            assert daemon.ctl("silence", "--remove", "*").returncode == 2  # other globs
            assert daemon.ctl("silence", "--remove", "*:_").returncode == 0
            assert [e["subject"] for e in events(daemon, "alert")] == ["temperature"]
            for verb in (["silence", "nosuchrule", "2h"], ["silence", "no*such", "2h"], ["ack", "nosuchrule"]):
                refused = daemon.ctl(*verb)
                assert refused.returncode == 2 and f"no alert rule '{verb[1]}'" in refused.stderr, refused
                assert "edgeprofctl rules" in refused.stderr, refused
            assert daemon.ctl("silence").stdout.startswith("No silences.")
            for words in (["temperature", "0s"], ["temperature"], ["temperature", "x"], ["a/b", "1h"], ["", "1h"]):
                assert daemon.ctl("silence", *words).returncode == 64, words
            for method, parameters, bad in (
                ("AckAlert", {"rule": "*"}, "rule"), ("AckAlert", {"rule": "x", "note": "n" * 129}, "note"),
                ("AckAlert", {"rule": "x", "instance": ""}, "instance"), ("SilenceAlert", {"rule": "x"}, "seconds"),
                ("SilenceAlert", {"rule": "x", "seconds": 1e9}, "seconds"), ("TestAlert", {"severity": "loud"}, "severity"),
                ("SilenceAlert", {"rule": "x", "seconds": 5, "note": "a\nb"}, "note"), ("GetAlertLog", {"limit": 0}, "limit"),
                ("SilenceAlert", {"rule": "x", "seconds": 5, "instance": "a b"}, "instance"), ("TestAlert", {"seconds": 61}, "seconds"),
            ):
                try:
                    daemon.call(method, **parameters)
                    assert False, (method, parameters)
                except VarlinkError as error:
                    assert error.name.endswith("InvalidParameter") and error.parameters == {"parameter": bad}, (method, error.parameters)


def flap(daemon, temp, times):
    for _ in range(times):
        heat(daemon, temp, 90, "firing")
        heat(daemon, temp, 50, "ok")


def test_a_flapping_alert_is_notified_seldom_and_its_state_is_right_all_the_time():
    steps = "[alert temperature]\ncritical = 1000\n[alert temperature_limit]\nabove = 100\nclear = 100\nclear_for = 0s\n"
    with tempfile.TemporaryDirectory() as scratch, mosquitto.Broker() as broker:
        root, temp = board(scratch)
        with Daemon(config(broker) + steps, root=root) as daemon:
            connected(daemon)
            until("watched", lambda: alert_of(daemon))
            flap(daemon, temp, 6)  # six notifications are sent, six are not
            heat(daemon, temp, 90, "firing")
            newest = daemon.call("GetAlertLog")["transitions"][-1]
            assert newest["to"] == "firing" and newest["suppressed"] and "sent_time_us" not in newest, newest
            assert abs(newest["time_us"] - alert_of(daemon)["since_us"]) < 1000, newest
            state = json.loads(broker.subscribe(STATE, until=lambda seen: seen)[-1][1])
            assert state["state"] == "firing" and state["value"] == 90, state
            before = time.time()
            heat(daemon, temp, 110, "firing")  # another rule is not delayed by this one
            other = until("the other rule", lambda: next(
                (t for t in daemon.call("GetAlertLog")["transitions"] if t["rule"] == "temperature_limit"), None))
            assert not other["suppressed"] and other["time_us"] / 1e6 > before - 1, other
            heat(daemon, temp, 50, "ok")
            log = [t for t in daemon.call("GetAlertLog")["transitions"] if t["rule"] == "temperature"]
            assert len(log) == 7 and log[-1]["to"] == "ok" and log[-1]["suppressed"], log
            times = [t["time_us"] for t in json.loads(daemon.ctl("alerts", "--recent", "-j").stdout)["transitions"]]
            assert len(times) == 9 and times == sorted(times), times
            recent = daemon.ctl("alerts", "--recent", "temperature").stdout
            rows = [line for line in recent.splitlines() if line.split()[2] == "temperature"]
            assert len(rows) == 7 and "not sent" in rows[-1] and recent.count("not sent") == 1, recent
            # a subscriber that comes now finds no state: the topic was cleared at once
            seen = broker.subscribe(f"edgeprof/{DEVICE}/#", until=lambda seen: any(t.endswith("/summary") for t, _ in seen))
            assert STATE not in [topic for topic, payload in seen if payload], seen
            for end in (daemon.kill, daemon.stop):  # the limit is remembered, the state is right
                end()
                daemon.start()
                until("judged", lambda: alert_of(daemon))
                heat(daemon, temp, 90, "firing")
                heat(daemon, temp, 50, "ok")
            assert len([e for e in events(daemon, "alert") if e["subject"] == "temperature"]) == 6


def test_rules_are_listed_with_their_states():
    more = "[alert mine]\nmetric = temperature/*\nbelow = 5\nfor = 1h\n[alert lost]\nmetric = nothing/here\nabsent = yes\n" \
           "[alert grows]\nmetric = temperature/max\nslope_above = 5\n[alert leak]\nenabled = no\n"
    with tempfile.TemporaryDirectory() as scratch:
        root, temp = board(scratch)
        with Daemon(config() + more, root=root) as daemon:
            rules = lambda: {r["rule"]: r for r in daemon.call("ListRules")["rules"]}
            until("watched", lambda: rules()["temperature"]["instances"] == 1)
            temperature = rules()["temperature"]
            assert (temperature["state"], temperature["origin"], temperature["condition"]) == ("ok", "config", "above"), temperature
            assert (temperature["threshold"], temperature["critical"], temperature["severity"]) == (75, 82, "warning")
            assert rules()["cpu"]["origin"] == "built-in" and rules()["leak"]["state"] == "disabled"
            assert "threshold" not in rules()["lost"] and rules()["lost"]["instances"] == 1
            heat(daemon, temp, 80, "firing")
            assert rules()["temperature"]["state"] == "firing" and rules()["temperature"]["firing"] == 1
            assert daemon.ctl("silence", "temperature", "1h").returncode == 0
            assert rules()["temperature"]["state"] == "silenced" and rules()["temperature"]["silenced"] == 1
            temp.write_text("1000\n")
            until("pending", lambda: rules()["mine"]["state"] == "pending")
            text = daemon.ctl("rules").stdout
            for condition in ("above 75.0 °?C, critical 82.0 °?C", "grows by more than 5.0 °?C/min", "above 5, for 10 s"):
                assert re.search(condition, text), (condition, text)
            assert daemon.ctl("rules", "mine").stdout.count("\n") == 2
            assert daemon.ctl("rules", "memory/*").stdout.count("\n") >= 2  # by metric, too
            none = daemon.ctl("rules", "nosuch*")
            assert none.returncode == 2 and "nosuch*" in none.stderr, none
            lost = until("it is missed", lambda: next((a for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "lost" and a["state"] == "firing"), None), 30)
            assert "threshold" not in lost and lost["value"] is None, lost
            row = next(line for line in daemon.ctl("alerts").stdout.splitlines() if line.startswith("lost "))
            assert row.split()[3:5] == ["-", "-"], row


def test_chain_is_proved_with_the_broker_up_and_down_and_without_one():
    with mosquitto.Broker() as broker, Daemon(config(broker)) as daemon:
        connected(daemon)
        result = daemon.ctl("test-alert", "critical", "-m", "hello")
        assert result.returncode == 0, result
        assert result.stdout.count("delivered  acknowledged by the broker") == 2, result.stdout
        assert "The test alert is over:" in result.stdout and "subscribers" in result.stdout, result.stdout
        both = [e["text"] for e in events(daemon, "alert")]
        assert both == ["hello (test)", "the test is over (test)"], both
        try:
            daemon.call("TestAlert")
            assert False
        except VarlinkError as error:
            assert error.name.endswith("LimitReached"), error.name
        again = daemon.ctl("test-alert")
        assert again.returncode == 1 and "TestAlert: limit of 1 tests in 10 s" in again.stderr, again
        seen = []
        broker.stop()
        until("away", lambda: daemon.call("GetStatus")["broker"]["state"] == "away")
        until("the pause is over", lambda: try_test(daemon, seen))
        assert seen[0]["mqtt"] == "away" and seen[0]["mqtt_reason"] and seen[0]["state"] == "firing", seen
        until("it ended", lambda: alert_of(daemon, "test") is None)
        until("the pause is over", lambda: time.monotonic() >= seen[1] + 10.1)
        assert daemon.ctl("test-alert").returncode == 1
    with Daemon(config()) as daemon:
        reply = daemon.call("TestAlert", seconds=1)
        assert reply["mqtt"] == "off" and reply["journal"] == "off" and reply["state"] == "firing", reply
        assert alert_of(daemon, "test")["test"] is True
        assert daemon.ctl("alerts", "--check").returncode != 1
        until("it ended", lambda: alert_of(daemon, "test") is None)


def test_events_are_followed_over_a_restart():
    with tempfile.TemporaryDirectory() as scratch:
        root, temp = board(scratch)
        with Daemon(config(), root=root) as daemon:
            until("watched", lambda: alert_of(daemon))
            command = [str(CTL), "events", "-f", "-j", "-n", "1", "--kind", "alert"]
            with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
                child = subprocess.Popen(command, env=daemon.env, stdout=out, stderr=err)
                lines = lambda: [event for line in read(out) for event in json.loads(line)["events"]]
                heat(daemon, temp, 80, "firing")
                until("the first", lambda: len(lines()) == 1)
                daemon.kill()
                until("it is missed", lambda: "waiting for it to come back" in "".join(read(err)))
                daemon.start()
                until("it is back", lambda: "the daemon is back" in "".join(read(err)))
                heat(daemon, temp, 50, "ok")
                until("the second", lambda: len(lines()) == 2)
                assert [e["kind"] for e in lines()] == ["alert"] * 2, lines()
                child.send_signal(signal.SIGINT)
                child.wait(30)
            level = daemon.ctl("events", "--level", "warning", "temp*").stdout
            assert level.count("\n") == 1 and "THERMAL WARNING" in level, level


def test_followers_end_when_their_output_is_closed():
    with Daemon() as daemon:
        log = daemon.dir / "app.log"
        log.write_text("infer: 1 ms\n")
        watch = ["watch", "--interval", "1min"]
        for words in (["events", "-f"], ["events", "-f", "-j"], watch, [*watch, "-j"],
                      ["tail", str(log), "--pattern", "infer: {ms}", "--from-start", "--dry-run"]):
            with program([CTL, *words], daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
                assert child.stdout.readline(), words
                child.stdout.close()
                assert child.wait(20) == 0, (words, child.stderr.read())
        with program([CTL, "events", "-f"], daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout.readline()
            daemon.kill()
            assert b"waiting for it to come back" in child.stderr.readline()
            child.stdout.close()
            assert child.wait(20) == 0
        daemon.start()


def test_catalog_is_taken_by_the_journal():
    """journalctl compiles it and finds every MESSAGE_ID of the code."""
    if not shutil.which("journalctl"):
        return "no journalctl"
    wanted = set(re.findall(r'"([0-9a-f]{32})"', (SOURCE / "daemon/publish/journal.c").read_text()))
    with tempfile.TemporaryDirectory() as root:
        for folder in ("usr/lib/systemd/catalog", "var/lib/systemd/catalog"):
            (pathlib.Path(root) / folder).mkdir(parents=True)
        shutil.copy(SOURCE / "systemd/edgeprofd.catalog", pathlib.Path(root) / "usr/lib/systemd/catalog")
        subprocess.run(["journalctl", f"--root={root}", "--update-catalog"], check=True)
        listed = subprocess.run(["journalctl", f"--root={root}", "--list-catalog"], check=True, capture_output=True, text=True)
        assert {line.split()[0] for line in listed.stdout.splitlines()} == wanted, listed.stdout


def read(file):
    file.seek(0)
    return file.readlines()


def try_test(daemon, seen):
    try:
        seen[:] = [daemon.call("TestAlert", seconds=1), time.monotonic()]
        return True
    except VarlinkError:
        return False


if __name__ == "__main__":
    run_tests(globals())
