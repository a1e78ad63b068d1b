"""Converts the bytes of one document to a page, its passages, and its rule-based description."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from knowledge import chunking, rule_descriptions
from knowledge.chunking import ChunkText
from knowledge.documents import formats
from knowledge.documents.errors import TooLargeError
from knowledge.documents.formats import Item
from knowledge.documents.location import Location
from knowledge.documents.page import Page
from knowledge.rule_descriptions import Description


@dataclass(frozen=True, slots=True)
class Preparation:
    """Everything that can be derived from a document's text without calling other services."""

    page: Page
    passages: tuple[ChunkText, ...]
    by_rules: Description


def prepare(
    item: Item, path: PurePosixPath, location: Location, most_characters: int | None = None
) -> Preparation:
    """Return the preparation of a document; raises a `ReadingError`.

    A page with more than `most_characters` is rejected before it is split and described, which
    takes most of the time.
    """
    page = formats.read(item, path, location)
    size = sum(len(block.text) for block in page.blocks)
    if most_characters is not None and size > most_characters:
        raise TooLargeError(f"expected at most {most_characters:,} characters, found {size:,}")
    return Preparation(page, tuple(chunking.passages(page)), rule_descriptions.describe(page))
