"""New requests on their way to the run, and the keys by which it filters duplicates."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler

from ..errors import UsageError
from ..json_text import to_json
from .errbacks import own_errback
from .held_request import MARK, Failure, HeldRequest
from .middleware import SpiderMiddleware
from .saves import NewRequest, Saves
from .stored_request import store_request

_log = logging.getLogger(__name__)
_URL_BYTES_MAX = 8 * 1024


class NewRequests:
    """Adds requests to the run. The key of each one in the run is the duplicate filter."""

    def __init__(
        self,
        crawler: Crawler,
        saves: Saves,
        middleware: SpiderMiddleware,
        count: Callable[[str, int], None],
    ) -> None:
        self._crawler = crawler
        self._saves = saves
        self._middleware = middleware
        self._count = count
        # Keys of requests that the run has: they need not be sent again.
        self._known: set[str] = set()
        self._start_keys: Counter[str] = Counter()

    def add(self, request: Request, parent: HeldRequest | None, spider: Spider) -> bool:
        """Adds a request. Returns False for a duplicate, and for one that cannot be stored."""
        is_start = self._middleware.is_start(request)
        meta = {name: value for name, value in request.meta.items() if name != MARK}
        own = request.replace(errback=own_errback(request), meta=meta)
        try:
            data = store_request(own, spider)
        except UsageError as error:
            if is_start:
                raise
            _log.error("%s", error, extra={"spider": spider})
            if parent is not None:
                parent.fail(Failure(str(error), retry=False))
            return False
        key = self._key(request, parent, is_start)
        if key in self._known:
            self._count("dupefilter/filtered", 1)
            return False
        target = {"key": key, "data": data}
        if len(request.url) <= _URL_BYTES_MAX:
            target["url"] = request.url
        self._saves.put(NewRequest(key, to_json(target), request.priority, parent))
        return True

    def added(self, keys: list[str], planned: int) -> None:
        """The run has these now; so many were new."""
        self._known.update(keys)
        self._count("scheduler/enqueued", planned)
        self._count("dupefilter/filtered", len(keys) - planned)

    def _key(self, request: Request, parent: HeldRequest | None, is_start: bool) -> str:
        """Returns the key of a request: the same one each time that its parent is tried."""
        fingerprinter: Any = self._crawler.request_fingerprinter
        key: str = fingerprinter.fingerprint(request).hex()
        if not request.dont_filter:
            return key
        if parent is not None:
            origin, counts = parent.key, parent.children
        elif is_start:
            origin, counts = "start", self._start_keys
        else:
            # Added by a part of the program on its own: nothing would add it again.
            origin, counts = os.urandom(16).hex(), Counter()
        counts[key] += 1
        return hashlib.sha1(f"{origin} {key} {counts[key]}".encode()).hexdigest()
