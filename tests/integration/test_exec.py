#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl exec: the command's exit status, what is measured, controls that hold or refuse."""
import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile

from harness import CTL, Daemon, ctl_for_others, program, run_tests, until

RUNS = int(os.environ.get("EDGEPROF_EXEC_RUNS", 100))
CPU = min(os.sched_getaffinity(0))
CGROUPS = pathlib.Path("/sys/fs/cgroup")
USER = {"user": 65534, "group": 65534, "extra_groups": []}
KEYS = {
    "command", "start_us", "exit_status", "signal", "limit_reached", "wall_s", "user_s", "system_s", "cpu_percent",
    "user_percent", "system_percent", "run_delay_ms", "wait_percent", "iodelay_ms", "threads_peak", "max_rss_bytes",
    "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches", "file_system_inputs",
    "file_system_outputs", "read_bytes", "write_bytes", "environment", "cycles", "instructions", "cache_misses",
    "branch_misses", "ipc", "controls",
}
WAIT = "import sys, time\nprint('up', flush=True)\nsys.stdin.read()\n"


def run(*arguments, ctl=CTL, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([str(ctl), "exec", *map(str, arguments)], **options)


def measured(*arguments, **options):
    """The result of a run with exit status 0."""
    done = run("-j", *arguments, **options)
    assert done.returncode == 0, done
    return json.loads(done.stderr)


def python(code):
    return [sys.executable, "-c", code]


def may_be_real_time():
    done = subprocess.run(["chrt", "-r", "50", "true"], capture_output=True)
    return done.returncode == 0


def quota_refusal():
    """None when a quota can be set here, else why not."""
    done = run("--quota", "50%", "true")
    return None if done.returncode == 0 else done.stderr


def groups_left():
    return [folder for part in (CGROUPS, CGROUPS / "cpu") for folder in part.glob("edgeprofctl-exec-*")]


# covers G1.7
def test_the_exit_status_is_the_commands():
    for status in (0, 1, 3, 125, 255):
        assert run("sh", "-c", f"exit {status}").returncode == status
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGINT):
        done = run("-j", "sh", "-c", f"kill -{int(number)} $$")
        result = json.loads(done.stderr)
        assert done.returncode == 128 + number, done
        assert (result["signal"], result["exit_status"]) == (number, None), result


def test_a_command_that_cannot_run_is_named():
    with tempfile.TemporaryDirectory() as folder:
        plain = pathlib.Path(folder) / "plain\033[2J"
        plain.write_text("no program")
        for name, status in (("/nonexistent/program", 127), ("edgeprof-no-such-program", 127), (plain, 126)):
            done = run("-o", folder + "/out", name)
            assert done.returncode == status and done.stderr.startswith("edgeprofctl: cannot run "), done
            assert "\033" not in done.stderr and done.stderr.count("\n") == 1, done
        assert os.listdir(folder) == [plain.name], os.listdir(folder)


def test_options_behind_the_command_are_the_commands():
    done = run("--", "echo", "--json", "-o", "x", "--", "--help")
    assert (done.returncode, done.stdout) == (0, "--json -o x -- --help\n"), done
    done = run("echo", "--version")
    assert done.returncode == 0 and "edgeprofctl" not in done.stdout, done
    assert run().returncode == 64
    assert "Usage: edgeprofctl exec" in run("--help").stdout


# covers G1.7
# covers G4.9
def test_what_is_measured_is_what_happened():
    code = """if True:
        import resource, threading, time
        block = bytearray(b"x" * (100 << 20))
        for _ in range(50):
            time.sleep(0.0001)
        gate = threading.Event()
        threads = [threading.Thread(target=gate.wait) for _ in range(4)]
        [thread.start() for thread in threads]
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        gate.set()
        print(*resource.getrusage(resource.RUSAGE_SELF))
    """
    done = run("-j", *python(code))
    result, own = json.loads(done.stderr), [float(word) for word in done.stdout.split()]
    assert KEYS - set(result) == set(), KEYS - set(result)
    assert result["user_s"] >= own[0] and result["system_s"] >= own[1], (result, own)
    assert 100 << 20 <= own[2] * 1024 <= result["max_rss_bytes"] < 400 << 20, (result, own)
    for name, index in (("minor_faults", 6), ("major_faults", 7), ("file_system_inputs", 9),
                        ("file_system_outputs", 10), ("voluntary_switches", 14), ("involuntary_switches", 15)):
        assert result[name] >= own[index], (name, result, own)
    assert result["voluntary_switches"] >= 50 and result["threads_peak"] >= 5, result
    assert result["read_bytes"] == 512 * result["file_system_inputs"], result
    cpu_s = result["user_s"] + result["system_s"]
    assert result["wall_s"] >= 0.3 and abs(result["cpu_percent"] - 100 * cpu_s / result["wall_s"]) < 0.1, result
    for name in ("cycles", "instructions", "cache_misses", "branch_misses"):
        assert result[name] is not None or result["counters_reason"], result
    assert result["iodelay_ms"] is not None or result["iodelay_reason"], result


def test_waiting_for_a_processor_is_seen():
    busy = "end = __import__('time').process_time() + 0.4\nwhile __import__('time').process_time() < end: pass"
    both = f"{sys.executable} -c \"{busy}\" & {sys.executable} -c \"{busy}\"; wait"
    result = measured("--cpus", CPU, "sh", "-c", both)
    assert result["run_delay_ms"] > 100 and result["wait_percent"] > 10, result


def test_a_small_program_is_not_charged_with_the_wrappers_memory():
    result = measured("sleep", "0.3")
    assert result["max_rss_bytes"] is None or result["max_rss_bytes"] < 4 << 20, result


# covers G1.8
# covers G1.9
def test_environment_and_affinity_are_recorded():
    environment = dict(os.environ, OMP_NUM_THREADS="3", OPENBLAS_NUM_THREADS="2")
    done = run("-j", "--cpus", CPU, "--env", "MKL_NUM_THREADS=4", "--env", "OMP_NUM_THREADS=1", "sh", "-c",
               "echo $MKL_NUM_THREADS $OMP_NUM_THREADS; grep Cpus_allowed_list /proc/self/status", env=environment)
    result = json.loads(done.stderr)
    assert done.stdout.split() == ["4", "1", "Cpus_allowed_list:", str(CPU)], done
    assert result["environment"] == {
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "4"}, result
    assert result["controls"]["affinity"] == str(CPU), result
    assert result["controls"]["policy"] == "SCHED_OTHER" and result["controls"]["quota_percent"] is None, result


def test_niceness_holds():
    nice = min(os.nice(0) + 5, 19)
    assert run("--nice", str(nice), *python("import os; print(os.nice(0))")).stdout == f"{nice}\n"


# covers G1.9
def test_ps_shows_that_the_controls_hold():
    refusal = quota_refusal()
    arguments = ["--cpus", str(CPU), "--rr", "50"] if may_be_real_time() else ["--cpus", str(CPU)]
    with Daemon("[sampling]\ninterval = 200ms\n") as daemon:
        def row_of(pid):
            rows = [row for row in daemon.call("ListProcesses")["processes"] if row["pid"] == pid]
            return rows and "policy" in rows[0] and rows[0]

        code = "import os\nprint(os.getpid(), flush=True)\ninput()"
        with program([CTL, "exec", *arguments, *python(code)], daemon.env, stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as wrapper:
            pid = int(wrapper.stdout.readline())
            assert daemon.ctl("ps", "--watch", str(pid)).returncode == 0
            row = until("the process is listed", lambda: row_of(pid))
            assert row["affinity"] == str(CPU), row
            if "--rr" in arguments:
                assert (row["policy"], row["rt_priority"]) == ("SCHED_RR", 50), row
                assert "SCHED_RR 50" in daemon.ctl("ps").stdout
            wrapper.communicate("\n")
            assert wrapper.returncode == 0
        if refusal:
            return "policy and affinity hold; " + refusal
        code = "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"
        with program([CTL, "exec", "-j", "--quota", "3%", *python(code)], daemon.env,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as wrapper:
            pid = int(wrapper.stdout.readline())
            assert daemon.ctl("ps", "--watch", str(pid)).returncode == 0
            row = until("it was throttled", lambda: (row_of(pid) or {}).get("nr_throttled") and row_of(pid))
            assert row["quota_percent"] == 3, row
            wrapper.send_signal(signal.SIGTERM)
            result = json.loads(wrapper.communicate()[1])
            assert result["controls"]["quota_percent"] == 3, result
            if not os.path.exists("/run/systemd/system"):
                assert result["controls"]["nr_throttled"] > 0, result
            assert result["cpu_percent"] < 60, result
    assert not groups_left(), groups_left()


# covers G1.9
def test_a_refused_control_runs_nothing():
    if os.geteuid() != 0:
        return "needs root, to be an ordinary user"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as programs:
        os.chmod(folder, 0o777)
        os.chmod(programs, 0o755)
        proof = folder + "/ran"
        for control, word in ((["--rr", "50"], "CAP_SYS_NICE"), (["--nice", "-5"], "nice limit"),
                              (["--quota", "50%"], "quota"), (["--cpus", "0-1023"], "available")):
            done = run("-o", folder + "/out", *control, "touch", proof, ctl=ctl_for_others(programs), **USER, cwd=folder)
            assert done.returncode in (64, 69, 77) and word in done.stderr, done
            assert done.stderr.count("\n") == 1, done
        for arguments in (["--rr", "5", "--fifo", "5"], ["--rr", "0"], ["--quota", "0"], ["--env", "x"], ["--cpus", "a"]):
            assert run(*arguments, "touch", proof).returncode == 64, arguments
        assert os.listdir(folder) == [], os.listdir(folder)
    assert not groups_left(), groups_left()


def test_a_limit_ends_the_command_and_its_children():
    # what is ignored stays so in children; one is in a session of its own
    done = run("-j", "--limit", "2s", "sh", "-c", "setsid sleep 1000 & echo $!; wait",
               preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    assert done.returncode == 128 + signal.SIGKILL and json.loads(done.stderr)["limit_reached"], done
    sleeper = pathlib.Path("/proc") / done.stdout.strip() / "stat"
    until("its child is gone", lambda: not sleeper.exists() or sleeper.read_text().split(")")[1].split()[0] == "Z")
    done = run("-j", "--limit", "100ms", "sleep", "1000")
    assert done.returncode == 128 + signal.SIGTERM and json.loads(done.stderr)["limit_reached"], done
    assert not measured("--limit", "1h", "true")["limit_reached"]


def test_signals_are_forwarded_and_orphans_reaped():
    code = """if True:
        import os, signal, sys, time
        for _ in range(50):
            if os.fork() == 0:
                if os.fork() == 0:
                    os._exit(0)
                os._exit(0)
            os.wait()
        parent = os.getppid()
        while len(open(f"/proc/{parent}/task/{parent}/children").read().split()) != 1:
            time.sleep(0.01)
        signal.signal(signal.SIGUSR1, lambda *_: os._exit(9))
        assert os.getpgid(0) == os.getpgid(parent)
        print("up", flush=True)
        while True:
            signal.pause()
    """
    with program([CTL, "exec", *python(code)], os.environ, stdout=subprocess.PIPE) as wrapper:
        assert wrapper.stdout.readline() == b"up\n"
        wrapper.send_signal(signal.SIGUSR1)
        assert wrapper.wait(30) == 9


def test_ctrl_c_reaches_the_command_once():
    code = """if True:
        import os, signal
        count, awaited = 0, {signal.SIGINT, signal.SIGUSR1}
        signal.pthread_sigmask(signal.SIG_BLOCK, awaited)  # none arrives between a look and a wait
        print("up", flush=True)
        while signal.sigwait(awaited) == signal.SIGINT:
            count += 1
            print("interrupted", flush=True)
        os._exit(10 + count)
    """
    pid, master = pty.fork()
    if pid == 0:
        os.execv(str(CTL), [str(CTL), "exec", *python(code)])
    seen = b""
    while b"up" not in seen:
        seen += os.read(master, 4096)
    os.write(master, b"\x03")
    while b"interrupted" not in seen:
        seen += os.read(master, 4096)
    os.kill(pid, signal.SIGUSR1)  # dequeued after an interrupt that would be forwarded
    with contextlib.suppress(OSError):
        while os.read(master, 4096):
            pass
    os.close(master)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 11


def test_stdin_and_stdout_belong_to_the_command():
    done = run("cat", input="text\n")
    assert done.stdout == "text\n" and "exit status 0" in done.stderr, done
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run([CTL, "exec", "-j", "yes"], stdout=closed, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 128 + signal.SIGPIPE and json.loads(done.stderr)["signal"] == signal.SIGPIPE, done
    with open("/dev/full", "w") as full:
        assert run("true", stdout=subprocess.PIPE, stderr=full, capture_output=False).returncode == 74


# covers G4.9
def test_the_result_is_written_as_json():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/result.json"
        done = run("-o", path, "echo", "a\033[2J\u202eb")
        with open(path) as file:
            result = json.load(file)
        assert result["command"] == ["echo", "a\033[2J\u202eb"] and KEYS <= set(result) | {"counters_reason"}
        assert "\033" not in done.stderr and "\u202e" not in done.stderr, done
        assert "Memory" in done.stderr and os.listdir(folder) == ["result.json"], done
        assert all(len(line) <= 60 for line in run("true", env=dict(os.environ, COLUMNS="60")).stderr.splitlines())
        done = run("-o", folder + "/none/result.json", "touch", folder + "/ran")
        assert done.returncode == 74 and not os.path.exists(folder + "/ran"), done
        assert run("-o", "/dev/full", "true").returncode == 74
        assert run("-o", "/dev/full", "false").returncode == 1


def test_short_runs_leave_nothing():
    quota = [] if quota_refusal() else ["--quota", "80%"]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(RUNS):
            done = run("-o", "result.json", *quota, "true", cwd=folder)
            assert done.returncode == 0, done
        assert os.listdir(folder) == ["result.json"], os.listdir(folder)
    assert not groups_left(), groups_left()


# covers G1.17
def test_perf_records_call_stacks():
    with tempfile.TemporaryDirectory() as folder:
        code = "end = __import__('time').process_time() + 0.5\nwhile __import__('time').process_time() < end: pass"
        perf = shutil.which("perf")
        works = perf and subprocess.run([perf, "record", "-g", "-o", folder + "/try", "true"],
                                        capture_output=True).returncode == 0
        done = run("-j", "--perf-record=" + folder + "/stacks", *python(code))
        if not works:
            assert done.returncode in (69, 77) and "perf" in done.stderr, done
            return "perf does not work here: " + done.stderr
        assert done.returncode == 0 and json.loads(done.stderr)["perf_data"] == folder + "/stacks", done
        report = subprocess.run([perf, "script", "-i", folder + "/stacks"], capture_output=True, text=True)
        assert report.stdout.count("python") >= 10, report
        assert run("--perf-record=" + folder + "/stacks", "/nonexistent/program").returncode == 127
        done = run("--perf-record=" + folder + "/none/stacks", "touch", folder + "/ran")
        assert done.returncode == 77 and "perf record failed: " in done.stderr, done
        assert not os.path.exists(folder + "/ran")
        done = run("--perf-record=" + folder + "/stacks", "true", env=dict(os.environ, PATH="/nonexistent"))
        assert done.returncode == 69 and "cannot run perf" in done.stderr, done


if __name__ == "__main__":
    run_tests(globals())
