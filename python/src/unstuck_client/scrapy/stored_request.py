"""Requests as JSON, so that any process of the crawl can make them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scrapy import Request, Spider
from scrapy.utils.request import request_from_dict

from ..errors import UsageError
from ..json_text import to_json
from .tagged_json import decode, encode

DATA_BYTES_MAX: Final = 64 * 1024
_DEFAULTS: Final[dict[str, Any]] = {
    "callback": None,
    "errback": None,
    "method": "GET",
    "headers": {},
    "body": b"",
    "cookies": {},
    "meta": {},
    "encoding": "utf-8",
    "priority": 0,
    "dont_filter": False,
    "flags": [],
    "cb_kwargs": {},
}


def store_request(request: Request, spider: Spider) -> dict[str, Any]:
    """Returns a request as JSON. Raises UsageError if a part of it cannot be stored."""
    try:
        fields = request.to_dict(spider=spider)
    except ValueError as error:
        raise UsageError(
            f"{request} cannot be stored: {error}. Callbacks are methods of the spider."
        ) from error
    found = {
        name: encode(value, name)
        for name, value in fields.items()
        if name not in _DEFAULTS or value != _DEFAULTS[name]
    }
    size = len(to_json(found))
    if size > DATA_BYTES_MAX:
        raise UsageError(
            f"{request} cannot be stored: it has {size} bytes with its body, meta and cb_kwargs, "
            f"and {DATA_BYTES_MAX} are the most."
        )
    return found


def load_request(data: Mapping[str, Any], spider: Spider) -> Request:
    """Returns a stored request. Raises ValueError if the spider no longer has its callback."""
    return request_from_dict({**_DEFAULTS, **decode(data)}, spider=spider)
