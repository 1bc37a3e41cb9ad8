"""SIGTERM and SIGINT as a request to stop after the page in progress."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_stop_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Calls ``stop`` for each signal within the block. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_signum: int, _frame: FrameType | None) -> None:
        stop()

    before = [(one, signal.signal(one, handle)) for one in STOP_SIGNALS]
    try:
        yield
    finally:
        for one, handler in before:
            signal.signal(one, handler)
