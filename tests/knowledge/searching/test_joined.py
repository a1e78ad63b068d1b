from dataclasses import replace
from typing import Any

from envelope.place import Place
from knowledge.port import ContextSection, Findings, FoundSpan, Hit, SearchRequest
from knowledge.search.joined import search_all, search_place


def make_section(page: str, score: float = 1.0) -> ContextSection:
    hit = Hit(
        chunk_id=page,
        document_id=page,
        page=page,
        text=f"text of {page}",
        score=score,
        levels=("keywords",),
        place=Place(
            title=page,
            crumbs=("Guide", page),
            heading_path=("Start",),
            anchor=None,
            url=None,
            path=f"{page}.md",
            language="en",
        ),
    )
    result = (FoundSpan(rank=0, start=0, end=4),)
    return ContextSection(best=hit, text=hit.text, chunk_ids=(page,), found=result)


def make_findings(*sections: ContextSection, **parts: Any) -> Findings:
    given: dict[str, Any] = {
        "hits": tuple(section.best for section in sections),
        "quality": "good",
        "answerability": 0.5,
        "coverage": 0.5,
        "context": sections,
    }
    return Findings(**(given | parts))


class Library:
    """A searcher with findings for each question."""

    def __init__(self, **found: Findings) -> None:
        self._found = found
        self.requests: list[SearchRequest] = []

    async def search(self, request: SearchRequest) -> Findings:
        self.requests.append(request)
        return self._found[request.question]


def list_pages(findings: Findings) -> list[str]:
    return [section.best.page for section in findings.context]


def ask(*questions: str, tokens: int = 1000, limit: int = 10) -> list[SearchRequest]:
    return [
        SearchRequest(question=question, context_tokens=tokens, limit=limit)
        for question in questions
    ]


async def test_every_search_for_a_message_has_its_share_of_the_context() -> None:
    library = Library(
        one=make_findings(make_section("a"), make_section("b"), make_section("d"), quality="poor"),
        two=make_findings(make_section("c"), make_section("b"), answerability=0.9),
    )

    results = await search_all(library, ask("one", "two"))
    short = await search_all(library, ask("one", "two", tokens=20))

    assert list_pages(results) == ["a", "c", "b", "d"]
    assert [hit.page for hit in results.hits] == ["a", "c", "b", "d"]
    assert (results.quality, results.answerability) == ("good", 0.9)
    assert list_pages(short) == ["a", "c"]


async def test_a_section_that_contains_one_of_another_search_takes_its_place() -> None:
    part, other = make_section("a"), make_section("b")
    whole = replace(part, text="text of a, and more", chunk_ids=("a", "a2"))
    library = Library(one=make_findings(part, other), two=make_findings(make_section("c"), whole))

    results = await search_all(library, ask("one", "two"))

    assert [section.text for section in results.context] == [
        "text of a, and more",
        "text of c",
        "text of b",
    ]


async def test_a_search_that_matches_nothing_takes_no_part_of_the_context() -> None:
    library = Library(
        one=make_findings(make_section("a"), make_section("b"), coverage=0.0, answerability=0.0),
        two=make_findings(make_section("c"), make_section("d")),
    )

    results = await search_all(library, ask("one", "two"))

    assert list_pages(results) == ["c", "d"]


async def test_only_languages_that_no_search_reached_are_called_uncompared() -> None:
    library = Library(
        english=make_findings(uncompared=("de", "ru")),
        german=make_findings(make_section("c"), uncompared=("en", "ru")),
    )

    assert (await search_all(library, ask("english", "german"))).uncompared == ("ru",)


async def test_passages_at_a_chosen_location_come_first() -> None:
    library = Library(q=make_findings(make_section("a", 3.0), make_section("b", 1.0)))

    place = await search_place(library, SearchRequest(question="q"), ("Guide", "b"))

    assert list_pages(place) == ["b", "a"]
    assert [section.best.score for section in place.context] == [3.0, 3.0]
    assert place.hits[0].page == "b"
    assert [bool(section.found) for section in place.context] == [True, False]


async def test_a_chosen_place_that_the_question_does_not_find_is_searched_for() -> None:
    library = Library(
        **{
            "q": make_findings(make_section("a"), quality="poor"),
            "Guide b": make_findings(make_section("b"), make_section("c")),
        }
    )

    place = await search_place(library, SearchRequest(question="q"), ("Guide", "b"))

    assert list_pages(place) == ["b", "a"]
    assert place.quality == "good"


async def test_a_place_that_is_gone_changes_nothing() -> None:
    findings = make_findings(make_section("a"))
    library = Library(**{"q": findings, "Guide gone": replace(findings, context=())})

    place = await search_place(library, SearchRequest(question="q"), ("Guide", "gone"))

    assert place == findings
