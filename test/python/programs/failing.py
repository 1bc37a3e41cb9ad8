"""A crawl whose pages fail in every way that a page can."""

import asyncio
import os
from datetime import timedelta

from marks import mark
from unstuck_client import NonRetryable, Page, Park, RetryLater, crawl


def read(ctx):
    key = ctx.target.key
    ctx.log(f"reading {key}", level="warn", attempt=ctx.attempt, when=timedelta(0))
    if key == "gone":
        raise NonRetryable("404: it is gone")
    if key == "captcha":
        raise Park("a captcha")
    if key == "later" and ctx.attempt == 1:
        raise RetryLater("429", after=timedelta(milliseconds=50))
    if key == "broken":
        raise KeyError("price")
    if key == "unsaveable":
        return Page(items=[{"key": "a", "data": {1, 2}}], next=None)
    if key == "no address":
        return Page(items=[{"url": "mailto:a@b.example", "data": 1}], next=None)
    if key == "no page":
        return None
    if key == "large":
        return Page(items=[{"key": "large", "data": "x" * 9_000_000}], next=None)
    if key == "cursor":
        count = ctx.cursor["count"]
        ctx.cursor["count"] = "changed in place"
        if count == 3:
            return Page(items=[{"key": "cursor", "data": ctx.page}], done=True)
        return Page(done=False, cursor={"count": count + 1})
    mark("ok", key=key, attempt=ctx.attempt)
    return Page(items=[{"key": key, "data": ctx.attempt}], next=None)


KEYS = [
    "gone", "captcha", "later", "broken", "unsaveable", "no address", "no page", "large", "cursor",
    "fine-1", "fine-2", "fine-3",
]  # fmt: skip


@crawl(source="stage", concurrency=6, initial_cursor={"count": 0})
class InThreads:
    def targets(self, ctx):
        mark("targets", run=ctx.run, input=ctx.input, source=ctx.source)
        return [{"key": key, "group": None} for key in KEYS]

    def page(self, ctx):
        return read(ctx)

    def teardown(self):
        raise OSError("the browser is gone")


@crawl(source="stage", concurrency=6, initial_cursor={"count": 0})
class InEventLoop:
    async def targets(self, ctx):
        mark("targets", run=ctx.run, input=ctx.input, source=ctx.source)
        for key in KEYS:
            await asyncio.sleep(0)
            yield {"key": key}

    async def page(self, ctx):
        return read(ctx)

    def teardown(self):
        raise OSError("the browser is gone")


if __name__ == "__main__":
    (InEventLoop if os.environ.get("IS_ASYNC") else InThreads).run()
