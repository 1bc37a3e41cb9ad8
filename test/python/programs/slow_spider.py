"""A spider that waits in its callbacks until the test lets it go on."""

import scrapy
from marks import mark, wait_for_gate
from scrapy.utils.defer import maybe_deferred_to_future
from shop_spider import CLAIMS, SITE
from twisted.internet.threads import deferToThread


class Slow(scrapy.Spider):
    name = "slow"
    custom_settings = {
        "CONCURRENT_REQUESTS": 2,
        "LOG_LEVEL": "INFO",
        "UNSTUCK_CLAIMS": CLAIMS,
        "TELNETCONSOLE_ENABLED": False,
    }

    async def start(self):
        # What Scrapy from 2.13 calls.
        for request in self.start_requests():
            yield request

    def start_requests(self):
        mark("start")
        for n in range(10):
            yield scrapy.Request(f"{SITE}/time?n={n}", self.parse)

    async def parse(self, response):
        mark("callback")
        await maybe_deferred_to_future(deferToThread(wait_for_gate, "go"))
        yield {"url": response.url}
