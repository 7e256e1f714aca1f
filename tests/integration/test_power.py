#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rails, total, energy, GPU and modes of a Jetson's tree, through the daemon and `edgeprofctl power`."""
import json
import pathlib
import tempfile

from harness import SHARED, Daemon, run_tests, until


def write(root, path, text):
    place = pathlib.Path(root) / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_an_orin_tells_its_power_where_the_total_comes_from_and_its_mode():
    # covers G0.18 G2.7
    tree = SHARED / "fixtures" / "sysroot" / "jetson-orin-nano-jp6"
    if not tree.is_dir():
        return "no shared fixtures"
    expected = json.loads((tree / "expected.json").read_text())
    with Daemon("[sampling]\ninterval = 100ms\n", root=tree) as daemon:
        until("energy", lambda: ((daemon.metric("energy/total") or {}).get("value") or 0) > 0)
        values = {m["name"]: m for m in daemon.call("ListMetrics")["metrics"]}
        for rail, milliwatts in expected["power_mw"].items():
            assert abs(values["power/" + rail]["value"] - milliwatts) <= 1, values["power/" + rail]
        total = values["power/total"]
        assert abs(total["value"] - expected["total_power_mw"]) <= 1, total
        assert total["origin"] == "rail VDD_IN" and total["unit"] == "milliwatts", total
        assert values["energy/total"]["origin"] == "integral of power/total", values["energy/total"]
        assert values["gpu/utilization"]["value"] == expected["gpu"]["load_pct"]
        assert values["gpu/frequency"]["value"] == expected["gpu"]["freq_mhz"] * 1e6
        status = daemon.call("GetStatus")
        assert status["power_mode"] == 2 and status["jetson_clocks"] is False, status
        assert status["gpu_governor"] == "nvhost_podgov" and status["governor"], status
        text = daemon.ctl("power").stdout
        assert "Total" in text and "rail VDD_IN" in text and "9.25 W" in text, text
        assert "Energy since start" in text and "NC" not in text, text
        assert "Power mode" in daemon.ctl("status").stdout
        listed = json.loads(daemon.ctl("power", "-j").stdout)["metrics"]
        assert {m["name"] for m in listed} == {n for n in values if n.startswith(("power/", "energy/"))}, listed


def test_a_sum_says_that_it_is_one_and_energy_is_power_times_time():
    with tempfile.TemporaryDirectory() as root:
        write(root, "sys/class/hwmon/hwmon0/name", "ina3221\n")
        for n, label in ((1, "VDD_GPU_SOC"), (2, "NC"), (3, "VDDQ_VDD2_1V8AO")):
            write(root, f"sys/class/hwmon/hwmon0/in{n}_label", label + "\n")
            write(root, f"sys/class/hwmon/hwmon0/in{n}_input", "20000\n")
            write(root, f"sys/class/hwmon/hwmon0/curr{n}_input", "500\n")
        with Daemon("[sampling]\ninterval = 50ms\n", root=root) as daemon:
            until("energy", lambda: ((daemon.metric("energy/total") or {}).get("value") or 0) > 0)
            first = daemon.metric("energy/total")
            until("more energy", lambda: daemon.metric("energy/total")["value"] > first["value"] + 5000)
            second = daemon.metric("energy/total")
            seconds = (second["time_us"] - first["time_us"]) / 1e6
            # 10 W; the samples that the two readings stand on are at most one period off
            assert abs((second["value"] - first["value"]) - 10000 * seconds) <= 10000 * 0.2 + 1, (first, second)
            total = daemon.metric("power/total")
            assert total["value"] == 10000, total
            assert total["origin"] == "sum of the rails without VDDQ_VDD2_1V8AO", total


def test_a_machine_without_rails_says_so():
    with tempfile.TemporaryDirectory() as root:
        write(root, "proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\n")
        with Daemon(root=root) as daemon:
            sources = {s["name"]: s for s in daemon.call("ListSources")["sources"]}
            for name in ("power", "gpu", "fan", "modes"):
                assert sources[name]["state"] == "unavailable" and sources[name]["reason"], sources[name]
            done = daemon.ctl("power", check=False)
            assert done.returncode == 2 and "no power rail" in done.stderr, done


run_tests(globals())
