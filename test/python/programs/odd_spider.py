"""A spider whose requests end in every way, one of each, in the order of their names."""

import threading

import scrapy
from scrapy.exceptions import DropItem
from shop_spider import SITE


class Picky:
    """A pipeline with a bug, and one that drops."""

    def process_item(self, item, spider):
        if item.get("n") == "pipeline":
            raise RuntimeError("no connection")
        if item.get("n") == "dropped":
            raise DropItem("unlucky")
        return item


class Odd(scrapy.Spider):
    name = "odd"
    custom_settings = {
        "CONCURRENT_REQUESTS": 4,
        "ITEM_PIPELINES": {Picky: 100},
        "LOG_LEVEL": "WARNING",
        "RETRY_TIMES": 0,
        "TELNETCONSOLE_ENABLED": False,
    }

    async def start(self):
        # What Scrapy from 2.13 calls.
        for request in self.start_requests():
            yield request

    def start_requests(self):
        kinds = ["raises", "yields_then_raises", "pipeline", "dropped", "number", "unstorable"]
        kinds += ["handed_on", "two_of_one_address", "carries"]
        for kind in kinds:
            name = kind if hasattr(self, kind) else "plain"
            # A POST, so that the body is a part of what it is.
            yield scrapy.Request(
                f"{SITE}/time",
                getattr(self, name),
                method="POST",
                body=kind,
                cb_kwargs={"kind": kind},
            )
        # The same request again: what its callback gets makes no other one of it.
        yield scrapy.Request(f"{SITE}/time", self.plain, method="POST", body="raises")
        yield scrapy.Request(f"{SITE}/gone/1", self.plain, cb_kwargs={"kind": "gone"})
        yield scrapy.Request("http://127.0.0.1:9/refused", self.plain, cb_kwargs={"kind": "refused"})
        yield scrapy.Request(f"{SITE}/broken", self.plain, cb_kwargs={"kind": "broken"})
        yield scrapy.Request(
            "http://127.0.0.1:9/handled", self.plain, errback=self.on_error
        )

    def plain(self, response, kind):
        yield {"n": kind}

    def raises(self, response, kind):
        raise KeyError("price")

    def yields_then_raises(self, response, kind):
        yield {"n": "not saved"}
        raise KeyError("stock")

    def number(self, response, kind):
        yield {"n": float("nan")}

    def unstorable(self, response, kind):
        yield {"n": "not saved"}
        yield scrapy.Request(f"{SITE}/time", self.plain, cb_kwargs={"kind": threading.Lock()})

    def handed_on(self, response, kind):
        yield scrapy.Request("http://127.0.0.1:9/on", self.plain, errback=self.hand_on)

    def two_of_one_address(self, response, kind):
        yield {"url": response.url, "n": "first"}
        yield {"url": response.url, "n": "second"}

    def carries(self, response, kind):
        # What spiders pass on: the meta of a response, its request itself, bytes, tuples, items.
        meta = {**response.meta, "bytes": b"\xff\0", "pair": (1, {2}), 3: "three", "nul": "a\0b"}
        yield scrapy.Request(f"{SITE}/time", self.carried, meta=meta, dont_filter=True)
        yield response.request.replace(callback=self.again, dont_filter=True)

    def carried(self, response):
        meta = response.meta
        yield {"n": [str(meta[name]) for name in ("bytes", "pair", 3)] + [meta["nul"].split("\0")]}

    def again(self, response, kind):
        yield {"n": f"again {kind} {response.request.body.decode()}"}

    def hand_on(self, failure):
        return failure

    def on_error(self, failure):
        yield {"n": f"handled {failure.type.__name__}"}
        yield scrapy.Request(f"{SITE}/time?after=error", self.plain, cb_kwargs={"kind": "after"})

