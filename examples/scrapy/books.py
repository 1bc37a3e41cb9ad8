"""A Scrapy crawl that survives kill -9 of any process: no request is lost, no item is doubled.

    unstuck work --exec --targets --source books --workers 2 --drain -- \\
        scrapy runspider books.py -a start=https://books.toscrape.com/

    unstuck items books > books.jsonl

Kill its processes, or Unstuck, or all of them at any moment, and start it again: what was saved
is not fetched again. Needs Scrapy 2.8 or newer and the package unstuck-client.
"""

import scrapy


class Books(scrapy.Spider):
    name = "books"
    custom_settings = {
        # From Scrapy 2.10 one setting does both: ADDONS = {"unstuck_client.scrapy.Addon": 0}
        "SCHEDULER": "unstuck_client.scrapy.Scheduler",
        "SPIDER_MIDDLEWARES": {"unstuck_client.scrapy.SpiderMiddleware": 0},
    }

    def __init__(self, start, **options):
        super().__init__(**options)
        self.start_urls = [start]

    def parse(self, response):
        for link in response.css("article.product_pod h3 a"):
            yield response.follow(link, self.parse_book)
        for link in response.css("li.next a"):
            yield response.follow(link, self.parse)

    def parse_book(self, response):
        yield {
            "url": response.url,
            "title": response.css("h1::text").get(),
            "price": response.css("p.price_color::text").get(),
        }
