"""JSON as it goes over the wire: compact, in UTF-8."""

from __future__ import annotations

import json

_as_is = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_escaped = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def to_json(value: object) -> bytes:
    """Returns a value as JSON.

    Raises TypeError, ValueError or RecursionError for what JSON cannot hold.
    """
    try:
        return _as_is.encode(value).encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8, but an escape.
        return _escaped.encode(value).encode()


_DEPTH_MAX = 32


def unstorable(value: object, path: str, depth: int = 0) -> str | None:
    """Returns what in a value JSON cannot hold, and where; None if that was not found."""
    if value is None or isinstance(value, (str, bool, int)):
        return None
    if isinstance(value, float):
        return None if value - value == 0 else f"{path} is {value}, which is no JSON"
    if depth > _DEPTH_MAX:
        return f"{path[:80]}… is nested deeper than {_DEPTH_MAX} levels"
    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, (str, int, float)) and key is not None:
                return f"{path} has the key {key!r}; keys are text"
            if found := unstorable(one, f"{path}.{key}", depth + 1):
                return found
        return None
    if isinstance(value, (list, tuple)):
        for n, one in enumerate(value):
            if found := unstorable(one, f"{path}[{n}]", depth + 1):
                return found
        return None
    return f"{path} is a {type(value).__name__}; turn it into text, numbers, lists and dicts"
