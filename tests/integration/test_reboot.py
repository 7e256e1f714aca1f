#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots one after the other, and what is known of all of them: the real daemon in mount and time
namespaces, as root."""
import json
import re
import time

from harness import run_tests, skip, until
from reboots import Board, reason_to_skip

FAST = "[sampling]\ninterval = 200ms\nadaptive = no\n"
GLOB = "memory/*"
BUCKET_US = 10_000_000


def adopted(daemon):
    return until("the archive was read", lambda: daemon.call("ListBoots")["boots"])


def live(daemon, glob=GLOB):
    """What this boot sampled itself: {name: [(time_us, mean, count)]}."""
    rows, _ = daemon.rows(glob)
    seq = adopted(daemon)[-1]["boot_seq"]
    return seq, {name: told for (name, boot), told in rows.items() if boot == seq}


def check_boot(sampled, told, stopped):
    """A past boot's buckets against the samples that were seen while it ran: each sample is in
    exactly one bucket, and no bucket has what was not sampled. The last bucket of a boot that was
    stopped has what came after the last look, too."""
    assert set(told) == set(sampled), (sorted(told), sorted(sampled))
    for name, rows in told.items():
        times = [row[0] for row in rows]
        assert times == sorted(set(times)), times
        seen = sampled[name]
        for at, mean, least, most, count in rows[:-1] if stopped else rows:
            inside = [row for row in seen if at <= row[0] < at + BUCKET_US]
            assert sum(row[4] for row in inside) == count, (name, at, count, inside)
            assert abs(min(row[2] for row in inside) - least) <= 0.02 * abs(least) + 0.02, (name, at)
            assert abs(max(row[3] for row in inside) - most) <= 0.02 * abs(most) + 0.02, (name, at)


def test_boots_follow_one_another():
    """A clean stop, a kill -9, and the boot that asks."""
    with Board(FAST) as board:
        with board.boot() as daemon:
            assert adopted(daemon)[-1]["boot_seq"] == 1
            daemon.call("Mark", label="before the reboot")
            until("two buckets", lambda: time.sleep(0.2) or max(
                len(rows) for rows in live(daemon)[1].values()) > 60)
            first_seq, first = live(daemon)
            first_end = time.time()
        second_boot = board.boot(uptime=3.0)
        second_boot.start()
        assert adopted(second_boot)[-1]["boot_seq"] == 2
        # wait for a block, then pull the plug
        until("a block was written", lambda: second_boot.call("GetSelf")["history_persist_boots"] == 2,
              patience=240, pause=0.5)
        second_boot.call("Mark", label="lost with the plug")
        second_seq, second = live(second_boot)
        second_boot.kill()
        second_boot.clean()
        with board.boot(uptime=20.0) as daemon:
            boots = adopted(daemon)
            assert [boot["boot_seq"] for boot in boots] == [1, 2, 3], boots
            assert [boot["end"] for boot in boots] == ["stopped", "cut", "running"], boots
            rows, notes = daemon.rows(GLOB)
            assert not notes, notes
            past = {seq: {name: told for (name, boot), told in rows.items() if boot == seq} for seq in (1, 2, 3)}
            assert past[3], rows.keys()
            check_boot(first, past[1], stopped=True)
            # of a boot that was cut the last block's time is lost, nothing else
            check_boot(second, past[2], stopped=False)
            assert abs(sum(row[4] for row in past[1]["memory/used_percent"]) -
                       len(first["memory/used_percent"])) <= 10
            # ranges and steps over all boots
            for step in (10_000, 60_000, 3600_000):
                stepped, _ = daemon.rows("memory/used_percent", step_ms=step)
                for seq in (1, 2):
                    assert sum(row[4] for row in stepped["memory/used_percent", seq]) == \
                        sum(row[4] for row in past[seq]["memory/used_percent"]), (step, seq)
            middle = past[1]["memory/used_percent"][1][0]
            ranged, _ = daemon.rows("memory/used_percent", from_us=middle, to_us=middle)
            assert list(ranged) == [("memory/used_percent", 1)] and len(ranged["memory/used_percent", 1]) == 1
            single = daemon.call("GetHistory", glob="memory/**", from_us=0, max_points=40)["series"]
            assert sum(len(s["mean"]) for s in single) <= 40 and {s["boot_seq"] for s in single} == {1, 2, 3}
            # the timeline: in order, each once, a word for each reboot
            events = daemon.events()
            assert [e["serial"] for e in events] == sorted({e["serial"] for e in events})
            assert [e["time_us"] for e in events] == sorted(e["time_us"] for e in events), events
            texts = [e["text"] for e in events]
            assert texts.count("before the reboot") == 1 and texts.count("stopped") == 1, texts
            reboots = [e for e in events if e["text"].startswith("reboot: ")]
            assert ["boot 2" in reboots[0]["text"], "boot 3" in reboots[1]["text"]] == [True, True], reboots
            assert reboots[0]["boot_seq"] == 2 and "boot_seq" not in reboots[1], reboots
            assert "without a stop" in reboots[1]["text"] and "without" not in reboots[0]["text"], reboots
            assert "mono_us" not in reboots[0] and "mono_us" in reboots[1]
            # and for people
            around = json.loads(daemon.ctl("history", "--around", f"@{first_end:.0f}", "--span", "60s", "-j").stdout)
            said = [e["text"] for e in around["events"]]
            assert "stopped" in said and any(t.startswith("reboot: boot 2") for t in said), said
            assert [boot["boot_seq"] for boot in around["boots"]][:2] == [1, 2], around["boots"]
            csv = daemon.ctl("history", "memory/used_percent", "--since", "1h", "--csv").stdout.splitlines()
            assert csv[0].endswith(",boot_seq") and {line.split(",")[-1] for line in csv[1:]} == {"1", "2", "3"}
            plot = daemon.ctl("history", "memory/used_percent", "--since", "1h", "--plot").stdout
            assert "boot 2 from" in plot and "boot 3 from" in plot, plot
            table = daemon.ctl("history", "memory/used_percent", "--since", "1h", "--table").stdout
            assert "\nboot 2" in table and "\nboot 3" in table, table
            # in one step: a row is below its own boot
            table = daemon.ctl("history", "memory/used*", "--since", "12h", "--table", "--step", "6h").stdout
            kinds = "".join(line[5] if line.startswith("boot") else "." for line in table.splitlines()[1:])
            assert re.fullmatch(r"[.]{1,2}2[.]{1,2}3[.]{1,2}", kinds), table
            listed = daemon.ctl("history", "--boots").stdout.splitlines()
            assert len(listed) == 4 and "without a stop" in listed[2], listed
            last = max(e["serial"] for e in events)
            # a restart within the boot: nothing twice, nothing gone
            daemon.stop()
            daemon.start()
            adopted(daemon)
            again = daemon.events()
            assert [e["serial"] for e in again if e["serial"] <= last] == [e["serial"] for e in events], (events, again)
            texts = [e["text"] for e in again]
            assert texts.count("before the reboot") == 1, texts
            rows, _ = daemon.rows(GLOB)
            assert {seq: {name: told for (name, boot), told in rows.items() if boot == seq}
                    for seq in (1, 2)} == {1: past[1], 2: past[2]}
            for (name, _), told in rows.items():
                times = [row[0] for row in told]
                assert times == sorted(set(times)), (name, times)


def test_alerts_go_on_after_a_reboot():
    """Phase, since when by the wall clock, acknowledgement; hold times begin anew."""
    rules = ("[alert used]\nmetric = memory/used_percent\nabove = 0\nfor = 0s\n"
             "[alert slow]\nmetric = memory/used_percent\nabove = 0\nfor = 1h\n")
    with Board(FAST + rules) as board:
        def alerts(daemon):
            return {a["rule"]: a for a in daemon.call("ListAlerts")["alerts"]}

        with board.boot() as daemon:
            adopted(daemon)
            until("an alert", lambda: alerts(daemon).get("used", {}).get("state") == "firing" and
                  "slow" in alerts(daemon))
            daemon.call("AckAlert", rule="used", note="known")
            before = alerts(daemon)
            assert before["used"]["acked"] and before["slow"]["state"] == "pending", before
        time.sleep(2)  # a since of the second boot could not be taken for that of the first
        with board.boot() as daemon:
            adopted(daemon)
            after = until("they are judged again", lambda: len(alerts(daemon)) >= 2 and alerts(daemon))
            for rule in ("used", "slow"):
                assert after[rule]["state"] == before[rule]["state"], (before, after)
                assert abs(after[rule]["since_us"] - before[rule]["since_us"]) <= 1_000_000, (before, after)
            assert after["used"]["acked"], after
            # not told as new
            told = [e for e in daemon.events() if e["kind"] == "alert" and "boot_seq" not in e]
            assert told == [], told
            # and a restart of the same boot goes on as ever
            daemon.stop()
            daemon.start()
            again = until("they are judged again", lambda: len(alerts(daemon)) >= 2 and alerts(daemon))
            assert abs(again["used"]["since_us"] - after["used"]["since_us"]) < 100_000, (after, again)
            assert again["used"]["acked"], again
        (board.state / "alerts").write_bytes(b"damaged" * 100)
        with board.boot() as daemon:
            adopted(daemon)
            fresh = until("it fires anew", lambda: alerts(daemon).get("used", {}).get("state") == "firing" and
                          alerts(daemon))
            assert fresh["used"]["since_us"] > before["used"]["since_us"] + 1_000_000
            assert "damaged" in daemon.log()


def test_without_persist_nothing_is_told_of_boots():
    from harness import Daemon
    with Daemon(FAST) as daemon:
        until("rows", lambda: daemon.call("GetHistory", glob=GLOB)["series"])
        assert all("boot_seq" not in s for s in daemon.call("GetHistory", glob=GLOB, from_us=0)["series"])
        answer = daemon.call("ListBoots")
        assert answer["boots"] == [] and "persist" in answer["reason"], answer
        done = daemon.ctl("history", "--boots")
        assert done.returncode == 2 and "persist" in done.stderr, done
        assert daemon.ctl("history", "memory/used", "--csv").stdout.startswith("name,unit,time_us,mean,min,max,count\n")


if __name__ == "__main__":
    reason = reason_to_skip()
    if reason:
        skip(reason)
    run_tests(globals())
