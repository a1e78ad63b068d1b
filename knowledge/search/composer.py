"""Composes the context for an answer from the best chunks of a search, within a token limit.

The search compares small chunks, but an answer needs the text around them. The parts are selected
in this order while there is room:

1. the sections of the best chunks, whole, up to a quarter of the context each; of a longer section,
   the part around the chunk;
2. lower-ranked chunks, with the neighbours that fit, from as many pages as possible;
3. the rest of the started sections.

The best hits are never cut out of a section; less relevant sections make room for them.

Sections are ordered by score, and sections of equal score by their position in the document.
Adjacent sections below the same heading stay together. A changelog comes last unless it is the best
page. Cuts are marked. Chunks whose score is far below the best score are omitted unless they are
among the best hits: the context does not have to be filled.

`docs/internal/measurements/evaluation.md` contains the measurements behind the constants.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from envelope.place import Place
from knowledge.document import Chunk
from knowledge.index.page_kind import PageKind
from knowledge.index.points.layout import chunk_identity
from knowledge.index.port import IndexedPassage
from knowledge.index.queries import PointId
from knowledge.port import ContextSection, FoundSpan, Hit
from knowledge.search.ranking import (
    FoundDocument,
    RankedChunk,
    RankedPage,
    list_candidates,
    list_hits,
)
from knowledge.search.section_text import SectionText, write_section
from knowledge.sections import count_overlap, count_table_header, count_tokens

LEADING = 10
"""The number of best chunks that are included before a second chunk of any section."""
MOST_PAGES = 24
"""The number of best pages whose best chunk is a candidate."""
WHOLE_SECTIONS = 3
"""The number of sections that are included in full before lower-ranked chunks."""
WHOLE_SHARE = 4
"""A section is included in full if it takes up at most this fraction of the context."""
LOSS = 0.3
"""Further chunks of a page lose less score here than among the hits, because an answer needs the
surrounding text, and ranks decrease fast.
"""
KEPT = 16
"""The number of best hits that are included regardless of their score, and never cut out of a
section.
"""
LEAST_SCORE = 0.25
"""Below this share of the best score, a further chunk is omitted and no section is completed."""
PASSAGE_TOKENS = 110
"""The size of any further part, which is about one chunk."""
_MARK_TOKENS = 14
_READ_OF_SECTION = 20
_MOST_CHUNKS = 1 << 32
"""A number greater than the number of chunks in any document."""

ReadPassages = Callable[[Sequence[PointId]], Awaitable[Mapping[PointId, IndexedPassage]]]
"""Returns passages by point; passages that no longer exist are omitted."""


@dataclass(frozen=True, slots=True)
class AskedContext:
    """The maximum number of tokens and sections in a context.

    Chunks with the ids in `excluded` are omitted.
    """

    tokens: int
    sections: int
    excluded: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A ranked chunk by its number; chunks that are adjacent in a document have adjacent
    numbers.
    """

    chunk: int
    score: float
    first: int
    last: int


class _Documents:
    """The documents of the ranked pages, each with a number, and their chunks by number."""

    def __init__(self, pages: Sequence[RankedPage], asked: AskedContext) -> None:
        self._documents: Sequence[FoundDocument] = [page.document for page in pages]
        self._numbers = {document.document_id: at for at, document in enumerate(self._documents)}
        self._excluded = frozenset(asked.excluded)
        self.changelogs = frozenset(
            at for at, document in enumerate(self._documents) if document.kind == PageKind.CHANGELOG
        )

    def number(self, ranked: RankedChunk) -> _Candidate:
        """Return a ranked chunk with its own number, and the numbers of the first and last chunk of
        its section.
        """
        chunk = ranked.chunk
        begin = self._numbers[chunk.document_id] * _MOST_CHUNKS
        first, last = begin + chunk.first, begin + chunk.last
        return _Candidate(begin + chunk.ordinal, ranked.score, first, last)

    def is_excluded(self, chunk: int) -> bool:
        """Return whether a chunk must be omitted."""
        document, ordinal = divmod(chunk, _MOST_CHUNKS)
        return f"{self._documents[document].document_id}#{ordinal}" in self._excluded

    def find_point(self, chunk: int) -> PointId:
        """Return the id of a chunk's point."""
        document, ordinal = divmod(chunk, _MOST_CHUNKS)
        found_document = self._documents[document]
        return chunk_identity(found_document.document_id, found_document.version, ordinal)


@dataclass(slots=True)
class _Section:
    """The chunks of one section that were read, by number, and the selected ones.

    `begins_before` and `goes_on` are true if the section has further chunks before or after these.
    `best` and `score` refer to its best chunk; `tokens` is the size of the selected text, including
    the location.
    """

    first: int
    last: int
    begins_before: bool = False
    goes_on: bool = False
    given: set[int] = field(default_factory=set)
    best: int = 0
    score: float = 0.0
    tokens: int = 0

    @property
    def chunks(self) -> range:
        return range(self.first, self.last + 1)


class _Composer:
    """Selects chunks among those that were read, and writes their sections."""

    def __init__(
        self,
        passages: Mapping[int, IndexedPassage],
        sections: Sequence[_Section],
        asked: AskedContext,
        changelogs: Collection[int],
    ) -> None:
        self._passages = passages
        self._tokens = asked.tokens
        self._most_sections = asked.sections
        self._changelogs = changelogs
        self._used = 0
        self._begun = 0
        """The number of sections that have selected chunks."""
        self._sections = sections
        self._section_of = {
            chunk: section for section in self._sections for chunk in section.chunks
        }
        self._sizes = {chunk: _count_chunk(passage.chunk) for chunk, passage in passages.items()}
        self._shared: dict[int, int] = {}
        self._written: dict[tuple[int, frozenset[int]], SectionText] = {}
        self._place_tokens = {
            section.first: self._count_place(section.first) for section in sections
        }

    def select(self, ranked: Sequence[_Candidate], best: Collection[str]) -> None:
        """Select the chunks around the ranked ones, best first, while there is room.

        Chunks with the ids in `best` are part of their sections if these are selected at all.
        """
        present = [candidate for candidate in ranked if candidate.chunk in self._passages]
        last: list[_Candidate] = []
        further: list[_Candidate] = []
        for rank, candidate in enumerate(present):
            if self._is_later(candidate.chunk):
                last.append(candidate)
            elif rank >= LEADING and self._section_of[candidate.chunk].given:
                further.append(candidate)
            else:
                self._take(candidate)
        for candidate in (*further, *last):
            self._take(candidate)
        least = _find_least(present)
        usual = [
            candidate
            for candidate in present
            if candidate.score >= least and not self._is_later(candidate.chunk)
        ]
        self._fill(usual)
        # The estimates are upper bounds: what is left of them has room for more.
        for section in self._sections:
            if section.given:
                written = self._write(section).text
                tokens = count_tokens(written) + self._place_tokens[section.first]
                self._used += tokens - section.tokens
                section.tokens = tokens
        self._keep(candidate for candidate in present if self._identify(candidate) in best)
        self._fill(usual)

    def _identify(self, candidate: _Candidate) -> str:
        return self._passages[candidate.chunk].chunk.chunk_id

    def _keep(self, best: Iterable[_Candidate]) -> None:
        """Select the best chunks of sections that have been started, replacing less relevant
        sections.
        """
        for candidate in best:
            section = self._section_of[candidate.chunk]
            if not section.given or candidate.chunk in section.given:
                continue
            self._make_room(section, candidate)
            self._give(section, {candidate.chunk}, candidate)

    def _make_room(self, section: _Section, candidate: _Candidate) -> None:
        """Remove less relevant sections, starting with the least relevant one, if that makes room
        for a chunk.
        """
        together = section.given | {candidate.chunk}
        missing = self._used - section.tokens + self._estimate(section, together) - self._tokens
        given = (
            section
            for section in self._sections
            if section.given and section.score < candidate.score
        )
        worse = sorted(given, key=lambda item: item.score)
        if missing > sum(other.tokens for other in worse):
            return
        for other in worse:
            if missing > 0:
                missing -= other.tokens
                self._drop(other)

    def _drop(self, section: _Section) -> None:
        self._used -= section.tokens
        self._begun -= 1
        section.given, section.tokens, section.score = set(), 0, 0.0

    def write(self, hits: Sequence[Hit]) -> Iterator[ContextSection]:
        """Yield the selected sections, best first."""
        levels = {hit.chunk_id: hit.levels for hit in hits}
        ranks = {hit.chunk_id: rank for rank, hit in enumerate(hits)}
        for section in self._order_sections():
            written = self._write(section)
            ids = {at: self._passages[section.first + at].chunk.chunk_id for at in written.spans}
            spans = [
                FoundSpan(ranks[ids[at]], *span)
                for at, span in written.spans.items()
                if ids[at] in ranks
            ]
            own = self._passages[section.best]
            yield ContextSection(
                best=make_hit(own, section.score, levels.get(own.chunk.chunk_id, ())),
                text=written.text,
                chunk_ids=tuple(
                    self._passages[position].chunk.chunk_id for position in sorted(section.given)
                ),
                found=tuple(sorted(spans, key=lambda span: span.rank)),
                is_cut=written.is_cut,
                is_release_notes=section.first // _MOST_CHUNKS in self._changelogs,
                pictures=tuple(
                    dict.fromkeys(
                        picture
                        for position in sorted(section.given)
                        for picture in self._passages[position].chunk.pictures
                    )
                ),
            )

    def _order_sections(self) -> list[_Section]:
        """Return the selected sections, best first, with changelogs last.

        Pages of a chapter stay next to the best one, because a sentence or list may continue there.
        """
        given = {section.first: section for section in self._sections if section.given}
        best = sorted(given.values(), key=lambda item: (self._is_later(item.first), -item.score))
        ordered = dict.fromkeys(
            near.first for section in best for near in self._list_around(section)
        )
        return [given[first] for first in ordered if first in given]

    def _list_around(self, section: _Section) -> Iterator[_Section]:
        """Yield a section and the adjacent sections below the same heading, in order."""
        path = self._passages[section.first].chunk.heading_path
        before = self._section_of.get(section.first - 1)
        after = self._section_of.get(section.last + 1)
        for near in (before, section, after):
            if near is not None and self._passages[near.first].chunk.heading_path == path:
                yield near

    def _is_later(self, chunk: int) -> bool:
        """Return whether a chunk belongs to a changelog that is not the best page."""
        document = chunk // _MOST_CHUNKS
        return document > 0 and document in self._changelogs

    def _take(self, candidate: _Candidate) -> None:
        """Select the part around a chunk, if there is room for it."""
        chunk = candidate.chunk
        section = self._section_of[chunk]
        if chunk in section.given:
            return
        is_whole = self._begun < WHOLE_SECTIONS
        most = self._tokens // WHOLE_SHARE if is_whole else PASSAGE_TOKENS
        if self._sizes[chunk] > self._tokens // WHOLE_SHARE:
            return
        if self._give(section, self._grow(section, chunk, most), candidate):
            return
        self._give(section, {chunk}, candidate)

    def _fill(self, ranked: Sequence[_Candidate]) -> None:
        """Complete the started sections, each up to its maximum length."""
        for candidate in ranked:
            section = self._section_of[candidate.chunk]
            if not section.given:
                continue
            whole = set(section.chunks)
            more = self._estimate(section, whole) - section.tokens
            if more <= self._tokens // WHOLE_SHARE:
                self._give(section, whole, candidate)

    def _give(self, section: _Section, chunks: set[int], candidate: _Candidate) -> bool:
        """Try to add chunks to a section; return whether they fit."""
        if not section.given and self._begun >= self._most_sections:
            return False
        together = section.given | chunks
        tokens = self._estimate(section, together)
        used = self._used - section.tokens + tokens
        if used > self._tokens:
            return False
        self._begun += not section.given
        if not section.given or candidate.score > section.score:
            section.best, section.score = candidate.chunk, candidate.score
        section.given, section.tokens, self._used = together, tokens, used
        return True

    def _grow(self, section: _Section, chunk: int, most: int) -> set[int]:
        """Return the chunk with as many neighbouring chunks as fit within the token limit."""
        first = last = chunk
        tokens = self._sizes[chunk]
        while True:
            grown = False
            for near in (last + 1, first - 1):
                if near not in section.chunks or near in section.given:
                    continue
                cost = self._sizes[near] - self._count_shared(max(near, first))
                if tokens + cost <= most:
                    tokens += cost
                    first, last = min(first, near), max(last, near)
                    grown = True
            if not grown:
                break
        return set(range(first, last + 1))

    def _estimate(self, section: _Section, chunks: Collection[int]) -> int:
        """Return a lower bound for the tokens of the section with these chunks, including its
        location.
        """
        if not chunks:
            return 0
        total = self._place_tokens[section.first] + 1
        gaps = 0
        for chunk in section.chunks:
            if chunk not in chunks:
                gaps += chunk == section.first or chunk - 1 in chunks
                continue
            total += self._sizes[chunk] + 1
            if chunk - 1 in chunks:
                total -= self._count_shared(chunk)
        return total + _MARK_TOKENS * (gaps + section.begins_before + section.goes_on)

    def _count_shared(self, chunk: int) -> int:
        """Return the number of tokens that a chunk shares with the previous one."""
        if chunk not in self._shared:
            texts = self._text(chunk - 1), self._text(chunk)
            shared = max(count_overlap(*texts), count_table_header(*texts))
            self._shared[chunk] = len(texts[1][:shared].encode("utf-8", "surrogatepass")) // 4
        return self._shared[chunk]

    def _write(self, section: _Section) -> SectionText:
        key = section.first, frozenset(section.given)
        if key not in self._written:
            self._written[key] = self._write_given(section)
        return self._written[key]

    def _write_given(self, section: _Section) -> SectionText:
        return write_section(
            [self._text(chunk) for chunk in section.chunks],
            {chunk - section.first for chunk in section.given},
            {
                position - section.first: self._passages[position].chunk.links
                for position in sorted(section.given)
            },
            begins_before=section.begins_before,
            goes_on=section.goes_on,
        )

    def _text(self, chunk: int) -> str:
        return self._passages[chunk].chunk.text

    def _count_place(self, chunk: int) -> int:
        """Return the number of tokens in the breadcrumbs and headings above a chunk."""
        passage = self._passages[chunk]
        names = dict.fromkeys((*passage.crumbs, *passage.chunk.heading_path))
        return count_tokens(" > ".join(names))


async def compose(
    pages: Sequence[RankedPage],
    hits: Sequence[Hit],
    read: ReadPassages,
    asked: AskedContext,
) -> tuple[ContextSection, ...]:
    """Return the context of at most `asked.tokens` tokens, where each section includes its
    location.

    `pages` contains the pages from a search, best first, and `hits` their first chunks with texts.
    Chunks that were deleted from the index in the meantime are omitted.
    """
    documents = _Documents(pages, asked)
    chosen = [
        documents.number(candidate)
        for candidate in _choose_candidates(pages, asked.tokens // PASSAGE_TOKENS)
    ]
    near = {chunk for candidate in chosen for chunk in _list_near(candidate, _READ_OF_SECTION)}
    wanted = sorted(chunk for chunk in near if not documents.is_excluded(chunk))
    points = {chunk: documents.find_point(chunk) for chunk in wanted}
    texts = await read(list(points.values()))
    passages = {chunk: texts[point] for chunk, point in points.items() if point in texts}
    sections = list(_split_sections(passages))
    begins = {
        chunk: candidate.first
        for candidate in chosen
        for chunk in _list_near(candidate, _READ_OF_SECTION + 1)
    }
    for section in sections:
        # Chunks that were not read have a place before or after the section, but no text.
        begin = begins[section.first]
        section.begins_before = begins.get(section.first - 1) == begin
        section.goes_on = begins.get(section.last + 1) == begin
    composer = _Composer(passages, sections, asked, documents.changelogs)
    composer.select(chosen, {hit.chunk_id for hit in hits[:KEPT]})
    return tuple(composer.write(hits))


def make_hit(passage: IndexedPassage, score: float, levels: tuple[str, ...]) -> Hit:
    """Return a passage as a hit."""
    return Hit(
        chunk_id=passage.chunk.chunk_id,
        document_id=passage.document_id,
        page=passage.page,
        place=Place(
            title=passage.title,
            crumbs=passage.crumbs,
            heading_path=passage.chunk.heading_path,
            anchor=passage.chunk.anchor,
            url=passage.url,
            path=passage.source,
            language=passage.language,
            version=passage.stated_version or None,
        ),
        text=passage.chunk.text,
        score=round(score, 6),
        levels=levels,
        pictures=passage.chunk.pictures,
    )


def _choose_candidates(pages: Sequence[RankedPage], most: int) -> list[RankedChunk]:
    """Return the best chunks, and the best one of each of many pages, without those far below the
    best.
    """
    best = list_candidates(pages, most, loss=LOSS)
    heads = list_candidates([replace(page, chunks=page.chunks[:1]) for page in pages], MOST_PAGES)
    present = {chunk.chunk.point for chunk in best}
    further = [head for head in heads if head.chunk.point not in present]
    least = _find_least(best)
    kept = {hit.chunk.point for hit in list_hits(pages, KEPT)}
    return [
        chunk for chunk in (*best, *further) if chunk.score >= least or chunk.chunk.point in kept
    ]


def _find_least(ranked: Sequence[RankedChunk] | Sequence[_Candidate]) -> float:
    """Return the score below which chunks are far below the best one."""
    best = max((chunk.score for chunk in ranked), default=0.0)
    return min(best, LEAST_SCORE * best)


def _list_near(one: _Candidate, reach: int) -> range:
    """Return a chunk with the chunks around it in its section."""
    return range(max(one.first, one.chunk - reach), min(one.last, one.chunk + reach) + 1)


def _split_sections(passages: Mapping[int, IndexedPassage]) -> Iterator[_Section]:
    """Yield the sections of the chunks that were read, in order."""
    current: _Section | None = None
    for number, passage in sorted(passages.items()):
        place = passage.chunk.heading_path, passage.chunk.anchor
        if current is not None and current.last == number - 1:
            before = passages[current.last].chunk
            if (before.heading_path, before.anchor) == place:
                current.last = number
                continue
        if current is not None:
            yield current
        current = _Section(number, number)
    if current is not None:
        yield current


def _count_chunk(chunk: Chunk) -> int:
    """Return the tokens of a chunk, including the URLs of its links."""
    return count_tokens(chunk.text) + sum(count_tokens(link[1]) + 1 for link in chunk.links)
