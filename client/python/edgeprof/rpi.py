# SPDX-License-Identifier: Apache-2.0
"""What a Raspberry Pi's firmware says. Bits of the throttle word: 0 under-voltage, 1 ARM frequency
capped, 2 throttled, 3 soft temperature limit; 16-19 the same since boot. (The guides name bits 1 and
17 wrongly and leave 2 and 18 out.)"""
import fcntl
import os
import re
import struct
import subprocess
from typing import Any, Dict, List, Optional, Tuple

_VCIO = "/dev/vcio"
# _IOWR(100, 0, char *)
_IOCTL = 0xC0000000 | struct.calcsize("P") << 16 | 100 << 8
_GET_THROTTLED = 0x00030046
_GET_TEMPERATURE = 0x00030006
_TIMEOUT_S = 2.0
_BITS = (("under_voltage", 0), ("freq_capped", 1), ("throttled", 2), ("soft_temp_limit", 3))


def _mailbox(tag: int, words: int) -> Optional[List[int]]:
    """The values of a property tag asked with zeros (for the throttle word: clear nothing)."""
    size = 4 * (6 + words)
    request = [size, 0, tag, 4 * words, 0] + [0] * words + [0]
    buffer = bytearray(struct.pack("@%dI" % len(request), *request))
    try:
        fd = os.open(_VCIO, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.ioctl(fd, _IOCTL, buffer, True)
    except OSError:
        return None
    finally:
        os.close(fd)
    answer = struct.unpack("@%dI" % len(request), buffer)
    if answer[1] != 0x80000000 or not answer[4] & 0x80000000:
        return None
    return list(answer[5 : 5 + words])


def _vcgencmd(command: str) -> str:
    """What vcgencmd prints; "" when there is none, or none within 2 s."""
    try:
        done = subprocess.run(
            ["vcgencmd", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("ascii", "replace")


def read_temperature_rpi() -> Optional[float]:
    """Degrees Celsius from the firmware's mailbox, else vcgencmd, else the first thermal zone; None
    when none of them answers."""
    from .thermal import read_temperature_linux

    answer = _mailbox(_GET_TEMPERATURE, 2)
    if answer is not None and 0 < answer[1] < 200000:
        return answer[1] / 1000.0
    match = re.match(r"temp=(-?\d+(?:\.\d+)?)'C\s*$", _vcgencmd("measure_temp"))
    if match:
        return float(match.group(1))
    return next(iter(read_temperature_linux().values()), None)


def throttle_word() -> Tuple[Optional[int], str]:
    """(word, where it is from), or (None, why not)."""
    answer = _mailbox(_GET_THROTTLED, 1)
    if answer is not None:
        return answer[0], "mailbox"
    match = re.match(r"throttled=0x([0-9a-fA-F]{1,8})\s*$", _vcgencmd("get_throttled"))
    if match:
        return int(match.group(1), 16), "vcgencmd"
    return None, "neither %s nor vcgencmd reports the throttle word" % _VCIO


def decode_throttle_word(word: Optional[int]) -> Dict[str, Any]:
    """raw ("0x50000"), currently_… and …_occurred; all None for None."""
    status: Dict[str, Any] = {"raw": None if word is None else "0x%x" % word}
    for name, bit in _BITS:
        status["currently_" + name] = None if word is None else bool(word >> bit & 1)
    for name, bit in _BITS:
        status[name + "_occurred"] = None if word is None else bool(word >> (bit + 16) & 1)
    return status


def read_throttle_status_rpi() -> Dict[str, Any]:
    """raw and the eight bits, currently_under_voltage … soft_temp_limit_occurred; on a machine that
    does not tell, they are None and `reason` says why."""
    word, where = throttle_word()
    status = decode_throttle_word(word)
    if word is None:
        status["reason"] = where
    return status
