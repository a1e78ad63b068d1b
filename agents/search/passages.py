"""Composes the passages that are shown if no model wrote an answer. The relevant parts of the
sources are shown unchanged and without a judgement: prose in whole sentences, a list or code block
completely and below the text that introduces it, and, of a long table, the header and the rows that
contain words from the question. Words from the question are bold, except common ones. A passage
with instructions to an assistant is marked and never comes first.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from math import log
from operator import itemgetter
from typing import Protocol

from agents.search.blocks import BlockType, TextBlock, place_items, place_sentences, split_blocks
from citations.blocks import split_row
from citations.links import Allowed, keep_links, plain_title
from citations.reading import restore, spans_aside
from citations.sources import collect_allowed
from citations.verbatim import PUNCTUATION, as_markdown
from envelope.sources import ShownPassage, SourceReference
from knowledge.index.terms import terms
from knowledge.index.word_parts import list_content_words, list_parts
from knowledge.search.section_text import MARK
from llm.injection import is_order_to_assistant

MOST_PASSAGES = 3
MOST_HITS = 3
"""The number of hits that are shown, in at most `MOST_PASSAGES` sections."""
HITS_PER_SECTION = 2
LEAST_SHARE = 1 / 3
"""A further passage is omitted if it contains less than this share of the question words that the
first passage contains.
"""
STUB_WORDS = 6
"""A passage with fewer words, such as "See Install.", is omitted if there is another one."""
LONGEST_LIST = 250
"""Maximum number of words of a list or code block that is shown in full although the search found
only a part of it.
"""
WHOLE_TABLE = 5
"""Maximum number of rows of a table that is shown in full even if only some rows match."""
MOST_ROWS = 15
_LABEL_WORDS = 6
_ROW_SHARE = 0.6
"""A row is shown if its score is at least this share of the best row's score."""
_GAP = "\u2026"

_DELIMITERS = re.compile(r"[\s|:+=-]+\Z")
_BEGIN, _END = "\1", "\2"
"""Characters that surround a marked word while a text is being marked; `make_safe` has removed all
control characters.
"""
_BOLD = str.maketrans({_BEGIN: "**", _END: "**"})
_MARKED = re.compile(f"{_BEGIN}([^{_BEGIN}{_END}]*){_END}")
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0670\u0900-\u0963"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(
    # Text that must not be changed: escapes, links, addresses, code.
    rf"\\[{PUNCTUATION}]|\]\([^()\n]{{0,500}}\)|https?://\S{{1,500}}|\0\d{{1,9}}\0"
    rf"|(?P<signs>[{_UNSPACED}]+)|(?P<word>(?:(?![{_UNSPACED}])[\w{_MARKS}])+)"
)

MakeSafe = Callable[[SourceReference, str, bool], str]
"""Returns a part of a source without foreign links and control characters; if the passage contains
instructions (True), without any address.
"""
CountedRows = Callable[[int, int], str]
"""Returns the text that states the number of rows shown and of all rows."""
_SHORTEST_OF_LETTERS = 4
_LETTERS_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Thai, Lao, Burmese, Khmer: alphabets that do not put spaces between words."""


class Say(Protocol):
    """Returns a fixed text in the person's language."""

    def __call__(self, key: str, **values: str) -> str: ...


@dataclass(frozen=True, slots=True)
class SelectedPassage:
    """The visible parts of one source, and the words from the question in them."""

    source: SourceReference
    text: str
    marked: frozenset[str]
    is_suspicious: bool = False


@dataclass(frozen=True, slots=True)
class ShownPassages:
    """Passages in their displayed form, the numbers of their sources, and the links that were
    removed.
    """

    shown: tuple[ShownPassage, ...] = ()
    numbers: tuple[int, ...] = ()
    marked: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All passages as Markdown, each below its location."""
        return "\n\n".join(map(_write_passage, self.shown))


@dataclass(slots=True)
class _Found:
    """The hits in one section."""

    source: SourceReference
    text: str
    spans: list[tuple[int, int]] = field(default_factory=list)


class _Marker:
    """Makes words from the question bold, and collects them; adjacent words are bold together."""

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

    def _replace(self, match: re.Match[str]) -> str:
        if match["signs"]:
            return self._mark_signs(match["signs"])
        word = match["word"]
        if word and self._asked.intersection(terms(word, self._language)):
            return f"{_BEGIN}{word}{_END}"
        return match[0]

    def _mark_signs(self, run: str) -> str:
        """Mark the pairs of characters that occur in the question, for scripts without spaces."""
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


def show_passages(
    question: str,
    references: Sequence[SourceReference],
    context: str,
    common: Collection[str],
    say: Say,
) -> ShownPassages:
    """Return the best passages of the sources with their surrounding text; see `compose_passages`.

    Links lead only to the passage's own source. A source with instructions to an assistant gets no
    links.
    """
    removed: list[str] = []

    def make_safe(source: SourceReference, text: str, gives_orders: bool) -> str:
        allowed = Allowed() if gives_orders else collect_allowed([source], context)
        safe = keep_links(text, allowed)
        removed.extend(safe.removed)
        return safe.text

    chosen = compose_passages(
        question,
        references,
        context,
        counted_rows=lambda shown, every: say("passages_rows", shown=str(shown), all=str(every)),
        make_safe=make_safe,
        is_suspicious=is_order_to_assistant,
        common=common,
    )
    warning = say("passages_suspicious")
    return ShownPassages(
        shown=tuple(
            ShownPassage(
                number=number,
                place=plain_title(_name_place(passage.source)),
                text=passage.text,
                warning=warning if passage.is_suspicious else "",
            )
            for number, passage in enumerate(chosen, start=1)
        ),
        numbers=tuple(passage.source.number for passage in chosen),
        marked=tuple(sorted(frozenset[str]().union(*(passage.marked for passage in chosen)))),
        removed=tuple(removed),
    )


def compose_passages(
    question: str,
    references: Sequence[SourceReference],
    context: str,
    *,
    counted_rows: CountedRows,
    make_safe: MakeSafe,
    is_suspicious: Callable[[str], bool],
    common: Collection[str] = (),
) -> tuple[SelectedPassage, ...]:
    """Return the passages around the best hits, best first.

    Terms of the question that are `common` in the documents are not bold, unless all terms are
    common. `context` contains the texts of the sources. Words are marked after `make_safe`, so that
    a mark cannot hide an address. Returns nothing if every passage contains instructions to an
    assistant.
    """
    made = [
        _compose(question, section, counted_rows, make_safe, is_suspicious, common)
        for section in _choose_sections(question, references, context)
    ]
    trusted = [passage for passage in made if not passage.is_suspicious]
    if not trusted:
        return ()
    # A number or identifier in the question is exact: passages that contain it come first.
    trusted.sort(key=lambda item: -sum(map(_is_exact, _find_asked(question, item))))
    first, *others = (
        *trusted,
        *(selected_passage for selected_passage in made if selected_passage.is_suspicious),
    )
    least = LEAST_SHARE * len(_find_asked(question, first))
    return (
        first,
        *(other for other in others if not least or len(_find_asked(question, other)) > least),
    )


def _name_place(source: SourceReference) -> str:
    """Return the title of a page and the headings above the passage."""
    return " > ".join(dict.fromkeys((source.title, *source.heading_path)))


def _write_passage(passage: ShownPassage) -> str:
    heading = f"**{as_markdown(passage.place)}** [{passage.number}]"
    warning = f"*{passage.warning}*" if passage.warning else ""
    return "\n\n".join(part for part in (heading, warning, passage.text) if part)


def _find_asked(question: str, passage: SelectedPassage) -> frozenset[str]:
    """Return the terms of the question that occur in a passage or its location."""
    return _list_shared_terms(question, passage.source, passage.text)


def _list_shared_terms(question: str, source: SourceReference, text: str = "") -> frozenset[str]:
    language = source.language or "en"
    whole = f"{_name_place(source)}\n{text}"
    own = frozenset(terms(whole, language))
    shared = own.intersection(terms(question, language))
    if language == "en":
        return shared
    held = own.union(list_parts(whole, language))
    words = list_content_words(question, language)
    return shared.union(*(word.terms for word in words if word.is_in(held.__contains__)))


def _compose(
    question: str,
    section: _Found,
    counted_rows: CountedRows,
    make_safe: MakeSafe,
    is_suspicious: Callable[[str], bool],
    common: Collection[str],
) -> SelectedPassage:
    asked = frozenset(terms(question, section.source.language or "en"))
    shown = _show(section, asked, counted_rows)
    marker = _Marker(asked.difference(common) or asked, section.source.language or "en")
    gives_orders = is_suspicious("\n\n".join(part for _, part in shown))
    safe = [
        (is_code, make_safe(section.source, as_markdown(part), gives_orders))
        for is_code, part in shown
    ]
    text = "\n\n".join(part if is_code else marker.mark(part) for is_code, part in safe)
    return SelectedPassage(section.source, text, frozenset(marker.marked), gives_orders)


def _is_exact(term: str) -> bool:
    return any(character.isdigit() for character in term)


def _choose_sections(
    question: str, references: Sequence[SourceReference], context: str
) -> list[_Found]:
    """Return the sections of the best hits, with at most two hits per section.

    A short text is a hit only if its heading contains a number or identifier of the question, or if
    there are no longer texts.
    """
    hits = sorted(
        ((part, reference) for reference in references for part in reference.found),
        key=lambda hit: hit[0].rank,
    )
    stubs = {
        part.rank
        for part, reference in hits
        if _is_stub(_text_of(reference, context)[part.start : part.end])
        and not any(map(_is_exact, _list_shared_terms(question, reference)))
    }
    ordered = [hit for hit in hits if hit[0].rank not in stubs] or hits
    chosen: dict[int, _Found] = {}
    taken = 0
    for part, reference in ordered:
        text = _text_of(reference, context)
        section = chosen.setdefault(reference.number, _Found(reference, text))
        if len(section.spans) >= HITS_PER_SECTION:
            continue
        section.spans.append((part.start, part.end))
        taken += 1
        if taken == MOST_HITS:
            break
    if not chosen:
        return [
            _take_whole(source_reference, context)
            for source_reference in references[:MOST_PASSAGES]
        ]
    return list(chosen.values())


def _take_whole(reference: SourceReference, context: str) -> _Found:
    text = _text_of(reference, context)
    return _Found(reference, text, [(0, len(text))])


def _text_of(reference: SourceReference, context: str) -> str:
    start, end = reference.span
    return context[start:end]


def _is_stub(text: str) -> bool:
    """Return whether a hit consists of a few words of prose, such as "See Install."."""
    return len(text.split()) < STUB_WORDS and all(
        block.kind is BlockType.PROSE for block in split_blocks(text)
    )


def _show(
    section: _Found, asked: frozenset[str], counted_rows: CountedRows
) -> list[tuple[bool, str]]:
    """Return the shown parts of a section, in order; True marks code."""
    blocks = split_blocks(section.text)
    parts: list[tuple[bool, str]] = []
    shown_to: int | None = None
    for place, block in enumerate(blocks):
        if not block.overlap(section.spans) or section.text.startswith(MARK, block.start):
            continue
        start, part = _show_block(section, block, asked, counted_rows)
        lead = _find_lead(section.text, blocks, place)
        if lead is not None and (shown_to is None or shown_to < lead.end):
            parts += _make_gap(section.text, shown_to, lead.start)
            parts.append((False, section.text[lead.start : lead.end]))
        else:
            parts += _make_gap(section.text, shown_to, start)
        parts.append((block.kind is BlockType.CODE, part))
        shown_to = block.end
    return parts


def _make_gap(text: str, shown_to: int | None, start: int) -> list[tuple[bool, str]]:
    """Return the marker for text omitted between two parts, or an empty list if nothing was
    omitted.
    """
    if shown_to is None or not text[shown_to:start].strip():
        return []
    return [(False, _GAP)]


def _show_block(
    section: _Found, block: TextBlock, asked: frozenset[str], counted_rows: CountedRows
) -> tuple[int, str]:
    """Return the position at which the shown part of a block begins, and the part."""
    text = section.text[block.start : block.end]
    if block.kind is BlockType.TABLE:
        return block.start, _show_table(text, asked, section.source.language or "en", counted_rows)
    spans = [(max(0, s - block.start), e - block.start) for s, e in section.spans]
    spans = [(start, min(end, len(text))) for start, end in spans if start < min(end, len(text))]
    if block.kind is BlockType.PROSE:
        units = list(place_sentences(text))
    else:
        is_short = len(text.split()) <= LONGEST_LIST
        if block.kind is BlockType.CODE or (is_short and _is_meant(block, section.spans)):
            return block.start, text
        units = list(place_items(text))
    kept = [unit for unit in units if TextBlock(block.kind, *unit).overlap(spans)]
    if not kept:
        return block.start, text
    return block.start + kept[0][0], _join_units(text, kept)


def _is_meant(block: TextBlock, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a block is a large part of a hit, rather than a repetition from a neighbouring
    chunk.
    """
    shared = block.overlap(spans)
    return 2 * shared >= block.end - block.start or any(
        3 * block.overlap([span]) >= span[1] - span[0] for span in spans
    )


def _join_units(text: str, units: Sequence[tuple[int, int]]) -> str:
    """Return the units of a block unchanged, with a marker where other units are omitted."""
    parts = [text[slice(*units[0])]]
    for before, (start, end) in pairwise(units):
        between = text[before[1] : start]
        parts.append(f" {_GAP} " if between.strip() else between)
        parts.append(text[start:end])
    return "".join(parts)


def _find_lead(text: str, blocks: Sequence[TextBlock], place: int) -> TextBlock | None:
    """Return the paragraph or label that introduces a list, a table, or code."""
    if not place or blocks[place].kind is BlockType.PROSE:
        return None
    before = blocks[place - 1]
    if before.kind is not BlockType.PROSE or text.startswith(MARK, before.start):
        return None
    lead = text[before.start : before.end].rstrip()
    is_label = len(lead.split()) <= _LABEL_WORDS and not lead.endswith((".", "!", "?", "\u3002"))
    return before if is_label or lead.endswith((":", "\uff1a")) else None


def _show_table(table: str, asked: frozenset[str], language: str, counted_rows: CountedRows) -> str:
    """Return a short table in full; for a longer one, the header and the rows that match."""
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
    is_counted = not any(_may_continue(above, below) for above, below in pairwise(rows))
    note = f"({counted_rows(len(kept), len(rows))})" if is_counted else _GAP
    return "\n".join((*head, *(rows[row] for row in shown), "", note))


def _may_continue(above: str, below: str) -> bool:
    """Return whether two rows may be parts of one long row: `knowledge.chunking` divides such a row
    between columns or within a cell, and repeats its label.
    """
    before, after = split_row(above), split_row(below)
    last = max((column for column, cell in enumerate(before) if column and cell), default=0)
    first = min((column for column, cell in enumerate(after) if column and cell), default=0)
    return after[0] in ("", before[0]) and 0 < last <= first


def _match_rows(rows: Sequence[str], asked: frozenset[str], language: str) -> list[int]:
    """Return the rows with the rarest words of the question, or none if the rows do not differ."""
    held = [asked.intersection(terms(row, language)) for row in rows]
    counts = {term: sum(term in words for words in held) for term in asked}
    weights = {term: log(len(rows) / count) for term, count in counts.items() if count}
    scores = [sum(weights[term] for term in words) for words in held]
    best = max(scores, default=0.0)
    if best <= 0.0:
        return []
    return [row for row, score in enumerate(scores) if score >= _ROW_SHARE * best]


def _find_group(rows: Sequence[str], row: int) -> int | None:
    """Return the nearest row above that heads a group, which means that only one of its cells
    contains text.
    """
    return next((above for above in range(row, -1, -1) if _heads_group(rows[above])), None)


def _heads_group(row: str) -> bool:
    cells = split_row(row)
    return (
        len(cells) > 1
        and len({cell for cell in cells if cell}) == 1
        and (cells[0] == cells[-1] or not any(cells[1:]))
    )


def _is_word(piece: str) -> bool:
    """Return whether the marked characters may be a word; a few letters of an alphabet carry less
    meaning than ideographs.
    """
    return len(piece) >= _SHORTEST_OF_LETTERS or not _LETTERS_UNSPACED.match(piece)
