"""Documents become passages, which are found by rare words and quoted word for word."""

from pathlib import PurePosixPath

import pytest

from agents.review.passages import (
    LONGEST,
    LONGEST_UNIT,
    MOST_PARTS,
    DocumentUnits,
    PassageSearch,
    cut_document,
    cut_passages,
    cut_text_at_sentences,
    divide_sizes,
    find_words,
    join_digests,
    list_units,
    plan_parts,
)
from agents.review.requirement_extractor import list_units_as_requirements
from agents.review.requirements import RuleUnit
from knowledge.chunking import name_chunks
from knowledge.documents.formats import Item
from knowledge.documents.location import Location
from knowledge.isolation import preparation
from knowledge.isolation.preparation import Preparation
from knowledge.library.attachment_reading import read_attachment
from knowledge.library.library import ChunkWithVector, WholeDocument
from tests.support.long_law import write_article


def test_the_clause_about_a_rule_is_found_first(
    law: list[RuleUnit], faulty: list[RuleUnit]
) -> None:
    search = PassageSearch(cut_passages(faulty))

    first = {
        unit.heading_path[0]: search.find(unit.text, "en", 3)[0].place.heading_path
        for unit in law
        if unit.heading_path
    }

    assert first["Article 3 Notice of a breach"] == ("3 Incidents",)
    assert first["Article 5 Sale"] == ("5 Use of data",)
    assert first["Article 7 Inspections"] == ("7 Inspections",)


def test_every_sentence_of_a_long_clause_is_in_one_passage() -> None:
    text = " ".join(f"The operator shall inspect berth {number}." for number in range(90))

    passages = cut_passages([RuleUnit("d", "d#u1", text)])

    assert " ".join(passage.text for passage in passages) == text
    assert max(len(passage.text) for passage in passages) <= LONGEST
    assert all(
        text[passage.place.start : passage.place.end] == passage.text for passage in passages
    )


@pytest.mark.parametrize(
    "title", ["7. Term and Termination.", "\n\n§ 7 Laufzeit und Kündigung\n\n", "\n\nTERM\n\n"]
)
@pytest.mark.parametrize("before", [LONGEST - 60, LONGEST - 15, LONGEST - 5])
def test_the_title_of_a_clause_stays_with_its_text(title: str, before: int) -> None:
    start = "The provider keeps a record of each order it receives. "
    start = (start * 40)[: before - 1] + "."
    body = "This agreement ends after twelve months unless both parties extend it in writing."
    unit = RuleUnit("contract", "contract#u1", f"{start} {title} {body}")

    passages = cut_passages([unit])

    assert any(title.strip() in passage.text and body in passage.text for passage in passages)


def test_a_text_of_short_lines_is_divided_like_any_other() -> None:
    lines = "\n\n".join(f"Room {number}" for number in range(1_000))

    passages = cut_passages([RuleUnit("plan", "plan#u1", lines)])

    assert max(len(passage.text) for passage in passages) <= LONGEST


def test_an_item_of_a_list_is_found_by_the_sentence_that_introduces_it() -> None:
    items = " ".join(f"({letter}) {letter * 400};" for letter in "abcdef")
    passages = cut_passages([RuleUnit("d", "d#u1", f"The carrier insures: {items}")])

    findings = PassageSearch(passages).find("Which insurance has a carrier?", "en", 9)

    assert len(passages) > 2
    assert set(findings) == set(passages)


def test_a_passage_that_shares_no_word_is_not_close() -> None:
    search = PassageSearch(cut_passages([RuleUnit("d", "d#u1", "Fees are due in June.")]))

    assert search.find("Der Betreiber prüft den Kran.", "de", 3) == ()


def test_passages_for_many_texts_have_the_best_of_each_in_their_order() -> None:
    units = [RuleUnit("d", f"d#u{at}", f"Clause on {word}.") for at, word in
             enumerate(("cranes", "ferries", "boats", "trains"))]  # fmt: skip
    search = PassageSearch(cut_passages(units))

    each = search.find_each(["trains and boats", "ferries"], "en", 2, 2)

    assert [passage.id for passage in each] == ["p2", "p4"] or [item.id for item in each] == [
        "p2",
        "p3",
    ]


def test_a_quotation_is_proved_word_for_word() -> None:
    [passage] = cut_passages([RuleUnit("d", "d#u1", "The “driver”  rings\nthe desk, at once.")])

    quotation = passage.find_quotation('the "driver" rings the DESK')

    assert quotation is not None
    assert quotation.text == "The “driver”  rings\nthe desk"
    assert (quotation.place.start, quotation.place.end) == (0, len(quotation.text))
    assert passage.find_quotation("the driver calls the desk") is None
    assert passage.find_quotation(" ") is None


def test_a_letter_whose_lower_case_is_longer_moves_no_quotation() -> None:
    text = "İ İ İ the desk"

    span = find_words(text, "the desk")

    assert span is not None
    assert text[slice(*span)] == "the desk"


def make_units(*sizes: int, name: str = "law", language: str = "en") -> DocumentUnits:
    units = tuple(
        RuleUnit(name, f"{name}#u{number}", "x" * size)
        for number, size in enumerate(sizes, start=1)
    )
    return DocumentUnits(name, "Law", language, f"digest of {name}", units, {})


@pytest.mark.parametrize(
    "sizes", [(10,), (10,) * 300, (5_000,) * 40, (1, 90_000, 1), (700,) * 5_000]
)
def test_every_unit_is_in_exactly_one_part(sizes: tuple[int, ...]) -> None:
    parts = plan_parts([make_units(*sizes)])

    assert [at for part in parts for at in range(part.first, part.last + 1)] == list(
        range(len(sizes))
    )
    assert len(parts) <= MOST_PARTS
    assert len({part.key for part in parts}) == len(parts)


def test_every_unit_of_many_documents_is_in_exactly_one_part() -> None:
    documents = [
        make_units(*sizes, name=f"article-{number}", language=language)
        for number, (sizes, language) in enumerate(
            [((10,), "en"), ((5_000, 3_000), "en"), ((), "en"), ((20,) * 30, "en"), ((7,), "de")]
        )
    ]
    by_name = {units.document_id: units for units in documents}

    parts = plan_parts(documents)

    read = []
    for part in parts:
        own = [by_name[name] for name in part.documents]
        assert len({document.language for document in own}) == 1
        assert join_digests(own) == part.digest
        read += [unit.unit_id for unit in list_units(own)[part.first : part.last + 1]]
    assert read == [unit.unit_id for document in documents for unit in document.units]
    assert len({part.key for part in parts}) == len(parts)
    assert len(parts[0].documents) == 2, "small documents share a part"


def test_a_group_is_bounded_by_size_and_number() -> None:
    assert list(divide_sizes([4, 4, 4, 20, 1, 1, 1], 10, 2)) == [
        (0, 1),
        (2, 2),
        (3, 3),
        (4, 5),
        (6, 6),
    ]
    assert list(divide_sizes([], 10, 2)) == []


def test_a_long_text_is_cut_between_sentences_and_loses_nothing() -> None:
    text = " ".join(f"The operator shall inspect berth {number}." for number in range(600))

    pieces = list(cut_text_at_sentences(text))

    assert max(map(len, pieces)) <= LONGEST_UNIT
    assert " ".join(pieces) == text


ARTICLES = 1_500
PAGE = 3_000
"""Characters of a printed page."""
COMMENT = "This article serves the safety of harbours and of those who work in them. " * 13


class ReaderInProcess:
    """Reads in this process."""

    def prepare(
        self, item: Item, path: PurePosixPath, location: Location, *, most_characters: int | None
    ) -> Preparation:
        return preparation.prepare(item, path, location, most_characters)


async def test_every_article_of_five_hundred_pages_becomes_a_requirement() -> None:
    articles = (
        f"## Article {number} Berth {number}\n\n{write_article(number)}\n\n{COMMENT}\n"
        for number in range(1, ARTICLES + 1)
    )
    text = "# Harbour Code\n\n" + "\n".join(articles)
    assert len(text) > 500 * PAGE

    read = await read_attachment(
        ReaderInProcess(), "code.md", text.encode(), language_of=lambda _text: "en"
    )
    chunks = tuple(ChunkWithVector(chunk, None) for chunk in name_chunks(read.passages, read.id))
    units = cut_document(WholeDocument(read.listed, (read.title,), read.name, chunks))
    parts = plan_parts([units])
    units_as_requirements = list_units_as_requirements(units.units)

    assert len(units.units) == ARTICLES
    places = [at for part in parts for at in range(part.first, part.last + 1)]
    assert places == list(range(ARTICLES))
    assert len(parts) <= MOST_PARTS
    assert [
        requirement.statement[: len(write_article(at))]
        for at, requirement in enumerate(units_as_requirements.requirements, 1)
    ] == [write_article(number) for number in range(1, ARTICLES + 1)]
