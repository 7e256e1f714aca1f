# SPDX-License-Identifier: Apache-2.0
"""PyTorch: the outermost call of a module is the inference; the unit is the device of its input. On a GPU the
call only queues the work: its time is the model's where the program waits inside the module."""
from itertools import chain
from typing import Any, Callable, Dict, Optional

from . import Arguments, Keywords, Row

VERSIONS = ("1", "2")
PACKAGES: Dict[str, str] = {}

_UNITS = {"cuda": "gpu", "mps": "gpu", "xpu": "gpu", "vulkan": "gpu", "hpu": "npu"}
_compiling: Callable[[], bool] = bool


def prepare(module: Any) -> None:
    global _compiling
    _compiling = getattr(getattr(module, "compiler", None), "is_compiling", _compiling)


def _is_run(args: Arguments) -> bool:
    """What the compiler follows must be the program's own."""
    return not _compiling()


def _unit(args: Arguments, keywords: Keywords) -> Optional[str]:
    for value in chain(args[1:], keywords.values()):
        device = getattr(value, "device", None)
        if device is not None:
            return _UNITS.get(device.type, device.type)
    parameter = next(args[0].parameters(), None)
    return None if parameter is None else _UNITS.get(parameter.device.type, parameter.device.type)


ROWS = {
    "torch": [
        Row("nn.Module.__call__", "infer", "inference", unit=_unit, when=_is_run, outermost=True)
    ]
}
