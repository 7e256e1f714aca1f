# SPDX-License-Identifier: Apache-2.0
"""What the tests of the history on disk share: a daemon with seconds instead of minutes between two
blocks, and what it has to say about a place that is wrong."""
import contextlib
import pathlib
import shutil
import tempfile

from harness import BUILD, Daemon, until

QUICK = [str(BUILD / "tests" / "integration" / "odd-daemon"), "-c"]
MIB = 1 << 20


class Quick(Daemon):
    program = QUICK
    more = ["quick", "1000", "300"]


def config(path, size="1M"):
    return f"[sampling]\ninterval = 200ms\n[history]\npersist = yes\npath = {path}\npersist_size = {size}\n"


@contextlib.contextmanager
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="edgeprof-state."))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def told(daemon):
    return daemon.call("GetSelf")


def state_is(daemon, wanted, patience=30):
    return until(f"the state is {wanted}: {told(daemon)}",
                 lambda: (lambda s: s if s["history_persist_state"] == wanted else None)(told(daemon)), patience, 0.1)


def written_more(daemon):
    before = told(daemon)["history_persist_written_bytes"]
    until("another block", lambda: daemon.call("Mark", label="something to write") is not None and
          told(daemon)["history_persist_written_bytes"] > before, pause=0.2)


def samples_go_on(daemon):
    before = daemon.metric("cpu/load1")["time_us"]
    until("samples", lambda: daemon.metric("cpu/load1")["time_us"] > before, 5)


def degraded(daemon, *words, patience=30):
    """It says so everywhere, with the reason, and goes on."""
    state_is(daemon, "degraded", patience)
    reason = until(f"the reason has {words}: {told(daemon)}", lambda: (
        lambda r: r if all(word in r for word in words) else None)(told(daemon).get("history_persist_reason", "")), patience)
    assert f"history: not persistent: {reason}" in daemon.call("GetStatus")["degraded"]
    samples_go_on(daemon)
    until("the metric", lambda: daemon.metric("self/history_degraded")["value"] == 1)
    assert reason in daemon.ctl("self", "--no-pager").stdout
    return reason


def well_again(daemon, patience=30):
    state_is(daemon, "ok", patience)
    events = [e["text"] for e in daemon.call("ListEvents")["events"]]
    assert "history is persistent again" in events, events
    assert not [d for d in daemon.call("GetStatus")["degraded"] if "not persistent" in d]
    until("the metric", lambda: daemon.metric("self/history_degraded")["value"] == 0)
    written_more(daemon)


def rows(daemon, glob="cpu/load1"):
    with contextlib.closing(daemon.client(30)) as client:
        return [t for reply in client.stream("GetHistory", glob=glob, from_us=1)
                for series in reply["series"] for t in series["time_us"]]
