"""Operator calls over the HTTP API of ``unstuck serve``."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPMessage
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

from .errors import Unreachable, UsageError, error_of

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PAGE = 500

Query = Mapping[str, object]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would pass the token on to another address."""

    def redirect_request(
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class HttpTransport:
    """Calls a server."""

    def __init__(self, server: str, token: str | None) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"The server is an address such as http://127.0.0.1:4600, not {server!r}."
            )
        self._base = server.rstrip("/")
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._token = token
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if parts.hostname in _LOOPBACK:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, query: Query) -> Any:
        """Returns the answer to a look."""
        pairs = [
            (name, one)
            for name, value in query.items()
            if value is not None
            for one in (value if isinstance(value, (list, tuple)) else [value])
        ]
        return self._call("GET", f"{path}?{urlencode(pairs)}" if pairs else path, None)

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """Returns the answer to a change."""
        sent = {name: value for name, value in body.items() if value is not None}
        return self._call("POST", path, json.dumps(sent, allow_nan=False).encode())

    def pages(self, path: str, query: Query, limit: int | None) -> Iterator[Any]:
        """Yields the entries of a list, part by part."""
        after: object = None
        while limit is None or limit > 0:
            size = _PAGE if limit is None else min(limit, _PAGE)
            answer = self.get(path, {**query, "limit": size, "after": after})
            yield from answer["items"]
            after = answer["next"]
            if after is None:
                return
            if limit is not None:
                limit -= len(answer["items"])

    def _call(self, method: str, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(f"{self._base}{path}", data=body, method=method)
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            # Without tokens, a change is accepted from the server's own origin alone.
            request.add_header("Origin", self._origin)
        try:
            with self._opener.open(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise _error_in(error) from None
        except OSError as error:
            raise Unreachable(
                f"{self._base} does not answer: {error}. Is it the address of `unstuck serve`?"
            ) from None


def _error_in(answer: urllib.error.HTTPError) -> Exception:
    text = answer.read()
    try:
        error = json.loads(text)["error"]
        return error_of(str(error["code"]), str(error["message"]))
    except (ValueError, KeyError, TypeError):
        return Unreachable(f"{answer.url} answered with status {answer.code}, not as Unstuck does.")


def path_of(*parts: str) -> str:
    """Returns a path of the API, with each part escaped."""
    return "/api/" + "/".join(quote(part, safe="") for part in parts)
