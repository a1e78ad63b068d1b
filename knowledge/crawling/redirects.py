"""Follows redirects step by step: each target is checked before it is opened."""

from collections.abc import Callable

from knowledge.crawling.errors import CrawlError, FetchError
from knowledge.crawling.fetcher import REDIRECTS, Fetcher, WebResponse
from knowledge.crawling.web_scope import normalise
from knowledge.crawling.website_mirror import MirroredPage

MOST_REDIRECTS = 5

Allow = Callable[[str], bool]
"""Returns whether an address may be opened."""
FindKnown = Callable[[str], MirroredPage | None]
"""Returns what the last crawl knows of an address."""


class RedirectRefusedError(CrawlError):
    """A redirect leads to an address that may not be opened, or was opened before."""


async def follow(
    fetcher: Fetcher,
    url: str,
    allow: Allow,
    find_known: FindKnown = lambda _url: None,
    *,
    most_bytes: int | None = None,
) -> WebResponse:
    """Return the first answer that is no redirect; its `url` is the address that gave it.

    Raises `RedirectRefusedError`, `FetchError` and `AddressRefusedError`.
    """
    trail = [url]
    while len(trail) <= MOST_REDIRECTS + 1:
        known = find_known(trail[-1])
        answer = await fetcher.get(
            trail[-1],
            etag=known.etag if known is not None else "",
            last_modified=known.last_modified if known is not None else "",
            most_bytes=most_bytes,
        )
        if answer.status not in REDIRECTS:
            return answer
        target = normalise(answer.header("location"), trail[-1])
        if target is None:
            raise FetchError("it redirects to no web address")
        if target in trail:
            raise FetchError(f"it redirects in a circle: to {target} again")
        if not allow(target):
            raise RedirectRefusedError(f"it redirects to {target}, which is not part of the crawl")
        trail.append(target)
    raise FetchError(f"it redirects more than {MOST_REDIRECTS} times")
