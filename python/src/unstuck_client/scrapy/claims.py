"""The thread that claims requests ahead, so that the reactor never waits for one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from ..connection import Calls
from ..errors import UnstuckError
from .reactor import unexpected
from ..protocol import CLAIM_WAIT_MS, claim_body

# Where the planner died, another process goes on after this time.
_ASK_AGAIN_SECONDS: Final = 2.0


class Claims:
    """Claims as many targets as there are free slots, and asks to plan while there is none.

    What it finds goes to the callbacks, in its own thread: targets, the end of the run, that this
    process is to plan, that it must stop, or the error that ended it.
    """

    def __init__(
        self,
        calls: Calls,
        slots: int,
        *,
        on_targets: Callable[[list[dict[str, Any]]], None],
        on_planner: Callable[[], None],
        on_end: Callable[[], None],
        on_stop: Callable[[UnstuckError | None], None],
    ) -> None:
        self._calls = calls
        self._slots = slots
        self._free = slots
        self._on_targets = on_targets
        self._on_planner = on_planner
        self._on_end = on_end
        self._on_stop = on_stop
        self._changed = threading.Condition()
        self._is_stopping = False
        self._is_planner = False
        self._ask_at = 0.0
        self._thread = threading.Thread(target=self._run, name="unstuck-claims", daemon=True)

    def start(self) -> None:
        """Begins to claim."""
        self._thread.start()

    def stop(self) -> None:
        """Claims nothing more. A call that waits for targets ends by itself soon."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()

    def join(self) -> None:
        """Waits for the last claim."""
        if self._thread.is_alive():
            self._thread.join()

    def add_free(self) -> None:
        """Makes a slot available again."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def _run(self) -> None:
        try:
            self._plan()
            while (free := self._wait_for_slots()) > 0:
                body = claim_body(free, CLAIM_WAIT_MS, is_single=self._slots == 1)
                found = self._calls.post("/claim", body)
                if found["targets"]:
                    with self._changed:
                        self._free -= len(found["targets"])
                    self._on_targets(found["targets"])
                elif found["ended"]:
                    return self._on_end()
                elif found["stop"]:
                    return self._on_stop(None)
                else:
                    self._plan()
        except UnstuckError as error:
            self._on_stop(error)
        except Exception as error:
            # Never without a word: the spider would wait for this thread for ever.
            self._on_stop(unexpected(error))
        finally:
            self._calls.close()

    def _wait_for_slots(self) -> int:
        with self._changed:
            while self._free <= 0 and not self._is_stopping:
                self._changed.wait()
            return 0 if self._is_stopping else self._free

    def _plan(self) -> None:
        """Begins to plan, unless the run is planned or another process does it."""
        if self._is_planner or time.monotonic() < self._ask_at:
            return
        self._ask_at = time.monotonic() + _ASK_AGAIN_SECONDS
        if self._calls.post("/planning")["planner"]:
            self._is_planner = True
            self._on_planner()
