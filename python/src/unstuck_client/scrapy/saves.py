"""The thread that sends what came of the requests, in an order that a kill cannot turn round.

New requests are saved before the end of the request that yielded them. Both wait in one queue, and
all that waits together goes in few calls.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..connection import Calls
from ..errors import LeaseLost, PageBehind, RunEnded, UnstuckError, UsageError, error_of
from ..json_text import to_json
from ..protocol import BATCH_BYTES, BATCH_PAGES
from .held_request import Failure, HeldRequest
from .reactor import unexpected

_ERROR_CHARACTERS = 8_000
_TARGETS_MAX = 2_000


@dataclass(slots=True)
class NewRequest:
    """A request to add. One with a key that exists already changes nothing."""

    key: str
    body: bytes
    priority: int
    parent: HeldRequest | None


@dataclass(slots=True)
class End:
    """How the work on a request ended: with its page, or else failed or released."""

    held: HeldRequest
    page: bytes | None = None
    failure: Failure | None = None


@dataclass(slots=True)
class StateChange:
    """The state of the spider has changed. It is written before the pages that changed it."""

    text: bytes


@dataclass(slots=True)
class Planned:
    """All start requests were added."""


@dataclass(slots=True)
class _Batch:
    bodies: list[bytes] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    size: int = 0


class Saves:
    """Sends new requests, pages, failures and releases. The callbacks are called in its thread."""

    def __init__(
        self,
        calls: Calls,
        *,
        on_added: Callable[[list[str], int], None],
        on_saved: Callable[[End], None],
        on_lost: Callable[[HeldRequest, str], None],
        on_stop: Callable[[UnstuckError | None], None],
        write_state: Callable[[bytes], None],
    ) -> None:
        self._calls = calls
        self._write_state = write_state
        self._on_added = on_added
        self._on_saved = on_saved
        self._on_lost = on_lost
        self._on_stop = on_stop
        self._queue: queue.SimpleQueue[NewRequest | StateChange | End | Planned | None] = queue.SimpleQueue()
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="unstuck-saves", daemon=True)

    @property
    def waiting(self) -> int:
        """How much waits to be sent."""
        return self._queue.qsize()

    def start(self) -> None:
        """Begins to send."""
        self._thread.start()

    def put(self, what: NewRequest | StateChange | End | Planned) -> None:
        """Sends this after all that was put before."""
        self._queue.put(what)

    def close(self) -> None:
        """Ends after all that was put. Waits for it."""
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            is_open = True
            while is_open:
                found = [self._queue.get()]
                while not self._queue.empty():
                    found.append(self._queue.get())
                is_open = None not in found
                if not self._has_failed:
                    self._send(found)
        finally:
            self._calls.close()

    def _send(self, found: list[NewRequest | StateChange | End | Planned | None]) -> None:
        try:
            # First: an end may be that of a request which yielded some of them.
            self._add([one for one in found if isinstance(one, NewRequest)])
            if any(isinstance(one, Planned) for one in found):
                self._calls.post("/targets/planned")
            for change in [one for one in found if isinstance(one, StateChange)][-1:]:
                self._write_state(change.text)
            ends = [one for one in found if isinstance(one, End)]
            for end in ends:
                self._end_rejected(end)
            for batch in _batches(end for end in ends if end.page is not None):
                self._checkpoint(batch)
            for end in ends:
                if end.page is None:
                    self._end(end)
        except OSError as error:
            self._has_failed = True
            self._on_stop(UnstuckError(f"spider.state cannot be written: {error}"))
        except UnstuckError as error:
            # The run has ended, or Unstuck is gone: nothing of what still waits can be saved.
            self._has_failed = True
            self._on_stop(error)
        except Exception as error:
            self._has_failed = True
            self._on_stop(unexpected(error))

    def _add(self, requests: list[NewRequest]) -> None:
        # The order in which they are added is the order in which they are claimed.
        requests.sort(key=lambda one: -one.priority)
        while requests:
            part, size = [], 0
            while requests and len(part) < _TARGETS_MAX and size < BATCH_BYTES:
                size += len(requests[0].body) + 1
                part.append(requests.pop(0))
            self._add_part(part)

    def _add_part(self, part: list[NewRequest]) -> None:
        body = b'{"targets":[%b]}' % b",".join([one.body for one in part])
        try:
            planned = self._calls.post("/targets", body)["planned"]
        except UsageError as error:
            if len(part) > 1:
                for one in part:
                    self._add_part([one])
                return
            parent = part[0].parent
            if parent is None:
                raise UnstuckError(f"A start request cannot be saved: {error}") from error
            parent.fail(Failure(str(error), retry=False))
            return
        self._on_added([one.key for one in part], planned)

    def _end_rejected(self, end: End) -> None:
        """Lets a request fail if one that it yielded could not be saved."""
        if end.page is not None and end.held.failure is not None:
            end.page, end.failure = None, end.held.failure

    def _checkpoint(self, batch: _Batch) -> None:
        body = b'{"pages":[%b]}' % b",".join(batch.bodies)
        try:
            outcomes = self._calls.post("/checkpoints", body)["outcomes"]
        except UsageError as error:
            if len(batch.ends) > 1:
                for one, end in zip(batch.bodies, batch.ends, strict=True):
                    self._checkpoint(_Batch([one], [end]))
                return
            self._fail_page(batch.ends[0], error)
            return
        for end, outcome in zip(batch.ends, outcomes, strict=True):
            error = outcome.get("error")
            if error is None:
                self._on_saved(end)
            else:
                self._fail_page(end, error_of(error["code"], error["message"]))

    def _fail_page(self, end: End, error: UnstuckError) -> None:
        if isinstance(error, RunEnded):
            raise error
        if isinstance(error, (LeaseLost, PageBehind)):
            self._on_lost(end.held, str(error))
            return
        retry = not isinstance(error, UsageError)
        end.page, end.failure = None, Failure(str(error), retry=retry)
        self._end(end)

    def _end(self, end: End) -> None:
        path = f"/targets/{end.held.id}"
        try:
            if end.failure is None:
                self._calls.post(f"{path}/release")
            else:
                self._calls.post(f"{path}/fail", _failure_body(end.failure))
        except LeaseLost as lost:
            self._on_lost(end.held, str(lost))
        else:
            self._on_saved(end)


def _failure_body(failure: Failure) -> bytes:
    body: dict[str, Any] = {"error": failure.text[:_ERROR_CHARACTERS] or "unknown error"}
    if not failure.retry:
        body["retry"] = False
    elif failure.retry_after is not None:
        body["retryAfter"] = failure.retry_after
    return to_json(body)


def _batches(ends: Iterable[End]) -> list[_Batch]:
    made = [_Batch()]
    for end in ends:
        assert end.page is not None
        if made[-1].ends and (
            made[-1].size + len(end.page) > BATCH_BYTES or len(made[-1].ends) >= BATCH_PAGES
        ):
            made.append(_Batch())
        made[-1].bodies.append(end.page)
        made[-1].ends.append(end)
        made[-1].size += len(end.page) + 1
    return [batch for batch in made if batch.ends]
