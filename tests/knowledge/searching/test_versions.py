"""Versions of one page: the newest answers, unless a question names another one."""

import pytest

from knowledge.index.port import Index
from knowledge.port import SearchRequest
from knowledge.search.searcher import LevelSearcher
from knowledge.search.versions import PageVersion, PageVersions
from tests.knowledge.searching.conftest import WordEmbedder, document, put

DOCUMENTS = [
    PageVersion("docs/v1.4/limits", "en", "1.4"),
    PageVersion("docs/v1.10/limits", "en", "1.10"),
    PageVersion("docs/v1.10/limits", "de", "1.10"),
    PageVersion("docs/v2/limits", "en", "2"),
    PageVersion("docs/v1.4/faxing", "en", "1.4"),
    PageVersion("docs/about", "en", ""),
    PageVersion("policy-2023", "en", "2023"),
    PageVersion("policy-2024", "en", "2024-05-01"),
]
NEWEST = [0, 1]


def find_left_out(question: str) -> list[int]:
    return sorted(PageVersions(DOCUMENTS).find_others([question]))


@pytest.mark.parametrize(
    "question",
    [
        "How many messages can I send?",
        "Does it support IPv6 and HTTP/2?",
        "I want 2 of them, 4 at most",
        "What changed in version 9.9?",
        "Call 14-20 or 1.5",
        "",
    ],
)
def test_the_newest_version_of_each_page_answers_a_question_that_names_none(question: str) -> None:
    assert find_left_out(question) == NEWEST


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("What are the limits in version 1.4?", {0, 4, 5}),
        ("limits in v1.4.0", {0, 4, 5}),
        ("limits 1.10", {1, 2, 5}),
        ("  1.4 limits", {0, 4, 5}),
        ("limits of v2", {3, 5}),
        ("V 2 limits", {3, 5}),
        ("Was sind die Grenzen der Version 2?", {3, 5}),
        ("версия 2: ограничения", {3, 5}),
        ("limits in version 1", {0, 1, 2, 4, 5}),
        ("What did the policy of 2023 say?", {5, 6}),
        ("policy in 2024", {5, 7}),
        ("policy of 2024-05-01", {5, 7}),
        ("How do 1.4 and 2.0 of the limits differ? Compare v1.4 and v2.", {0, 3, 4, 5}),
    ],
)
def test_a_question_gets_the_version_that_it_names(question: str, kept: set[int]) -> None:
    assert set(range(len(DOCUMENTS))) - set(find_left_out(question)) == kept


def test_without_stated_versions_nothing_is_find_left_out() -> None:
    versions = PageVersions([PageVersion("v1/a", "en", ""), PageVersion("v2/a", "en", "")])

    assert versions.find_others(["a in v1"]) == []


async def find(index: Index, question: str) -> list[tuple[str, str]]:
    searcher = LevelSearcher(index, WordEmbedder())
    findings = await searcher.search(SearchRequest(question=question, context_tokens=500))
    assert all(section.best.place.version for section in findings.context)
    return [(hit.document_id, hit.place.version or "") for hit in findings.hits]


async def test_a_search_finds_the_wanted_version_with_its_name(fake_documents: Index) -> None:
    old, new = (
        document(
            f"v{version}/limits",
            f"A route carries {count} messages a second.",
            title="Limits",
            stated_version=version,
        )
        for version, count in (("1.4", 10), ("2.0", 50))
    )
    gone = document("v1.4/fax", "A fax takes a minute.", title="Fax", stated_version="1.4")
    await put(fake_documents, old, new, gone)

    assert ("v1.4/limits", "1.4") not in await find(fake_documents, "messages of a route")
    assert (await find(fake_documents, "messages of a route"))[0] == ("v2.0/limits", "2.0")
    assert (await find(fake_documents, "messages of a route in v1.4"))[0] == ("v1.4/limits", "1.4")
    assert (await find(fake_documents, "How long does a fax take?"))[0] == ("v1.4/fax", "1.4")


def test_versions_without_numbers_are_not_newer_than_each_other() -> None:
    versions = PageVersions(
        [
            PageVersion("limits-cloud", "en", "cloud"),
            PageVersion("limits-server", "en", "server"),
            PageVersion("limits-cloud", "de", "cloud"),
            PageVersion("faxing-cloud", "en", "cloud"),
        ]
    )

    assert versions.has_several
    assert [versions.find_not_newer(at) for at in range(4)] == [[1], [0], [], []]
    assert versions.names_one(["How large may a file be on the Server?"])
    assert not versions.names_one(["How large may a file be?"])
