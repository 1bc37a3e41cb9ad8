"""A crawl that writes each page to a table of its own, in the page's transaction."""

import os

import libpq
from marks import mark, wait_for_gate
from unstuck_client import Page, crawl

PAGES = 3
INSERT = "INSERT INTO prices (city, page, attempt) VALUES (%s, %s, %s)"
URL = os.environ["PRICES_DB"]
KEYS = ["city-0", "city-1", "thrown", "cut", "refused", "lost", "other page", "autocommit"]


class Cut(libpq.Connection):
    """The commit is done, and the connection is cut before its answer."""

    def commit(self):
        super().commit()
        raise libpq.DatabaseError("server closed the connection unexpectedly", None)


class AsyncCut(libpq.AsyncConnection):
    async def commit(self):
        await super().commit()
        raise libpq.DatabaseError("server closed the connection unexpectedly", None)


def lose_claim(connection, ctx):
    """An operator takes the target between the call and the first statement."""
    cursor = connection.cursor

    def late():
        mark("working", target=ctx.target.id)
        wait_for_gate("taken")
        return cursor()

    connection.cursor = late


def connect(plain, cut, ctx):
    is_cut = ctx.target.key == "cut" and ctx.page == 2
    connection = (cut if is_cut else plain)(URL)
    if ctx.page == 2:
        if ctx.target.key == "lost":
            lose_claim(connection, ctx)
        connection.autocommit = ctx.target.key == "autocommit"
    return connection


def page_of(ctx):
    key = ctx.target.key
    return Page(items=[{"key": f"{key}/{ctx.page}", "data": ctx.page}], done=ctx.page == PAGES)


def row_of(ctx):
    city = "x" * 100 if ctx.target.key == "refused" and ctx.page == 2 else ctx.target.key
    return (city, ctx.page, ctx.attempt)


def after_insert(ctx):
    if ctx.target.key == "thrown" and ctx.page == 2 and ctx.attempt == 1:
        raise ValueError("the price is missing")


def returned(ctx, page):
    return Page(done=True) if ctx.target.key == "other page" and ctx.page == 2 else page


@crawl(source="stage", concurrency=4)
class InThreads:
    def targets(self):
        return [{"key": key} for key in KEYS]

    def page(self, ctx):
        page = page_of(ctx)
        connection = connect(libpq.Connection, Cut, ctx)
        try:
            with ctx.transaction(connection, page) as cursor:
                cursor.execute(INSERT, row_of(ctx))
                after_insert(ctx)
        finally:
            connection.close()
        return returned(ctx, page)


@crawl(source="stage", concurrency=4)
class InEventLoop:
    def targets(self):
        return [{"key": key} for key in KEYS]

    async def page(self, ctx):
        page = page_of(ctx)
        connection = connect(libpq.AsyncConnection, AsyncCut, ctx)
        try:
            async with ctx.transaction(connection, page) as cursor:
                await cursor.execute(INSERT, row_of(ctx))
                after_insert(ctx)
        finally:
            connection.close()
        return returned(ctx, page)


if __name__ == "__main__":
    (InEventLoop if os.environ.get("IS_ASYNC") else InThreads).run()
