"""The crawl of the storm: a directory over HTTP that is slow and fails now and then.

Each visit of a page has an id of its own. A page that is saved twice has two visits, in the items
and in the ledger: neither has a key that would hide it.
"""

import json
import os
import time
import urllib.error
import urllib.request
import uuid

from marks import STAGE, mark
from unstuck_client import Crawl, LeaseLost, Page, RetryLater, crawl

SITE = os.environ["STORM_SITE"]
LEDGER = os.environ.get("STORM_LEDGER")
INSERT = "INSERT INTO storm_ledger (target, page, visit, pid) VALUES (%s, %s, %s, %s)"


def read(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        if error.code == 429:
            raise RetryLater("the site asked to wait", after=error) from error
        raise


def hold():
    """Waits with a page in hand while the test wants this process to."""
    gate = STAGE / f"hold-{os.getpid()}"
    if gate.exists():
        mark("holding")
    while gate.exists():
        time.sleep(0.005)


@crawl(source="storm")
class Directory(Crawl):
    def targets(self):
        yield from read(f"{SITE}/sections")

    def setup(self):
        """With a ledger: a connection of its own, for the ledger's rows and their pages."""
        if not LEDGER:
            return None
        import libpq

        return libpq.Connection(LEDGER)

    def page(self, ctx):
        visit = uuid.uuid4().hex
        key, number = ctx.target.key, ctx.page
        mark("visit", key=key, page=number, visit=visit)
        found = read(ctx.url)
        hold()
        items = [{"url": one.pop("url"), "data": one} for one in found["listings"]]
        seen = {"target": key, "page": number, "visit": visit}
        items.append({"key": f"visit/{visit}", "data": seen})
        page = Page(items, found["next"], page_target=found["pages"])
        if ctx.resources is not None:
            try:
                with ctx.transaction(ctx.resources, page) as cursor:
                    cursor.execute(INSERT, (key, number, visit, os.getpid()))
            except LeaseLost:
                mark("refused", key=key, page=number, visit=visit)
                raise
        return page

    def teardown(self, connection):
        if connection is not None:
            connection.close()


if __name__ == "__main__":
    Directory.run()
