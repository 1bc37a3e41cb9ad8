"""The shapes of answers to operator calls: their main fields. Answers may have more."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class RunInfo(TypedDict, total=False):
    """A run."""

    id: str
    source: str
    status: Literal[
        "queued", "running", "interrupted", "succeeded", "failed", "cancelled", "abandoned"
    ]
    createdAt: str | None
    startedAt: str | None
    finishedAt: str | None
    lastActivityAt: str | None
    done: int
    total: int | None
    extracted: int
    unchanged: int
    skipped: int
    attempt: int
    error: str | None
    resumable: bool


class TargetInfo(TypedDict, total=False):
    """A target of a run."""

    id: str
    run: str
    key: str
    group: str | None
    status: Literal["planned", "in_progress", "done", "failed", "stuck", "parked"]
    page: int
    pageTarget: int | None
    next: str | None
    lastItemId: str | None
    cursor: Any
    attempts: int
    crashes: int
    worker: str | None
    lastError: str | None
    finishedAt: str | None


class SavedItem(TypedDict, total=False):
    """An item as it was saved last."""

    key: str
    url: str | None
    data: Any
    version: int
    run: str
    group: str | None
    firstSeenAt: str
    lastSeenAt: str
    changedAt: str


class CheckResult(TypedDict, total=False):
    """What to do before a start, and why."""

    source: str
    action: Literal["start", "resume", "clean", "wait"]
    because: str
    run: RunInfo | None
    checkpoint: dict[str, Any] | None
    owner: dict[str, Any] | None
    summary: str


class AssessedRun(RunInfo, total=False):
    """A run with its verdict."""

    action: str
    because: str
    evidence: list[str]


class Summary(TypedDict, total=False):
    """Live runs by what can be done with them."""

    severity: Literal["ok", "attention", "stuck"]
    total: int
    active: list[AssessedRun]
    resumable: list[AssessedRun]
    dead: list[AssessedRun]
    ended: dict[str, int]
    summary: str


class Verdict(TypedDict, total=False):
    """What was decided about a run or one of its targets."""

    run: str
    source: str
    target: str | None
    key: str | None
    action: str
    because: str
    evidence: list[str]
    outcome: str


class CleanResult(TypedDict, total=False):
    """What ``clean`` marked, or would mark."""

    cleaned: list[Verdict]
    count: int
    dryRun: bool
    plan: str
    active: list[AssessedRun]
    resumable: list[AssessedRun]
    dead: list[AssessedRun]
    summary: str


class RecoverResult(TypedDict, total=False):
    """What ``recover`` applied, or would apply."""

    verdicts: list[Verdict]
    planned: int
    applied: int
    count: int
    dryRun: bool
    plan: str
    active: list[AssessedRun]
    summary: str


class HistoryEntry(TypedDict, total=False):
    """An entry of the audit trail."""

    id: str
    at: str
    actor: str
    action: str
    source: str
    run: str | None
    target: str | None
    because: str
    evidence: list[str]


class Progress(TypedDict, total=False):
    """How far a run is."""

    run: RunInfo
    counts: dict[str, int]
    by: Literal["group", "page", "status"]
    rows: list[dict[str, Any]]
