"""A spider over the site of a test: lists, items, redirects, errors, and requests of every kind."""

import os

import scrapy
from marks import mark
from scrapy.exceptions import DropItem

SITE = os.environ["SITE"]
CLAIMS = int(os.environ["CLAIMS"])


class Book(scrapy.Item):
    url = scrapy.Field()
    title = scrapy.Field()
    shelf = scrapy.Field()


class NoSecrets:
    """A pipeline that changes items, and drops some."""

    def process_item(self, item, spider):
        if item.get("title") == "Book 13":
            raise DropItem("unlucky")
        if "title" in item:
            item["title"] = item["title"].upper()
        return item


class Shop(scrapy.Spider):
    name = "shop"
    start_urls = [f"{SITE}/list/1"]
    custom_settings = {
        "CONCURRENT_REQUESTS": 4,
        "UNSTUCK_CLAIMS": CLAIMS,
        "DEFAULT_REQUEST_HEADERS": {"X-Pid": str(os.getpid())},
        "ITEM_PIPELINES": {NoSecrets: 100},
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
    }

    def parse(self, response):
        mark("output", folder=os.environ.get("UNSTUCK_OUTPUT_DIR"))
        for link in response.css("a.book::attr(href)").getall():
            yield response.follow(
                link, self.parse_book, cb_kwargs={"book": Book(shelf=response.url)}, priority=1
            )
        for link in response.css("a.other::attr(href)").getall():
            yield response.follow(link, self.parse_other, errback=self.on_error)
        # Asked for on each list, whatever the duplicate filter knows.
        yield scrapy.Request(f"{SITE}/time", self.parse_time, dont_filter=True)
        yield from (response.follow(one, self.parse) for one in response.css("a.next"))
        # Two records of one page without an address of their own.
        yield {"list": response.css("h1::text").get(), "part": "top"}
        yield {"list": response.css("h1::text").get(), "part": "bottom"}

    async def parse_book(self, response, book):
        book["title"] = response.css("h1::text").get()
        book["url"] = response.url
        # Which list came first is not always the same.
        del book["shelf"]
        yield book

    def parse_other(self, response):
        yield {"url": response.url, "status": response.status}

    def parse_time(self, response):
        # There is none without Unstuck.
        state = getattr(self, "state", {})
        state["times"] = state.get("times", 0) + 1
        yield {"time": response.css("h1::text").get()}

    def on_error(self, failure):
        response = getattr(failure.value, "response", None)
        yield {"url": failure.request.url, "status": response.status if response else 0}
