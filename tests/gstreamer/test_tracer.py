#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GStreamer's tracer on real pipelines, whose delays are known: identity sleeps in each buffer."""
import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))

from harness import BUILD, Daemon, program, run_tests, skip, until  # noqa: E402

PLUGIN = os.environ.get("EDGEPROF_PLUGIN", BUILD / "client" / "gstreamer")
REGISTRY = tempfile.TemporaryDirectory(prefix="edgeprof-registry.")
IMPORT = "import gi; gi.require_version('Gst', '1.0')"
PYTHON = next((path for path in (sys.executable, "/usr/bin/python3")
               if subprocess.run([path, "-c", IMPORT], capture_output=True).returncode == 0), None)
SOURCE = "videotestsrc num-buffers={} ! video/x-raw,width=32,height=32,framerate=30/1"


def environment(daemon=None, tracers="edgeprof(app=cam)", **more):
    env = dict(daemon.env if daemon else os.environ, GST_PLUGIN_PATH=str(PLUGIN), GST_TRACERS=tracers,
               GST_REGISTRY=f"{REGISTRY.name}/registry", GST_REGISTRY_FORK="no", **more)
    if "EDGEPROF_PRELOAD" in os.environ:
        env["LD_PRELOAD"] = os.environ["EDGEPROF_PRELOAD"]
        env["ASAN_OPTIONS"] = "abort_on_error=1:detect_leaks=0:verify_asan_link_order=0"
    return env


def launch(pipeline, daemon=None, **more):
    words = ["gst-launch-1.0", "-q", *shlex.split(pipeline)]
    done = subprocess.run(words, env=environment(daemon, **more), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (pipeline, done.returncode, done.stderr[-3000:])
    return done


def run_python(daemon, code, **more):
    head = f"{IMPORT}\nfrom gi.repository import Gst\nGst.init(None)\n"
    done = subprocess.run([PYTHON, "-c", head + code], env=environment(daemon, **more),
                          capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and "CRITICAL" not in done.stderr, (done.returncode, done.stderr[-3000:])
    return done.stdout


def has_element(name):
    return subprocess.run(["gst-inspect-1.0", "--exists", name], env=environment(tracers="")).returncode == 0


def ended(daemon, app="cam"):
    until("the app ended", lambda: [a for a in daemon.call("ListApps")["apps"]
                                    if a["name"] == app and a["state"] in ("ended", "killed")])


def stages_of(daemon, app="cam"):
    ended(daemon, app)
    with contextlib.closing(daemon.client()) as client:
        replies = list(client.stream("ListStages", app=app, span="lifetime"))
    return {s["stage"]: s for reply in replies for s in reply["stages"]}


def frames_of(daemon, app="cam"):
    """Their statistics, and the newest ones with the stages of each."""
    ended(daemon, app)
    reply = daemon.call("GetFrames", app=app, recent=100)
    return daemon.call("GetFrames", app=app, span="lifetime")["frames"][0], reply["list"]


def values_of(daemon, name):
    """Of a gauge, or the increments of a counter."""
    values = []
    with contextlib.closing(daemon.client()) as client:
        for reply in client.stream("ExportTrace", app="cam"):
            records = reply.get("records", {"name": []})
            values += [records["value"][i] for i, index in enumerate(records["name"])
                       if records["kind"][i] in ("gauge", "counter") and reply["names"][index] == name]
    return values


def parts(frame):
    return {s["stage"]: s for s in frame["stages"]}


def test_elements_in_a_row_have_their_own_time():
    with Daemon() as daemon:
        launch(SOURCE.format(50) + " ! identity name=a sleep-time=5000 ! videoconvert"
               " ! identity name=b sleep-time=15000 ! fakesink", daemon)
        stages = stages_of(daemon)
        assert set(stages) == {"videotestsrc", "capsfilter", "a", "videoconvert", "b", "fakesink"}, stages.keys()
        assert all(stages[name]["count"] == 50 for name in stages if name != "videotestsrc"), stages
        assert stages["videotestsrc"]["count"] == 49, stages  # the first has nothing before it
        assert stages["a"]["min_ms"] >= 5 and stages["b"]["min_ms"] >= 15, stages
        # neither has the other's time in its own
        assert stages["a"]["p50_ms"] < 15 and stages["b"]["p50_ms"] < 20 + stages["a"]["p50_ms"], stages
        assert stages["videoconvert"]["p50_ms"] < 5 and stages["fakesink"]["p50_ms"] < 5, stages
        kinds = {name: stages[name].get("category") for name in stages}
        assert kinds["videotestsrc"] == "capture" and kinds["fakesink"] == "output", kinds
        assert kinds["videoconvert"] == "preprocess" and not kinds["a"], kinds
        frames, newest = frames_of(daemon)
        assert frames["total_count"] == 50 and frames["skipped_ids"] == 0 and frames["out_of_order"] == 0, frames
        assert frames["end_to_end_mean_ms"] >= 20, frames
        assert [f["frame"] for f in newest[:20]] == list(range(49, 29, -1)), newest
        assert set(parts(newest[0])) == set(stages), newest[0]


def test_time_in_a_queue_is_waiting():
    with Daemon() as daemon:
        launch(SOURCE.format(60) + " ! identity name=a sleep-time=1000 ! queue max-size-buffers=5"
               " ! identity name=b sleep-time=10000 ! fakesink", daemon)
        stages = stages_of(daemon)
        assert stages["queue"]["category"] == "wait" and stages["queue"]["count"] == 60, stages
        # a full queue of five, and one that is being pushed into it: each waits for five times b
        assert stages["queue"]["p50_ms"] >= 50, stages
        assert stages["a"]["min_ms"] >= 1 and stages["b"]["min_ms"] >= 10, stages
        assert stages["a"]["p50_ms"] < 10, stages  # without the time in which the queue was full
        frames, newest = frames_of(daemon)
        assert frames["total_count"] == 60 and newest[0]["threads"] == 2, frames
        assert {"a", "queue", "b", "fakesink"} <= set(parts(newest[0])), newest[0]
        assert frames["end_to_end_p50_ms"] >= 60, frames
        # waiting is part of a frame's time, not of its stages
        frame = newest[5]
        assert frame["stage_sum_ms"] <= frame["end_to_end_ms"] - parts(frame)["queue"]["busy_ms"] + 1, frame
        levels = values_of(daemon, "level_queue")
        assert 3 <= len(levels) < 30 and 1 <= max(levels) <= 6, levels
        diagnoses = daemon.call("Diagnose", app="cam")["diagnoses"][0]
        assert "queue" not in [s.get("stage") for s in diagnoses.get("advice", [])], diagnoses


def test_a_queue_that_is_empty_does_not_wait():
    with Daemon() as daemon:
        launch(SOURCE.format(40) + " ! identity name=a sleep-time=10000 ! queue"
               " ! identity name=b sleep-time=1000 ! fakesink", daemon)
        stages = stages_of(daemon)
        assert stages["queue"]["p50_ms"] < stages["a"]["p50_ms"] and stages["a"]["min_ms"] >= 10, stages


def test_branches_of_a_tee_are_the_same_frames():
    with Daemon() as daemon:
        launch(SOURCE.format(120) + " ! identity sleep-time=10000 ! tee"
               " tee0. ! queue ! identity name=a sleep-time=3000 ! fakesink name=first"
               " tee0. ! queue ! identity name=b sleep-time=6000 ! fakesink name=second", daemon)
        stages = stages_of(daemon)
        assert {"queue0", "queue1", "tee", "first", "second"} <= set(stages), stages.keys()
        assert all(stages[name]["count"] == 120 for name in ("tee", "queue0", "queue1", "a", "b")), stages
        assert stages["a"]["min_ms"] >= 3 and stages["b"]["min_ms"] >= 6, stages
        assert stages["tee"]["p50_ms"] < 3, stages
        frames, newest = frames_of(daemon)
        assert frames["total_count"] == 120, frames
        both = [f for f in newest if {"a", "b"} <= set(parts(f))]
        assert len(both) >= 10 and both[0]["threads"] == 3, newest
        rates = [values_of(daemon, name) for name in ("fps_first", "fps_second")]
        assert [] in rates and all(0 < rate <= 101 for rate in rates[0] + rates[1]) and rates != [[], []], rates


def test_bins_are_transparent_and_a_tee_needs_no_threads():
    with Daemon() as daemon:
        launch(SOURCE.format(30) + " ! tee"
               " tee0. ! ( identity name=a sleep-time=4000 ! ( videoconvert ) ) ! fakesink async=false"
               " tee0. ! identity name=b sleep-time=8000 ! fakesink async=false", daemon)
        stages = stages_of(daemon)
        assert stages["a"]["min_ms"] >= 4 and stages["b"]["min_ms"] >= 8 and stages["tee"]["p50_ms"] < 4, stages
        assert not [name for name in stages if "bin" in name or "pipeline" in name], stages.keys()
        _, newest = frames_of(daemon)
        assert {"a", "b", "videoconvert", "fakesink0", "fakesink1"} <= set(parts(newest[5])), newest[5]


def test_a_sink_waits_for_its_clock():
    with Daemon() as daemon:
        launch("videotestsrc num-buffers=20 ! video/x-raw,width=32,height=32,framerate=20/1"
               " ! fakesink sync=true", daemon)
        stages = stages_of(daemon)
        assert stages["fakesink_sync"]["category"] == "wait", stages
        assert stages["fakesink_sync"]["total_ms"] > 10 * stages["fakesink"]["total_ms"], stages
        frames, _ = frames_of(daemon)
        assert frames["total_count"] == 20 and frames["fps"] < 21, frames


def test_what_a_leaky_queue_drops_is_counted():
    with Daemon() as daemon:
        launch(SOURCE.format(200) + " ! identity name=a sleep-time=1000 ! queue leaky=downstream max-size-buffers=2"
               " ! identity name=b sleep-time=10000 ! fakesink", daemon)
        frames, _ = frames_of(daemon)
        dropped = sum(values_of(daemon, "dropped_queue"))
        assert dropped > 0 and frames["total_count"] + dropped == 200, (frames, dropped)
        stages = stages_of(daemon)
        assert stages["queue"]["count"] == frames["total_count"], stages


def test_a_leaky_queue_behind_a_tee_passes_on_copies():
    with Daemon() as daemon:
        launch(SOURCE.format(200) + " ! identity name=a sleep-time=1000 ! tee name=t"
               " t. ! queue name=q leaky=downstream max-size-buffers=2 ! identity name=b sleep-time=10000 ! fakesink async=false"
               " t. ! queue name=all ! identity sleep-time=2000 ! fakesink async=false", daemon)
        stages, dropped = stages_of(daemon), sum(values_of(daemon, "dropped_q"))
        assert dropped > 0 and stages["b"]["count"] + dropped == 200, (stages["b"], dropped)
        assert stages["q"]["count"] == stages["b"]["count"], stages
        assert any({"q", "b"} <= set(parts(f)) for f in frames_of(daemon)[1]), stages


def test_streams_of_one_queue_are_not_mixed_up():
    streams = " ".join(f"{SOURCE.format(40)} ! m. m. ! identity sleep-time={3000 * (i % 2)} ! fakesink async=false" for i in range(16))
    for _ in range(3):
        with Daemon() as daemon:
            launch("multiqueue name=m " + streams, daemon)
            stages = stages_of(daemon)
            assert stages["m"]["count"] == 16 * 40, stages["m"]


def test_a_leaky_queue_that_stands_still_is_measured_afterwards():
    with Daemon() as daemon:
        passed = int(run_python(daemon, f"""
import time
pipeline = Gst.parse_launch("{SOURCE.format(1200)} ! identity name=a sleep-time=1000 ! queue leaky=downstream max-size-buffers=2"
                            " ! identity name=b ! fakesink")
counts = {{"a": 0, "b": 0}}
def count(pad, info, name):
    counts[name] += 1
    while name == "b" and counts["b"] == 10 and counts["a"] < 800:
        time.sleep(0.01)
    return Gst.PadProbeReturn.OK
for name in counts:
    pipeline.get_by_name(name).get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, count, name)
pipeline.set_state(Gst.State.PLAYING)
pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
pipeline.set_state(Gst.State.NULL)
print(counts["b"])
"""))
        queue, dropped = stages_of(daemon)["queue"], sum(values_of(daemon, "dropped_queue"))
        assert 10 < passed < 500 and passed + dropped == 1200, (passed, dropped)
        assert passed - 4 <= queue["count"] <= passed, (passed, queue)


def test_what_is_flushed_is_not_dropped():
    with Daemon() as daemon:
        passed = int(run_python(daemon, f"""
import time
pipeline = Gst.parse_launch("{SOURCE.format(100)} ! identity name=a ! queue leaky=downstream max-size-buffers=150 max-size-time=0"
                            " ! identity name=b ! fakesink sync=false")
counts, held = {{"a": 0, "b": 0}}, [True]
def count(pad, info, name):
    counts[name] += 1
    time.sleep(0.02 if name == "b" else 0)
    while name == "a" and counts["a"] == 60 and held[0]:
        time.sleep(0.01)
    return Gst.PadProbeReturn.OK
for name in counts:
    pipeline.get_by_name(name).get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, count, name)
pipeline.set_state(Gst.State.PLAYING)
while counts["a"] < 60 or counts["b"] < 1:
    time.sleep(0.01)
pad = pipeline.get_by_name("a").get_static_pad("src")
pad.push_event(Gst.Event.new_flush_start())
pad.push_event(Gst.Event.new_flush_stop(False))
held[0] = False
pipeline.get_bus().timed_pop_filtered(20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
pipeline.set_state(Gst.State.NULL)
print(counts["b"])
"""))
        queue, dropped = stages_of(daemon)["queue"], values_of(daemon, "dropped_queue")
        assert passed < 100 and dropped == [], (passed, dropped)
        assert queue["count"] - passed in (0, 1), (passed, queue)  # one may leave into the flush, and is refused


def test_late_buffers_that_a_sink_drops_are_no_frames():
    for qos in ("true", "false"):
        with Daemon() as daemon:
            launch("videotestsrc num-buffers=40 ! video/x-raw,width=32,height=32,framerate=100/1"
                   f" ! identity sleep-time=30000 ! fakesink sync=true qos={qos} max-lateness=1000000", daemon)
            frames, _ = frames_of(daemon)
            dropped = sum(values_of(daemon, "dropped_fakesink"))
            assert dropped > 0 and frames["total_count"] + dropped == 40, (qos, frames, dropped)


def test_an_appsrc_without_caps():
    for form, expected in (("time", 20), ("bytes", 0)):
        with Daemon() as daemon:
            run_python(daemon, f"""
pipeline = Gst.parse_launch("appsrc name=a format={form} ! identity ! fakesink sync=false")
source = pipeline.get_by_name("a")
pipeline.set_state(Gst.State.PLAYING)
for number in range(20):
    buffer = Gst.Buffer.new_allocate(None, 100, None)
    buffer.pts = number * Gst.SECOND // 30
    source.emit("push-buffer", buffer)
source.emit("end-of-stream")
pipeline.get_bus().timed_pop_filtered(20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
pipeline.set_state(Gst.State.NULL)
""")
            assert stages_of(daemon)["fakesink"]["count"] == 20
            frames = daemon.call("GetFrames", app="cam", span="lifetime")["frames"]
            assert sum(row["total_count"] for row in frames) == expected, (form, frames)


def test_a_long_name_of_a_sink_keeps_its_suffix():
    name = "sink-" + 55 * "x"
    with Daemon() as daemon:
        launch("videotestsrc num-buffers=5 ! video/x-raw,width=32,height=32,framerate=20/1"
               f" ! fakesink sync=true name={name}", daemon)
        stages = stages_of(daemon)
        assert {name[:48], name[:43] + "_sync"} <= set(stages), stages


def test_buffers_that_are_flushed_are_no_frames():
    with Daemon() as daemon:
        run_python(daemon, f"""
import threading
pipeline, seen, refused = Gst.parse_launch("{SOURCE.format(50)} ! identity name=i ! fakesink name=s"), [], threading.Event()
def count(pad, info):
    seen.append(1)
    if len(seen) == 20:
        pipeline.get_by_name("s").get_static_pad("sink").send_event(Gst.Event.new_flush_start())
        refused.set()
    return Gst.PadProbeReturn.OK
pipeline.get_by_name("i").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, count)
pipeline.set_state(Gst.State.PLAYING)
assert refused.wait(20)
pipeline.set_state(Gst.State.NULL)
""")
        frames = frames_of(daemon)[0]
        assert frames["total_count"] == 19, frames


def test_encoders_that_hold_frames_back():
    encoders = {"vp8enc": "vp8enc deadline=1 lag-in-frames=10 ! vp8dec"}
    if has_element("x264enc"):
        encoders["x264enc"] = "x264enc bframes=2 speed-preset=ultrafast"
    for name, chain in encoders.items():
        with Daemon() as daemon:
            launch(SOURCE.format(60) + f" ! {chain} ! identity name=a sleep-time=1000 ! fakesink", daemon)
            stages = stages_of(daemon)
            assert stages[name]["count"] == 60 and stages[name]["category"] == "encode", stages
            assert stages["a"]["count"] == 60 and stages["a"]["min_ms"] >= 1, stages
            frames, newest = frames_of(daemon)
            assert frames["total_count"] == 60 and frames["skipped_ids"] == 0 and frames["id_sequences"] == 1, frames
            assert {"videotestsrc", name, "a", "fakesink"} <= set(parts(newest[10])), newest[10]
    return None if len(encoders) == 2 else "no x264enc: gstreamer1.0-plugins-ugly"


def test_buffers_that_are_made_of_one_are_one_frame():
    for chain in ("jpegenc ! matroskamux", "multipartmux", "rtpvrawpay mtu=400", "queue ! avimux"):
        with Daemon() as daemon:
            launch(SOURCE.format(60) + f" ! {chain} ! tee name=t ! fakesink async=false t. ! fakesink async=false",
                   daemon)
            buffers = stages_of(daemon)["fakesink0"]["count"]
            frames, newest = frames_of(daemon)
            # a header and an index of the file are none of the source's frames
            assert buffers >= 120 and 60 <= frames["total_count"] <= 64, (chain, buffers, frames)
            assert frames["skipped_ids"] == 0 and {"fakesink0", "fakesink1"} <= set(parts(newest[10])), (chain, frames)
    with Daemon() as daemon:  # what is shown three times, at its own times, is three
        launch(SOURCE.format(20) + " ! videorate ! video/x-raw,framerate=90/1 ! fakesink", daemon)
        buffers = stages_of(daemon)["fakesink"]["count"]
        assert 50 <= buffers == frames_of(daemon)[0]["total_count"], buffers


def test_pads_that_appear_while_it_runs():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        launch(f"webmmux name=m ! filesink location={folder}/a.webm"
               f" {SOURCE.format(50)} ! vp8enc deadline=1 ! m. audiotestsrc num-buffers=50 ! vorbisenc ! m.", tracers="")
        launch(f"filesrc location={folder}/a.webm ! decodebin name=d"
               " d. ! queue ! videoconvert ! identity name=a sleep-time=4000 ! fakesink"
               " d. ! queue ! audioconvert ! fakesink", daemon)
        stages = stages_of(daemon)
        assert stages["vp8dec"]["count"] == 50 and stages["vp8dec"]["category"] == "decode", stages
        assert {"filesrc", "vorbisdec", "multiqueue", "matroskademux"} <= set(stages), stages.keys()
        assert stages["a"]["count"] == 50 and stages["a"]["min_ms"] >= 4, stages
        _, newest = frames_of(daemon)
        joined = [f for f in newest if {"multiqueue", "vp8dec", "a"} <= set(parts(f)) or "vorbisdec" in parts(f)]
        assert len(joined) >= 10, newest


RTP = "application/x-rtp,media=video,encoding-name=JPEG,payload=26,clock-rate=90000"


def receive(daemon, receiver, pay="rtpjpegpay mtu=600", caps="caps=" + RTP):
    """Frames of several packets each, of another process."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    sender = ("videotestsrc is-live=true pattern=snow ! video/x-raw,format=I420,width=64,height=64,framerate=100/1 ! jpegenc"
              f" ! {pay} ! udpsink host=127.0.0.1 port={port} sync=false")
    with program(["gst-launch-1.0", "-q", *shlex.split(sender)], environment(tracers="")):
        launch(f"udpsrc port={port} {caps} ! {receiver}", daemon)


def test_packets_of_a_network_are_no_frames():
    for chain in ("", "rtpjitterbuffer latency=50 ! "):
        with Daemon() as daemon:
            receive(daemon, chain + "rtpjpegdepay ! jpegdec ! fakesink num-buffers=100")
            stages, (frames, newest) = stages_of(daemon), frames_of(daemon)
            assert stages["udpsrc"]["count"] > 250 and stages["jpegdec"]["count"] == 100, stages
            assert frames["total_count"] == 100 and frames["skipped_ids"] <= 10, frames  # a busy machine may lose some
            assert {"jpegdec", "fakesink"} <= set(parts(newest[10])), newest[10]
            if chain:
                assert stages["rtpjitterbuffer"]["count"] > 250, stages
                assert {"rtpjitterbuffer", "rtpjpegdepay"} <= set(parts(newest[10])), newest[10]
    with Daemon() as daemon:
        receive(daemon, "multipartdemux ! jpegdec ! fakesink num-buffers=100", pay="multipartmux", caps="")
        stages, (frames, newest) = stages_of(daemon), frames_of(daemon)
        assert stages["udpsrc"]["count"] > 150 and frames["total_count"] == 100, (stages, frames)
        assert frames["skipped_ids"] <= 10 and {"jpegdec", "fakesink"} <= set(parts(newest[10])), (frames, newest[10])


def test_what_carries_no_frame_ends_none():
    with Daemon() as daemon:
        launch(f"fakesrc num-buffers=5 ! fakesink async=false {SOURCE.format(60)} ! identity sleep-time=10000"
               " ! fakesink async=false", daemon)
        frames = frames_of(daemon)[0]
        assert frames["total_count"] == 60 and frames["forced"] == frames["unfinished"] == 0, frames


def test_pictures_before_sound():
    with Daemon() as daemon:
        launch("audiotestsrc is-live=true num-buffers=100 ! fakesink name=sound async=false"
               f" {SOURCE.format(30)} ! identity sleep-time=60000 ! fakesink name=picture async=false", daemon)
        ended(daemon)
        assert values_of(daemon, "fps_sound") and not values_of(daemon, "fps_picture"), frames_of(daemon)


def test_an_element_with_a_thread_for_something_else():
    if not has_element("rtpsession"):
        return "no rtpsession: gstreamer1.0-plugins-good"
    with Daemon() as daemon:
        receive(daemon, "rtpsession name=s rtcp-min-interval=1000 s.recv_rtp_src ! rtpjpegdepay ! fakesink num-buffers=100"
                " s.send_rtcp_src ! fakesink name=reports sync=false async=false")
        stages = stages_of(daemon)
        assert stages["reports"]["count"] > 0 and stages["s"]["count"] > 0.9 * stages["udpsrc"]["count"], stages


# nothing but its own threads lets an aggregator push
def test_an_element_with_a_thread_of_its_own():
    with Daemon() as daemon:
        launch("compositor ! video/x-raw,framerate=30/1 ! identity name=a sleep-time=2000 ! fakesink"
               f" {SOURCE.format(30)} ! identity name=b sleep-time=3000 ! compositor0."
               f" {SOURCE.format(30)} ! identity name=c sleep-time=3000 ! compositor0.", daemon)
        stages = stages_of(daemon)
        assert stages["a"]["min_ms"] >= 2 and stages["b"]["min_ms"] >= 3, stages
        assert stages["compositor"]["count"] >= 25, stages
        frames, newest = frames_of(daemon)
        assert frames["total_count"] == stages["fakesink"]["count"], (frames, stages)
        assert len([f for f in newest if {"compositor", "a", "fakesink"} < set(parts(f))]) >= 5, newest


def test_an_element_that_pushes_at_times_of_its_own():
    with Daemon() as daemon:
        launch("compositor name=c ! video/x-raw,framerate=60/1 ! fakesink videotestsrc num-buffers=30 timestamp-offset=7000000"
               " ! video/x-raw,width=32,height=32,framerate=30/1 ! identity name=b sleep-time=5000 ! c.", daemon)
        stages = stages_of(daemon)
        # what it shows again is none of its work; of the first buffers nothing says yet that it has a thread
        assert 28 <= stages["c"]["count"] <= 40 and stages["fakesink"]["count"] > 50, stages
        newest = frames_of(daemon)[1]
        assert len([f for f in newest if {"b", "c", "fakesink"} < set(parts(f))]) >= 5, newest


def test_a_muxer_waits():
    if not has_element("qtmux"):
        return "no qtmux: gstreamer1.0-plugins-good"
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        launch("videotestsrc num-buffers=60 is-live=true ! video/x-raw,width=32,height=32,framerate=50/1 ! jpegenc"
               f" ! qtmux name=m fragment-duration=500 ! filesink location={folder}/a.mp4", daemon)
        mux = stages_of(daemon)["m"]
        if mux["mean_ms"] < 50:
            return "qtmux has no thread of its own"  # before GStreamer 1.20
        assert mux["category"] == "wait", mux


def test_an_appsink_in_python():
    with Daemon() as daemon:
        run_python(daemon, f"""
import time
pipeline = Gst.parse_launch("{SOURCE.format(30)} ! queue max-size-buffers=3 ! videoconvert"
                            " ! appsink name=s sync=false max-buffers=1")
sink = pipeline.get_by_name("s")
pipeline.set_state(Gst.State.PLAYING)
while sink.emit("pull-sample"):
    time.sleep(0.01)
pipeline.set_state(Gst.State.NULL)
""", tracers="edgeprof")
        app = pathlib.Path(PYTHON).name
        stages = stages_of(daemon, app)
        # named by the application, as it is the only one of its kind that is not numbered
        counts = {name: stages[name]["count"] for name in stages}
        assert counts["s"] == 30 and counts["queue"] == 30, counts
        # it keeps one buffer for the program, and holds up the next one while that sleeps
        assert stages["s"]["p50_ms"] >= 9 and stages["videoconvert"]["p50_ms"] < 9, stages
        frames, _ = frames_of(daemon, app)
        assert frames["total_count"] == 30, frames


def test_pipelines_come_and_go_under_the_same_names():
    with Daemon() as daemon:
        run_python(daemon, f"""
for i in range(20):
    pipeline = Gst.parse_launch("{SOURCE.format(5)} ! queue ! identity sleep-time=2000 ! queue ! videoconvert ! fakesink")
    for again in range(3):
        pipeline.set_state(Gst.State.PLAYING)
        pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.READY)
    pipeline.set_state(Gst.State.NULL)
""")
        stages = stages_of(daemon)
        names = {"videotestsrc", "capsfilter", "queue0", "identity", "queue1", "videoconvert", "fakesink"}
        assert set(stages) == names, stages.keys()
        assert all(stages[name]["count"] == 300 for name in names - {"videotestsrc"}), stages
        frames = frames_of(daemon)[0]
        assert frames["total_count"] == 300, frames


def test_a_pipeline_that_stands_still_takes_no_time():
    with Daemon() as daemon:
        run_python(daemon, f"""
import time
def go(state, seconds):
    pipeline.set_state(state)
    pipeline.get_state(Gst.SECOND)
    time.sleep(seconds)
pipelines = [Gst.parse_launch("{SOURCE.format(50)} ! identity sleep-time=5000 ! fakesink sync=false") for i in range(2)]
pipelines[1].get_by_name("videotestsrc1").set_property("is-live", True)
for pipeline in (pipelines[0], *pipelines):
    go(Gst.State.PLAYING, 0.1)
    go(Gst.State.PAUSED, 0.8)
    pipeline.set_state(Gst.State.PLAYING)
    pipeline.get_bus().timed_pop_filtered(20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    go(Gst.State.READY, 0.8)
""")
        stages = stages_of(daemon)
        assert all(s["max_ms"] < 700 for s in stages.values()), {name: s["max_ms"] for name, s in stages.items()}
        # a sink that was stopped ends no frames any more, though it exists
        frames = frames_of(daemon)[0]
        assert frames["total_count"] == stages["fakesink"]["count"] and frames["forced"] == 0, frames


def test_hostile_pipelines():
    with Daemon() as daemon:
        out = run_python(daemon, f"""
import time
many = Gst.parse_launch("{SOURCE.format(50)} ! identity name=i")
last = many.get_by_name("i")
for element in [*(Gst.ElementFactory.make("identity", f"\\t\\"ä{{i}}") for i in range(60)), Gst.ElementFactory.make("tee")]:
    many.add(element)
    last.link(element)
    last = element
tee = last
for i in range(300):
    queue, sink = Gst.ElementFactory.make("queue"), Gst.ElementFactory.make("fakesink")
    sink.set_property("async", False)
    for element in ((queue, sink) if i < 8 else (sink,)):
        many.add(element)
    if i < 8:
        queue.link(sink)
    tee.link(queue if i < 8 else sink)
loops = Gst.parse_launch("videotestsrc is-live=true ! video/x-raw,width=16,height=16,framerate=500/1 ! tee name=t allow-not-linked=true")
pipelines = [many, loops]
for pipeline in pipelines:
    pipeline.set_state(Gst.State.PLAYING)
tee = loops.get_by_name("t")
for i in range(100):  # elements come and go while it runs
    queue, sink = Gst.ElementFactory.make("queue"), Gst.ElementFactory.make("fakesink")
    sink.set_property("async", False)
    for element in (queue, sink):
        loops.add(element)
        element.sync_state_with_parent()
    pad = tee.request_pad_simple("src_%u")
    queue.link(sink)
    pad.link(queue.get_static_pad("sink"))
    time.sleep(0.004)
    pad.unlink(queue.get_static_pad("sink"))
    tee.release_request_pad(pad)
    for element in (queue, sink):
        element.set_state(Gst.State.NULL)
        loops.remove(element)
    del pad, queue, sink, element
many.get_bus().timed_pop_filtered(20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
for pipeline in pipelines:
    pipeline.set_state(Gst.State.NULL)
print("done")
""")
        assert out == "done\n", out
        stages = stages_of(daemon)
        odd = [name for name in stages if name.startswith("____")]
        # 300 sinks at once may fill the ring: what it does not hold is dropped and counted
        assert len(odd) == 60 and all(stages[name]["count"] > 0 for name in odd), stages.keys()
        app = daemon.call("ListApps")["apps"][0]
        assert app["invalid"] == 0 and app["sent"] == app["received"] + app["dropped"], app


def test_it_dies_as_it_would_without():
    with Daemon() as daemon:
        words = ["gst-launch-1.0", "-q", *shlex.split("videotestsrc is-live=true ! queue ! fakesink")]
        for number in (signal.SIGKILL, signal.SIGINT):
            with program(words, environment(daemon)) as process:
                until("frames", lambda: [a for a in daemon.call("ListApps")["apps"] if a["name"] == "cam" and a["stages"] > 2
                                         and process.pid in [p["pid"] for p in a["processes"]]])
                process.send_signal(number)
                assert process.wait(30) == (-number if number == signal.SIGKILL else 0)
            ended(daemon)


def test_without_a_daemon_and_switched_off():
    pipeline = SOURCE.format(20) + " ! queue ! videoconvert ! fakesink"
    assert launch(pipeline, EDGEPROF_RUNTIME_DIR="/nonexistent").stderr == ""
    with Daemon() as daemon:
        assert launch(pipeline, daemon, EDGEPROF_DISABLE="1").stderr == ""
        assert daemon.call("ListApps")["apps"] == []


def test_parameters():
    pipeline = SOURCE.format(20) + " ! fakesink"
    with Daemon() as daemon:
        assert launch(pipeline, daemon, tracers="edgeprof(ap=cam)").stderr == "edgeprof tracer: unknown parameter 'ap'\n"
        assert stages_of(daemon, "gst-launch-1.0")["fakesink"]["count"] == 20
        assert launch(pipeline, daemon, tracers="edgeprof(=)").stderr == "edgeprof tracer: invalid parameters '='\n"
        launch(pipeline, daemon, tracers="edgeprof(app=two);edgeprof(app=three)")
        assert stages_of(daemon, "two")["fakesink"]["count"] == 20
        assert "three" not in [a["name"] for a in daemon.call("ListApps")["apps"]]


if not (pathlib.Path(PLUGIN) / "libgstedgeprof.so").exists():
    skip("built without GStreamer: install libgstreamer1.0-dev")
if not shutil.which("gst-launch-1.0"):
    skip("no gst-launch-1.0: install gstreamer1.0-tools")
needed = {"videoconvert": "gstreamer1.0-plugins-base", "vp8enc": "gstreamer1.0-plugins-good",
          "compositor": "gstreamer1.0-plugins-base"}
for element_name, package in needed.items():
    if not has_element(element_name):
        skip(f"no {element_name}: install {package}")
if not PYTHON:
    skip("no GStreamer for Python: install python3-gi and gir1.2-gstreamer-1.0")
run_tests(globals())
