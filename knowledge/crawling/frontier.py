"""Orders the pages that a crawl has still to visit: each address once, the nearest ones first."""

import asyncio
from dataclasses import dataclass, field

from knowledge.crawling.crawl_values import CrawlLimits
from knowledge.crawling.web_scope import CrawlScope

_KNOWN_PER_PAGE = 10
"""Addresses that are remembered for each page that may be visited: a trap makes endless ones."""


@dataclass(frozen=True, slots=True, order=True)
class Visit:
    """An address to visit; `depth` counts links from the start."""

    depth: int
    number: int
    url: str = field(compare=False)


class Frontier:
    """The addresses of one crawl, those visited and those waiting."""

    def __init__(self, scope: CrawlScope, limits: CrawlLimits) -> None:
        self.visited = 0
        self.too_deep = 0
        self._scope = scope
        self._limits = limits
        self._known: set[str] = set()
        self._waiting: asyncio.PriorityQueue[Visit] = asyncio.PriorityQueue()

    @property
    def waiting(self) -> int:
        """The number of addresses that wait."""
        return self._waiting.qsize()

    def add(self, url: str, depth: int) -> None:
        """Add an address of the scope, unless it is known, too far away, or one too many."""
        if url in self._known or not self._scope.contains(url):
            return
        if depth > self._limits.depth:
            self.too_deep += 1
            return
        if self.claim(url):
            self._waiting.put_nowait(Visit(depth, len(self._known), url))

    def claim(self, url: str) -> bool:
        """Register an address as known; return False if it was, or if there are too many."""
        if url in self._known or len(self._known) >= self._limits.pages * _KNOWN_PER_PAGE:
            return False
        self._known.add(url)
        return True

    async def take(self) -> Visit:
        """Wait for the next visit; `finish` must follow it."""
        return await self._waiting.get()

    def finish(self) -> None:
        """End a visit."""
        self._waiting.task_done()

    async def wait_until_empty(self) -> None:
        """Wait until all addresses were visited, and led to no further ones."""
        await self._waiting.join()
