"""The same calls for asyncio, each over a kept connection that is free."""

from __future__ import annotations

import asyncio
from typing import Any

from .connection import gone
from .endpoint import Endpoint
from .wire import RESEND_AFTER, ConnectionCut, Head, Resend, read_answer

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncCalls:
    """Calls the API from one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._heads: dict[str, bytes] = {}
        self._free: list[_Streams] = []

    async def get(self) -> Any:
        """Returns what ``GET /`` returns."""
        return await self._call(self._endpoint.head("GET", "/") + b"0\r\n\r\n")

    async def post(self, path: str, body: bytes = b"{}") -> Any:
        """Returns the answer to a call. Sends it again while it is not known to be done."""
        head = self._heads.get(path)
        if head is None:
            head = self._endpoint.head("POST", path)
            if path.count("/") == 1:
                self._heads[path] = head
        return await self._call(b"%b%d\r\n\r\n%b" % (head, len(body), body))

    def close(self) -> None:
        """Closes the connections."""
        for _, writer in self._free:
            writer.close()
        self._free.clear()

    async def _call(self, request: bytes) -> Any:
        for pause in RESEND_AFTER:
            try:
                return await self._send(request)
            except (Resend, ConnectionCut):
                await asyncio.sleep(pause)
        try:
            return await self._send(request)
        except Resend as problem:
            raise problem.error from None
        except ConnectionCut as cut:
            raise gone(cut) from None

    async def _send(self, request: bytes) -> Any:
        streams = self._free.pop() if self._free else await self._connect()
        reader, writer = streams
        try:
            writer.write(request)
            head = Head((await reader.readuntil(b"\r\n\r\n"))[:-4])
            body = await reader.readexactly(head.length)
        except (OSError, EOFError) as error:
            writer.close()
            raise ConnectionCut(str(error)) from error
        except BaseException:
            # Cancelled in the middle: what comes on this connection belongs to no other call.
            writer.close()
            raise
        if head.is_last:
            writer.close()
        else:
            self._free.append(streams)
        return read_answer(head.status, body)

    async def _connect(self) -> _Streams:
        endpoint = self._endpoint
        try:
            if endpoint.socket is not None:
                return await asyncio.open_unix_connection(endpoint.socket)
            return await asyncio.open_connection(endpoint.host, endpoint.port)
        except OSError as error:
            raise gone(error) from None
