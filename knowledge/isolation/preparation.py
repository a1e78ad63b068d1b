"""Turns the bytes of one document into a page, its passages and what the rules say about it."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from knowledge import chunking, describing
from knowledge.chunking import Passage
from knowledge.describing import Description
from knowledge.reading import formats
from knowledge.reading.formats import Item
from knowledge.reading.location import Location
from knowledge.reading.page import Page


@dataclass(frozen=True, slots=True)
class Preparation:
    """Everything that is made of a document's text without asking anybody."""

    page: Page
    passages: tuple[Passage, ...]
    by_rules: Description


def prepare(item: Item, path: PurePosixPath, location: Location) -> Preparation:
    """Return the preparation of a document; raise a `ReadingError`."""
    page = formats.read(item, path, location)
    return Preparation(page, tuple(chunking.passages(page)), describing.describe(page))
