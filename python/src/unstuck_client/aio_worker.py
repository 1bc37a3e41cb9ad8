"""The worker for crawls with ``async def page``: everything in one event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Mapping
from typing import Any

from .aio_connection import AsyncCalls
from .aio_planner import AsyncPlanner
from .aio_saver import AsyncSaver
from .background import log_body, mark_lost
from .connection import Calls
from .context import PageContext, Work
from .crawls import CrawlDefinition
from .endpoint import Endpoint
from .errors import LeaseLost, RunEnded, Stopping, UnstuckError
from .protocol import (
    CLAIM_WAIT_MS,
    HEARTBEAT_SECONDS,
    Result,
    claim_body,
    failure,
    result_of,
)
from .signals import STOP_SIGNALS
from .targets import HeldTarget
from .worker import exit_after, log_failed_teardown


def run_async_worker(definition: CrawlDefinition, endpoint: Endpoint) -> None:
    """Works on the run until it has ended. Ends the program with a code after an error."""
    worker = AsyncWorker(definition, endpoint)
    asyncio.run(worker.run())
    exit_after(worker.failure)


class AsyncWorker:
    """One process at work on a run, with a task for each target that it holds."""

    def __init__(self, definition: CrawlDefinition, endpoint: Endpoint) -> None:
        self._definition = definition
        self._calls = AsyncCalls(endpoint)
        self._work = Work(definition, endpoint)
        self._planner = AsyncPlanner(definition, self._calls, self._work, self.stop)
        self._saver = AsyncSaver(self._calls)
        self._held: dict[str, HeldTarget] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._logs: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._has_ended = False
        self.failure: UnstuckError | None = None
        """What ended the work early."""
        self._work.log = self._log
        # A transaction calls from a thread of its own.
        self._work.post = Calls(endpoint).post

    def stop(self, failure: UnstuckError | None = None) -> None:
        """Claims nothing more, and ends after the pages in progress."""
        if self.failure is None:
            self.failure = failure
        self._work.stopping = True
        self._changed.set()
        if isinstance(failure, Stopping):
            # Nothing can be saved any more.
            for task in self._tasks:
                task.cancel()

    async def run(self) -> None:
        """Works until the run has ended or this process must stop."""
        if threading.current_thread() is threading.main_thread():
            for one in STOP_SIGNALS:
                asyncio.get_running_loop().add_signal_handler(one, self.stop)
        heartbeat = asyncio.create_task(self._beat())
        try:
            begun = await self._calls.get()
            self._work.run = begun["run"]
            self._work.resources = await _result(self._definition.setup())
            try:
                if not begun["planned"]:
                    await self._planner.start()
                await self._claim_targets()
            finally:
                self._work.stopping = True
                self._planner.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
                await self._tear_down()
        except Stopping as gone:
            self.stop(gone)
        finally:
            await asyncio.gather(*self._logs, return_exceptions=True)
            heartbeat.cancel()
            self._calls.close()

    async def _tear_down(self) -> None:
        try:
            await _result(self._definition.teardown(self._work.resources))
        except Exception as error:
            log_failed_teardown(error)

    async def _claim_targets(self) -> None:
        """Claims targets as slots get free, until the run has ended and all have ended here."""
        slots = self._definition.concurrency
        while not self._work.stopping and not self._has_ended:
            free = slots - len(self._tasks)
            if free == 0:
                self._changed.clear()
                await self._changed.wait()
                continue
            claimed = await self._claim(free)
            for held in claimed:
                self._start(held)
            if not claimed and not self._has_ended:
                await self._planner.start()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _claim(self, free: int) -> list[HeldTarget]:
        is_single = self._definition.concurrency == 1
        body = claim_body(free, CLAIM_WAIT_MS, is_single=is_single)
        answer = await self._calls.post("/claim", body)
        if answer["ended"]:
            self._has_ended = True
        if answer["stop"]:
            self.stop()
        return [HeldTarget(one) for one in answer["targets"]]

    def _start(self, held: HeldTarget) -> None:
        self._held[held.target.id] = held
        task = asyncio.create_task(self._crawl(held))
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._changed.set()
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Stopping):
                self.stop(error)
            elif error is not None:
                self.stop(UnstuckError(f"{type(error).__name__}: {error}"))

        task.add_done_callback(ended)

    async def _crawl(self, held: HeldTarget) -> None:
        """Does the pages of a target until it is done, failed, lost or released."""
        try:
            while not self._work.stopping:
                result = await self._do_page(held)
                if result.body and not held.is_lost:
                    await self._saver.save(result)
                if held.is_lost:
                    return
                if result.error is not None:
                    await self._fail(held, result.error)
                    return
                if not result.advance():
                    return
            await self._end(f"/targets/{held.target.id}/release", b"{}")
        finally:
            del self._held[held.target.id]

    async def _do_page(self, held: HeldTarget) -> Result:
        try:
            page = await self._definition.crawl.page(PageContext(self._work, held))
            return result_of(held, page)
        except asyncio.CancelledError as error:
            if isinstance(self.failure, Stopping):
                raise
            # A library cancelled the page, and not the worker.
            return Result(held, None, error)
        except Exception as error:
            return Result(held, None, error)

    async def _fail(self, held: HeldTarget, error: BaseException) -> None:
        if isinstance(error, Stopping):
            raise error
        if not isinstance(error, (LeaseLost, RunEnded)):
            await self._end(*failure(held, error))

    async def _end(self, path: str, body: bytes) -> None:
        try:
            await self._calls.post(path, body)
        except (LeaseLost, RunEnded):
            # It was not held any more.
            return

    async def _beat(self) -> None:
        try:
            while True:
                try:
                    answer = await self._calls.post("/heartbeat")
                except Stopping:
                    raise
                except UnstuckError:
                    # The next one tells.
                    answer = {"stop": False, "lost": []}
                mark_lost(self._held, answer["lost"])
                if answer["stop"]:
                    self.stop()
                await asyncio.sleep(HEARTBEAT_SECONDS)
        except Stopping as gone:
            self.stop(gone)

    def _log(self, line: Mapping[str, Any]) -> None:
        task = asyncio.create_task(self._send_log(line))
        self._logs.add(task)
        task.add_done_callback(self._logs.discard)

    async def _send_log(self, line: Mapping[str, Any]) -> None:
        try:
            await self._calls.post("/log", log_body(line))
        except UnstuckError:
            # A line that cannot be written does not end a crawl.
            return


async def _result(value: Any) -> Any:
    """Returns what a method returned, plain or asynchronous."""
    return await value if inspect.iscoroutine(value) else value
