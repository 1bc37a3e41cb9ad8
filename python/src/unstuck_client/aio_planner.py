"""The planner for asyncio. A plain ``targets`` runs in a thread, so that it holds up no page."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterable, Callable, Iterable
from typing import Any

from .aio_connection import AsyncCalls
from .context import PlanningContext, Work
from .crawls import CrawlDefinition
from .errors import Stopping, UnstuckError
from .planner import ASK_AGAIN_SECONDS
from .planning import TARGETS_PATH, Batch, halves, planning_error, targets_body


class AsyncPlanner:
    """Plans the run, if no other process does."""

    def __init__(
        self,
        definition: CrawlDefinition,
        calls: AsyncCalls,
        work: Work,
        stop: Callable[[UnstuckError | None], None],
    ) -> None:
        self._definition = definition
        self._calls = calls
        self._work = work
        self._stop = stop
        self._task: asyncio.Task[None] | None = None
        self._ask_at = 0.0

    async def start(self) -> None:
        """Begins to plan, unless another process does. Called again while there is no target."""
        if self._task is not None or time.monotonic() < self._ask_at:
            return
        self._ask_at = time.monotonic() + ASK_AGAIN_SECONDS
        if (await self._calls.post("/planning"))["planner"]:
            self._task = asyncio.create_task(self._run())

    def cancel(self) -> None:
        """Ends planning that is under way. The next start begins it anew."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._plan()
        except Stopping as gone:
            self._stop(gone)
        except Exception as error:
            failure = planning_error(self._definition.source, error)
            if failure is not None:
                failure.__cause__ = error
                self._stop(failure)

    async def _plan(self) -> None:
        context = PlanningContext(self._work)
        targets: Any = self._definition.targets(context)
        if inspect.iscoroutine(targets):
            targets = await targets
        if isinstance(targets, AsyncIterable):
            await self._send_from(targets)
        elif isinstance(targets, Iterable):
            await self._send_from(_in_thread(targets))
        else:
            raise TypeError(f"it returned {type(targets).__name__}, not targets")
        if not self._work.stopping:
            await self._calls.post("/targets/planned")

    async def _send_from(self, targets: AsyncIterable[object]) -> None:
        batch = Batch()
        try:
            async for target in targets:
                if self._work.stopping:
                    return
                if batch.add(target):
                    await self._send(batch.take())
        except Exception:
            # What came before the error is planned already, as a part of the whole.
            await self._send(batch.take())
            raise
        await self._send(batch.take())

    async def _send(self, targets: list[bytes]) -> None:
        if not targets:
            return
        try:
            await self._calls.post(TARGETS_PATH, targets_body(targets))
        except UnstuckError as error:
            for half in halves(targets, error):
                await self._send(half)


_CHUNK = 500
_CHUNK_SECONDS = 0.1


async def _in_thread(targets: Iterable[object]) -> AsyncIterable[object]:
    """Iterates in a thread, some targets at a time."""
    iterator = iter(targets)

    def take() -> tuple[list[object], bool]:
        taken: list[object] = []
        end = time.monotonic() + _CHUNK_SECONDS
        for target in iterator:
            taken.append(target)
            if len(taken) >= _CHUNK or time.monotonic() > end:
                return taken, True
        return taken, False

    more = True
    while more:
        taken, more = await asyncio.to_thread(take)
        for target in taken:
            yield target
