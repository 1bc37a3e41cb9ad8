"""Saves pages that are ready at the same moment in one call."""

from __future__ import annotations

import asyncio

from .aio_connection import AsyncCalls
from .errors import Stopping, UnstuckError
from .protocol import Result, batch_body, batches, record_outcome


class AsyncSaver:
    """One call at a time; what gets ready meanwhile goes into the next one."""

    def __init__(self, calls: AsyncCalls) -> None:
        self._calls = calls
        self._waiting: list[tuple[Result, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def save(self, result: Result) -> None:
        """Returns when the outcome of the page is known."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((result, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await future

    async def _run(self) -> None:
        # Pages that get ready in this turn of the loop come along.
        await asyncio.sleep(0)
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                try:
                    await self._send([result for result, _ in waiting])
                except BaseException as error:
                    for _, future in waiting:
                        if not future.done():
                            future.set_exception(error)
                    if not isinstance(error, Exception):
                        raise
                    continue
                for _, future in waiting:
                    if not future.done():
                        future.set_result(None)
        finally:
            self._task = None

    async def _send(self, results: list[Result]) -> None:
        for batch in batches(results):
            try:
                answer = await self._calls.post("/checkpoints", batch_body(batch))
            except Stopping:
                raise
            except UnstuckError as error:
                # One page of it may be at fault: each is saved by itself.
                if len(batch) == 1:
                    batch[0].error = error
                else:
                    for result in batch:
                        await self._send([result])
                continue
            for result, outcome in zip(batch, answer["outcomes"], strict=True):
                record_outcome(result, outcome)
