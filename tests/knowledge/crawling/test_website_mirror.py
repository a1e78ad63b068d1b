from pathlib import Path

import pytest

from knowledge.crawling.crawl_values import CrawlError, CrawlOutcome
from knowledge.crawling.website_mirror import WebsiteMirror, survey_mirror

START = "https://a.test/docs/"


def put(mirror: WebsiteMirror, url: str, *, suffix: str = ".html", canonical: str = "") -> None:
    mirror.put(
        url,
        f"<h1>{url}</h1>".encode(),
        suffix=suffix,
        etag="1",
        last_modified="",
        depth=0,
        canonical=canonical,
    )


def test_pages_outlast_the_process_that_saved_them(tmp_path: Path) -> None:
    mirror = WebsiteMirror(tmp_path, START)
    put(mirror, START)
    mirror.save()

    findings = WebsiteMirror(tmp_path, START).find(START)

    assert findings is not None
    assert WebsiteMirror(tmp_path, START).read(findings) == f"<h1>{START}</h1>".encode()


def test_a_page_whose_file_is_gone_is_fetched_again(tmp_path: Path) -> None:
    mirror = WebsiteMirror(tmp_path, START)
    put(mirror, START)
    mirror.locate(mirror.pages[START]).unlink()

    assert mirror.find(START) is None


def test_a_damaged_mirror_is_named(tmp_path: Path) -> None:
    (tmp_path / "crawl.json").write_text("{")

    with pytest.raises(CrawlError, match="remove that folder to fetch them again"):
        WebsiteMirror(tmp_path, START)


def test_two_processes_do_not_crawl_one_website_at_once(tmp_path: Path) -> None:
    first, second = WebsiteMirror(tmp_path, START), WebsiteMirror(tmp_path, START)

    with (
        first.reserve(),
        pytest.raises(CrawlError, match=f"another process is crawling {START}"),
        second.reserve(),
    ):
        pass


def test_a_page_stands_where_its_address_puts_it(tmp_path: Path) -> None:
    mirror = WebsiteMirror(tmp_path, START)
    for path in ("", "billing", "billing/invoices", "billing/invoices.html", "a?b=1"):
        put(mirror, f"{START}{path}")
    put(mirror, f"{START}copy", canonical=f"{START}billing")
    put(mirror, f"{START}price", suffix=".pdf")

    survey = survey_mirror(
        mirror, CrawlOutcome(), lambda *_: "Billing and invoices", lambda _: "en"
    )

    assert {place.url: (str(path), place.folders) for path, place in survey.locations.items()} == {
        START: ("index.html", ()),
        f"{START}a?b=1": ("a?b=1.html", ()),
        f"{START}billing": ("billing/index.html", ("Billing and invoices",)),
        f"{START}billing/invoices": ("billing/invoices.html", ("Billing and invoices",)),
        f"{START}billing/invoices.html": (
            "billing/invoices (2).html", ("Billing and invoices",),
        ),
        f"{START}price": ("price.pdf", ()),
    }  # fmt: skip
    assert survey.root == START
