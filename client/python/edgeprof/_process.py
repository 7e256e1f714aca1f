# SPDX-License-Identifier: Apache-2.0
"""The process as a whole: its names, its mapping, its daemon; begin, fork and end.

`process` is the one instance. Its lock is held for microseconds, never while anything waits."""
import atexit
import os
import signal
import threading
import time
import weakref
from typing import Any, Dict, List, Optional, Set, Tuple

from . import _layout as L
from ._attach import Channel, Descriptor
from ._common import Names, program, tell_multiprocessing
from ._wire import Mapping

CHECK_NS = 1000 * 1000 * 1000

# CPython has no release store; what it has is a lock: what is stored before a release is seen by
# everybody before what is stored after the next acquire of the same lock.
_fence_lock = threading.Lock()


def fence() -> None:
    """What was stored before is seen before what will be stored."""
    if L.CHECKED:
        with _fence_lock:
            pass
        with _fence_lock:
            pass


def _is_handlers(error: BaseException) -> bool:
    """A signal handler of the program raised it."""
    codes = [getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()]
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace is not None


class Process(Names):
    def __init__(self) -> None:
        super().__init__({})
        self._taken: Set[bytes] = set()
        self._packed: List[bytes] = []
        self.threads: Any = weakref.WeakSet()
        self.off = os.environ.get("EDGEPROF_DISABLE") == "1"
        self.print = os.environ.get("EDGEPROF_PRINT") == "1" and not self.off
        self.generation = 0
        self._forget()

    def _forget(self) -> None:
        self.mapping: Optional[Mapping] = None
        self._memfd: Optional[Descriptor] = None
        self.channel: Optional[Channel] = None
        self.due = 0  # when to look for the daemon
        self.unattached = 0  # of threads that ended
        self._incapable = False

    def configure(self, app: Optional[str] = None) -> None:
        """Reads the environment once; only the first name counts."""
        if self.channel is not None:
            return
        if self.app is None:
            self.app = L.clean(app or program())
        self.channel = Channel()

    def _size(self) -> int:
        try:
            return L.Geometry(int(os.environ.get("EDGEPROF_MAPPING_SIZE", ""))).size
        except ValueError:
            return L.DEFAULT_SIZE

    def check(self, now: int) -> None:
        """Is the daemon still there, is there one now? Under the lock; at most once a second."""
        self.due = now + CHECK_NS
        try:
            self.configure()
            if self.mapping is not None:
                self.mapping.declare(self._packed, fence)  # what a signal handler interrupted
            if not self.off and self.channel is not None and not self.channel.alive():
                self._attach(self.channel)
        except Exception as error:
            if _is_handlers(error):
                raise
            self._incapable = True  # whatever this system lacks: the program must not notice

    def _attach(self, channel: Channel) -> None:
        if self._incapable or not channel.find():
            return
        if self.mapping is None:
            try:
                mapping = Mapping(self._size())
            except (OSError, AttributeError, ValueError):
                self._incapable = True
                channel.close()
                return
            self._memfd = Descriptor(mapping.fd)
            mapping.declare(self._packed, fence)
            self.mapping = mapping
            tell_multiprocessing(shutdown)
        if self._memfd is not None:
            channel.hello(self._memfd, self.mapping.geometry.size, self.app or b"_")

    def _add(self, name: str, category: Optional[str], unit: Optional[str]) -> int:
        index = len(self._packed)
        if index >= L.DECLARATIONS:
            return -1
        is_label = name[0] == L.LABEL_SIGN
        own = L.text(name[1:]) if is_label else L.unique(name, self._taken)
        if unit is None and "@" in name and not is_label:
            unit = name.rsplit("@", 1)[1]  # `infer@gpu` names its compute unit
        labels = [(t or "").encode("utf-8", "replace")[: L.LABEL_MAX] for t in (category, unit)]
        self._taken.add(own)
        self._packed.append(L.DECLARATION.pack(own, labels[0], labels[1], b"", 0, 0))
        if self.mapping is not None:
            self.mapping.declare(self._packed, fence)
        return index

    def declare_stage(self, name: str, category: Optional[str], unit: Optional[str]) -> int:
        """The same of a stage, which is another one on each compute unit."""
        index = self.declare(name, category, unit)
        if unit and index >= 0:
            label = unit.encode("utf-8", "replace")[: L.LABEL_MAX]
            if L.DECLARATION.unpack(self._packed[index])[2].rstrip(b"\0") != label:
                return self.declare("%s@%s" % (name, unit), category, unit)
        return index

    def count_lost(self) -> None:
        """An event that has no place: no slot, no declaration."""
        with self.lock:
            if self.mapping is not None:
                self.mapping.count_lost()
            elif not self.off:
                self.unattached += 1

    def ring_gates(self) -> None:
        """Makes every thread's next event look at the process first."""
        for thread in list(self.threads):
            thread.gate = thread.quiet = 0


process = Process()


def connect(app: Optional[str] = None) -> bool:
    with process.lock:
        process.configure(app)
        process.check(time.monotonic_ns())
        process.ring_gates()
        return process.channel is not None and process.channel.connected


def shutdown() -> None:
    with process.lock:
        process.off = True
        process.print = False
        process.ring_gates()
        if process.mapping is not None:
            process.mapping.say_bye()
        if process.channel is not None:
            process.channel.close()


def counts() -> Dict[str, Any]:
    with process.lock:
        unattached = process.unattached + sum(t.unattached for t in list(process.threads))
        numbers = process.mapping.counts() if process.mapping is not None else [0, 0, 0]
        received, in_ring, dropped = numbers
        return {
            "sent": received + in_ring + dropped,
            "received": received,
            "dropped": dropped,
            "in_ring": in_ring,
            "unattached": unattached,
            "attached": process.channel is not None and process.channel.connected,
        }


def read_advice() -> Optional[Tuple[int, int, int, float]]:
    """The level, frames to skip of how many, and the target (0: none)."""
    mapping = process.mapping
    if mapping is None or process.off:
        return None
    try:
        word, written = mapping.advice(fence)
    except ValueError:  # a forked child let go of it just now
        return None
    level, skip, of = word & 255, word >> 8 & 255, word >> 16 & 255
    fresh = -CHECK_NS <= time.monotonic_ns() - written <= L.ADVICE_FRESH_NS  # two clocks may differ
    if not fresh or not 0 < level < len(L.ADVICE_LEVELS) or skip >= of:
        return None
    return level, skip, of, (word >> 32) / 1000


def _before_fork() -> None:
    process.lock.acquire()


def _parent_forked() -> None:
    process.lock.release()


def _child_forked() -> None:
    """The mapping is the parent's: the child forgets it and attaches as itself."""
    process.lock = threading.RLock()
    process.generation += 1
    mapping, channel, memfd = process.mapping, process.channel, process._memfd
    threads = list(process.threads)
    process.threads = weakref.WeakSet()
    process._forget()
    for thread in threads:
        thread.forget()
    if channel is not None:
        channel.close()
    if mapping is not None:
        mapping.close()
        if memfd is not None and memfd.ours():
            os.close(memfd.fd)


atexit.register(shutdown)
os.register_at_fork(
    before=_before_fork, after_in_parent=_parent_forked, after_in_child=_child_forked
)
