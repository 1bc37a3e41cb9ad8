"""The worker for crawls with plain functions."""

from __future__ import annotations

import logging
import queue
import sys

from .background import Background
from .connection import Calls
from .context import Work
from .crawls import CrawlDefinition
from .endpoint import Endpoint
from .errors import Stopping, UnstuckError
from .held_work import HeldWork
from .planner import Planner
from .signals import on_stop_signal
from .threads import Event, work_in_threads

# The exit code of a program that ends with work left, since Unstuck does not serve it any more.
EXIT_GONE = 75
EXIT_FAILED = 1


def run_worker(definition: CrawlDefinition, endpoint: Endpoint) -> None:
    """Works on the run until it has ended. Ends the program with a code after an error."""
    worker = Worker(definition, endpoint)
    with on_stop_signal(worker.stop):
        worker.run()
    exit_after(worker.failure)


def exit_after(failure: UnstuckError | None) -> None:
    """Ends the program with a code if there was a failure."""
    if failure is None:
        return
    print(f"unstuck: {failure}", file=sys.stderr, flush=True)
    raise SystemExit(EXIT_GONE if isinstance(failure, Stopping) else EXIT_FAILED)


def log_failed_teardown(error: Exception) -> None:
    """Logs an error of ``teardown``. All pages are saved by then, so it fails nothing."""
    logging.getLogger("unstuck_client").warning("teardown failed", exc_info=error)


class Worker:
    """One process at work on a run."""

    def __init__(self, definition: CrawlDefinition, endpoint: Endpoint) -> None:
        self._definition = definition
        self._calls = Calls(endpoint)
        self._inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.failure: UnstuckError | None = None
        """What ended the work early."""
        self._work = Work(definition, endpoint)
        self._targets = HeldWork(definition, self._calls, self._work)
        self._planner = Planner(definition, self._calls, self._work, self.stop)
        self._background = Background(self._calls, self._targets.held, self.stop)
        self._work.log = self._background.log
        self._work.post = self._calls.post

    def stop(self, failure: UnstuckError | None = None) -> None:
        """Claims nothing more, and ends after the pages in progress. Safe in a signal handler."""
        if self.failure is None:
            self.failure = failure
        self._work.stopping = True
        self._inbox.put(None)

    def run(self) -> None:
        """Works until the run has ended or this process must stop."""
        try:
            begun = self._calls.get()
            self._work.run = begun["run"]
            self._background.start()
            self._work.resources = self._definition.setup()
            try:
                if not begun["planned"]:
                    self._planner.start()
                self._work_on_targets()
            finally:
                self._work.stopping = True
                self._tear_down()
        except Stopping as gone:
            self.stop(gone)
        finally:
            self._background.stop()
            self._calls.close()

    def _tear_down(self) -> None:
        try:
            self._definition.teardown(self._work.resources)
        except Exception as error:
            log_failed_teardown(error)

    def _work_on_targets(self) -> None:
        count = self._definition.concurrency
        if count > 1:
            work_in_threads(
                count, self._targets, self._planner, self._work, self._calls, self._inbox
            )
            return
        # The main thread does all of it: nothing is handed from thread to thread.
        targets = self._targets
        while not self._work.stopping and not targets.has_ended:
            ready = targets.claim(1)
            if self._work.stopping:
                for held in ready:
                    targets.release(held)
                return
            if not ready and not targets.has_ended:
                self._planner.start()
            while ready:
                ready = targets.settle([targets.do_page(held) for held in ready])
