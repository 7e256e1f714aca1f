"""Sizes, footprints and comparisons of models. What a model is does not matter here: a file or a
folder, and a function that loads or runs it."""
import gc
import os
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from ._record import mark
from .memory import MIB, memory_scope
from .stats import benchmark


def analyze_model_size(path: Any) -> Dict[str, Any]:
    """size_bytes, size_mb, size_gb (MiB, GiB) of a file, or of all files in a folder; links are not
    followed out of it. OSError: it is not there."""
    path = os.fspath(path)
    if not os.path.isdir(path):
        size = os.stat(path).st_size
    else:
        size = 0
        for folder, _, names in os.walk(path):
            for name in names:
                size += os.lstat(os.path.join(folder, name)).st_size
    return {"size_bytes": size, "size_mb": size / MIB, "size_gb": size / MIB / 1024}


def _tensor_sizes_kb(model: Any, method: str) -> List[float]:
    """As a TFLite interpreter describes its tensors; [] for what does not."""
    try:
        details = getattr(model, method)()
        sizes = []
        for tensor in details:
            count = 1
            for length in tensor["shape"]:
                count *= int(length)
            sizes.append(count * _item_size(tensor["dtype"]) / 1024)
        return sizes
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def _item_size(dtype: Any) -> int:
    size = getattr(dtype, "itemsize", None)
    return int(size) if isinstance(size, int) else int(dtype().itemsize)


def measure_model_footprint(
    path: Any, load: Callable[..., Any], num_threads: Optional[int] = None
) -> Dict[str, Any]:
    """Calls load(path) and tells file_size_mb, runtime_memory_mb (growth of RSS), peak_memory_mb (over
    the RSS before), load_time_ms, input_tensor_sizes_kb, output_tensor_sizes_kb ([] when the model does
    not describe them) and num_threads. The load is a stage of category memory between two marks."""
    file_size_mb = analyze_model_size(path)["size_mb"]
    gc.collect()
    mark("before model load")
    begin = time.monotonic_ns()
    with memory_scope("model load") as scope:
        model = load(path)
    load_time_ms = (time.monotonic_ns() - begin) / 1e6
    runtime = (scope.after_bytes - scope.before_bytes) / MIB
    result = {
        "file_size_mb": file_size_mb,
        "runtime_memory_mb": runtime,
        "peak_memory_mb": scope.delta_bytes / MIB,
        "load_time_ms": load_time_ms,
        "input_tensor_sizes_kb": _tensor_sizes_kb(model, "get_input_details"),
        "output_tensor_sizes_kb": _tensor_sizes_kb(model, "get_output_details"),
        "num_threads": num_threads,
    }
    told = {k: v for k, v in result.items() if k.endswith("_kb") or k == "num_threads" and v is not None}
    mark("after model load", file_size_mb=file_size_mb, **told)
    return result


def compare_models(
    models: Iterable[Mapping[str, Any]], iterations: int = 100, warmup: int = 10
) -> List[Dict[str, Any]]:
    """N models side by side, the first is the baseline. Each is {"name", "path" (optional), "run" (a
    function without arguments, optional), "latency_ms" (instead of run), "accuracy" (optional)}.

    Rows: name, size_mb, latency_ms, accuracy, accuracy_diff (to the baseline), speedup (of latency),
    size_ratio; None where it is not known. A model that raises keeps its row with `error`."""
    rows: List[Dict[str, Any]] = []
    for model in models:
        row: Dict[str, Any] = {
            "name": model["name"],
            "size_mb": None,
            "latency_ms": model.get("latency_ms"),
            "accuracy": model.get("accuracy"),
            "accuracy_diff": None,
            "speedup": None,
            "size_ratio": None,
        }
        rows.append(row)
        try:
            if model.get("path") is not None:
                row["size_mb"] = analyze_model_size(model["path"])["size_mb"]
            if model.get("run") is not None:
                row["latency_ms"] = benchmark(model["run"], iterations, warmup)["mean_ms"]
        except Exception as error:  # one model must not hide the others
            row["error"] = "%s: %s" % (type(error).__name__, error)
    for row in rows:
        base = rows[0]
        if row["accuracy"] is not None and base["accuracy"] is not None:
            row["accuracy_diff"] = row["accuracy"] - base["accuracy"]
        if row["latency_ms"] and base["latency_ms"]:
            row["speedup"] = base["latency_ms"] / row["latency_ms"]
        if row["size_mb"] is not None and base["size_mb"]:
            row["size_ratio"] = row["size_mb"] / base["size_mb"]
    return rows
