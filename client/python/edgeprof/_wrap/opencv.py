# SPDX-License-Identifier: Apache-2.0
"""OpenCV: cameras and files, preprocessing, networks, output. Where a network runs is what its target says,
as far as this build of OpenCV has it: it falls back to the CPU without an error."""
from typing import Any, Dict, Optional

from . import Arguments, Keywords, Row, expect

VERSIONS = ("4",)
PACKAGES: Dict[str, str] = {}

# cv2.dnn.DNN_TARGET_*
_UNITS = {
    "CPU": "cpu", "CPU_FP16": "cpu", "OPENCL": "gpu", "OPENCL_FP16": "gpu", "CUDA": "gpu",
    "CUDA_FP16": "gpu", "VULKAN": "gpu", "MYRIAD": "vpu", "HDDL": "vpu", "FPGA": "fpga", "NPU": "npu",
}  # fmt: skip
_cv2: Any = None
# by the id of a network, which has no getters and takes no weak reference: what was set, and where it runs
_backends: Dict[int, int] = {}
_targets: Dict[int, int] = {}
_units: Dict[int, str] = {}


def prepare(module: Any) -> None:
    global _cv2
    _cv2 = module


def _new(args: Arguments, keywords: Keywords, network: Any, error: Any) -> None:
    """Another one may have had the same id."""
    for table in (_backends, _targets, _units):
        table.pop(id(network), None)  # type: ignore[attr-defined]


def _choose(network: int) -> None:
    dnn, target = _cv2.dnn, _targets.get(network, 0)
    names = [name for name in _UNITS if getattr(dnn, "DNN_TARGET_" + name, None) == target]
    wished = _UNITS[names[0]] if names else "cpu"
    available = dnn.getAvailableTargets(_backends.get(network, 0))
    _units[network] = wished if target in available else "cpu"
    expect("infer", "inference", wished)


def _set_backend(args: Arguments, keywords: Keywords, result: Any, error: Any) -> None:
    _backends[id(args[0])] = keywords["backendId"] if keywords else args[1]
    if id(args[0]) in _targets:
        _choose(id(args[0]))


def _set_target(args: Arguments, keywords: Keywords, result: Any, error: Any) -> None:
    _targets[id(args[0])] = keywords["targetId"] if keywords else args[1]
    _choose(id(args[0]))


def _unit(args: Arguments, keywords: Keywords) -> Optional[str]:
    return _units.get(id(args[0]), "cpu")


_FORMATS = ("", "FromCaffe", "FromDarknet", "FromONNX", "FromTensorflow", "FromTFLite", "FromTorch")
ROWS = {
    "cv2": [
        Row("VideoCapture.read", "capture", "capture", begins_frame=True),
        Row("VideoCapture.grab", "capture", "capture", begins_frame=True),
        Row("resize", "preprocess", "preprocess"),
        Row("cvtColor", "preprocess", "preprocess"),
        Row("dnn.blobFromImage", "preprocess", "preprocess"),
        Row("dnn.blobFromImages", "preprocess", "preprocess"),
        *[Row("dnn.readNet%s?" % name, "model_load", "model", note=_new) for name in _FORMATS],
        Row("dnn.Net.setPreferableBackend", note=_set_backend),
        Row("dnn.Net.setPreferableTarget", note=_set_target),
        Row("dnn.Net.forward", "infer", "inference", unit=_unit),
        Row("imshow?", "output", "output"),
        Row("imwrite", "output", "output"),
        Row("VideoWriter.write", "output", "output"),
    ]
}
