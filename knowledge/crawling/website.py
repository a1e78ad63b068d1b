"""Brings a website into its mirror: opens the connections, reads the entry, runs the crawl."""

from pathlib import Path
from urllib.parse import urlsplit

from knowledge.crawling.crawl_values import CrawlLimits, CrawlOutcome
from knowledge.crawling.crawler import Crawler, Progress, ReadLinks
from knowledge.crawling.errors import CrawlError
from knowledge.crawling.fetcher import Fetcher
from knowledge.crawling.resolution import GuardedResolver, Resolve, resolve_by_system
from knowledge.crawling.site_entry import read_entry
from knowledge.crawling.web_scope import CrawlScope
from knowledge.crawling.website_mirror import WebsiteMirror

AGENT = "refdesk"
"""The name by which robots.txt addresses this crawler."""


async def crawl(
    start: str,
    folder: Path,
    limits: CrawlLimits,
    *,
    user_agent: str,
    read_links: ReadLinks,
    resolve: Resolve = resolve_by_system,
    progress: Progress = lambda _visited, _waiting: None,
) -> tuple[WebsiteMirror, CrawlOutcome]:
    """Crawl a website into the mirror in `folder`; `start` is in its normal form.

    A website that cannot be crawled at all is a failure of the outcome, and its mirror stays as it
    was. Raises `CrawlError` only for a mirror that cannot be read or is in use.
    """
    mirror = WebsiteMirror(folder, start)
    scope = CrawlScope.of(start)
    resolver = GuardedResolver(resolve)
    with mirror.reserve():
        try:
            await resolver.start_at(scope.host, urlsplit(start).port or scope.port)
            async with Fetcher(limits, resolver, user_agent) as fetcher:
                entry = await read_entry(fetcher, scope, limits, AGENT)
                crawler = Crawler(mirror, scope, fetcher, entry, read_links, limits, progress)
                return mirror, await crawler.run()
        except CrawlError as error:
            is_first = not mirror.pages
            return mirror, CrawlOutcome(failures=[(start, str(error))], is_partial=is_first)
