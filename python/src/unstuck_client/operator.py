"""What an operator looks at and does: before a scrape, and to read back what was saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, Concatenate, Literal, NoReturn, ParamSpec, TypeVar

from .answers import (
    CheckResult,
    CleanResult,
    HistoryEntry,
    Progress,
    RecoverResult,
    SavedItem,
    Summary,
    TargetInfo,
)
from .command_transport import CommandTransport
from .errors import UsageError
from .hints import reject_unknown
from .http_transport import HttpTransport, path_of

# Entries by each process of the command line, which takes a third of a second to start.
_MANY = 10_000
_HISTORY_MAX = 1_000


class Operator:
    """Calls ``unstuck serve``, or the command line where there is no server.

    ``server`` and ``token`` default to ``UNSTUCK_SERVER`` and ``UNSTUCK_SERVER_TOKEN`` (or
    ``UNSTUCK_TOKEN``, which under ``unstuck run`` and ``work`` is another token). ``command``
    defaults to ``UNSTUCK_COMMAND``, else ``unstuck`` on the PATH, else ``npx unstuck``; it takes
    its database from ``UNSTUCK_DB`` or the config, as always.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        *,
        command: str | Sequence[str] | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            reject_unknown("Operator", unknown, ("server", "token", "command"))
        if command is None and server is None:
            server = os.environ.get("UNSTUCK_SERVER")
        self._http: HttpTransport | None = None
        if server is not None:
            self._http = HttpTransport(server, token or _token_of_environment())
        self._command = CommandTransport(command)

    def check(self, source: str, *, age: str | None = None) -> CheckResult:
        """Reports before a start whether to start, resume, clean or wait, and why."""
        answer: CheckResult
        if self._http:
            answer = self._http.get(path_of("check", source), {"age": age})
        else:
            answer = self._command.run("check", [source], {"age": age})
        return answer

    def summary(self, *, age: str | None = None) -> Summary:
        """Lists live runs by what can be done with them: active, resumable, dead."""
        answer: Summary
        if self._http:
            answer = self._http.get(path_of("summary"), {"age": age})
        else:
            answer = self._command.run("summary", [], {"age": age})
        return answer

    def clean(
        self, *runs: str, age: str | None = None, plan: str | None = None, dry_run: bool = False
    ) -> CleanResult:
        """Marks dead runs: the named ones, else all. Deletes nothing.

        ``plan`` (over HTTP): exactly what a dry run showed, or an error.
        """
        answer: CleanResult
        if self._http:
            body = {"runs": list(runs) or None, "age": age, "plan": plan, "dryRun": dry_run}
            answer = self._http.post(path_of("clean"), body)
        else:
            _reject_plan(plan)
            answer = self._command.run("clean", runs, {"age": age, **_acting(dry_run)})
        return answer

    def recover(
        self,
        *,
        sources: Sequence[str] = (),
        groups: Sequence[str] = (),
        timeout: str | None = None,
        plan: str | None = None,
        dry_run: bool = False,
    ) -> RecoverResult:
        """Recovers what dead and silent workers held. Live ones are not touched."""
        answer: RecoverResult
        if self._http:
            answer = self._http.post(
                path_of("recovery"),
                {
                    "sources": list(sources) or None,
                    "groups": list(groups) or None,
                    "timeout": timeout,
                    "plan": plan,
                    "dryRun": dry_run,
                },
            )
        else:
            _reject_plan(plan)
            options = {"source": sources, "group": groups, "timeout": timeout}
            answer = self._command.run("recover", [], {**options, **_acting(dry_run)})
        return answer

    def history(
        self,
        run: str | None = None,
        *,
        source: str | None = None,
        since: str | None = None,
        limit: int | None = None,
    ) -> Iterator[HistoryEntry]:
        """Yields what was cleaned, recovered and reverted, newest first."""
        query = {"source": source, "since": since}
        if self._http:
            return self._http.pages(path_of("history"), {**query, "run": run}, limit)
        operands = [] if run is None else [run]
        return self._command.pages("history", operands, query, limit, _HISTORY_MAX)

    def items(
        self,
        source: str,
        *,
        run: str | None = None,
        group: str | None = None,
        since: str | None = None,
        limit: int | None = None,
    ) -> Iterator[SavedItem]:
        """Yields the saved items of a source."""
        query = {"run": run, "group": group, "since": since}
        if self._http:
            path = path_of("items", source)
            return self._http.pages(path, {**query, "format": "json"}, limit)
        return self._command.pages("items", [source], query, limit, _MANY)

    def targets(
        self,
        run: str,
        *,
        status: Sequence[str] = (),
        group: str | None = None,
        limit: int | None = None,
    ) -> Iterator[TargetInfo]:
        """Yields the targets of a run, or of the live or newest run of a source."""
        query = {"status": [status] if isinstance(status, str) else status, "group": group}
        if self._http:
            return self._http.pages(path_of("runs", run, "targets"), query, limit)
        return self._command.pages("targets", [run], query, limit, _MANY)

    def progress(
        self,
        run: str,
        *,
        by: Literal["group", "page", "status"] | None = None,
        groups: Sequence[str] = (),
    ) -> Progress:
        """Returns how far a run is, or the live or newest run of a source."""
        query = {"by": by, "group": groups}
        if self._http:
            answer = self._http.get(path_of("runs", run, "progress"), query)
        else:
            answer = self._command.run("progress", [run], query)
        found: Progress = answer["items"][0]
        return found


def _acting(dry_run: bool) -> dict[str, Any]:
    return {"dry-run": True} if dry_run else {"yes": True}


def _reject_plan(plan: str | None) -> None:
    if plan is not None:
        raise UsageError("The command line takes no plan: give the address of `unstuck serve`.")


def _token_of_environment() -> str | None:
    found = os.environ.get("UNSTUCK_SERVER_TOKEN")
    if found is None and "UNSTUCK_URL" not in os.environ:
        # Under `unstuck run` and `work` this is the token of the run, which no server knows.
        found = os.environ.get("UNSTUCK_TOKEN")
    return found


P = ParamSpec("P")
R = TypeVar("R")


def _by_environment(method: Callable[Concatenate[Operator, P], R]) -> Callable[P, R]:
    """Returns the method as a function, for the operator that the environment describes."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return method(Operator(), *args, **kwargs)

    return call


check = _by_environment(Operator.check)
summary = _by_environment(Operator.summary)
clean = _by_environment(Operator.clean)
recover = _by_environment(Operator.recover)
history = _by_environment(Operator.history)
items = _by_environment(Operator.items)
targets = _by_environment(Operator.targets)
progress = _by_environment(Operator.progress)
