# SPDX-License-Identifier: Apache-2.0
"""The layout of the event mapping: proto/mapping.h in Python. Native byte order, native alignment;
recording works on little-endian machines only (elsewhere everything else does)."""
import os
import struct

MAP_MAGIC = 0x50454745
HELLO_MAGIC = 0x48454745
MAJOR, MINOR = 2, 0
BYE = 1
DEFAULT_SIZE = 256 * 1024
MAX_SIZE = 1024 * 1024
DECLARATIONS = 128
OPEN_STAGES = 16
NAME_MAX = 48
LABEL_MAX = 23
NO_CHUNK = 0xFFFFFFFF
NO_BASE = 0xFFFFFFFFFFFFFFFF
NO_FRAME = 0xFFFFFFFFFFFFFFFF
NOT_MEASURED = 0xFFFFFFFF
COST_CPU_UNKNOWN = 0xFFFFFFFFFFFFFFFF
COST_RSS_UNKNOWN = 1 << 63  # INT64_MIN as it travels

# kinds of a record
COMPLETE, BEGIN, END, FRAME, MARK, GAUGE, COUNTER = 1, 2, 3, 4, 5, 6, 7
ATTRIBUTE, MARK_MEMORY, COST, DEADLINE = 9, 10, 11, 12

# flags of a record; the upper four bits are the stages open around it
NESTED, FAILED, OF_FRAMES, OF_TASK, DEPTH_SHIFT = 1, 2, 4, 8, 4

FREE, OWNED, RELEASED = 0, 1, 2
SLOT_CHECKED = 1
# x86 makes stores visible in program order, and nothing in CPython moves one of ours across a call:
# there a record is in memory before its head is. Other machines may show them the other way round.
CHECKED = os.uname().machine not in ("x86_64", "AMD64", "i686", "i586", "i386")

HEADER_SIZE = 512
HEADER = struct.Struct("@IHHIIQI")
FLAGS_OFFSET, DECLARED_OFFSET, LOST_OFFSET, WAKE_OFFSET = 12, 24, 64, 128
ADVICE_OFFSET, ADVICE_TIME_OFFSET = 192, 200
# advice: level | skip_frames << 8 | of_frames << 16 | frames in 1000 s << 32
ADVICE_LEVELS = ("", "full", "reduced", "minimal")
ADVICE_FRESH_NS = 5000000000
DECLARATION = struct.Struct("@49s24s24s15sQQ")
SLOT_SIZE = 512
# a slot as u64: head, dropped, dropped_busy, ... tail; as u32: depth, state, tid, first_chunk, ... flags
HEAD, DROPPED, DROPPED_BUSY, TAIL = 0, 1, 2, 56
DEPTH, STATE, TID, FIRST_CHUNK, FLAGS, TAIL_CHUNK = 6, 7, 8, 9, 106, 114
OPEN_OFFSET, OPEN_SIZE = 40, 24
CHUNK_SIZE = 16
# a chunk as u64: base; as u32: owner, next
BASE, OWNER, NEXT = 0, 2, 3
OPEN = struct.Struct("@QQI")
# stage | check << 8 | kind << 16 | flags << 24 | cpu_us << 32, start_ns, value, frame
RECORD = struct.Struct("@QQQQ")
RECORD_SIZE = 32
HELLO = struct.Struct("@IHHIIQ64s")

_LISTED = {65536: (16, 16), 131072: (32, 32), 262144: (64, 64), 524288: (64, 128), 1048576: (64, 256)}


class Geometry:
    """The offsets in a mapping of one of the listed sizes; ValueError for any other."""

    def __init__(self, size: int) -> None:
        if size not in _LISTED:
            raise ValueError("not a size of a mapping: %r" % (size,))
        self.size = size
        self.slots, self.chunk_records = _LISTED[size]
        self.slots_offset = HEADER_SIZE + DECLARATIONS * DECLARATION.size
        self.chunk_bytes = self.chunk_records * RECORD_SIZE
        self.chunks_offset = self.slots_offset + self.slots * SLOT_SIZE
        self.chunks = (size - self.chunks_offset - 63) // (self.chunk_bytes + CHUNK_SIZE)
        self.records_offset = (self.chunks_offset + self.chunks * CHUNK_SIZE + 63) & ~63


def fold(value: int) -> int:
    """The exclusive or of the eight bytes of a u64."""
    value ^= value >> 32
    value ^= value >> 16
    return (value ^ value >> 8) & 255


def clean(name: str) -> bytes:
    """The name rule: 1-48 bytes of [A-Za-z0-9_.-], any other byte is '_'."""
    raw = name.encode("utf-8", "surrogateescape")[:NAME_MAX]
    if not raw.strip(b"."):
        return b"_" * len(raw) or b"_"
    return bytes(byte if chr(byte) in _NAME_CHARACTERS else 95 for byte in raw)


def is_clean(name: str) -> bool:
    """True for what clean() would not change."""
    return clean(name) == name.encode("utf-8", "replace")


LABEL_SIGN = "\n"  # in front of a label among the names: a name "a b" is a_b, a label is not


def text(label: str) -> bytes:
    """As it is, but for what is too long: no character is cut in two."""
    return label.encode("utf-8", "replace")[:NAME_MAX].decode("utf-8", "ignore").encode("utf-8")


_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def unique(name: str, taken) -> bytes:
    """clean(), and `.2`, `.3` … when that is among the taken ones."""
    base = clean(name)
    result, number = base, 2
    while result in taken:
        suffix = b".%d" % number
        result = base[: NAME_MAX - len(suffix)] + suffix
        number += 1
    return result
