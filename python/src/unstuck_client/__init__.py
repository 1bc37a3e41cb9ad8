"""Crash-proof crawls and long jobs in Python, with Unstuck.

A crawl is a class under ``@crawl``; ``unstuck work --exec --targets`` starts it. A loop of your
own uses ``run`` under ``unstuck run``. ``check``, ``summary``, ``recover`` and others do what the
command line of the same name does.
"""

from .aio_runs import AsyncRun
from .answers import (
    CheckResult,
    CleanResult,
    HistoryEntry,
    Progress,
    RecoverResult,
    RunInfo,
    SavedItem,
    Summary,
    TargetInfo,
    Verdict,
)
from .context import PageContext, PlanningContext
from .crawls import Crawl, crawl
from .errors import (
    AlreadyRunning,
    LeaseLost,
    NotFound,
    PageBehind,
    PageRejected,
    Refused,
    RunEnded,
    Stopping,
    Unauthorized,
    Unreachable,
    UnstuckError,
    UsageError,
)
from .operator import (
    Operator,
    check,
    clean,
    history,
    items,
    progress,
    recover,
    summary,
    targets,
)
from .page import Item, Page
from .page_errors import NonRetryable, Park, RetryLater
from .runs import Run, run
from .targets import NewTarget, Target

__version__ = "0.1.0"

__all__ = [
    "AlreadyRunning",
    "AsyncRun",
    "CheckResult",
    "CleanResult",
    "Crawl",
    "HistoryEntry",
    "Item",
    "LeaseLost",
    "NewTarget",
    "NonRetryable",
    "NotFound",
    "Operator",
    "Page",
    "PageBehind",
    "PageContext",
    "PageRejected",
    "Park",
    "PlanningContext",
    "Progress",
    "RecoverResult",
    "Refused",
    "RetryLater",
    "Run",
    "RunEnded",
    "RunInfo",
    "SavedItem",
    "Stopping",
    "Summary",
    "Target",
    "TargetInfo",
    "Unauthorized",
    "Unreachable",
    "UnstuckError",
    "UsageError",
    "Verdict",
    "check",
    "clean",
    "crawl",
    "history",
    "items",
    "progress",
    "recover",
    "run",
    "summary",
    "targets",
]
