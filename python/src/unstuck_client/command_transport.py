"""Operator calls by the command line, where there is no server."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import Unreachable, UnstuckError, error_of

Options = Mapping[str, object]


class CommandTransport:
    """Runs ``unstuck … --json``, a process for each call."""

    def __init__(self, command: str | Sequence[str] | None) -> None:
        if isinstance(command, str):
            command = shlex.split(command)
        self._command = list(command or _default_command())

    def run(self, name: str, operands: Sequence[str], options: Options) -> Any:
        """Returns what a command prints as JSON. Its exit code only repeats what is in there."""
        arguments = [*self._command, name, *_flags(options), "--json", "--", *operands]
        try:
            ended = subprocess.run(
                arguments, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8"
            )
        except OSError as error:
            raise Unreachable(f"{shlex.join(self._command)} cannot be started: {error}") from None
        if ended.stdout.strip():
            return json.loads(ended.stdout)
        raise _error_in(ended.stderr, ended.returncode)

    def pages(
        self, name: str, operands: Sequence[str], options: Options, limit: int | None, size: int
    ) -> Iterator[Any]:
        """Yields the entries of a list, ``size`` of them by each process."""
        after: object = None
        while limit is None or limit > 0:
            count = size if limit is None else min(limit, size)
            answer = self.run(name, operands, {**options, "limit": count, "after": after})
            yield from answer["items"]
            after = answer["next"]
            if after is None:
                return
            if limit is not None:
                limit -= len(answer["items"])


def _flags(options: Options) -> list[str]:
    flags: list[str] = []
    for name, value in options.items():
        flag = f"--{name}"
        if value is True:
            flags.append(flag)
        elif isinstance(value, (list, tuple)):
            flags += [flag, *map(str, value)] if value else []
        elif value is not None and value is not False:
            flags.append(f"{flag}={value}")
    return flags


def _default_command() -> list[str]:
    from_environment = os.environ.get("UNSTUCK_COMMAND")
    if from_environment:
        return shlex.split(from_environment)
    return ["unstuck"] if shutil.which("unstuck") else ["npx", "unstuck"]


def _error_in(text: str, exit_code: int) -> UnstuckError:
    found = re.search(r'^\{"error":.*\}$', text, re.M)
    if found:
        error = json.loads(found[0])["error"]
        return error_of(error["code"], error["message"])
    return Unreachable(f"unstuck ended with exit code {exit_code}: {text.strip()[-500:]}")
