"""A crawl that survives kill -9: after each page it says what it found and where to go on.

    unstuck run shop -- python3 crawl.py 'https://shop.example/list?page=1'

Kill it, or Unstuck, or both at any moment and start it again: it continues after the last saved
page, and each item is there once. Python 3.9 or newer, nothing to install.
"""

import http.client
import json
import os
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from html import unescape
from urllib.parse import urljoin

# ------------------------------------------- the client: copy it into your own scraper

PATIENCE = 5.0  # seconds
stopping = False


def stop(signum, frame):
    """SIGTERM: the page in hand is finished first."""
    global stopping
    stopping = True


def unstuck(path, body=None):
    """One call to the API of this run. It may be sent again: the same page is saved once."""
    token = os.environ["UNSTUCK_TOKEN"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["UNSTUCK_URL"] + path, data, headers)
    give_up_at = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            # 409 LEASE_LOST: another process has this run. Others: the text says what is wrong.
            if error.code != 503:
                sys.exit(f"{path}: {error.code} {error.read().decode()}")
            problem = error
        except (OSError, http.client.HTTPException) as error:  # refused, or cut off
            problem = error
        if stopping or time.monotonic() > give_up_at:
            sys.exit(f"{path}: Unstuck does not answer ({problem})")
        time.sleep(0.2)


# ------------------------------------------- the scraper

ITEM = re.compile(r'<a class="item" href="([^"]+)">([^<]+)</a>')
NEXT = re.compile(r'<a rel="next" href="([^"]+)">')


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def main():
    if "UNSTUCK_URL" not in os.environ or len(sys.argv) != 2:
        sys.exit("Start it with: unstuck run shop -- python3 crawl.py ADDRESS")
    signal.signal(signal.SIGTERM, stop)
    run = unstuck("/")
    page = run["page"]  # the last page that was saved; 0 before the first
    url = run["next"] if page > 0 else sys.argv[1]
    if run["resumed"]:
        print(f"going on after page {page}", flush=True)

    while url is not None:
        if stopping:
            sys.exit(75)  # not 0: that would mean that all is done
        text = fetch(url)
        items = [
            {"url": urljoin(url, unescape(href)), "data": {"name": unescape(name)}}
            for href, name in ITEM.findall(text)
        ]
        link = NEXT.search(text)
        url = urljoin(url, unescape(link[1])) if link else None
        page += 1
        # Items and place, both or neither.
        unstuck("/checkpoint", {"page": page, "items": items, "next": url})
        print(f"page {page}: {len(items)} items", flush=True)

    unstuck("/finish", {})


if __name__ == "__main__":
    main()
