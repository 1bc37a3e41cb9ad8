"""What ``page`` raises to decide itself what follows an error."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Protocol

from .errors import UnstuckError, UsageError

_DURATION = re.compile(r"\d+(\.\d+)?(ms|s|m|h|d)?")


class Response(Protocol):
    """A response of any HTTP library: requests, httpx, aiohttp, urllib."""

    @property
    def headers(self) -> object: ...


class NonRetryable(UnstuckError):
    """Raised by a page that must not be retried: its target fails at once."""

    code = "NOT_RETRYABLE"


class Park(UnstuckError):
    """Raised by a page that needs an operator: its target is set aside until it is unparked."""

    code = "PARKED"


class RetryLater(UnstuckError):
    """Raised by a page that knows when to come back. It counts as a retry like any error.

    ``after``: seconds, a ``timedelta``, a ``datetime``, the text of a ``Retry-After`` header, a
    duration such as ``"5m"``, or the response itself. Without a time that can be read, the usual
    pause of the policy applies.
    """

    code = "RETRY_LATER"

    def __init__(
        self,
        message: str = "asked to come back later",
        *,
        after: float | timedelta | datetime | str | Response | None = None,
    ) -> None:
        if not isinstance(message, str):
            raise UsageError("RetryLater takes a message, and the time as after=…")
        super().__init__(message)
        self.after = _to_text(after)


def _to_text(after: object) -> str | None:
    if isinstance(after, datetime):
        return _milliseconds(after.timestamp() - datetime.now().timestamp())
    if isinstance(after, timedelta):
        return _milliseconds(after.total_seconds())
    if isinstance(after, (int, float)) and not isinstance(after, bool):
        return _milliseconds(after)
    if isinstance(after, str):
        return _readable(after.strip())
    get = getattr(getattr(after, "headers", None), "get", None)
    if get is not None:
        found = get("Retry-After") or get("retry-after")
        return _readable(found.strip()) if isinstance(found, str) else None
    if after is None:
        return None
    raise UsageError(
        "RetryLater(after=…) takes seconds, a timedelta, a datetime, text or a response, "
        f"not {type(after).__name__}."
    )


def _milliseconds(seconds: float) -> str | None:
    # Not a number, and what no clock can wait for: as without a time.
    if not -1e10 < seconds < 1e10:
        return None
    return f"{max(0, round(seconds * 1000))}ms"


def _readable(text: str) -> str | None:
    """Returns a time as it is, and None for what is none: sites send all kinds of text."""
    if _DURATION.fullmatch(text):
        return text
    try:
        parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return text
