"""Where a run of one's own loop is, without any call."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .errors import LeaseLost, Stopping, UnstuckError, UsageError
from .json_text import to_json
from .page import UNSET, Item, check_counts, checked_items, page_json


class Checkpoint:
    """A page on its way, and what the run continues from after it."""

    __slots__ = ("fields", "body")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.body = page_json(fields)


class RunState:
    """The place of a run: what was saved last, and whether the program must stop."""

    id: str
    """The id of the run."""
    source: str
    resumed: bool
    """Whether it continues earlier work."""
    page: int
    """The last saved page; 0 before the first."""
    next: str | None
    """As the last checkpoint left it."""
    last_item_id: str | None
    """As it was said last."""
    page_target: int | None
    """How many pages there will be, as it was said last."""
    done: int
    """What ``progress`` reported."""
    total: int

    def __init__(self, initial_cursor: Any) -> None:
        # A copy: the program may change what it gets.
        self._initial_cursor = copy.deepcopy(initial_cursor)
        self._cursor: Any = None
        self._lost: LeaseLost | None = None
        self.stopping = False
        """Whether to end after the page in progress."""
        self.ended = False
        """True after ``succeed``, ``fail`` or ``release``."""

    @property
    def cursor(self) -> Any:
        """What the last checkpoint said, else ``initial_cursor``."""
        return self._initial_cursor if self._cursor is None else self._cursor

    def pages(self, to: int | None = None) -> Iterator[int]:
        """Yields the numbers of the pages still to do.

        Raises Stopping or LeaseLost before the next page once the program must stop.
        """
        page = self.page + 1
        while to is None or page <= to:
            if self.ended:
                return
            self.assert_open()
            if self.stopping:
                raise Stopping("The program must stop. The next start continues with this page.")
            yield page
            page = max(page, self.page) + 1

    def stop(self) -> None:
        """Asks the loop to end after the page in progress."""
        self.stopping = True

    def lose(self, lost: LeaseLost) -> None:
        """Used by Unstuck when another process has the run."""
        self._lost = lost
        self.stopping = True

    def assert_open(self) -> None:
        """Raises an error if the run is lost or has ended here."""
        if self._lost is not None:
            raise self._lost
        if self.ended:
            raise UsageError(f"Run {self.id} has already ended here.")

    def continue_from(self, begun: Mapping[str, Any]) -> None:
        """Used by ``with``: takes over where the run continues."""
        self.id = begun["run"]
        self.source = begun["source"]
        self.resumed = begun["resumed"]
        self.page = begun["page"]
        self.next = begun["next"]
        self.last_item_id = begun["lastItemId"]
        self.page_target = begun["pageTarget"]
        self.done = begun["done"]
        self.total = begun["total"]
        self._cursor = begun["cursor"]

    def make_checkpoint(
        self,
        items: Iterable[Item | Mapping[str, Any]] = (),
        *,
        page: int | None = None,
        next: str | None = None,  # noqa: A002
        cursor: Any = UNSET,
        last_item_id: str | None = None,
        skipped: int = 0,
        page_target: int | None = None,
    ) -> Checkpoint:
        """Used by ``checkpoint``: checks the arguments and makes the body of the call."""
        self.assert_open()
        number = self.page + 1 if page is None else page
        if type(number) is not int or number < 1:
            raise UsageError(f"checkpoint: page is a whole number from 1, not {page!r}.")
        if next is not None and (not isinstance(next, str) or not next):
            raise UsageError(f"checkpoint: next is {next!r}. It is an address, or None.")
        check_counts("checkpoint", last_item_id, skipped, page_target)
        fields: dict[str, Any] = {
            "page": number,
            "items": checked_items("checkpoint", items),
            "next": next,
            "skipped": skipped,
        }
        if cursor is not UNSET:
            fields["cursor"] = cursor
        if last_item_id is not None:
            fields["lastItemId"] = last_item_id
        if page_target is not None:
            fields["pageTarget"] = page_target
        return Checkpoint(fields)

    def advance(self, saved: Checkpoint) -> None:
        """Used by ``checkpoint``: moves on after a page that was saved."""
        fields = saved.fields
        self.page = fields["page"]
        self.next = fields["next"]
        self.last_item_id = fields.get("lastItemId", self.last_item_id)
        self.page_target = fields.get("pageTarget", self.page_target)
        if "cursor" in fields:
            self._cursor = fields["cursor"]


def fail_body(error: object, retry: bool) -> bytes:
    """Returns the body of ``POST /fail``."""
    if isinstance(error, BaseException) and not isinstance(error, UnstuckError):
        error = f"{type(error).__name__}: {error}"
    return to_json({"error": str(error) or type(error).__name__, "retry": retry})


def left_body(error: BaseException | None) -> bytes:
    """Returns the body for a run that was left without its end."""
    return fail_body(error or "the program left the run without succeed()", True)
