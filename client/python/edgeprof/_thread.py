# SPDX-License-Identifier: Apache-2.0
"""A thread's side of the mapping: its slot, its place in its chunk, its open stages.

Nobody else touches a Thread (but to ring its gate), so an event takes no lock. Its chunk is full when
head has reached full; prepare() finds room then. `busy` means that this thread is inside an event
just now: a signal handler's event is dropped and counted. What an event goes by is read after busy
was set: before, a handler may change it at any time."""
import sys
import threading
import time
from _thread import get_ident
from typing import Any, Dict, Optional, Tuple

from . import _layout as L
from . import _tasks
from ._process import fence, process
from ._values import depth_flags
from ._wire import SlotState

_plain_pack = L.RECORD.pack_into


def _fenced_pack(*record: Any) -> None:
    _plain_pack(*record)
    fence()


CHECKED, _HEAD, _RECORD_SIZE = L.CHECKED, L.HEAD, L.RECORD_SIZE
pack_record = _fenced_pack if CHECKED else _plain_pack
pack_open = L.OPEN.pack_into


def check(word: int, start: int, value: int, frame: int, head: int) -> int:
    """The check of record `head`, at its place in the word."""
    return (L.fold(word ^ start ^ value ^ frame) ^ head & 255 ^ 0xA5) << 8


class Thread:
    """All that the events of one thread need."""

    __slots__ = (
        "ident", "depth", "turn", "frame", "frames", "busy", "gate", "quiet", "head", "full", "origin",
        "buffer", "slot8", "slot32", "slot64", "slot", "scopes", "unattached", "generation",
        "__weakref__",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ident = get_ident()
        self.generation = process.generation
        self.depth = 0
        self.turn = 0  # another number after each end that closed other stages, too
        self.frame = L.NO_FRAME
        self.frames = 0  # open ones
        self.busy = False
        self.quiet = 0  # until then no daemon will be looked for, and none is there
        self.gate = 0  # at this time prepare() wants to be asked
        self.head = self.full = 0  # records published; where the chunk ends
        self.origin = 0  # record n is at origin + n * 32 in buffer
        self.unattached = 0
        self.scopes: Dict[str, Any] = {}
        self.slot: Optional[SlotState] = None
        self.buffer: Any = None
        self._scratch()

    def _scratch(self) -> None:
        """Without a slot the open stages are kept in memory that nobody reads."""
        self._views(memoryview(bytearray(L.SLOT_SIZE)))

    def _views(self, slot: memoryview) -> None:
        self.slot8 = slot
        self.slot32 = slot.cast("I")
        self.slot64 = slot.cast("Q")

    def close(self, depth: int) -> None:
        """Ends the open stages from this depth on."""
        if self.depth != depth + 1:
            self.turn += 1
        self.depth = self.slot32[L.DEPTH] = depth

    def count_busy(self) -> None:
        """An event of a signal handler, inside another one."""
        if self.slot is not None:
            self.slot64[L.DROPPED_BUSY] += 1
        else:
            process.count_lost()

    def prepare(self, now: int) -> bool:
        """Looks for the daemon when that is due, takes a slot and a chunk. False: the event that
        asked has been counted where it belongs."""
        if self.busy:
            self.count_busy()
            return False
        if process.off:
            return False
        if process.mapping is None and now < process.due:
            self.quiet = 0 if process.print else process.due
            self.unattached += 1
            return False
        try:
            self.busy = True
            with process.lock:
                if now >= self.gate:
                    _tasks.look()
                    if now >= process.due:
                        process.check(now)
                    self.gate = 0 if process.print else process.due
                return self.head != self.full or self._make_room()
        finally:
            self.busy = False

    def _make_room(self) -> bool:
        mapping, slot = process.mapping, self.slot
        if process.off:
            return False
        if mapping is None:
            self.unattached += 1
            return False
        if slot is None:
            slot = self._take_slot(mapping)
            if slot is None:
                mapping.count_lost()
                return False
        if slot.full <= self.head or slot.taking is not None:  # else taken over with room left
            slot.head = self.head
            if not mapping.chunk_take(slot):
                self.slot64[L.DROPPED] += 1
                return False
        self.origin, self.full = slot.origin, slot.full
        if mapping.wake_wanted() and process.channel is not None:
            process.channel.wake()
        return True

    def _take_slot(self, mapping: Any) -> Optional[SlotState]:
        slot: Optional[SlotState] = mapping.slot_take(threading.get_native_id())
        if slot is None:
            return None
        view = mapping.slot_view(slot.index)
        # stages that were opened before there was a daemon
        opened = slice(L.OPEN_OFFSET, L.OPEN_OFFSET + L.OPEN_STAGES * L.OPEN_SIZE)
        view[opened] = self.slot8[opened]
        self._views(view)
        self.slot32[L.DEPTH] = self.depth
        self.slot = slot
        self.head, self.full, self.origin = slot.head, slot.full, slot.origin
        self.buffer = mapping.map
        return slot

    def write(
        self, now: int, index: int, kind: int, flags: int, cpu_us: int, start: int, value: int, frame: int
    ) -> bool:
        """One record; False when it was dropped (and counted). Every number is in its range."""
        if index < 0:
            if not process.off:
                process.count_lost()
            return False
        return self.record(now, index | kind << 16 | flags << 24 | cpu_us << 32, start, value, frame)

    def record(self, now: int, word: int, start: int, value: int, frame: int) -> bool:
        """The same with the record's first word."""
        if (now >= self.gate or self.head == self.full or self.busy) and not self.prepare(now):
            return False
        head = -1
        try:
            self.busy = True
            head = self.head
            if head == self.full:  # a handler took the room that prepare() had found
                self.slot64[L.DROPPED_BUSY] += 1
                return False
            if CHECKED:
                word |= check(word, start, value, frame, head)
            pack_record(self.buffer, self.origin + head * _RECORD_SIZE, word, start, value, frame)
            self.head = self.slot64[_HEAD] = head + 1
        except BaseException:
            self.recover(head)
            raise
        finally:
            self.busy = False
        return True

    def recover(self, head: int) -> None:
        """A signal handler raised (KeyboardInterrupt) in the midst of record `head`."""
        self.head = self.slot64[L.HEAD]
        if self.head <= head or head < 0:
            self.slot64[L.DROPPED_BUSY] += 1
        self.busy = False

    def forget(self) -> None:
        """The mapping belongs to another process now, or to nobody."""
        old = [self.slot64, self.slot32, self.slot8]
        self.depth = self.head = self.full = self.gate = self.quiet = self.unattached = 0
        self.busy = False
        self.turn += 1
        self.slot = self.buffer = None
        self.generation = process.generation
        self._scratch()
        for scope in self.scopes.values():
            scope.hot = None
        self.scopes.clear()
        for view in old:
            view.release()
        process.threads.add(self)

    def release(self) -> None:
        """The thread ended: its slot goes to the next one."""
        with process.lock:
            process.unattached += self.unattached
            process.threads.discard(self)
            self.unattached = 0
            self.ident = -1
            slot, self.slot = self.slot, None
            if slot is None or self.generation != process.generation or process.mapping is None:
                return
            slot.head, slot.full, slot.origin = self.head, self.full, self.origin
            self.full = self.head
            process.mapping.slot_release(slot)
            self._scratch()
            self.scopes.clear()


class _Guard:
    """Dies with its thread."""

    __slots__ = ("_thread",)

    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    def __del__(self, finalizing: Any = sys.is_finalizing) -> None:
        if not finalizing() and hasattr(self, "_thread"):  # else a signal handler raised in __init__
            self._thread.release()


local = threading.local()


def current() -> Thread:
    """The calling thread's."""
    try:
        thread: Thread = local.thread
        return thread
    except AttributeError:
        thread = Thread()
        local.guard = _Guard(thread)
        local.scopes = thread.scopes
        local.thread = thread
        with process.lock:
            process.threads.add(thread)
        return thread


def emit(
    index: int, kind: int, value: int, flags: int = 0, cpu_us: int = L.NOT_MEASURED,
    start: Optional[int] = None, frame: Optional[int] = None, depth: int = -1
) -> bool:  # fmt: skip
    """One record, of now and in the thread's or task's frame unless they are given. A COMPLETE is inside the
    stages that are open, unless depth says how many there are. False: it was dropped."""
    thread = current()
    now = time.monotonic_ns()
    if frame is None or depth < 0:
        own, opened = _tasks.here() if _tasks.active else (thread.frame, thread.depth)
        frame, depth = own if frame is None else frame, opened if depth < 0 else depth
    if kind == L.COMPLETE:
        flags |= depth_flags(depth) | (L.OF_TASK if _tasks.active else 0)
    return thread.write(now, index, kind, flags, cpu_us, now if start is None else start, value, frame)


def _state() -> Tuple[int, int]:
    thread = current()
    return thread.frame, thread.depth


def _tasks_begin() -> None:
    """No Scope is handed out again: stage() asks, and is answered by a TaskStage."""
    for thread in list(process.threads):
        thread.scopes.clear()


_tasks.Recorder.thread = staticmethod(_state)
_tasks.Recorder.begin = staticmethod(_tasks_begin)
