#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`edgeprofctl report --format html` against the real daemon: the page is well-formed, complete and
small, it needs nothing from anywhere, and what it says are the numbers that were measured."""
import html.parser
import pathlib
import re
import subprocess
import tempfile

from harness import DEMO, Daemon, VarlinkError, board, program, run_tests, until

CONFIG = """
[sampling]
interval = 200ms
"""
VOID = {"meta"}
REFERENCES = {"src", "href", "srcset", "data", "action", "xlink:href", "style"}


class Page(html.parser.HTMLParser):
    """A page whose elements are nested as they should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.shown, self.tags = [], [], [], set()
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        assert len(names) == len(attributes), (tag, attributes)
        assert not REFERENCES & set(names), (tag, attributes)
        assert not any(name.startswith("on") for name in names), (tag, attributes)
        self.tags.add(tag)
        self.ids += [names["id"]] if "id" in names else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:], self.getpos())
        self.open.pop()

    def handle_data(self, text):
        self.shown.append(text)


def read(text):
    page = Page(text)
    assert len(text.encode()) < 500 * 1024, len(text)
    assert not re.search(r"https?:|url\(|@import|\bnan\b|\binf\b", text, re.I), text
    assert not {"script", "link", "img", "iframe", "object"} & page.tags, page.tags
    assert len(set(page.ids)) == len(page.ids), page.ids
    return page.ids, " ".join(" ".join(page.shown).split())


def app_frames(daemon):
    try:
        return sum(row["frame_count"] for row in daemon.call("GetFrames", app="cam")["frames"])
    except VarlinkError:
        return 0


def test_a_live_app_as_a_page():
    with tempfile.TemporaryDirectory() as folder:
        root, _ = board(folder)
        with Daemon(CONFIG, root=root) as daemon:
            run = [str(DEMO), "--app", "cam", "--frames", "120", "--fps", "60", "--load", "1", "--threads", "1"]
            with program(run, daemon.env, stdout=subprocess.DEVNULL) as demo:
                until("the app has frames", lambda: app_frames(daemon))
                assert daemon.ctl("mark", "<b>before & after</b>", "--app", "cam").returncode == 0
                assert demo.wait(120) == 0
            until("a sample of the zone", lambda: daemon.metric("temperature/cpu-thermal"))
            until("all frames", lambda: app_frames(daemon) == 119)
            done = daemon.ctl("report", "cam", "--format", "html")
            assert done.returncode == 0, done
            ids, shown = read(done.stdout)
            for part in ("PIPELINE PROFILING REPORT", "Breakdown in ms", "frames took longer than", "Frame rate fps", "End to end ms", "Metrics", "Events", "Environment"):
                assert part in shown, (part, shown)
            for stage in ("capture", "preprocess", "infer", "postprocess", "publish"):
                assert stage in shown, stage
            assert "Frames 120 Rate" in shown and "<b>before & after</b>" in shown, shown
            assert "cpu-thermal 50" in shown, shown

            path = pathlib.Path(folder) / "cam.html"
            done = daemon.ctl("report", "cam", "-o", str(path))
            assert done.returncode == 0 and done.stdout == "", done
            assert read(path.read_text())[0] == ids
            full = daemon.ctl("report", "cam", "--format", "html", "-o", "/dev/full")
            assert full.returncode == 74, full


if __name__ == "__main__":
    run_tests(globals())
