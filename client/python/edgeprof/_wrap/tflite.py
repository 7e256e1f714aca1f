# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite, LiteRT: the unit is that of the interpreter's first delegate, by its library's name. A
delegate that cannot be loaded was asked for: what runs on the CPU then is a fallback."""
import os
import weakref
from typing import Any, Optional

from . import Arguments, Keywords, Row, expect

VERSIONS = ("1", "2")
PACKAGES = {
    "ai_edge_litert.interpreter": "ai-edge-litert",
    "tensorflow.lite.python.interpreter": "tensorflow",
    "tflite_runtime.interpreter": "tflite-runtime",
}

# what the names of libraries contain
_UNITS = {
    "edgetpu": "edgetpu", "gpu": "gpu", "opencl": "gpu", "xnnpack": "cpu", "armnn": "cpu", "nnapi": "npu",
    "ethos": "npu", "vx": "npu", "qnn": "npu", "hexagon": "npu", "neuron": "npu", "coreml": "npu",
}  # fmt: skip
_delegates: Any = weakref.WeakKeyDictionary()
_interpreters: Any = weakref.WeakKeyDictionary()


def _loaded(args: Arguments, keywords: Keywords, delegate: Any, error: Any) -> None:
    library = os.path.basename(args[0] if args else keywords["library"]).lower()
    unit = next((unit for part, unit in _UNITS.items() if part in library), "delegate")
    expect("infer", "inference", unit)
    if error is None:
        _delegates[delegate] = unit


def _made(args: Arguments, keywords: Keywords, result: Any, error: Any) -> None:
    delegates = args[3] if len(args) > 3 else keywords.get("experimental_delegates")
    if error is None:
        _interpreters[args[0]] = _delegates.get(delegates[0], "delegate") if delegates else "cpu"


def _unit(args: Arguments, keywords: Keywords) -> Optional[str]:
    return _interpreters.get(args[0]) or None


_rows = [
    Row("load_delegate", note=_loaded),
    Row("Interpreter.__init__", "model_load", "model", note=_made),
    Row("Interpreter.invoke", "infer", "inference", unit=_unit),
]
ROWS = {name: _rows for name in PACKAGES}
