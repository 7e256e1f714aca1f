#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl and a real daemon: what the daemon does not take is explained by the option it came from."""
from harness import DEMO, Daemon, VarlinkError, program, run_tests, until

TOO_LONG = "x" * 300
REFUSED = (
    (["stages", "demo", "--run", "-1", "--all-runs"], "--run and --all-runs exclude each other"),
    (["frames", "--run", "0", "--all-runs"], "--run and --all-runs exclude each other"),
    (["report", "demo", "--run", "0", "--all-runs"], "--run and --all-runs exclude each other"),
    (["frames", "demo", "--recent", "129"], "--recent is from 1 to 128"),
    (["forecast", "demo", "--fps", "0.0001"], "--fps is from 0.001 to 100000"),
    (["forecast", "demo", "--deadline", "2d"], "--deadline is from 0.001 ms to 1d"),
    (["history", "cpu", "--max-points", "100001"], "--max-points is from 1 to 100000"),
    (["history", "cpu", "--step", "8d"], "--step is from 1ms to 7d"),
    (["history", "a b"], "invalid GLOB"),
    (["sensors", ""], "invalid GLOB"),
    (["source", "enable", "cpu", "--interval", "49ms"], "--interval is from 50ms to 1h"),
    (["source", "enable", "cpu", "--interval", "61min"], "--interval is from 50ms to 1h"),
    (["session", "start", "s", "demo", "--warmup", "100001"], "--warmup is from 0 to 100000"),
    (["session", "start", "s", "demo", "--frames", "1000001"], "--frames is from 1 to 1000000"),
    (["session", "start", "s", "demo", "--duration", "2d"], "--duration is from 1ms to 1d"),
    (["session", "start", "s", "demo", "--tag", "a=1", "--tag", "a=2"], "--tag NAME=VALUE has up to"),
    (["record", "now", TOO_LONG], "LABEL has up to 96 bytes"),
    (["record", "now", "x", "11min"], "BEFORE is at most 10min"),
    (["record", "now", "x", "1s", "11min"], "AFTER is at most 10min"),
    (["ack", "a b"], "RULE has up to 48 characters"),
    (["ack", "temperature:"], "INSTANCE is not empty"),
    (["ack", "temperature", "--note", TOO_LONG], "--note has up to 128 bytes"),
    (["silence", "temperature", "1h", "--note", "a\tb"], "--note has up to 128 bytes"),
    (["test-alert", "--note", ""], "--note has from 1 to 200 bytes"),
    (["ps", "--watch", "4194305"], "PID is from 1 to 4194304"),
    (["ps", "--watch", "a\tb"], "PATTERN has up to 127 bytes"),
    (["ps", "--watch", "cam", "--name", "a b"], "a b"),
    (["emit", "a", "5ms", "--app", "cam,x"], "invalid value 'cam,x' for --app; ',', '|'"),
    (["emit", "a", "5ms", "--app", "cam", "--unit", "g|pu"], "invalid value 'g|pu' for --unit; ',', '|'"),
    (["tail", "/dev/null", "--pattern", "a {ms}", "--category", "a\nb"], "invalid value 'a?b' for --category; ',', '|'"),
)


def test_a_refusal_names_the_option_and_what_it_takes():
    with Daemon() as daemon, program([DEMO, "--fps", "20"], daemon.env):
        until("the app", lambda: daemon.call("ListApps")["apps"])
        wrong = []
        for words, said in REFUSED:
            done = daemon.ctl(*words)
            if done.returncode != 64 or said not in done.stderr or "rejects" in done.stderr:
                wrong.append((words, done))
        assert not wrong, wrong


def test_recent_without_a_number_is_ten_frames():
    with Daemon() as daemon, program([DEMO, "--fps", "100"], daemon.env):
        until("ten frames", lambda: daemon.ctl("frames", "demo", "--recent").stdout.count("demo ") == 10)
        done = daemon.ctl("frames", "demo", "--slow", "--recent")
        assert done.returncode in (0, 2) and "--recent is" not in done.stderr, done


def test_an_empty_name_ends_no_watch():
    with Daemon() as daemon:
        daemon.call("WatchProcess", pattern="cam*")
        for option in "--watch", "--unwatch":
            done = daemon.ctl("ps", option, "")
            assert done.returncode == 64 and f"invalid value '' for {option}" in done.stderr, done
        try:
            daemon.call("WatchProcess", name="", remove=True)
            raise AssertionError("it was taken")
        except VarlinkError as error:
            assert error.parameters == {"parameter": "pid"}, error
        assert daemon.call("WatchProcess", pattern="cam*", remove=True)["count"] == 1  # it was still there


def test_an_empty_name_is_quoted():
    with Daemon() as daemon:
        for words, what in ((["stages", ""], "app"), (["source", "enable", ""], "source"),
                            (["record", "show", ""], "recording"), (["session", "stop", ""], "session")):
            assert f"there is no {what} ''" in daemon.ctl(*words).stderr, words


if __name__ == "__main__":
    run_tests(globals())
