"""What became of sections, ranks and gaps between two states of the documents."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from knowledge.checks import (
    CheckQuestion,
    Citation,
    Fate,
    QuestionResult,
    SearchResult,
    Snapshot,
    compare,
)
from knowledge.document import Chunk
from knowledge.index.listing import ListedDocument
from knowledge.library.library import ChunkWithVector, WholeDocument

TEXT = "An invitation is valid for seven days and can be used once by the person who received it."
OTHER = "Invoices are sent on the first day of each month to the owner of the account."
PAGE = Citation("a", is_page=True)
NOTHING = SearchResult({}, {}, is_clear=False)


def make_document(name: str, *texts: str) -> WholeDocument:
    """A document with a section for each text."""
    chunks = tuple(
        ChunkWithVector(
            Chunk(
                chunk_id=f"{name}#{at}", ordinal=at, text=text, heading_path=(f"H{at}",),
                anchor=f"h{at}",
            ),
            None,
        )
        for at, text in enumerate(texts)
    )  # fmt: skip
    listed = ListedDocument(name, name, f"{name}.md", "/docs", "en", len(texts), "|".join(texts))
    return WholeDocument(listed, (name,), name, chunks)


def snapshot(
    documents: Sequence[WholeDocument], result: SearchResult = NOTHING, pages: Sequence[str] = ()
) -> Snapshot:
    read: Mapping[str, WholeDocument] = {document.listed.id: document for document in documents}
    listed = {name: document.listed for name, document in read.items()}
    sections = {name: document.sections for name, document in read.items()}
    return Snapshot(listed, {"q": result}, {"q": tuple(pages)}, sections)


def judge(question: CheckQuestion, before: Snapshot, after: Snapshot) -> QuestionResult:
    return compare([question], before, after).results[0]


@pytest.mark.parametrize(
    ("after", "state", "fate"),
    [
        ([make_document("a", TEXT, OTHER)], "unchanged", None),
        ([make_document("a", f"{TEXT} It costs nothing.", OTHER)], "changed", "changed"),
        ([make_document("b", OTHER, TEXT)], "changed", "moved"),
        ([make_document("b", f"First, note this. {TEXT[:60]} and so on, as before.")],
         "changed", "moved"),
        ([make_document("b", OTHER)], "broken", "deleted"),
        ([make_document("b", "The invitation can be used once.")], "broken", "deleted"),
        ([], "broken", "deleted"),
    ],
)  # fmt: skip
def test_a_cited_section_stays_changes_moves_or_is_deleted(
    after: list[WholeDocument], state: str, fate: Fate | None
) -> None:
    question = CheckQuestion("q", "?", "recorded", citations=(Citation("a", ("H0",), "h0"),))

    result = judge(question, snapshot([make_document("a", TEXT, OTHER)]), snapshot(after))

    assert result.state == state
    assert [section.fate for section in result.sections] == ([] if fate is None else [fate])


def test_a_question_is_broken_only_if_every_expected_page_is_deleted() -> None:
    question = CheckQuestion("q", "?", "golden", pages=("a", "b"))
    pages = [make_document("a", TEXT), make_document("b", OTHER)]
    before = snapshot(pages, pages=("a", "b"))

    assert judge(question, before, snapshot(pages[1:], pages=("b",))).state == "changed"
    assert judge(question, before, snapshot([])).state == "broken"


def test_a_section_that_was_gone_before_the_change_breaks_nothing() -> None:
    question = CheckQuestion("q", "?", "recorded", citations=(Citation("gone"), PAGE))
    documents = [make_document("a", TEXT)]

    assert judge(question, snapshot(documents), snapshot(documents)).state == "unchanged"


def test_ranks_follow_a_page_to_its_new_place() -> None:
    question = CheckQuestion("q", "?", "golden", pages=("a",))
    before = snapshot(
        [make_document("a", TEXT)], replace(NOTHING, sections={"a": Citation("a")}), ("a",)
    )
    after = snapshot(
        [make_document("b", TEXT)],
        replace(NOTHING, sections={name: Citation(name) for name in ("x", "b")}),
    )

    result = judge(question, before, after)

    assert (result.state, result.rank_before, result.rank_after) == ("changed", 1, 2)


@pytest.mark.parametrize(
    ("after", "found_in", "state"),
    [
        ([make_document("a", TEXT), make_document("b", OTHER)], "ab", "unchanged"),
        ([make_document("a", TEXT), make_document("b", OTHER)], "b", "unchanged"),
        ([make_document("a", "It has no limit."), make_document("b", OTHER)], "b", "broken"),
        ([make_document("b", f"{OTHER} And more.")], "b", "broken"),
        ([make_document("a", f"{TEXT} And more."), make_document("b", OTHER)], "ab", "changed"),
        ([make_document("b", OTHER), make_document("c", TEXT)], "bc", "changed"),
    ],
)
def test_a_fact_is_lost_if_only_pages_keep_it_that_had_it_before(
    after: list[WholeDocument], found_in: str, state: str
) -> None:
    question = CheckQuestion("q", "?", "golden", pages=("a",), facts=(("once",),))
    here = {name: Citation(name, ("H0",), "h0") for name in "abc"}
    results = [
        replace(NOTHING, facts={0: [here[name] for name in names]}) for names in ("ab", found_in)
    ]
    pages = [make_document("a", TEXT), make_document("b", OTHER)]
    kept = [document.listed.id for document in after if document.listed.id == "a"]

    result = judge(question, snapshot(pages, results[0], "a"), snapshot(after, results[1], kept))

    assert result.state == state
    assert result.only_elsewhere == (("once",) if state == "broken" else ())


def test_an_expected_page_that_does_not_exist_is_named() -> None:
    question = CheckQuestion("q", "?", "golden", pages=("no-such-page.md",))
    documents = [make_document("a", TEXT)]

    result = judge(question, snapshot(documents), snapshot(documents))

    assert (result.state, result.unknown_pages) == ("unchanged", ("no-such-page.md",))
    assert result.reasons == ["no document matches the page no-such-page.md"]


@pytest.mark.parametrize(
    ("question", "is_answered"),
    [
        (CheckQuestion("q", "?", "gap"), True),
        (CheckQuestion("q", "?", "golden", must_be_declined=True), True),
        (CheckQuestion("q", "?", "recorded"), False),
    ],
)
def test_a_gap_is_newly_answered_once_the_search_finds_something(
    question: CheckQuestion, *, is_answered: bool
) -> None:
    clear = replace(NOTHING, is_clear=True)

    assert judge(question, snapshot([]), snapshot([], clear)).newly_answered is is_answered
    assert judge(question, snapshot([], clear), snapshot([])).no_longer_found is True
