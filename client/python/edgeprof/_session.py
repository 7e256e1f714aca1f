# SPDX-License-Identifier: Apache-2.0
"""Sessions: what this program does from one moment to another, recorded by the daemon with the
environment; and sweeps, a session for each variant."""
import collections
import hashlib
import itertools
import os
import platform
import sys
import time
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Sequence

from . import _layout as L
from ._recorder import connect, process, stage
from ._values import u64
from .client import Client, VarlinkError
from .stats import summary_ms

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_LINE_FRAMES = 50
_TEXT_MAX = 250  # bytes of a tag's value, or of an error
_PATIENCE_S = 1.0


def _text(value: Any) -> str:
    """As much of it as the daemon accepts, without control characters."""
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    return text.encode("utf-8", "replace")[:_TEXT_MAX].decode("utf-8", "ignore")


def _pairs(values: Mapping[str, Any]) -> List[Dict[str, str]]:
    return [{"name": _text(name), "value": _text(value)} for name, value in values.items()]


def _environment() -> Dict[str, str]:
    environment = {name: os.environ[name] for name in _THREADS if name in os.environ}
    environment["python"] = platform.python_version()
    return environment


def _model_tags(path: Any) -> Dict[str, Any]:
    """A model is its name without folders, its size and its SHA-256."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
            size += len(block)
    name = os.path.basename(os.fspath(path))
    return {"model": name, "model_bytes": size, "model_sha256": digest.hexdigest()}


class session:
    """`with edgeprof.session("fp16", frames=300, precision="fp16") as s:` records this program.

    warmup: frames that do not count. frames: the session ends after that number; None: at the end
    of the block. tags: what distinguishes it from others; model="FILE" adds the file's size and SHA-256.
    A body that raises makes the session a failed one, which keeps what was measured and the error.
    EDGEPROF_PRINT=1 prints `Frame i/N: x.x fps` on stderr every 50 frames. Without a daemon nothing is
    recorded, and `error` says why. TypeError, ValueError: wrong arguments; OSError: the model's file
    cannot be read.

    name: the session's, which differs when it was taken. error: why it is not recorded, or None."""

    def __init__(
        self, name: str, warmup: int = 10, frames: Optional[int] = None, **tags: Any
    ) -> None:
        if not isinstance(name, str):
            raise TypeError("name is a str, not %s" % type(name).__name__)
        if not name:
            raise ValueError("name must not be empty")
        self.name = L.clean(name).decode()
        self.warmup = u64(warmup, "warmup")
        self.frames = None if frames is None else u64(frames, "frames")
        self.error: Optional[str] = None
        model = tags.get("model")
        if isinstance(model, (str, os.PathLike)) and os.path.isfile(model):
            tags.update(_model_tags(model))
        self._tags = tags
        self._row: Dict[str, Any] = {}
        self._seen = self._last_ns = 0
        self._totals: Deque[int] = collections.deque(maxlen=_LINE_FRAMES)

    def _call(self, method: str, **parameters: Any) -> Dict[str, Any]:
        """The reply, or {} with the reason in error: nothing is raised because of the profiler."""
        try:
            with Client(timeout=_PATIENCE_S, retries=0) as client:
                return client.query(method, **parameters)
        except (OSError, ValueError, VarlinkError) as error:
            self.error = str(error)
            return {}

    def __enter__(self) -> "session":
        connect()
        if process.off:
            self.error = "recording is disabled"
            return self
        parameters: Dict[str, Any] = {} if self.frames is None else {"frames": self.frames}
        parameters["app"] = (process.app or b"_").decode()
        parameters["tags"] = _pairs(self._tags)
        parameters["environment"] = _pairs(_environment())
        reply = self._call("StartSession", name=self.name, warmup=self.warmup, **parameters)
        self._row = reply.get("session", {})
        self.name = self._row.get("name", self.name)
        if process.print:
            process.on_frame = self._line
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if process.on_frame == self._line:
            process.on_frame = None
        if not self._row:
            return
        # an interrupted session has no error: it was only shorter
        failed = {"error": _text(repr(error))} if isinstance(error, Exception) else {}
        row = self._call("StopSession", name=self.name, **failed).get("session")
        self._row = row or self._row

    def progress(self) -> Dict[str, Any]:
        """The session as the daemon has it: state, frames_done, elapsed_s, left_s, recent_mean_ms …; {}
        when it is not recorded. Waits for the daemon, up to a second."""
        if self._row:
            reply = self._call("ListSessions", name=self.name)
            rows = [row for row in reply.get("sessions", []) if row.get("name") == self.name]
            self._row = rows[0] if rows else self._row
        return dict(self._row)

    @property
    def finished(self) -> bool:
        """Whether it has ended, or is not recorded. Waits for the daemon, up to a second."""
        return self.progress().get("state") not in ("warmup", "running")

    def _line(self, end_ns: int, duration_ns: int) -> None:
        """A frame has ended; duration_ns 0: it was a tick."""
        total_ns, self._last_ns = duration_ns or end_ns - self._last_ns, end_ns
        self._seen += 1
        done = self._seen - self.warmup
        if done <= 0 or (self.frames is not None and done > self.frames):
            return
        self._totals.append(total_ns)
        if done % _LINE_FRAMES == 0 and sum(self._totals) > 0:
            of = "" if self.frames is None else "/%d" % self.frames
            fps = 1e9 * len(self._totals) / sum(self._totals)
            try:
                sys.stderr.write("Frame %d%s: %.1f fps\n" % (done, of, fps))
            except Exception:  # closed, gone: not the program's matter
                pass


def sweep(
    name: str,
    variants: Mapping[str, Sequence[Any]],
    run: Callable[..., Any],
    warmup: int = 10,
    frames: int = 100,
) -> List[Dict[str, Any]]:
    """Measures run(**variant) for each combination of the variants, {"threads": [1, 2, 4]}: warmup +
    frames calls as the stage "total", in a session with the variant as tags.

    Rows: tags, session (its name), count, mean_ms, p95_ms, max_fps (1000 / mean_ms), error. A variant
    that raises keeps its row: error is the reason, and the numbers are those measured before, or None."""
    rows = []
    for values in itertools.product(*variants.values()):
        tags = dict(zip(variants, values))
        measured: List[float] = []
        row: Dict[str, Any] = {"tags": tags, "session": None, "error": None}
        try:
            with session("-".join([name, *map(str, values)]), warmup, frames, **tags) as s:
                row["session"] = s.name
                for i in range(warmup + frames):
                    begin_ns = time.perf_counter_ns()
                    with stage("total"):
                        run(**tags)
                    if i >= warmup:
                        measured.append((time.perf_counter_ns() - begin_ns) / 1e6)
        except Exception as error:  # one variant must not hide the others
            row["error"] = "%s: %s" % (type(error).__name__, error)
        numbers = summary_ms(measured) if measured else {}
        mean_ms = numbers.get("mean_ms")
        row.update(count=len(measured), mean_ms=mean_ms, p95_ms=numbers.get("p95_ms"))
        row["max_fps"] = 1000.0 / mean_ms if mean_ms else None
        rows.append(row)
    return rows
