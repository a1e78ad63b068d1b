"""Finds the passages of a document that are closest to a requirement.

Text is split into sentences and list items, with their locations. Rules are often one long line:
"1. Providers must: (a) ...; (b) ... 2. ...". An item begins at its enumeration mark, and belongs to
the preceding sentence that ends in a colon or has introduced earlier items.

Indexed documents are split into units, and units are divided into parts of limited size.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import numpy.typing as npt

from agents.review.requirements import RuleUnit, TextPlace
from agents.review.verdicts import VerdictEvidence
from envelope.specialists import PartPlan
from knowledge.index.bm25 import B, K
from knowledge.index.terms import terms
from knowledge.library.library import WholeDocument
from llm.tasks.review import TextUnit

_BREAK = re.compile(
    r"(?P<item>(?<=[:;,.\s])\((?:[a-z]{1,3}|[ivxl]{1,6}|\d{1,2})\)\s)"
    r"|(?P<number>(?<=[.:;)\s])\d{1,3}[.)]\s(?=[^\s\d]))"
    r"|(?P<bullet>\n\s{0,8}[-*•–]\s)"
    r"|(?P<stop>[.!?]['\"”’)\]]{0,2}\s(?=[\s\"“‘'(§]{0,3}[A-ZÄÖÜ\d(]))"
    r"|(?P<semicolon>;\s(?!(?:and|or|und|oder|sowie)\s\())"
    r"|(?P<line>\n\s{0,8}\n)"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:Art|Arts|No|Nos|Nr|Abs|Nrn|Rn|lit|cf|e\.g|i\.e|z\.B|d\.h|bzw|vgl|ff|Dr|Mr|Ms"
    r"|Inc|Ltd|Co|Corp|U\.S|S|Sec|para|paras|pp|p|vs|approx|[A-Z])\.?\Z"
)
_LONGEST_ABBREVIATION = 8
_MARK = re.compile(r"[\s•*–-]*(?:\((?:[a-z]{1,3}|[ivxl]{1,6}|\d{1,2})\)|\d{1,3}[.)])?\s*")
LONGEST = 900
"""Maximum number of characters of a passage, unless a single sentence is longer.

With 600, the right passage was among the first three for 79 % of the requirements in 184
agreements; with 900, for 85 %.
"""
HEADING_WEIGHT = 2.0
"""The weight of a heading, relative to the text of a rule.

With 0, the right passage was among the first three for 58 % of the duties in 56 notices, with 1 for
63 %, and with 2 for 66 %. Both halves of the data show the same differences.
"""
Scores = npt.NDArray[np.float64]
_ALIKE = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-"})
LONGEST_UNIT = 6_000
"""In characters; a longer section is split between sentences."""
PART_CHARACTERS = 6_000
PART_ITEMS = 12
MOST_PARTS = 200
"""Maximum number of parts in a scatter; larger documents are split into larger parts."""
_KEY = 60
_PAGE = re.compile(r"page=(\d{1,6})")
_SHOWN_TITLES = 3
_LONGEST_TITLE = 120
_MOST_TITLE_WORDS = 8
_MOST_TITLES = 2
"""Maximum number of titles directly above each other, such as the titles of a chapter and of its
first clause.
"""
_SENTENCE_ENDS = (".", "!", "?", ";", ":")


@dataclass(frozen=True, slots=True)
class RuleSegment:
    """A sentence or an item; `lead` is the location of the sentence that introduces an item."""

    start: int
    end: int
    lead: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class RulePassage:
    """A clause in a document; `context` is the text that introduces it."""

    id: str
    place: TextPlace
    text: str
    language: str = "en"
    context: str = ""

    @property
    def heading(self) -> str:
        """The headings above it."""
        return " > ".join(self.place.heading_path)

    @property
    def unit(self) -> TextUnit:
        """The passage as a model reads it."""
        return TextUnit(id=self.id, heading=self.heading, text=self.text, language=self.language)

    @property
    def evidence(self) -> VerdictEvidence:
        """The whole passage as evidence."""
        return VerdictEvidence(place=self.place, text=self.text)

    def find_quotation(self, quotation: str) -> VerdictEvidence | None:
        """Return a quotation with the exact wording of the passage, or None if it does not
        occur.
        """
        span = find_words(self.text, quotation)
        if span is None:
            return None
        start, end = (self.place.start + at for at in span)
        place = self.place.model_copy(update={"start": start, "end": end})
        return VerdictEvidence(place=place, text=self.text[slice(*span)])


class PassageSearch:
    """Ranks passages by the number of rare words that they share with a text."""

    def __init__(self, passages: Sequence[RulePassage]) -> None:
        self.passages = tuple(passages)
        self._counts = [
            Counter(terms(f"{passage.heading} {passage.context} {passage.text}", passage.language))
            for passage in passages
        ]
        self._documents = Counter(word for own in self._counts for word in own)
        lengths = np.array([max(own.total(), 1) for own in self._counts], dtype=float)
        mean = lengths.mean() if len(lengths) else 1.0
        self._norms = K * (1 - B + B * lengths / mean)

    def find(
        self, text: str, language: str, most: int, heading: str = ""
    ) -> tuple[RulePassage, ...]:
        """Return the passages closest to the text, best first; passages that share no word with it
        are omitted.

        Words in the `heading` above the text describe its subject and therefore have a higher
        weight.
        """
        scores = self._score(text, language)
        if heading:
            scores += HEADING_WEIGHT * self._score(heading, language)
        order = np.argsort(-scores, kind="stable")[:most]
        return tuple(self.passages[int(at)] for at in order if scores[at] > 0)

    def find_each(
        self, texts: Iterable[str], language: str, most: int, at_most: int
    ) -> tuple[RulePassage, ...]:
        """Return the passages closest to any of the texts, in document order.

        Each text contributes its best passages first, so that every text is represented if space is
        limited.
        """
        passages = [self.find(text, language, most) for text in texts]
        chosen: dict[str, RulePassage] = {}
        for rank in range(most):
            for own in passages:
                if rank < len(own) and len(chosen) < at_most:
                    chosen.setdefault(own[rank].id, own[rank])
        return tuple(passage for passage in self.passages if passage.id in chosen)

    def _score(self, text: str, language: str) -> Scores:
        scores = np.zeros(len(self.passages))
        for word in sorted(set(terms(text, language)) & self._documents.keys()):
            count = self._documents[word]
            idf = math.log(1 + (len(self.passages) - count + 0.5) / (count + 0.5))
            occurrences = np.array([own.get(word, 0) for own in self._counts], dtype=float)
            scores += idf * occurrences * (K + 1) / (occurrences + self._norms)
        return scores


@dataclass(frozen=True, slots=True)
class DocumentUnits:
    """A document as units in order; `chunks` contains the ids and texts of each unit's passages.

    `source` is the file. `pages` contains the page of each chunk if the document has pages.
    """

    document_id: str
    title: str
    language: str
    digest: str
    units: tuple[RuleUnit, ...]
    chunks: dict[str, tuple[tuple[str, str], ...]]
    source: str = ""
    pages: dict[str, int] = field(default_factory=dict)

    def find_chunk(self, place: TextPlace) -> str:
        """Return the id of the passage that contains a location, or an empty string."""
        unit = next(
            (rule_unit for rule_unit in self.units if rule_unit.unit_id == place.unit_id), None
        )
        chunk = self.chunks.get(place.unit_id, ())
        if unit is None or not chunk:
            return ""
        wanted = _plain(unit.text[place.start : place.end])[:_KEY]
        return next((name for name, text in chunk if wanted in _plain(text)), chunk[0][0])


def split_segments(text: str) -> tuple[RuleSegment, ...]:
    """Return the sentences and items of the text in order, without the surrounding spaces."""
    segments: list[RuleSegment] = []
    lead: tuple[int, int] | None = None
    for start, end, begins in _list_pieces(text):
        if begins in {"number", "line"}:
            lead = None
        is_item = begins in {"item", "bullet"}
        segments.append(RuleSegment(start, end, lead if is_item else None))
        if not is_item and text[start:end].endswith((":", "—", "–")):
            lead = (start, end)
    return tuple(segments)


def count_mark(text: str) -> int:
    """Return the length of the enumeration mark at the beginning of a sentence, such as "(a) " or
    "2. ".
    """
    match = _MARK.match(text)
    return match.end() if match else 0


def find_words(text: str, quotation: str) -> tuple[int, int] | None:
    """Return the position of a quotation in the text; spaces, typographic quotes, and case may
    differ.
    """
    wanted = _fold(quotation)[0].strip()
    if not wanted:
        return None
    folded, places = _fold(text)
    at = folded.find(wanted)
    if at < 0:
        return None
    return places[at], places[at + len(wanted) - 1] + 1


def cut_passages(units: Iterable[RuleUnit], longest: int = LONGEST) -> tuple[RulePassage, ...]:
    """Return the passages in the units of documents, named `p1`, `p2`, and so on, in order."""
    pieces = [piece for unit in units for piece in _cut_unit(unit, longest)]
    return tuple(
        RulePassage(
            f"p{number}",
            TextPlace(
                document_id=unit.document_id,
                unit_id=unit.unit_id,
                heading_path=unit.heading_path,
                start=start,
                end=end,
            ),
            unit.text[start:end],
            unit.language,
            context,
        )
        for number, (unit, start, end, context) in enumerate(pieces, start=1)
    )


def cut_document(document: WholeDocument) -> DocumentUnits:
    """Return the units of a document: its sections, or pieces of sections that are too long."""
    listed = document.listed
    texts = {chunk.chunk.chunk_id: chunk.chunk.text for chunk in document.chunks}
    ranks = {name: rank for rank, name in enumerate(texts)}
    units: list[RuleUnit] = []
    chunks: dict[str, tuple[tuple[str, str], ...]] = {}
    for section in document.sections:
        if _plain(section.text) == _plain(listed.title):
            continue  # a page that contains only a title
        named = sorted(section.chunk_ids, key=ranks.__getitem__)
        own = tuple((name, texts[name]) for name in named)
        for text in cut_text_at_sentences(section.text):
            name = f"{listed.id}#u{len(units) + 1}"
            units.append(RuleUnit(listed.id, name, text, section.heading_path, listed.language))
            chunks[name] = own
    return DocumentUnits(
        listed.id,
        listed.title,
        listed.language,
        listed.content_hash,
        tuple(units),
        chunks,
        listed.source,
        dict(_list_pages(document)),
    )


def cut_text_at_sentences(text: str, longest: int = LONGEST_UNIT) -> Iterator[str]:
    """Yield pieces of the text, of at most `longest` characters if the sentences allow it.

    A list item stays with the sentence that introduces it if both fit, and a title with the text
    below it.
    """
    if len(text) <= longest:
        yield text
        return
    start = end = 0
    titles: list[RuleSegment] = []
    for segment in split_segments(text):
        first = segment.start if segment.lead is None else max(start, segment.lead[0])
        if titles and segment.lead is None:
            first = titles[0].start
        if segment.end - start > longest and first > start:
            yield text[start:first].strip()
            start = first
        end = segment.end
        titles = [*titles, segment][-_MOST_TITLES:] if _is_title(text, segment) else []
    if end > start or start < len(text):
        yield text[start:].strip()


def plan_parts(documents: Sequence[DocumentUnits]) -> tuple[PartPlan, ...]:
    """Return parts that contain every unit of the documents exactly once, in order.

    Documents in the same language share parts, so that a law with one file per article does not
    need more parts than a law in a single file.
    """
    sizes = [len(unit.text) for document in documents for unit in document.units]
    longest = max(PART_CHARACTERS, 2 * sum(sizes) // MOST_PARTS)
    most = max(PART_ITEMS, 2 * len(sizes) // MOST_PARTS)
    parts: list[PartPlan] = []
    for _, group in groupby(documents, key=lambda item: item.language):
        units = [
            (document_units, unit) for document_units in group for unit in document_units.units
        ]
        own = [len(unit.text) for _, unit in units]
        for first, last in divide_sizes(own, longest, most):
            parts.append(_plan_part(f"{len(parts)}", units, first, last))
    return tuple(parts)


def list_units(documents: Sequence[DocumentUnits]) -> tuple[RuleUnit, ...]:
    """Return the units of the documents in a part, numbered as in `PartPlan`."""
    return tuple(unit for document in documents for unit in document.units)


def join_digests(documents: Sequence[DocumentUnits]) -> str:
    """Return a digest of the content of the documents in a part."""
    if len(documents) == 1:
        return documents[0].digest
    return hashlib.sha256("\0".join(document.digest for document in documents).encode()).hexdigest()


def name_documents(titles: Sequence[str]) -> str:
    """Return the titles of documents on one line; if there are many, the first, the last, and the
    number.
    """
    if len(titles) <= _SHOWN_TITLES:
        return "; ".join(titles)
    return f"{titles[0]}; …; {titles[-1]} ({len(titles)})"


def divide_sizes(sizes: Sequence[int], longest: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last index of each group of at most `most` items and `longest` in
    total.

    An item that exceeds `longest` forms its own group.
    """
    first = total = 0
    for place, size in enumerate(sizes):
        if place > first and (total + size > longest or place - first >= most):
            yield first, place - 1
            first, total = place, 0
        total += size
    if sizes:
        yield first, len(sizes) - 1


def _list_pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end, and beginning of each piece; an item continues after ";"."""
    start, begins = 0, "line"
    for cut, mark in _list_cuts(text):
        yield from _trim(text, start, cut, begins)
        begins = begins if mark == "semicolon" else mark
        start = cut
    yield from _trim(text, start, len(text), begins)


def _list_cuts(text: str) -> Iterator[tuple[int, str]]:
    """Yield each position at which to split, and the mark at that position."""
    for match in _BREAK.finditer(text):
        match match.lastgroup:
            case "item" if not _opens_item(text, match.start()):
                continue
            case "stop" if _ends_abbreviation(text, match.start()):
                continue
            case "item" | "bullet" | "number":
                yield match.start(), match.lastgroup
            case _:
                yield match.end(), str(match.lastgroup)


def _ends_abbreviation(text: str, at: int) -> bool:
    """Return whether the full stop at `at` ends an abbreviation, or the number of a paragraph."""
    before = text[max(0, at - _LONGEST_ABBREVIATION) : at]
    is_first = len(before) == at and before.strip().isdigit()
    return is_first or bool(_ABBREVIATION.search(before))


def _opens_item(text: str, at: int) -> bool:
    """Return whether a mark begins an item; "Article 6(1) (a) and" is a reference instead."""
    before = text[max(0, at - 12) : at].rstrip()
    return not before or before.endswith((":", ";", ",", ".", " and", " or", " und", " oder", "—"))


def _trim(text: str, start: int, end: int, begins: str) -> Iterator[tuple[int, int, str]]:
    piece = text[start:end]
    if count_mark(piece) == len(piece):
        return
    first = start + len(piece) - len(piece.lstrip())
    last = start + len(piece.rstrip())
    if last > first:
        yield first, last, begins


def _fold(text: str) -> tuple[str, list[int]]:
    """Return the text normalized for comparison, and the original position of each of its
    characters.
    """
    signs: list[str] = []
    places: list[int] = []
    for at, sign in enumerate(text.translate(_ALIKE)):
        plain = " " if sign.isspace() else sign.lower()
        if plain == " " and signs[-1:] == [" "]:
            continue
        # A letter whose lower case is longer, such as the Turkish İ, keeps its length.
        signs.append(plain if len(plain) == 1 else sign)
        places.append(at)
    return "".join(signs), places


def _cut_unit(unit: RuleUnit, longest: int) -> Iterator[tuple[RuleUnit, int, int, str]]:
    group: list[RuleSegment] = []
    for segment in split_segments(unit.text):
        if group and segment.end - group[0].start > longest:
            titles = _take_titles(unit.text, group)
            yield _join(unit, group)
            group = titles
        group.append(segment)
    if group:
        yield _join(unit, group)


def _take_titles(text: str, group: list[RuleSegment]) -> list[RuleSegment]:
    """Remove the titles from the end of a group and return them, because they belong to the next
    group.

    At least one segment remains, so that a text of short lines is divided as well.
    """
    titles: list[RuleSegment] = []
    while len(group) > 1 and len(titles) < _MOST_TITLES and _is_title(text, group[-1]):
        titles.insert(0, group.pop())
    return titles


def _is_title(text: str, segment: RuleSegment) -> bool:
    """Return whether a segment is the title of the text below it: "5. Term.", or a line without a
    full stop.

    A short numbered clause of one or two words has the same form and is then grouped with the next
    clause.
    """
    own = text[segment.start : segment.end]
    if segment.lead is not None or len(own) > _LONGEST_TITLE:
        return False
    mark = count_mark(own)
    is_named = mark > 0 and len(own[mark:].split()) <= _MOST_TITLE_WORDS
    return is_named or not own.endswith(_SENTENCE_ENDS)


def _join(unit: RuleUnit, group: Sequence[RuleSegment]) -> tuple[RuleUnit, int, int, str]:
    lead = group[0].lead
    return unit, group[0].start, group[-1].end, "" if lead is None else unit.text[slice(*lead)]


def _plan_part(
    key: str, units: Sequence[tuple[DocumentUnits, RuleUnit]], first: int, last: int
) -> PartPlan:
    own = list(
        {
            document_units.document_id: document_units
            for document_units, _ in units[first : last + 1]
        }.values()
    )
    skipped = next(at for at, (document_units, _) in enumerate(units) if document_units is own[0])
    return PartPlan(
        key=key,
        label=_name_range(units[first], units[last]),
        document_id=own[0].document_id,
        more_documents=tuple(document_units.document_id for document_units in own[1:]),
        digest=join_digests(own),
        first=first - skipped,
        last=last - skipped,
    )


def _name_range(*ends: tuple[DocumentUnits, RuleUnit]) -> str:
    shown = [unit.heading_path[-1] if unit.heading_path else units.title for units, unit in ends]
    return " - ".join(dict.fromkeys(shown))


def _list_pages(document: WholeDocument) -> Iterator[tuple[str, int]]:
    for chunk in document.chunks:
        match = _PAGE.fullmatch(chunk.chunk.anchor or "")
        if match is not None:
            yield chunk.chunk.chunk_id, int(match[1])


def _plain(text: str) -> str:
    return " ".join(text.split())
