"""The bodies of calls to the worker API, and what their answers mean. No input or output."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Sequence
from typing import Any, Final

from .errors import UnstuckError, UsageError, error_of
from .json_text import to_json
from .page import Page, page_fields, page_json
from .page_errors import NonRetryable, Park, RetryLater
from .targets import HeldTarget, Saved

_log = logging.getLogger("unstuck_client")

# A claim waits so long for a target: so long does a stop wait for it.
CLAIM_WAIT_MS: Final = 2_000
HEARTBEAT_SECONDS: Final = 1.0
# The API takes 8 MB in one call, and the longest page must fit beside others.
BATCH_BYTES: Final = 4 * 1024 * 1024
BATCH_PAGES: Final = 1_000
_ERROR_CHARACTERS = 8_000


class Result:
    """What came of a page: what to save and whether it is saved, or its error."""

    __slots__ = ("held", "page", "next", "body", "saved", "error")

    def __init__(self, held: HeldTarget, page: Page | None, error: BaseException | None) -> None:
        self.held = held
        self.page = page
        self.next: str | None = None
        self.body = b""
        self.saved: Saved | None = None
        self.error = error

    def advance(self) -> bool:
        """Moves the target on after a saved page. Returns whether it has another one."""
        if self.page is None or self.saved is None:
            return False
        self.held.advance(self.page, self.next)
        return not self.saved.done


def result_of(held: HeldTarget, page: object) -> Result:
    """Returns what ``page`` returned, ready to be saved."""
    if not isinstance(page, Page):
        raise UsageError(
            f"page() returned {type(page).__name__} for page {held.page + 1}. "
            "It returns Page(items=…, next=…)."
        )
    result = Result(held, page, None)
    if isinstance(page.next, str):
        result.next = held.resolve(page.next)
    if held.transaction is not None:
        result.saved = held.transaction.outcome_of(page)
        held.transaction = None
    if result.saved is None:
        fields = page_fields(page, held.page + 1, result.next)
        fields["target"] = held.target.id
        result.body = page_json(fields)
    return result


def batches(results: Sequence[Result]) -> list[list[Result]]:
    """Returns pages that go into one call each."""
    made: list[list[Result]] = []
    size = BATCH_BYTES
    for result in results:
        size += len(result.body) + 1
        if size > BATCH_BYTES or len(made[-1]) >= BATCH_PAGES:
            made.append([])
            size = len(result.body)
        made[-1].append(result)
    return made


def batch_body(batch: Sequence[Result]) -> bytes:
    """Returns the body of ``POST /checkpoints``."""
    return b'{"pages":[%b]}' % b",".join([result.body for result in batch])


def record_outcome(result: Result, outcome: dict[str, Any]) -> None:
    """Writes down what became of a page of a batch: saved, or its error."""
    error = outcome.get("error")
    if error is not None:
        result.error = error_of(error["code"], error["message"])
    else:
        result.saved = Saved(outcome["seq"], outcome["done"])


def claim_body(free: int, wait_ms: int, *, is_single: bool) -> bytes:
    """Returns the body of ``POST /claim``."""
    body: dict[str, Any] = {"max": free, "waitMs": wait_ms}
    if is_single:
        body["single"] = True
    return to_json(body)


def failure(held: HeldTarget, error: BaseException) -> tuple[str, bytes]:
    """Returns the call that ends a claim after an error: its path and its body."""
    path = f"/targets/{held.target.id}"
    body: dict[str, Any] = {"error": _text_of(error)}
    if isinstance(error, Park):
        return f"{path}/park", to_json(body)
    if isinstance(error, RetryLater):
        if error.after is not None:
            body["retryAfter"] = error.after
    elif isinstance(error, (NonRetryable, UsageError)):
        body["retry"] = False
    elif not isinstance(error, UnstuckError):
        # Where in the code it happened is in the program's own log.
        name = f"page {held.page + 1} of {held.target.key}"
        _log.warning("%s failed, attempt %d", name, held.attempt, exc_info=error)
    return f"{path}/fail", to_json(body)


def _text_of(error: BaseException) -> str:
    if isinstance(error, UnstuckError):
        text = str(error)
    else:
        text = traceback.format_exception_only(type(error), error)[-1].strip()
    return text[:_ERROR_CHARACTERS] or type(error).__name__
