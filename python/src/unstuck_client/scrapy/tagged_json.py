"""JSON with marks for what JSON does not have: bytes, tuples, sets, dates, and items of Scrapy.

No pickle: what comes from a database is only ever read as data.
"""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any, Final

from itemadapter import ItemAdapter, is_item
from scrapy.utils.misc import load_object

from ..errors import UsageError

_DEPTH_MAX = 32


def encode(value: Any, path: str, depth: int = 0) -> Any:
    """Returns a value in JSON. Raises UsageError for what only this process can have."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if value - value == 0:
            return value
        return {"$float": repr(value)}
    if isinstance(value, str):
        return value if _is_plain(value) else {"$text": _base64(value.encode("utf-8", _SURROGATES))}
    if isinstance(value, (bytes, bytearray)):
        text = bytes(value).decode("latin-1")
        return {"$bytes": text} if text.isascii() and _is_plain(text) else {"$base64": _base64(value)}
    if depth > _DEPTH_MAX:
        raise UsageError(f"{path[:80]}… cannot be stored: it is nested too deep.")
    deeper = depth + 1
    if isinstance(value, list):
        return [encode(one, f"{path}[{n}]", deeper) for n, one in enumerate(value)]
    for name, kind in _SEQUENCES.items():
        if type(value) is kind:
            return {name: [encode(one, f"{path}[{n}]", deeper) for n, one in enumerate(value)]}
    for name, (kind, write, _) in _TEXTS.items():
        if type(value) is kind:
            return {name: write(value)}
    if isinstance(value, dict) and all(_is_name(key) for key in value):
        return {key: encode(one, f"{path}.{key}", deeper) for key, one in value.items()}
    if isinstance(value, dict):
        pairs = [[key, one] for key, one in value.items()]
        return {"$dict": encode(pairs, path, deeper)}
    if is_item(value):
        kind = type(value)
        fields = dict(ItemAdapter(value).items())
        return {
            "$item": f"{kind.__module__}.{kind.__qualname__}",
            "fields": encode(fields, path, deeper),
        }
    raise UsageError(
        f"{path} cannot be stored: it is a {type(value).__name__}. What can be stored are text, "
        "numbers, bytes, dates, lists, dicts and items."
    )


def decode(value: Any) -> Any:
    """Returns what was encoded."""
    if isinstance(value, list):
        return [decode(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    mark = next(iter(value), "")
    if not mark.startswith("$"):
        return {key: decode(one) for key, one in value.items()}
    inner = value[mark]
    if mark == "$item":
        return _load_item(inner, decode(value["fields"]))
    if mark == "$dict":
        return dict(decode(inner))
    if mark in _SEQUENCES:
        return _SEQUENCES[mark](decode(inner))
    if mark in _TEXTS:
        return _TEXTS[mark][2](inner)
    return _MARKS[mark](inner)


def _load_item(path: str, fields: dict[str, Any]) -> Any:
    kind = load_object(path)
    if not ItemAdapter.is_item_class(kind):
        raise ValueError(f"{path} is no class of items")
    return kind(**fields)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _is_plain(text: str) -> bool:
    """Databases do not keep every text as it is: not a NUL, and not half of a surrogate pair."""
    return "\0" not in text and (text.isascii() or not _has_surrogate(text))


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= one <= "\udfff" for one in text)


def _is_name(key: object) -> bool:
    return type(key) is str and not key.startswith("$") and _is_plain(key)


_SURROGATES = "surrogatepass"
_SEQUENCES: Final[dict[str, type[Any]]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
}
_TEXTS: Final[dict[str, tuple[type[Any], Callable[[Any], str], Callable[[str], Any]]]] = {
    "$datetime": (
        datetime.datetime,
        datetime.datetime.isoformat,
        datetime.datetime.fromisoformat,
    ),
    "$date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "$decimal": (decimal.Decimal, str, decimal.Decimal),
}
_MARKS: Final[dict[str, Callable[[str], Any]]] = {
    "$bytes": lambda text: text.encode("latin-1"),
    "$base64": base64.b64decode,
    "$text": lambda text: base64.b64decode(text).decode("utf-8", _SURROGATES),
    "$float": float,
}
