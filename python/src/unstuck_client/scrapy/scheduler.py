"""The scheduler: requests come from the run, and what came of them goes back to it."""

from __future__ import annotations

import heapq
import itertools
import logging
import os
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.core.scheduler import Scheduler as ScrapyScheduler
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure as TwistedFailure

from ..background import Background
from ..connection import Calls
from ..endpoint import find_endpoint
from ..errors import RunEnded, Stopping, UnstuckError, UsageError
from .addon import MIDDLEWARE, MIDDLEWARE_ORDER
from .claims import Claims
from .errbacks import Errback, describe
from .held_request import MARK, Failure, HeldRequest
from .middleware import SpiderMiddleware
from .new_requests import NewRequests
from .reactor import in_reactor
from .saves import End, Saves, StateChange
from .spider_state import SpiderState
from .start_requests import StartRequests
from .stored_items import items_json, key_function, store_items
from .stored_request import load_request

_log = logging.getLogger(__name__)


def is_under_unstuck() -> bool:
    """Returns whether Unstuck started this process."""
    return bool(os.environ.get("UNSTUCK_URL"))


class Scheduler(BaseScheduler):
    """Serves requests that this process has claimed, and saves what they yield."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BaseScheduler:
        """Used by Scrapy. Without Unstuck, as in ``scrapy shell``, it is Scrapy's own scheduler."""
        if not is_under_unstuck():
            _log.warning(
                "This crawl is not under Unstuck: a crash loses it. Start it with: "
                "unstuck work --exec --targets --source SOURCE --workers 2 --drain -- scrapy …"
            )
            own: BaseScheduler = ScrapyScheduler.from_crawler(crawler)
            return own
        return cls(crawler)

    def __init__(self, crawler: Crawler) -> None:
        middleware = SpiderMiddleware.of(crawler)
        if middleware is None:
            raise UsageError(
                "The spider middleware of Unstuck is missing. Add the setting "
                f'SPIDER_MIDDLEWARES = {{"{MIDDLEWARE}": {MIDDLEWARE_ORDER}}}, or use the add-on.'
            )
        settings = crawler.settings
        if settings.get("JOBDIR"):
            _log.warning("JOBDIR is not used under Unstuck: the database keeps all of it.")
        self._crawler = crawler
        self._middleware = middleware
        self._key_of = key_function(settings)
        self._retried = frozenset(int(code) for code in settings.getlist("RETRY_HTTP_CODES"))
        # Twice as many, so that requests are there while others are being saved.
        slots = settings.getint("UNSTUCK_CLAIMS") or 2 * settings.getint("CONCURRENT_REQUESTS")
        self._calls = Calls(find_endpoint("worker", None))
        self._held: dict[str, HeldRequest] = {}
        self._in_engine: dict[Request, HeldRequest] = {}
        self._ready: list[tuple[int, int, Request, HeldRequest]] = []
        self._counter = itertools.count()
        self._has_ended = False
        self._is_closing = False
        self._background = Background(self._calls, self._held, in_reactor(self._stop))
        self._state = SpiderState(Path(os.environ.get("UNSTUCK_OUTPUT_DIR", ".")))
        self._saves = Saves(
            self._calls,
            write_state=self._state.write,
            on_added=in_reactor(lambda keys, planned: self._new.added(keys, planned)),
            on_saved=in_reactor(self._saved),
            on_lost=in_reactor(self._drop),
            on_stop=in_reactor(self._stop),
        )
        self._new = NewRequests(crawler, self._saves, middleware, self._count)
        self.starts = StartRequests(crawler, self._saves, self._stop)
        """Used by the middleware."""
        self._claims = Claims(
            self._calls,
            slots,
            on_targets=in_reactor(self._receive),
            on_planner=in_reactor(self._plan),
            on_end=in_reactor(self._end),
            on_stop=in_reactor(self._stop),
        )

    # — What Scrapy calls —

    def open(self, spider: Spider) -> None:
        """Used by Scrapy: begins to claim."""
        self._spider = spider
        of_spider: Any = spider
        of_spider.state = self._state.load()
        self._middleware.tracker = self
        self.starts.held_back = self._middleware.start_requests
        connect = self._crawler.signals.connect
        connect(self._on_item, signal=signals.item_scraped)
        connect(self._on_dropped, signal=signals.item_dropped)
        connect(self._on_item_error, signal=signals.item_error)
        connect(self._on_spider_error, signal=signals.spider_error)
        slot = self._engine_slot()
        removed = slot.remove_request

        def remove_request(request: Request) -> None:
            # The engine has done with it: its output was yielded, and went through the pipelines.
            held = self._in_engine.pop(request, None)
            if held is not None and not held.is_continued:
                self._finish(held)
            removed(request)

        slot.remove_request = remove_request
        self._background.start()
        self._saves.start()
        self._claims.start()

    def close(self, reason: str) -> Deferred[None]:
        """Used by Scrapy: saves what is done, and releases what is not."""
        return deferred_from_coro(self._close())

    def has_pending_requests(self) -> bool:
        """Returns whether the run has open requests, in this process or in another."""
        return not self._has_ended

    def next_request(self) -> Request | None:
        """Returns the claimed request with the highest priority."""
        while self._ready:
            _, _, request, held = heapq.heappop(self._ready)
            held.is_continued = False
            if held.is_lost:
                self._finish(held)
                continue
            self._in_engine[request] = held
            self._count("scheduler/dequeued")
            return request
        return None

    def enqueue_request(self, request: Request) -> bool:
        """Adds a request to the run. Returns False for one that it has already."""
        held = self._held.get(request.meta.get(MARK, ""))
        if held is None or held.has_reached_spider:
            parent = self._middleware.parent_of(request) or held
            return self._new.add(request, parent, self._spider)
        if request.dont_filter:
            # A retry, or the redirect of a start request: the same target goes on.
            held.is_continued = True
            self._serve(request, held)
            return True
        # A redirect is a request of its own, so that its page is fetched once only.
        return self._new.add(request, held, self._spider)

    # — What the middleware calls —

    def find(self, origin: Any) -> HeldRequest | None:
        """Returns the held request that a response or a failure is of."""
        request: Request | None = getattr(origin, "request", None)
        if request is None:
            return None
        return self._held.get(request.meta.get(MARK, "")) or self._in_engine.get(request)

    # — Requests —

    def _serve(self, request: Request, held: HeldRequest) -> None:
        if not isinstance(request.errback, Errback):
            request.errback = Errback(
                request.errback, self.find, self._retried, self._middleware
            )
        heapq.heappush(self._ready, (-request.priority, next(self._counter), request, held))

    def _receive(self, targets: list[dict[str, Any]]) -> None:
        """Takes targets that were claimed."""
        for claimed in targets:
            held = HeldRequest(claimed)
            self._held[held.id] = held
            if self._is_closing:
                continue
            try:
                request = load_request(held.data, self._spider)
            except Exception as error:
                held.fail(Failure(f"The request cannot be made again: {error}"))
                self._finish(held)
                continue
            request.meta[MARK] = held.id
            self._serve(request, held)
        self._wake()

    # — What comes of a request —

    def _on_item(self, item: Any, response: Any) -> None:
        held = self.find(response)
        if held is not None:
            held.items.append(item)
        else:
            self._count("unstuck/items_not_saved")
            _log.error(
                "An item is not saved: it is of no request of this run: %s",
                item,
                extra={"spider": self._spider},
            )

    def _on_dropped(self, response: Any) -> None:
        held = self.find(response)
        if held is not None:
            held.dropped += 1

    def _on_item_error(self, response: Any, failure: TwistedFailure) -> None:
        self._fail(response, f"in a pipeline: {describe(failure)}")

    def _on_spider_error(self, response: Response, failure: TwistedFailure) -> None:
        self._fail(response, describe(failure))

    def _fail(self, response: Any, text: str) -> None:
        held = self.find(response)
        if held is not None:
            held.fail(Failure(text))

    def _finish(self, held: HeldRequest) -> None:
        """Sends what came of a request."""
        held.is_sent = True
        if held.is_lost:
            self._drop(held, "another process has it")
            return
        try:
            self._save_state()
            page = None if held.failure else self._page(held)
        except Exception as error:
            page = None
            held.fail(Failure(f"The page cannot be saved: {error}", retry=False))
        self._saves.put(End(held, page, held.failure))

    def _save_state(self) -> None:
        text = self._state.changed(getattr(self._spider, "state", {}))
        if text is not None:
            self._saves.put(StateChange(text))

    def _page(self, held: HeldRequest) -> bytes:
        fields = {
            "target": held.id,
            "page": held.page,
            "items": store_items(held.items, held.key, self._key_of),
            "skipped": held.dropped,
            "done": True,
        }
        return items_json(fields)

    # — What the threads report —

    def _saved(self, end: End) -> None:
        self._forget(end.held)
        if end.page is not None:
            self._count("unstuck/saved")
        elif end.failure is not None:
            self._count("unstuck/failed")
            _log.warning("Request %s failed: %s", end.held.key, end.failure.text)

    def _forget(self, held: HeldRequest) -> None:
        if self._held.pop(held.id, None) is not None:
            self._claims.add_free()

    def _drop(self, held: HeldRequest, because: str) -> None:
        self._forget(held)
        _log.warning("What came of request %s is dropped: %s", held.key, because)

    def _plan(self) -> None:
        self.starts.begin(self._middleware.add_start)

    def _end(self) -> None:
        """The run has ended: the engine closes the spider, as nothing is pending."""
        self._has_ended = True
        self.starts.give_up()
        self._wake()

    def _stop(self, error: UnstuckError | None = None) -> None:
        """Closes the spider: this process must stop, or cannot go on."""
        if isinstance(error, RunEnded):
            self._end()
            return
        if self._is_closing:
            return
        if error is not None and not isinstance(error, Stopping):
            _log.error("%s", error, extra={"spider": self._spider})
            self._background.log({"message": str(error), "level": "error"})
        engine: Any = self._crawler.engine
        if engine is None or engine.spider is None:
            return
        if hasattr(engine, "close_spider_async"):
            deferred_from_coro(engine.close_spider_async(reason="shutdown"))
        else:
            engine.close_spider(self._spider, "shutdown")

    async def _close(self) -> None:
        self._is_closing = True
        self.starts.give_up()
        self._claims.stop()
        await maybe_deferred_to_future(deferToThread(self._claims.join))
        for held in self._held.values():
            if not held.is_sent:
                self._saves.put(End(held))
        try:
            self._save_state()
        except UsageError as error:
            _log.error("%s", error, extra={"spider": self._spider})
        await maybe_deferred_to_future(deferToThread(self._saves.close))
        await maybe_deferred_to_future(deferToThread(self._background.stop))

    def _wake(self) -> None:
        slot = self._engine_slot()
        if slot is not None:
            slot.nextcall.schedule()

    def _engine_slot(self) -> Any:
        engine: Any = self._crawler.engine
        # It got its underscore in Scrapy 2.13.
        return getattr(engine, "_slot", None) or getattr(engine, "slot", None)

    def _count(self, name: str, by: int = 1) -> None:
        stats: Any = self._crawler.stats
        if by > 0:
            stats.inc_value(name, by)
