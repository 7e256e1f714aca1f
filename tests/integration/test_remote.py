#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl bridge, and -H: the daemon of another machine, reached by ssh through a real sshd."""
import contextlib
import getpass
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness import CTL, Daemon, board, program, run_tests, until

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
CALL = b'{"method":"org.varlink.service.GetInfo"}\0'


def bridge(daemon, **options):
    return subprocess.Popen([str(CTL), "bridge"], env=daemon.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


def frames(data):
    return [json.loads(frame) for frame in data.split(b"\0") if frame]


def test_bridge_passes_bytes_and_the_end_on():
    with Daemon() as daemon:
        done = subprocess.run([str(CTL), "bridge"], env=daemon.env, input=CALL * 3, capture_output=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done  # the end of stdin came last, all replies are there
        assert [frame["parameters"]["product"] for frame in frames(done.stdout)] == ["edgeprofd"] * 3
        with bridge(daemon) as child:  # one after the other: nothing waits for a full buffer
            for _ in range(3):
                child.stdin.write(CALL)
                child.stdin.flush()
                data = b""
                while not data.endswith(b"\0"):
                    data += os.read(child.stdout.fileno(), 65536)
                assert frames(data)[0]["parameters"]["product"] == "edgeprofd"
            child.stdin.write(b"no JSON\0")
            child.stdin.flush()
            child.stdout.read()  # to the end, though stdin is open: the daemon hung up
            assert child.wait(60) == 0
        # a reader that has gone
        with bridge(daemon) as child:
            child.stdout.close()
            assert child.wait(60) == 0
        with bridge(daemon) as child:
            child.stdin.write(CALL)
            child.stdin.flush()
            os.read(child.stdout.fileno(), 1)
            daemon.stop()
            assert child.wait(60) == 0
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(CTL), "bridge"], env=dict(os.environ, EDGEPROF_RUNTIME_DIR=folder), input=CALL,
                              capture_output=True, timeout=60)
        assert done.returncode == 69 and b"cannot connect to edgeprofd" in done.stderr and not done.stdout, done


def test_bridge_holds_back_what_nobody_reads():
    """A peer that sends calls and reads no reply: neither side's bytes pile up in the bridge."""
    with Daemon() as daemon, bridge(daemon) as child:
        os.set_blocking(child.stdin.fileno(), False)
        sent, idle = 0, time.monotonic()
        while time.monotonic() < idle + 1 and sent < 64 << 20:
            try:
                sent += os.write(child.stdin.fileno(), CALL * 1000)
                idle = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        assert sent < 8 << 20, f"{sent} bytes were taken"
        child.kill()


# A helper that stands for ssh where a test is about what ssh is given, and what becomes of its end.
@contextlib.contextmanager
def in_place_of_ssh(daemon, script):
    path = daemon.dir / "ssh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    daemon.env["EDGEPROF_SSH"] = f"{path} -i key"
    yield
    del daemon.env["EDGEPROF_SSH"]


def test_names_that_ssh_could_take_for_options_are_refused():
    with Daemon() as daemon, in_place_of_ssh(daemon, f"touch {daemon.dir}/ran; exit 1"):
        for name in ("-oProxyCommand=x", "-x", "a,-b", "u@-oX", "-u@h", "@h", "u@", "", "a,", "a b", "a\nb", "a\x1bb", "ä",
                     "x" * 300, ",".join("abcdefghi")):
            done = daemon.ctl("-H", name, "status")
            assert done.returncode == 64 and "invalid value" in done.stderr, (name, done)
            assert "\x1b" not in done.stderr
        for words in (["-H", "a,b", "sensors"], ["-H", "a", "emit", "x:1|g"], ["-H", "a", "doctor"], ["-H", "a", "bridge"],
                      ["-H", "a", "exec", "true"], ["-H", "a", "model-size", "/"], ["-H", "a", "targets"],
                      ["-H", "a", "parse", "tegrastats"],
                      ["-H", "a", "status", "--socket", "/x"]):
            done = daemon.ctl(*words)
            assert done.returncode == 64 and not done.stdout, done
        assert not (daemon.dir / "ran").exists()


def test_what_ssh_is_given_and_how_its_end_is_reported():
    with Daemon() as daemon:
        with in_place_of_ssh(daemon, f'printf "%s\\n" "$@" >{daemon.dir}/words; exec {CTL} bridge'):
            done = daemon.ctl("-H", "pi@cam1", "status", "--timeout", "2500ms")
            assert done.returncode == 0 and "edgeprofd " in done.stdout, done
            assert (daemon.dir / "words").read_text().split("\n")[:-1] == [
                "-i", "key", "-T", "-o", "ConnectTimeout=3", "--", "pi@cam1", "edgeprofctl", "bridge"]
            done = daemon.ctl("-H", "a,b", "status")  # passwords of two at once cannot be typed
            assert done.returncode == 0 and "-o\nBatchMode=yes\n" in (daemon.dir / "words").read_text(), done
        for code, reason, status in ((255, "ssh failed", 69), (127, "edgeprofctl is not installed there", 69),
                                     (69, "edgeprofd does not run there", 69), (64, "edgeprofctl is too old there", 69),
                                     (77, "permission denied by edgeprofd", 77), (3, "the connection was closed", 69)):
            with in_place_of_ssh(daemon, f"echo reason of ssh >&2; exit {code}"):
                done = daemon.ctl("-H", "cam1", "status")
                assert done.returncode == status and reason in done.stderr and "cam1" in done.stderr, done
                assert done.stderr.startswith("reason of ssh\n") and not done.stdout, done
        with in_place_of_ssh(daemon, "exec sleep 1000"):  # it never answers, and is ended
            done = daemon.ctl("-H", "cam1", "status", "--timeout", "200ms")
            assert done.returncode == 69 and "no reply within 0.2 s" in done.stderr, done
        with in_place_of_ssh(daemon, f"echo $$ >{daemon.dir}/pid; trap '' TERM; kill -STOP $$"):
            daemon.ctl("-H", "cam1", "status", "--timeout", "200ms")
            pid = int((daemon.dir / "pid").read_text())
            until("ssh is gone", lambda: not os.path.exists(f"/proc/{pid}"))
        daemon.env["EDGEPROF_SSH"] = str(daemon.dir / "absent")
        done = daemon.ctl("-H", "cam1", "status")
        assert done.returncode == 69 and "cannot run ssh: No such file" in done.stderr, done


@contextlib.contextmanager
def sshd(folder):
    """A server of this user's on the loopback interface, with keys and a configuration of its own: the options of ssh
    that reach it."""
    folder = pathlib.Path(folder)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True, timeout=60)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = folder / "sshd_config"
    config.write_text(f"""Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv PATH={folder}:/usr/bin:/bin
""")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    (folder / "known").write_text(f"[127.0.0.1]:{port} " + (folder / "host.pub").read_text())
    with open(folder / "log", "wb") as log, \
            program([SSHD, "-D", "-e", "-f", str(config)], os.environ, stdout=log, stderr=log) as server:

        def listens():
            assert server.poll() is None, (folder / "log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
            return False

        until("sshd listens", listens)
        yield (f"ssh -F none -p {port} -i {folder}/user -o BatchMode=yes -o IdentitiesOnly=yes "
               f"-o UserKnownHostsFile={folder}/known")


def test_a_real_sshd():
    if not SSHD or not shutil.which("ssh"):
        return "openssh-server is not installed"
    with tempfile.TemporaryDirectory(prefix="edgeprof-ssh.") as folder, sshd(folder) as ssh, \
            Daemon(root=board(folder)[0]) as daemon:
        # what the other machine has on its PATH, and where its daemon is
        there = pathlib.Path(folder) / "edgeprofctl"
        there.write_text(f"#!/bin/sh\nexport EDGEPROF_RUNTIME_DIR={daemon.run_dir}\nexec {CTL} \"$@\"\n")
        there.chmod(0o755)
        here = dict(os.environ, EDGEPROF_SSH=ssh, EDGEPROF_RUNTIME_DIR="/nonexistent", TZ="UTC")
        me = getpass.getuser() + "@127.0.0.1"

        def ctl(*words):
            return subprocess.run([str(CTL), "--timeout", "30", *words], env=here, capture_output=True, text=True, timeout=60)

        done = ctl("-H", me, "sensors", "temperature", "-j")
        assert done.returncode == 0, (done, (pathlib.Path(folder) / "log").read_text())
        assert {m["name"]: m["value"] for m in json.loads(done.stdout)["metrics"]}["temperature/cpu-thermal"] == 50
        for verb in (["status"], ["apps"], ["self"], ["metrics"], ["watch", "--count", "2"], ["version"], ["rules"],
                     ["history", "temperature/max"], ["mark", "from afar"], ["events"]):
            done = ctl("--remote", me, *verb)
            assert done.returncode in (0, 2) and "Sanitizer" not in done.stderr, (verb, done)
        done = ctl("-H", me, "events")
        assert "from afar" in done.stdout, done
        # several: one that can't be reached hides none
        done = ctl("-H", f"{me},nobody@127.0.0.1", "-H", "127.0.0.1", "status")
        assert done.returncode == 69, done
        rows = done.stdout.splitlines()
        assert len(rows) == 4 and rows[1].startswith(me) and "50.0 °C" in rows[1] and "50.0 °C" in rows[3], done
        assert "cannot connect to nobody@127.0.0.1: ssh failed" in rows[2] and "Permission denied" in done.stderr, done
        hosts = json.loads(ctl("-j", "-H", f"{me},nobody@127.0.0.1", "status").stdout)["hosts"]
        assert hosts[0]["status"]["temperature_celsius"] == 50 and "ssh failed" in hosts[1]["reason"], hosts
        # a follower whose daemon goes away
        with program([CTL, "--timeout", "30", "-H", me, "events", "--follow"], here, stdout=subprocess.PIPE) as follower:
            assert follower.stdout.readline()
            daemon.call("Mark", label="while following")
            until("it is shown", lambda: b"while following" in follower.stdout.readline())
            follower.send_signal(signal.SIGINT)
            follower.wait(60)
        daemon.stop()
        done = ctl("-H", me, "status")
        assert done.returncode == 69 and f"cannot connect to {me}: edgeprofd does not run there" in done.stderr, done
        there.unlink()
        done = ctl("-H", me, "status")
        assert done.returncode == 69 and "edgeprofctl is not installed there" in done.stderr, done


if __name__ == "__main__":
    run_tests(globals())
