"""Composes the passages that are shown when no model wrote an answer. The parts of the sources that
the search found are shown unchanged and are not judged. Prose is shown in whole sentences; a list
or a code block whole, below its lead-in; of a long table the rows that hold words of the question,
below its header. The words of the question are bold, but for common ones.
A passage with instructions to an assistant is marked, and is never the first.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import groupby, pairwise
from math import log
from operator import itemgetter

from citations.claims import sentences
from citations.reading import restore, spans_aside
from envelope.sources import SourceReference
from knowledge.index.terms import terms
from knowledge.search.section_text import MARK

MOST_PASSAGES = 3
MOST_HITS = 3
"""The number of hits that are shown, in at most `MOST_PASSAGES` sections."""
HITS_PER_SECTION = 2
LEAST_SHARE = 1 / 3
"""A further passage is left out if it holds no more of the question's words than this share of
those that the first one holds."""
STUB_WORDS = 6
"""A passage of fewer words, such as "See Install.", is left out if there is another."""
LONGEST_LIST = 250
"""Words of a list or of code that is shown whole though the search found only a part of it."""
WHOLE_TABLE = 5
"""Rows of a table that is shown whole even if some rows match."""
MOST_ROWS = 15
_LABEL_WORDS = 6
_ROW_SHARE = 0.6
"""A row is shown if it scores this share of the best row."""
_GAP = "\u2026"

_FENCE = re.compile(r"[ \t]{0,24}(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]{0,24}(?:[-*+\u2022]|(\d{1,3})[.)])[ \t]")
_DELIMITERS = re.compile(r"[\s|:+=-]+\Z")
_CELL_END = re.compile(r"(?<!\\)\|")
_BEGIN, _END = "\1", "\2"
"""Around a marked word while a text is marked; `make_safe` has removed all control characters."""
_BOLD = str.maketrans({_BEGIN: "**", _END: "**"})
_MARKED = re.compile(f"{_BEGIN}([^{_BEGIN}{_END}]*){_END}")
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0670\u0900-\u0963"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(
    # Text that must not be changed: links, tags, addresses, emphasis.
    r"\]\([^()\n]{0,500}\)|<[^<>\n]{0,200}>|https?://\S{1,500}|\*\*[^*\n]{1,300}\*\*|\0\d{1,9}\0"
    rf"|(?P<signs>[{_UNSPACED}]+)|(?P<word>(?:(?![{_UNSPACED}])[\w{_MARKS}])+)"
)

MakeSafe = Callable[[SourceReference, str, bool], str]
"""Returns a part of a source without foreign links and control characters; of a passage that gives
orders (True), without any address."""
CountedRows = Callable[[int, int], str]
"""Returns the words for the number of shown rows and of all rows."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The parts of one source that are shown, and the words of the question that they hold."""

    source: SourceReference
    text: str
    marked: frozenset[str]
    is_suspicious: bool = False


class _Kind(Enum):
    PROSE = auto()
    LIST = auto()
    CODE = auto()
    TABLE = auto()


@dataclass(frozen=True, slots=True)
class _Block:
    """A paragraph, list, table or code block: its place in the text of a source."""

    kind: _Kind
    start: int
    end: int

    def overlap(self, spans: Iterable[tuple[int, int]]) -> int:
        return sum(max(0, min(self.end, end) - max(self.start, start)) for start, end in spans)


@dataclass(slots=True)
class _Found:
    """The hits in one section."""

    source: SourceReference
    text: str
    spans: list[tuple[int, int]] = field(default_factory=list)


def compose_passages(
    question: str,
    references: Sequence[SourceReference],
    context: str,
    *,
    counted_rows: CountedRows,
    make_safe: MakeSafe,
    is_suspicious: Callable[[str], bool],
    common: Collection[str] = (),
) -> tuple[Passage, ...]:
    """Return the passages around the best hits, the best first.

    Terms of the question that are `common` in the documents are not bold, unless all are.
    `context` contains the texts of the sources. Words are marked after `make_safe`, so that no mark
    hides an address. Returns nothing if every passage gives orders to an assistant.
    """
    made = [
        _compose(question, one, counted_rows, make_safe, is_suspicious, common)
        for one in _choose_sections(references, context)
    ]
    trusted = [passage for passage in made if not passage.is_suspicious]
    if not trusted:
        return ()
    # A number that the question names is exact: passages that hold it come first.
    trusted.sort(key=lambda one: -sum(term.isdigit() for term in _find_asked(question, one)))
    first, *others = (*trusted, *(one for one in made if one.is_suspicious))
    least = LEAST_SHARE * len(_find_asked(question, first))
    return (
        first,
        *(one for one in others if not least or len(_find_asked(question, one)) > least),
    )


def _find_asked(question: str, passage: Passage) -> frozenset[str]:
    """Return the words of the question that a passage, or its place, holds."""
    language = passage.source.language or "en"
    held = terms(f"{name_place(passage.source)}\n{passage.text}", language)
    return frozenset(terms(question, language)).intersection(held)


def _compose(
    question: str,
    found: _Found,
    counted_rows: CountedRows,
    make_safe: MakeSafe,
    is_suspicious: Callable[[str], bool],
    common: Collection[str],
) -> Passage:
    asked = frozenset(terms(question, found.source.language or "en"))
    shown = _show(found, asked, counted_rows)
    marker = _Marker(asked.difference(common) or asked, found.source.language or "en")
    gives_orders = is_suspicious("\n\n".join(part for _, part in shown))
    safe = [(is_code, make_safe(found.source, part, gives_orders)) for is_code, part in shown]
    text = "\n\n".join(part if is_code else marker.mark(part) for is_code, part in safe)
    return Passage(found.source, text, frozenset(marker.marked), gives_orders)


def _choose_sections(references: Sequence[SourceReference], context: str) -> list[_Found]:
    """Return the sections of the best hits; a section takes part with two hits at most."""
    hits = sorted(
        ((part, reference) for reference in references for part in reference.found),
        key=lambda hit: hit[0].rank,
    )
    stubs = {
        part.rank
        for part, reference in hits
        if _is_stub(_text_of(reference, context)[part.start : part.end])
    }
    ordered = [hit for hit in hits if hit[0].rank not in stubs] or hits
    chosen: dict[int, _Found] = {}
    taken = 0
    for part, reference in ordered:
        text = _text_of(reference, context)
        found = chosen.setdefault(reference.number, _Found(reference, text))
        if len(found.spans) >= HITS_PER_SECTION:
            continue
        found.spans.append((part.start, part.end))
        taken += 1
        if taken == MOST_HITS:
            break
    if not chosen:
        return [_take_whole(one, context) for one in references[:MOST_PASSAGES]]
    return list(chosen.values())


def _take_whole(reference: SourceReference, context: str) -> _Found:
    text = _text_of(reference, context)
    return _Found(reference, text, [(0, len(text))])


def _text_of(reference: SourceReference, context: str) -> str:
    start, end = reference.span
    return context[start:end]


def _is_stub(text: str) -> bool:
    """Return whether a hit is a few words of prose, such as "See Install."."""
    return len(text.split()) < STUB_WORDS and all(
        block.kind is _Kind.PROSE for block in _split_blocks(text)
    )


def _show(
    found: _Found, asked: frozenset[str], counted_rows: CountedRows
) -> list[tuple[bool, str]]:
    """Return the shown parts of a section in order; True marks code."""
    blocks = _split_blocks(found.text)
    parts: list[tuple[bool, str]] = []
    shown_to: int | None = None
    for place, block in enumerate(blocks):
        if not block.overlap(found.spans) or found.text.startswith(MARK, block.start):
            continue
        start, part = _show_block(found, block, asked, counted_rows)
        lead = _find_lead(found.text, blocks, place)
        if lead is not None and (shown_to is None or shown_to < lead.end):
            parts += _make_gap(found.text, shown_to, lead.start)
            parts.append((False, found.text[lead.start : lead.end]))
        else:
            parts += _make_gap(found.text, shown_to, start)
        parts.append((block.kind is _Kind.CODE, part))
        shown_to = block.end
    return parts


def _make_gap(text: str, shown_to: int | None, start: int) -> list[tuple[bool, str]]:
    """Return the sign for text that is left out between two parts, if there is any."""
    if shown_to is None or not text[shown_to:start].strip():
        return []
    return [(False, _GAP)]


def _show_block(
    found: _Found, block: _Block, asked: frozenset[str], counted_rows: CountedRows
) -> tuple[int, str]:
    """Return where the shown part of a block begins, and the part."""
    text = found.text[block.start : block.end]
    if block.kind is _Kind.TABLE:
        return block.start, _show_table(text, asked, found.source.language or "en", counted_rows)
    spans = [(max(0, s - block.start), e - block.start) for s, e in found.spans]
    spans = [(start, min(end, len(text))) for start, end in spans if start < min(end, len(text))]
    if block.kind is _Kind.PROSE:
        units = list(_place_sentences(text))
    else:
        is_short = len(text.split()) <= LONGEST_LIST
        if block.kind is _Kind.CODE or (is_short and _is_meant(block, found.spans)):
            return block.start, text
        units = list(_place_items(text))
    kept = [unit for unit in units if _Block(block.kind, *unit).overlap(spans)]
    if not kept:
        return block.start, text
    return block.start + kept[0][0], _join_units(text, kept)


def _is_meant(block: _Block, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a block is a large part of a hit, and not what a chunk repeats of another."""
    shared = block.overlap(spans)
    return 2 * shared >= block.end - block.start or any(
        3 * block.overlap([span]) >= span[1] - span[0] for span in spans
    )


def _join_units(text: str, units: Sequence[tuple[int, int]]) -> str:
    """Return the units of a block as they stand, with a sign where others are left out."""
    parts = [text[slice(*units[0])]]
    for before, (start, end) in pairwise(units):
        between = text[before[1] : start]
        parts.append(f" {_GAP} " if between.strip() else between)
        parts.append(text[start:end])
    return "".join(parts)


def _find_lead(text: str, blocks: Sequence[_Block], place: int) -> _Block | None:
    """Return the paragraph or label that introduces a list, a table or code."""
    if not place or blocks[place].kind is _Kind.PROSE:
        return None
    before = blocks[place - 1]
    if before.kind is not _Kind.PROSE or text.startswith(MARK, before.start):
        return None
    lead = text[before.start : before.end].rstrip()
    is_label = len(lead.split()) <= _LABEL_WORDS and not lead.endswith((".", "!", "?", "\u3002"))
    return before if is_label or lead.endswith((":", "\uff1a")) else None


def _split_blocks(text: str) -> list[_Block]:
    """Return the blocks of a text in order."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    blocks: list[_Block] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        kind, end = _measure_block(lines, at)
        blocks.append(_Block(kind, starts[at], starts[end] - 1))
        at = end
    return _join_steps(text, blocks)


def _measure_block(lines: Sequence[str], at: int) -> tuple[_Kind, int]:
    line = lines[at]
    if (fence := _FENCE.match(line)) is not None:
        return _Kind.CODE, _find_fence_end(lines, at, fence[1])
    if _is_row(line):
        return _Kind.TABLE, _count_while(lines, at, _is_row)
    if _ITEM.match(line):
        return _Kind.LIST, _count_while(lines, at, lambda one: not _begins_other(one))
    return _Kind.PROSE, _count_while(
        lines, at, lambda one: not (_begins_other(one) or _ITEM.match(one))
    )


def _find_fence_end(lines: Sequence[str], at: int, fence: str) -> int:
    for end in range(at + 1, len(lines)):
        bare = lines[end].strip()
        if bare.startswith(fence) and not bare.strip(fence[0]):
            return end + 1
    return len(lines)


def _count_while(lines: Sequence[str], at: int, belongs: Callable[[str], object]) -> int:
    end = at + 1
    while end < len(lines) and lines[end].strip() and belongs(lines[end]):
        end += 1
    return end


def _begins_other(line: str) -> bool:
    return _FENCE.match(line) is not None or _is_row(line)


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _join_steps(text: str, blocks: Sequence[_Block]) -> list[_Block]:
    """Return the blocks; lists that continue each other's numbers are one, with code between."""
    joined: list[_Block] = []
    for block in blocks:
        number = _first_number(text, block)
        before = next((n for n in range(len(joined) - 1, -1, -1) if _holds(joined[n])), None)
        is_next = (
            before is not None
            and number > 1
            and len(joined) - before <= 2
            and _last_number(text, joined[before]) == number - 1
        )
        if is_next and before is not None:
            block = _Block(_Kind.LIST, joined[before].start, block.end)
            del joined[before:]
        joined.append(block)
    return joined


def _holds(block: _Block) -> bool:
    return block.kind is _Kind.LIST


def _first_number(text: str, block: _Block) -> int:
    return next(_numbers(text, block), 0) if block.kind is _Kind.LIST else 0


def _last_number(text: str, block: _Block) -> int:
    return max(_numbers(text, block), default=0)


def _numbers(text: str, block: _Block) -> Iterator[int]:
    for line in text[block.start : block.end].split("\n"):
        found = None if line[:1].isspace() else _ITEM.match(line)
        if found is not None and found[1]:
            yield int(found[1])


def _place_sentences(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence."""
    at = 0
    for sentence in sentences(paragraph):
        start = paragraph.find(sentence, at)
        if start < 0:
            continue
        at = start + len(sentence)
        yield start, at


def _place_items(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each outermost item of a list, with what hangs under it."""
    start: int | None = None
    at = 0
    for line in text.split("\n"):
        if not line[:1].isspace() and _ITEM.match(line):
            if start is not None:
                yield start, at - 1
            start = at
        at += len(line) + 1
    if start is not None:
        yield start, at - 1


def _show_table(table: str, asked: frozenset[str], language: str, counted_rows: CountedRows) -> str:
    """Return a table: whole if it is short, else its header and the rows that match."""
    lines = table.split("\n")
    above = 2 if len(lines) > 1 and _DELIMITERS.match(lines[1]) else 1
    head, rows = lines[:above], lines[above:]
    if len(rows) <= WHOLE_TABLE:
        return table
    kept = _match_rows(rows, asked, language)
    if not kept:
        if len(rows) <= MOST_ROWS:
            return table
        kept = list(range(MOST_ROWS))
    kept = kept[:MOST_ROWS]
    shown = sorted({*kept, *(g for row in kept if (g := _find_group(rows, row)) is not None)})
    note = counted_rows(len(kept), len(rows))
    return "\n".join((*head, *(rows[row] for row in shown), "", f"({note})"))


def _match_rows(rows: Sequence[str], asked: frozenset[str], language: str) -> list[int]:
    """Return the rows that hold the rarest words of the question; none if no row differs."""
    held = [asked.intersection(terms(row, language)) for row in rows]
    counts = {term: sum(term in one for one in held) for term in asked}
    weights = {term: log(len(rows) / count) for term, count in counts.items() if count}
    scores = [sum(weights[term] for term in one) for one in held]
    best = max(scores, default=0.0)
    if best <= 0.0:
        return []
    return [row for row, score in enumerate(scores) if score >= _ROW_SHARE * best]


def _find_group(rows: Sequence[str], row: int) -> int | None:
    """Return the nearest row above that heads a group: only one of its cells has a text."""
    return next((above for above in range(row, -1, -1) if _heads_group(rows[above])), None)


def _heads_group(row: str) -> bool:
    cells = [cell.strip() for cell in _CELL_END.split(row.strip().strip("|"))]
    return (
        len(cells) > 1
        and len({cell for cell in cells if cell}) == 1
        and (cells[0] == cells[-1] or not any(cells[1:]))
    )


_SHORTEST_OF_LETTERS = 4
_LETTERS_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Thai, Lao, Burmese, Khmer: alphabets without spaces between words."""


class _Marker:
    """Makes the words of the question bold, and collects them; neighbours are bold together."""

    def __init__(self, asked: frozenset[str], language: str) -> None:
        self._asked = asked
        self._language = language
        self.marked: set[str] = set()

    def mark(self, prose: str) -> str:
        aside: list[str] = []
        bare = spans_aside(prose, aside, lambda code: code)
        marked = _WORD.sub(self._replace, bare).replace(f"{_END}{_BEGIN}", "")
        marked = marked.replace(f"{_END} {_BEGIN}", " ")
        self.marked.update(_MARKED.findall(marked))
        return restore(marked.translate(_BOLD), aside)

    def _replace(self, found: re.Match[str]) -> str:
        if found["signs"]:
            return self._mark_signs(found["signs"])
        word = found["word"]
        if word and self._asked.intersection(terms(word, self._language)):
            return f"{_BEGIN}{word}{_END}"
        return found[0]

    def _mark_signs(self, run: str) -> str:
        """Mark the pairs of signs that the question holds, in writing without spaces."""
        held = [False] * len(run)
        for at in range(len(run) - 1):
            if run[at : at + 2] in self._asked:
                held[at] = held[at + 1] = True
        groups = groupby(zip(run, held, strict=True), key=itemgetter(1))
        pieces = (("".join(sign for sign, _ in group), is_held) for is_held, group in groups)
        return "".join(
            f"{_BEGIN}{piece}{_END}" if is_held and _is_word(piece) else piece
            for piece, is_held in pieces
        )


def _is_word(piece: str) -> bool:
    """Return whether marked signs may be a word: letters of alphabets say less than characters."""
    return len(piece) >= _SHORTEST_OF_LETTERS or not _LETTERS_UNSPACED.match(piece)


def name_place(source: SourceReference) -> str:
    """Return the title of a page and the headings above the passage."""
    return " > ".join(dict.fromkeys((source.title, *source.heading_path)))


def list_marked(passages: Collection[Passage]) -> tuple[str, ...]:
    """Return the marked words of all passages."""
    return tuple(sorted(frozenset[str]().union(*(one.marked for one in passages))))
