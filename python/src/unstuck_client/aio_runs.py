"""The same run for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from .aio_connection import AsyncCalls
from .endpoint import Endpoint
from .errors import LeaseLost, Stopping, UnstuckError
from .json_text import to_json
from .page import UNSET, Item
from .protocol import HEARTBEAT_SECONDS
from .run_state import RunState, fail_body, left_body
from .signals import STOP_SIGNALS


class AsyncRun(RunState):
    """The run: its cursor, its checkpoints, its end."""

    def __init__(self, endpoint: Endpoint, initial_cursor: Any) -> None:
        super().__init__(initial_cursor)
        self._calls = AsyncCalls(endpoint)
        self._heartbeat: asyncio.Task[None] | None = None
        self._has_signals = threading.current_thread() is threading.main_thread()

    async def open(self) -> None:
        """Used by ``async with``: reads where to continue, and begins to listen for a stop."""
        self.continue_from(await self._calls.get())
        if self._has_signals:
            for one in STOP_SIGNALS:
                asyncio.get_running_loop().add_signal_handler(one, self.stop)
        self._heartbeat = asyncio.create_task(self._beat())

    async def leave(self, error: BaseException | None) -> None:
        """Used by ``async with``: releases the run, unless it has ended."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        try:
            if not self.ended and not isinstance(error, LeaseLost):
                # A stop by Unstuck releases the run anyway, as a stop and not as an error.
                is_asked = isinstance(error, Stopping) and await self._is_asked_to_stop()
                if not is_asked:
                    await self._calls.post("/fail", left_body(error))
        except UnstuckError:
            # Unstuck settles the run by the way in which this program ends.
            pass
        finally:
            self.ended = True
            if self._has_signals:
                for one in STOP_SIGNALS:
                    asyncio.get_running_loop().remove_signal_handler(one)
            self._calls.close()

    async def checkpoint(
        self,
        items: Iterable[Item | Mapping[str, Any]] = (),
        *,
        page: int | None = None,
        next: str | None = None,  # noqa: A002
        cursor: Any = UNSET,
        last_item_id: str | None = None,
        skipped: int = 0,
        page_target: int | None = None,
    ) -> int:
        """Saves items and cursor in one transaction. Returns the number of the checkpoint.

        ``page`` is the one after the last saved page, unless it is given. Saving the last page
        again, with the same content, changes nothing.
        """
        made = self.make_checkpoint(
            items,
            page=page,
            next=next,
            cursor=cursor,
            last_item_id=last_item_id,
            skipped=skipped,
            page_target=page_target,
        )
        seq: int = (await self._calls.post("/checkpoint", made.body))["seq"]
        self.advance(made)
        return seq

    async def progress(self, done: int, total: int) -> None:
        """Reports progress in units of the program."""
        self.assert_open()
        await self._calls.post("/progress", to_json({"done": done, "total": total}))
        self.done, self.total = done, total

    async def succeed(self) -> None:
        """Ends the run: all is done."""
        self.assert_open()
        await self._calls.post("/finish")
        self.ended = True

    async def fail(self, error: object, *, retry: bool = False) -> None:
        """Ends the run as failed. With ``retry`` it stays open, and the next start continues it."""
        self.assert_open()
        await self._calls.post("/fail", fail_body(error, retry))
        self.ended = True

    async def release(self) -> None:
        """Leaves the run unfinished: the next start continues after the last checkpoint."""
        self.assert_open()
        await self._calls.post("/fail", left_body(None))
        self.ended = True

    async def _is_asked_to_stop(self) -> bool:
        return bool((await self._calls.post("/heartbeat"))["stop"])

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                if await self._is_asked_to_stop():
                    self.stop()
            except LeaseLost as lost:
                self.lose(lost)
                return
            except UnstuckError:
                self.stop()
                return
