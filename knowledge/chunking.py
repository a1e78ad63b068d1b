"""Splits a page into chunks of about 75 words that overlap by about 20.

A chunk never crosses a heading. A code fence of up to `LARGEST_CODE` words is not split; a longer
one is split between lines, and each part is a separate fence. A table of up to `LARGEST_TABLE`
words is not split; a longer one is split between rows, and each part repeats the header. If the
header is as long as a passage, the table is first split between columns, and each part repeats the
first column. A longer row becomes several rows that repeat its first cell. Text is split between
sentences, a sentence longer than a chunk between words, and a word longer than a chunk between
characters. Inline code is not split, and each part of struck-out text has marks.

Scripts without spaces are measured in characters (`weight`). All steps take linear time. Repeated
content (the header of a table, the headings above a chunk, and the links in a chunk) is limited, so
that a small malicious page cannot produce a large amount of text.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from citations.abbreviations import ends_in_abbreviation
from citations.blocks import split_row
from citations.reading import restore, spans_aside
from citations.verbatim import STRUCK, find_struck, keep_literal
from knowledge.document import Chunk, Document
from knowledge.documents.page import Block, BlockKind, Page, Picture
from knowledge.link_places import Link, find_label, find_linked

VERSION = "6"
WORDS = 75
OVERLAP = 20
LARGEST_CODE = 400
LARGEST_TABLE = 150
HEADER_SHARE = 8
"""The header of a table may be at most this many times as long as the rows for which it is
repeated.
"""
MOST_PARTS = 64
"""Maximum number of tables into which the columns of one table are split."""
MOST_LINKS = 20
"""Maximum number of links that are stored for a chunk."""

_LONGEST_WORD = 15
_LONGEST_OPENING = 200
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
# Full stops are followed by a space and no small letter; ideographic ones by anything.
_WIDE_STOPS = ("\u3002", "\uff01", "\uff1f")
_SENTENCE_END = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019\u00bb)\]~]{0,3}\s+(?=[^\sa-z\u0430-\u044f])"
    r"|(?<=[\u3002\uff01\uff1f\u0964\u061f])[\u300d\u300f\u201d\uff09]{0,2}\s*"
    r"|\n+"
)
_LONGEST_NUMBER = 24
_NUMBER = re.compile(r"\s*(?:\d{1,4}(?:\.\d{1,4}){0,4}|[a-zA-Z])[.)]\Z")
_WORD = re.compile(r"(?:\A\s+)?\S+\s*")
_DELIMITER_ROW = re.compile(r"[\s|:+=-]+\Z")
# Preferred first: behind a comma, between two ideographs, and not before a combining character.
_BREAKS = (
    re.compile(f"(?<=[\u3001\uff0c\uff1b])(?={_IDEOGRAPHS.pattern})"),
    re.compile(f"(?<={_IDEOGRAPHS.pattern})(?={_IDEOGRAPHS.pattern})"),
    re.compile(r"(?=\w)"),
)


@dataclass(frozen=True, slots=True)
class ChunkText:
    """The text of a chunk and its position; its id is derived from the document id."""

    text: str
    heading_path: tuple[str, ...] = ()
    anchor: str | None = None
    links: tuple[tuple[str, str], ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(slots=True)
class _PageSection:
    """The content below one heading, or of one page of a PDF, as blocks with their links."""

    heading_path: tuple[str, ...]
    anchor: str | None
    blocks: list[tuple[Block, tuple[Link, ...]]] = field(default_factory=list)
    heading: str = ""
    has_parts: bool = False


class _StruckText:
    """Repeats the marks of struck-out text in each of its parts, which are given in order."""

    def __init__(self, text: str) -> None:
        self._states = (is_struck for _, is_struck in find_struck(text))
        self._is_struck = False

    def mark(self, part: str) -> str:
        """Return the next part with the marks that the split separated from it."""
        opening = STRUCK if self._is_struck else ""
        for _ in range(part.count(STRUCK)):
            self._is_struck = next(self._states, False)
        return f"{opening}{part}{STRUCK if self._is_struck else ''}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """The smallest part of a chunk; `joint` is the separator before it within a chunk."""

    text: str
    words: int
    joint: str
    repeatable: bool = True
    pictures: tuple[Picture, ...] = ()
    links: tuple[Link, ...] = ()


def name_chunks(passages: Iterable[ChunkText], document_id: str) -> tuple[Chunk, ...]:
    """Return passages in order as the chunks of a document."""
    return tuple(
        Chunk(
            chunk_id=f"{document_id}#{ordinal}",
            ordinal=ordinal,
            text=passage.text,
            heading_path=passage.heading_path,
            anchor=passage.anchor,
            links=passage.links,
            pictures=tuple((picture.id, picture.caption) for picture in passage.pictures),
        )
        for ordinal, passage in enumerate(passages)
    )


def passages(page: Page) -> Iterator[ChunkText]:
    """Yield the passages of a page in order, which are given by the source or determined here."""
    if page.prepared is not None and page.prepared.chunks:
        for text in page.prepared.chunks:
            yield ChunkText(text)
        return
    for section in _sections(page):
        for text, pictures, links in _texts(section):
            yield ChunkText(text, section.heading_path, section.anchor, links, pictures)


def text_to_embed(document: Document, chunk: Chunk) -> str:
    """Return the text that is embedded for a chunk, which is its heading path followed by its
    text.
    """
    crumbs = document.crumbs or (document.title,)
    place = _keep_innermost([crumb for crumb in (*crumbs, *chunk.heading_path) if crumb])
    once = [part for index, part in enumerate(place) if index == 0 or part != place[index - 1]]
    if once and chunk.text.startswith(once[-1]):
        once.pop()
    return f"{' > '.join(once)}\n{chunk.text}" if once else chunk.text


def weight(text: str) -> int:
    """Return the length of a text in equivalent words.

    Two ideographs or kana count as one word, as do five letters of Thai, Lao, Burmese, or Khmer. A
    word counts as at least one per 15 characters.
    """
    words = max(len(text.split()), len(text) // _LONGEST_WORD)
    if text.isascii():
        return words
    ideographs = len(_IDEOGRAPHS.findall(text))
    unspaced = len(_UNSPACED.findall(text))
    return max(words, ideographs // 2, unspaced // 5)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, in linear time."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end.start() - start <= _LONGEST_NUMBER and _NUMBER.match(text, start, end.start()):
            # The number of an item belongs to its first sentence.
            continue
        is_line = "\n" in end[0]
        if not is_line and ends_in_abbreviation(text, start, end.start(), end.end()):
            continue
        if sentence := text[start : end.end()].strip():
            yield sentence
        start = end.end()
    if sentence := text[start:].strip():
        yield sentence


def _list_links(text: str, pieces: Sequence[_Piece]) -> tuple[Link, ...]:
    """Return the links in pieces whose label is a link wherever it occurs in their text."""
    stands: dict[Link, int] = {}
    for piece in pieces:
        for link in piece.links:
            stands[link] = stands.get(link, 0) + sum(1 for _ in find_label(piece.text, link[0]))
    links = (
        link
        for link, count in stands.items()
        if 0 < count == sum(1 for _ in find_label(text, link[0]))
    )
    return tuple(islice(links, MOST_LINKS))


def _sections(page: Page) -> Iterator[_PageSection]:
    current = _PageSection((), None)
    path: list[tuple[int, str]] = []
    linked = find_linked(page.blocks, page.links)
    for number, block in enumerate(page.blocks):
        links = tuple(linked.get(number, ()))
        if block.kind is BlockKind.HEADING:
            while path and path[-1][0] >= block.level:
                path.pop()
            path.append((block.level, block.text))
            following = _PageSection(_titles(path, page.title), block.anchor, heading=block.text)
            current.has_parts = _is_above(current, following)
            yield current
            current = following
        elif block.anchor is not None and block.anchor != current.anchor:
            yield current
            current = _PageSection(current.heading_path, block.anchor, [(block, links)])
        else:
            current.blocks.append((block, links))
    yield current


def _titles(path: Sequence[tuple[int, str]], title: str) -> tuple[str, ...]:
    """Omit the page's own title, because it is already the last breadcrumb."""
    texts = [text for _, text in path]
    return tuple(_keep_innermost(texts[1:] if texts[0] == title else texts))


def _keep_innermost(place: Sequence[str]) -> Sequence[str]:
    """Return the last parts of a location whose total length does not exceed a chunk.

    Every chunk repeats them. The last part is kept regardless of its length.
    """
    words = 0
    for kept, part in enumerate(reversed(place)):
        words += weight(part)
        if kept and words > WORDS:
            return place[-kept:]
    return place


def _is_above(section: _PageSection, following: _PageSection) -> bool:
    depth = len(section.heading_path)
    return len(following.heading_path) > depth and (
        following.heading_path[:depth] == section.heading_path
    )


def _texts(
    section: _PageSection,
) -> Iterator[tuple[str, tuple[Picture, ...], tuple[Link, ...]]]:
    pieces = [piece for block, links in section.blocks for piece in _pieces(block, links)]
    if pieces:
        for chunk in _pack(pieces):
            pictures = (picture for piece in chunk for picture in piece.pictures)
            text = _join(chunk)
            yield text, tuple(dict.fromkeys(pictures)), _list_links(text, chunk)
    elif section.heading and not section.has_parts:
        yield section.heading, (), ()


def _pack(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    chunk: list[_Piece] = []
    words = fresh = 0
    for piece in pieces:
        if fresh and words + piece.words > WORDS:
            yield chunk
            chunk = _tail(chunk, WORDS - piece.words)
            words, fresh = sum(kept.words for kept in chunk), 0
        chunk.append(piece)
        words += piece.words
        fresh += 1
    if fresh:
        yield chunk


def _tail(chunk: Sequence[_Piece], room: int) -> list[_Piece]:
    """Return the last sentences, of about the size of an overlap, that leave room for the next
    part.

    Before a part that is larger than a chunk, the last sentence is kept, because it often
    introduces the part.
    """
    kept: list[_Piece] = []
    words = 0
    for piece in reversed(chunk[1:]):
        words += piece.words
        most = OVERLAP * 3 // 2 if room < 0 and not kept else min(OVERLAP * 3 // 2, room)
        if not piece.repeatable or words > most:
            break
        kept.insert(0, piece)
    return kept


def _join(chunk: Sequence[_Piece]) -> str:
    return "".join(
        piece.text if index == 0 else piece.joint + piece.text for index, piece in enumerate(chunk)
    )


def _pieces(block: Block, links: tuple[Link, ...]) -> Iterator[_Piece]:
    if block.kind is BlockKind.CODE:
        parts, joint, repeatable = _code_parts(block.text), "\n\n", False
    elif block.kind is BlockKind.TABLE:
        parts, joint, repeatable = _table_parts(block.text), "\n\n", False
    else:
        text = block.text
        if block.kind is not BlockKind.ITEM:
            text = keep_literal(text, may_list=not block.is_paragraph)
        parts, joint, repeatable = _text_parts(text), " ", True
    first = "\n" if block.kind is BlockKind.ITEM else "\n\n"
    following = joint
    for index, part in enumerate(parts):
        ends_line = part.endswith("\n")
        part = part.rstrip("\n")
        pictures = () if index else block.pictures
        joined = following if index else first
        yield _Piece(part, weight(part), joined, repeatable, pictures, links)
        following = "\n" if ends_line else _join_after(part, joint)


def _join_after(part: str, joint: str) -> str:
    """Return the separator after a part, which is empty after a full stop in a script without
    spaces.
    """
    return "" if joint == " " and part.endswith(_WIDE_STOPS) else joint


def _text_parts(text: str) -> Iterator[str]:
    """Yield the sentences of a text; the last one of a line ends with a line break."""
    indent = text[: len(text) - len(text.lstrip())]
    code: list[str] = []
    lines = [spans_aside(line, code, lambda span: span) for line in text.split("\n")]
    struck = _StruckText("\n".join(lines))
    for line in lines:
        parts = [part for sentence in sentences(line) for part in _split_sentence(sentence, code)]
        for number, part in enumerate(parts, 1):
            marked = restore(struck.mark(part), code)
            yield f"{indent}{marked}\n" if number == len(parts) else indent + marked
            indent = ""


def _split_sentence(sentence: str, code: Sequence[str] = ()) -> Iterator[str]:
    """Yield a sentence, split between words if it is longer than a chunk; `code` contains the code
    that its placeholders stand for.
    """

    def weigh(part: str) -> int:
        return weight(restore(part, code))

    if weigh(sentence) <= WORDS:
        yield sentence
        return
    words = (
        part
        for word in _WORD.findall(sentence)
        for part in ((word,) if weigh(word) <= WORDS else _split_words(restore(word, code), WORDS))
    )
    for group in _group(words, WORDS, weigh):
        yield "".join(group).strip()


def _split_words(text: str, room: int) -> Iterator[str]:
    """Yield the words of a text, and the parts of a word that is longer than `room`."""
    for word in _WORD.findall(text):
        words = weight(word)
        size = len(word) if words <= room else max(1, len(word) * room // words)
        start = 0
        while len(word) - start > size:
            end = _find_break(word, start, size)
            yield word[start:end]
            start = end
        yield word[start:]


def _find_break(word: str, start: int, size: int) -> int:
    """Return where a part of a word of at most `size` characters ends."""
    window = start + (size + 1) // 2, start + size + 1
    for pattern in _BREAKS:
        if ends := [match.start() for match in pattern.finditer(word, *window)]:
            return ends[-1]
    return start + size


def _code_parts(text: str) -> Iterator[str]:
    if weight(text) <= LARGEST_CODE:
        yield text
        return
    opening, *lines, closing = text.split("\n")
    opening = opening[:_LONGEST_OPENING]
    bounded = (part for line in lines for part in _line_parts(line))
    for group in _group(bounded, LARGEST_CODE):
        yield "\n".join((opening, *group, closing))


def _line_parts(line: str) -> Iterator[str]:
    if weight(line) <= LARGEST_CODE:
        yield line
        return
    for group in _group(_split_words(line, LARGEST_CODE), LARGEST_CODE):
        yield "".join(group)


def _table_parts(text: str) -> Iterator[str]:
    rows = text.split("\n")
    if sum(map(_row_weight, rows)) <= LARGEST_TABLE:
        yield text
        return
    above = 2 if len(rows) > 2 and _DELIMITER_ROW.match(rows[1]) else 1
    length = sum(map(len, rows[:above]))
    if sum(map(_row_weight, rows[:above])) > WORDS or length > WORDS * _LONGEST_WORD:
        # As long as a passage itself, so it is not repeated as a header.
        if (short := _write_row(map(_shorten, split_row(rows[0])))) != _write_row(
            split_row(rows[0])
        ):
            for line in _row_parts(rows[0], 0):
                yield "\n".join((line, *rows[1:above]))
            yield from _table_parts("\n".join((short, *rows[1:])))
            return
        if narrower := _split_columns([split_row(row) for row in rows], above):
            yield from (part for table in narrower for part in _table_parts("\n".join(table)))
            return
        above = length = 0
    header, body = rows[:above], rows[above:]
    room = max(WORDS - sum(map(_row_weight, header)), WORDS // 3)
    columns = len(split_row(header[0])) if header else 0
    lines = (line for row in body for line in _row_parts(row, columns))
    for group in _group(lines, room, _row_weight, length // HEADER_SHARE):
        part = "\n".join((*header, *group))
        yield part if header else f"{part}\n"


def _shorten(name: str) -> str:
    """Return the beginning of the name of a column that is too long to be repeated."""
    if weight(name) <= WORDS // 3:
        return name
    return f"{''.join(next(_group(_split_words(name, OVERLAP), OVERLAP))).strip()} \u2026"


def _split_columns(rows: list[list[str]], above: int) -> list[list[str]]:
    """Return the rows of narrower tables with short headers, each with the first column; nothing if
    there are none.
    """
    width = max(map(len, rows))
    for row, empty in zip(rows[:above], ("", "---"), strict=False):
        row += [empty] * (width - len(row))  # a row may have more cells than the header
    names = rows[0]
    groups: list[list[int]] = [[]]
    words = 0
    for column, name in enumerate(names[1:], 1):
        words += max(1, weight(name))
        if groups[-1] and words > WORDS // 3:
            groups.append([])
            words = max(1, weight(name))
        groups[-1].append(column)
    if not 1 < len(groups) <= MOST_PARTS:
        return []
    tables = [
        [_write_row([row[column] for column in (0, *group) if column < len(row)])
         for number, row in enumerate(rows)
         if number < above or not any(row[1:]) or any(row[group[0] : group[-1] + 1])]
        for group in groups
    ]  # fmt: skip
    written, length = (sum(len(text) for row in part for text in row) for part in (tables, rows))
    return tables if written <= HEADER_SHARE * length else []


def _row_parts(row: str, columns: int) -> Iterator[str]:
    """Yield a row, or several rows with parts of its cells below the same columns."""
    cells = split_row(row)
    if _row_weight(row) <= LARGEST_TABLE:
        yield row
    elif len(cells) > max(columns, MOST_PARTS):
        yield from _split_sentence(row)
    else:
        label = cells[0] if weight(cells[0]) <= OVERLAP else ""
        part = {0: label} if label else {}
        for column, cell in enumerate(cells[len(part) :], len(part)):
            sentences_of_cell = (text.rstrip("\n") for text in _text_parts(cell))
            for group in _group(sentences_of_cell, WORDS):
                words = sum(map(weight, part.values()))
                if column in part or words + sum(map(weight, group)) > WORDS + weight(label):
                    yield _write_row([part.get(place, "") for place in range(len(cells))])
                    part = {0: label} if label else {}
                part[column] = " ".join(group)
        yield _write_row([part.get(place, "") for place in range(len(cells))])


def _write_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _row_weight(row: str) -> int:
    return weight(row.replace("|", " "))


def _group(
    lines: Iterable[str],
    room: int,
    weigh: Callable[[str], int] | None = None,
    least_length: int = 0,
) -> Iterator[list[str]]:
    """Group lines into at most `room` words, unless a group is shorter than `least_length`."""
    weigh = weight if weigh is None else weigh
    group: list[str] = []
    words = length = 0
    for line in lines:
        words += weigh(line)
        if group and words > room and length >= least_length:
            yield group
            group, words, length = [], weigh(line), 0
        group.append(line)
        length += len(line)
    if group:
        yield group
