"""Crawls of a website on a local socket."""

import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from knowledge.crawling.crawl_values import CrawlOutcome
from tests.knowledge.crawling.conftest import Crawl, list_paths
from tests.support.pictures import make_picture
from tests.support.website import WebPage, Website, make_html

pytestmark = pytest.mark.slow


def list_reasons(found: list[tuple[str, str]], site: Website) -> dict[str, str]:
    return {url.removeprefix(site.url): reason for url, reason in found}


def counts(outcome: CrawlOutcome) -> tuple[int, int, int]:
    return outcome.fetched, outcome.unchanged, outcome.removed


async def test_pages_below_the_start_are_found_by_their_links(
    site: Website, crawl_site: Crawl
) -> None:
    site.pages = {
        "/docs/": make_html("Guide", "Welcome.", "setup", "/blog", "https://other.test/docs/"),
        "/docs/setup": make_html("Setup", "Install it.", "deep/er/", "../docs/?utm_source=mail"),
        "/docs/deep/er/": make_html("Deeper", "Here.", "/docs/setup#anchor", "/docsearch"),
        "/blog": make_html("Blog", "News."),
    }

    mirror, outcome = await crawl_site("/docs/")

    assert list_paths(mirror, site) == ["/docs/", "/docs/deep/er/", "/docs/setup"]
    assert counts(outcome) == (3, 0, 0)
    assert {path for path, _ in site.requests} == {
        "/robots.txt", "/sitemap.xml", "/docs/", "/docs/setup", "/docs/deep/er/",
    }  # fmt: skip


async def test_only_changed_pages_are_sent_again_and_gone_pages_removed(
    site: Website, crawl_site: Crawl
) -> None:
    site.pages = {
        "/": make_html("Start", "Welcome.", "a", "b", "c"),
        "/a": make_html("A", "One.", "d"),
        "/b": make_html("B", "Two."),
        "/c": make_html("C", "Three."),
        "/d": make_html("D", "Four."),
    }
    await crawl_site()
    site.take_requests()
    site.pages["/b"] = make_html("B", "Two and a half.")
    site.pages["/c"] = WebPage(status=410)

    mirror, outcome = await crawl_site()

    assert list_paths(mirror, site) == ["/", "/a", "/b", "/d"]
    assert counts(outcome) == (1, 3, 1)
    assert [request for request in site.take_requests() if request[1] == 200] == [("/b", 200)]


async def test_pictures_of_the_host_are_fetched_once_and_go_with_their_pages(
    site: Website, crawl_site: Crawl
) -> None:
    panel = make_picture("green")
    shown = "<img src='/img/panel.png'><img src='https://spy.test/a.png'><img src='gone.png'>"
    site.pages = {
        "/": make_html("Start", f"Welcome. {shown}", "a"),
        "/a": make_html("A", f"One. {shown}"),
        "/img/panel.png": WebPage(panel, "image/png"),
    }
    mirror, outcome = await crawl_site()
    first = [path for path, _ in site.take_requests()]
    await crawl_site()
    again = [path for path, _ in site.take_requests()]

    files = [mirror.locate_pictures(page) for _, page in mirror.list_documents()]
    assert [list(file) for file in files] == [["/img/panel.png"]] * 2
    location = files[0]["/img/panel.png"]
    assert location.read_bytes() == panel
    assert (first.count("/img/panel.png"), again.count("/img/panel.png")) == (1, 0)
    assert [reason for _, reason in outcome.warnings] == [
        "1 pictures of its pages could not be fetched"
    ]
    site.pages = {"/": make_html("Start", "Welcome.")}
    await crawl_site()
    assert not location.exists()


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_a_page_that_cannot_be_fetched_stays_and_is_listed(
    site: Website, crawl_site: Crawl, status: int
) -> None:
    site.pages = {
        "/": make_html("Start", "Welcome.", "a", "b"),
        "/a": make_html("A", "One."),
        "/b": make_html("B", "Two."),
    }
    await crawl_site()
    site.pages["/a"] = WebPage(status=status)
    site.pages["/b"] = WebPage(status=404)

    mirror, outcome = await crawl_site()

    assert list_paths(mirror, site) == ["/", "/a"]
    assert list_reasons(outcome.failures, site) == {
        "/a": f"the server responded with status {status}"
    }


async def test_robots_txt_is_obeyed_and_its_sitemaps_are_read(
    site: Website, crawl_site: Crawl
) -> None:
    robots = f"User-agent: *\nDisallow: /*secret\nAllow: /a/secret$\nSitemap: {site.url}/map.xml\n"
    site.pages = {
        "/robots.txt": WebPage(robots.encode(), "text/plain"),
        "/": make_html("Start", "Welcome.", "a/secret", "b/secret"),
        "/a/secret": make_html("A", "Allowed."),
        "/b/secret": make_html("B", "Not allowed."),
        "/map.xml": make_sitemap("sitemapindex", f"{site.url}/map.xml", f"{site.url}/pages.xml"),
        "/pages.xml": make_sitemap("urlset", f"{site.url}/unlinked", "https://other.test/x"),
        "/unlinked": make_html("Unlinked", "Only the sitemap knows it."),
    }

    mirror, outcome = await crawl_site()

    assert list_paths(mirror, site) == ["/", "/a/secret", "/unlinked"]
    assert list_reasons(outcome.skipped, site) == {
        "/b/secret": "the robots.txt of the website excludes this page"
    }
    assert [path for path, _ in site.requests].count("/map.xml") == 1


def make_sitemap(kind: str, *addresses: str) -> WebPage:
    entries = "".join(f"<url><loc>{address}</loc></url>" for address in addresses)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return WebPage(f'<{kind} xmlns="{space}">{entries}</{kind}>'.encode(), "application/xml")


async def test_nothing_is_opened_when_robots_txt_cannot_be_read(
    site: Website, crawl_site: Crawl
) -> None:
    site.pages = {
        "/": make_html("Start", "Welcome."),
    }
    await crawl_site()
    site.pages["/robots.txt"] = WebPage(status=500)
    site.take_requests()

    mirror, outcome = await crawl_site()

    assert site.take_requests() == [("/robots.txt", 500)]
    assert list_paths(mirror, site) == ["/"]
    ((_, reason),) = outcome.failures
    assert "robots.txt cannot be read, so no page was opened" in reason


async def test_a_page_is_kept_once_under_its_canonical_address(
    site: Website, crawl_site: Crawl
) -> None:
    def canonical(path: str) -> str:
        return f'<link rel="canonical" href="{path}">'

    site.pages = {
        "/": make_html("Start", "Welcome.", "a?print=1", "b", "lost", "abroad"),
        "/a?print=1": make_html("A", "One.", head=canonical("/a")),
        "/a": make_html("A", "One.", head=canonical("/a")),
        "/b": make_html("B", "Two.", head=canonical("/c")),
        "/c": make_html("C", "Three.", head=canonical("/b")),
        "/lost": make_html("Lost", "Four.", head=canonical("/nowhere")),
        "/abroad": make_html("Abroad", "Five.", head=canonical("https://other.test/abroad")),
    }

    mirror, _ = await crawl_site()

    assert list_paths(mirror, site) == ["/", "/a", "/abroad", "/b", "/c", "/lost"]


async def test_redirects_stay_within_the_crawl(site: Website, crawl_site: Crawl) -> None:
    def redirect(to: str) -> WebPage:
        return WebPage(status=302, headers={"Location": to})

    site.pages = {
        "/docs/": make_html("Start", "Welcome.", "old", "out", "far", "circle", "meta"),
        "/docs/old": redirect("/docs/new"),
        "/docs/new": make_html("New", "Moved here."),
        "/docs/out": redirect("/private"),
        "/private": make_html("Private", "Not below the start."),
        "/docs/far": redirect("http://169.254.169.254/latest/meta-data/"),
        "/docs/circle": redirect("/docs/circle2"),
        "/docs/circle2": redirect("/docs/circle"),
        "/docs/meta": redirect("file:///etc/passwd"),
    }

    mirror, outcome = await crawl_site("/docs/")

    assert list_paths(mirror, site) == ["/docs/", "/docs/new"]
    assert list_reasons(outcome.skipped, site) == {
        "/docs/out": f"the page redirects to {site.url}/private, which is not part of the crawl",
        "/docs/far": "the page redirects to http://169.254.169.254/latest/meta-data/, which is "
        "not part of the crawl",
    }
    assert list_reasons(outcome.failures, site) == {
        "/docs/circle": f"the page redirects in a loop, to {site.url}/docs/circle again",
        "/docs/meta": "the page redirects to a URL that is not a web address",
    }


async def test_a_page_that_moved_is_kept_once(site: Website, crawl_site: Crawl) -> None:
    site.pages = {"/": make_html("Start", "Welcome.", "a"), "/a": make_html("A", "One.")}
    await crawl_site()
    site.pages["/a"] = WebPage(status=301, headers={"Location": "/b"})
    site.pages["/b"] = make_html("A", "One.")

    mirror, outcome = await crawl_site()

    assert list_paths(mirror, site) == ["/", "/b"]
    assert outcome.removed == 1


async def test_limits_of_pages_and_depth_are_kept_and_said(
    site: Website, crawl_site: Crawl
) -> None:
    site.pages = {
        f"/{'x' * depth}": make_html("Page", f"Page {depth}.", f"/{'x' * (depth + 1)}")
        for depth in range(10)
    }

    _, shallow = await crawl_site(depth=2)
    assert shallow.fetched == 3
    assert "more than 2 links away from the start" in shallow.warnings[0][1]
    _, few = await crawl_site(pages=4)

    assert counts(few) == (1, 3, 0)
    assert [reason for _, reason in few.warnings] == [
        "the crawl ended after 4 pages; further addresses that were found but not opened: 1"
    ]


async def test_limits_of_time_and_bytes_end_a_crawl(site: Website, crawl_site: Crawl) -> None:
    links = [f"/{number}" for number in range(9)]
    site.pages = {link: make_html("Page", "x" * 1000) for link in links}
    site.pages["/"] = make_html("Start", "Welcome.", *links)

    _, in_bytes = await crawl_site(bytes_in_all=5000, concurrency=1)
    _, in_time = await crawl_site(seconds=0.0)

    assert in_bytes.fetched < 6
    assert "5000 bytes" in str(in_bytes.failures)
    assert "the crawl ended after 5000 bytes" in in_bytes.warnings[0][1]
    assert in_time.fetched == 0


async def test_a_page_that_is_too_large_or_never_ends_costs_itself_alone(
    site: Website, crawl_site: Crawl
) -> None:
    def send_endlessly(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"<p>more</p>" * 100)
        except OSError:
            return

    def never_end(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.end_headers()
        request.wfile.write(b"<p>wait</p>")
        request.wfile.flush()
        request.rfile.read()

    site.pages = {
        "/": make_html("Start", "Welcome.", "large", "endless", "good"),
        "/large": WebPage(handle=send_endlessly),
        "/endless": WebPage(handle=never_end),
        "/good": make_html("Good", "Read."),
    }
    began = time.monotonic()

    mirror, outcome = await crawl_site(bytes_per_page=100_000, seconds_per_page=0.5)

    assert list_paths(mirror, site) == ["/", "/good"]
    assert list_reasons(outcome.failures, site) == {
        "/large": "the page is larger than 100000 bytes",
        "/endless": "the server did not finish its response within 0.5 s",
    }
    assert time.monotonic() - began < 20


async def test_pages_that_ask_to_be_left_out_are_left_out(site: Website, crawl_site: Crawl) -> None:
    noindex = '<meta name="robots" content="noindex">'
    nofollow = '<meta name="ROBOTS" content="index, NOFOLLOW">'
    hidden = replace(make_html("H", "Hidden."), headers={"X-Robots-Tag": "noindex"})
    site.pages = {
        "/": make_html("Start", "Welcome.", "a", "b", "h"),
        "/a": make_html("A", "One.", "c", head=noindex),
        "/b": make_html("B", "Two.", "d", head=nofollow),
        "/c": make_html("C", "Three."),
        "/d": make_html("D", "Four."),
        "/h": hidden,
    }

    mirror, outcome = await crawl_site()

    assert list_paths(mirror, site) == ["/", "/b", "/c"]
    assert set(list_reasons(outcome.skipped, site)) == {"/a", "/h"}


async def test_content_types_choose_the_reader(site: Website, crawl_site: Crawl) -> None:
    site.pages = {
        "/": make_html("Start", "Welcome.", "guide", "notes.md", "data", "picture", "x.png"),
        "/guide": WebPage(b"%PDF-1.4", "application/pdf"),
        "/notes.md": WebPage(b"# Notes", "text/plain; charset=utf-8"),
        "/data": WebPage(b"{}", "application/json"),
        "/picture": WebPage(b"GIF89a", "image/gif"),
        "/x.png": WebPage(b"PNG", "image/png"),
    }

    mirror, outcome = await crawl_site()

    suffixes = {url.removeprefix(site.url): page.suffix for url, page in mirror.list_documents()}
    assert suffixes == {"/": ".html", "/guide": ".pdf", "/notes.md": ".md"}
    assert list_reasons(outcome.skipped, site) == {
        "/data": "there is no reader for application/json",
        "/picture": "there is no reader for image/gif",
    }
    assert "/x.png" not in {path for path, _ in site.requests}


async def test_a_crawl_that_was_interrupted_fetches_nothing_twice(
    site: Website, crawl_site: Crawl
) -> None:
    links = [f"/{number}" for number in range(60)]
    site.pages = {link: make_html("Page", f"Page {link}.") for link in links}
    site.pages["/"] = make_html("Start", "Welcome.", *links)
    await crawl_site(pages=55)
    site.take_requests()

    _, outcome = await crawl_site()

    assert counts(outcome) == (6, 55, 0)
