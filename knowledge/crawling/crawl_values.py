"""The limits of a crawl, its result, and its errors.

CrawlError
├── AddressRefusedError   the address may not be opened: a private network, or no address at all
└── FetchError            the server cannot be reached, or its answer cannot be used
"""

from dataclasses import dataclass, field

from knowledge.errors import KnowledgeError


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """The limits of a crawl; `depth` counts links from the start, which has depth 0.

    `delay` are the seconds between two requests, unless robots.txt states more;
    `seconds_per_page` limit one request with its body.
    """

    pages: int = 2000
    depth: int = 20
    bytes_per_page: int = 20_000_000
    bytes_in_all: int = 1_000_000_000
    seconds: float = 3600.0
    seconds_per_page: float = 30.0
    delay: float = 0.5
    concurrency: int = 2
    longest_wait: float = 60.0
    """The longest wait that a server may ask for, by `Retry-After` or `Crawl-delay`."""
    attempts: int = 3


@dataclass(slots=True)
class CrawlOutcome:
    """The result of a crawl; `failures`, `skipped` and `warnings` are addresses with the reason.

    `is_partial`: not all pages were visited, and no earlier crawl knows the others.
    """

    fetched: int = 0
    unchanged: int = 0
    removed: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    is_partial: bool = False


class CrawlError(KnowledgeError):
    """A website cannot be crawled; the message names the expected and the found."""


class AddressRefusedError(CrawlError):
    """An address that a crawl may not open."""


class FetchError(CrawlError):
    """A page cannot be fetched: its server cannot be reached, or sends too much, or too slowly."""
