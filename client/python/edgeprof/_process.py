# SPDX-License-Identifier: Apache-2.0
"""The process as a whole: its names, its mapping, its daemon; begin, fork and end.

`process` is the one instance. Its lock is held for microseconds, never while anything waits."""
import atexit
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Set

from . import _layout as L
from ._attach import Channel, Descriptor
from ._wire import Mapping

CHECK_NS = 1000 * 1000 * 1000

# x86 makes stores visible in program order, and nothing in CPython moves one of ours across a call:
# there a record is in memory before its head is. Other machines may show them the other way round.
# CPython has no release store; what it has is a lock: what is stored before a release is seen by
# everybody before what is stored after the next acquire of the same lock.
ORDERED = os.uname().machine in ("x86_64", "AMD64", "i686", "i586", "i386")
_fence_lock = threading.Lock()


def fence() -> None:
    """What was stored before is seen before what will be stored."""
    if not ORDERED:
        with _fence_lock:
            pass
        with _fence_lock:
            pass


def _program() -> str:
    path = sys.argv[0] if getattr(sys, "argv", None) else ""
    name = os.path.basename(path)
    if name == "__main__.py":
        name = os.path.basename(os.path.dirname(path))
    return (name[:-3] if name.endswith(".py") else name).strip("-") or "python"


class Process:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.names: Dict[str, int] = {}
        self._taken: Set[bytes] = set()
        self._packed: List[bytes] = []
        self.threads: Any = weakref.WeakSet()
        self.app: Optional[bytes] = None
        self.off = os.environ.get("EDGEPROF_DISABLE") == "1"
        self.print = os.environ.get("EDGEPROF_PRINT") == "1" and not self.off
        self.generation = 0
        # called at each end of a frame with its time and duration (0: a tick), while a session prints
        self.on_frame: Optional[Callable[[int, int], None]] = None
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
            self.app = L.clean(app or _program())
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
        except Exception:  # whatever this system lacks: the program must not notice
            self._incapable = True

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
            self._tell_multiprocessing()
        if self._memfd is not None:
            channel.hello(self._memfd, self.mapping.geometry.size, self.app or b"_")

    @staticmethod
    def _tell_multiprocessing() -> None:
        """Its forked children leave by os._exit, past atexit."""
        util = sys.modules.get("multiprocessing.util")
        parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
        if util is not None and parent is not None and parent() is not None:
            util.Finalize(None, shutdown, exitpriority=-1000)

    def declare(self, name: str, category: Optional[str] = None, unit: Optional[str] = None) -> int:
        """The name's index, or -1 when the table is full. Category and unit count when it is new.
        TypeError, ValueError: not a name."""
        if not isinstance(name, str):
            raise TypeError("a name is a str, not %s" % type(name).__name__)
        if not name:
            raise ValueError("a name must not be empty")
        for label in (category, unit):
            if label is not None and not isinstance(label, str):
                raise TypeError("category and unit are str or None, not %s" % type(label).__name__)
        index = self.names.get(name)
        if index is not None:
            return index
        with self.lock:
            index = self.names.get(name)
            if index is not None:
                return index
            index = len(self._packed)
            if index >= L.DECLARATIONS:
                return -1  # not remembered: names without end must not cost memory
            is_label = name[0] == L.LABEL_SIGN
            own = L.text(name[1:]) if is_label else L.unique(name, self._taken)
            if unit is None and "@" in name and not is_label:
                unit = name.rsplit("@", 1)[1]  # `infer@gpu` names its compute unit
            labels = [(t or "").encode("utf-8", "replace")[: L.LABEL_MAX] for t in (category, unit)]
            packed = L.DECLARATION.pack(own, labels[0], labels[1], b"", 0, 0)
            self._taken.add(own)
            self._packed.append(packed)
            self.names[name] = index
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

    def declare_label(self, label: str) -> int:
        """The same for the text of a mark, which people read: kept as it is, as far as it fits."""
        if not isinstance(label, str) or not label or L.is_clean(label):
            return self.declare(label)
        return self.declare(L.LABEL_SIGN + label)

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
    """Names this program and looks for a daemon now; True when one is there.

    app: 1-48 bytes of [A-Za-z0-9_.-], other bytes become `_`; None = the program's file name.
    Optional (the first event does it), and only the first name counts. TypeError: not a str."""
    if app is not None and not isinstance(app, str):
        raise TypeError("app is a str or None, not %s" % type(app).__name__)
    with process.lock:
        process.configure(app)
        process.check(time.monotonic_ns())
        process.ring_gates()
        return process.channel is not None and process.channel.connected


def shutdown() -> None:
    """Detaches from the daemon and stops recording. Called automatically at exit."""
    with process.lock:
        process.off = True
        process.print = False
        process.ring_gates()
        if process.mapping is not None:
            process.mapping.say_bye()
        if process.channel is not None:
            process.channel.close()


def counts() -> Dict[str, Any]:
    """What this process has counted so far: sent = received + dropped + in_ring.

    unattached: events before a daemon was ever there; they are in none of the others.
    attached: a daemon holds the mapping, as far as known."""
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
