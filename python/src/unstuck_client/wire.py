"""The HTTP/1.1 of an API on this machine: one answer in JSON for each call.

It is read by hand: the parser of http.client costs more than all else that a saved page does here.
"""

from __future__ import annotations

import json
from typing import Any, Final

from .errors import UnstuckError, error_of

# Pauses before a call is sent again, in seconds.
RESEND_AFTER: Final = (0.0, 0.1, 0.4, 1.0, 2.0)


class Resend(Exception):
    """The answer says that the call may be sent again, or there was none."""

    def __init__(self, error: UnstuckError) -> None:
        super().__init__(str(error))
        self.error = error


class ConnectionCut(OSError):
    """The connection was closed before the whole answer was there."""


class Head:
    """What the head of an answer says: its status, and how long its body is."""

    __slots__ = ("status", "length", "is_last")

    def __init__(self, head: bytes) -> None:
        lines = head.lower().split(b"\r\n")
        try:
            self.status = int(lines[0].split(b" ", 2)[1])
        except (IndexError, ValueError):
            raise ConnectionCut(f"this is no answer in HTTP: {head[:80]!r}") from None
        self.length = 0
        self.is_last = False
        for line in lines:
            if line.startswith(b"content-length:"):
                self.length = int(line[15:])
            elif line.startswith(b"connection:") and b"close" in line:
                self.is_last = True


def read_answer(status: int, body: bytes) -> Any:
    """Returns the data of an answer. Raises what it says, or Resend."""
    if status == 200:
        return json.loads(body)
    error = _error_in(status, body)
    if status in (429, 500):
        raise Resend(error)
    raise error


def _error_in(status: int, body: bytes) -> UnstuckError:
    try:
        found = json.loads(body)["error"]
        code, message = str(found["code"]), str(found["message"])
    except (ValueError, KeyError, TypeError):
        code, message = "UNEXPECTED", f"status {status}: {body[:200]!r}"
    # 503 means: Unstuck no longer serves this process.
    return error_of("STOPPING" if status == 503 else code, message)
