#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the operator of a fleet is told: configuration hash, uptime, how the last boot ended, what was missed; and the
examples of docs/fleet.md for the time of devices that have none."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import SOURCE, Daemon, board, run_tests_with_broker, until

import mosquitto
from payload_schemas import check_message

BASE = "edgeprof/edge-1"
# payload, time of reception, retained, expected: a live one, one that waited, a faster one, one of another boot
RECEIVED = [
    ({"boot_id": "a", "mono_us": 900}, 5000, True, None), ({"boot_id": "a", "mono_us": 1000}, 5000, False, 5000),
    ({"boot_id": "a", "mono_us": 500}, 9000, False, 4500), ({"boot_id": "a", "mono_us": 6000}, 9990, False, 9990),
    ({"boot_id": "a", "mono_us": 900}, 9999, True, 4890), ({"boot_id": "b", "mono_us": 10}, 20, False, 20),
    ({"boot_id": "b"}, 30, False, None),
]


def config(broker, more=""):
    return f"[mqtt]\nhost = 127.0.0.1:{broker.port}\ndevice_id = edge-1\nsummary_interval = 1s\n{more}"


def info(broker, wanted=lambda payload: True):
    def found(seen):
        return any(text and wanted(json.loads(text)) for _, text in seen)
    topic, text = broker.subscribe(f"{BASE}/info", until=found)[-1]
    return check_message(topic, text, BASE)[1]


def test_equal_configurations_have_equal_hashes_after_a_restart_and_a_reload():
    with mosquitto.Broker() as broker, Daemon(config(broker, "[sampling]\ninterval = 2s\n")) as daemon:
        first = info(broker)
        assert first["uptime_s"] >= 0 and first["boot_id"] and isinstance(first["clock_synchronized"], bool), first
        daemon.stop()
        daemon.config_path.write_text(  # the same, otherwise: order, comment, a repeated key, the device's own
            f"[sampling]\ninterval = 5s\ninterval = 2s # x\n[mqtt]\ndevice_id = edge-1\nsummary_interval = 1s\nusername = u\n"
            f"host = 127.0.0.1:{broker.port}\n".replace(" # x", ""))
        daemon.start()
        until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
        assert info(broker, lambda seen: seen["started_ms"] != first["started_ms"])["config_hash"] == first["config_hash"]
        daemon.config_path.write_text(config(broker, "[sampling]\ninterval = 3s\n"))
        daemon.call("Reload")
        assert info(broker, lambda seen: seen["config_hash"] != first["config_hash"])


def test_how_the_last_boot_ended_is_told_and_never_guessed():
    with tempfile.TemporaryDirectory() as folder, mosquitto.Broker() as broker:
        mark = pathlib.Path(folder, "boot")
        daemon = Daemon(config(broker), env={"STATE_DIRECTORY": folder})
        try:
            previous = 0
            for text, reason in ((None, "unknown"), ("other running unknown -\n", "unclean"), (None, "unclean"),
                                 ("other shutdown unclean -\n", "orderly"), ("other stopped orderly -\n", "unknown"),
                                 ("\0\xff", "unknown")):
                if text:
                    mark.write_text(text)
                daemon.start()
                told = info(broker, lambda seen: seen["started_ms"] != previous)
                previous = told["started_ms"]
                assert told["boot_reason"] == reason, (text, told)
                assert told.get("boot_reason_detail") or reason == "orderly", told
                assert mark.read_text().split()[:3] == [told["boot_id"], "running", reason], mark.read_text()
                daemon.stop()
                assert mark.read_text().split()[1] in ("stopped", "shutdown")
        finally:
            daemon.clean()


def test_what_the_broker_rejected_was_missed_by_rule():
    with tempfile.TemporaryDirectory() as folder:
        acl = pathlib.Path(folder, "acl")
        acl.write_text("topic read #\n" + "".join(f"topic write {BASE}/{t}\n" for t in ("status", "info", "summary", "missed", "alert/#"))
                       + "topic write homeassistant/#\n")
        pathlib.Path(folder).chmod(0o755)
        root, temp = board(folder)
        with mosquitto.Broker(more=[f"acl_file {acl}"]) as broker, Daemon(
                config(broker, "home_assistant = yes\n[sampling]\ninterval = 100ms\n"), root=root) as daemon:
            until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
            seen = broker.subscribe(f"{BASE}/missed", until=lambda seen: "temperature" in seen[-1][1], timeout=90,
                                    ready=lambda: temp.write_text("80000\n"))
            told = check_message(*seen[-1], BASE)[1]
            rules = {told[key]: told[key + "_count"] for key in told if re.fullmatch(r"rule_\d+", key)}
            assert rules["temperature"] == 1 and told["alerts_count"] == sum(rules.values()), told
            assert told["first_ts_ms"] <= told["last_ts_ms"] <= told["ts_ms"], told


def examples():
    text = (SOURCE / "docs/fleet.md").read_text()
    return {name: code for name, code in re.findall(r"```(python|javascript)\n(.*?)```", text, re.DOTALL)}


def test_the_python_example_dates_messages():
    names = {}
    exec(examples()["python"], names)  # pylint: disable=exec-used
    assert [names["time_us"](*one[:3]) for one in RECEIVED] == [one[3] for one in RECEIVED]


def test_the_javascript_example_is_the_page_s_and_dates_messages():
    code = examples()["javascript"]
    assert (SOURCE / "client/dashboard/time.js").read_text().endswith("\n\n" + code)
    if not shutil.which("node"):
        return "node is not installed"
    code += f"const offsets = new Map(); console.log(JSON.stringify({json.dumps(RECEIVED)}.map(one => timeUs(...one.slice(0, 3), offsets))));"
    out = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert json.loads(out) == [one[3] for one in RECEIVED], out
    return None


if __name__ == "__main__":
    run_tests_with_broker(dict(globals()))
