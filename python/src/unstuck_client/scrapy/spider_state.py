"""``spider.state``: a file per process, written before each page that changed it is saved."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from pathlib import Path
from typing import IO, Any

from ..json_text import to_json
from .tagged_json import decode, encode


class SpiderState:
    """The state of one process. The next process takes over that of one which has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder
        self._lock: IO[bytes] | None = None
        self._last = b"{}"

    def load(self) -> dict[Any, Any]:
        """Takes the first state that no living process has, and returns it."""
        for n in itertools.count(1):
            lock = open(self._folder / f"spider-state-{n}.lock", "ab")  # noqa: SIM115
            try:
                # Held until this process has ended, however it ends.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            self._lock = lock
            self._path = self._folder / f"spider-state-{n}.json"
            break
        try:
            self._last = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        found: dict[Any, Any] = decode(json.loads(self._last))
        return found

    def changed(self, state: Any) -> bytes | None:
        """Returns the state as it is to be written; None if it has not changed."""
        text = to_json(encode(state, "spider.state"))
        if text == self._last:
            return None
        self._last = text
        return text

    def write(self, text: bytes) -> None:
        """Replaces the file, so that a kill leaves the old state or the new one."""
        new = self._path.with_suffix(".new")
        with open(new, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)
