"""A crawl whose targets() fails after some targets."""

from unstuck_client import Page, crawl


@crawl(source="stage", concurrency=3)
class BrokenPlan:
    def targets(self):
        yield from (f"https://site.example/{n}" for n in range(3))
        raise RuntimeError("the list of cities is empty")

    def page(self, ctx):
        return Page(items=[{"url": ctx.url, "data": None}], next=None)


BrokenPlan.run()
