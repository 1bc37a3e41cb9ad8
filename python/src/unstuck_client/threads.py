"""Many pages at a time: threads run them, the main thread saves together what is ready."""

from __future__ import annotations

import queue
import threading

from .claimer import Claimer
from .connection import Calls
from .context import Work
from .held_work import HeldWork
from .planner import Planner
from .protocol import Result
from .targets import HeldTarget

Event = Result | list[HeldTarget] | None
"""A page that is ready, targets that were claimed, or None: the state has changed."""


def work_in_threads(
    count: int,
    targets: HeldWork,
    planner: Planner,
    work: Work,
    calls: Calls,
    inbox: queue.SimpleQueue[Event],
) -> None:
    """Works until the run has ended or the process must stop."""
    tasks: queue.SimpleQueue[HeldTarget | None] = queue.SimpleQueue()

    def run_pages() -> None:
        while (held := tasks.get()) is not None:
            inbox.put(targets.do_page(held))
        calls.close()

    claimer = Claimer(count, targets, planner, work, calls, inbox.put)
    for n in range(1, count + 1):
        threading.Thread(target=run_pages, name=f"page-{n}", daemon=True).start()
    claimer.start()
    try:
        while claimer.is_active or targets.held:
            results, claimed = _take(inbox)
            again = targets.settle(results)
            claimer.add_free(len(results) - len(again))
            if work.stopping:
                claimer.stop()
                for held in claimed:
                    targets.release(held)
                continue
            for held in again:
                tasks.put(held)
            for held in claimed:
                tasks.put(held)
        if claimer.error is not None:
            raise claimer.error
    finally:
        claimer.stop()
        for _ in range(count):
            tasks.put(None)


def _take(inbox: queue.SimpleQueue[Event]) -> tuple[list[Result], list[HeldTarget]]:
    """Waits for an event. Returns the pages and targets that are there then."""
    results: list[Result] = []
    claimed: list[HeldTarget] = []
    event = inbox.get()
    while True:
        if isinstance(event, Result):
            results.append(event)
        elif event is not None:
            claimed += event
        try:
            event = inbox.get_nowait()
        except queue.Empty:
            return results, claimed
