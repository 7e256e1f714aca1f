#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments are TypeError or ValueError, nothing else is ever raised, and what was written is
what the layout says."""
import itertools
import math
import os
import random
import struct
import time
import unittest
from unittest import mock

import support
from support import Daemon, app_env, app_of, run, until

os.environ["EDGEPROF_RUNTIME_DIR"] = support.NOWHERE
import edgeprof  # noqa: E402
from edgeprof import _layout as L  # noqa: E402

if not support.NATIVE:
    from edgeprof import _scope, _thread  # noqa: E402
    from edgeprof._values import depth_flags  # noqa: E402
    from edgeprof._wire import Mapping  # noqa: E402

ODD = [
    None, "", "x", "a" * 1000, "\0", "é\udcff", b"x", 0, -1, 1, 2**63, 2**64 - 2, 2**64 - 1, 2**64, 10**400, 1.5,
    -0.0, math.inf, math.nan, True, [], {}, {"a": 1}, {"a": "x"}, {1: 2}, {"": 1}, object(), (1,), lambda: 1,
]  # fmt: skip


def uses(a, b, c):
    """One call of everything with odd arguments."""
    yield lambda: edgeprof.stage(a, frame=b).__enter__()
    yield lambda: edgeprof.stage("s", unit=a, category=b, attributes=c)
    yield lambda: edgeprof.stage("s", attributes={"n": a}, cpu_time=b)
    yield lambda: edgeprof.timed(a, frame=b)(lambda: 1)()
    yield lambda: edgeprof.begin(a, b)
    yield lambda: edgeprof.end(a, b)
    yield lambda: edgeprof.frame(a).__enter__().__exit__(None, None, None)
    yield lambda: edgeprof.mark(a)
    yield lambda: edgeprof.mark("m", value=a)
    yield lambda: edgeprof.gauge(a, b)
    yield lambda: edgeprof.gauge("g", a)
    yield lambda: edgeprof.counter("c", a, b)
    yield lambda: edgeprof.deadline(a, b)
    yield lambda: edgeprof.deadline(None, a)
    yield lambda: edgeprof.memory_scope(a)
    yield lambda: edgeprof.stage_timer(a)
    yield lambda: edgeprof.StageProfiler().start(a)


def fuzz(seed, rounds):
    choose = random.Random(seed)
    for _ in range(rounds):
        for use in uses(*(choose.choice(ODD) for _ in range(3))):
            try:
                use()
            except (TypeError, ValueError):
                pass


class Arguments(unittest.TestCase):
    def test_only_type_and_value_errors_without_a_daemon(self):
        fuzz(1, 400)

    def test_only_type_and_value_errors_with_a_daemon(self):
        code = """
import sys, time
sys.path[:0] = [%r]
import os
where = os.environ["EDGEPROF_RUNTIME_DIR"]
import test_arguments as t   # which sets the directory of its own tests
os.environ["EDGEPROF_RUNTIME_DIR"] = where
import edgeprof
assert edgeprof.connect("fuzz")
t.fuzz(2, 300)
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
c = edgeprof.counts()
assert c["sent"] == c["received"] + c["dropped"], c
""" % str(support.HERE)
        with Daemon() as daemon:
            run(code, app_env(daemon))
            until("its end", lambda: (app_of(daemon, "fuzz") or {}).get("state") == "ended")
            self.assertEqual(app_of(daemon, "fuzz")["in_ring"], 0)

    def test_what_is_wrong_is_told(self):
        for call, error in (
            (lambda: edgeprof.stage(None), TypeError), (lambda: edgeprof.stage(b"x"), TypeError),
            (lambda: edgeprof.stage(""), ValueError), (lambda: edgeprof.stage(["x"]), TypeError),
            (lambda: edgeprof.stage("x", frame=-1), ValueError), (lambda: edgeprof.stage("x", frame="1"), TypeError),
            (lambda: edgeprof.stage("x", unit=1), TypeError), (lambda: edgeprof.frame(2**64 - 1), ValueError),
            (lambda: edgeprof.stage("x", attributes={"a": "1"}), TypeError),
            (lambda: edgeprof.begin("x", 1.0), TypeError), (lambda: edgeprof.end("x", 2**64), ValueError),
            (lambda: edgeprof.gauge("x", "1"), TypeError), (lambda: edgeprof.gauge("x", 10**400), ValueError),
            (lambda: edgeprof.deadline("x", -1), ValueError), (lambda: edgeprof.deadline("x", math.nan), ValueError),
            (lambda: edgeprof.timed(5), TypeError), (lambda: edgeprof.connect(5), TypeError),
            (lambda: edgeprof.memory_scope(5), TypeError), (lambda: edgeprof.stage_timer(""), ValueError),
            (lambda: edgeprof.StageProfiler().start(None), TypeError),
        ):  # fmt: skip
            self.assertRaises(error, call)


def check_of(record, position):
    """proto_record_check of proto/mapping.h, word for word."""
    stage, check, kind, flags, cpu_us, start, value, frame = record
    x = stage | kind << 16 | flags << 24 | cpu_us << 32
    x ^= start ^ value ^ frame ^ position ^ position >> 8
    x ^= x >> 32
    x ^= x >> 16
    x ^= x >> 8
    return (x ^ 0xA5) & 0xFF


@unittest.skipIf(support.NATIVE, "of the recorder in Python")
class Layout(unittest.TestCase):
    """The mapping as the daemon sees it, written by the module with nobody reading."""

    def setUp(self):
        self.process = edgeprof._process.process
        self.thread = _thread.Thread()
        # a process state of our own, with a mapping that nobody was sent, as on a machine without order
        for name, value in (("mapping", Mapping(65536)), ("due", 1 << 62), ("channel", None), ("off", False)):
            self.patch(self.process, name, value)
        self.order(False)
        self.mapping = self.process.mapping

    def patch(self, *what):
        patch = mock.patch.object(*what)
        patch.start()
        self.addCleanup(patch.stop)

    def order(self, ordered):
        self.patch(L, "CHECKED", not ordered)
        self.patch(_scope, "CHECKED", not ordered)
        self.patch(_thread, "CHECKED", not ordered)
        self.patch(_thread, "pack_record", _thread._plain_pack if ordered else _thread._fenced_pack)
        self.patch(_scope, "pack_record", _thread.pack_record)

    def records(self):
        """(position, record) of slot 0, found by the tables as the daemon does."""
        g, map_ = self.mapping.geometry, self.mapping.map
        head = struct.unpack_from("@Q", map_, g.slots_offset)[0]
        place = {}
        for chunk in range(g.chunks):
            if struct.unpack_from("@I", map_, g.chunks_offset + 16 * chunk + 8)[0] == 1:
                place[struct.unpack_from("@Q", map_, g.chunks_offset + 16 * chunk)[0]] = chunk
        for position in range(head):
            chunk = place[position - position % g.chunk_records]
            at = g.records_offset + (chunk * g.chunk_records + position % g.chunk_records) * 32
            yield position, struct.unpack_from("@BBBBIQQQ", map_, at)

    def test_advice_is_fresh_and_sound_or_none(self):
        def write(word, age_s=0.0):
            struct.pack_into("@QQ", self.mapping.map, 192, word, time.monotonic_ns() - int(age_s * 1e9))

        reduced = 2 | 1 << 8 | 3 << 16 | 20500 << 32
        self.assertIsNone(edgeprof.advice())
        write(reduced)
        self.assertEqual(edgeprof.advice(), edgeprof.Advice("reduced", 20.5, 1, 3))
        self.assertEqual([edgeprof.should_skip() for _ in range(7)], [False, False, True] * 2 + [False])
        write(3 | 2 << 8 | 3 << 16)
        self.assertEqual(edgeprof.advice(), ("minimal", None, 2, 3))
        write(1 | 1 << 16)
        self.assertEqual(edgeprof.advice(), ("full", None, 0, 1))
        self.assertFalse(edgeprof.should_skip())
        for age_s in (5.1, -2, 60):
            write(reduced, age_s)
            self.assertIsNone(edgeprof.advice(), age_s)
        for word in (0, 4 | 1 << 16, 1, 2 | 3 << 8 | 3 << 16, 2**64 - 1):
            write(word)
            self.assertIsNone(edgeprof.advice(), word)
            self.assertFalse(edgeprof.should_skip())
        write(reduced)
        with mock.patch.object(self.process, "off", True):
            self.assertIsNone(edgeprof.advice())

    def test_every_record_carries_its_check(self):
        choose = random.Random(5)
        frames = [0, 1, 2**32, 2**63 + 12345, L.NO_FRAME]
        starts = [1, 2**30 - 1, 2**30, 2**40 + 7, 2**56 + 3]
        written = []
        for start, frame, depth in itertools.product(starts, frames, range(0, 20, 3)):
            value = choose.choice([0, 5, 2**20, 2**31, 2**47 + 1])
            index, kind = choose.randrange(128), choose.randrange(1, 13)
            flags, cpu = depth_flags(depth), choose.choice([L.NOT_MEASURED, 12345])
            if self.thread.write(start, index, kind, flags, cpu, start, value, frame):
                written.append((index, kind, flags, cpu, start, value, frame))
        found = list(self.records())
        self.assertEqual(len(found), len(written))
        self.assertGreater(len(found), 100)
        for (position, record), wanted in zip(found, written):
            self.assertEqual(record[:1] + record[2:], wanted)
            self.assertEqual(record[1], check_of(record, position))

    def test_the_hot_path_writes_the_same(self):
        self.hot_path(check_of)

    def test_where_stores_are_seen_in_order_no_check_is_needed(self):
        self.order(True)
        self.hot_path(lambda record, position: 0)

    def hot_path(self, check_of):
        clock = iter(range(2**40 + 1, 2**62, 2**29 + 77))  # windows change in every stage
        with mock.patch.object(_scope, "monotonic_ns", lambda: next(clock)):
            scopes = [_scope.Scope(self.thread, "s%d" % i, None, i) for i in range(3)]
            for frame in (7, 2**63, L.NO_FRAME):
                self.thread.frame = frame
                for _ in range(50):
                    with scopes[0]:
                        with scopes[1], scopes[2]:
                            pass
        found = list(self.records())
        self.assertEqual(len(found), 450)
        flags = struct.unpack_from("@I", self.mapping.map, self.mapping.geometry.slots_offset + 4 * L.FLAGS)
        self.assertEqual(flags[0], L.SLOT_CHECKED if L.CHECKED else 0)
        for position, record in found:
            self.assertEqual(record[1], check_of(record, position))
            self.assertIn(record[0], (0, 1, 2))
            self.assertEqual(record[3], record[0] << 4 | bool(record[0]))
            self.assertEqual(record[4], L.NOT_MEASURED)
            self.assertEqual(record[6] % (2**29 + 77), 0)

    def test_a_machine_without_order_writes_the_same(self):
        for i in range(40):
            self.thread.write(i, 1, 1, 0, 0, i, i, i)
        found = list(self.records())
        self.assertEqual([record[5] for _, record in found], list(range(40)))

    def test_sizes_are_those_of_the_c_library(self):
        for size, (slots, chunk_records) in L._LISTED.items():
            g = L.Geometry(size)
            self.assertEqual((g.slots, g.chunk_records), (slots, chunk_records))
            self.assertLessEqual(g.records_offset + g.chunks * g.chunk_bytes, size)
            self.assertGreater(g.records_offset + (g.chunks + 2) * g.chunk_bytes, size)
        self.assertRaises(ValueError, L.Geometry, 65537)
        sizes = (L.HEADER.size, L.DECLARATION.size, L.OPEN.size, L.RECORD.size, L.HELLO.size)
        self.assertEqual(sizes, (28, 128, 20, 32, 88))


if __name__ == "__main__":
    support.main()
