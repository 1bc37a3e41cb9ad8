"""A small directory of companies on this machine, to crawl with yellow_pages.py.

    python3 directory_site.py 8000

Each city has some pages, each page some companies and a link to the next page.
"""

import sys
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PAGES = 4
PER_PAGE = 5


class Directory(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parts = urlsplit(self.path)
        page = int(parse_qs(parts.query).get("page", ["1"])[0])
        companies = [
            f'<a class="company" href="{parts.path}/{page}-{n}">{escape(f"Pipes & Sons {n}")}</a>'
            for n in range(PER_PAGE)
        ]
        link = f'<a rel="next" href="?page={page + 1}">next</a>' if page < PAGES else ""
        body = f"<!doctype html>{''.join(companies)}{link}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Directory)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
