"""Reads robots.txt and the sitemaps of a website."""

import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from protego import Protego

from knowledge.crawling.crawl_values import (
    CrawlLimits,
    CrawlScope,
)
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.office.zipped_xml import parse_xml
from outbound.addresses import normalise
from outbound.errors import FetchError, OutboundError, RedirectRefusedError
from outbound.fetcher import Fetcher, follow

_LARGEST_ROBOTS = 512_000
"""Maximum number of bytes of robots.txt that are read, which is the minimum required by RFC
9309.
"""
_MOST_SITEMAPS = 100
_MISSING = range(400, 500)
_BUSY = 429
_FOUND = 200
MOST_SITEMAPS = 200
"""Maximum number of sitemaps of one website; a sitemap that lists itself is read only once."""
MOST_ADDRESSES = 50_000
"""Maximum number of URLs in a sitemap, as defined by the standard."""
_GZIP = b"\x1f\x8b"


class RobotsRules:
    """The rules in a robots.txt for one crawler; `agent` is the name by which the rules refer to
    it.
    """

    def __init__(self, text: str, agent: str) -> None:
        self._rules = Protego.parse(text)
        self._agent = agent

    def allow(self, url: str) -> bool:
        """Return whether the crawler may open a URL."""
        return self._rules.can_fetch(url, self._agent)

    @property
    def delay(self) -> float:
        """The seconds between two requests that the website requires, or 0 if it does not state
        any.
        """
        rate = self._rules.request_rate(self._agent)
        by_rate = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
        return max(0.0, self._rules.crawl_delay(self._agent) or 0.0, by_rate)

    def list_sitemaps(self) -> Iterator[str]:
        """Yield the URLs of sitemaps as stated, which may be on any host."""
        for number, address in enumerate(self._rules.sitemaps):
            if number < _MOST_SITEMAPS:
                yield address


@dataclass(slots=True)
class SiteEntry:
    """The rules of a website and the pages in its sitemaps; `warnings` lists unreadable
    sitemaps.
    """

    robots: RobotsRules
    pages: list[str] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Sitemap:
    """The URLs in a sitemap, as stated: page URLs, and the URLs of further sitemaps."""

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


async def read_entry(
    fetcher: Fetcher, scope: CrawlScope, limits: CrawlLimits, agent: str
) -> SiteEntry:
    """Read robots.txt and the sitemaps of a website.

    Raises `OutboundError` if robots.txt cannot be fetched, because it is then unknown which pages
    may be opened. A website without a robots.txt allows everything.
    """
    robots = RobotsRules(await _read_robots(fetcher, scope), agent)
    fetcher.delay = max(limits.delay, min(robots.delay, limits.longest_wait))
    entry = SiteEntry(robots)
    stated = list(robots.list_sitemaps())
    await _read_sitemaps(fetcher, scope, limits, entry, stated)
    return entry


def read_sitemap(data: bytes, *, most_bytes: int) -> Sitemap:
    """Return the URLs in a sitemap, which may be XML, gzipped XML, or plain text.

    Raises `FetchError` for anything else, and if the unpacked size exceeds `most_bytes`.
    """
    if data.startswith(_GZIP):
        data = _unpack(data, most_bytes)
    if not data.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<"):
        return Sitemap(pages=_read_lines(data))
    try:
        root = parse_xml(data, "a sitemap")
    except WrongFormatError as error:
        raise FetchError(str(error)) from error
    sitemap = Sitemap()
    kind = root.tag.rpartition("}")[2]
    wanted = {"urlset": sitemap.pages, "sitemapindex": sitemap.sitemaps}.get(kind)
    if wanted is None:
        raise FetchError(f"expected a sitemap, found {kind[:40]!r}")
    for entry in root[:MOST_ADDRESSES]:
        for part in entry:
            if part.tag.rpartition("}")[2] == "loc" and part.text:
                wanted.append(part.text.strip())
    return sitemap


async def _read_robots(fetcher: Fetcher, scope: CrawlScope) -> str:
    address = scope.locate("/robots.txt")
    try:
        answer = await follow(fetcher, address, scope.has_host, most_bytes=_LARGEST_ROBOTS)
    except RedirectRefusedError:
        return ""
    except FetchError as error:
        raise FetchError(f"{address} cannot be read, so no page was opened: {error}") from error
    if answer.status in _MISSING and answer.status != _BUSY:
        return ""
    if answer.status != _FOUND:
        raise FetchError(
            f"{address} cannot be read, so no page was opened: the server responded with status "
            f"{answer.status}"
        )
    return answer.body.decode("utf-8", "replace")


async def _read_sitemaps(
    fetcher: Fetcher,
    scope: CrawlScope,
    limits: CrawlLimits,
    entry: SiteEntry,
    stated: list[str],
) -> None:
    waiting = deque(stated or [scope.locate("/sitemap.xml")])
    known: set[str] = set()
    pages: dict[str, None] = {}
    while waiting and len(known) < MOST_SITEMAPS and len(pages) < limits.pages:
        address = normalise(waiting.popleft())
        if address is None or address in known or not scope.has_host(address):
            continue
        known.add(address)
        try:
            answer = await follow(fetcher, address, scope.has_host)
            if answer.status != _FOUND:
                if stated:
                    reason = (
                        f"the sitemap was ignored: the server responded with status {answer.status}"
                    )
                    entry.warnings.append((address, reason))
                continue
            sitemap = read_sitemap(answer.body, most_bytes=limits.bytes_per_page)
        except OutboundError as error:
            entry.warnings.append((address, f"the sitemap was ignored: {error}"))
            continue
        waiting.extend(sitemap.sitemaps)
        for page in sitemap.pages:
            place = normalise(page)
            if place is not None and scope.contains(place):
                pages[place] = None
    entry.pages = list(pages)


def _read_lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").splitlines()[:MOST_ADDRESSES]
    return [line.strip() for line in lines if line.strip().startswith(("http://", "https://"))]


def _unpack(data: bytes, most_bytes: int) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    try:
        unpacked = inflater.decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise FetchError(f"the gzip file of the sitemap is damaged: {error}") from error
    if len(unpacked) > most_bytes:
        raise FetchError(
            f"a sitemap can have at most {most_bytes} bytes unpacked; this one has more"
        )
    return unpacked
