"""What belongs to a crawl: its addresses in one form, its limits, its result, and its errors.

CrawlError
├── AddressRefusedError   the address may not be opened: a private network, or no address at all
└── FetchError            the server cannot be reached, or its answer cannot be used
"""

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

from knowledge.errors import KnowledgeError

LONGEST_ADDRESS = 2000
_PORTS = {"http": 80, "https": 443}
_IN_PATH = "/%:@!$&()*+,;=~-._"
_IN_QUERY = f"{_IN_PATH}?"
_DOT = re.compile(r"%2e", re.IGNORECASE)
_TRACKING = ("utm_", "gclid=", "fbclid=", "msclkid=", "mc_cid=", "mc_eid=")


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


def normalise(address: str, base: str = "") -> str | None:
    """Return an absolute web address in one form, without its fragment; None if it is none.

    Two addresses of one page become equal as far as their text shows it: host in lower case, no
    default port, no dots in the path, no parameters that only count visitors.
    """
    try:
        parts = urlsplit(urljoin(base, address.strip()))
        host, port = (parts.hostname or "").encode("idna").decode("ascii").lower(), parts.port
    except (ValueError, UnicodeError):
        return None
    if parts.scheme not in _PORTS or not host or "@" in parts.netloc:
        return None
    shown = f"[{host}]" if ":" in host else host
    place = shown if port in (None, _PORTS[parts.scheme]) else f"{shown}:{port}"
    path = quote(_remove_dots(parts.path), safe=_IN_PATH)
    whole = urlunsplit((parts.scheme, place, path, _clean_query(parts.query), ""))
    return whole if len(whole) <= LONGEST_ADDRESS and whole.isprintable() else None


def check_start(address: str) -> str:
    """Return the address of a start in its normal form; raise `AddressRefusedError`."""
    start = normalise(address)
    if start is None:
        raise AddressRefusedError(
            f"expected a web address such as https://docs.example.com/, found {address!r}"
        )
    return start


def _remove_dots(path: str) -> str:
    """Return a path without `.` and `..`, whichever way these are written."""
    kept: list[str] = []
    parts = _DOT.sub(".", path).split("/")
    for part in parts[1:]:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if parts[-1] in (".", "..") and kept:
        kept.append("")
    return f"/{'/'.join(kept)}"


def _clean_query(query: str) -> str:
    kept = (part for part in query.split("&") if not part.lower().startswith(_TRACKING))
    return quote("&".join(kept), safe=_IN_QUERY)


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """The pages of a crawl: those on the host of its start, at or below its path."""

    scheme: str
    host: str
    port: int
    folder: str

    @classmethod
    def of(cls, start: str) -> Self:
        """Return the scope of a normalised address; that of a file is its folder."""
        parts = urlsplit(start)
        name = parts.path.rpartition("/")[2]
        folder = parts.path.removesuffix(name) if PurePosixPath(name).suffix else parts.path
        return cls(parts.scheme, parts.hostname or "", _port(parts), folder)

    def contains(self, address: str) -> bool:
        """Return whether a normalised address is on the host and below the path."""
        parts = urlsplit(address)
        return self.has_host(address) and (
            parts.path == self.folder.rstrip("/")
            or parts.path.startswith(f"{self.folder.rstrip('/')}/")
        )

    def has_host(self, address: str) -> bool:
        """Return whether an address is on the host; a step from http to https stays on it."""
        parts = urlsplit(address)
        here = (self.scheme, self.port)
        is_secured = here == ("http", 80) and (parts.scheme, _port(parts)) == ("https", 443)
        return parts.hostname == self.host and ((parts.scheme, _port(parts)) == here or is_secured)

    def locate(self, path: str) -> str:
        """Return the address of a path at the root of the host, such as `/robots.txt`."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        is_default = _PORTS[self.scheme] == self.port
        return f"{self.scheme}://{shown}{'' if is_default else f':{self.port}'}{path}"

    def name_file(self, address: str) -> PurePosixPath:
        """Return an address of the scope as a relative path, a folder as its `index`."""
        parts = urlsplit(address)
        below = parts.path.removeprefix(self.folder.rstrip("/")).lstrip("/")
        names = [_clean_name(unquote(name)) for name in below.split("/")]
        if not names[-1]:
            names[-1] = "index"
        if parts.query:
            names[-1] = f"{names[-1]}?{_clean_name(unquote(parts.query))}"
        return PurePosixPath(*(name for name in names if name))


def _clean_name(name: str) -> str:
    cleaned = name.replace("/", "_").replace("\0", "").strip()
    return "_" if cleaned in (".", "..") else cleaned[:200]


def _port(parts: SplitResult) -> int:
    return parts.port if parts.port is not None else _PORTS.get(parts.scheme, 0)
