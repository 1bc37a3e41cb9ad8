"""One run in a loop of one's own; how it ends is the argument."""

import asyncio
import os
import sys

import unstuck_client
from marks import mark, wait_for_gate

END = sys.argv[1]
SOURCE = sys.argv[2] if len(sys.argv) > 2 else "stage"


def begin(run):
    mark("begun", page=run.page, cursor=run.cursor, resumed=run.resumed, last=run.last_item_id)


def fields(page):
    return {
        "items": [{"key": f"item-{page}", "data": page}],
        "cursor": {"after": page},
        "last_item_id": f"item-{page}",
        "page_target": 5,
    }


def leave(page):
    if END == "raise" and page == 3:
        raise ValueError("page 3 is broken")
    return END == "leave" and page == 2


def in_threads():
    with unstuck_client.run(SOURCE, initial_cursor={"after": 0}) as run:
        begin(run)
        for page in run.pages(to=5):
            run.checkpoint(**fields(page))
            run.progress(page, 5)
            mark("saved", page=page)
            if leave(page):
                return
            if END == "wait" and page == 2:
                wait_for_gate("go", run)
        if END == "fail":
            run.fail("the portal is closed")
        else:
            run.succeed()
    mark("after")


async def in_event_loop():
    async with unstuck_client.run(SOURCE, initial_cursor={"after": 0}) as run:
        begin(run)
        for page in run.pages(to=5):
            await run.checkpoint(**fields(page))
            await run.progress(page, 5)
            mark("saved", page=page)
            if leave(page):
                return
            if END == "wait" and page == 2:
                await asyncio.to_thread(wait_for_gate, "go", run)
        if END == "fail":
            await run.fail("the portal is closed")
        else:
            await run.succeed()
    mark("after")


if os.environ.get("IS_ASYNC"):
    asyncio.run(in_event_loop())
else:
    in_threads()
