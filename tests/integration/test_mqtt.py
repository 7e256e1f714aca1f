#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon and a real mosquitto: birth and will, summaries, alerts; a broker that is absent, comes
later, is killed and comes back. What the subscriber received is checked against the schemas."""
import json
import os
import pathlib
import re
import struct
import tempfile
import threading
import time

from harness import BUILD, DEMO, Daemon, board, program, run_tests_with_broker, until

import mosquitto
from mqtt_board import Board
from payload_schemas import check_against_schema, check_message
from test_apps import Actor, attached

DEVICE = "edge-1"


def config(broker, more=""):
    return (
        f"[sampling]\ninterval = 100ms\n[mqtt]\nhost = 127.0.0.1\nport = {broker.port}\ndevice_id = {DEVICE}\n"
        f"summary_interval = 1s\n[alert temperature]\nclear_for = 100ms\n{more}"
    )


def hot(daemon):
    """The alert that the test makes; the machine may have others."""
    return [a for a in daemon.call("ListAlerts")["alerts"] if a["rule"] == "temperature"]


def topics(seen):
    return [message[0] for message in seen]


def test_subscriber_sees_birth_info_summary_stages_and_they_match_their_schemas():
    with mosquitto.Broker() as broker, Daemon(config(broker)) as daemon:
        with program([DEMO, "--app", "demo", "--fps", "30"], daemon.env):
            wanted = {f"edgeprof/{DEVICE}/{t}" for t in ("status", "info", "summary", "stage/demo/infer")}
            seen = broker.subscribe("edgeprof/#", until=lambda seen: wanted <= set(topics(seen)))
            seen = {m[0]: m[1] for m in seen}
        names = {check_message(topic, payload, f"edgeprof/{DEVICE}")[0] for topic, payload in seen.items()}
        assert {"status", "info", "summary", "stage"} <= names, names
        for topic in seen:
            assert re.fullmatch(r"edgeprof/edge-1/[A-Za-z0-9_./:-]+", topic), topic
        until("the status tells it", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
        daemon.kill()
        last = broker.subscribe(f"edgeprof/{DEVICE}/status", until=lambda seen: any(m[1] in ("offline", b"offline") for m in seen))
        assert last
        daemon.start()


def test_every_payload_is_as_its_schema_says():
    with tempfile.TemporaryDirectory() as scratch, mosquitto.Broker() as broker:
        root, temp = board(scratch)
        with Daemon(config(broker, "[mqtt]\nhome_assistant = yes\n"), root=root) as daemon:
            with program([DEMO, "--app", "demo", "--fps", "30"], daemon.env):
                until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")

                def happen():
                    daemon.call("RecordNow", before_s=1, after_s=1)
                    temp.write_text("80000\n")

                def whole(seen):
                    if any("/alert/temperature/" in m[0] and m[1] for m in seen):
                        temp.write_text("50000\n")
                    kinds = {re.sub(f".*/{DEVICE}/|/[^/]*$", "", m[0]) for m in seen if m[1]}
                    cleared = any("/alert/temperature/" in m[0] and not m[1] for m in seen)
                    return cleared and {"event/recording", "event/alert"} <= {
                        m[0].split(DEVICE + "/")[-1] for m in seen} and "stage/demo" in kinds
                seen = broker.subscribe("#", until=whole, ready=happen, timeout=60)
                names = {check_message(topic, text, f"edgeprof/{DEVICE}")[0] for topic, text in seen}
                assert names - {"diagnosis"} == {"status", "info", "summary", "stage", "alert", "recording", "home_assistant"}, names


def test_the_rate_after_a_restart_is_of_now():
    topic = f"edgeprof/{DEVICE}/stage/cam/infer"
    with mosquitto.Broker() as broker, Daemon(config(broker)) as daemon, Actor(daemon) as actor:
        work = threading.Thread(target=actor.do, args=["runs infer 300 20000"])  # at most 50 a second
        attached(daemon, actor)
        work.start()
        until("100 of them", lambda: any(s.get("total_count", 0) > 100 for s in daemon.call("ListStages").get("stages", [])))
        daemon.kill()
        killed_us = time.monotonic() * 1e6

        def fresh(seen):
            return [m for m in (json.loads(payload) for _, payload in seen) if m["mono_us"] > killed_us]

        first = fresh(broker.subscribe(topic, until=fresh, ready=daemon.start))[0]
        assert first["total_count"] > 100 and 0 < first["rate_per_second"] < 90, first  # it was 148
        work.join()


def test_alert_is_retained_while_it_fires_and_cleared_after():
    with tempfile.TemporaryDirectory() as scratch, mosquitto.Broker() as broker:
        root, temp = board(scratch)
        with Daemon(config(broker), root=root) as daemon:
            until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
            temp.write_text("80000\n")
            state_topic = f"edgeprof/{DEVICE}/alert/temperature/_"
            seen = broker.subscribe(state_topic, until=lambda seen: seen)
            payload = json.loads(seen[0][1])
            check_against_schema("alert", payload)
            assert payload["state"] == "firing" and payload["severity"] == "warning" and payload["value"] == 80, payload
            def clear():
                temp.write_text("50000\n")
            seen = broker.subscribe(
                f"edgeprof/{DEVICE}/event/alert",
                until=lambda seen: any(json.loads(m[1])["state"] == "ok" for m in seen), ready=clear)
            for message in seen:
                check_against_schema("alert", json.loads(message[1]))
            # whoever comes now gets no retained alert: only the status that follows it
            until("the retained alert is cleared", lambda: state_topic not in topics(
                broker.subscribe("edgeprof/#", until=lambda seen: any(t.endswith("/summary") for t in topics(seen)))))


def test_retained_messages_follow_the_clock_when_it_is_synchronised():
    with tempfile.TemporaryDirectory() as folder, mosquitto.Broker() as broker:
        fifo = pathlib.Path(folder) / "fifo"
        os.mkfifo(fifo, 0o600)
        clock = os.open(fifo, os.O_RDWR)
        board = Board(broker.port)
        board.daemon.env.update(LD_PRELOAD=str(BUILD / "tests/integration/clock-shim.so"), CLOCK_SHIM=str(fifo),
                                ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")

        def years():
            seen = broker.subscribe("edgeprof/edge-1/#", until=lambda seen: {"alert", "info"} <= {t.split("/")[2] for t, _ in seen})
            return {t.split("/")[2]: p.split('"ts":"')[1][:4] for t, p in seen if t.split("/")[2] in ("alert", "info")}

        with board:
            board.connected()
            board.temp.write_text("80000\n")
            assert years() == {"alert": "1970", "info": "1970"}
            os.write(clock, struct.pack("=3q", 1, 0, 1))
            until("the years of now", lambda: set(years().values()) == {time.strftime("%Y", time.gmtime())})
        os.close(clock)


def test_broker_absent_then_there_then_killed_then_back_gets_every_alert():
    with tempfile.TemporaryDirectory() as scratch:
        root, temp = board(scratch)
        broker = mosquitto.Broker()
        try:
            with Daemon(config(broker), root=root) as daemon:
                until("the temperature", lambda: (daemon.metric("temperature/max") or {}).get("value") == 50)
                assert daemon.call("GetStatus")["broker"]["state"] in ("connecting", "away")
                temp.write_text("80000\n")
                until("it fires without a broker", lambda: hot(daemon))
                broker.start()
                seen = broker.subscribe(f"edgeprof/{DEVICE}/alert/#", until=lambda seen: seen, timeout=90)
                assert json.loads(seen[0][1])["state"] == "firing"
                broker.kill()
                until("the daemon knows", lambda: daemon.call("GetStatus")["broker"]["state"] != "connected")
                for _ in range(20):
                    assert daemon.call("GetStatus")["version"]
                temp.write_text("50000\n")
                until("cleared while away", lambda: not hot(daemon))
                temp.write_text("83000\n")
                until("fires again while away", lambda: hot(daemon))
                broker.start()
                seen = broker.subscribe(
                    f"edgeprof/{DEVICE}/alert/#", until=lambda seen: any(m[1] for m in seen), timeout=90)
                assert json.loads([m for m in seen if m[1]][-1][1])["severity"] == "critical"
                until("the status tells the truth", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
                assert daemon.call("GetStatus")["broker"]["connects"] == 2
        finally:
            broker.close()


def test_stalled_broker_stalls_nobody():
    with mosquitto.Broker() as broker, Daemon(config(broker)) as daemon:
        until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
        broker.stall()
        try:
            ticks = daemon.call("GetSelf")["history_samples"]
            until("samples go on", lambda: daemon.call("GetSelf")["history_samples"] > ticks + 200)
            assert daemon.call("GetStatus")["broker"]["queued"] <= 512
        finally:
            broker.resume()


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
