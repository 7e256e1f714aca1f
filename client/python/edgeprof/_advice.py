# SPDX-License-Identifier: Apache-2.0
"""What the daemon advises this program to do: read from the mapping, without a system call."""
import threading
import time
from typing import NamedTuple, Optional, Tuple

from . import _layout as L
from ._process import fence, process

_SECOND_NS = 1000 * 1000 * 1000  # what clocks of two sides may differ


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
_last: Tuple[int, Optional[Advice]] = (0, None)  # a word and what it means


def _remember(word: int) -> Tuple[int, Optional[Advice]]:
    global _last
    level, skip, of = word & 255, word >> 8 & 255, word >> 16 & 255
    sound = 0 < level < len(L.ADVICE_LEVELS) and skip < of
    mean = Advice(L.ADVICE_LEVELS[level], (word >> 32) / 1000 or None, skip, of) if sound else None
    _last = (word, mean)
    return _last


def advice() -> Optional[Advice]:
    """The daemon's advice, not older than 5 s; None: no daemon, or it knows nothing to judge by.

    Ask each frame: no system call. A level is kept for many seconds. The advice comes with what the
    program records: it needs connect(), and events to find a daemon that restarted."""
    mapping = process.mapping
    if mapping is None or process.off:
        return None
    try:
        word, written = mapping.advice(fence)
    except ValueError:  # a forked child let go of it just now
        return None
    if not -_SECOND_NS <= time.monotonic_ns() - written <= L.ADVICE_FRESH_NS:
        return None
    last = _last
    if word != last[0]:  # it seldom changes
        last = _remember(word)
    return last[1]


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
