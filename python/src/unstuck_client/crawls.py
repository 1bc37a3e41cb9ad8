"""The definition of a crawl: the decorator, its options, and the methods of the class."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypeVar

from .endpoint import find_endpoint
from .errors import UsageError
from .hints import closest, reject_unknown

C = TypeVar("C", bound=type[Any])
Targets = Iterable[Any] | AsyncIterable[Any]

_OPTIONS = ("source", "concurrency", "initial_cursor")
_METHODS = ("targets", "page", "setup", "teardown")
_CONCURRENCY_MAX = 1_000


@dataclass(frozen=True, slots=True)
class CrawlDefinition:
    """A crawl as the worker uses it: checked, with an object of its class."""

    source: str
    concurrency: int
    initial_cursor: Any
    crawl: Any
    is_async: bool

    def targets(self, context: object) -> Targets:
        """Calls ``targets``, with the context if it takes one."""
        found: Targets = _call(self.crawl.targets, context)
        return found

    def setup(self) -> Any:
        """Calls ``setup``; of an asynchronous one, returns what to await."""
        setup = getattr(self.crawl, "setup", None)
        return setup() if setup else None

    def teardown(self, resources: object) -> Any:
        """Calls ``teardown``, with the resources if it takes them."""
        teardown = getattr(self.crawl, "teardown", None)
        return _call(teardown, resources) if teardown else None


class Crawl:
    """A base class for crawls, which tells type checkers of ``run``. None is needed to crawl."""

    definition: ClassVar[Mapping[str, Any]]

    @classmethod
    def run(cls) -> None:
        """Works on the run of the source until it has ended, or this process must stop."""
        run_crawl(cls)


def crawl(
    source: str,
    *,
    concurrency: int = 1,
    initial_cursor: Any = None,
    **unknown: NoReturn,
) -> Callable[[C], C]:
    """Makes a crawl of a class with the methods ``targets`` and ``page``.

    ``source`` names what is crawled. ``concurrency`` is the number of pages in flight per
    process: in threads, or in one event loop where the methods are ``async def``.
    ``initial_cursor`` is the cursor of a target's first page, for crawls without addresses.
    """
    if unknown:
        reject_unknown("@crawl", unknown, _OPTIONS)
    if not isinstance(source, str) or not source:
        raise UsageError('@crawl takes the name of the source: @crawl(source="yellow-pages").')
    if type(concurrency) is not int or not 1 <= concurrency <= _CONCURRENCY_MAX:
        raise UsageError(
            f"@crawl: concurrency is a whole number from 1 to {_CONCURRENCY_MAX}, "
            f"not {concurrency!r}."
        )

    def decorate(cls: C) -> C:
        if not inspect.isclass(cls):
            raise UsageError("@crawl decorates a class with the methods targets and page.")
        _check_methods(cls)
        cls.definition = {
            "source": source,
            "concurrency": concurrency,
            "initial_cursor": initial_cursor,
        }
        if not hasattr(cls, "run"):
            cls.run = classmethod(run_crawl)
        return cls

    return decorate


def define(cls: type[Any]) -> CrawlDefinition:
    """Returns the definition of a decorated class, with a new object of it."""
    options = getattr(cls, "definition", None)
    if options is None:
        raise UsageError(f"{cls.__name__} is no crawl yet: decorate it with @crawl(source=…).")
    is_async = inspect.iscoroutinefunction(cls.page)
    return CrawlDefinition(**options, crawl=cls(), is_async=is_async)


def run_crawl(cls: type[Any]) -> None:
    """Works on the run of a crawl until it has ended, or this process must stop.

    Returns then, so that the program ends with exit code 0. Ends the program with 2 where it was
    not started by ``unstuck work --exec --targets``, and with another code after an error.
    """
    source = getattr(cls, "definition", {}).get("source")
    try:
        endpoint = find_endpoint("worker", source)
        definition = define(cls)
    except UsageError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    if definition.is_async:
        from .aio_worker import run_async_worker

        run_async_worker(definition, endpoint)
    else:
        from .worker import run_worker

        run_worker(definition, endpoint)


def _check_methods(cls: Any) -> None:
    for name in ("targets", "page"):
        if not callable(getattr(cls, name, None)):
            raise UsageError(f"{cls.__name__} has no method {name}.")
    for name, one in vars(cls).items():
        if name in _METHODS or name.startswith("_") or not callable(one):
            continue
        meant = closest(name, _METHODS, cutoff=0.8)
        if meant is not None and not hasattr(cls, meant):
            raise UsageError(
                f"{cls.__name__}.{name} would never be called; did you mean {meant}?"
            )
    page = cls.page
    if inspect.isgeneratorfunction(page) or inspect.isasyncgenfunction(page):
        raise UsageError(f"{cls.__name__}.page yields. It returns one Page.")
    if inspect.iscoroutinefunction(page):
        return
    for name in ("targets", "setup", "teardown"):
        one = getattr(cls, name, None)
        if inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one):
            raise UsageError(
                f"{cls.__name__}.{name} is async def, and page is not. With async def page, "
                "everything runs in one event loop."
            )


def _call(method: Callable[..., Any], argument: object) -> Any:
    """Calls a method with the argument, if it takes one."""
    parameters = inspect.signature(method).parameters.values()
    takes = any(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)
    return method(argument) if takes else method()
