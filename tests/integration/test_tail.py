#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl tail: durations in a log become stages. The standard input, files that grow, are rotated,
truncated, or appear later, a daemon that restarts, and input that no program should write."""
import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time

from harness import CTL, Daemon, program, run_tests, until

from test_statsd import stage

PATTERN = ["--pattern", "infer: {ms} ms"]


def tail(daemon, text, *words):
    """Of text on the standard input."""
    return subprocess.run([str(CTL), "tail", *words], env=daemon.env, input=text, capture_output=True, timeout=120)


def numbers(done):
    """The last line of stderr: lines that match, lines, events sent, refused, lost."""
    found = re.fullmatch(r"edgeprofctl: (\d+) of (\d+) lines match; events: (\d+) (?:sent|printed)(?:, (\d+) refused)?"
                         r"(?:, (\d+) lost)?", done.stderr.decode().splitlines()[-1])
    assert found, done.stderr
    return tuple(int(number or 0) for number in found.groups())


@contextlib.contextmanager
def following(daemon, *words):
    with program([CTL, "tail", *words], daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process


def finish(process, number=signal.SIGINT):
    process.send_signal(number)
    _out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, b"", err)


def count(daemon, app, name="infer"):
    return (stage(daemon, app, name) or {}).get("total_count", 0)


def append(path, text):
    with open(path, "a") as file:
        file.write(text)


def position(pid, path):
    """Where the process is in the file that it has open; None: it has not."""
    with contextlib.suppress(OSError):
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(link) == str(path):
                return int(pathlib.Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().split()[1])
    return None


def test_lines_of_the_standard_input_become_stages():
    with Daemon() as daemon:
        done = tail(daemon, b"start\nframe 3: infer: 12.5 ms\nnms took 1500us\nend infer: 13.5 ms", *PATTERN, "--pattern",
                    "frame {frame}: {stage=whole}infer: {ms}", "--pattern", "{stage} took {us}us", "--app", "log",
                    "--unit", "npu", "--category", "model")
        assert (done.returncode, done.stdout, numbers(done)) == (0, b"", (3, 4, 4, 0, 0)), done
        until("all of them", lambda: daemon.call("GetSelf")["statsd_lines"] == 4)
        row = stage(daemon, "log", "infer")
        assert row["total_count"] == 2 and abs(row["mean_ms"] - 13) < 1e-6, row
        assert (row["unit"], row["category"]) == ("npu", "model"), row
        assert abs(stage(daemon, "log", "nms")["mean_ms"] - 1.5) < 1e-6
        assert count(daemon, "log", "whole") == 1
        told = daemon.call("GetSelf")
        assert told["statsd_bad_lines"] == told["statsd_unsupported"] == 0, told


def test_a_dry_run_prints_what_emit_reads():
    with Daemon() as daemon:
        done = tail(daemon, b"f 7 infer: 1e-1 ms\n", "--pattern", "f {frame} {stage}: {ms} ms", "--app", "x", "--dry-run")
        assert (done.returncode, done.stdout) == (0, b"infer:0.1|ms|#app:x,frame:7\n"), done
        assert daemon.call("GetSelf")["statsd_datagrams"] == 0
        assert daemon.ctl("emit", "-", input=done.stdout.decode()).returncode == 0
        until("it arrived", lambda: count(daemon, "x") == 1)


def test_wrong_patterns_and_words():
    with Daemon() as daemon:
        for words, message in ((["--pattern", "infer"], "invalid pattern 'infer', at byte 6: no duration"),
                               (["--pattern", "a {x}"], "at byte 3: unknown placeholder"), ([], "requires a --pattern"),
                               (["--pattern", ""], "invalid value"), ([*PATTERN, "--app", "a,b"], "invalid value 'a,b' for --app"),
                               ([*PATTERN, "--category", "a|b"], "category"),
                               (["--pattern", "{stage=a:b}{ms}"], "cannot send 'a:b'"),
                               (["--pattern", "{stage=" + "x" * 300 + "}{ms}"], "cannot send 'xxx"),
                               ([*PATTERN, "-H", "x"], "--remote does not work")):
            done = tail(daemon, b"infer: 1 ms\n", *words)
            assert done.returncode == 64 and message in done.stderr.decode(), (words, done)
        for path in ("/", "/dev/null"):
            done = tail(daemon, b"", path, *PATTERN)
            assert done.returncode == 66 and "not a regular file" in done.stderr.decode(), done


def test_without_a_daemon():
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run([str(CTL), "tail", *PATTERN], env=dict(os.environ, EDGEPROF_RUNTIME_DIR=empty),
                              input="infer: 1 ms\n", capture_output=True, text=True)
        assert done.returncode == 69 and "cannot connect to edgeprofd" in done.stderr, done


def test_silence_is_explained_once():
    with Daemon() as daemon:
        done = tail(daemon, b"nothing \x1b[31m\xff\0 here\n" * 300, *PATTERN)
        assert done.returncode == 2 and numbers(done)[:2] == (0, 300), done
        said = done.stderr.decode().splitlines()
        assert said[:-1] == ["edgeprofctl: nothing matches in the first 100 lines; the last one: 'nothing ?[31m?? here'"], said


def test_hostile_input():
    with Daemon() as daemon:
        lines = [b"infer: -5 ms", b"infer: 1e99 ms", b"infer: 99999999999999 ms", b"infer: 1e999 ms", b"infer: nan ms",
                 os.urandom(4096).replace(b"\n", b""), b"\0" * 5000, b"infer: " * 200_000, b"y" * (1 << 20) + b"infer: 7 ms",
                 b"\xffinfer: 1 ms\xff", b"infer: 2 ms" + b"z" * (1 << 20), b"\r", b"", b"\0infer: 3 ms\0"]
        done = tail(daemon, b"\n".join(lines), *PATTERN, "--pattern", "{stage}{*}{*}q{*}{frame}zz{ms}", "--app", "bad")
        assert done.returncode == 1 and numbers(done) == (6, len(lines), 3, 3, 0), done
        assert b"line 1: a duration of -5 ms is negative\n" in done.stderr and done.stderr.count(b"\n") == 2, done
        until("the good ones", lambda: count(daemon, "bad") == 3)
        app = next(row for row in daemon.call("ListApps")["apps"] if row["name"] == "bad")
        assert app["invalid"] == 0 and app["received"] == 3, app


def test_a_file_is_followed_as_it_is_rotated_and_truncated():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "app.log"
        log.write_text("infer: 1 ms\n")
        with following(daemon, str(log), *PATTERN, "--app", "f") as process:
            def add(text, wanted):
                append(log, text)
                until(f"{wanted} events", lambda: count(daemon, "f") == wanted)

            until("it is at the end", lambda: position(process.pid, log) == log.stat().st_size)
            append(log, "infer: 2")
            add(" ms\ninfer: 3 ms\n", 2)
            log.rename(folder + "/app.log.1")
            append(folder + "/app.log.1", "infer: 4 ms\n")  # by who has it open still
            add("infer: 5 ms\n", 4)
            os.truncate(log, 0)
            until("it starts again", lambda: position(process.pid, log) == 0)
            add("infer: 6 ms\n", 5)
            append(log, "x" * 10000)  # too long, and its end never comes
            log.unlink()
            add("infer: 7 ms\n", 6)
            done = finish(process)
        assert done.returncode == 0 and numbers(done) == (6, 7, 6, 0, 0), done


def test_a_file_may_appear_later_and_be_read_from_its_start():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "late.log"
        with following(daemon, str(log), *PATTERN, "--app", "late") as process:
            assert process.stderr.readline() == f"edgeprofctl: waiting for '{log}'\n".encode()
            append(log, "infer: 1 ms\n")
            until("its first line", lambda: count(daemon, "late") == 1)
            assert finish(process, signal.SIGTERM).returncode == 0
        with following(daemon, str(log), "--from-start", *PATTERN, "--app", "again") as process:
            until("what was there", lambda: count(daemon, "again") == 1)
            assert finish(process).returncode == 0
        with following(daemon, str(log), *PATTERN) as process:
            until("it is at the end", lambda: position(process.pid, log) == log.stat().st_size)
            assert finish(process).returncode == 2  # nothing matched


def test_a_daemon_that_restarts_loses_what_is_counted():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        log.write_text("infer: 1 ms\n")
        with following(daemon, str(log), "--from-start", *PATTERN, "--app", "r") as process:
            until("the first", lambda: count(daemon, "r") == 1)
            daemon.stop()
            append(log, "infer: 2 ms\n")
            assert process.stderr.readline() == b"edgeprofctl: edgeprofd is gone: events are lost\n"
            daemon.start()
            append(log, "infer: 3 ms\n")
            assert process.stderr.readline() == b"edgeprofctl: edgeprofd is there: events are sent again\n"
            until("the third", lambda: count(daemon, "r") > 0)
            done = finish(process)
        assert done.returncode == 69 and numbers(done) == (3, 3, 2, 0, 1), done


def test_a_stopped_daemon_does_not_hold_up_the_log():
    with Daemon() as daemon:
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            done = tail(daemon, b"infer: 1 ms\n" * 200_000, *PATTERN, "--app", "s")
            took = time.monotonic() - begin
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        _matched, lines, sent, _refused, lost = numbers(done)
        assert done.returncode == 69 and lines == 200_000 and sent + lost == lines and lost > 0 and took < 60, done
        until("what was queued", lambda: count(daemon, "s") == sent)


def test_all_lines_arrive():
    lines = 100_000
    text = b"".join(b"2026-11-28 12:00:00.123 INFO frame %d: infer: 12.%03d ms\n" % (i, i % 1000) for i in range(lines))
    with Daemon() as daemon:
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = tail(daemon, text, "--pattern", "frame {frame}: {stage}: {ms} ms", "--app", "fast")
        took, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        assert numbers(done) == (lines, lines, lines, 0, 0), done
        until("all of them", lambda: count(daemon, "fast") == lines)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"  {lines / took:.0f} lines/s, {cpu / lines * 1e6:.2f} us of CPU a line")


if __name__ == "__main__":
    run_tests(globals())
