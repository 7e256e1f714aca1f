# SPDX-License-Identifier: Apache-2.0
"""What the integration tests stand on: a real daemon in a run directory of its own, a raw Varlink
client, edgeprofctl, and waiting for things to become true. Only the standard library."""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("EDGEPROF_SOURCE", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("EDGEPROF_BUILD", SOURCE / "build"))
SHARED = pathlib.Path(os.environ.get("EDGEPROF_SHARED", SOURCE.parent / "shared"))
DAEMON = BUILD / "daemon" / "edgeprofd"
CTL = BUILD / "client" / "edgeprofctl" / "edgeprofctl"
DEMO = BUILD / "client" / "examples" / "demo-pipeline"
WRITER = BUILD / "tests" / "integration" / "event-writer"

sys.path.insert(0, str(SOURCE / "tests" / "tools"))

# what a stopped daemon leaves in its run directory, all of it on purpose
KEPT = {"clock", "history", "timeline", "alerts", "holds", "mqtt", "recorder", "recordings", "reports", "runs", "sessions"}

PATIENCE = 30.0  # how long a thing that must happen may take before the test says it does not


def skip(reason):
    print(reason)
    sys.exit(77)


def until(what, condition, patience=PATIENCE, pause=0.02):
    """Waits until condition() is true and returns its value; fails with what was waited for. Asks for at most
    a quarter of the time: a condition that starts a program leaves the processors to other tests."""
    end = time.monotonic() + patience
    while True:
        begun = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"it never came true: {what}")
        time.sleep(max(pause, min(3 * (now - begun), 1)))


def ctl_for_others(folder):
    """A copy of edgeprofctl there for other users: the folder of the build may be closed to them."""
    return shutil.copy(CTL, folder)


def board(folder, proc=None):
    """A tree below the folder of a board with one thermal zone, at 50 °C: the tree, and the zone's file."""
    root = pathlib.Path(folder) / "root"
    zone = root / "sys/class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (root / "proc").symlink_to(proc) if proc else (root / "proc").mkdir()
    (zone / "type").write_text("cpu-thermal\n")
    (zone / "temp").write_text("50000\n")
    return root, zone / "temp"


class VarlinkError(Exception):
    def __init__(self, name, parameters):
        super().__init__(f"{name} {parameters}")
        self.name = name
        self.parameters = parameters


class Varlink:
    """A connection; speaks bytes where a test wants to."""

    def __init__(self, path, timeout=10.0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # with a timeout of Python's a full backlog would be an error at once
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(timeout), 0))
        self.socket.connect(str(path))
        self.socket.settimeout(timeout)
        self.buffer = b""

    def close(self):
        self.socket.close()

    def send(self, method, parameters=None, **flags):
        message = {"method": method if "." in method else "io.edgeprof." + method}
        if parameters:
            message["parameters"] = parameters
        message.update(flags)
        self.socket.sendall(json.dumps(message).encode() + b"\0")

    def receive(self):
        """The next message, or None at the end of the stream."""
        while b"\0" not in self.buffer:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.buffer += data
        frame, self.buffer = self.buffer.split(b"\0", 1)
        assert len(frame) < 64 * 1024, f"a frame of {len(frame)} bytes"
        return json.loads(frame)

    def reply(self):
        message = self.receive()
        if message is None:
            raise EOFError("the daemon closed the connection")
        if "error" in message:
            raise VarlinkError(message["error"], message.get("parameters", {}))
        return message

    def call(self, method, **parameters):
        self.send(method, parameters)
        return self.reply().get("parameters", {})

    def stream(self, method, **parameters):
        """The replies of a call with more."""
        self.send(method, parameters, more=True)
        while True:
            message = self.reply()
            yield message.get("parameters", {})
            if not message.get("continues"):
                return


class Daemon:
    """edgeprofd in a temporary run directory."""

    program = [str(DAEMON), "-c"]
    more = []  # arguments behind the configuration
    called = set()  # with what edgeprofctl was called, by any of this process

    def __init__(self, config="", root=None, run_dir=None, env=None):
        self.dir = pathlib.Path(run_dir or tempfile.mkdtemp(prefix="edgeprof-test."))
        self.own_dir = run_dir is None
        self.run_dir = self.dir / "run"
        self.run_dir.mkdir(exist_ok=True)
        self.config_path = self.dir / "edgeprofd.conf"
        self.config_path.write_text(config)
        self.root = root
        self.env = dict(os.environ, EDGEPROF_RUNTIME_DIR=str(self.run_dir), **(env or {}))
        for name in ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "JOURNAL_STREAM"):
            if name not in (env or {}):
                self.env.pop(name, None)
        self.process = None
        self.log_path = self.dir / "log"

    @property
    def socket(self):
        return self.run_dir / "io.edgeprof"

    @property
    def pid(self):
        return self.process.pid

    def start(self, wait=True):
        command = [*self.program, str(self.config_path), *self.more]
        if self.root:
            command += ["--root", str(self.root)]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, env=self.env, stderr=log, stdout=log)
        if wait:
            until("the daemon answers", self.answers)
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{self.log()}")
        try:
            with contextlib.closing(Varlink(self.socket, 2.0)) as client:
                return client.call("org.varlink.service.GetInfo")
        except (OSError, EOFError):
            return None

    def log(self):
        return self.log_path.read_text(errors="replace")

    def client(self, timeout=10.0):
        return Varlink(self.socket, timeout)

    def call(self, method, **parameters):
        with contextlib.closing(self.client()) as client:
            return client.call(method, **parameters)

    def metric(self, name):
        """The metric as ListMetrics tells it, or None."""
        try:
            return next((m for m in self.call("ListMetrics", glob=name)["metrics"] if m["name"] == name), None)
        except VarlinkError as error:
            if error.name != "io.edgeprof.NotFound":
                raise
            return None

    def ctl(self, *arguments, **options):
        """Looks for leaks in the first of equal calls only: that takes as long as all else of a short run."""
        env = self.env
        if arguments in self.called:
            env = dict(env, ASAN_OPTIONS=env.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
        self.called.add(arguments)
        return subprocess.run(
            [str(CTL), *arguments], env=env, capture_output=True, text=True, timeout=60, **options
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends it as a service manager does; its exit status must be 0 (also under ASan)."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise AssertionError(f"the daemon did not stop:\n{self.log()}")
        if self.process and self.process.returncode != 0:
            raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{self.log()}")

    def clean(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.own_dir:
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.stop()
            else:
                sys.stderr.write(self.log())
        finally:
            self.clean()


@contextlib.contextmanager
def program(command, env, **options):
    """A child that is ended by pid when the block ends."""
    process = subprocess.Popen([str(word) for word in command], env=env, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ends_are_hidden():
    """Why a bystander cannot know how a process ended that its parent waited for at once; None: Linux 6.15 tells."""
    child = os.fork()
    if child == 0:
        os._exit(3)
    pidfd = os.pidfd_open(child)
    os.waitpid(child, 0)
    asked = bytearray(struct.pack("Q", 8).ljust(64, b"\0"))  # PIDFD_INFO_EXIT
    with contextlib.suppress(OSError):
        fcntl.ioctl(pidfd, 0xC040FF0B, asked)  # PIDFD_GET_INFO
    os.close(pidfd)
    return None if struct.unpack_from("i", asked, 60)[0] == 3 << 8 else "this kernel does not keep how a process ended (PIDFD_GET_INFO)"


def run_tests(namespace):
    """Runs the test_… functions of a module in order: all but those in $EDGEPROF_WITHOUT, those that are
    named, or with --part 2/3 every third from the second on. Prints what failed; exits."""
    import traceback

    # What is ignored stays so in every child: nohup(1) and the "&" of a script ignore some of these.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    wanted = sys.argv[1:]
    names = [name for name in namespace if name.startswith("test_")]
    if wanted and wanted[0] != "--part":
        names = [name for name in names if name in wanted]
    else:
        without = os.environ.get("EDGEPROF_WITHOUT", "").split()
        names = [name for name in names if name not in without]
    if wanted[:1] == ["--part"]:
        part, parts = map(int, wanted[1].split("/"))
        names = names[part - 1::parts]
    failed = skipped = 0
    for name in names:
        begin = time.monotonic()
        try:
            reason = namespace[name]()
        except Exception:  # a test's failure must not hide the next test
            failed += 1
            print(f"FAILED {name}")
            traceback.print_exc(file=sys.stdout)
        else:
            word = "skipped" if isinstance(reason, str) else "ok"
            skipped += word == "skipped"
            print(f"{word} {name} ({time.monotonic() - begin:.1f} s){': ' + reason if word == 'skipped' else ''}")
        sys.stdout.flush()
    print(f"{len(names) - failed - skipped} ok, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


def run_tests_with_broker(namespace):
    """The same; skips where there is no mosquitto."""
    import mosquitto

    try:
        mosquitto.Broker().close()
    except mosquitto.Absent as absent:
        skip(str(absent))
    run_tests(namespace)
