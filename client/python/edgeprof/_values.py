# SPDX-License-Identifier: Apache-2.0
"""Arguments that are numbers, and the line of EDGEPROF_PRINT=1."""
import operator
import struct
import sys
from typing import Any

from . import _layout as L


def double_bits(value: float) -> int:
    return int(struct.unpack("@Q", struct.pack("@d", value))[0])


def number(value: Any, what: str) -> float:
    """TypeError unless it is a real number."""
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError("%s is a number, not %s" % (what, type(value).__name__))
    try:
        return float(value)
    except OverflowError:
        raise ValueError("%s is too large: %r" % (what, value)) from None


def u64(value: Any, what: str, limit: int = L.NO_FRAME) -> int:
    """TypeError, ValueError unless it is an integer from 0 to below limit."""
    result = operator.index(value)
    if not 0 <= result < limit:
        raise ValueError("%s is out of range: %d" % (what, result))
    return result


def is_failure(kind: Any) -> bool:
    """Whether a body ended by an error. That of a generator which is closed did not."""
    return kind is not None and kind is not GeneratorExit


def depth_flags(depth: int) -> int:
    return (L.NESTED | min(depth, 15) << L.DEPTH_SHIFT) if depth else 0


def say(name: str, duration_ns: int) -> None:
    """The line that EDGEPROF_PRINT=1 asks for."""
    try:
        sys.stderr.write("[%s] %.2fms\n" % (name, duration_ns / 1e6))
    except Exception:  # closed, gone, or not encodable: not the program's matter
        pass
