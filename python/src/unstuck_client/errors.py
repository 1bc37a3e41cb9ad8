"""The exceptions of this package. Each has a stable ``code``; the message says what to do."""

from __future__ import annotations


class UnstuckError(Exception):
    """The base of all exceptions here."""

    code = "UNEXPECTED"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class UsageError(UnstuckError):
    """A call or a definition is wrong. Trying again does not help."""

    code = "USAGE"


class PageRejected(UsageError):
    """A page cannot be saved as it is. Its target fails at once: it would be rejected again."""

    code = "PAGE_REJECTED"


class PageBehind(UnstuckError):
    """A later page is saved already, or this page is saved with other content."""

    code = "PAGE_BEHIND"


class LeaseLost(UnstuckError):
    """Another process has the run or the target. Nothing was written; stop working on it."""

    code = "LEASE_LOST"


class RunEnded(UnstuckError):
    """The run has ended: it was finished, failed, cancelled or released."""

    code = "RUN_ENDED"


class Stopping(UnstuckError):
    """The program must stop: it got SIGTERM or SIGINT, or Unstuck asked for it."""

    code = "STOPPING"


class Unreachable(UnstuckError):
    """Unstuck does not answer, or its database does not."""

    code = "UNREACHABLE"


class AlreadyRunning(UnstuckError):
    """Another process works on the source."""

    code = "ALREADY_RUNNING"


class NotFound(UnstuckError):
    """There is no such run, target or source."""

    code = "NOT_FOUND"


class Refused(UnstuckError):
    """The action does not apply to the run or target as it is now."""

    code = "REFUSED"


class Unauthorized(UnstuckError):
    """The token is missing, wrong, or not allowed to do this."""

    code = "UNAUTHORIZED"


_BY_CODE: dict[str, type[UnstuckError]] = {
    "ALREADY_RUNNING": AlreadyRunning,
    "BAD_BODY": UsageError,
    "BAD_JSON": UsageError,
    "BAD_REQUEST": UsageError,
    "BODY_TOO_LARGE": PageRejected,
    "DB_UNREACHABLE": Unreachable,
    "FORBIDDEN": Unauthorized,
    "LEASE_LOST": LeaseLost,
    "NEEDS_POSTGRES": UsageError,
    "NOT_FOUND": NotFound,
    "PAGE_BEHIND": PageBehind,
    "PAGE_REJECTED": PageRejected,
    "PLAN_CHANGED": Refused,
    "READ_ONLY": Unauthorized,
    "REFUSED": Refused,
    "RUN_ENDED": RunEnded,
    "SOURCE_PAUSED": Refused,
    "STOPPING": Stopping,
    "TRANSACTION_OPEN": UsageError,
    "UNAUTHORIZED": Unauthorized,
    "USAGE": UsageError,
}


def error_of(code: str, message: str) -> UnstuckError:
    """Returns the exception for an error of an API or of the command line."""
    name = code.removeprefix("E_")
    return _BY_CODE.get(name, UnstuckError)(message, code=name)
