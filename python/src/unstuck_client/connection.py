"""Calls to the API of this process, each thread over a kept connection of its own."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from .endpoint import Endpoint
from .errors import Stopping, UnstuckError
from .wire import RESEND_AFTER, ConnectionCut, Head, Resend, read_answer

_CHUNK = 65_536


class Calls:
    """Calls the API. Safe to use from any number of threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._heads: dict[str, bytes] = {}
        self._local = threading.local()

    def get(self) -> Any:
        """Returns what ``GET /`` returns."""
        return self._call(self._endpoint.head("GET", "/") + b"0\r\n\r\n")

    def post(self, path: str, body: bytes = b"{}") -> Any:
        """Returns the answer to a call. Sends it again while it is not known to be done."""
        head = self._heads.get(path)
        if head is None:
            head = self._endpoint.head("POST", path)
            if path.count("/") == 1:
                self._heads[path] = head
        return self._call(b"%b%d\r\n\r\n%b" % (head, len(body), body))

    def close(self) -> None:
        """Closes the connection of this thread."""
        connection: _Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()

    def _call(self, request: bytes) -> Any:
        connection: _Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = _Connection(self._endpoint)
        for pause in RESEND_AFTER:
            try:
                return connection.call(request)
            except Resend:
                time.sleep(pause)
            except ConnectionCut:
                # Kept for too long, or Unstuck is gone: then the next connection is refused.
                connection.close()
                time.sleep(pause)
        try:
            return connection.call(request)
        except Resend as problem:
            raise problem.error from None
        except ConnectionCut as cut:
            raise gone(cut) from None


class _Connection:
    """One connection, opened when it is needed."""

    __slots__ = ("_endpoint", "_socket")

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket: socket.socket | None = None

    def call(self, request: bytes) -> Any:
        if self._socket is None:
            self._socket = _connect(self._endpoint)
        try:
            self._socket.sendall(request)
            return self._read(self._socket)
        except OSError as error:
            self.close()
            raise ConnectionCut(str(error)) from error

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _read(self, connection: socket.socket) -> Any:
        data = connection.recv(_CHUNK)
        end = data.find(b"\r\n\r\n")
        while end < 0:
            data += _more(connection)
            end = data.find(b"\r\n\r\n")
        head = Head(data[:end])
        body = data[end + 4 :]
        if len(body) < head.length:
            parts = [body]
            missing = head.length - len(body)
            while missing > 0:
                parts.append(_more(connection))
                missing -= len(parts[-1])
            body = b"".join(parts)
        if head.is_last:
            self.close()
        return read_answer(head.status, body)


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(_CHUNK)
    if not data:
        raise ConnectionCut("the connection was closed")
    return data


def _connect(endpoint: Endpoint) -> socket.socket:
    try:
        if endpoint.socket is not None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(endpoint.socket)
            return connection
        connection = socket.create_connection((endpoint.host, endpoint.port))
    except OSError as error:
        raise gone(error) from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def gone(reason: OSError) -> UnstuckError:
    """Returns the error for an API that does not answer any more."""
    return Stopping(f"Unstuck has ended ({reason}). The next start continues after the last page.")
