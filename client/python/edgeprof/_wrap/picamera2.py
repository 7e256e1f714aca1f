# SPDX-License-Identifier: Apache-2.0
"""picamera2: the calls that wait for the camera's next picture."""
from typing import Dict

from . import Row

VERSIONS = ("0",)
PACKAGES: Dict[str, str] = {}

_NAMES = ("array", "arrays?", "buffer?", "image?", "request?")
ROWS = {
    "picamera2": [
        Row("Picamera2.capture_" + name, "capture", "capture", begins_frame=True) for name in _NAMES
    ]
}
