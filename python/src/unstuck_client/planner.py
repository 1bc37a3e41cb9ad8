"""The thread that asks ``targets`` and sends what it yields, beside the pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from .connection import Calls
from .context import PlanningContext, Work
from .crawls import CrawlDefinition
from .errors import Stopping, UnstuckError
from .planning import TARGETS_PATH, Batch, halves, planning_error, targets_body

# Where the planner died, another process goes on after this time.
ASK_AGAIN_SECONDS: Final = 5.0


class Planner:
    """Plans the run, if no other process does."""

    def __init__(
        self,
        definition: CrawlDefinition,
        calls: Calls,
        work: Work,
        stop: Callable[[UnstuckError | None], None],
    ) -> None:
        self._definition = definition
        self._calls = calls
        self._work = work
        self._stop = stop
        self._thread: threading.Thread | None = None
        self._ask_at = 0.0

    def start(self) -> None:
        """Begins to plan, unless another process does. Called again while there is no target."""
        if self._thread is not None or time.monotonic() < self._ask_at:
            return
        self._ask_at = time.monotonic() + ASK_AGAIN_SECONDS
        if self._calls.post("/planning")["planner"]:
            self._thread = threading.Thread(target=self._run, name="planner", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._plan()
        except Stopping as gone:
            self._stop(gone)
        except Exception as error:
            failure = planning_error(self._definition.source, error)
            if failure is not None:
                failure.__cause__ = error
                self._stop(failure)
        finally:
            self._calls.close()

    def _plan(self) -> None:
        targets = self._definition.targets(PlanningContext(self._work))
        if not isinstance(targets, Iterable):
            raise TypeError(f"it returned {type(targets).__name__}, not targets")
        batch = Batch()
        try:
            for target in targets:
                if self._work.stopping:
                    return
                if batch.add(target):
                    self._send(batch.take())
        except Exception:
            # What came before the error is planned already, as a part of the whole.
            self._send(batch.take())
            raise
        self._send(batch.take())
        self._calls.post("/targets/planned")

    def _send(self, targets: list[bytes]) -> None:
        if not targets:
            return
        try:
            self._calls.post(TARGETS_PATH, targets_body(targets))
        except UnstuckError as error:
            for half in halves(targets, error):
                self._send(half)
