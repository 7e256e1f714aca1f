#!/usr/bin/env python3
"""What wears a daemon down: settings that cannot work, no room, no descriptors, kills and stops at
any moment, reloads without end. It profiles on, says what is missing, and grows no more."""
import contextlib
import os
import random
import resource
import signal
import socket
import subprocess
import threading
import time

from harness import CTL, DAEMON, DEMO, Daemon, program, run_tests, until


def rss_kib(daemon):
    with open(f"/proc/{daemon.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


def cpu_s(daemon):
    with open(f"/proc/{daemon.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_wrong_password_file_costs_only_mqtt_until_it_is_right():
    daemon = Daemon()
    try:
        secret = daemon.dir / "secret"
        daemon.config_path.write_text(
            f"[mqtt]\nhost = 127.0.0.1\nport = 1\nusername = me\npassword_file = {secret}\n")
        checked = subprocess.run([str(DAEMON), "--check-config", "-c", str(daemon.config_path)],
                                 capture_output=True, text=True, timeout=30)
        assert checked.returncode == 0 and "MQTT would stay off: password_file" in checked.stderr, checked
        daemon.start()
        status = daemon.call("GetStatus")
        assert status["broker"]["state"] == "off", status["broker"]
        assert "No such file" in status["broker"]["reason"], status["broker"]
        assert any("MQTT is off" in text for text in status["degraded"]), status["degraded"]
        until("it samples", lambda: daemon.metric("cpu/load1"))
        secret.write_text("geheim\n")
        secret.chmod(0o600)
        daemon.call("Reload")
        until("it tries now", lambda: daemon.call("GetStatus")["broker"]["state"] in ("connecting", "away"))
        secret.chmod(0o644)
        daemon.config_path.write_text(daemon.config_path.read_text() + "summary_interval = 1s\n")
        daemon.call("Reload")
        until("refused again", lambda: "others may read" in daemon.call("GetStatus")["broker"].get("reason", ""))
        daemon.config_path.write_text("")
        daemon.call("Reload")
        until("off, and wanted so", lambda: "reason" not in daemon.call("GetStatus")["broker"])
        daemon.stop()
    finally:
        daemon.clean()


if __name__ == "__main__":
    run_tests(dict(globals()))
