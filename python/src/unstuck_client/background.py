"""What runs beside the pages: heartbeats, which learn of a stop, and lines for the journal."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .connection import Calls
from .errors import Stopping, UnstuckError
from .json_text import to_json
from .protocol import HEARTBEAT_SECONDS
from .targets import HeldTarget

_STOP_SECONDS = 2.0


class Background:
    """A thread of its own, so that a long page does not delay it."""

    def __init__(
        self,
        calls: Calls,
        held: Mapping[str, HeldTarget],
        stop: Callable[[UnstuckError | None], None],
    ) -> None:
        self._calls = calls
        self._held = held
        self._stop = stop
        self._lines: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begins with a heartbeat."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the lines that are there."""
        self._lines.put(None)
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def log(self, line: Mapping[str, Any]) -> None:
        """Sends a line to the journal, soon."""
        self._lines.put(line)

    def _run(self) -> None:
        try:
            self._beat()
            due = time.monotonic() + HEARTBEAT_SECONDS
            while True:
                try:
                    line = self._lines.get(timeout=max(0.0, due - time.monotonic()))
                except queue.Empty:
                    self._beat()
                    due = time.monotonic() + HEARTBEAT_SECONDS
                    continue
                if line is None:
                    return
                self._send(line)
        except Stopping as gone:
            self._stop(gone)
        finally:
            self._calls.close()

    def _beat(self) -> None:
        try:
            answer = self._calls.post("/heartbeat")
        except Stopping:
            raise
        except UnstuckError:
            # The next one tells.
            return
        mark_lost(self._held, answer["lost"])
        if answer["stop"]:
            self._stop(None)

    def _send(self, line: Mapping[str, Any]) -> None:
        try:
            self._calls.post("/log", log_body(line))
        except Stopping:
            raise
        except UnstuckError:
            # A line that cannot be written does not end a crawl.
            return


def log_body(line: Mapping[str, Any]) -> bytes:
    """Returns the body of ``POST /log``. Fields that JSON cannot hold are sent as text."""
    try:
        return to_json(line)
    except (TypeError, ValueError, RecursionError):
        fields = {name: str(one) for name, one in line.get("fields", {}).items()}
        return to_json({**line, "fields": fields})


def mark_lost(held: Mapping[str, HeldTarget], lost: list[str]) -> None:
    """Marks targets that another process has: their pages are not saved."""
    for target in lost:
        found = held.get(target)
        if found is not None:
            found.is_lost = True
