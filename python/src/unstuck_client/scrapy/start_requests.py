"""The start requests: one process of the run adds them all, and another one if it dies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from ..errors import UnstuckError
from .reactor import current_reactor
from .saves import Planned, Saves

# So many are added at once, and a pause is made while so many wait to be saved.
_AT_ONCE = 100
_WAITING_MAX = 5_000
_PAUSE_SECONDS = 0.05


class StartRequests:
    """Waits for the turn of this process to plan the run, and sees it through."""

    def __init__(
        self, crawler: Crawler, saves: Saves, fail: Callable[[UnstuckError], None]
    ) -> None:
        self._crawler = crawler
        self._saves = saves
        self._fail = fail
        self._turn: Deferred[bool] = Deferred()
        self._is_over = False
        self.held_back: Iterable[Any] | None = None
        """Those of a Scrapy before 2.13, whose engine does not wait for them."""

    async def wait(self) -> bool:
        """Waits until this process is to plan. Returns False if it never is."""
        is_planner: bool = await maybe_deferred_to_future(self._turn)
        return is_planner

    def begin(self, mark: Callable[[Any], None]) -> None:
        """Adds all of them: no other process plans the run."""
        if not self._turn.called:
            self._turn.callback(True)
        if self.held_back is not None:
            self._add_some(iter(self.held_back), mark)

    def give_up(self) -> None:
        """Adds no more: the run has ended, or this process is to stop."""
        self._is_over = True
        if not self._turn.called:
            self._turn.callback(False)

    async def room(self) -> None:
        """Waits while too many wait to be saved."""
        while self._saves.waiting > _WAITING_MAX and not self._is_over:
            pause: Deferred[None] = Deferred()
            current_reactor().callLater(_PAUSE_SECONDS, pause.callback, None)
            await maybe_deferred_to_future(pause)

    def done(self, error: BaseException | None) -> None:
        """All were yielded, or an error ended them."""
        if self._is_over:
            return
        if error is None:
            self._saves.put(Planned())
        else:
            text = f"The start requests failed: {type(error).__name__}: {error}"
            self._fail(UnstuckError(text))

    def _add_some(self, requests: Iterator[Any], mark: Callable[[Any], None]) -> None:
        engine: Any = self._crawler.engine
        try:
            for _ in range(_AT_ONCE):
                if self._is_over or self._saves.waiting > _WAITING_MAX:
                    break
                request = next(requests)
                mark(request)
                engine.crawl(request)
        except StopIteration:
            self.done(None)
        except Exception as error:
            self.done(error)
        else:
            if not self._is_over:
                current_reactor().callLater(_PAUSE_SECONDS, self._add_some, requests, mark)
