#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Diagnoses of real trouble on this machine: apps of 30 frames a second, each with one trouble after a good
time; those that do not disturb each other at once. The true cause must be the first finding. Where the kernel
counted another trouble, or not enough of this one, a scenario is skipped with that as its reason."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from harness import BUILD, SOURCE, Daemon, run_tests, until

QUIET, TROUBLE, MIB = 6, 8, 1 << 20  # seconds, seconds, bytes
CPUS = sorted(os.sched_getaffinity(0))
CGROUP = pathlib.Path("/sys/fs/cgroup")
BURN = "while :; do :; done"
HOARD = f"import time; kept = b'x' * {130 * MIB}; time.sleep(600)"
PYTHON_APP = """
import gc, time
import edgeprof
edgeprof.connect("garbage")
gc.disable()
kept = [[i, [i]] for i in range(1500000)]
due = begin = time.monotonic()
for number in range(1 << 30):
    with edgeprof.frame():
        with edgeprof.stage("capture"):
            due = max(due + 1 / 30, time.monotonic())
            time.sleep(max(0, due - time.monotonic()))
        with edgeprof.stage("infer"):
            end = time.thread_time() + 0.003
            while time.thread_time() < end:
                pass
            if due - begin > 6 and number % 30 == 0:
                gc.collect()
"""


class Skip(Exception):
    pass


class Machine:
    """The daemon, and the programs and control groups of a phase; all end with it."""

    def __init__(self, stack):
        self.stack = stack
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.daemon = stack.enter_context(Daemon())
        self.begin = time.monotonic()
        self.waited = {}  # share of the time, by app

    def start(self, *command, cpu=None, group=None, **options):
        """A child in a session of its own, on one processor and in a control group if wanted."""
        env = dict(self.daemon.env, PYTHONPATH=str(SOURCE / "client" / "python"))
        process = subprocess.Popen(
            [str(word) for word in command], env=env, start_new_session=True,
            preexec_fn=group and (lambda: (group / "cgroup.procs").write_text("0")), **options)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        ahead_of_others(process.pid)
        os.sched_setaffinity(process.pid, CPUS if cpu is None else {CPUS[cpu]})
        return process

    def app(self, name, size=MIB, **options):
        """The app, with a file of so many bytes that no cache has."""
        path = self.folder / name
        with open(path, "wb") as file:
            file.write(os.urandom(size))
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return self.start(BUILD / "tests/integration/live-app", name, path, QUIET, **options)

    def named(self, name, program, *arguments, **options):
        """The program under another name, by which a finding must call it."""
        path = self.folder / name
        path.symlink_to(program)
        return self.start(path, "-c", *arguments, **options)

    def group(self, name, v1, v2):
        """A control group of the controller, which version 2 calls v2; whether it is of version 2."""
        unified = (CGROUP / "cgroup.controllers").exists()
        folder = (CGROUP if unified else CGROUP / v1) / f"edgeprof-live-{name}-{os.getpid()}"
        try:
            if unified:
                (CGROUP / "cgroup.subtree_control").write_text(f"+{v2}")
            folder.mkdir()
        except OSError as error:
            raise Skip(f"no control group for {v1}: {error.strerror}") from None
        self.stack.callback(lambda: until("the control group is empty", lambda: removed(folder)))
        return folder, unified

    @contextlib.contextmanager
    def trouble(self, app, others=0.2, seconds=TROUBLE):
        """From the end of the good time on. Where the app waited for a processor for more than that share of
        it, and that is not its trouble, the first cause may be another."""
        time.sleep(max(0, self.begin + QUIET - time.monotonic()))
        waited, since = scheduled(app.pid)[1], time.monotonic()
        yield since + seconds
        time.sleep(max(0, since + seconds - time.monotonic()))
        assert app.poll() is None, f"the app ended with {app.returncode}"
        share = (scheduled(app.pid)[1] - waited) / (time.monotonic() - since)
        if share > others:
            raise Skip(f"the app waited for a processor in {100 * share:.0f} % of the time")
        self.waited.update(dict.fromkeys(app.args, share))  # its name is one of them

    def first(self, app, cause, text=""):
        """The first finding is of the cause, and its text has the string."""
        found = self.daemon.call("Diagnose", app=app)["diagnoses"][0]
        first = (found["findings"] or [{"cause": None}])[0]
        right = found["status"] == "findings" and first["cause"] == cause and text in first["text"]
        if not cause:
            right = found["status"] == "healthy" and all(f["confidence"] == "low" for f in found["findings"])
        if not right and first["cause"] in ("cpu_contention", "scheduling") and self.waited[app] > 0.05:
            raise Skip(f"'{first['cause']}': the app waited for a processor in {100 * self.waited[app]:.0f} % of the time")
        assert right, (self.waited[app], json.dumps(found, indent=1))


def ahead_of_others(pid):
    """What else a busy machine does disturbs the session of the process little, where that is allowed."""
    with contextlib.suppress(OSError):
        if os.getsid(pid) == pid:
            pathlib.Path(f"/proc/{pid}/autogroup").write_text("-15")


def removed(folder):
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def scheduled(pid):
    """Seconds that its main thread computed, and waited for a processor."""
    return [int(ns) / 1e9 for ns in pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[:2]]


def alone(name, cause, **options):
    """A trouble that the app makes itself, or none."""
    def scenario(machine):
        python = name == "garbage"
        with machine.trouble(machine.start(sys.executable, "-c", PYTHON_APP, name) if python else machine.app(name),
                             **options):
            pass
        machine.first(name, cause)
    return scenario


def hog(machine):
    with machine.trouble(machine.app("hog", cpu=0), others=1):
        burner = machine.named("burner", "/bin/sh", BURN, cpu=0)
    share = scheduled(burner.pid)[0] / TROUBLE
    if share < 0.3:
        raise Skip(f"the other process got only {100 * share:.0f} % of a processor")
    machine.first("hog", "cpu_contention", text=f"burner ({burner.pid})")


def pipe(machine):
    """The camera delivers a third of its frames."""
    app = machine.app("pipe", stdin=subprocess.PIPE, bufsize=0)
    done = threading.Event()

    def feed():
        with contextlib.suppress(BrokenPipeError):
            while not done.wait(pause):
                app.stdin.write(b"x")

    pause = 1 / 30
    feeder = threading.Thread(target=feed)
    feeder.start()
    machine.stack.callback(feeder.join)
    machine.stack.callback(done.set)
    with machine.trouble(app):
        pause = 1 / 10
    machine.first("pipe", "capture_stall")


def throttled(name, v1, v2, amount):
    """What the app needs of the disk in a second takes several, in a control group of its own."""
    def scenario(machine):
        device = os.stat(machine.folder).st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        folder, unified = machine.group(name, "blkio", "io")
        with machine.trouble(machine.app(name, group=folder)):
            try:
                (folder / ("io.max" if unified else f"blkio.throttle.{v1}_device")).write_text(
                    f"{number} {f'{v2}=' if unified else ''}{amount}")
            except OSError as error:
                raise Skip(f"the disk {number} cannot be throttled: {error.strerror}") from None
        machine.first(name, "io_stall")
    return scenario


def memory(machine):
    """The model of 64 MiB and what another process takes do not fit into the control group's memory."""
    folder, unified = machine.group("memory", "memory", "memory")
    (folder / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(160 * MIB))
    with machine.trouble(machine.app("memory", 64 * MIB, cpu=0, group=folder)):
        machine.named("hoarder", sys.executable, HOARD, group=folder)
    machine.first("memory", "memory_pressure")


PHASES = [
    {"leak": alone("leak", "memory_leak", others=0.06, seconds=34 - QUIET)},  # next to the others
    {"healthy": alone("healthy", None), "buffer": alone("buffer", "pauses", others=0.12),
     "garbage": alone("garbage", "pauses", others=0.12), "pipe": pipe},
    {"hog": hog, "disk": throttled("disk", "read_bps", "rbps", 2 * MIB),
     "fsync": throttled("fsync", "write_iops", "wiops", 8)},
    {"memory": memory},
]
outcome = {}  # None, the reason why it was skipped, or what was raised


def run_phase(scenarios):
    def run(name):
        try:
            outcome[name] = scenarios[name](machine)
        except Skip as skipped:
            outcome[name] = str(skipped)
        except Exception as error:  # pylint: disable=broad-except
            outcome[name] = error

    try:
        with contextlib.ExitStack() as stack:
            machine = Machine(stack)
            threads = [threading.Thread(target=run, args=[name]) for name in scenarios]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    except Exception as error:  # the daemon did not end well, or a program
        outcome.update(dict.fromkeys(scenarios, error))


def test_of(name):
    def test():
        if not outcome:
            meanwhile = threading.Thread(target=run_phase, args=[PHASES[0]])
            meanwhile.start()
            for phase in PHASES[1:]:
                run_phase(phase)
            meanwhile.join()
        if isinstance(outcome[name], Exception):
            raise outcome[name]
        return outcome[name]
    return test


if __name__ == "__main__":
    # covers G2.16, G3.8, G3.9
    with contextlib.suppress(OSError):
        os.setsid()
    ahead_of_others(os.getpid())
    run_tests({f"test_{name}": test_of(name) for phase in PHASES for name in phase})
