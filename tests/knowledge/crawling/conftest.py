from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knowledge.crawling.crawl_values import CrawlLimits, CrawlOutcome
from knowledge.crawling.crawler import crawl
from knowledge.crawling.website_mirror import WebsiteMirror
from knowledge.isolation.reader_process import ReaderProcess
from tests.support.website import Website, serve_website

QUICK = CrawlLimits(delay=0.0, seconds=30.0, seconds_per_page=5.0)
Crawl = Callable[..., Awaitable[tuple[WebsiteMirror, CrawlOutcome]]]


@pytest.fixture
def site() -> Iterator[Website]:
    with serve_website() as serving:
        yield serving


@pytest.fixture
def crawl_site(site: Website, tmp_path: Path, reader: ReaderProcess) -> Crawl:
    """Crawls the website from a path, into the same mirror each time."""

    async def run(path: str = "/", **limits: Any) -> tuple[WebsiteMirror, CrawlOutcome]:
        return await crawl(
            f"{site.url}{path}",
            tmp_path / "mirror",
            replace(QUICK, **limits),
            user_agent="refdesk/test",
            read_links=reader.links,
        )

    return run


def list_paths(mirror: WebsiteMirror, site: Website) -> list[str]:
    """Return the paths of the documents of a mirror."""
    return [url.removeprefix(site.url) for url, _ in mirror.list_documents()]
