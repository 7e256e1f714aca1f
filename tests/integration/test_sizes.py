#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl model-size and mem: files and folders of models, memory of apps and at marks."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

from harness import CTL, Daemon, ctl_for_others, run_tests, until
from test_apps import Actor, attached

MIB, GIB = 1 << 20, 1 << 30


def size(*paths, ctl=CTL, **options):
    return subprocess.run([ctl, "model-size", *paths], capture_output=True, text=True, timeout=60, **options)


def models(*paths):
    done = size("-j", *paths)
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)["models"]


# covers G4.2
def test_files_and_folders_are_added_up():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "model/weights").mkdir(parents=True)
        (root / "model/config.json").write_bytes(b"x" * 1000)
        (root / "model/weights/0.bin").write_bytes(b"x" * (3 << 20))
        with open(root / "sparse.onnx", "wb") as file:
            file.truncate(3 * GIB)
        one, two = models(root / "model", root / "sparse.onnx")
        assert one["size_bytes"] == 1000 + 3 * MIB and one["files"] == 2, one
        assert one["size_mb"] == one["size_bytes"] / MIB and one["size_gb"] == one["size_bytes"] / GIB, one
        assert "difference_bytes" not in one, one
        assert (two["size_bytes"], two["size_gb"], two["files"]) == (3 * GIB, 3, 1), two
        assert two["difference_bytes"] == two["size_bytes"] - one["size_bytes"], two
        text = size(root / "model", root / "sparse.onnx").stdout
        assert "3.00 GiB" in text and "3,146,728" in text, text  # covers G4.9
        assert "+3069.0 MiB (102267.5 %)" in text, text


# covers G4.2
def test_links_are_followed_and_count_once():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "blobs").mkdir()
        (root / "snapshot").mkdir()
        (root / "blobs/abc").write_bytes(b"x" * 5000)
        (root / "snapshot/model.onnx").symlink_to("../blobs/abc")
        (root / "snapshot/again.onnx").symlink_to("../blobs/abc")
        os.link(root / "blobs/abc", root / "snapshot/hard.onnx")
        (root / "snapshot/loop").symlink_to(".")
        os.mkfifo(root / "snapshot/fifo")
        for path in (root / "snapshot", root, root / "snapshot/model.onnx"):
            row = models(path)[0]
            assert (row["size_bytes"], row["files"], row["unreadable"]) == (5000, 1, 0), row


def test_what_cannot_be_read_is_reported():
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as programs:
        root = pathlib.Path(folder)
        root.chmod(0o755)
        os.chmod(programs, 0o755)
        (root / "closed").mkdir()
        (root / "model\033[2J.onnx").write_bytes(b"x" * 100)
        (root / "closed").chmod(0)
        (root / "dangling").symlink_to("nowhere")
        done = size("-j", root, ctl=ctl_for_others(programs), **({"user": 65534, "group": 65534} if os.geteuid() == 0 else {}))
        row = json.loads(done.stdout)["models"][0]
        assert done.returncode == 66 and (row["size_bytes"], row["unreadable"]) == (100, 2), done
        assert "closed: Permission denied" in done.stderr and "dangling: No such file" in done.stderr, done
        done = size(root / "model\033[2J.onnx")
        assert done.returncode == 0 and "\033" not in done.stdout, done
        (root / "empty").mkdir()
        for path, word in (("empty", "contains no files"), ("nothing", "No such file"), ("/dev/null", "not a file")):
            done = size(root / path)
            assert (done.returncode, done.stdout) == (66, "") and word in done.stderr, done
        done = size("")
        assert done.returncode == 66 and "No such file" in done.stderr, done
        (root / "closed").chmod(0o700)
    assert size().returncode == 64


# covers G0.8 G0.9 G2.4 covers G4.10
def test_the_memory_page_has_system_processes_and_marks():
    more = "[process limited]\nmatch = *app-actor*\nmemory_limit = 1M\n"
    with Daemon("[sampling]\ninterval = 200ms\n" + more) as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        until("the process and its limit", lambda: any(
            row.get("threshold_exceeded") for row in daemon.call("ListProcesses")["processes"]))
        actor.do("mark before_model_load", "alloc 64", "loaded model_loaded 13.5")
        until("two marks", lambda: len(daemon.call("ListMarks", app="cam")["marks"]) == 2)
        reply = json.loads(daemon.ctl("mem", "-j").stdout)
        total, available = reply["memory_total_bytes"], reply["memory_available_bytes"]
        assert abs(reply["percent_used"] - 100 * (total - available) / total) < 1e-6, reply
        row = next(row for row in reply["processes"] if row.get("threshold_exceeded"))
        assert row["current_mb"] == row["rss_bytes"] / MIB and row["peak_mb"] == row["peak_rss_bytes"] / MIB, row
        assert row["available_mb"] == available / MIB, row
        assert abs(row["percent_used"] - 100 * row["rss_bytes"] / total) < 1e-6, row
        assert [mark["label"] for mark in reply["marks"]] == ["before model load", "model loaded"], reply
        assert reply["marks"][1]["runtime_memory_mb"] >= 64, reply
        text = daemon.ctl("mem", "cam").stdout
        line = r"^\[model loaded\] RSS: [0-9.]+MB \(peak: [0-9.]+MB\) \| System: [0-9]+% used \([0-9]+MB free\)  RSS \+(6[4-9]|7\d)\."
        assert re.search(line, text, re.M) and text.startswith("Memory: "), text
        by_pid = json.loads(daemon.ctl("mem", "-j", str(row["pid"])).stdout)
        assert {one["pid"] for one in by_pid["processes"]} == {row["pid"]} and by_pid["marks"] == [], by_pid
        none = daemon.ctl("mem", "nothing")
        assert (none.returncode, none.stdout) == (2, "") and "'nothing'" in none.stderr, none
    assert daemon.ctl("mem").returncode == 69


if __name__ == "__main__":
    run_tests(globals())
