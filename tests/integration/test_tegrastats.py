#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tegrastats under the real daemon: fake programs that play captures, die, hang, and are replaced."""
import contextlib
import os
import pathlib
import signal
import tempfile

from harness import SHARED, SOURCE, Daemon, run_tests, until

FAKES = SOURCE / "tests" / "fixtures" / "bin"


def configured(command, interval="200ms"):
    return f"[source tegrastats]\ncommand = {command}\ninterval = {interval}\n"


def fake(name):
    return FAKES / f"tegrastats-{name}"


def source(daemon):
    return next(s for s in daemon.call("ListSources")["sources"] if s["name"] == "tegrastats")


def value(daemon, name):
    return (daemon.metric(name) or {}).get("value")


def children(daemon):
    """Pids of the daemon's children, zombies among them."""
    text = pathlib.Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text()
    return [int(pid) for pid in text.split()]


def gone(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rsplit(") ", 1)[1][0] in "ZX"


def write_player(folder, stream):
    """A program that plays a file of lines, one an interval, then goes on with the last."""
    path = pathlib.Path(folder) / "player"
    path.write_text(
        "#!/bin/sh\n"
        '[ "$#" = 2 ] && [ "$1" = --interval ] || exit 64\n'
        f"while read -r line; do sleep 0.1; printf '%s\\n' \"$line\"; last=$line; done <'{stream}'\n"
        "while sleep 0.1; do printf '%s\\n' \"$last\"; done\n"
    )
    path.chmod(0o755)
    return path


def test_captured_streams_become_metrics():
    streams = SHARED / "fixtures" / "tegrastats" / "streams"
    if not streams.is_dir():
        return "no captures here"
    expected = {
        "orin_nano_r392_4lines.txt": {
            "power/VDD_IN": 3462, "power/VDD_SOC": 1127, "power/total": 3462, "temperature/tj": 46.5,
            "gpu/frequency": 306e6, "emc/utilization": 3, "clock/emc": 665e6, "clock/APE": 200e6,
            "engine/NVDEC0/utilization": None, "tegra/lfb": 132 << 20,
        },
        "orin_agx_r3644_3lines.txt": {
            "power/VIN_SYS_5V0": 4707, "temperature/soc1": 49.625, "engine/NVENC/utilization": 78,
            "clock/NVENC": 179e6, "engine/VIC/utilization": 37,
        },
        "nano_r327_user_3lines.txt": {"temperature/AO": 48, "emc/utilization": None, "gpu/utilization": 0},
        "tx2_r28_2lines.txt": {"power/VDD_DDR": 575, "power/total": 3177, "gpu/utilization": 46, "gpu/frequency": 140e6},
    }
    for name, values in expected.items():
        with tempfile.TemporaryDirectory() as scratch:
            player = write_player(scratch, streams / name)
            with Daemon(configured(player, "100ms")) as daemon:
                last = list(values.items())[0]
                until(f"the last line of {name}", lambda: value(daemon, last[0]) == last[1])
                until("the metrics settle", lambda: all(value(daemon, key) == v for key, v in values.items()))
                for key, v in values.items():
                    metric = daemon.metric(key)
                    assert metric["source"] == "tegrastats", metric
                    assert v is not None or metric["reason"], metric
                assert daemon.metric("cpu/utilization")["source"] == "cpu"
                assert daemon.metric("memory/used")["source"] == "memory"
                assert source(daemon)["state"] == "ok"


def test_damaged_captures_are_survived():
    damaged = SHARED / "fixtures" / "tegrastats" / "malformed"
    if not damaged.is_dir():
        return "no captures here"
    with tempfile.TemporaryDirectory() as scratch:
        player = pathlib.Path(scratch) / "player"
        files = sorted(damaged.glob("*.txt"))
        lines = [f"sleep 0.15; cat '{file}'; echo" for file in files]
        end = "echo 'RAM 1/2MB (lfb 3x4MB) tj@43.25C'"
        player.write_text("#!/bin/sh\n" + "\n".join(lines) + f"\nwhile sleep 0.1; do {end}; done\n")
        player.chmod(0o755)
        with Daemon(configured(player, "100ms")) as daemon:
            until("the good line behind the damage", lambda: value(daemon, "temperature/tj") == 43.25)
            assert source(daemon)["errors"] == 0, source(daemon)
            with contextlib.closing(daemon.client()) as client:
                metrics = [m for part in client.stream("ListMetrics") for m in part["metrics"]]
            ours = [m for m in metrics if m["source"] == "tegrastats"]
            assert any(m["value"] is not None for m in ours)
            assert len(ours) <= 640, len(ours)
            for metric in ours:
                assert metric["unit"] != "percent" or 0 <= (metric["value"] or 0) <= 100, metric


# covers G0.15
def test_absent_is_unavailable_and_the_others_go_on():
    with Daemon(configured("/nonexistent/tegrastats")) as daemon:
        until("it is told", lambda: source(daemon)["state"] == "unavailable")
        assert "/nonexistent/tegrastats" in source(daemon)["reason"], source(daemon)
        until("the processor is sampled", lambda: value(daemon, "cpu/utilization") is not None)
        assert children(daemon) == []
        assert source(daemon)["errors"] == 0, source(daemon)
        until("the log says so once", lambda: "not available on this machine" in daemon.log())
        assert daemon.log().count("tegrastats") == 1, daemon.log()


def test_nothing_is_left_when_the_daemon_stops_or_is_killed():
    for name in ("steady", "deaf"):
        with Daemon(configured(fake(name))) as daemon:
            until("a line", lambda: source(daemon)["state"] == "ok")
            (child,) = children(daemon)
            daemon.stop()
            assert gone(child), name
    for name in ("steady", "deaf", "hang"):
        with Daemon(configured(fake(name))) as daemon:
            until("a line", lambda: source(daemon)["ticks"] > 0)
            (child,) = children(daemon)
            daemon.kill()
            until(f"{name} is killed with it", lambda: gone(child))
            daemon.start()
            until("a line of the next one", lambda: source(daemon)["ticks"] > 0)


def test_a_killed_child_is_told_and_started_again():
    with Daemon(configured(fake("steady"))) as daemon:
        until("a line", lambda: source(daemon)["state"] == "ok")
        (child,) = children(daemon)
        os.kill(child, signal.SIGKILL)
        until("it is told", lambda: source(daemon)["state"] == "error")
        assert "SIGKILL" in source(daemon)["reason"], source(daemon)
        metric = daemon.metric("tegra/lfb")
        assert metric["value"] is None and metric["reason"] == "source failed", metric
        until("it is back", lambda: source(daemon)["state"] == "ok")
        assert value(daemon, "tegra/lfb") == 40 << 20
        (other,) = children(daemon)
        assert other != child


def test_a_stopped_child_is_stale_and_comes_back():
    with Daemon(configured(fake("steady"))) as daemon:
        until("a line", lambda: source(daemon)["state"] == "ok")
        (child,) = children(daemon)
        os.kill(child, signal.SIGSTOP)
        until("it is stale", lambda: source(daemon)["state"] == "stale")
        assert daemon.metric("tegra/lfb")["value"] is None
        until("the others go on", lambda: value(daemon, "cpu/utilization") is not None)
        os.kill(child, signal.SIGCONT)
        until("it is back", lambda: source(daemon)["state"] == "ok")
        os.kill(child, signal.SIGSTOP)
        until("it is given up", lambda: gone(child))
        until("another is there", lambda: source(daemon)["state"] == "ok")


def test_broken_children_disturb_nobody():
    for name, state in (("crash", "error"), ("flood", "error"), ("closed", "error"), ("binary", "ok"), ("hang", "stale")):
        with Daemon(configured(fake(name)) + "[sampling]\ninterval = 200ms\n") as daemon:
            until(f"{name} is {state}", lambda: source(daemon)["state"] == state)
            before = next(s for s in daemon.call("ListSources")["sources"] if s["name"] == "load")["ticks"]
            until(
                "the others go on",
                lambda: next(s for s in daemon.call("ListSources")["sources"] if s["name"] == "load")["ticks"] > before + 3,
            )
            assert len(children(daemon)) <= 1, name
            assert daemon.log().count("source tegrastats") <= 3, daemon.log()


def test_set_source_ends_and_starts_it_and_a_reload_replaces_it():
    with Daemon(configured(fake("steady"))) as daemon:
        until("a line", lambda: source(daemon)["state"] == "ok")
        (child,) = children(daemon)
        daemon.call("SetSource", name="tegrastats", enabled=False)
        until("it is ended", lambda: gone(child) and children(daemon) == [])
        assert source(daemon)["state"] == "suspended"
        daemon.call("SetSource", name="tegrastats", enabled=True)
        until("it is back", lambda: source(daemon)["state"] == "ok")
        (child,) = children(daemon)
        daemon.config_path.write_text(configured(fake("binary")))
        daemon.process.send_signal(signal.SIGHUP)
        until("the other program's line", lambda: value(daemon, "temperature/tj") == 42)
        until("the first is gone", lambda: gone(child) and len(children(daemon)) == 1)


if __name__ == "__main__":
    run_tests(globals())
