"""The spider middleware: knows which request yielded what, and holds start requests back."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from .held_request import MARK, HeldRequest
from .start_requests import StartRequests

if TYPE_CHECKING:
    from typing_extensions import Self


class Tracker(Protocol):
    """What the scheduler does for the middleware."""

    starts: StartRequests

    def find(self, origin: Any) -> HeldRequest | None:
        """Returns the held request that a response or a failure is of."""


class SpiderMiddleware:
    """Belongs closest to the engine, so that it sees what all others have left."""

    _of_crawlers: weakref.WeakKeyDictionary[Crawler, SpiderMiddleware] = (
        weakref.WeakKeyDictionary()
    )

    def __init__(self) -> None:
        self.tracker: Tracker | None = None
        """Set by the scheduler, if the crawl is under Unstuck."""
        self.is_tracking = False
        """Whether the crawl is under Unstuck."""
        self.start_requests: Iterable[Any] | None = None
        """What the spider starts with, in a Scrapy before 2.13; the scheduler takes it."""
        self._parents: weakref.WeakKeyDictionary[Request, HeldRequest] = (
            weakref.WeakKeyDictionary()
        )
        self._starts: weakref.WeakSet[Request] = weakref.WeakSet()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Used by Scrapy."""
        from .scheduler import is_under_unstuck

        made = cls()
        made.is_tracking = is_under_unstuck()
        cls._of_crawlers[crawler] = made
        return made

    @classmethod
    def of(cls, crawler: Crawler) -> SpiderMiddleware | None:
        """Returns the one of a crawler; None if it is not among its settings."""
        return cls._of_crawlers.get(crawler)

    def parent_of(self, request: Request) -> HeldRequest | None:
        """Returns the request that yielded this one."""
        return self._parents.get(request)

    def is_start(self, request: Request) -> bool:
        """Returns whether the spider starts with this request."""
        return request in self._starts

    def add_start(self, request: Request) -> None:
        """Marks a start request."""
        self._starts.add(request)

    # — What Scrapy calls —

    def process_spider_input(self, response: Response, spider: Spider | None = None) -> None:
        """Used by Scrapy, before a callback."""
        held = self.tracker.find(response) if self.tracker else None
        if held is not None:
            held.has_reached_spider = True

    def process_spider_output(
        self, response: Any, result: Iterable[Any], spider: Spider | None = None
    ) -> Iterator[Any]:
        """Used by Scrapy, with what a callback yields."""
        held = self.tracker.find(response) if self.tracker else None
        for one in result:
            yield self.mark(one, held)

    async def process_spider_output_async(
        self, response: Any, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """Used by Scrapy, with what an asynchronous callback yields."""
        held = self.tracker.find(response) if self.tracker else None
        async for one in result:
            yield self.mark(one, held)

    def process_start_requests(
        self, start_requests: Iterable[Any], spider: Spider | None = None
    ) -> Iterable[Any]:
        """Used by Scrapy before 2.13. The scheduler plans them, in one process of the run."""
        if not self.is_tracking:
            return start_requests
        self.start_requests = start_requests
        return iter(())

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Used by Scrapy from 2.13. Yields nothing, unless this process plans the run."""
        if self.tracker is None:
            async for one in start:
                yield one
            return
        starts = self.tracker.starts
        if not await starts.wait():
            return
        try:
            async for one in start:
                if isinstance(one, Request):
                    self.add_start(one)
                yield one
                await starts.room()
        except Exception as error:
            starts.done(error)
            raise
        starts.done(None)

    def mark(self, one: Any, held: HeldRequest | None) -> Any:
        """Notes the request that another one is from. Returns it."""
        if not isinstance(one, Request):
            return one
        if MARK in one.meta:
            # Spiders pass on the meta of a response, or its request itself.
            one = one.replace(meta={name: one.meta[name] for name in one.meta if name != MARK})
        if held is not None:
            self._parents[one] = held
        return one
