"""A website on a local socket, whose pages a test writes and whose requests it reads."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Handle = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as its server sends it; `handle` takes the whole connection instead."""

    body: bytes = b""
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    handle: Handle | None = None

    @property
    def etag(self) -> str:
        return f'"{sha256(self.body).hexdigest()[:12]}"'


def make_html(title: str, text: str, *links: str, head: str = "") -> WebPage:
    """Return a page with a heading, a paragraph and links."""
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    body = (
        f"<html><head><title>{title}</title>{head}</head><body><nav>{anchors}</nav>"
        f"<main><h1>{title}</h1><p>{text}</p></main><footer>All rights reserved.</footer></body>"
    )
    return WebPage(body.encode())


@dataclass
class Website:
    """The pages by path, and the requests in order: path and status."""

    port: int = 0
    pages: dict[str, WebPage] = field(default_factory=dict)
    requests: list[tuple[str, int]] = field(default_factory=list)
    most_at_once: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def take_requests(self) -> list[tuple[str, int]]:
        """Return the requests since the last time."""
        taken, self.requests = sorted(self.requests), []
        return taken


@contextmanager
def serve_website() -> Iterator[Website]:
    """Serve a website; the pages may change while it runs."""
    site = Website()
    running = threading.Semaphore(64)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with running:
                _answer(site, self)

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(site: Website, request: BaseHTTPRequestHandler) -> None:
    page = site.pages.get(request.path, WebPage(b"no such page", status=404))
    if page.handle is not None:
        site.requests.append((request.path, page.status))
        page.handle(request)
        return
    is_known = page.status == 200 and request.headers.get("If-None-Match") == page.etag
    status = 304 if is_known else page.status
    site.requests.append((request.path, status))
    request.send_response(status)
    request.send_header("Content-Type", page.media_type)
    if page.status == 200:
        request.send_header("ETag", page.etag)
    for name, value in page.headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(0 if is_known else len(page.body)))
    request.end_headers()
    if not is_known:
        request.wfile.write(page.body)
