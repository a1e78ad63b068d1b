"""The values of a crawl: its scope, its limits, its result, and its error."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit

from knowledge.errors import KnowledgeError
from outbound.addresses import PORTS, normalise
from outbound.errors import AddressRefusedError
from outbound.fetcher import FetchLimits


@dataclass(frozen=True, slots=True)
class CrawlLimits(FetchLimits):
    """The limits of a crawl; `depth` counts links from the start page, which has depth 0."""

    pages: int = 2000
    depth: int = 20
    seconds: float = 3600.0
    concurrency: int = 2


@dataclass(slots=True)
class CrawlOutcome:
    """The result of a crawl; `failures`, `skipped` and `warnings` contain URLs with the reason.

    `is_partial` is true if not all pages were visited, and the others are not known from earlier
    crawls.
    """

    fetched: int = 0
    unchanged: int = 0
    removed: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    is_partial: bool = False


class CrawlError(KnowledgeError):
    """The mirror of a website cannot be read, or is in use."""


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """The pages in a crawl: those on the host of the start URL, at or below its path."""

    scheme: str
    host: str
    port: int
    folder: str

    @classmethod
    def of(cls, start: str) -> Self:
        """Return the scope of a normalized URL; for a file, this is its folder."""
        parts = urlsplit(start)
        name = parts.path.rpartition("/")[2]
        folder = parts.path.removesuffix(name) if PurePosixPath(name).suffix else parts.path
        return cls(parts.scheme, parts.hostname or "", _port(parts), folder)

    def contains(self, address: str) -> bool:
        """Return whether a normalized URL is on the host and below the path."""
        parts = urlsplit(address)
        return self.has_host(address) and (
            parts.path == self.folder.rstrip("/")
            or parts.path.startswith(f"{self.folder.rstrip('/')}/")
        )

    def has_host(self, address: str) -> bool:
        """Return whether a URL is on the host; a change from http to https is allowed."""
        parts = urlsplit(address)
        here = (self.scheme, self.port)
        is_secured = here == ("http", 80) and (parts.scheme, _port(parts)) == ("https", 443)
        return parts.hostname == self.host and ((parts.scheme, _port(parts)) == here or is_secured)

    def locate(self, path: str) -> str:
        """Return the URL of a path at the root of the host, such as `/robots.txt`."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        is_default = PORTS[self.scheme] == self.port
        return f"{self.scheme}://{shown}{'' if is_default else f':{self.port}'}{path}"

    def name_file(self, address: str) -> PurePosixPath:
        """Return a URL in the scope as a relative path; a folder becomes its `index`."""
        parts = urlsplit(address)
        below = parts.path.removeprefix(self.folder.rstrip("/")).lstrip("/")
        names = [_clean_name(unquote(name)) for name in below.split("/")]
        if not names[-1]:
            names[-1] = "index"
        if parts.query:
            names[-1] = f"{names[-1]}?{_clean_name(unquote(parts.query))}"
        return PurePosixPath(*(name for name in names if name))


def check_start(address: str) -> str:
    """Return the start URL in normalized form; raises `AddressRefusedError`."""
    start = normalise(address)
    if start is None:
        raise AddressRefusedError(
            f"expected a web address such as https://docs.example.com/, found {address!r}"
        )
    return start


def _clean_name(name: str) -> str:
    cleaned = name.replace("/", "_").replace("\0", "").strip()
    return "_" if cleaned in (".", "..") else cleaned[:200]


def _port(parts: SplitResult) -> int:
    return parts.port if parts.port is not None else PORTS.get(parts.scheme, 0)
