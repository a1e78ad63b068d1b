"""Writes some chunks of a section as one text, in which every cut is marked.

| in the section                 | in the text                                             |
|--------------------------------|---------------------------------------------------------|
| omitted chunks                 | `[... 1,240 words left out]`                            |
| omitted chunks with table rows | `[... 310 words left out, with 27 rows of the table]`   |
| chunks that were not read      | `[... more left out]`                                   |
| the label of a web link        | the label, followed by the URL in brackets              |
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from knowledge.link_places import find_label
from knowledge.sections import DELIMITER_ROW, count_overlap, count_table_header, join_texts

MARK = "[... "
"""The beginning of a line that marks a cut. It is written for a model, and is not text from a
document.
"""
_MORE = f"{MARK}more left out]"
_BETWEEN = "\n\n"
_FENCE = "```"


@dataclass(frozen=True, slots=True)
class SectionText:
    """A text; `spans` contains the start and end of each given chunk in it, by chunk position."""

    text: str
    spans: Mapping[int, tuple[int, int]]
    is_cut: bool


@dataclass(slots=True)
class _Text:
    """A text that is being written, with the spans of its chunks."""

    text: str = ""
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    is_cut: bool = False

    def append(self, text: str) -> int:
        """Add a block; return the position where it begins."""
        if self.text:
            self.text += _BETWEEN
        self.text += text
        return len(self.text) - len(text)


def write_section(
    texts: Sequence[str],
    given: Collection[int],
    links: Mapping[int, Sequence[tuple[str, str]]] | None = None,
    *,
    begins_before: bool = False,
    goes_on: bool,
) -> SectionText:
    """Given the texts of all chunks of a section, return the text of those at the positions in
    `given`.

    `links` contains the labels and URLs of the links in each given chunk. `begins_before` and
    `goes_on` are true if the section has unread chunks before or after these.
    """
    written = _Text()
    given = {*given, *_find_repeated(texts, given)}
    if begins_before and 0 in given:
        written.append(_MORE)
        written.is_cut = True
    for is_given, first, last in _list_runs(len(texts), given):
        if is_given:
            joined = join_texts(texts[first : last + 1])
            start = written.append(joined.text)
            for position, (begin, end) in enumerate(joined.spans, start=first):
                written.spans[position] = start + begin, start + end
        else:
            is_more = (begins_before and not first) or (goes_on and last + 1 == len(texts))
            written.append(_mark_gap(texts, first, last, is_more=is_more))
            written.is_cut = True
    if goes_on and len(texts) - 1 in given:
        written.append(_MORE)
        written.is_cut = True
    _add_addresses(written, links or {})
    return SectionText(written.text, written.spans, written.is_cut)


def _list_runs(count: int, given: Collection[int]) -> Iterator[tuple[bool, int, int]]:
    """Yield sequences of given positions, and of the positions between them."""
    first = 0
    for position in range(1, count + 1):
        if position == count or (position in given) != (first in given):
            yield first in given, first, position - 1
            first = position


def _find_repeated(texts: Sequence[str], given: Collection[int]) -> Iterator[int]:
    """Yield the positions of chunks that are not given, but whose words are contained in the given
    chunks around them.
    """
    for is_given, first, last in _list_runs(len(texts), given):
        if not is_given and not _count_words(texts, first, last):
            yield from range(first, last + 1)


def _mark_gap(texts: Sequence[str], first: int, last: int, *, is_more: bool) -> str:
    more = "more than " if is_more else ""
    count = _count_rows(texts, first, last)
    rows = f", with {count} row{'s' * (count > 1)} of the table" if count else ""
    return f"{MARK}{more}{_count_words(texts, first, last):,} words left out{rows}]"


def _count_words(texts: Sequence[str], first: int, last: int) -> int:
    """Return the words of a gap that the chunks around it do not contain."""
    gap = join_texts(texts[first : last + 1]).text
    before = count_overlap(texts[first - 1], texts[first]) if first else 0
    after = count_overlap(texts[last], texts[last + 1]) if last + 1 < len(texts) else 0
    return len(gap[before : len(gap) - after if after else None].split())


def _count_rows(texts: Sequence[str], first: int, last: int) -> int:
    """Return the number of omitted rows of the tables that a gap cuts.

    The total number of rows is unknown if not all chunks of a table were read.
    """

    def is_continued(at: int) -> bool:
        return 0 <= at < len(texts) - 1 and bool(count_table_header(texts[at], texts[at + 1]))

    above = list(takewhile(lambda at: is_continued(at - 1), range(first, last + 1)))
    below = list(takewhile(is_continued, range(last, first - 1, -1)))
    cut = {*above, *below}
    return sum(_rows_of(texts, at, is_first=not is_continued(at - 1)) for at in cut)


def _rows_of(texts: Sequence[str], at: int, *, is_first: bool) -> int:
    """Return the rows of the part of a table in a chunk, without the header."""
    blocks = texts[at].split(_BETWEEN)
    lines = (blocks[-1] if is_first else blocks[0]).split("\n")
    return len(lines) - (2 if len(lines) > 1 and DELIMITER_ROW.match(lines[1]) else 1)


def _add_addresses(written: _Text, links: Mapping[int, Sequence[tuple[str, str]]]) -> None:
    added: set[tuple[str, str]] = set()
    for position, own in links.items():
        for link in own:
            if link not in added:
                added.add(link)
                _add_address(written, position, *link)


def _add_address(written: _Text, position: int, label: str, address: str) -> None:
    """Insert the URL after the first occurrence of a label in its chunk, outside of code."""
    code = list(_list_code(written.text))
    first, last = written.spans[position]
    for begin in find_label(written.text[first:last], label):
        start, end = first + begin, first + begin + len(label)
        if not any(opens < end and start < closes for opens, closes in code):
            _insert(written, end, f" ({address})")
            return


def _list_code(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each block of code."""
    start, fence, at = -1, "", 0
    for line in text.split("\n"):
        if start < 0 and line.startswith(_FENCE):
            start, fence = at, line[: len(line) - len(line.lstrip("`"))]
        elif start >= 0 and line.startswith(fence):
            yield start, at + len(line)
            start = -1
        at += len(line) + 1
    if start >= 0:
        yield start, len(text)


def _insert(written: _Text, at: int, text: str) -> None:
    """Insert a text; a span that ends there does not contain it."""

    def move(place: int) -> int:
        return place + len(text) if place > at else place

    written.text = written.text[:at] + text + written.text[at:]
    written.spans = {
        address: (move(first), move(last)) for address, (first, last) in written.spans.items()
    }
