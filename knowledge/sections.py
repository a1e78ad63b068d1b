"""Joins the chunks of a document into readable sections.

The index stores no other text of a document. Text that two chunks of one section share appears only
once in the section, because `knowledge.chunking` begins a chunk with the last sentences of the
previous one, and repeats the header of a long table in each of its parts.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from knowledge.document import Chunk

if TYPE_CHECKING:
    from knowledge.index.port import ReadableIndex

LONGEST_OVERLAP = 1_000
"""Maximum number of characters of an overlap, which has at most 30 words of at most 15 characters
each.
"""
DELIMITER_ROW = re.compile(r"[\s|:+=-]+\Z")
"""The row between the header and the body of a table."""
_BETWEEN = "\n\n"
_ROW, _FENCE = "|", "```"
BYTES_PER_TOKEN = 4
"""Approximately right for English prose and code; letters in other scripts count for more, because
models use more tokens for them.
"""


@dataclass(frozen=True, slots=True)
class JoinedText:
    """The text of consecutive chunks; `spans` contains the start and end of each chunk in it.

    Spans overlap if chunks do. The span of a part of a table begins at the table's header.
    """

    text: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """The text below one heading, with blocks as in Markdown, and the ids of its chunks.

    `pictures` contains its pictures, by id and caption, and `links` its web links, by label and
    URL.
    """

    heading_path: tuple[str, ...]
    anchor: str | None
    text: str
    chunk_ids: frozenset[str] = frozenset()
    pictures: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Sections:
    """A document in the format in which people read it."""

    title: str
    crumbs: tuple[str, ...]
    language: str
    url: str | None
    sections: tuple[Section, ...] = field(default_factory=tuple)


def document_of(chunk_id: str) -> str:
    """Return the id of the document to which a chunk belongs."""
    return chunk_id.rpartition("#")[0]


async def read_document(index: "ReadableIndex", document_id: str) -> Sections | None:
    """Return a document in an index, or None if the index no longer contains it.

    Raises `IndexUnavailable`.
    """
    for document in await index.load([document_id]):
        points = [chunk.point for chunk in document.chunks]
        stored = await index.passages(points)
        passages = [stored[point] for point in points if point in stored]
        if passages:
            first = passages[0]
            chunks = sorted((passage.chunk for passage in passages), key=lambda item: item.ordinal)
            return Sections(
                first.title, first.crumbs, first.language, first.url, join_chunks(chunks)
            )
    return None


def join_chunks(chunks: Iterable[Chunk]) -> tuple[Section, ...]:
    """Return the sections of chunks, which must be in document order."""
    return tuple(
        _section(path, anchor, list(of_section))
        for (path, anchor), of_section in groupby(
            chunks, key=lambda chunk: (chunk.heading_path, chunk.anchor)
        )
    )


def join_texts(texts: Sequence[str]) -> JoinedText:
    """Return the texts of consecutive chunks of one section as one text."""
    joined = ""
    spans: list[tuple[int, int]] = []
    for number, text in enumerate(texts):
        if not number:
            joined, start = text, 0
        elif header := count_table_header(texts[number - 1], text):
            start = joined.rfind(_BETWEEN) + len(_BETWEEN) if _BETWEEN in joined else 0
            joined += text[header:]
        elif _has_further_rows(texts[number - 1], text):
            start = len(joined) + 1
            joined += f"\n{text}"
        elif shared := count_overlap(texts[number - 1], text):
            start = len(joined) - shared
            joined += text[shared:]
        else:
            start = len(joined) + len(_BETWEEN)
            joined += f"{_BETWEEN}{text}"
        spans.append((start, len(joined)))
    return JoinedText(joined, tuple(spans))


def count_overlap(before: str, after: str) -> int:
    """Return how many characters at the beginning of a text repeat the end of the previous text.

    Only whole words count, because a shared letter means nothing. Chunks repeat sentences, but not
    rows or code: the bars of two rows and the fences of two code blocks are not shared text.
    """
    if before.rpartition("\n")[2].lstrip().startswith((_ROW, _FENCE)):
        return 0
    indent = len(after) - len(after.lstrip())
    words = after[indent : indent + LONGEST_OVERLAP].split(maxsplit=1)
    if not words:
        return 0
    opening = after[: indent + len(words[0])]
    at = before.find(opening, max(0, len(before) - LONGEST_OVERLAP))
    while at >= 0:
        is_word = at == 0 or before[at - 1].isspace()
        if is_word and after.startswith(before[at:]):
            return len(before) - at
        at = before.find(opening, at + 1)
    return 0


def count_table_header(before: str, after: str) -> int:
    """Return the length of the header with which a text continues the table in the previous text.

    The line break after the header is not counted. Returns 0 if no table is continued.
    """
    table = before.rpartition(_BETWEEN)[2].split("\n")
    part = after.partition(_BETWEEN)[0].split("\n")
    shared = 0
    while shared < min(len(table), len(part), 2) and table[shared] == part[shared]:
        shared += 1
    if not shared or "|" not in part[0] or len(part) <= shared or len(table) <= shared:
        return 0
    return len("\n".join(part[:shared]))


def count_tokens(text: str) -> int:
    """Return the estimated number of tokens in a text, without using a model's tokenizer."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def _has_further_rows(before: str, after: str) -> bool:
    """Return whether a text continues the table in the previous text without repeating its
    header.
    """
    first, _, following = after.partition("\n")
    has_header = DELIMITER_ROW.match(following.partition("\n")[0])
    rows = before.rpartition("\n")[2], first
    return not has_header and all(row.startswith(_ROW) for row in rows)


def _section(path: tuple[str, ...], anchor: str | None, chunks: Sequence[Chunk]) -> Section:
    text = join_texts([chunk.text for chunk in chunks]).text
    pictures = tuple(dict.fromkeys(picture for chunk in chunks for picture in chunk.pictures))
    links = tuple(dict.fromkeys(link for chunk in chunks for link in chunk.links))
    chunk_ids = frozenset(chunk.chunk_id for chunk in chunks)
    return Section(path, anchor, text, chunk_ids, pictures, links)
