# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime: the unit is that of the session's first execution provider, as it has them, not as it was
asked for. run_async is not wrapped: it returns at once."""
from typing import Any, Dict, Optional

from . import Arguments, Keywords, Row, expect

VERSIONS = ("1",)
PACKAGES: Dict[str, str] = {}

_SUFFIX = "ExecutionProvider"
_UNITS = {
    "ACL": "cpu", "ArmNN": "cpu", "CANN": "npu", "CUDA": "gpu", "Cpu": "cpu", "Dml": "gpu", "Dnnl": "cpu",
    "JS": "gpu", "MIGraphX": "gpu", "Nnapi": "npu", "NvTensorRTRTX": "gpu", "QNN": "npu", "ROCM": "gpu",
    "Rknpu": "npu", "SNPE": "npu", "Tensorrt": "gpu", "VSINPU": "npu", "VitisAI": "npu", "WebGpu": "gpu",
    "Xnnpack": "cpu", "XNNPACK": "cpu",
}  # fmt: skip


def _unit_of(session: Any, provider: str) -> Optional[str]:
    name = provider[: -len(_SUFFIX)] if provider.endswith(_SUFFIX) else provider
    if name == "OpenVINO":  # runs on what its options say
        device = session.get_provider_options().get(provider, {}).get("device_type") or "CPU"
        return str(device).split("_")[0].split(":")[0].lower()
    return _UNITS.get(name, name.lower()) or None


def _unit(args: Arguments, keywords: Keywords) -> Optional[str]:
    session = args[0]
    return _unit_of(session, session.get_providers()[0])


def _made(args: Arguments, keywords: Keywords, result: Any, error: Any) -> None:
    """Was the first wished provider taken?"""
    wished = keywords.get("providers") or (args[3] if len(args) > 3 else None)
    if error is None and wished:
        first = wished[0] if isinstance(wished[0], str) else wished[0][0]
        unit = _unit_of(args[0], first)
        if unit:
            expect("infer", "inference", unit)


ROWS = {
    "onnxruntime": [
        Row("InferenceSession.__init__", "model_load", "model", note=_made),
        Row("InferenceSession.run", "infer", "inference", unit=_unit),
        Row("InferenceSession.run_with_iobinding?", "infer", "inference", unit=_unit),
        Row("InferenceSession.run_with_ort_values?", "infer", "inference", unit=_unit),
    ]
}
