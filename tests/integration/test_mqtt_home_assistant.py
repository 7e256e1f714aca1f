#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Home Assistant's discovery with the real daemon and a real mosquitto: off by default; announced as
its documentation has it; every sensor reads a key that is really sent; births; taken back.

Home Assistant itself is neither in Debian nor in npm. What it accepts is from its source:
components/mqtt/schemas.py and abbreviations.py, components/sensor/const.py (units by class)."""
import contextlib
import json
import re
import signal
import subprocess
import tempfile

from harness import BUILD, DEMO, Daemon, board, program, run_tests_with_broker, until

import mosquitto
from payload_schemas import check_message
from test_mqtt import DEVICE, config

BASE = f"edgeprof/{DEVICE}"
TOPIC = f"homeassistant/device/edgeprof_{DEVICE}/config"
ACTOR = BUILD / "tests" / "integration" / "app-actor"
ON = "[mqtt]\nhome_assistant = yes\n"
UNITS = {
    "temperature": {"°C", "°F", "K"}, "frequency": {"Hz", "kHz", "MHz", "GHz"}, "power": {"W", "kW"},
    "data_size": {"B", "kB", "MB", "GB", "KiB", "MiB", "GiB"}, "energy": {"Wh", "kWh", "MWh"},
    "voltage": {"V", "mV"}, "duration": {"ms", "s", "min", "h", "d"},
}
ENDINGS = {"°C": "celsius", "%": "percent", "Hz": "hertz", "B": "bytes", "W": "milliwatts", "Wh": "millijoules",
           "V": "volts", "rpm": "rpm", "ms": "ms", "s": "s", "fps": "fps"}


def publish(broker, topic, text, *more):
    """more: "-s" = one message, "-l" = one a line."""
    subprocess.run(["mosquitto_pub", "-h", "127.0.0.1", "-p", str(broker.port), "-t", topic, *more],
                   input=text, text=True, check=True, timeout=60)


def discovered(broker, satisfied=lambda payload: True):
    """The retained announcement, valid, as soon as satisfied(payload)."""
    seen = broker.subscribe("homeassistant/#", timeout=90, until=lambda seen: any(
        m[0] == TOPIC and m[1] and satisfied(json.loads(m[1])) for m in seen))
    return check_message(*seen[-1], BASE)[1]


def shown(component, message):
    """What Home Assistant makes of the template with the message of the state topic."""
    found = re.search(r"value_json\['(\w+)'\](?: / (\d+))?", component["val_tpl"])
    assert found[1] in message, (component, sorted(message))
    value = message[found[1]]
    if "> 0" in component["val_tpl"]:
        value = 1 if value > 0 else 0
    return value / int(found[2]) if found[2] else value


def check_component(key, component, message):
    value = shown(component, message)
    if component["p"] == "binary_sensor":
        assert str(value) in (component["pl_on"], component["pl_off"]), (key, value)
        assert "stat_cla" not in component and "unit_of_meas" not in component, component
        return
    assert isinstance(value, (int, float)) and not isinstance(value, bool), (key, value)
    unit = component.get("unit_of_meas")
    if "dev_cla" in component:
        assert unit in UNITS[component["dev_cla"]], component
    assert component["stat_cla"] == ("total_increasing" if component.get("dev_cla") == "energy" else "measurement")
    if unit in ENDINGS:
        source = re.search(r"value_json\['(\w+)'\]", component["val_tpl"])[1]
        ending = ENDINGS[unit]
        assert source.endswith("_" + ending) or source.endswith("_" + {"milliwatts": "mw", "celsius": "c"}.get(
            ending, ending)), component


@contextlib.contextmanager
def started(more=ON, **options):
    with mosquitto.Broker(**options) as broker:
        with Daemon(config(broker, more)) as daemon:
            until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
            yield broker, daemon


def test_nothing_is_announced_unless_told_to():
    with started(more="") as (broker, daemon):
        seen = broker.subscribe("#", until=lambda seen: sum(m[0].endswith("/summary") for m in seen) >= 3)
        assert not [m for m in seen if m[0].startswith("homeassistant/")], seen
        assert "online" in [m[1] for m in seen], seen


def test_every_sensor_reads_what_is_really_sent():
    with started() as (broker, daemon), program([DEMO, "--app", "demo", "--fps", "30"], daemon.env):
        def complete(payload):
            return {"stage_demo_infer_p95_ms", "frame_demo_fps"} <= set(payload["cmps"])
        payload = discovered(broker, complete)
        assert payload["stat_t"] == BASE + "/summary" and payload["avty_t"] == BASE + "/status", payload
        wanted = {component.get("stat_t", payload["stat_t"]) for component in payload["cmps"].values()}
        unique = [component["uniq_id"] for component in payload["cmps"].values()]
        assert len(unique) == len(set(unique))
        assert all(c["exp_aft"] == 3 for c in payload["cmps"].values())
        latest = {}

        def all_there(seen):
            latest.update(seen[-1:])
            return wanted <= set(latest) and all(
                re.search(r"value_json\['(\w+)'\]", c["val_tpl"])[1] in latest[c.get("stat_t", payload["stat_t"])]
                for c in payload["cmps"].values())
        broker.subscribe(BASE + "/#", until=all_there)
        messages = {topic: check_message(topic, latest[topic], BASE)[1] for topic in wanted}
        for key, component in payload["cmps"].items():
            check_component(key, component, messages[component.get("stat_t", payload["stat_t"])])
        assert {"cpu_utilization_percent", "memory_available_bytes", "alerts_firing_count", "alert"} <= set(payload["cmps"])
        assert latest[payload["avty_t"]] == "online"


def test_a_board_has_its_classes_and_units():
    with tempfile.TemporaryDirectory() as scratch, mosquitto.Broker() as broker:
        root, _ = board(scratch)
        with Daemon(config(broker, ON), root=root):
            component = discovered(broker)["cmps"]["temperature_max_celsius"]
            assert component["dev_cla"] == "temperature" and component["unit_of_meas"] == "°C", component
            assert component["uniq_id"] == f"edgeprof_{DEVICE}_temperature_max_celsius"


def test_births_are_answered_once_however_many_come():
    with started() as (broker, daemon):
        discovered(broker)

        def births():
            for text in ("offline", "online\n", "", "o" * 3000, "{{ 7 * 7 }}"):
                publish(broker, "homeassistant/status", text or "x", "-s")
            publish(broker, "homeassistant/status", "x" * 2_000_000, "-s")  # the broker keeps it from us
            publish(broker, "homeassistant/status", "online\n" * 2000, "-l")
        seen = broker.subscribe(TOPIC, ready=births, until=lambda seen: len(seen) == 2)  # the retained, the answer
        assert seen[0][1] == seen[1][1]
        again = []

        def once():
            if not again:
                again.append(publish(broker, "homeassistant/status", "online", "-s"))
        seen = broker.subscribe(TOPIC, ready=once, until=lambda seen: len(seen) == 2)
        check_message(*seen[1], BASE)
        status = daemon.call("GetStatus")["broker"]
        assert status["connects"] == 1 and status["state"] == "connected", status


def test_switched_off_it_is_taken_back():
    for restart in (False, True):
        with started() as (broker, daemon):
            discovered(broker)

            def off():
                if restart:
                    daemon.stop()
                daemon.config_path.write_text(config(broker))
                if restart:
                    daemon.start()
                else:
                    daemon.process.send_signal(signal.SIGHUP)
            seen = broker.subscribe(TOPIC, ready=off, until=lambda seen: seen and not seen[-1][1])
            assert seen[0][1] and len(seen) == 2, seen
            seen = broker.subscribe("#", until=lambda seen: any(m[0].endswith("/summary") for m in seen))
            assert TOPIC not in [m[0] for m in seen]


def test_names_of_apps_break_nothing():
    names = ["a/b", "{{ 1 }}", "x'] }}", "a_b", "a.b", "ü\"\\", "+", "#", "$SYS"]
    with started() as (broker, daemon):
        with program([ACTOR, "cam'] #+/{{x}}"], daemon.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     text=True) as actor:
            for name in names:
                word = name.replace(" ", "_")
                for line in (f"runs {word} 3 10", f"gauge {word} 5"):
                    actor.stdin.write(line + "\n")
                    actor.stdin.flush()
                    assert actor.stdout.readline()
            payload = discovered(broker, lambda payload: any(key.startswith("gauge_cam") for key in payload["cmps"]))
            seen = broker.subscribe(BASE + "/#", until=lambda seen: any(m[0].endswith("/summary") for m in seen))
            for topic, text in seen:
                check_message(topic, text, BASE)
            for key, component in payload["cmps"].items():
                assert re.fullmatch(r"\w+", key, re.ASCII) and "{{" not in component["name"], (key, component)


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
