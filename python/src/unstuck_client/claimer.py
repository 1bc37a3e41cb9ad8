"""The thread that claims targets as slots get free."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .connection import Calls
from .context import Work
from .held_work import HeldWork
from .planner import Planner
from .targets import HeldTarget


class Claimer:
    """Claims as many targets as there are free slots, and waits for them while there are none."""

    def __init__(
        self,
        slots: int,
        targets: HeldWork,
        planner: Planner,
        work: Work,
        calls: Calls,
        put: Callable[[list[HeldTarget] | None], None],
    ) -> None:
        self._targets = targets
        self._planner = planner
        self._work = work
        self._calls = calls
        self._put = put
        self._free = slots
        self._changed = threading.Condition()
        self._is_stopping = False
        self.is_active = True
        """False when nothing more comes from it."""
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="claims", daemon=True)

    def start(self) -> None:
        """Begins to claim."""
        self._thread.start()

    def stop(self) -> None:
        """Claims nothing more. A call that waits for targets ends by itself soon."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()

    def add_free(self, slots: int) -> None:
        """Makes slots available again."""
        if slots > 0:
            with self._changed:
                self._free += slots
                self._changed.notify()

    def _run(self) -> None:
        try:
            while (free := self._wait_for_slots()) > 0:
                claimed = self._targets.claim(free)
                if claimed:
                    with self._changed:
                        self._free -= len(claimed)
                    self._put(claimed)
                elif self._targets.has_ended or self._work.stopping:
                    return
                else:
                    self._planner.start()
        except BaseException as error:
            self.error = error
        finally:
            self.is_active = False
            self._put(None)
            self._calls.close()

    def _wait_for_slots(self) -> int:
        """Returns how many slots are free, at least one; 0 when nothing more is claimed."""
        with self._changed:
            while self._free == 0 and not self._is_stopping:
                self._changed.wait()
            return 0 if self._is_stopping else self._free
