# SPDX-License-Identifier: Apache-2.0
"""GStreamer through gi: an appsink's samples, by its methods (GstApp) and by its action signals."""
from typing import Dict

from . import Arguments, Row

VERSIONS = ("3",)
PACKAGES: Dict[str, str] = {"gi.overrides.GObject": "PyGObject", "gi.repository.GstApp": "PyGObject"}

_SIGNALS = ("pull-sample", "try-pull-sample")


def _pulls(args: Arguments) -> bool:
    return len(args) > 1 and args[1] in _SIGNALS


ROWS = {
    "gi.overrides.GObject": [
        Row("Object.emit", "capture", "capture", when=_pulls, begins_frame=True)
    ],
    "gi.repository.GstApp": [
        Row("AppSink.pull_sample", "capture", "capture", begins_frame=True),
        Row("AppSink.try_pull_sample", "capture", "capture", begins_frame=True),
    ],
}
