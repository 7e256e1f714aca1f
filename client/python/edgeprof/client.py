# SPDX-License-Identifier: Apache-2.0
"""Questions to the daemon over its Varlink socket: JSON messages that end with a NUL."""
import collections
import json
import os
import socket
import time
from typing import Any, Deque, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from ._attach import run_directories

_FRAME_MAX = 1024 * 1024  # the daemon's frames are at most 64 KiB
_PAUSE_S = 0.1
_READ_ONLY = ("Get", "List", "Diagnose", "Explain", "Forecast")


class Unreachable(ConnectionError):
    """No daemon answers on any of the places."""


class VarlinkError(Exception):
    """The daemon's answer is an error: name ("io.edgeprof.NotFound") and parameters."""

    def __init__(self, name: str, parameters: Dict[str, Any]) -> None:
        super().__init__(name, parameters)
        self.name = name
        self.parameters = parameters

    def __str__(self) -> str:
        return "%s %s" % (self.name, json.dumps(self.parameters))


class _Pending:
    """A request on its way. Answers come in the order of the requests."""

    __slots__ = ("deadline", "answer")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.answer: Optional[Dict[str, Any]] = None


def _connect(paths: Iterable[str], timeout: float) -> socket.socket:
    problems = []
    for path in paths:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(path)
            return connection
        except (OSError, ValueError) as error:
            connection.close()
            problems.append("%s: %s" % (path, getattr(error, "strerror", None) or error))
    raise Unreachable("no daemon: %s" % ("; ".join(problems) or "no place to look at"))


class _Connection:
    """One socket and what waits on it."""

    def __init__(self, paths: Iterable[str], timeout: float) -> None:
        self.socket = _connect(paths, timeout)
        self.waiting: Deque[_Pending] = collections.deque()
        self._data = bytearray()

    def send(self, message: Dict[str, Any], timeout: float) -> None:
        frame = json.dumps(message, ensure_ascii=False).encode("utf-8") + b"\0"
        self.socket.settimeout(timeout)
        self.socket.sendall(frame)

    def receive(self, deadline: Optional[float]) -> Dict[str, Any]:
        """The next message. TimeoutError; ConnectionError at the stream's end."""
        while True:
            end = self._data.find(b"\0")
            if end >= 0:
                frame = bytes(self._data[:end])
                del self._data[: end + 1]
                try:
                    message = json.loads(frame.decode("utf-8"))
                except RecursionError:
                    message = None
                if not isinstance(message, dict) or not isinstance(message.get("parameters") or {}, dict):
                    raise ConnectionError("not a Varlink message")
                return message
            if len(self._data) > _FRAME_MAX:
                raise ConnectionError("a message without end")
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("no answer in time")
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(65536)
            except socket.timeout:
                raise TimeoutError("no answer in time") from None
            if not data:
                raise ConnectionError("the daemon closed the connection")
            self._data += data

    def wait(self, pending: _Pending) -> Dict[str, Any]:
        """The answer of pending; those that come before it are kept for theirs. A late request stays
        in line: its answer, should it come, is nobody else's. TimeoutError, ConnectionError."""
        while pending.answer is None:
            message = self.receive(pending.deadline)
            if not self.waiting:
                raise ConnectionError("an answer to no question")
            self.waiting.popleft().answer = message
        return pending.answer


def _parameters(message: Dict[str, Any]) -> Dict[str, Any]:
    parameters = message.get("parameters") or {}
    if "error" in message:
        raise VarlinkError(message["error"], parameters)
    return dict(parameters)


class Client:
    """A connection to the daemon, made at the first request and again when it was lost.

    path: the Varlink socket; None looks as edgeprofctl does (EDGEPROF_RUNTIME_DIR, else /run/edgeprofd,
    else $XDG_RUNTIME_DIR/edgeprofd). timeout: seconds for each request. retries: how often a question
    is asked again when its answer did not come; changing methods (Mark, SetSource …) are sent only
    once. For one thread at a time."""

    def __init__(self, path: Optional[str] = None, timeout: float = 5.0, retries: int = 3) -> None:
        if not timeout > 0 or retries < 0:
            raise ValueError("timeout must be above 0 and retries at least 0")
        self._paths = [os.fspath(path)] if path is not None else None
        self.timeout = timeout
        self.retries = retries
        self._connection: Optional[_Connection] = None

    def _places(self) -> List[str]:
        if self._paths is not None:
            return self._paths
        return [os.path.join(d, "io.edgeprof") for d in run_directories()]

    def _message(self, method: str, parameters: Dict[str, Any]) -> Dict[str, Any]:
        if not isinstance(method, str) or not method:
            raise TypeError("a method is a non-empty str")
        name = method if "." in method else "io.edgeprof." + method
        return {"method": name, "parameters": parameters}

    def _submit(self, message: Dict[str, Any]) -> Tuple[_Connection, _Pending]:
        if self._connection is None:
            self._connection = _Connection(self._places(), self.timeout)
        connection = self._connection
        connection.send(message, self.timeout)
        pending = _Pending(time.monotonic() + self.timeout)
        connection.waiting.append(pending)
        return connection, pending

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()

    def query(self, method: str, **parameters: Any) -> Dict[str, Any]:
        """The parameters of the reply of io.edgeprof.<method> (or of a full method name).

        Unreachable, TimeoutError (only this request is lost), ConnectionError, VarlinkError;
        TypeError, ValueError when the parameters cannot be encoded as JSON."""
        message = self._message(method, parameters)
        json.dumps(message, allow_nan=False)
        short = message["method"].rsplit(".", 1)[1]
        again = self.retries if short.startswith(_READ_ONLY) else 0
        while True:
            try:
                connection, pending = self._submit(message)
                return _parameters(connection.wait(pending))
            except TimeoutError:
                if again <= 0:
                    raise
            except socket.timeout:  # before 3.10 it is no TimeoutError; a frame may be cut in two
                self.close()
                if again <= 0:
                    raise TimeoutError("the daemon reads nothing") from None
            except (ConnectionError, OSError, ValueError) as error:
                self.close()
                if again <= 0:
                    if isinstance(error, (ConnectionError, OSError)):
                        raise
                    raise ConnectionError("not a Varlink message: %s" % error) from None
                time.sleep(_PAUSE_S)  # a daemon that restarts is back in no time
            again -= 1

    def snapshot(self, app: Optional[str] = None) -> Dict[str, Any]:
        """GetSnapshot: timestamp, cpu_usage, memory_usage {bytes, percent, ...}, temperature,
        power_consumption, inference_latency. What is not of now is None: "reasons" says why, and
        "ages_ms" how old the others are. app: only what belongs to it. Raises as query()."""
        return self.query("GetSnapshot", **({} if app is None else {"app": app}))

    def pipeline(
        self, requests: Iterable[Tuple[str, Dict[str, Any]]]
    ) -> List[Union[Dict[str, Any], Exception]]:
        """Sends all (method, parameters) on one connection, then takes the answers in order: for each
        the reply's parameters, or its exception (VarlinkError, TimeoutError for a late one alone).
        Unreachable, ConnectionError: the connection was lost."""
        messages = [self._message(method, parameters) for method, parameters in requests]
        try:
            sent = [self._submit(message) for message in messages]
            results: List[Union[Dict[str, Any], Exception]] = []
            for connection, pending in sent:
                try:
                    results.append(_parameters(connection.wait(pending)))
                except (VarlinkError, TimeoutError) as error:
                    results.append(error)
            return results
        except (OSError, ValueError):
            self.close()
            raise

    def subscribe(
        self, method: str = "Subscribe", timeout: Optional[float] = None, **parameters: Any
    ) -> Iterator[Dict[str, Any]]:
        """The replies of a call with `more`, one by one, on a connection of its own: Subscribe (first
        the current state, then changes), or a method with long answers. Ends with the last reply, or
        when the generator is closed. timeout: seconds between replies; None = for ever."""
        message = dict(self._message(method, parameters), more=True)
        connection = _Connection(self._places(), self.timeout)
        try:
            connection.send(message, self.timeout)
            while True:
                reply = connection.receive(None if timeout is None else time.monotonic() + timeout)
                yield _parameters(reply)
                if not reply.get("continues"):
                    return
        finally:
            connection.socket.close()
