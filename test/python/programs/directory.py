"""A crawl without a site: each page has items, and an address for the next."""

import asyncio
import os
import time

from marks import mark, wait_for_gate
from unstuck_client import Page, crawl

TARGETS = int(os.environ.get("TARGETS", "12"))
PAGES = int(os.environ.get("PAGES", "5"))
CONCURRENCY = int(os.environ.get("CONCURRENCY", "4"))
PAUSE = float(os.environ.get("PAUSE", "0.005"))
GATE = os.environ.get("GATE")


def plan():
    mark("targets")
    for n in range(TARGETS):
        yield {
            "key": f"city-{n}",
            "group": f"state-{n % 3}",
            "url": f"https://site.example/city-{n}?page=1",
            "data": {"n": n},
        }


def read(ctx):
    address = f"https://site.example/{ctx.target.key}?page="
    assert ctx.url == f"{address}{ctx.page}", ctx.url
    assert ctx.target.data == {"n": int(ctx.target.key.split("-")[1])}
    assert ctx.last_item_id == (f"item-{ctx.page - 1}" if ctx.page > 1 else None)
    assert ctx.resources == "resources"
    mark("page", key=ctx.target.key, page=ctx.page)
    return Page(
        items=[
            {"url": f"/{ctx.target.key}/{ctx.page}-{n}", "data": {"page": ctx.page, "n": n}}
            for n in range(2)
        ],
        next=f"?page={ctx.page + 1}" if ctx.page < PAGES else None,
        page_target=PAGES,
        last_item_id=f"item-{ctx.page}",
    )


class Shared:
    def targets(self):
        return plan()


@crawl(source="stage", concurrency=CONCURRENCY)
class InThreads(Shared):
    def setup(self):
        mark("setup")
        return "resources"

    def page(self, ctx):
        time.sleep(PAUSE)
        page = read(ctx)
        if GATE:
            wait_for_gate(GATE, ctx)
        return page

    def teardown(self, resources):
        mark("teardown", resources=resources)


@crawl(source="stage", concurrency=CONCURRENCY)
class InEventLoop(Shared):
    async def setup(self):
        mark("setup")
        return "resources"

    async def page(self, ctx):
        await asyncio.sleep(PAUSE)
        page = read(ctx)
        if GATE:
            await asyncio.to_thread(wait_for_gate, GATE, ctx)
        return page

    async def teardown(self, resources):
        mark("teardown", resources=resources)


if __name__ == "__main__":
    (InEventLoop if os.environ.get("IS_ASYNC") else InThreads).run()
