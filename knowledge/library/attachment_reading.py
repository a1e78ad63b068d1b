"""Reads a document that a person attaches to one conversation, with the same readers as all
documents.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Protocol

from knowledge.documents import formats
from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import NoTextError, TooLargeError, WrongFormatError
from knowledge.documents.formats import Item
from knowledge.documents.front_matter import find_stated_language, make_sample
from knowledge.documents.location import Location, locate
from knowledge.isolation.preparation import Preparation
from knowledge.library.attached_documents import AttachedDocument

MOST_CHARACTERS = 4_000_000
"""Maximum number of characters in one document; a law of 500 pages has about a third of that."""
_LONGEST_NAME = 200


class PreparingReader(Protocol):
    """Reads one document within limits; see `knowledge.isolation.reader_process`."""

    def prepare(
        self, item: Item, path: PurePosixPath, location: Location, *, most_characters: int | None
    ) -> Preparation: ...


async def read_attachment(
    reader: PreparingReader,
    name: str,
    data: bytes,
    *,
    groups: Sequence[str] = (),
    language_of: Callable[[str], str],
) -> AttachedDocument:
    """Return the document in a file's bytes; raises a `ReadingError`.

    The id is derived from name and bytes, so that the same file, attached twice, is one document.
    """
    shown = clean_name(name)
    path = PurePosixPath(shown)
    if formats.holds_many(path) or path.suffix.lower() == ".mbox":
        raise WrongFormatError("files that contain several documents cannot be attached")
    if not data.strip():
        raise NoTextError("the file is empty")
    item = Item(shown, data, shown)
    prepared = await asyncio.to_thread(
        reader.prepare, item, path, locate(path, ()), most_characters=MOST_CHARACTERS
    )
    if not prepared.passages:
        raise NoTextError("the document contains no text")
    size = sum(len(passage.text) for passage in prepared.passages)
    if size > MOST_CHARACTERS:
        raise TooLargeError(f"expected at most {MOST_CHARACTERS:,} characters, found {size:,}")
    page = prepared.page
    digest = hashlib.sha256(f"{shown}\0".encode() + data).hexdigest()[:32]
    return AttachedDocument(
        id=f"attached:{digest}",
        name=shown,
        title=page.title or page.name or shown,
        language=find_stated_language(page) or language_of(make_sample(page)),
        # A conversation stores only texts.
        passages=tuple(replace(passage, pictures=()) for passage in prepared.passages),
        groups=tuple(sorted(set(groups))),
    )


def clean_name(name: str) -> str:
    """Return a file name without folders and control characters, limited to a usual length."""
    last = clean_text(name).replace("\\", "/").rpartition("/")[2].replace("\n", " ").strip()
    stem, dot, suffix = last.rpartition(".")
    if not dot:
        return last[:_LONGEST_NAME]
    return f"{stem[: _LONGEST_NAME - len(suffix)]}.{suffix[:20]}"
