from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.knowledge.connectors.test_git_repository import Repository
from tests.support.command_line import Run, one_line
from tests.support.website import WebPage, Website, make_html, serve_website

pytestmark = pytest.mark.slow


def test_a_file_that_takes_too_long_is_named_and_the_others_read(
    run: Run, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = elsewhere / "documents"
    folder.mkdir()
    (folder / "good.md").write_text("# Billing\n\nInvoices are sent on the first day.\n")
    (folder / "endless.rst").write_text("`a " * 40_000)
    monkeypatch.setenv("INGESTION_FILE_SECONDS", "1")

    result = run("ingest", str(folder))

    assert result.status == 6
    assert "could not read endless.rst: took longer than 1 s to read" in result.out
    assert "documents: 1 added, 1 failed; " in result.out


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Website]:
    """A website of four pages, which is fetched without a pause."""
    monkeypatch.setenv("CRAWL_DELAY_SECONDS", "0")
    with serve_website() as serving:
        serving.pages = {
            "/docs/": make_html("Guide", "Welcome to the guide.", "billing/", "setup"),
            "/docs/setup": make_html("Setup", "Install the app with pip."),
            "/docs/billing/": make_html("Billing", "Invoices are sent on Mondays.", "refunds"),
            "/docs/billing/refunds": make_html("Refunds", "Refunds take nine days."),
        }
        yield serving


def test_a_crawled_website_is_answered_from_with_links_to_its_pages(
    run: Run, site: Website
) -> None:
    crawled = run("ingest", f"{site.url}/docs/")
    answered = run("ask", "How many days do refunds take?", "--json")

    assert "documents: 4 added; " in crawled.out
    assert "nine days" in answered.json["text"].replace("**", "")
    (source,) = answered.json["sources"]
    assert source["url"] == f"{site.url}/docs/billing/refunds"
    assert source["crumbs"] == ["Billing", "Refunds"]


def test_a_second_run_reads_what_changed_and_removes_what_is_gone(run: Run, site: Website) -> None:
    run("ingest", f"{site.url}/docs/")
    site.pages["/docs/billing/refunds"] = make_html("Refunds", "Refunds take ten days.")
    site.pages["/docs/setup"] = WebPage(status=404)
    site.pages["/docs/billing/"] = WebPage(status=500)

    again = run("ingest", f"{site.url}/docs/")

    assert again.status == 6
    assert (
        f"could not read {site.url}/docs/billing/: the server responded with status 500"
        in again.out
    )
    assert "documents: 1 changed, 2 unchanged, 1 removed, 1 failed, 1 skipped; " in again.out


def test_a_website_that_is_away_loses_nothing(run: Run, site: Website) -> None:
    run("ingest", f"{site.url}/docs/")
    site.pages = {"/robots.txt": WebPage(status=503)}

    again = run("ingest", f"{site.url}/docs/", "--json")

    assert again.status == 6
    assert again.json["unchanged"] == 4
    assert again.json["removed"] == 0
    assert "robots.txt cannot be read" in again.json["failed"][0]["reason"]


def test_documents_of_a_website_are_listed_and_removed_by_address(run: Run, site: Website) -> None:
    run("ingest", f"{site.url}/docs/")

    listed = run("documents", "list", f"{site.url}/docs/billing", "--json")
    removed = run("documents", "remove", f"{site.url}/docs/")

    assert [document["id"] for document in listed.json["documents"]] == [
        f"{site.url}/docs/billing/",
        f"{site.url}/docs/billing/refunds",
    ]
    assert "removed 4 documents" in removed.out


def test_a_wrong_limit_or_one_for_no_website_is_said(run: Run) -> None:
    assert "apply only to websites" in one_line(run("ingest", "docs/guide", "--pages", "3"))
    assert run("ingest", "https://docs.test/", "--pages", "many").status == 2


def test_a_revision_is_ingested_again_when_it_changes(run: Run, elsewhere: Path) -> None:
    repository = Repository(elsewhere / "product")
    repository.commit(docs__a_md="# Setup\n\nInstall it with pip.", docs__b_md="# B\n\nText.")
    words = ("ingest", "git:product", "--folder", "docs", "--web-address", "https://h.test/{path}")

    first = run(*words)
    (repository.folder / "docs" / "b.md").unlink()
    repository.commit(docs__a_md="# Setup\n\nInstall it with uv.", docs__c_md="# C\n\nMore.")
    second = run(*words)
    shown = run("documents", "show", "*a", "--json").json["documents"]

    assert "documents: 2 added; " in first.out
    assert "documents: 1 added, 1 changed, 1 removed; " in second.out
    assert [item["id"] for item in shown] == ["product/docs/a"]
    assert shown[0]["url"] == "https://h.test/docs/a.md"
    assert list((elsewhere / "data").glob("git-*")) == []


def test_a_folder_that_is_no_repository_is_said_and_loses_nothing(
    run: Run, elsewhere: Path
) -> None:
    repository = Repository(elsewhere / "product")
    repository.commit(a_md="# Setup\n\nInstall it with pip.")
    run("ingest", "git:product")
    (repository.folder / ".git").rename(elsewhere / "moved")

    failed = run("ingest", "git:product", "--json")

    assert failed.status == 6
    assert (
        "there is no Git repository with the revision 'HEAD'" in failed.json["failed"][0]["reason"]
    )
    assert len(run("documents", "list", "--json").json["documents"]) == 1
    assert "are for repositories" in one_line(run("ingest", "product", "--folder", "docs"))
