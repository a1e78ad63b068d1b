"""A law of 500 pages is read completely: every article is in one part and becomes a requirement."""

from pathlib import PurePosixPath

from agents.review.requirement_extractor import list_units_as_requirements
from agents.review.rule_units import MOST_PARTS, cut_document, plan_parts
from knowledge.chunking import name_chunks
from knowledge.documents.formats import Item
from knowledge.documents.location import Location
from knowledge.isolation import preparation
from knowledge.isolation.preparation import Preparation
from knowledge.library.attachment_reading import read_attachment
from knowledge.library.library import ChunkWithVector, WholeDocument
from tests.support.long_law import write_article

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
    chunks = tuple(ChunkWithVector(one, None) for one in name_chunks(read.passages, read.id))
    units = cut_document(WholeDocument(read.listed, (read.title,), read.name, chunks))
    parts = plan_parts([units])
    found = list_units_as_requirements(units.units)

    assert len(units.units) == ARTICLES
    places = [at for one in parts for at in range(one.first, one.last + 1)]
    assert places == list(range(ARTICLES))
    assert len(parts) <= MOST_PARTS
    assert [
        one.statement[: len(write_article(at))] for at, one in enumerate(found.requirements, 1)
    ] == [write_article(number) for number in range(1, ARTICLES + 1)]
