#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports: the file that appears when an app ends, what the daemon tells on request, and what the
operator's settings of stages and frames do to the numbers, also at a reload."""
import json
import os
import re
import signal
import subprocess

from harness import BUILD, Daemon, VarlinkError, run_tests, until
from test_apps import Actor, app_of, attached, events

WRITER = BUILD / "tests" / "integration" / "stage-writer"


class Writer(Actor):
    """Obeys as well, with stages that take exactly as long as it is told."""

    def __init__(self, daemon, name="cam"):
        self.process = subprocess.Popen([str(WRITER), name], env=daemon.env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def written(daemon, name="cam"):
    return daemon.run_dir / "reports" / f"{name}.txt"


def told(daemon):
    return [e for e in events(daemon) if ": report at " in e]


def stage_of(daemon, name="infer", app="cam"):
    return next(s for s in daemon.call("ListStages", app=app)["stages"] if s["stage"] == name)


def reload(daemon, text, good=True):
    daemon.config_path.write_text(text)
    assert (daemon.ctl("reload").returncode == 0) == good


# covers G3.1 G0.5
def test_report_appears_when_the_last_process_ends():
    with Daemon() as daemon:
        with Actor(daemon) as actor:
            attached(daemon, actor)
            actor.do("runs infer 30 1000")
            until("its runs", lambda: stage_of(daemon)["total_count"] == 30)
            running = daemon.call("GetReport", app="cam")
            assert running["state"] == "running" and "State       running" in running["text"], running
            assert not written(daemon).exists()
        line = until("it is told", lambda: told(daemon))
        assert len(line) == 1 and re.fullmatch(
            rf"ended: report at {written(daemon)}: \d+ executions, 0 missed deadlines, in a run of [0-9.]+ s", line[0]), line
        text = written(daemon).read_text()
        assert re.search(r"^infer +\d+\.\d +\d+\.\d +\d+\.\d +30$", text, re.M), text
        assert "State       ended (" in text and "\nTotal Profiled Time: " in text, text
        assert "cam: ended: report at" in daemon.log()
        reply = daemon.call("GetReport")
        assert reply["app"] == "cam" and reply["state"] == "ended", reply
        assert reply["text"].splitlines()[5:] == text.splitlines()[5:], (reply["text"], text)
        shown = daemon.ctl("report")
        assert shown.returncode == 0 and shown.stdout == reply["text"], shown
        assert json.loads(daemon.ctl("report", "cam", "-j").stdout)["summary"] == reply["summary"]
        mode = written(daemon).stat().st_mode & 0o777
        assert mode == 0o644 & ~current_umask(), oct(mode)
        assert [p.name for p in written(daemon).parent.iterdir()] == ["cam.txt"]


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


# covers G3.1
def test_killed_app_leaves_its_last_words_in_the_report():
    with Daemon() as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        actor.do("runs infer 5 1000", "frame 8841", "open infer")
        until("the open stage", lambda: app_of(daemon)["processes"][0]["open"])
        actor.process.kill()
        until("it is told", lambda: told(daemon))
        assert "State       died in `infer`, frame 8841 (" in written(daemon).read_text()
        assert daemon.call("GetReport")["last_words"] == "died in `infer`, frame 8841"


def test_one_report_for_several_processes_and_none_for_nothing():
    with Daemon() as daemon:
        with Actor(daemon) as first, Actor(daemon) as second, Actor(daemon, "idle") as idle:
            attached(daemon, first)
            attached(daemon, second)
            until("both", lambda: len(app_of(daemon)["processes"]) == 2)
            first.end()
            until("one", lambda: len(app_of(daemon)["processes"]) == 1)
            assert not told(daemon)
            assert idle.process.poll() is None
        until("it is told", lambda: told(daemon))
        assert not written(daemon, "idle").exists()
        assert len(told(daemon)) == 1, told(daemon)


def test_daemon_that_is_killed_and_started_again_reports_the_end_that_follows():
    with Daemon() as daemon, Actor(daemon) as actor:
        with Actor(daemon, "before") as before:
            attached(daemon, before, "before")
        until("the first report", lambda: written(daemon, "before").exists())
        attached(daemon, actor)
        daemon.kill()
        daemon.start()
        attached(daemon, actor)
        actor.do("runs infer 10 1000")
        until("its runs", lambda: stage_of(daemon)["total_count"] == 10)
        actor.end()
        until("its report", lambda: written(daemon).exists())
        assert written(daemon, "before").exists()
        found = daemon.ctl("report", "before")
        assert found.returncode == 0 and found.stdout == written(daemon, "before").read_text(), found
        for verb in ("stages", "frames", "diagnose"):
            since = daemon.ctl(verb, "before")
            assert since.returncode == 2 and since.stderr == (
                "edgeprofctl: there is no app 'before' any more; "
                "'edgeprofctl report before' shows its last run\n"), since
        missing = daemon.ctl("report", "nobody")
        assert missing.returncode == 2 and "no session, recording, app or file is named 'nobody'" in missing.stderr, missing


def test_choice_without_a_name():
    with Daemon() as daemon:
        nobody = daemon.ctl("report")
        assert nobody.returncode == 2 and "no app has attached" in nobody.stderr, nobody
        with Actor(daemon, "one") as one:
            attached(daemon, one, "one")
            assert daemon.ctl("report").stdout.startswith("REPORT OF one\n")
            with Actor(daemon, "two") as two:
                attached(daemon, two, "two")
                several = daemon.ctl("report")
                assert several.returncode == 2 and "one of one, two" in several.stderr, several
            until("the end of two", lambda: app_of(daemon, "two")["state"] == "ended")
            assert daemon.ctl("report").stdout.startswith("REPORT OF two\n")
        try:
            daemon.call("GetReport", app="../../etc/passwd")
        except VarlinkError as error:
            assert error.name == "io.edgeprof.NotFound", error
        else:
            raise AssertionError("it was found")


def test_folder_that_cannot_be_written_is_told_once_and_breaks_nothing():
    with Daemon() as daemon:
        (daemon.run_dir / "reports").write_text("in the way")

        def failures():
            return [e for e in events(daemon) if e.startswith("cannot write report ")]

        for name in ("one", "two"):
            with Actor(daemon, name) as actor:
                attached(daemon, actor, name)
            until("its end", lambda: app_of(daemon, name)["state"] == "ended")
            until("it is told", failures)
        (daemon.run_dir / "reports").unlink()
        with Actor(daemon, "three") as actor:
            attached(daemon, actor, "three")
        until("it works again", lambda: [line for line in told(daemon) if "three.txt" in line])  # or two's comes late
        assert len(failures()) == 1 and "Not a directory" in failures()[0], failures()
        assert written(daemon, "three").exists()


def test_planted_links_do_no_harm():
    with Daemon() as daemon:
        victim = daemon.dir / "victim"
        victim.write_text("precious")
        folder = daemon.run_dir / "reports"
        folder.mkdir()
        for name in ("cam.txt", "cam.new"):
            (folder / name).symlink_to(victim)
        with Actor(daemon) as actor:
            attached(daemon, actor)
        until("it is told", lambda: told(daemon))
        assert not written(daemon).is_symlink() and written(daemon).read_text().startswith("REPORT OF cam")
        assert victim.read_text() == "precious"
        assert [p.name for p in folder.iterdir()] == ["cam.txt"]
        written(daemon).unlink()
        folder.rmdir()
        elsewhere = daemon.dir / "elsewhere"
        elsewhere.mkdir()
        folder.symlink_to(elsewhere)
        with Actor(daemon) as actor:
            attached(daemon, actor)
        until("the refusal", lambda: any(e.startswith("cannot write report ") for e in events(daemon)))
        assert not list(elsewhere.iterdir())


# covers G1.12
def test_settings_of_the_operator_win_and_a_reload_keeps_the_counts():
    with Daemon("[stage cam/*]\nunit = npu\nwarmup = 2\n[stage */infer]\ndeadline = 10ms\nunit = gpu\n"
                "[frame cam]\ntarget_fps = 25\ndeadline = 30ms\n[statistics]\npercentile_method = nearest\n") as daemon:
        with Writer(daemon) as writer:
            writer.do("stage infer net cpu 5000")

            def runs(count, us):
                before = stage_of(daemon)["total_count"] + stage_of(daemon)["warmup_skipped"]
                writer.do(*[f"run infer {us}"] * count)
                until("its runs", lambda: stage_of(daemon)["total_count"] + stage_of(daemon)["warmup_skipped"] == before + count)
                return stage_of(daemon)

            def attach():
                writer.do("run infer 1000")
                app = app_of(daemon)
                return app and app["processes"] and app["stages"]

            until("it is attached", attach, pause=0.1)
            stage = runs(20, 7000)
            assert stage["warmup_skipped"] == 2 and (stage["unit"], stage["expected_unit"]) == ("cpu", "npu") and stage["category"] == "net", stage
            assert stage["deadline_ms"] == 10 and stage["deadline_source"] == "configured", stage
            assert stage["misses"] == 0 and stage["percentile_method"] == "nearest", stage
            count = stage["total_count"]

            reload(daemon, "[stage cam/infer]\ndeadline = 6ms\ncategory = nn\n")
            stage = runs(4, 7000)
            assert stage["deadline_ms"] == 6 and stage["misses"] == 4, stage
            assert stage["total_count"] == count + 4 and stage["category"] == "nn", stage
            assert stage["percentile_method"] == "linear", stage

            reload(daemon, "[stage cam/infer]\ndeadline = soon\n", good=False)
            assert f"{daemon.config_path}:2: [stage cam/infer] deadline = soon: expected" in daemon.log()
            assert stage_of(daemon)["deadline_ms"] == 6

            reload(daemon, "")
            stage = stage_of(daemon)
            assert stage["deadline_ms"] == 5 and stage["deadline_source"] == "declared", stage
            assert stage["total_count"] == count + 4, stage
            writer.do("run late 1000")
            until("the new stage", lambda: any(s["stage"] == "late" for s in daemon.call("ListStages")["stages"]))
        until("the report", lambda: told(daemon))
        assert re.search(r"infer@cpu \(5 ms, declared\): 4 of \d+ missed", written(daemon).read_text())


def test_settings_of_frames_reach_streams_that_come_later():
    with Daemon("[frame c*]\ndeadline = 30ms\ntarget_fps = 25\n") as daemon, Actor(daemon) as actor:
        attached(daemon, actor)
        for frame in range(5):
            actor.do(f"frame {frame + 1}", "runs infer 1 1000")

        def stream():
            frames = daemon.call("GetFrames", app="cam")["frames"]
            return frames and frames[0].get("deadline_ms") and frames[0]
        frames = until("its frames", stream)
        assert frames["deadline_ms"] == 30 and frames["deadline_source"] == "configured", frames
        assert frames["target_fps"] == 25, frames
        until("they are judged", lambda: "miss_rate" in daemon.call("GetFrames", app="cam")["frames"][0])
        reload(daemon, "")
        frames = daemon.call("GetFrames", app="cam")["frames"][0]
        assert "deadline_ms" not in frames and "target_fps" not in frames, frames
        text = daemon.call("GetReport", app="cam")["text"]
        assert re.search(r"^frames \(no deadline now\): \d of \d missed ", text, re.M), text


if __name__ == "__main__":
    run_tests(dict(globals()))
