"""A crawl in Python: many targets, several processes, several pages at a time in each.

    pip install ./python                        # in a clone of the repository
    python3 examples/python/directory_site.py 8000 &
    SITE=http://127.0.0.1:8000 unstuck work --exec --targets --source yellow-pages --workers 2 \
        --drain -- python3 examples/python/yellow_pages.py
    unstuck items yellow-pages

Kill any of it at any moment and start it again: it continues after the last saved pages, and each
company is there once.
"""

import os
import re
import urllib.error
import urllib.request
from html import unescape

from unstuck_client import NonRetryable, Page, RetryLater, crawl

SITE = os.environ.get("SITE", "http://127.0.0.1:8000")
CITIES = {"CA": ["los-angeles", "san-diego"], "TX": ["austin", "dallas"], "FL": ["miami"]}
CATEGORIES = ["plumbers", "bakers"]

COMPANY = re.compile(r'<a class="company" href="([^"]+)">([^<]+)</a>')
NEXT = re.compile(r'<a rel="next" href="([^"]+)">')


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code == 429:
            raise RetryLater(f"{url} asked to wait", after=error) from error
        if error.code == 404:
            raise NonRetryable(f"{url} is gone") from error
        raise


@crawl(source="yellow-pages", concurrency=5)
class YellowPages:
    def targets(self):
        """Asked once per run. The same key twice is one target."""
        for state, cities in CITIES.items():
            for city in cities:
                for category in CATEGORIES:
                    yield {
                        "key": f"{state}/{city}/{category}",
                        "group": state,
                        "url": f"{SITE}/{city}/{category}",
                    }

    def page(self, ctx):
        """One page. What it returns is saved as a whole; if it raises, nothing is saved."""
        html = fetch(ctx.url)
        link = NEXT.search(html)
        return Page(
            items=[
                {"url": href, "data": {"name": unescape(name), "state": ctx.target.group}}
                for href, name in COMPANY.findall(html)
            ],
            next=unescape(link[1]) if link else None,
        )


if __name__ == "__main__":
    YellowPages.run()
