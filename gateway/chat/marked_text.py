"""Converts Markdown to plain text with marks, which each platform renders in its own format.

A code block that must be split continues as code in the next piece, because marks are split with
the text. A character is never split, and never separated from the characters that combine with it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

from citations.addresses import find_addresses, page_of
from gateway.answer import Source
from knowledge.documents.markup.wide_rows import widen_tables

BULLET = "• "
RULE = "———"
BETWEEN_CELLS = " · "
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_INLINE = {"strong": "bold", "em": "italic", "s": "strike"}

_TICKS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class Mark:
    """Formatting of the text from `start` to `end` (characters); `detail` is a URL or a language.

    Types: bold, italic, strike, code, pre, quote, link, and more (collapsed text). Marks can be
    nested, but never overlap partially.
    """

    start: int
    end: int
    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Marked:
    """A text and its marks, with outer marks first."""

    text: str
    marks: tuple[Mark, ...] = ()

    def slice(self, start: int, end: int) -> "Marked":
        """Return a piece with its marks, without surrounding white space.

        A piece that begins within code keeps the indentation of its first line.
        """
        piece = self.text[start:end]
        end = start + len(piece.rstrip())
        start = self._begun(start, start + len(piece) - len(piece.lstrip()))
        marks = (
            Mark(max(mark.start, start) - start, min(mark.end, end) - start, mark.kind, mark.detail)
            for mark in self.marks
            if mark.start < end and mark.end > start
        )
        return Marked(self.text[start:end], tuple(marks))

    def _begun(self, start: int, first: int) -> int:
        """Return the start of a piece whose first visible character is at `first`."""
        for mark in self.marks:
            if mark.kind == "pre" and mark.start <= first < mark.end:
                start = max(start, mark.start)
                return max(start, self.text.rfind("\n", start, first) + 1)
        return first


Measure = Callable[[Marked], int]
_BORDERS = (
    re.compile(r"\n\n+"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])\s|(?<=[。！？।؟])"),
    re.compile(r"\s"),
)
LEAST_SHARE = 0.3
"""A boundary before this share of the maximum length would make the piece too short."""
UNCUT = frozenset({"pre", "code", "link"})
"""Marks that are split only if there is no other boundary."""
ZERO_WIDTH_JOINER = "\u200d"
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
VIRAMA = 9
"""The combining class of the character that joins two letters of an Indic script."""


@dataclass(slots=True)
class _Table:
    """A table that is being converted, with one line per row, because chats cannot display
    columns.
    """

    names: list[str] = field(default_factory=list)
    cell: int = -1
    """The index of the cell within its row; negative in the header row."""


@dataclass(slots=True)
class _List:
    """A list that is being converted. Items keep their numbers, which in a document may have gaps;
    only items that all have the same number are counted.
    """

    written: str = ""
    number: int = 0

    def count(self, written: str) -> str:
        """Return the number of the next item."""
        is_same = written == self.written
        self.written, self.number = written, self.number + 1 if is_same else int(written)
        return str(self.number) if is_same else written


@dataclass(slots=True)
class _Writer:
    parts: list[str] = field(default_factory=list)
    length: int = 0
    marks: list[Mark] = field(default_factory=list)
    lists: list["_List"] = field(default_factory=list)
    begun: list[tuple[int, str, str]] = field(default_factory=list)
    sign_end: int = -1
    """The end of the text while a list item has a bullet but no text yet."""
    table: _Table | None = None

    def text(self) -> str:
        """The text written so far."""
        return "".join(self.parts)

    def write(self, token: Token) -> None:
        match token.type:
            case "inline" if self.table is not None:
                self._write_cell(token.children or [], self.table)
            case "inline":
                self._inline(token.children or [])
            case "fence" | "code_block":
                self._gap(2)
                self._write_marked(
                    token.content.rstrip("\n"), "pre", token.info.strip().split(" ")[0]
                )
            case "hr":
                self._gap(2)
                self._add(RULE)
            case "html_block":
                self._gap(2)
                self._add(token.content.rstrip("\n"))
            case kind:
                self._structure(kind, token)

    def _structure(self, kind: str, token: Token) -> None:
        match kind:
            case "paragraph_open":
                self._gap(1 if token.hidden else 2)
            case "heading_open" | "blockquote_open":
                self._gap(2)
                self._begin("bold" if kind.startswith("heading") else "quote")
            case "heading_close" | "blockquote_close":
                self._end()
            case "bullet_list_open" | "ordered_list_open":
                self._list()
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
            case "list_item_open":
                self._item(token)
            case _:
                self._table_part(kind)

    def _table_part(self, kind: str) -> None:
        match kind:
            case "table_open":
                self._gap(2)
                self.table = _Table()
            case "table_close" if self.table is not None:
                self._add("" if self.table.cell >= 0 else BETWEEN_CELLS.join(self.table.names))
                self.table = None
            case "tbody_open" | "td_close" if self.table is not None:
                self.table.cell += 1
            case "tr_open" if self.table is not None and self.table.cell >= 0:
                self.table.cell = 0
                self._gap(1)
                self._add("  " * len(self.lists) + BULLET)
            case _:
                pass

    def _write_cell(self, tokens: Sequence[Token], table: _Table) -> None:
        """Write a cell after the name of its column, with the first cell in bold."""
        if table.cell < 0:
            table.names.append("".join(token.content for token in tokens))
            return
        name = table.names[table.cell]
        if table.cell and tokens:
            self._add(BETWEEN_CELLS)
        self._add(f"{name}: " if name and tokens else "")
        if table.cell == 0 and all(token.type != "strong_open" for token in tokens):
            self._begin("bold")
            self._inline(tokens)
            self._end()
        else:
            self._inline(tokens)

    def _list(self) -> None:
        self._gap(1 if self.lists else 2)
        self.lists.append(_List())

    def _item(self, token: Token) -> None:
        self._gap(1)
        mark = f"{self.lists[-1].count(token.info)}{token.markup} " if token.info else BULLET
        self._add("  " * (len(self.lists) - 1) + mark)
        self.sign_end = self.length

    def _inline(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            kind, _, side = token.type.rpartition("_")
            match token.type:
                case "softbreak" | "hardbreak":
                    self._add("\n")
                case "code_inline":
                    self._write_marked(token.content, "code")
                case "image":
                    self._add(token.content)
                case "link_open":
                    self._begin("link", str(token.attrs.get("href", "")))
                case "link_close":
                    self._end()
                case _ if kind in _INLINE:
                    self._begin(_INLINE[kind]) if side == "open" else self._end()
                case _:
                    self._add(token.content)

    def _add(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.length += len(text)

    def _gap(self, lines: int) -> None:
        """Begin a block after this many line breaks, unless the bullet of an item precedes it."""
        if self.length and self.length != self.sign_end:
            self._add("\n" * max(lines, self._without_line_ends()))

    def _without_line_ends(self) -> int:
        """Remove the line breaks at the end, and return how many there were."""
        before = self.length
        while self.parts and self.parts[-1].endswith("\n"):
            last = self.parts.pop()
            rest = last.rstrip("\n")
            self.length -= len(last)
            self._add(rest)
        return before - self.length

    def _begin(self, kind: str, detail: str = "") -> None:
        self.begun.append((self.length, kind, detail))

    def _end(self) -> None:
        start, kind, detail = self.begun.pop()
        if self.length > start:
            self.marks.append(Mark(start, self.length, kind, detail))

    def _write_marked(self, text: str, kind: str, detail: str = "") -> None:
        self._begin(kind, detail)
        self._add(text)
        self._end()


def parse_marked(markdown: str) -> Marked:
    """Return a Markdown text as plain text with marks; the result is empty only if the input is."""
    writer = _Writer()
    for token in _MARKDOWN.parse(widen_tables(markdown, _MARKDOWN)):
        writer.write(token)
    text = writer.text()
    if not text.strip():
        return Marked(markdown.strip())
    writer.marks.reverse()  # of two marks of the same text, the outer one ended last
    return Marked(text.rstrip("\n"), tuple(sorted(writer.marks, key=_outer_first)))


def keep_source_links(text: Marked, sources: Sequence[Source]) -> Marked:
    """Return a text in which only pages of the answer's sources are linked."""
    pages = {
        page_of(place)
        for source in sources
        for place in (source.link, source.url, *source.links)
        if place
    }
    kept = (mark for mark in text.marks if mark.kind != "link" or page_of(mark.detail) in pages)
    return Marked(text.text, tuple(kept))


def with_addresses_as_code(text: Marked) -> Marked:
    """Return a text in which every URL is either code or a link.

    Platforms turn any text that looks like a URL into a link, except within code.
    """
    settled = [mark for mark in text.marks if mark.kind in {"link", "code", "pre"}]
    marks = (
        Mark(address.start, address.end, "code")
        for address in find_addresses(text.text, any_name=True)
        if not any(mark.start < address.end and address.start < mark.end for mark in settled)
    )
    return Marked(text.text, tuple(sorted((*text.marks, *marks), key=_outer_first)))


def plain_title(text: str) -> str:
    """Return a title as plain text, without the backticks around code."""
    parts = _TICKS.split(text)
    if len(parts) % 2 == 0:
        # An unclosed mark is plain text.
        parts[-2:] = [f"{parts[-2]}`{parts[-1]}"]
    return "".join(parts)


def utf16_units(text: str) -> int:
    """Return the length in UTF-16 code units, which Telegram uses for lengths."""
    return len(text) + sum(character > "\uffff" for character in text)


def split(whole: Marked, *, longest: int, measure: Measure) -> list[Marked]:
    """Return at least one piece; each has at most `longest`, as measured by `measure`, which must
    grow with the text.
    """
    pieces, start = [], 0
    while start < len(whole.text):
        near = _near(whole, start, start + longest + 1)
        fits = _fitting(near, start, longest, measure)
        end = _border(near, start, fits)
        piece = near.slice(start, end)
        if piece.text:
            pieces.append(piece)
        start = end
    return pieces or [whole]


def _outer_first(mark: Mark) -> tuple[int, int]:
    return mark.start, -mark.end


def _near(whole: Marked, start: int, end: int) -> Marked:
    """Return the whole text with only those marks that touch the range from `start` to `end`."""
    marks = (mark for mark in whole.marks if mark.start < end and mark.end > start)
    return Marked(whole.text, tuple(marks))


def _fitting(whole: Marked, start: int, longest: int, measure: Measure) -> int:
    """Return the furthest end of a piece that fits, by binary search; at least one character."""
    # One more than the longest: it may be the space that is left out behind a last word.
    low, high = start + 1, min(len(whole.text), start + longest + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(whole.slice(start, middle)) <= longest:
            low = middle
        else:
            high = middle - 1
    return low


def _border(whole: Marked, start: int, fits: int) -> int:
    if fits >= len(whole.text):
        return fits
    least = start + int((fits - start) * LEAST_SHARE)
    uncut = [mark for mark in whole.marks if mark.kind in UNCUT]
    across = [mark for mark in uncut if mark.start < fits < mark.end]
    code = [mark for mark in across if mark.kind == "pre"]
    if code and code[0].start > least:
        return code[0].start  # the block fits the next piece better than both
    for kept in (uncut, [mark for mark in uncut if mark not in across]):
        for border in _BORDERS[1:2] if code else _BORDERS:
            ends = [end for end in _ends(border, whole.text, least, fits, kept) if end > start]
            if ends:
                return ends[-1]
    return _whole_character(whole.text, start, fits)


def _ends(
    border: re.Pattern[str], text: str, least: int, fits: int, uncut: Sequence[Mark]
) -> Iterator[int]:
    outermost = _outermost(uncut)
    ends = [mark.end for mark in outermost]
    for match in border.finditer(text, least, fits):
        end = match.end()
        place = bisect_right(ends, end)
        if place == len(outermost) or outermost[place].start >= end:
            yield end


def _outermost(marks: Sequence[Mark]) -> list[Mark]:
    """Return the marks that are not within another mark; marks never cross."""
    outermost: list[Mark] = []
    for mark in marks:
        if not outermost or mark.start >= outermost[-1].end:
            outermost.append(mark)
    return outermost


def _whole_character(text: str, start: int, fits: int) -> int:
    end = fits
    while end > start + 1 and _belongs(text, end):
        end -= 1
    return end if end > start + 1 or not _belongs(text, end) else fits


def _belongs(text: str, place: int) -> bool:
    """Return whether the character at `place` combines with the one before it."""
    before, character = text[place - 1], text[place]
    if before == ZERO_WIDTH_JOINER or unicodedata.combining(before) == VIRAMA:
        return True
    if character in _FLAG_LETTERS:
        # Flags are pairs: an odd number of such letters before this one leaves it the second.
        return (place - len(text[:place].rstrip(_FLAG_LETTERS))) % 2 == 1
    return (
        unicodedata.category(character).startswith("M")
        or character == ZERO_WIDTH_JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # the colour of a skin
        or "\U000e0020" <= character <= "\U000e007f"  # the letters of a region's flag
    )
