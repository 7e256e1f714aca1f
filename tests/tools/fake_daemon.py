#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon of canned answers for the tests of edgeprofctl: texts, exit codes, bad replies.

Replies come from a dictionary: method -> list of raw replies (bytes without NUL, or dicts that
become {"parameters": …}). What the client asked is kept in `calls`.
"""
import json
import os
import socket
import threading


def error(varlink_error, **parameters):
    return {"error": varlink_error, "parameters": parameters}


class FakeDaemon:
    """Answers each call with the replies of its method; a callable gets (parameters, connection).

    Special replies: "silence" never answers, bytes are sent as they
    are (with their NUL or without it), "close" ends the connection.
    """

    def __init__(self, directory, replies):
        self.path = os.path.join(directory, "io.edgeprof")
        self.replies = replies
        self.calls = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.connections = []
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        self.thread.join(5)
        os.unlink(self.path)

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        buffered = b""
        try:
            while True:
                received = connection.recv(65536)
                if not received:
                    return
                buffered += received
                while b"\0" in buffered:
                    frame, buffered = buffered.split(b"\0", 1)
                    self.answer(connection, json.loads(frame))
        except OSError:
            return

    def answer(self, connection, call):
        self.calls.append(call)
        replies = self.replies.get(call["method"].rsplit(".", 1)[1])
        if callable(replies):
            replies = replies(call.get("parameters", {}))
        if replies is None:
            replies = error("org.varlink.service.MethodNotFound", method=call["method"])
        for at, reply in enumerate(replies if isinstance(replies, list) else [replies]):
            last = not isinstance(replies, list) or at + 1 == len(replies)
            if reply == "silence":
                return
            if reply == "close":
                connection.shutdown(socket.SHUT_RDWR)
                return
            if isinstance(reply, bytes):
                connection.sendall(reply)
                continue
            message = reply if "error" in reply else {"parameters": reply}
            if not last:
                message["continues"] = True
            connection.sendall(json.dumps(message).encode() + b"\0")
