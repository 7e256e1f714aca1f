# SPDX-License-Identifier: Apache-2.0
"""The event mapping's writer: the sealed memfd, its declarations, slots and chunks.

Only this process writes its mapping, and everything here runs under one lock, so nothing is ever
compared and exchanged: the daemon only gives chunks back. Records themselves are written by their
threads without the lock (_thread.py)."""
import fcntl
import mmap
import os
import struct
import sys
import time
from typing import Callable, List, Optional, Tuple

from . import _layout as L

_F_ADD_SEALS = 1033
_SEALS = 0x0001 | 0x0002 | 0x0004  # SEAL, SHRINK, GROW
_MFD_NOEXEC_SEAL = 0x0008  # Linux 6.3
_ADVICE, _ADVICE_TIME = L.ADVICE_OFFSET // 8, L.ADVICE_TIME_OFFSET // 8
_WHOLE = struct.calcsize("P") == 8
_CHUNK32, _CHUNK64 = L.CHUNK_SIZE // 4, L.CHUNK_SIZE // 8


def _memfd() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("edgeprof", flags | _MFD_NOEXEC_SEAL)
    except OSError:
        return os.memfd_create("edgeprof", flags)


def _size_allowed(size: int) -> bool:
    """Whether RLIMIT_FSIZE allows the file: beyond it an embedded Python gets SIGXFSZ, not an error."""
    try:
        import resource
    except ImportError:
        return True
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return limit == resource.RLIM_INFINITY or limit >= size


class SlotState:
    """What a slot's next owner continues with."""

    __slots__ = ("index", "head", "full", "origin", "chunk", "taking", "free")

    def __init__(self, index: int) -> None:
        self.index = index
        self.head = self.full = self.origin = 0
        self.chunk: Optional[int] = None
        self.taking: Optional[int] = None  # a chunk that is half taken
        self.free = True


class Mapping:
    """A new mapping of one of the listed sizes. OSError or AttributeError when this system cannot."""

    def __init__(self, size: int) -> None:
        if sys.byteorder != "little" or not _size_allowed(size):
            raise OSError("no recording here")
        self.geometry = g = L.Geometry(size)
        self.fd = _memfd()
        try:
            os.ftruncate(self.fd, size)
            os.posix_fallocate(self.fd, 0, size)
            fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)
            self.map = mmap.mmap(self.fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        except BaseException:
            os.close(self.fd)
            raise
        view = memoryview(self.map)
        self.u32 = view.cast("I")
        self.u64 = view.cast("Q")
        self.slots = [SlotState(i) for i in range(g.slots)]
        self._chunks32, self._chunks64 = g.chunks_offset // 4, g.chunks_offset // 8
        self._uncounted = self._declared = 0
        L.HEADER.pack_into(self.map, 0, L.MAP_MAGIC, L.MAJOR, L.MINOR, size, 0, time.monotonic_ns(), 0)
        for i in range(g.slots):
            first = (g.slots_offset + i * L.SLOT_SIZE) // 4
            self.u32[first + L.FIRST_CHUNK] = L.NO_CHUNK
            self.u32[first + L.TAIL_CHUNK] = L.NO_CHUNK
        for i in range(g.chunks):
            self.u32[self._chunks32 + i * _CHUNK32 + L.NEXT] = L.NO_CHUNK
            self.u64[self._chunks64 + i * _CHUNK64 + L.BASE] = L.NO_BASE

    def close(self) -> None:
        """Unmaps the memory (of a parent's mapping in a forked child)."""
        self.u32.release()
        self.u64.release()
        try:
            self.map.close()
        except BufferError:
            pass  # a thread that did not survive the fork holds a view

    def slot_view(self, index: int) -> memoryview:
        start = self.geometry.slots_offset + index * L.SLOT_SIZE
        return memoryview(self.map)[start : start + L.SLOT_SIZE]

    def declare(self, table: List[bytes], fence: Callable[[], None]) -> None:
        """Publishes what the table has more than the mapping."""
        while self._declared < len(table):
            index = self._declared
            start = L.HEADER_SIZE + index * L.DECLARATION.size
            self.map[start : start + L.DECLARATION.size] = table[index]
            fence()
            self.u32[L.DECLARED_OFFSET // 4] = index + 1
            self._declared = index + 1

    def say_bye(self) -> None:
        self.u32[L.FLAGS_OFFSET // 4] |= L.BYE

    def count_lost(self) -> None:
        self.u64[L.LOST_OFFSET // 8] += 1

    def slot_take(self, tid: int) -> Optional[SlotState]:
        """A slot left behind and read to its end is the best: it pins no second chunk, and none of
        its records is taken for the new thread's."""
        first = self.geometry.slots_offset // 8
        best, rank = None, 3
        for slot in self.slots:
            if not slot.free:
                continue
            tail = self.u64[first + slot.index * (L.SLOT_SIZE // 8) + L.TAIL]
            mine = 1 if slot.head == 0 else 0 if tail == slot.head else 2
            if mine < rank:
                best, rank = slot, mine
                if mine == 0:
                    break
        if best is not None:
            best.free = False
            at = (self.geometry.slots_offset + best.index * L.SLOT_SIZE) // 4
            self.u32[at + L.DEPTH] = 0
            self.u32[at + L.TID] = tid
            self.u32[at + L.FLAGS] = L.SLOT_CHECKED if L.CHECKED else 0
            self.u32[at + L.STATE] = L.OWNED
        return best

    def slot_release(self, slot: SlotState) -> None:
        at = (self.geometry.slots_offset + slot.index * L.SLOT_SIZE) // 4
        self.u32[at + L.DEPTH] = 0
        self.u32[at + L.STATE] = L.RELEASED
        slot.free = True

    def _owners(self) -> memoryview:
        first = self._chunks32 + L.OWNER
        return self.u32[first : first + self.geometry.chunks * _CHUNK32 : _CHUNK32]

    def _chunk_find(self, slot: SlotState) -> Optional[int]:
        g, owners = self.geometry, self._owners()
        if slot.chunk is None:  # a slot's home: spread by the golden ratio as in libedgeprof
            at = first = (slot.index * 40503 & 0xFFFF) * g.chunks >> 16
        else:
            at = first = slot.chunk
        while owners[at]:
            at = at + 1 if at < g.chunks - 1 else 0
            if at == first:
                return None
        return at

    def chunk_take(self, slot: SlotState) -> bool:
        """Room for the slot's next records (slot.head to slot.full); False: all chunks are owned.

        A signal handler may raise in here at any point: the next call takes the same chunk."""
        g, u32 = self.geometry, self.u32
        chunk = slot.taking
        if chunk is None:
            chunk = slot.taking = self._chunk_find(slot)
            if chunk is None:
                return False
        if chunk != slot.chunk:
            at = self._chunks32 + chunk * _CHUNK32
            u32[at + L.OWNER] = slot.index + 1
            u32[at + L.NEXT] = L.NO_CHUNK
            self.u64[self._chunks64 + chunk * _CHUNK64 + L.BASE] = slot.head
            if slot.chunk is None:
                u32[(g.slots_offset + slot.index * L.SLOT_SIZE) // 4 + L.FIRST_CHUNK] = chunk
            else:
                u32[self._chunks32 + slot.chunk * _CHUNK32 + L.NEXT] = chunk
        slot.origin = g.records_offset + chunk * g.chunk_bytes - slot.head * L.RECORD_SIZE
        slot.full = slot.head + g.chunk_records
        slot.chunk = chunk
        slot.taking = None
        self._uncounted += g.chunk_records
        return True

    def wake_wanted(self) -> bool:
        """Past half full, at most once in 1000 records and never twice before the daemon drains."""
        g = self.geometry
        if self._uncounted < 1000 or self.u32[L.WAKE_OFFSET // 4]:
            return False
        if g.chunks - self._owners().tolist().count(0) <= g.chunks // 2:
            return False
        self.u32[L.WAKE_OFFSET // 4] = 1
        self._uncounted = 0
        return True

    def advice(self, fence: Callable[[], None]) -> Tuple[int, int]:
        """The daemon's word and when it was written; the word is never older than that. It is read
        in one piece where a machine word has 8 bytes; elsewhere it has to be the same twice."""
        u64 = self.u64
        written = u64[_ADVICE_TIME]
        fence()
        word = u64[_ADVICE]
        return (word, written) if _WHOLE or word == u64[_ADVICE] else (0, 0)

    def counts(self) -> List[int]:
        """[received, in_ring, dropped] as the slots tell."""
        received = in_ring = 0
        dropped = self.u64[L.LOST_OFFSET // 8]
        for i in range(self.geometry.slots):
            at = (self.geometry.slots_offset + i * L.SLOT_SIZE) // 8
            tail = self.u64[at + L.TAIL]  # first: it never passes a head that is read later
            received += tail
            in_ring += self.u64[at + L.HEAD] - tail
            dropped += self.u64[at + L.DROPPED] + self.u64[at + L.DROPPED_BUSY]
        return [received, in_ring, dropped]
