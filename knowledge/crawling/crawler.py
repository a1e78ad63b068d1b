"""Crawls a website from its start page and its sitemaps along its links, within its path and
limits.

Pages are requested conditionally, so that unchanged pages are not sent again. A missing page (404,
410) is removed. If a page cannot be fetched, its last content is kept, and the page is listed with
the reason.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from knowledge.crawling.crawl_values import (
    CrawlError,
    CrawlLimits,
    CrawlOutcome,
    CrawlScope,
)
from knowledge.crawling.site_entry import SiteEntry, read_entry
from knowledge.crawling.website_mirror import MirroredPage, WebsiteMirror
from knowledge.documents.errors import ReadingError
from knowledge.documents.formats import SUFFIXES, is_media
from knowledge.documents.markup.page_links import PageLinks
from knowledge.documents.pictures import LARGEST_PICTURE, recognise_type
from outbound.addresses import normalise
from outbound.errors import OutboundError, RedirectRefusedError
from outbound.fetcher import Fetcher, WebResponse, follow
from outbound.resolution import GuardedResolver, Resolve, resolve_by_system

_GONE = frozenset({404, 410})
_UNCHANGED = 304
_FOUND = 200
_SECONDS_PER_SAVE = 5.0

ReadLinks = Callable[[bytes, str], PageLinks]
"""Returns the links in an HTML page at a URL; raises a `ReadingError`."""
Progress = Callable[[int, int], None]
"""Receives the number of visited and of waiting URLs after each visit."""
_KNOWN_PER_PAGE = 10
"""Number of remembered URLs for each page that may be visited, because a crawler trap generates an
endless number of them.
"""
HTML = ".html"
_BY_TYPE: Mapping[str, str] = {
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "text/markdown": ".md",
    "text/x-markdown": ".md",
    "text/x-rst": ".rst",
    "text/asciidoc": ".adoc",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
}
_VAGUE = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream"})
"""Media types that servers send for unknown content, for which the URL is used instead."""
FOREIGN_SUFFIXES = SUFFIXES - {".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".mbox", ".eml"}
"""Other formats that can be read, except formats for several documents, which may state their
ids.
"""
AGENT = "refdesk"
"""The name of this crawler in robots.txt."""


@dataclass(frozen=True, slots=True, order=True)
class Visit:
    """A URL to visit; `depth` counts links from the start page."""

    depth: int
    number: int
    url: str = field(compare=False)


class Crawler:
    """Crawls one website into its mirror. `fetcher` is open, and `entry` was read from the
    website.
    """

    def __init__(
        self,
        mirror: WebsiteMirror,
        scope: CrawlScope,
        fetcher: Fetcher,
        entry: SiteEntry,
        read_links: ReadLinks,
        limits: CrawlLimits,
        progress: Progress,
    ) -> None:
        self._outcome = CrawlOutcome(warnings=list(entry.warnings))
        self._mirror = mirror
        self._scope = scope
        self._fetcher = fetcher
        self._entry = entry
        self._read_links = read_links
        self._limits = limits
        self._progress = progress
        self._frontier = Frontier(scope, limits)
        self._moved: dict[str, str] = {}
        self._pictures: dict[str, dict[str, str]] = {}
        self._until = time.monotonic() + limits.seconds
        self._next_save = time.monotonic() + _SECONDS_PER_SAVE
        self._left_over = 0
        self._is_first = not mirror.pages

    async def run(self) -> CrawlOutcome:
        """Visit the start page, the pages known from the last crawl, and the pages in sitemaps and
        links.
        """
        self._frontier.add(self._mirror.start, 0)
        for url, page in self._mirror.pages.items():
            self._frontier.add(url, page.depth)
        for url in self._entry.pages:
            self._frontier.add(url, 1)
        async with asyncio.TaskGroup() as tasks:
            workers = [tasks.create_task(self._work()) for _ in range(self._limits.concurrency)]
            await self._frontier.wait_until_empty()
            for worker in workers:
                worker.cancel()
        for old, new in self._moved.items():
            if self._mirror.find(new) is not None:
                self._outcome.removed += self._mirror.remove(old)
        await self._take_pictures()
        self._note_limits()
        is_whole = not self._left_over and not self._outcome.failures
        self._outcome.is_partial = self._is_first and not is_whole
        await asyncio.to_thread(self._mirror.save)
        await asyncio.to_thread(self._mirror.prune)
        return self._outcome

    def _note_pictures(self, links: PageLinks, url: str) -> None:
        """Remember the pictures in a page that are on its host, because pages are fetched first."""
        base = normalise(links.base, url) or url
        targets = ((address, normalise(address, base)) for address in links.pictures)
        self._pictures[url] = {
            address: target
            for address, target in targets
            if target is not None and self._may_show(target)
        }

    def _may_show(self, url: str) -> bool:
        return self._scope.has_host(url) and self._entry.robots.allow(url)

    async def _take_pictures(self) -> None:
        """Fetch the pictures in pages that are new or changed, as long as there is time."""
        taken: dict[str, str] = {}
        for url, targets in sorted(self._pictures.items()):
            page = self._mirror.find(url)
            if page is None:
                continue
            shown = {target: page.pictures[target] for target in targets if target in page.pictures}
            for address, target in targets.items():
                is_over = time.monotonic() >= self._until or self._fetcher.is_exhausted
                if address not in shown and target not in taken and not is_over:
                    taken[target] = await self._take_picture(target)
                if name := shown.get(address) or taken.get(target):
                    shown[address] = name
            self._mirror.show(url, shown)
        if missing := sum(not name for name in taken.values()):
            reason = f"{missing} pictures of its pages could not be fetched"
            self._outcome.warnings.append((self._mirror.start, reason))

    async def _take_picture(self, url: str) -> str:
        """Return the file name of a picture, or an empty string if it cannot be shown."""
        try:
            answer = await follow(self._fetcher, url, self._may_show, most_bytes=LARGEST_PICTURE)
        except (CrawlError, OutboundError, OSError):
            return ""
        if answer.status != _FOUND or recognise_type(answer.body) is None:
            return ""
        return await asyncio.to_thread(self._mirror.put_picture, url, answer.body)

    async def _work(self) -> None:
        while True:
            visit = await self._frontier.take()
            try:
                if self._find_limit():
                    self._left_over += 1
                    continue
                await self._visit(visit)
                self._progress(self._frontier.visited, self._frontier.waiting)
                await self._save_from_time_to_time()
            finally:
                self._frontier.finish()

    async def _save_from_time_to_time(self) -> None:
        now = time.monotonic()
        if now >= self._next_save:
            # Moved before waiting, so that no other worker saves at the same time.
            self._next_save = math.inf
            await asyncio.to_thread(self._mirror.save)
            self._next_save = time.monotonic() + _SECONDS_PER_SAVE

    def _find_limit(self) -> str:
        """Return the limit that ends the crawl, or an empty string."""
        if self._frontier.visited >= self._limits.pages:
            return f"{self._limits.pages} pages"
        if time.monotonic() >= self._until:
            return f"{self._limits.seconds:.3g} s"
        return f"{self._limits.bytes_in_all} bytes" if self._fetcher.is_exhausted else ""

    def _note_limits(self) -> None:
        if self._left_over:
            reason = f"the crawl ended after {self._find_limit()}"
            left = f"further addresses that were found but not opened: {self._left_over}"
            self._outcome.warnings.append((self._mirror.start, f"{reason}; {left}"))
        if self._frontier.too_deep:
            reason = f"more than {self._limits.depth} links away from the start"
            left = f"links that were not followed: {self._frontier.too_deep}, {reason}"
            self._outcome.warnings.append((self._mirror.start, left))

    async def _visit(self, visit: Visit) -> None:
        self._frontier.visited += 1
        if not self._entry.robots.allow(visit.url):
            self._skip(visit, "the robots.txt of the website excludes this page")
            return
        try:
            answer = await follow(
                self._fetcher, visit.url, self._may_open, self._mirror.find_validators
            )
            if answer.url != visit.url:
                self._moved[visit.url] = answer.url
                if not self._frontier.claim(answer.url):
                    return
            await self._receive(answer, visit)
        except RedirectRefusedError as error:
            self._skip(visit, str(error))
        except (CrawlError, OutboundError, OSError) as error:
            self._outcome.failures.append((visit.url, str(error)))

    def _may_open(self, url: str) -> bool:
        return self._scope.contains(url) and self._entry.robots.allow(url)

    def _skip(self, visit: Visit, reason: str) -> None:
        """List a URL that is not a document; for the start URL, this is a failure."""
        is_start = visit.url == self._mirror.start
        (self._outcome.failures if is_start else self._outcome.skipped).append((visit.url, reason))

    async def _receive(self, answer: WebResponse, visit: Visit) -> None:
        known = self._mirror.find(answer.url)
        if answer.status in _GONE:
            self._outcome.removed += self._mirror.remove(answer.url)
            self._skip(visit, f"the page does not exist ({answer.status})")
        elif answer.status == _UNCHANGED and known is not None:
            self._outcome.unchanged += 1
            if known.suffix == HTML:
                body = await asyncio.to_thread(self._mirror.read, known)
                links = await self._find_links(body, answer.url)
                self._follow_links(links, answer.url, visit)
                self._note_pictures(links, answer.url)
        elif answer.status == _FOUND:
            await self._keep(answer, known, visit)
        else:
            reason = f"the server responded with status {answer.status}"
            self._outcome.failures.append((visit.url, reason))

    async def _keep(self, answer: WebResponse, known: MirroredPage | None, visit: Visit) -> None:
        suffix = find_suffix(answer.media_type, answer.url)
        if suffix is None:
            self._skip(
                visit, f"there is no reader for {answer.media_type or 'content without a type'}"
            )
            return
        links = PageLinks()
        if suffix == HTML:
            links = await self._find_links(answer.body, answer.url)
            self._follow_links(links, answer.url, visit)
        wishes = {*links.robots, *_split_words(answer.header("x-robots-tag"))}
        if wishes & {"noindex", "none"}:
            self._mirror.remove(answer.url)
            self._skip(visit, "the page excludes itself (noindex)")
            return
        await asyncio.to_thread(
            self._mirror.put,
            answer.url,
            answer.body,
            suffix=suffix,
            etag=answer.header("etag"),
            last_modified=answer.header("last-modified"),
            depth=visit.depth,
            canonical=self._find_canonical(links, answer.url),
        )
        self._note_pictures(links, answer.url)
        self._outcome.fetched += 1

    async def _find_links(self, body: bytes, url: str) -> PageLinks:
        try:
            return await asyncio.to_thread(self._read_links, body, url)
        except ReadingError as error:
            self._outcome.warnings.append(
                (url, f"the links of this page were not followed: {error}")
            )
            return PageLinks()

    def _follow_links(self, links: PageLinks, url: str, visit: Visit) -> None:
        if {"nofollow", "none"} & set(links.robots):
            return
        base = normalise(links.base, url) or url
        for link in (*links.links, links.canonical):
            target = normalise(link, base) if link else None
            if target is not None and may_be_page(target):
                self._frontier.add(target, visit.depth + 1)

    def _find_canonical(self, links: PageLinks, url: str) -> str:
        """Return the different URL that a page states as canonical, if it belongs to the crawl."""
        if not links.canonical:
            return ""
        base = normalise(links.base, url) or url
        canonical = normalise(links.canonical, base)
        if canonical is None or canonical == url or not self._may_open(canonical):
            return ""
        return canonical


class Frontier:
    """The visited and the waiting URLs in a crawl."""

    def __init__(self, scope: CrawlScope, limits: CrawlLimits) -> None:
        self.visited = 0
        self.too_deep = 0
        self._scope = scope
        self._limits = limits
        self._known: set[str] = set()
        self._waiting: asyncio.PriorityQueue[Visit] = asyncio.PriorityQueue()

    @property
    def waiting(self) -> int:
        """The number of waiting URLs."""
        return self._waiting.qsize()

    def add(self, url: str, depth: int) -> None:
        """Add a URL in the scope, unless it is known, too deep, or exceeds the maximum number."""
        if url in self._known or not self._scope.contains(url):
            return
        if depth > self._limits.depth:
            self.too_deep += 1
            return
        if self.claim(url):
            self._waiting.put_nowait(Visit(depth, len(self._known), url))

    def claim(self, url: str) -> bool:
        """Register a URL as known; return False if it already was, or if there are too many."""
        if url in self._known or len(self._known) >= self._limits.pages * _KNOWN_PER_PAGE:
            return False
        self._known.add(url)
        return True

    async def take(self) -> Visit:
        """Wait for the next visit; `finish` must be called afterwards."""
        return await self._waiting.get()

    def finish(self) -> None:
        """End a visit."""
        self._waiting.task_done()

    async def wait_until_empty(self) -> None:
        """Wait until all URLs were visited and led to no further ones."""
        await self._waiting.join()


def find_suffix(media_type: str, url: str) -> str | None:
    """Return the suffix that determines the reader for some content, or None if there is no
    reader.
    """
    if media_type in _BY_TYPE:
        return _BY_TYPE[media_type]
    stated = PurePosixPath(urlsplit(url).path).suffix.lower()
    if media_type in _VAGUE and stated in FOREIGN_SUFFIXES:
        return stated
    return ".txt" if media_type == "text/plain" and not is_media(stated) else None


def may_be_page(url: str) -> bool:
    """Return whether a URL may lead to text, unlike pictures, recordings, and archives."""
    return not is_media(PurePosixPath(urlsplit(url).path).suffix)


async def crawl(
    start: str,
    folder: Path,
    limits: CrawlLimits,
    *,
    user_agent: str,
    read_links: ReadLinks,
    resolve: Resolve = resolve_by_system,
    progress: Progress = lambda _visited, _waiting: None,
    is_public: bool = False,
) -> tuple[WebsiteMirror, CrawlOutcome]:
    """Crawl a website into the mirror in `folder`; `start` is in normalized form.

    If a website cannot be crawled at all, the outcome contains a failure, and the mirror is not
    changed. Raises `CrawlError` only if the mirror cannot be read or is in use. If `is_public` is
    true, a start URL with a private address is rejected as well.
    """
    mirror = WebsiteMirror(folder, start)
    scope = CrawlScope.of(start)
    resolver = GuardedResolver(resolve)
    with mirror.reserve():
        try:
            if not is_public:
                await resolver.start_at(scope.host, urlsplit(start).port or scope.port)
            async with Fetcher(limits, resolver, user_agent) as fetcher:
                entry = await read_entry(fetcher, scope, limits, AGENT)
                crawler = Crawler(mirror, scope, fetcher, entry, read_links, limits, progress)
                return mirror, await crawler.run()
        except (CrawlError, OutboundError) as error:
            is_first = not mirror.pages
            return mirror, CrawlOutcome(failures=[(start, str(error))], is_partial=is_first)


def _split_words(header: str) -> list[str]:
    return [word.strip() for word in header.lower().split(",")]
