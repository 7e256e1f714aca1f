#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datagrams against the real daemon: what other languages' clients send, edgeprofctl emit, claims of
other users' names, floods beside an attached app, UDP, and the configuration."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import harness
from harness import CTL, Daemon, VarlinkError, until

NOBODY = 65534


def dial(daemon, blocking=True):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    client.connect(str(daemon.run_dir / "statsd"))
    client.setblocking(blocking)
    return client


def send(daemon, *lines):
    with dial(daemon) as client:
        client.send("\n".join(lines).encode())


def stage(daemon, app, name):
    try:
        rows = daemon.call("ListStages", app=app)["stages"]
    except VarlinkError as error:
        if error.name != "io.edgeprof.NotFound":
            raise
        return None
    return next((row for row in rows if row["stage"] == name), None)


def app(daemon, name):
    return next((row for row in daemon.call("ListApps")["apps"] if row["name"] == name), None)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def as_nobody(daemon, *arguments, **options):
    """edgeprofctl as an ordinary user, who must be able to reach the socket."""
    daemon.dir.chmod(0o755)
    command = shutil.copy(CTL, daemon.dir / "edgeprofctl")  # others may not look into the build's folder
    return subprocess.run(
        [str(command), *arguments], env=daemon.env, capture_output=True, text=True, timeout=60,
        user=NOBODY, group=NOBODY, extra_groups=[], **options)


def test_lines_of_real_clients_become_stages_gauges_and_counters():
    with Daemon() as daemon:
        # datadogpy, dogstatsd-go (packed values, container), statsd of etsy, telegraf
        send(daemon,
             "infer:12.5|ms|#app:cam,frame:12,unit:gpu,category:vision,model:yolo",
             "infer:13.5:14.5|d|#app:cam,env:prod|c:ci-83f2|T1656581409",
             "queue.depth:7|g|#app:cam",
             "frames:1|c|@0.5|#app:cam",
             "_e{5,4}:title|text",
             "_sc|camera|0",
             "visitors:alice|s|#app:cam",
             "broken line",
             "page.render:320|ms|@0.1")
        until("the stage is there", lambda: stage(daemon, "cam", "infer"))
        row = stage(daemon, "cam", "infer")
        assert row["count"] == 3 and abs(row["mean_ms"] - 13.5) < 1e-6, row
        assert row["unit"] == "gpu" and row["category"] == "vision", row
        assert stage(daemon, "statsd", "page.render")["count"] == 1
        until("the gauge is a metric", lambda: daemon.metric("gauge/cam/queue.depth"))
        until("the counter", lambda: (daemon.metric("counter/cam/frames") or {}).get("value") == 2)
        told = daemon.call("GetSelf")
        assert (told["statsd_datagrams"], told["statsd_lines"]) == (1, 9), told
        assert (told["statsd_bad_lines"], told["statsd_unsupported"]) == (1, 3), told
        assert told["statsd_bad_reason"] == "no ':' after the name", told
        row = app(daemon, "cam")
        assert row["sent"] == row["received"] == 5 and row["dropped"] == 0, row
        assert "Datagrams" in daemon.ctl("self").stdout


# covers G3.4
def test_a_stage_has_a_row_for_each_unit():
    with Daemon() as daemon:
        send(daemon, *(f"infer:{ms}|ms|#app:cam,unit:{unit}" for unit, ms in (("gpu", 10), ("cpu", 200)) * 5))
        send(daemon, "level:5|g|#app:cam,unit:percent", "level:+2|g|#app:cam")  # of a gauge it is only a label
        until("the gauge", lambda: (daemon.metric("gauge/cam/level") or {}).get("value") == 7)
        rows = daemon.call("ListStages", app="cam")["stages"]
        assert [(row["unit"], row["count"], row["mean_ms"]) for row in rows] == [("gpu", 5, 10), ("cpu", 5, 200)], rows
        assert rows[1]["cpu_fallback"] and rows[1]["expected_unit"] == "gpu", rows


def test_emit_sends_values_with_tags():
    with Daemon() as daemon:
        for value in ("12.5ms", "0.0125s", "12500us"):
            done = daemon.ctl("emit", "infer", value, "--app", "sh", "--frame", "3", "--unit", "npu", "--category", "model")
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        daemon.ctl("emit", "level", "5", "--app", "sh")
        daemon.ctl("emit", "--app", "sh", "level", "--", "-2g")
        daemon.ctl("emit", "hits", "3c", "--app", "sh")
        until("three runs", lambda: (stage(daemon, "sh", "infer") or {}).get("count") == 3)
        row = stage(daemon, "sh", "infer")
        assert abs(row["mean_ms"] - 12.5) < 1e-6 and (row["unit"], row["category"]) == ("npu", "model"), row
        until("the gauge is there", lambda: daemon.metric("gauge/sh/level"))
        until("its difference came", lambda: daemon.metric("gauge/sh/level")["value"] == 3)
        until("the counter", lambda: daemon.metric("counter/sh/hits"))


def test_emit_refuses_what_the_daemon_would_not_understand():
    with Daemon() as daemon:
        for words in (["a:b", "1"], ["", "1"], ["a|b", "1"], ["a\nb", "1"], ["a", "x"], ["a", "1kg"],
                      ["a", "nan"], ["a", ""], ["a"], ["a", "1", "2"], ["_e{1,1}", "1"],
                      ["a", "1", "--app", "x,y"], ["a", "1", "--app", "x|y"], ["a", "1", "--frame", "x"],
                      ["a", "1", "--unit", "g,app:b"], ["n" * 300, "1"], ["-", "1"], [],
                      ["--", "a", "-3ms"], ["a", "1e9s"]):
            done = daemon.ctl("emit", *words)
            assert done.returncode == 64 and done.stderr, (words, done)
        assert daemon.call("GetSelf")["statsd_datagrams"] == 0


def test_emit_times_a_command_and_passes_its_exit_status():
    with Daemon() as daemon:
        done = daemon.ctl("emit", "--time", "build", "--app", "ci", "--", "sh", "-c",
                          "echo out; echo err >&2; sleep 0.05; exit 7")
        assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n"), done
        row = until("the run", lambda: stage(daemon, "ci", "build"))
        assert row["mean_ms"] >= 50, row
        done = daemon.ctl("emit", "--time", "build", "--", "sh", "-c", "kill -TERM $$")
        assert done.returncode == 128 + signal.SIGTERM, done
        assert daemon.ctl("emit", "--time", "build", "--", "/nonexistent/x").returncode == 127
        assert daemon.ctl("emit", "--time", "build", "--", "/").returncode == 126


def test_emit_reads_whole_lines():
    with Daemon() as daemon:
        text = "".join(f"s:{i}|ms|#app:pipe\n" for i in range(2000)) + "last:1|c|#app:pipe"
        done = daemon.ctl("emit", "-", input=text)
        assert (done.returncode, done.stderr) == (0, ""), done
        until("all of them", lambda: daemon.call("GetSelf")["statsd_lines"] == 2001)
        assert stage(daemon, "pipe", "s")["total_count"] == 2000
        done = daemon.ctl("emit", "-", input="a:1|g\nnonsense\n\nb:1|s\n" + "x" * 20000 + "\nc:1|g\n")
        assert done.returncode == 1, done
        assert "line 2: no ':' after the name" in done.stderr, done
        assert "line 4: a set" in done.stderr and "line 5 is too long" in done.stderr, done
        done = daemon.ctl("emit", "-", input="a:-1|ms\na:1:-2|h\na:1e300|d\na:-1|g\n")
        assert (done.returncode, done.stderr.count("negative"), done.stderr.count("longer than")) == (1, 2, 1), done
        until("the good ones", lambda: daemon.call("GetSelf")["statsd_lines"] == 2004)


def test_without_a_daemon_emit_says_so_and_the_command_runs():
    with tempfile.TemporaryDirectory() as empty:
        env = dict(os.environ, EDGEPROF_RUNTIME_DIR=empty)
        done = subprocess.run([str(CTL), "emit", "a", "1"], env=env, capture_output=True, text=True)
        assert done.returncode == 69 and "cannot connect to edgeprofd" in done.stderr, done
        assert f"{empty}/statsd" in done.stderr, done
        done = subprocess.run([str(CTL), "emit", "--time", "a", "--", "sh", "-c", "exit 3"], env=env,
                              capture_output=True, text=True)
        assert done.returncode == 3 and "cannot connect to edgeprofd" in done.stderr, done


def test_datagrams_can_be_switched_off_and_on_by_a_reload():
    with Daemon("[statsd]\nenabled = no\n") as daemon:
        assert not (daemon.run_dir / "statsd").exists()
        done = daemon.ctl("emit", "a", "1")
        assert done.returncode == 69 and "enabled = no" in done.stderr, done
        daemon.config_path.write_text("")
        daemon.call("Reload")
        send(daemon, "a:1|ms|#app:x")
        until("it is heard", lambda: stage(daemon, "x", "a"))
        daemon.config_path.write_text("[statsd]\nudp = 0.0.0.0:8125\n")
        try:
            daemon.call("Reload")
            raise AssertionError("an address for everybody was taken")
        except VarlinkError as error:
            assert "anyone" in str(error), error
        daemon.config_path.write_text("[statsd]\nenabled = no\n")
        daemon.call("Reload")
        assert not (daemon.run_dir / "statsd").exists()
        row = app(daemon, "x")
        assert row["state"] == "ended" and row["received"] == 1, row


def test_udp_is_one_user_and_a_taken_port_is_told():
    port = free_port()
    with Daemon(f"[statsd]\nudp = 127.0.0.1:{port}\n") as daemon:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"infer:5|ms|#app:net", ("127.0.0.1", port))
        until("it is heard", lambda: stage(daemon, "net", "infer"))
        assert app(daemon, "net")["uid"] == NOBODY
        with Daemon(f"[statsd]\nudp = 127.0.0.1:{port}\n") as second:
            reason = second.call("GetSelf")["statsd_reason"]
            assert reason == os.strerror(98), reason  # EADDRINUSE; it profiles without


def test_a_name_of_another_user_is_refused_and_seen():
    if os.geteuid() != 0:
        return "needs root to become another user"
    with Daemon() as daemon:
        send(daemon, "infer:5|ms|#app:cam")
        until("root's app", lambda: stage(daemon, "cam", "infer"))
        for _ in range(3):
            done = as_nobody(daemon, "emit", "infer", "99ms", "--app", "cam")
            assert done.returncode == 0, done  # who sends can't know
        told = until("the refusal", lambda: daemon.call("ListApps")["refused"])
        assert told[0]["app"] == "cam" and told[0]["uid"] == NOBODY, told
        assert told[0]["reason"] == "another user's app has this name", told
        assert stage(daemon, "cam", "infer")["count"] == 1
        until("all are counted", lambda: daemon.call("GetSelf")["statsd_refused"] == 3)
        # their own they may have, and what has no tag
        assert as_nobody(daemon, "emit", "infer", "9ms", "--app", "theirs").returncode == 0
        until("their app", lambda: stage(daemon, "theirs", "infer"))
        assert app(daemon, "theirs")["uid"] == NOBODY
        daemon.ctl("emit", "a", "1ms")
        until("root's", lambda: stage(daemon, "statsd", "a"))
        as_nobody(daemon, "emit", "a", "1ms")
        until("theirs", lambda: stage(daemon, f"statsd.{NOBODY}", "a"))


def test_a_flood_of_datagrams_costs_an_attached_app_nothing():
    lines = ("infer:12.5|ms|#app:flood,frame:7\n" * 20).encode()
    datagrams = 100_000
    with Daemon() as daemon:
        writer = subprocess.Popen([str(harness.WRITER), "native", "20000", "2", "100", "20"],
                                  env=daemon.env, stdout=subprocess.PIPE, text=True)
        try:
            with dial(daemon) as client:
                begin = time.monotonic()
                slowest = 0.0
                for i in range(datagrams):
                    client.send(lines)
                    if i % 20000 == 0:
                        asked = time.monotonic()
                        daemon.call("GetSelf")
                        slowest = max(slowest, time.monotonic() - asked)
                took = time.monotonic() - begin
            counts = json.loads(writer.communicate(timeout=harness.PATIENCE)[0])
        finally:
            if writer.poll() is None:
                writer.kill()
                writer.wait()
        assert counts["dropped"] == 0 and counts["sent"] == counts["received"] == counts["calls"], counts
        until("all lines", lambda: daemon.call("GetSelf")["statsd_lines"] == datagrams * 20)
        row = app(daemon, "flood")
        assert row["received"] == datagrams * 20 and row["invalid"] == 0, row
        print(f"  {datagrams / took:.0f} datagrams/s of 20 lines, slowest answer {slowest * 1e3:.1f} ms")


def test_hostile_datagrams_and_a_stopped_daemon():
    with Daemon() as daemon:
        with dial(daemon, blocking=False) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

            def put(data):
                until("there is room", lambda: try_send(client, data))

            for byte in (b":", b"|", b"\n", b"\0", b"\xff", b"#", b",", b"a:1|ms\n", b"1"):
                put((byte * 65536)[:65536])
            put(os.urandom(65536))
            put(b"a:1" + b":1" * 40000 + b"|g")  # also longer than a datagram may be
            put(b"infer:1|ms")
            until("the good one behind them", lambda: stage(daemon, "statsd", "infer"))
            assert daemon.call("GetSelf")["statsd_truncated"] == 1
            # a stopped daemon: who does not wait is told, nobody hangs
            os.kill(daemon.pid, signal.SIGSTOP)
            try:
                sent = 0
                while try_send(client, b"late:1|c"):
                    sent += 1
                begin = time.monotonic()
                done = daemon.ctl("emit", "late", "1c")
                assert done.returncode == 69 and "busy" in done.stderr, done
                assert time.monotonic() - begin < 5
            finally:
                os.kill(daemon.pid, signal.SIGCONT)
            until("what was queued", lambda: (daemon.metric("counter/statsd/late") or {}).get("value") == sent)


def try_send(client, data):
    try:
        client.send(data)
        return True
    except BlockingIOError:
        return False


def test_frames_end_without_a_further_datagram():
    def count():
        try:
            return daemon.call("GetFrames", app="cam")["frames"][0]["total_count"]
        except VarlinkError:
            return 0

    with Daemon() as daemon:
        for i in range(50):
            send(daemon, f"infer:2|ms|#app:cam,frame:{i}", f"publish:1|ms|#app:cam,frame:{i}")
            time.sleep(0.005)
        until("all frames are counted", lambda: count() == 50)
        assert stage(daemon, "cam", "infer")["runs_per_frame"] == 1


def test_an_app_ends_when_it_is_silent_without_having_died():
    with Daemon() as daemon:
        send(daemon, "a:1|ms|#app:short")
        until("it is there", lambda: stage(daemon, "short", "a"))
        assert app(daemon, "short")["state"] == "running"
        daemon.stop()  # leaves no socket behind
        assert not (daemon.run_dir / "statsd").exists()
        assert "died" not in daemon.log(), daemon.log()


if __name__ == "__main__":
    harness.run_tests(globals())
