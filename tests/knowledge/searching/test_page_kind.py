"""Changelogs and indexes: recognised when they are read, weighed less in a search."""

import pytest

from knowledge.documents.markup import markdown
from knowledge.index.page_kind import PageKind, recognise_kind
from knowledge.index.port import Index
from knowledge.port import SearchRequest
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, put


def kind_of(text: str) -> PageKind:
    return recognise_kind(markdown.read(text.encode(), "a.md"), text.encode())


CHANGELOG = "# Changelog\n\n## 2.1.0\n\n- Queues are faster.\n\n## 2.0.0\n\n- Queues.\n"
INDEX = "# Guide\n\n" + "".join(f"- [Part {n}](part{n}.md): about it\n" for n in range(6))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (CHANGELOG, PageKind.CHANGELOG),
        ("# Acme\n\n## v1.2\n\nA\n\n## v1.1 (2024)\n\nB\n\n## v1.0\n\nC\n", PageKind.CHANGELOG),
        (INDEX, PageKind.INDEX),
        ("# History\n\nThe company was founded in 1950.\n", PageKind.CONTENT),
        ("# Python 3.12\n\n## Install\n\nA\n\n## 3.12 on Windows\n\nB\n", PageKind.CONTENT),
        (
            "# Act\n\n## 1.1 Scope\n\nA\n\n## 1.2 Terms\n\nB\n\n## 2.1.1 Use\n\nC\n",
            PageKind.CONTENT,
        ),
        (
            "# Acme\n\n## 2024-05-01 May\n\nA\n\n## [1.1] - 3 Mar 2024\n\nB\n\n## 1.0b1\n",
            PageKind.CHANGELOG,
        ),
        ("# Countries\n\n- Spain\n- Italy\n- France\n- Malta\n- Cyprus\n", PageKind.CONTENT),
        (INDEX + "\nA queue holds the work that waits. " * 20, PageKind.CONTENT),
    ],
)
def test_a_page_is_recognised_by_its_headings_and_links(text: str, kind: PageKind) -> None:
    assert kind_of(text) is kind


@pytest.mark.parametrize("name", ["CHANGELOG.md", "docs/release_notes.md", "whats-new.md"])
def test_a_page_is_recognised_by_the_name_of_its_file(name: str) -> None:
    text = b"# Acme Server\n\n## 2.1.0\n\nQueues are faster.\n\n## Thanks\n\nTo all.\n"

    assert recognise_kind(markdown.read(text, name), text) is PageKind.CHANGELOG
    assert recognise_kind(markdown.read(text, "guide.md"), text) is PageKind.CONTENT


async def test_a_changelog_comes_behind_a_page_that_says_the_same(
    fake_documents: Index, embedder: WordEmbedder
) -> None:
    text = "Pause a queue with the button Pause in the console."
    await put(
        fake_documents,
        document("a-log", text, title="News", kind="changelog"),
        document("queues", text, title="News"),
        document("other", "Invoices are sent each month.", title="Bills"),
    )
    searcher = LevelSearcher(fake_documents, embedder)

    findings = await searcher.search(SearchRequest("How do I pause a queue?"))

    assert [hit.document_id for hit in findings.hits[:2]] == ["queues", "a-log"]
