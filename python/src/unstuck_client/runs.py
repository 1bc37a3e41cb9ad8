"""One run in a loop of your own, under ``unstuck run``."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from .aio_runs import AsyncRun
from .connection import Calls
from .endpoint import find_endpoint
from .errors import LeaseLost, Stopping, UnstuckError
from .json_text import to_json
from .page import UNSET, Item
from .protocol import HEARTBEAT_SECONDS
from .run_state import RunState, fail_body, left_body
from .signals import on_stop_signal

EXIT_RESUMABLE = 75


def run(source: str | None = None, *, initial_cursor: Any = None) -> RunBlock:
    """Opens the run that ``unstuck run SOURCE -- …`` started this program for.

    ``with run("portal-a") as run:``, or ``async with``. The name is compared with the one that
    Unstuck was started with. Without ``run.succeed()`` the run is released at the end of the
    block: it stays open, and the next start continues it.
    """
    return RunBlock(source, initial_cursor)


class RunBlock:
    """What ``with`` and ``async with`` open."""

    def __init__(self, source: str | None, initial_cursor: Any) -> None:
        self._endpoint = find_endpoint("run", source)
        self._initial_cursor = initial_cursor
        self._run: Run | None = None
        self._async_run: AsyncRun | None = None

    def __enter__(self) -> Run:
        self._run = Run(Calls(self._endpoint), self._initial_cursor)
        self._run.open()
        return self._run

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        assert self._run is not None
        self._run.leave(error)
        if isinstance(error, Stopping):
            raise SystemExit(EXIT_RESUMABLE) from None

    async def __aenter__(self) -> AsyncRun:
        self._async_run = AsyncRun(self._endpoint, self._initial_cursor)
        await self._async_run.open()
        return self._async_run

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        assert self._async_run is not None
        await self._async_run.leave(error)
        if isinstance(error, Stopping):
            raise SystemExit(EXIT_RESUMABLE) from None


class Run(RunState):
    """The run: its cursor, its checkpoints, its end."""

    def __init__(self, calls: Calls, initial_cursor: Any) -> None:
        super().__init__(initial_cursor)
        self._calls = calls
        self._closed = threading.Event()
        self._signals = on_stop_signal(self.stop)

    def open(self) -> None:
        """Used by ``with``: reads where to continue, and begins to listen for a stop."""
        self.continue_from(self._calls.get())
        self._signals.__enter__()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def leave(self, error: BaseException | None) -> None:
        """Used by ``with``: releases the run, unless it has ended."""
        self._closed.set()
        try:
            if not self.ended and not isinstance(error, LeaseLost):
                # A stop by Unstuck releases the run anyway, as a stop and not as an error.
                is_asked = isinstance(error, Stopping) and self._calls.post("/heartbeat")["stop"]
                if not is_asked:
                    self._calls.post("/fail", left_body(error))
        except UnstuckError:
            # Unstuck settles the run by the way in which this program ends.
            pass
        finally:
            self.ended = True
            self._signals.__exit__(None, None, None)
            self._calls.close()

    def checkpoint(
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
        seq: int = self._calls.post("/checkpoint", made.body)["seq"]
        self.advance(made)
        return seq

    def progress(self, done: int, total: int) -> None:
        """Reports progress in units of the program."""
        self.assert_open()
        self._calls.post("/progress", to_json({"done": done, "total": total}))
        self.done, self.total = done, total

    def succeed(self) -> None:
        """Ends the run: all is done."""
        self.assert_open()
        self._calls.post("/finish")
        self.ended = True

    def fail(self, error: object, *, retry: bool = False) -> None:
        """Ends the run as failed. With ``retry`` it stays open, and the next start continues it."""
        self.assert_open()
        self._calls.post("/fail", fail_body(error, retry))
        self.ended = True

    def release(self) -> None:
        """Leaves the run unfinished: the next start continues after the last checkpoint."""
        self.assert_open()
        self._calls.post("/fail", left_body(None))
        self.ended = True

    def _beat(self) -> None:
        while not self._closed.wait(HEARTBEAT_SECONDS):
            try:
                if self._calls.post("/heartbeat")["stop"]:
                    self.stop()
            except LeaseLost as lost:
                self.lose(lost)
                return
            except UnstuckError:
                self.stop()
                return
