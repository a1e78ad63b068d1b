import gzip
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from outbound.errors import AddressRefusedError, FetchError
from outbound.fetcher import Fetcher, FetchLimits, WebResponse, find_wait
from outbound.resolution import GuardedResolver
from tests.support.website import WebPage, Website, serve_website

Get = Callable[..., Awaitable[WebResponse]]
QUICK = FetchLimits(delay=0.0, seconds_per_page=5.0)


@pytest.fixture
def site() -> Iterator[Website]:
    with serve_website() as serving:
        yield serving


@pytest.fixture
def get(site: Website) -> Get:
    """Fetches a path of the website with limits."""

    async def fetch(path: str, **limits: Any) -> WebResponse:
        resolver = GuardedResolver()
        await resolver.start_at("127.0.0.1", site.port)
        async with Fetcher(replace(QUICK, **limits), resolver, "refdesk/test") as fetcher:
            return await fetcher.get(f"{site.url}{path}")

    return fetch


async def test_a_compressed_page_is_read_within_the_limit(site: Website, get: Get) -> None:
    encoding = {"Content-Encoding": "gzip"}
    site.pages["/small"] = WebPage(gzip.compress(b"text " * 1000), headers=encoding)
    site.pages["/bomb"] = WebPage(gzip.compress(b"\0" * 50_000_000), headers=encoding)
    site.pages["/damaged"] = WebPage(b"no gzip", headers=encoding)
    site.pages["/other"] = WebPage(b"?", headers={"Content-Encoding": "br"})

    assert (await get("/small")).body == b"text " * 1000
    with pytest.raises(FetchError, match="the page is larger than 1000000 bytes"):
        await get("/bomb", bytes_per_page=1_000_000)
    with pytest.raises(FetchError, match="the gzip encoding of the body is damaged"):
        await get("/damaged")
    with pytest.raises(FetchError, match="the body is encoded as 'br'"):
        await get("/other")


async def test_a_busy_server_is_asked_again_after_the_time_that_it_states(
    site: Website, get: Get
) -> None:
    def recover(request: BaseHTTPRequestHandler) -> None:
        site.pages["/busy"] = WebPage(b"ready")
        request.send_response(429)
        request.send_header("Retry-After", "1")
        request.send_header("Content-Length", "0")
        request.end_headers()

    site.pages["/busy"] = WebPage(handle=recover, status=429)
    began = time.monotonic()

    answer = await get("/busy")

    assert answer.body == b"ready"
    assert time.monotonic() - began >= 1


async def test_a_server_that_stays_busy_is_given_up(site: Website, get: Get) -> None:
    site.pages["/full"] = WebPage(status=503, headers={"Retry-After": "0"})
    site.pages["/later"] = WebPage(status=503, headers={"Retry-After": "3600"})

    assert (await get("/full", attempts=2)).status == 503
    assert site.take_requests() == [("/full", 503), ("/full", 503)]
    with pytest.raises(
        FetchError, match="the server returned status 503 and requested a wait of 3600 s"
    ):
        await get("/later")


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_that_states_no_time_is_asked_after_pauses_that_grow(
    site: Website, status: int
) -> None:
    site.pages["/busy"] = WebPage(status=status)
    limits = replace(QUICK, attempts=5, longest_wait=5.0)
    now, pauses = [0.0], list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    resolver = GuardedResolver()
    await resolver.start_at("127.0.0.1", site.port)
    async with Fetcher(
        limits, resolver, "refdesk/test", clock=lambda: now[0], sleep=sleep
    ) as fetcher:
        answer = await fetcher.get(f"{site.url}/busy")

    assert answer.status == status
    assert site.take_requests() == [("/busy", status)] * 5
    assert pauses == [0.0, 1.0, 2.0, 4.0, 5.0]


async def test_requests_are_a_pause_apart(site: Website) -> None:
    site.pages["/"] = WebPage(b"page")
    resolver = GuardedResolver()
    await resolver.start_at("127.0.0.1", site.port)
    began = time.monotonic()
    async with Fetcher(replace(QUICK, delay=0.2), resolver, "refdesk/test") as fetcher:
        for _ in range(3):
            await fetcher.get(site.url)

    assert time.monotonic() - began >= 0.4


async def test_no_connection_is_opened_to_a_private_address(site: Website) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    resolver = GuardedResolver(resolve)
    async with Fetcher(QUICK, resolver, "refdesk/test") as fetcher:
        with pytest.raises(
            AddressRefusedError, match=r"docs\.test has the private address 127\.0\.0\.1"
        ):
            await fetcher.get(f"http://docs.test:{site.port}/")

    assert site.requests == []


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [
        ("120", 120), ("0", 0), ("", None), ("soon", None), ("-5", None), ("9" * 50, 999_999_999),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90), ("Wed, 31 Dec 1969 00:00:00 GMT", 0),
    ],
)  # fmt: skip
def test_the_wait_that_a_server_asks_for_is_a_number_or_a_date(
    stated: str, seconds: float | None
) -> None:
    assert find_wait(WebResponse("", 429, {"retry-after": stated}), now=10) == seconds
