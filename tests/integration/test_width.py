#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command of edgeprofctl on a board with an app: its text fits 60 columns and uses 120; and the
completion of real shells, also while the daemon hangs."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unicodedata

from harness import CTL, SHARED, SOURCE, Daemon, board, run_tests, until
from test_apps import Actor, attached

BOARD = SHARED / "fixtures" / "sysroot" / "jetson-orin-nano-jp6"
COMPLETION = SOURCE / "client" / "edgeprofctl" / "completion"

# Words for what a synopsis asks for; verbs that read stdin, write for programs, or never end are not for people's eyes.
WORDS = {"history": [["temperature/**"], ["temperature/**", "--plot"], ["temperature/**", "--table"], ["--around", "1s"]],
         "frames": [[], ["cam"], ["cam", "--recent", "5"], ["cam", "--slow"]], "report": [["cam"]],
         "diagnose": [[], ["cam", "--all"]], "why": [["cam"]], "forecast": [[], ["cam"]],
         "stages": [[], ["cam", "--tree"], ["cam", "--wide"], ["cam", "--by", "category"]], "alerts": [[], ["--all"], ["--recent"]],
         "ps": [[], ["--threads"]], "watch": [["--count", "1"]], "source": [["list"]], "record": [["list"]], "mark": [["here"]],
         "session": [["list"], ["show", "before"]], "compare": [["before", "after"]], "exec": [["true"]],
         "targets": [["--targets", str(SOURCE / "config" / "targets.conf")]],
         "mem": [[], ["cam"]], "model-size": [[str(SOURCE / "docs"), str(SOURCE / "README.md")]],
         "assert": [["frames.fps>1 && stages.a-stage-with-a-long-name.p99_ms<500", "--session", "after"]],
         "sensors": [[], ["--all", "--wide"]], "ack": [["throttled"]], "help": [[], ["history"], ["ps"]]}
SKIP = {"bridge", "emit", "metrics", "mqtt-latency", "parse", "trace", "test-alert", "reload",
        "tail", "top"}
NOT_EMPTY = {"assert", "compare", "exec", "mem", "session", "targets"}


def width(line):
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in line)


def too_long(text, columns):
    """Lines that exceed it although they could be broken at a blank."""
    return [line for line in text.splitlines() if width(line) > columns and " " in line.strip()]


def verbs(daemon):
    return re.findall(r"^  ([a-z][a-z-]+) ", daemon.ctl("help").stdout, re.M)


def test_text_fits_60_columns_and_uses_120():
    with tempfile.TemporaryDirectory() as folder:
        root = BOARD if BOARD.exists() else board(folder, "/proc")[0]
        with Daemon(root=root) as daemon, Actor(daemon) as actor:
            attached(daemon, actor)
            actor.do("frames 40 1000", "runs a-stage-with-a-long-name 20 500", "gauge waiting 3", "mark before_the_model_is_loaded")
            until("the frames are counted", lambda: daemon.call("GetFrames", app="cam")["frames"][0]["total_count"] == 40)
            for session in ("before", "after"):
                assert daemon.ctl("session", "start", session, "cam", "--detach").returncode == 0
                actor.do("frames 40 1000", "runs a-stage-with-a-long-name 20 500")
                assert daemon.ctl("session", "stop", session).returncode == 0
            daemon.env.update(LC_ALL="C.UTF-8")
            daemon.env.pop("COLUMNS", None)
            wide = shown = 0
            for verb in verbs(daemon):
                for words in [] if verb in SKIP else WORDS.get(verb, [[]]):
                    for columns in (60, 120):
                        done = subprocess.run([str(CTL), verb, *words], env=dict(daemon.env, COLUMNS=str(columns)),
                                              capture_output=True, text=True, timeout=60)
                        assert done.returncode in (0, 1, 2, 64) and "Sanitizer" not in done.stderr, (verb, words, done)
                        text = done.stderr if verb == "exec" else done.stdout
                        assert not too_long(text, columns), (verb, words, columns, too_long(text, columns))
                        shown += done.returncode == 0
                        assert verb not in NOT_EMPTY or text.strip(), (verb, words, done)
                        wide += columns == 120 and any(width(line) > 61 for line in done.stdout.splitlines())
            assert shown > 60 and wide > 20, (shown, wide)
            # what goes to a program or a file is not broken: neither without a terminal, nor in other formats
            for words in (["history", "temperature/**", "--csv"], ["metrics"], ["sensors", "-j"], ["status", "--json"]):
                narrow = subprocess.run([str(CTL), *words], env=dict(daemon.env, COLUMNS="20"), capture_output=True, text=True,
                                        timeout=60).stdout
                assert len(narrow.splitlines()) > 0 and any(width(line) > 30 for line in narrow.splitlines()), (words, narrow)
            events = daemon.ctl("events").stdout.splitlines()
            assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:", line) for line in events), events


def complete_bash(env, line):
    script = ('. "$1"; COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); [[ $2 == *" " ]] && COMP_WORDS+=("") && '
              'COMP_CWORD=$((COMP_CWORD + 1)); _edgeprofctl; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "x", str(COMPLETION / "edgeprofctl.bash"), line], env=env,
                          capture_output=True, text=True, timeout=60)
    return done.stdout.split()


def complete_fish(env, line):
    script = f'source {COMPLETION}/edgeprofctl.fish; complete -C "{line}"'
    done = subprocess.run(["fish", "--no-config", "-c", script], env=env, capture_output=True, text=True, timeout=60)
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


def complete_zsh(env, line, expected):
    """zsh completes only at a terminal: what it shows after two tabs, up to what is expected."""
    folder = tempfile.mkdtemp(dir=env["EDGEPROF_RUNTIME_DIR"])
    shutil.copy(COMPLETION / "edgeprofctl.zsh", folder + "/_edgeprofctl")
    with open(folder + "/.zshrc", "w", encoding="ascii") as rc:
        rc.write(f"PS1='ready> '; fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; unsetopt beep automenu\n")
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-i"], dict(env, ZDOTDIR=folder, TERM="dumb", COLUMNS="200", LINES="50"))

    def read_until(word):
        seen, end = "", time.monotonic() + 30
        while word not in seen and time.monotonic() < end:
            if select.select([fd], [], [], 0.1)[0]:
                seen += os.read(fd, 65536).decode(errors="replace")
        return seen
    try:
        read_until("ready> ")
        os.write(fd, line.encode() + b"\t\t")
        # a word that is completed comes in pieces: its end is enough
        return [expected] if expected[-2:] in read_until(expected[-2:]).replace(line, "") else []
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)
        shutil.rmtree(folder)


def test_completion_of_real_shells():
    with tempfile.TemporaryDirectory() as folder, Daemon(root=board(folder)[0]) as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        env = dict(daemon.env, PATH=f"{CTL.parent}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
        tried = []
        for shell, complete in (("bash", complete_bash), ("fish", complete_fish), ("zsh", complete_zsh)):
            if not shutil.which(shell):
                continue
            tried.append(shell)
            for line, expected in (("edgeprofctl stat", "status"), ("edgeprofctl history --sin", "--since"),
                                   ("edgeprofctl stages ", "cam"), ("edgeprofctl source dis", "disable"),
                                   ("edgeprofctl sensors temperature/c", "temperature/cpu-thermal")):
                offered = complete(env, line, expected) if shell == "zsh" else complete(env, line)
                assert expected in offered, (shell, line, offered)
        # a daemon that hangs: a second, and nothing
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            for verb in ("stages", "report"):  # report has several kinds of names
                begin = time.monotonic()
                done = subprocess.run([str(CTL), "--complete", verb, ""], env=env, capture_output=True, timeout=60)
                took = time.monotonic() - begin
                assert not done.stdout + done.stderr and 0.9 < took < 10, (verb, done, took)
            took = []  # the names of this machine are not those of another: it is not asked
            while len(took) < 3 and min(took, default=1) > 0.9:
                begin = time.monotonic()
                done = subprocess.run([str(CTL), "--complete", "-H", "pi", "stages", ""], env=env, capture_output=True, timeout=60)
                took.append(time.monotonic() - begin)
                assert not done.stdout + done.stderr, done
            assert min(took) < 0.9, took
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        return None if len(tried) == 3 else f"only {tried} are installed"


if __name__ == "__main__":
    run_tests(globals())
