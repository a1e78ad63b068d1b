"""Changelogs and indexes: recognised when they are read, weighed less when nobody asks for them."""

import pytest

from knowledge.documents.markup import markdown
from knowledge.index.page_kind import PageKind, find_wanted_kinds, recognise_kind
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
        ("# Countries\n\n- Spain\n- Italy\n- France\n- Malta\n- Cyprus\n", PageKind.CONTENT),
        (INDEX + "\nA queue holds the work that waits. " * 20, PageKind.CONTENT),
    ],
)
def test_a_page_is_recognised_by_its_headings_and_links(text: str, kind: PageKind) -> None:
    assert kind_of(text) is kind


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What changed in 2.1?", PageKind.CHANGELOG),
        ("what is new in the last release", PageKind.CHANGELOG),
        ("Give me an overview", PageKind.INDEX),
    ],
)
def test_a_question_can_ask_for_such_pages(question: str, kind: PageKind) -> None:
    assert kind in find_wanted_kinds([question])


def test_other_questions_do_not() -> None:
    assert find_wanted_kinds(["How do I change a queue?", "retry"]) == {PageKind.CONTENT}


async def test_a_changelog_comes_behind_unless_it_is_asked_for(
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

    plain = await searcher.search(SearchRequest("How do I pause a queue?"))
    asked = await searcher.search(SearchRequest("Which version can pause a queue?"))

    assert [hit.document_id for hit in plain.hits[:2]] == ["queues", "a-log"]
    assert [hit.document_id for hit in asked.hits[:2]] == ["a-log", "queues"]
