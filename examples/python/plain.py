"""A scraper that knows nothing of Unstuck's API, and is wrapped as it is.

    unstuck run shop --restart on-failure -- python3 plain.py 'https://shop.example/list?page=1'

It gets one copy at a time, restarts, a history, and its output is kept. It starts at page one each
time: where to go on is for a script to say, as crawl.py does. Its items are in one file, which is
there when all of them are.
"""

import json
import os
import re
import sys
import urllib.request
from html import unescape
from urllib.parse import urljoin

ITEM = re.compile(r'<a class="item" href="([^"]+)">([^<]+)</a>')
NEXT = re.compile(r'<a rel="next" href="([^"]+)">')


def pages(url):
    """Each page's address and text, from the first to the last."""
    while url is not None:
        with urllib.request.urlopen(url, timeout=30) as answer:
            text = answer.read().decode()
        yield url, text
        link = NEXT.search(text)
        url = urljoin(url, unescape(link[1])) if link else None


def main():
    folder = os.environ.get("UNSTUCK_OUTPUT_DIR", ".")  # kept with the run; without Unstuck: here
    path = os.path.join(folder, "items.jsonl")
    with open(path + ".part", "w", encoding="utf-8") as file:
        for number, (url, text) in enumerate(pages(sys.argv[1]), start=1):
            for href, name in ITEM.findall(text):
                item = {"url": urljoin(url, unescape(href)), "name": unescape(name)}
                file.write(json.dumps(item) + "\n")
            print(f"page {number}", flush=True)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
