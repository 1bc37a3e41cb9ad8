"""Targets as ``targets`` yields them, as ``page`` sees them, and as this process holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import urljoin

from .errors import UsageError
from .hints import reject_unknown
from .json_text import to_json, unstorable
from .page import UNSET, Page

if TYPE_CHECKING:
    from .transaction import PageTransaction


class NewTarget(TypedDict, total=False):
    """A target: its key, its address, or both."""

    key: str
    """Names the target within its run. Default: the canonical form of ``url``."""
    group: str | None
    """Targets of one group are counted together, and can have a policy of their own."""
    url: str | None
    """The address of its first page."""
    data: Any
    """Any JSON; ``page`` gets it back."""


_FIELDS = ("key", "group", "url", "data")


@dataclass(frozen=True, slots=True)
class Target:
    """A target as ``page`` sees it."""

    id: str
    key: str
    group: str | None
    url: str | None
    data: Any


@dataclass(frozen=True, slots=True)
class Saved:
    """The answer to a saved page."""

    seq: int
    done: bool


class HeldTarget:
    """A claimed target and its place: what was saved last."""

    __slots__ = (
        "target", "page", "next", "last_item_id", "cursor", "page_target", "attempt", "is_lost",
        "transaction",
    )  # fmt: skip

    def __init__(self, claimed: Mapping[str, Any]) -> None:
        self.target = Target(
            claimed["id"], claimed["key"], claimed["group"], claimed["url"], claimed["data"]
        )
        self.page: int = claimed["page"]
        self.next: str | None = claimed["next"]
        self.last_item_id: str | None = claimed["lastItemId"]
        self.cursor: Any = claimed["cursor"]
        self.page_target: int | None = claimed["pageTarget"]
        self.attempt: int = claimed["attempt"]
        self.is_lost = False
        """Another process has it: what this one returns for it is dropped."""
        self.transaction: PageTransaction | None = None
        """The transaction of the page in progress."""

    @property
    def address(self) -> str | None:
        """The address of the page to do; None for a crawl without addresses."""
        return self.next if self.next is not None else self.target.url

    def advance(self, page: Page, next_url: str | None) -> None:
        """Moves on after a page that was saved."""
        self.page += 1
        self.attempt = 1
        self.next = next_url
        if page.cursor is not UNSET:
            self.cursor = page.cursor
        if page.last_item_id is not None:
            self.last_item_id = page.last_item_id
        if page.page_target is not None:
            self.page_target = page.page_target

    def resolve(self, address: str) -> str:
        """Returns an address as it is read on the current page."""
        base = self.address
        return address if base is None or "://" in address[:12] else urljoin(base, address)


def target_json(target: object) -> bytes:
    """Returns a target of ``targets`` as JSON. Raises an error that says what is wrong with it."""
    if isinstance(target, str):
        return to_json({"url": target})
    if not isinstance(target, Mapping):
        raise UsageError(
            f"targets() yielded {type(target).__name__}: {target!r:.120}. "
            'A target is an address or a dict: {"key": …, "url": …}.'
        )
    if not target.keys() <= _KNOWN:
        unknown = [str(name) for name in target if name not in _KNOWN]
        reject_unknown("A target of targets()", unknown, _FIELDS)
    if not target.get("key") and not target.get("url"):
        raise UsageError(f"A target of targets() has neither a key nor a url: {target!r:.120}")
    try:
        return to_json({name: one for name, one in target.items() if one is not None})
    except (TypeError, ValueError, RecursionError) as error:
        what = unstorable(target.get("data"), "data") or error
        raise UsageError(f"A target of targets() cannot be saved as JSON: {what}.") from error


_KNOWN = frozenset(_FIELDS)
