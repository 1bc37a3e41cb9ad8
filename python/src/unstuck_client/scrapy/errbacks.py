"""The errback of every request, which learns of errors that Scrapy sends no signal for."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from scrapy import Request
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.spider import iterate_spider_output
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure as TwistedFailure

from .held_request import Failure, HeldRequest
from .middleware import SpiderMiddleware

Find = Callable[[Any], "HeldRequest | None"]


class Errback:
    """Calls the errback of the spider, if there is one. Without one, the request has failed."""

    def __init__(
        self, own: Callable[[Any], Any] | None, find: Find, retried: frozenset[int],
        middleware: SpiderMiddleware,
    ) -> None:
        self.own = own
        self._find = find
        self._retried = retried
        self._middleware = middleware

    def __call__(self, failure: TwistedFailure) -> Any:
        """Used by Scrapy."""
        held = self._find(failure)
        if held is None:
            return failure if self.own is None else self.own(failure)
        held.has_reached_spider = True
        if self.own is None:
            error = failure_of(failure, self._retried)
            if error is not None:
                held.fail(error)
            return failure
        try:
            output = self.own(failure)
        except CloseSpider:
            raise
        except Exception:
            held.fail(Failure(describe(TwistedFailure())))
            raise
        if isinstance(output, TwistedFailure):
            # Handed on: nothing handled it.
            held.fail(Failure(describe(output)))
            return output
        # The middlewares do not see what an errback yields.
        return self._marked(iterate_spider_output(output), held)

    def _marked(self, output: Any, held: HeldRequest) -> Any:
        if isinstance(output, Deferred):
            return output.addCallback(self._marked, held)
        if isinstance(output, AsyncIterable):
            return self._mark_async(output, held)
        return self._mark(output, held)

    def _mark(self, output: Iterable[Any], held: HeldRequest) -> Iterator[Any]:
        for one in output:
            yield self._middleware.mark(one, held)

    async def _mark_async(
        self, output: AsyncIterable[Any], held: HeldRequest
    ) -> AsyncIterator[Any]:
        async for one in output:
            yield self._middleware.mark(one, held)


def own_errback(request: Request) -> Callable[[Any], Any] | None:
    """Returns the errback that the spider gave a request."""
    errback: Any = request.errback
    while isinstance(errback, Errback):
        errback = errback.own
    own: Callable[[Any], Any] | None = errback
    return own


def failure_of(failure: TwistedFailure, retried: frozenset[int]) -> Failure | None:
    """Returns the error of a request; None for what Scrapy ignores on purpose."""
    error = failure.value
    if isinstance(error, HttpError):
        response = error.response
        if response.status not in retried:
            return None
        after = response.headers.get("Retry-After")
        text = f"HTTP {response.status} for {response.url}"
        return Failure(text, retry_after=after.decode("latin-1") if after else None)
    if isinstance(error, IgnoreRequest):
        return None
    return Failure(describe(failure))


def describe(failure: TwistedFailure) -> str:
    """Returns an error as one text: its class and its message."""
    error = failure.value
    message = str(error) or failure.getErrorMessage()
    return f"{type(error).__name__}: {message}"
