#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of the flight recorder, against the real daemon: a kill, a stop, a full disk, other users,
export, a reboot, the announcement."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import DEMO, WRITER, Daemon, Varlink, VarlinkError, program, run_tests, until
from reckoning import Script
from test_recorder import FAST, QUIET, SPAN, lines_of, listed, path_of, records_of, told, wait_for

import mosquitto  # harness has put tests/tools on the path
import test_mqtt as mqtt_case
import trace_case


def test_a_killed_daemon_leaves_what_it_had_recorded():
    with Daemon(FAST + "[recorder]\nafter = 60s\n" + QUIET) as daemon, Script(daemon) as script:
        script.tell([f"0 complete 0 infer 1000000 {i}" for i in range(50)])
        name = daemon.call("RecordNow", label="last")["name"]
        begun = daemon.run_dir / "recordings" / f"{name}.jsonl.new"
        until("records are written", lambda: begun.exists() and b"ExportTrace" in begun.read_bytes())
        daemon.kill()
        assert os.listdir(begun.parent) == [begun.name]
        daemon.start()
        row = wait_for(daemon)[0]
        assert row["name"] == name and row["trigger"] == "now: last" and row["cut"] == "the daemon was killed", row
        assert row["records"] >= 50 and row["before_s"] < 30 and row["after_s"] < 60, row
        header, replies, end = lines_of(path_of(daemon, row))
        assert header["name"] == name and replies["GetStatus"] and end["records"] == row["records"] == sum(1 for _ in records_of(replies))
        shown = daemon.ctl("record", "show", name)
        assert shown.returncode == 0 and "the daemon was killed" in shown.stdout, shown
        daemon.kill()  # what is finished stays so
        daemon.start()
        assert [r["name"] for r in listed(daemon)] == [name]


def test_a_stopped_daemon_keeps_what_it_has():
    with Daemon(FAST + "[recorder]\nafter = 60s\n" + QUIET) as daemon, program([DEMO], daemon.env, stdout=subprocess.DEVNULL):
        until("events came", lambda: (daemon.metric("frame/demo/fps") or {}).get("value"))
        name = daemon.call("RecordNow")["name"]
        folder = daemon.run_dir / "recordings"
        until("records are written", lambda: (folder / f"{name}.jsonl.new").exists() and
              b"ExportTrace" in (folder / f"{name}.jsonl.new").read_bytes())
        daemon.stop()
        daemon.start()
        row = wait_for(daemon)[0]
        assert row["cut"] == "the daemon stopped" and row["after_s"] < 60 and row["records"] > 0, row


def test_a_full_disk_and_a_strange_folder_are_told_and_harm_nothing():
    with Daemon(FAST + "[recorder]\nafter = 0s\n" + QUIET) as daemon:
        folder = daemon.run_dir / "recordings"
        os.symlink("/tmp", folder)
        daemon.call("RecordNow")
        until("it failed", lambda: daemon.call("ListRecordings")["failed"] == 1)
        assert daemon.call("ListRecordings")["reason"] and len(told(daemon, "recording failed")) == 1
        os.unlink(folder)
        folder.mkdir(mode=0o750)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,mode=750", "none", str(folder)], capture_output=True)
        if mount.returncode == 0:
            try:
                daemon.call("RecordNow")
                until("it failed", lambda: daemon.call("ListRecordings")["failed"] == 2)
                assert daemon.call("ListRecordings")["reason"] == "No space left on device"
                assert os.listdir(folder) == []
            finally:
                subprocess.run(["umount", str(folder)], check=True)
        daemon.call("RecordNow")
        wait_for(daemon)
        assert "reason" not in daemon.call("ListRecordings")
        return None if mount.returncode == 0 else "a full disk: no mount"


def test_a_flood_stays_within_the_size_and_holds_the_moment():
    limit = 512 * 1024
    with Daemon(FAST + "[recorder]\nafter = 2s\nmax_size = 512K\n" + QUIET) as daemon:
        with program([WRITER, "flood", "100000000", "2", "80", "0"], daemon.env, stdout=subprocess.DEVNULL):
            until("the pool goes round", lambda: daemon.call("GetSelf")["records_overwritten"] > 20000, 120)
            daemon.call("RecordNow")
            row = wait_for(daemon)[0]
        header, replies, _ = lines_of(path_of(daemon, row))
        assert row["bytes"] <= limit and row["cut"] and row["before_s"] < 30, row
        assert row["after_s"] == 2, row  # sensors go on when records have no place any more
        at_ns = header["mono_us"] * 1000
        starts = sorted(start for *_, start, _ in records_of(replies))
        assert starts[0] < at_ns < starts[-1], (starts[0], at_ns, starts[-1])
        assert sum(1 for s in starts if abs(s - at_ns) < 50e6) > 50  # gapless around it
        print(f"flood: {row['records']} records, {row['bytes']} bytes, {row['span_s']:.2f} s, lost {row['lost']}")


def test_export_and_show_with_and_without_the_daemon():
    with Daemon(FAST + SPAN + QUIET) as daemon:
        subprocess.run([str(DEMO), "--app", "cam", "--frames", "60", "--fps", "60", "--threads", "2"], env=daemon.env,
                       check=True, stdout=subprocess.DEVNULL)
        assert daemon.ctl("record", "now", "look", "20s", "0s").returncode == 0
        row = wait_for(daemon)[0]
        done = daemon.ctl("record", "export", row["name"])
        assert done.returncode == 0, done.stderr
        trace = trace_case.read(done.stdout)
        trace_case.check(trace)
        assert trace["otherData"]["records"] == row["records"], (trace["otherData"], row)
        assert trace["otherData"]["records_lost"] == 0 and not trace["otherData"]["truncated"]
        listing = daemon.ctl("record")
        assert row["name"] in listing.stdout and listing.returncode == 0, listing
        path = str(path_of(daemon, row))
        shown = daemon.ctl("record", "show", row["name"])
        assert all(word in shown.stdout for word in ("now: look", "infer", "Stages and frames", "What happened")), shown
        daemon.stop()
        assert daemon.ctl("record", "show", path).stdout == shown.stdout
        assert daemon.ctl("record", "export", path).stdout == done.stdout
        assert daemon.ctl("record", "export", path, "--format", "csv").returncode == 0
        broken = daemon.dir / "broken"
        broken.write_bytes(pathlib.Path(path).read_bytes()[:5000])
        half = daemon.ctl("record", "show", str(broken))
        assert half.returncode == 66 and "breaks off" in half.stderr, half
        assert daemon.ctl("record", "show", str(daemon.config_path)).returncode == 66
        whole = pathlib.Path(path).read_text().splitlines()
        many = daemon.dir / "many"  # what took an hour when each app was looked for among all
        start = next(line for line in whole if '"parameters":{"start":' in line)
        many.write_text("\n".join([whole[0], start, *[
            json.dumps({"call": "ExportTrace", "parameters": {"app": f"a{i}", "names": [], "records": {"kind": []}, "lost": 0},
                        "continues": True}, separators=(",", ":")) for i in range(200000)], whole[-1]]) + "\n")
        assert "Recording" in daemon.ctl("record", "show", str(many)).stdout
        daemon.start()
        assert daemon.ctl("record", "show", "nope").returncode == 2
        assert daemon.ctl("record", "show", "..%2f..").returncode == 2


def test_with_persist_it_is_in_the_state_directory_and_survives_a_reboot():
    with tempfile.TemporaryDirectory() as state, \
            Daemon(f"[history]\npersist = yes\npath = {state}\n[recorder]\nafter = 0s\n" + QUIET) as daemon:
        name = daemon.call("RecordNow")["name"]
        wait_for(daemon)
        assert (pathlib.Path(state) / "recordings" / f"{name}.jsonl").exists()
        daemon.stop()
        for left in daemon.run_dir.iterdir():  # a run directory is gone after a reboot
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        daemon.start()
        assert [row["name"] for row in listed(daemon)] == [name]
        for _ in range(11):  # the one from before the reboot counts
            daemon.call("RecordNow", before_s=0)
            until("it is there", lambda: "open" not in daemon.call("ListRecordings"))
        assert daemon.ctl("record", "now").returncode == 1


def as_nobody(daemon, method, **parameters):
    """The error that another user gets."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setuid(65534)
        result = "none"
        try:
            with contextlib.closing(Varlink(daemon.socket)) as client:
                list(client.stream(method, **parameters))
        except VarlinkError as error:
            result = error.name
        os.write(writer, result.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    return os.read(reader, 100).decode()


def test_other_users_may_list_but_neither_read_nor_start():
    if os.geteuid() != 0:
        return "not root: there is no other user"
    with Daemon(FAST + "[recorder]\nafter = 0s\n" + QUIET) as daemon:
        daemon.dir.chmod(0o755)
        name = daemon.call("RecordNow")["name"]
        wait_for(daemon)
        assert as_nobody(daemon, "RecordNow") == "io.edgeprof.NotPermitted"
        assert as_nobody(daemon, "GetRecording", name=name) == "io.edgeprof.NotPermitted"
        assert as_nobody(daemon, "ListRecordings") == "none"


def test_mqtt_announces_it():
    with mosquitto.Broker() as broker, Daemon(mqtt_case.config(broker, "[recorder]\nafter = 0s\n" + QUIET)) as daemon:
        until("connected", lambda: daemon.call("GetStatus")["broker"]["state"] == "connected")
        topic = f"edgeprof/{mqtt_case.DEVICE}/event/recording"
        name = []

        def arrived(seen):
            if not name:
                name.append(daemon.call("RecordNow", label="tell")["name"])
            return topic in mqtt_case.topics(seen)

        seen = {m[0]: m[1] for m in broker.subscribe("edgeprof/#", until=arrived)}
        payload = json.loads(seen[topic])
        mqtt_case.check_against_schema("recording", payload)
        row = wait_for(daemon)[0]
        assert payload["name"] == row["name"] == name[0] and payload["size_bytes"] == row["bytes"], (payload, row)


if __name__ == "__main__":
    run_tests(dict(globals()))
