#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./run, ./test and ./install share (.ci/setup.sh): installing packages without starting what they
bring, and showing how far a build is."""
import os
import pathlib
import pty
import re
import shutil
import subprocess
import tempfile

from harness import SOURCE, run_tests

STUBS = {
    "apt-get": '[ "$1" != update ] || exit 0; cat "$EDGEPROF_POLICY" >"$LOG.policy" 2>&1; sh "$EDGEPROF_POLICY"; echo "policy $?" >>"$LOG"; exit ${APT_STATUS:-0}',
    "dpkg-query": 'for last; do :; done; case " $PRESENT " in *" $last "*) echo installed ;; esac',
    "systemctl": 'echo "systemctl $*" >>"$LOG"',
    "deb-systemd-helper": 'echo "helper $*" >>"$LOG"',
    "update-rc.d": 'echo "update-rc.d $*" >>"$LOG"',
    "sudo": 'exec "$@"',
}


def setup(script, **environment):
    """The output and the log of .ci/setup.sh on a machine whose package manager is a stub."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        for name, text in STUBS.items():
            (place / name).write_text("#!/bin/sh\n" + text + "\n")
            (place / name).chmod(0o755)
        if "policy" in environment:
            (place / "policy-rc.d").write_text(environment["policy"])
        env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", LOG=str(place / "log"),
                   EDGEPROF_POLICY=str(place / "policy-rc.d"), APT_STATUS=environment.get("status", "0"),
                   PRESENT=environment.get("present", ""))
        done = subprocess.run(["bash", "-c", "set -euo pipefail\n. .ci/setup.sh\n" + script], cwd=SOURCE, env=env,
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        log = (place / "log").read_text() if (place / "log").exists() else ""
        policy = (place / "policy-rc.d").read_text() if (place / "policy-rc.d").exists() else None
        return done, log, policy


def test_no_service_of_a_package_is_left_running_or_enabled():
    done, log, policy = setup("install_packages there mosquitto", present="there")
    assert done.returncode == 0 and log.startswith("policy 101\n") and policy is None, (done, log, policy)
    assert "systemctl disable --now mosquitto\n" in log and "helper disable mosquitto.service\n" in log, log
    done, log, policy = setup("install_packages prometheus openssh-server")
    assert "systemctl disable --now prometheus\n" in log and "systemctl disable --now ssh\n" in log, log
    done, log, policy = setup("install_packages mosquitto", policy="exit 42")
    assert log.startswith("policy 42\n") and policy == "exit 42", (log, policy)  # the machine's own stays
    done, log, policy = setup("install_packages mosquitto", status="100")
    assert done.returncode == 1 and "could not install: mosquitto" in done.stderr and policy is None, (done, policy)
    done, log, policy = setup("install_packages mosquitto other", present="mosquitto")
    assert "policy" in log and "disable" not in log, log  # one that was there before stays as it is


def test_who_may_not_install_is_told_so():
    done, log, policy = setup("id() { echo 1000; }\nsudo() { return 1; }\ninstall_packages other")
    assert done.returncode == 1 and log == "" and policy is None, (done, log)
    done, log, policy = setup("id() { echo 1000; }\ncommand() { [ $2 != sudo ] && builtin command \"$@\"; }\ninstall_packages other")
    assert done.returncode == 1 and "needs root" in done.stderr and log == "", (done, log)


def test_building_shows_its_progress():
    done, _, _ = setup("for i in $(seq 1000); do echo \"[$i/1000] Compiling x\"; done | progress")
    assert done.stderr.splitlines() == [f"building: {n} of 1000" for n in (1, 250, 500, 750, 1000)], done
    main, side = pty.openpty()
    subprocess.run(["bash", "-c", ". .ci/setup.sh; printf '[1/2] Compiling a\\n[2/2] Linking b\\n' | progress"],
                   cwd=SOURCE, stderr=side, timeout=60, check=True)
    os.close(side)
    seen = os.read(main, 4096).decode()
    os.close(main)
    assert seen == "\r\x1b[K[1/2] Compiling a\r\x1b[K[2/2] Linking b\r\x1b[K", seen


def test_a_folder_has_one_set_of_options():
    for name in ("run", "install", "test"):
        text = (SOURCE / name).read_text()
        assert "\tbuild_release\n" in text or "\nbuild_release\n" in text, name
        assert not re.search(r"\bbuild build-release\b", text), name
    assert "meson setup" not in (SOURCE / "README.md").read_text()  # what another folder has been set up for


def test_a_folder_that_somebody_configured_otherwise_is_brought_back():
    if not shutil.which("meson") or not shutil.which("ninja"):
        return "no meson or ninja here"
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place, "meson.build").write_text("project('x')\n")
        done, _, _ = setup(f"""cd {place}
            build out --prefix=/usr
            build out --prefix=/usr
            meson configure out -Dprefix=/opt
            build out --prefix=/usr
            touch meson.build # ninja configures it again, with the same options
            build out --prefix=/usr
            build out --prefix=/usr
            grep -x 'prefix = .*' out/meson-private/cmd_line.txt""")
        assert re.findall("configuring.*", done.stderr) == ["configuring out", "configuring out again"], done
        assert done.stdout.splitlines()[-1] == "prefix = /usr", done
    return None


if __name__ == "__main__":
    run_tests(dict(globals()))
