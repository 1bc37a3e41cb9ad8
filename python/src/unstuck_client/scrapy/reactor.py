"""The reactor of Twisted, and what other threads tell it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from ..errors import UnstuckError


def current_reactor() -> Any:
    """Returns the reactor. Not at the top of a module: the settings choose which one it is."""
    from twisted.internet import reactor

    return reactor


def in_reactor(call: Callable[..., None]) -> Callable[..., None]:
    """Returns a function for other threads that has the reactor make the call."""

    def schedule(*arguments: Any) -> None:
        current_reactor().callFromThread(call, *arguments)

    return schedule


def unexpected(error: BaseException) -> UnstuckError:
    """Returns an error that no thread expects, with where it happened."""
    return UnstuckError("".join(traceback.format_exception(error)).strip())
