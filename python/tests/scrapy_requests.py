"""Requests of Scrapy, stored and made again. Run where Scrapy is installed."""

import datetime
import decimal
import unittest

import scrapy
from scrapy.http import FormRequest, JsonRequest
from scrapy.settings import Settings

from unstuck_client import UsageError
from unstuck_client.scrapy.stored_items import key_function, store_items
from unstuck_client.scrapy.stored_request import load_request, store_request


class Book(scrapy.Item):
    title = scrapy.Field()


class Books(scrapy.Spider):
    name = "books"

    def parse_book(self, response):
        pass

    def on_error(self, failure):
        pass


SPIDER = Books()
EVERYTHING = {
    "text": "a\0b \ud800 é",
    "bytes": [b"plain", b"\xff\0"],
    "pair": (1, 2.5, None, True),
    "set": {1},
    "frozen": frozenset("a"),
    "number": float("inf"),
    "money": decimal.Decimal("1.10"),
    "day": datetime.date(2026, 1, 2),
    "moment": datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc),
    "item": Book(title="One"),
    3: {"$set": "no mark", "deep": [{"x": ()}]},
}


class RequestTests(unittest.TestCase):
    def back(self, request):
        return load_request(store_request(request, SPIDER), SPIDER)

    def test_every_part_comes_back(self):
        request = scrapy.Request(
            "https://shop.example/a?b=c",
            SPIDER.parse_book,
            method="PUT",
            headers={"X-Many": ["1", "2"], "X-Bytes": b"\xe9"},
            body=b"\x00\xff",
            cookies={"a": "b"},
            meta=EVERYTHING,
            encoding="latin-1",
            priority=-3,
            dont_filter=True,
            errback=SPIDER.on_error,
            flags=["x"],
            cb_kwargs={"item": Book(title="Two")},
        )
        again = self.back(request)
        self.assertEqual(again.to_dict(spider=SPIDER), request.to_dict(spider=SPIDER))
        self.assertEqual(again.callback, SPIDER.parse_book)

    def test_a_plain_request_is_short(self):
        self.assertEqual(
            store_request(scrapy.Request("https://shop.example/"), SPIDER),
            {"url": "https://shop.example/"},
        )

    def test_classes_come_back(self):
        for request in (
            FormRequest("https://shop.example/", formdata={"a": "b"}),
            JsonRequest("https://shop.example/", data={"a": 1}),
        ):
            again = self.back(request)
            self.assertIs(type(again), type(request))
            self.assertEqual((again.method, again.body), (request.method, request.body))

    def test_what_cannot_be_stored_is_named(self):
        for request, message in (
            (scrapy.Request("https://a.example/", lambda response: None), "Callbacks are methods"),
            (scrapy.Request("https://a.example/", meta={"a": [object()]}), r"meta\.a\[0\].* object"),
            (scrapy.Request("https://a.example/", body="x" * 70_000), "65536 are the most"),
        ):
            with self.assertRaisesRegex(UsageError, message):
                store_request(request, SPIDER)


class KeyTests(unittest.TestCase):
    def keys(self, setting, *items):
        key_of = key_function(Settings({"UNSTUCK_ITEM_KEY": setting}))
        return [item.get("key") or item.get("url") for item in store_items(items, "p", key_of)]

    def test_the_address_is_the_key_unless_the_page_has_it_twice(self):
        one, two = {"url": "https://a.example/1"}, {"url": "https://a.example/2"}
        found = self.keys(None, one, two, two, {"url": "/3"}, {"n": 1})
        self.assertEqual(found, ["https://a.example/1", "p#2", "p#3", "p#4", "p#5"])

    def test_a_field_a_function_or_none(self):
        item = Book(title="One")
        self.assertEqual(self.keys("title", item, {"n": 1}), ["One", "p#2"])
        self.assertEqual(self.keys("", item, {"url": "https://a.example/1"}), ["p#1", "p#2"])
        self.assertEqual(self.keys(key_of, item), ["OneOne"])
        self.assertEqual(self.keys(f"{__name__}.key_of", item), ["OneOne"])


def key_of(item):
    return item["title"] * 2


if __name__ == "__main__":
    unittest.main()
