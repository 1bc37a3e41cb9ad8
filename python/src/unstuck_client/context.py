"""What ``page`` and ``targets`` get."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from .errors import UsageError
from .targets import HeldTarget, Target

if TYPE_CHECKING:
    from .crawls import CrawlDefinition
    from .endpoint import Endpoint
    from .page import Page
    from .transaction import PageTransaction

Level = Literal["info", "warn", "error"]


class Work:
    """What the pages of a process share."""

    __slots__ = (
        "run", "source", "input", "initial_cursor", "resources", "stopping", "log", "post"
    )  # fmt: skip

    def __init__(self, definition: CrawlDefinition, endpoint: Endpoint) -> None:
        self.run = ""
        self.source = definition.source
        self.input = endpoint.input
        self.initial_cursor = definition.initial_cursor
        self.resources: Any = None
        self.stopping = False
        self.log: Callable[[Mapping[str, Any]], None]
        self.post: Callable[[str, bytes], Any]


class PlanningContext:
    """What ``targets`` gets, if it takes an argument."""

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        self._work = work

    @property
    def run(self) -> str:
        """The id of the run that is planned."""
        return self._work.run

    @property
    def source(self) -> str:
        """The source of the run."""
        return self._work.source

    @property
    def input(self) -> Any:
        """What the run was queued with: ``unstuck enqueue --input``. None if nothing."""
        return self._work.input

    @property
    def stopping(self) -> bool:
        """Whether the worker must stop."""
        return self._work.stopping


class PageContext:
    """What ``page`` gets."""

    __slots__ = ("_work", "_held", "_cursor", "page", "attempt")

    def __init__(self, work: Work, held: HeldTarget) -> None:
        self._work = work
        self._held = held
        self._cursor: Any = held.cursor
        self.page: int = held.page + 1
        """Counts from 1."""
        self.attempt: int = held.attempt
        """1, and one more after each error of this page."""

    @property
    def run(self) -> str:
        """The id of the run."""
        return self._work.run

    @property
    def source(self) -> str:
        """The source of the run."""
        return self._work.source

    @property
    def target(self) -> Target:
        """The target that the page belongs to."""
        return self._held.target

    @property
    def url(self) -> str:
        """This page's address: ``next`` of the last page, else the target's ``url``."""
        address = self._held.address
        if address is None:
            raise UsageError(
                f"Target {self.target.key} has no address: give it a url in targets(), or return "
                "next. A crawl without addresses keeps its place in cursor."
            )
        return address

    @property
    def cursor(self) -> Any:
        """What the last page returned, else ``initial_cursor``."""
        if self._cursor is None and self._work.initial_cursor is not None:
            # A copy: page() may change what it gets.
            self._cursor = copy.deepcopy(self._work.initial_cursor)
        return self._cursor

    @property
    def last_item_id(self) -> str | None:
        """What the last page returned; None before."""
        return self._held.last_item_id

    @property
    def page_target(self) -> int | None:
        """How many pages there will be, as last reported."""
        return self._held.page_target

    @property
    def resources(self) -> Any:
        """What ``setup`` returned."""
        return self._work.resources

    @property
    def stopping(self) -> bool:
        """Whether to end early: the worker must stop, or another process has the target."""
        return self._work.stopping or self._held.is_lost

    def log(self, message: str, *, level: Level = "info", **fields: Any) -> None:
        """Writes a line to the journal of the worker."""
        line: dict[str, Any] = {"message": str(message), "target": self.target.id}
        if level != "info":
            line["level"] = level
        if fields:
            line["fields"] = fields
        self._work.log(line)

    def transaction(self, connection: Any, page: Page) -> PageTransaction:
        """Saves the page in a PostgreSQL transaction of your own, with what you write in it.

        ``with ctx.transaction(connection, page) as cursor: cursor.execute("insert …")``, then
        return the page. With asyncio: ``async with``.
        """
        from .transaction import PageTransaction

        return PageTransaction(self._work.post, self._held, connection, page)
