"""Where the API of this process is, from the environment that Unstuck gives it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from .errors import UsageError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of an API, the token for it, and what it is about."""

    host: str
    port: int
    base: str
    """The path before each call, without a slash at its end."""
    token: str
    socket: str | None
    """The Unix socket to connect to instead of host and port."""
    source: str
    input: Any
    """What the run was queued with; None if nothing."""

    def head(self, method: str, path: str) -> bytes:
        """Returns the head of a request up to the number of its Content-Length."""
        lines = (
            f"{method} {self.base}{path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.token}",
            "Content-Type: application/json",
            "Content-Length: ",
        )
        return "\r\n".join(lines).encode("latin-1")


def find_endpoint(
    api: Literal["worker", "run"],
    source: str | None,
    environ: Mapping[str, str] = os.environ,
) -> Endpoint:
    """Returns the endpoint of this process. Raises an error that says how to start the program."""
    url = environ.get("UNSTUCK_URL")
    found = environ.get("UNSTUCK_API", "run")
    name = source or "SOURCE"
    if not url:
        raise UsageError(f"This program runs under Unstuck. Start it with:\n    {start(api, name)}")
    if found != api:
        raise UsageError(
            "This program was started for the API of "
            f"{'a run' if found == 'run' else 'a worker'}, and uses that of "
            f"{'a run' if api == 'run' else 'a worker'}. Start it with:\n    {start(api, name)}"
        )
    served = environ.get("UNSTUCK_SOURCE", name)
    if source is not None and served != source:
        raise UsageError(
            f"Unstuck started this program for the source {served}, but it is about {source}. "
            f"Start it with:\n    {start(api, source)}"
        )
    parts = urlsplit(url)
    text = environ.get("UNSTUCK_INPUT")
    return Endpoint(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 80,
        base=parts.path.rstrip("/"),
        token=environ.get("UNSTUCK_TOKEN", ""),
        socket=environ.get("UNSTUCK_SOCKET") or None,
        source=served,
        input=json.loads(text) if text else None,
    )


def start(api: Literal["worker", "run"], source: str) -> str:
    """Returns the command that starts this program under Unstuck."""
    program = shlex.join(["python3", *sys.argv]) if sys.argv[0] else "python3 program.py"
    name = source if source == "SOURCE" else shlex.quote(source)
    if api == "run":
        return f"unstuck run {name} -- {program}"
    return f"unstuck work --exec --targets --source {name} --workers 2 -- {program}"
