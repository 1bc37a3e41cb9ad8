"""Items as they are saved: a key, so that nothing doubles, and JSON as Scrapy's feeds write it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from itemadapter import ItemAdapter
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.serialize import ScrapyJSONEncoder

from ..errors import UsageError

KeyOf = Callable[[Any], Any]
DEFAULT_FIELD: Final = "url"

_as_is = ScrapyJSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_escaped = ScrapyJSONEncoder(allow_nan=False, separators=(",", ":"))


def key_function(settings: BaseSettings) -> KeyOf | None:
    """Returns what makes the key of an item, from ``UNSTUCK_ITEM_KEY``; None for the default.

    The setting is the name of a field, or a function or its path: it takes an item and returns
    its key, or None for a key made of its request and its place.
    """
    setting = settings.get("UNSTUCK_ITEM_KEY")
    if setting is None:
        return None
    if isinstance(setting, str) and "." not in setting:
        return lambda item: ItemAdapter(item).get(setting) if setting else None
    found = load_object(setting)
    if not callable(found):
        raise UsageError(f"UNSTUCK_ITEM_KEY: {setting!r} is no function of an item.")
    key_of: KeyOf = found
    return key_of


def store_items(items: Sequence[Any], parent: str, key_of: KeyOf | None) -> list[dict[str, Any]]:
    """Returns the items of a page with their keys. ``parent`` is the key of its request."""
    if key_of is not None:
        keys = [key_of(item) for item in items]
        return [
            {"key": f"{parent}#{n}" if key is None or key == "" else str(key), "data": item}
            for n, (key, item) in enumerate(zip(keys, items, strict=True), 1)
        ]
    urls = [ItemAdapter(item).get(DEFAULT_FIELD) for item in items]
    # Items of one page with the same address are different records: none may replace another.
    counts = Counter(url for url in urls if isinstance(url, str))
    return [
        {"url": url, "data": item}
        if isinstance(url, str) and counts[url] == 1 and _is_web_address(url)
        else {"key": f"{parent}#{n}", "data": item}
        for n, (url, item) in enumerate(zip(urls, items, strict=True), 1)
    ]


def items_json(fields: object) -> bytes:
    """Returns a page as JSON. Raises TypeError or ValueError for what JSON cannot hold."""
    try:
        return _as_is.encode(fields).encode()
    except UnicodeEncodeError:
        return _escaped.encode(fields).encode()


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
