# SPDX-License-Identifier: Apache-2.0
"""The connection to the daemon: AF_UNIX SOCK_SEQPACKET to the run directory's `events`, one packet
with the hello and the memfd. Everything is non-blocking; after a restart of the daemon the same
memfd is sent again. A descriptor is used only while it is still ours: programs close what they do
not know, and the number is then somebody else's."""
import os
import socket
import struct
import time
from typing import List, Optional, Tuple

from . import _layout as L


def run_directories() -> List[str]:
    """Where a daemon may be, in order (EDGEPROF_RUNTIME_DIR alone if set)."""
    own = os.environ.get("EDGEPROF_RUNTIME_DIR")
    if own is not None:
        return [own] if own else []
    xdg = os.environ.get("XDG_RUNTIME_DIR")
    return ["/run/edgeprofd"] + ([xdg + "/edgeprofd"] if xdg else [])


class Descriptor:
    """A descriptor and the file it was when it was ours."""

    __slots__ = ("fd", "_file")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._file = self._look()

    def _look(self) -> Optional[Tuple[int, int]]:
        try:
            st = os.fstat(self.fd)
        except OSError:
            return None
        return st.st_dev, st.st_ino

    def ours(self) -> bool:
        return self._file is not None and self._look() == self._file


class Channel:
    """At most one connection. The caller holds the process's lock."""

    def __init__(self) -> None:
        self.paths = [os.path.join(d, "events") for d in run_directories()]
        self._socket: Optional[socket.socket] = None
        self._descriptor: Optional[Descriptor] = None

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def alive(self) -> bool:
        """Whether the connection is alive; a dead one is closed."""
        if self._socket is None or self._descriptor is None:
            return False
        if self._descriptor.ours():
            try:
                if self._socket.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK):
                    return True
            except (BlockingIOError, InterruptedError):
                return True
            except OSError:
                pass
        self.close()
        return False

    def _connect(self) -> Optional[socket.socket]:
        for path in self.paths:
            try:
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            except OSError:
                return None
            try:
                s.setblocking(False)
                s.connect(path)
                return s
            except (OSError, ValueError):  # ValueError: a NUL in the path
                s.close()
        return None

    def find(self) -> bool:
        """Is a daemon there? Connects; hello() is next."""
        self._socket = self._connect()
        if self._socket is not None:
            self._descriptor = Descriptor(self._socket.fileno())
        return self._socket is not None

    def hello(self, memfd: Descriptor, size: int, app: bytes) -> bool:
        page = os.sysconf("SC_PAGESIZE")
        packet = L.HELLO.pack(L.HELLO_MAGIC, L.MAJOR, L.MINOR, size, page, time.monotonic_ns(), app)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("@i", memfd.fd))]
        try:
            if memfd.ours() and self._socket is not None:
                flags = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
                if self._socket.sendmsg([packet], rights, flags) == len(packet):
                    return True
        except OSError:
            pass
        self.close()
        return False

    def wake(self) -> None:
        if self._socket is not None and self._descriptor is not None and self._descriptor.ours():
            try:
                self._socket.send(b"\0", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError:
                pass  # a full socket: the daemon has wake-ups enough

    def close(self) -> None:
        if self._socket is not None:
            if self._descriptor is not None and self._descriptor.ours():
                self._socket.close()
            else:
                self._socket.detach()
        self._socket = self._descriptor = None
