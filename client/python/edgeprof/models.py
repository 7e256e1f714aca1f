# SPDX-License-Identifier: Apache-2.0
"""Sizes, footprints and comparisons of models. What a model is does not matter here: a file or a
folder, and a function that loads or runs it."""
import gc
import importlib
import os
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from ._record import mark
from .memory import MIB, memory_scope
from .stats import benchmark


def analyze_model_size(path: Any) -> Dict[str, Any]:
    """size_bytes, size_mb, size_gb (MiB, GiB) of a file, or of all files in a folder. Links are followed,
    because folders of model hubs consist of them; a file that is found twice counts once. OSError: it is
    not there."""
    path = os.fspath(path)
    size = os.stat(path).st_size
    if os.path.isdir(path):
        size, seen = 0, {}
        for folder, folders, names in os.walk(path, followlinks=True):
            folders[:] = [name for name in folders if _is_first(os.path.join(folder, name), seen)]
            files = [os.path.join(folder, name) for name in names]
            size += sum(os.stat(file).st_size for file in files if _is_first(file, seen))
    return {"size_bytes": size, "size_mb": size / MIB, "size_gb": size / MIB / 1024}


def _is_first(entry: str, seen: Dict[Any, str]) -> bool:
    """False also for a link to nothing."""
    if not os.path.exists(entry):
        return False
    info = os.stat(entry)
    return seen.setdefault((info.st_dev, info.st_ino), entry) == entry


def _tensor_sizes_kb(model: Any, method: str) -> List[float]:
    """The tensors as a TFLite interpreter describes them; [] for other objects."""
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


def param_count(model: Any) -> Optional[int]:
    """How many parameters a loaded model has: PyTorch modules, Keras models, mappings of names to
    arrays; None if it cannot be determined."""
    if hasattr(model, "count_params"):
        return int(model.count_params())
    try:
        arrays = model.parameters() if hasattr(model, "parameters") else model.values()
        return sum(int(a.numel()) if hasattr(a, "numel") else int(a.size) for a in arrays)
    except (AttributeError, TypeError):
        return None


def _load_tflite(num_threads: int) -> Callable[[Any], Any]:
    """Raises ValueError when called without a runtime."""
    for name in ("tflite_runtime.interpreter", "ai_edge_litert.interpreter", "tensorflow.lite"):
        try:
            interpreter = importlib.import_module(name).Interpreter
        except (ImportError, AttributeError):
            continue

        def load(path: Any) -> Any:
            model = interpreter(model_path=os.fspath(path), num_threads=num_threads)
            model.allocate_tensors()
            return model

        return load

    def missing(path: Any) -> Any:
        raise ValueError("no TensorFlow Lite runtime for %s: pass load, a function of the path" % path)

    return missing


def measure_model_footprint(
    path: Any, load: Optional[Callable[..., Any]] = None, num_threads: Optional[int] = None
) -> Dict[str, Any]:
    """Calls load(path), by default a TensorFlow Lite interpreter of num_threads (4), and returns
    file_size_mb, runtime_memory_mb (growth of RSS), peak_memory_mb (over the RSS before), load_time_ms,
    input_tensor_sizes_kb, output_tensor_sizes_kb ([] when the model does not describe them) and
    num_threads (None where load chooses it). The load is a stage of category memory between two marks.
    ValueError: no load, and no TensorFlow Lite runtime."""
    if not load:
        num_threads = num_threads or 4
        load = _load_tflite(num_threads)
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
    details = {k: v for k, v in result.items() if k.endswith("_kb") or (k == "num_threads" and v)}
    mark("after model load", file_size_mb=file_size_mb, **details)
    return result


def _call_of(model: Any, data: Any) -> Callable[[], Any]:
    """One inference: model(data), model.predict(data), or a TensorFlow Lite interpreter's invoke()."""
    if hasattr(model, "invoke") and hasattr(model, "set_tensor"):
        index = model.get_input_details()[0]["index"]

        def invoke() -> None:
            model.set_tensor(index, data)
            model.invoke()

        return invoke
    call = model.predict if hasattr(model, "predict") else model
    if not callable(call):
        raise TypeError("%s is neither callable nor has predict()" % type(model).__name__)
    return lambda: call(data)


def benchmark_model(
    model: Any, input_data: Any, iterations: int = 100, warmup: int = 10
) -> Dict[str, float]:
    """benchmark() of one inference of a loaded model: model(input_data), model.predict(input_data), or
    a TensorFlow Lite interpreter. TypeError: it is none of these."""
    return benchmark(_call_of(model, input_data), iterations, warmup, name="infer")


def _entries(models: Any, data: Any, load: Optional[Callable[[Any], Any]]) -> List[Dict[str, Any]]:
    """{name: path, model or entry} as a list of entries; a list is one already."""
    if not isinstance(models, Mapping):
        return [dict(model) for model in models]
    entries: List[Dict[str, Any]] = []
    for name, model in models.items():
        if isinstance(model, Mapping):
            entries.append({"name": name, **model})
        elif isinstance(model, (str, os.PathLike)):
            entries.append({"name": name, "path": model, "load": load or _load_tflite(4)})
        else:
            entries.append({"name": name, "model": model})
    return entries


def compare_models(
    models: Any,
    data: Any = None,
    iterations: int = 100,
    warmup: int = 10,
    load: Optional[Callable[[Any], Any]] = None,
) -> List[Dict[str, Any]]:
    """N models side by side, the first is the baseline: {name: path or loaded model}, each called with
    data (paths are loaded by load(path), by default with TensorFlow Lite), or a list of {"name", "path"
    (optional), "run" (a function without arguments, optional), "latency_ms" (instead of run),
    "accuracy" (optional)}.

    Rows: name, size_mb, latency_ms, accuracy, accuracy_diff (to the baseline), speedup (of latency),
    size_ratio; None where it is not known. A model that raises keeps its row with `error`."""
    rows: List[Dict[str, Any]] = []
    for model in _entries(models, data, load):
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
            run = model.get("run")
            if "load" in model:
                model["model"] = model["load"](model["path"])
            if "model" in model:
                run = _call_of(model["model"], data)
            if run is not None:
                row["latency_ms"] = benchmark(run, iterations, warmup)["mean_ms"]
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
