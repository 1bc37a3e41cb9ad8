"""A page and writes to your own tables in one transaction of your own PostgreSQL connection."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from .errors import LeaseLost, UnstuckError, UsageError
from .page import Page, page_fields, page_json
from .targets import HeldTarget, Saved

# What the first statement raises where another worker has the target.
_CLAIM_LOST = "UN001"


class PageTransaction:
    """Saves a page with what the block writes: both or neither.

    Entering the block saves the page in a transaction of the connection; leaving it commits. A
    commit whose answer was lost is looked up. An error in the block rolls back, and nothing is
    saved.
    """

    def __init__(
        self,
        post: Callable[[str, bytes], Any],
        held: HeldTarget,
        connection: Any,
        page: Page,
    ) -> None:
        if not isinstance(page, Page):
            raise UsageError("ctx.transaction(connection, page) takes the Page to save.")
        if getattr(connection, "autocommit", False) is True:
            raise UsageError(
                "This connection is in autocommit mode: each statement would be saved by itself. "
                "Set connection.autocommit = False."
            )
        self._post = post
        self._held = held
        self._connection = connection
        self._page = page
        self._is_async = _is_async(connection)
        self._transaction: Any = connection
        """What is committed and rolled back: of asyncpg an object of its own."""
        self._saved: Saved | None = None

    def outcome_of(self, page: Page) -> Saved | None:
        """Returns what became of the page that was returned; None if it is not saved yet."""
        if self._saved is not None and page is not self._page:
            raise UsageError("page() saved a page in a transaction, and returned another one.")
        return self._saved

    # psycopg, psycopg2, pg8000

    def __enter__(self) -> Any:
        if self._is_async:
            raise UsageError("This connection is asynchronous: use async with ctx.transaction(…).")
        statement, parameter = self._begin()
        try:
            cursor = self._connection.cursor()
            cursor.execute(_for_dbapi(statement), (parameter,))
        except BaseException as error:
            self._roll_back()
            raise _explained(error) from error
        return cursor

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._roll_back()
            return
        problem = None
        try:
            self._connection.commit()
        except Exception as caught:
            problem = caught
        self._end(problem)

    def _roll_back(self) -> None:
        try:
            self._connection.rollback()
        finally:
            self._look_up()

    # asyncpg, psycopg's AsyncConnection

    async def __aenter__(self) -> Any:
        if not self._is_async:
            raise UsageError("This connection is not asynchronous: use with ctx.transaction(…).")
        statement, parameter = await asyncio.to_thread(self._begin)
        try:
            if not hasattr(self._connection, "fetchval"):
                cursor = self._connection.cursor()
                await cursor.execute(_for_dbapi(statement), (parameter,))
                return cursor
            self._transaction = self._connection.transaction()
            await self._transaction.start()
            await self._connection.fetchval(statement, parameter)
            return self._connection
        except BaseException as error:
            await self._roll_back_async()
            raise _explained(error) from error

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if error is not None:
            await self._roll_back_async()
            return
        problem = None
        try:
            await self._transaction.commit()
        except Exception as caught:
            problem = caught
        await asyncio.to_thread(self._end, problem)

    async def _roll_back_async(self) -> None:
        try:
            await self._transaction.rollback()
        finally:
            await asyncio.to_thread(self._look_up)

    # Both

    def _begin(self) -> tuple[str, str]:
        """Returns the first statement of the transaction and its parameter."""
        page = self._page
        next_url = self._held.resolve(page.next) if isinstance(page.next, str) else None
        body = page_json(page_fields(page, self._held.page + 1, next_url))
        answer: Mapping[str, Any] = self._post(self._path, body)
        self._held.transaction = self
        return answer["statement"], answer["parameter"]

    def _end(self, problem: Exception | None) -> None:
        """Raises an error unless the transaction was committed."""
        self._look_up()
        if self._saved is not None:
            return
        if problem is not None:
            raise problem
        raise UnstuckError(
            f"Page {self._held.page + 1} of {self._held.target.key} was not saved: its "
            "transaction was rolled back in the block."
        )

    def _look_up(self) -> None:
        """Learns whether the page is saved. Until then the target takes no other call."""
        answer = self._post(f"{self._path}/end", b"{}")
        if answer["saved"]:
            self._saved = Saved(answer["seq"], answer["done"])

    @property
    def _path(self) -> str:
        return f"/targets/{self._held.target.id}/transaction"


def _is_async(connection: Any) -> bool:
    # asyncpg has no commit of its own; it may be given as a proxy of its pool.
    if hasattr(connection, "fetchval"):
        return True
    return inspect.iscoroutinefunction(getattr(connection, "commit", None))


def _for_dbapi(statement: str) -> str:
    """`$1` is PostgreSQL's own form; drivers by DB-API take `%s`."""
    return statement.replace("$1", "%s")


def _explained(error: BaseException) -> BaseException:
    """Returns what an error of the first statement means."""
    names = ("sqlstate", "pgcode")
    states = [getattr(error, name, None) for name in names]
    # pg8000 has the fields of the message in its argument.
    if error.args and isinstance(error.args[0], Mapping):
        states.append(error.args[0].get("C"))
    return LeaseLost(str(error)) if _CLAIM_LOST in states else error
