"""What ``page`` returns, and how it is written for the API."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, TypedDict

from .errors import PageRejected
from .hints import did_you_mean, reject_unknown
from .json_text import to_json, unstorable


class Unset(enum.Enum):
    """The value of an argument that was left out, where None means something."""

    UNSET = 0

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


class Item(TypedDict, total=False):
    """A record of a page: an address or a key of your own, and any JSON."""

    url: str
    """Its address; a relative one is resolved against the page's."""
    key: str
    """Names it within its source. Default: the canonical form of ``url``."""
    data: Any
    """Any JSON."""


_FIELDS = ("items", "next", "done", "cursor", "last_item_id", "skipped", "page_target")
_ITEM_FIELDS = frozenset(("url", "key", "data"))


@dataclass(init=False, slots=True)
class Page:
    """A page as it is saved: items and cursor, both or neither.

    A crawl by addresses gives ``next``: the address of the next page, None after the last one. A
    crawl without addresses keeps its place in ``cursor`` and gives ``done``.
    """

    items: list[Item]
    """Saved by canonical address or by ``key``; one seen again is updated."""
    next: str | None | Literal[Unset.UNSET]
    """The next page's address; a relative one is resolved against this page's."""
    done: bool | Literal[Unset.UNSET]
    """Whether this was the target's last page. Only without ``next``."""
    cursor: Any
    """JSON for the next page, up to 256 KB. Left out: unchanged."""
    last_item_id: str | None
    """The last item, for crawls that continue by it. None: unchanged."""
    skipped: int
    """Records left out on purpose."""
    page_target: int | None
    """How many pages there will be. None: unchanged."""

    def __init__(
        self,
        items: Iterable[Item | Mapping[str, Any]] = (),
        next: str | None | Literal[Unset.UNSET] = UNSET,  # noqa: A002
        *,
        done: bool | Literal[Unset.UNSET] = UNSET,
        cursor: Any = UNSET,
        last_item_id: str | None = None,
        skipped: int = 0,
        page_target: int | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            reject_unknown("Page", unknown, _FIELDS)
        if (next is UNSET) == (done is UNSET):
            both = "neither next nor done" if next is UNSET else "both next and done"
            raise PageRejected(
                f"Page has {both}. A crawl by addresses gives next, None after the last page; "
                "others give done."
            )
        if next is not UNSET and next is not None and (not isinstance(next, str) or not next):
            raise PageRejected(f"Page.next is {next!r}. It is an address, or None.")
        if done is not UNSET and not isinstance(done, bool):
            raise PageRejected(f"Page.done is {done!r}. It is True or False.")
        check_counts("Page", last_item_id, skipped, page_target)
        self.items = checked_items("Page", items)
        self.next = next
        self.done = done
        self.cursor = cursor
        self.last_item_id = last_item_id
        self.skipped = skipped
        self.page_target = page_target


def checked_items(where: str, items: Iterable[Item | Mapping[str, Any]]) -> list[Item]:
    """Returns the items as a list. Raises an error that names the first wrong one."""
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise PageRejected(f"{where}: items is a list, not {type(items).__name__}.")
    found = items if type(items) is list else list(items)
    for n, item in enumerate(found):
        if type(item) is not dict or not item.keys() <= _ITEM_FIELDS or "data" not in item:
            _reject_item(where, n, item)
        if not (item.get("key") or item.get("url")):
            raise PageRejected(f"{where}: item {n + 1} has neither a url nor a key: {item!r:.120}")
    return found


def _reject_item(where: str, n: int, item: object) -> None:
    rule = 'Give it {"url": …, "data": …} or {"key": …, "data": …}.'
    if not isinstance(item, dict):
        kind = type(item).__name__
        raise PageRejected(f"{where}: item {n + 1} is a {kind}. {rule}")
    for name in item:
        if name not in _ITEM_FIELDS:
            hint = did_you_mean(str(name), ("url", "key", "data"))
            raise PageRejected(f"{where}: item {n + 1}: {name} is unknown; {hint}")
    if "data" not in item:
        raise PageRejected(f"{where}: item {n + 1} has no data. {rule}")


def check_counts(
    where: str, last_item_id: object, skipped: object, page_target: object
) -> None:
    """Raises an error for numbers and texts of another type."""
    if type(skipped) is not int or skipped < 0:
        raise PageRejected(f"{where}: skipped is a whole number from 0, not {skipped!r}.")
    if page_target is not None and (type(page_target) is not int or page_target < 0):
        raise PageRejected(f"{where}: page_target is a whole number from 0, not {page_target!r}.")
    if last_item_id is not None and not isinstance(last_item_id, str):
        raise PageRejected(f"{where}: last_item_id is text, not {last_item_id!r}.")


def page_fields(page: Page, number: int, next_url: str | None) -> dict[str, Any]:
    """Returns a page as the API takes it, with the resolved address of the next one."""
    fields: dict[str, Any] = {"page": number}
    if page.items:
        fields["items"] = page.items
    if page.done is UNSET:
        fields["next"] = next_url
    else:
        fields["done"] = page.done
    if page.cursor is not UNSET:
        fields["cursor"] = page.cursor
    if page.last_item_id is not None:
        fields["lastItemId"] = page.last_item_id
    if page.skipped:
        fields["skipped"] = page.skipped
    if page.page_target is not None:
        fields["pageTarget"] = page.page_target
    return fields


def page_json(fields: dict[str, Any]) -> bytes:
    """Returns the fields of a page as JSON. Raises an error that names what has no JSON."""
    try:
        return to_json(fields)
    except (TypeError, ValueError, RecursionError) as error:
        found = (unstorable(fields.get(name), name) for name in ("items", "cursor"))
        what = next(filter(None, found), None) or error
        raise PageRejected(f"Page {fields['page']} cannot be saved as JSON: {what}.") from error
