# SPDX-License-Identifier: Apache-2.0
"""What the daemon advises this program to do: read from the mapping, without a system call."""
import threading
from typing import NamedTuple, Optional

from . import _layout as L
from ._recorder import read_advice


class Advice(NamedTuple):
    """level: "full", "reduced" (two thirds of the work) or "minimal" (one third).

    target_fps: the rate to work at; None: as fast as you do, or not known.
    skip skip_frames of every of_frames frames (0 of 1: none): follow this or
    target_fps, not both."""

    level: str
    target_fps: Optional[float]
    skip_frames: int
    of_frames: int


class _Frames(threading.local):
    place = 0


_frames = _Frames()


def advice() -> Optional[Advice]:
    """The daemon's advice, not older than 5 s; None: no daemon, or it knows nothing to judge by.

    Ask each frame: no system call. A level is kept for many seconds. The advice comes with what the
    program records: it needs connect(), and events to find a daemon that restarted."""
    read = read_advice()
    if read is None:
        return None
    level, skip, of, target = read
    return Advice(L.ADVICE_LEVELS[level], target or None, skip, of)


def should_skip() -> bool:
    """Whether to skip this frame. Call it once a frame, on the thread that makes them: those skipped
    are spread evenly. False without advice."""
    now = advice()
    if now is None or now.skip_frames == 0:
        _frames.place = 0
        return False
    place = _frames.place % now.of_frames
    _frames.place = place + 1
    return (place + 1) * now.skip_frames // now.of_frames > place * now.skip_frames // now.of_frames
