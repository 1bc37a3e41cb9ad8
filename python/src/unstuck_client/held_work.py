"""What a worker does with its targets: claim them, do their pages, save, fail, release."""

from __future__ import annotations

from collections.abc import Sequence

from .connection import Calls
from .context import PageContext, Work
from .crawls import CrawlDefinition
from .errors import LeaseLost, RunEnded, Stopping, UnstuckError
from .protocol import (
    CLAIM_WAIT_MS,
    Result,
    batch_body,
    batches,
    claim_body,
    failure,
    record_outcome,
    result_of,
)
from .targets import HeldTarget


class HeldWork:
    """The targets that this process holds."""

    def __init__(self, definition: CrawlDefinition, calls: Calls, work: Work) -> None:
        self._page = definition.crawl.page
        self._is_single = definition.concurrency == 1
        self._calls = calls
        self._work = work
        self.held: dict[str, HeldTarget] = {}
        self.has_ended = False
        """The run has ended."""

    def claim(self, free: int) -> list[HeldTarget]:
        """Claims up to so many targets. Waits for a while if there is none."""
        body = claim_body(free, CLAIM_WAIT_MS, is_single=self._is_single)
        answer = self._calls.post("/claim", body)
        if answer["ended"]:
            self.has_ended = True
        if answer["stop"]:
            self._work.stopping = True
        claimed = [HeldTarget(one) for one in answer["targets"]]
        for held in claimed:
            self.held[held.target.id] = held
        return claimed

    def do_page(self, held: HeldTarget) -> Result:
        """Calls ``page`` for the next page of a target."""
        try:
            return result_of(held, self._page(PageContext(self._work, held)))
        except BaseException as error:
            return Result(held, None, error)

    def settle(self, results: Sequence[Result]) -> list[HeldTarget]:
        """Saves pages together. Returns the targets that have another page."""
        self._save([one for one in results if one.body and not one.held.is_lost])
        ready = []
        for result in results:
            held = result.held
            if held.is_lost:
                self._drop(held)
            elif result.error is not None:
                self._fail(held, result.error)
            elif not result.advance():
                self._drop(held)
            elif self._work.stopping:
                self.release(held)
            else:
                ready.append(held)
        return ready

    def release(self, held: HeldTarget) -> None:
        """Gives a target back: it can be claimed at once."""
        self._end(held, f"/targets/{held.target.id}/release", b"{}")

    def _save(self, results: Sequence[Result]) -> None:
        for batch in batches(results):
            try:
                answer = self._calls.post("/checkpoints", batch_body(batch))
            except Stopping:
                raise
            except UnstuckError as error:
                # One page of it may be at fault: each is saved by itself.
                if len(batch) == 1:
                    batch[0].error = error
                else:
                    for result in batch:
                        self._save([result])
                continue
            for result, outcome in zip(batch, answer["outcomes"], strict=True):
                record_outcome(result, outcome)

    def _fail(self, held: HeldTarget, error: BaseException) -> None:
        if isinstance(error, (LeaseLost, RunEnded)):
            self._drop(held)
            return
        if isinstance(error, Stopping):
            raise error
        self._end(held, *failure(held, error))
        if not isinstance(error, Exception):
            raise error

    def _end(self, held: HeldTarget, path: str, body: bytes) -> None:
        self._drop(held)
        try:
            self._calls.post(path, body)
        except (LeaseLost, RunEnded):
            # It was not held any more.
            return

    def _drop(self, held: HeldTarget) -> None:
        del self.held[held.target.id]
