"""Batches of targets on their way to the run."""

from __future__ import annotations

import time
from typing import Final

from .errors import LeaseLost, RunEnded, UnstuckError, UsageError
from .targets import target_json

_TARGETS = 2_000
_BYTES = 4 * 1024 * 1024
# A smaller batch is saved after this time, so that work begins while targets() still yields.
_FLUSH_SECONDS = 0.2
TARGETS_PATH: Final = "/targets"


class Batch:
    """Targets that were yielded and are not saved yet."""

    def __init__(self) -> None:
        self._targets: list[bytes] = []
        self._size = 0
        self._since = time.monotonic()

    def add(self, target: object) -> bool:
        """Adds a target. Returns whether it is time to save the batch."""
        text = target_json(target)
        self._targets.append(text)
        self._size += len(text) + 1
        return (
            len(self._targets) >= _TARGETS
            or self._size >= _BYTES
            or time.monotonic() - self._since >= _FLUSH_SECONDS
        )

    def take(self) -> list[bytes]:
        """Returns the targets and begins a new batch."""
        targets = self._targets
        self._targets = []
        self._size = 0
        self._since = time.monotonic()
        return targets


def targets_body(targets: list[bytes]) -> bytes:
    """Returns the body of ``POST /targets``."""
    return b'{"targets":[%b]}' % b",".join(targets)


def halves(targets: list[bytes], error: UnstuckError) -> tuple[list[bytes], list[bytes]]:
    """Returns the halves of a batch that was too large for one call; else raises its error."""
    if error.code != "BODY_TOO_LARGE" or len(targets) < 2:
        raise error
    middle = len(targets) // 2
    return targets[:middle], targets[middle:]


def planning_error(source: str, error: Exception) -> UnstuckError | None:
    """Returns what to report after an error of planning; None if another process goes on."""
    if isinstance(error, (LeaseLost, RunEnded)):
        return None
    if isinstance(error, UnstuckError):
        if error.code == "NOT_PLANNER":
            return None
        if not isinstance(error, UsageError):
            return error
        what = str(error)
    else:
        what = f"targets() of {source} raised {type(error).__name__}: {error}.".replace("..", ".")
    return UsageError(f"{what} Nothing is lost: fix it, and the next start calls it again.")
