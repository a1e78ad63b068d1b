"""Composes the context of an answer: whole sections around the best chunks of a search.

The search compares small chunks; an answer needs the text around them. The sections of the best
chunks are given whole, up to a quarter of the context each; of a longer section, the part around
the chunk. The chunks further down are given with the neighbours that fit. So the context holds the
few sections that most probably answer, and a little of many others. Numbered steps are completed.
A section that only lists other pages is given last. Sections are in the order of their documents,
the best document first.

`docs/measurements/evaluation.md` has the figures by which the numbers were chosen.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from knowledge.index.port import Passage
from knowledge.index.queries import PointId
from knowledge.port import ContextSection, FoundSpan, Hit
from knowledge.search.candidates.found_candidates import Candidates
from knowledge.search.context.section_chunks import SectionChunks
from knowledge.search.context.token_count import count_tokens
from knowledge.search.fusion import RankedChunk
from knowledge.sections import count_overlap, count_table_header, join_texts

MOST_CANDIDATES = 45
WHOLE_SECTIONS = 3
"""The number of sections that are given whole."""
WHOLE_SHARE = 4
"""A section is whole up to this part of the context."""
PASSAGE_TOKENS = 110
"""The size of any further part: about one chunk."""
STEPS_TOKENS = 300
"""How much longer a part may become to complete a list of steps."""
LARGEST_CHUNK_TOKENS = 200
"""Of a chunk further down than the hits; a larger one is a long table or code."""
LEAST_TOKENS = 60
_READ_AROUND_WHOLE = 15
_READ_AROUND = 2
_STEP = re.compile(r"[ \t]{0,12}([0-9]{1,3})[.)][ \t]")
_ITEM = re.compile(r"[ \t]{0,24}(?:[-*+]|[0-9]{1,3}[.)])[ \t]{1,4}")
_REFERENCE = re.compile(r"`?[\w.]{1,80}[-/][\w./-]{1,200}`?")
_LISTED_SHARE = 0.75
_INTRODUCTION_WORDS = 12

ReadPassages = Callable[[Sequence[PointId]], Awaitable[Mapping[PointId, Passage]]]
"""Returns passages by point; passages that are gone are left out."""
FindTitles = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Returns those of some texts, in lower case, that are titles of documents."""


@dataclass(frozen=True, slots=True)
class _SectionRun:
    """The chunks of one section that were read, by their numbers."""

    first: int
    last: int


@dataclass(slots=True)
class _ChosenPart:
    """Consecutive chunks that are given; `score` and `best` are those of its best chunk."""

    first: int
    last: int
    best: int
    score: float


@dataclass(slots=True)
class _Selection:
    """The parts chosen so far, their chunks and sections, and the number of their tokens."""

    parts: list[_ChosenPart] = field(default_factory=list)
    chunks: set[int] = field(default_factory=set)
    sections: set[int] = field(default_factory=set)
    tokens: int = 0

    def add(self, part: _ChosenPart, section: int) -> None:
        """Add a part, which lies in one section."""
        self.parts.append(part)
        self.chunks.update(range(part.first, part.last + 1))
        self.sections.add(section)

    def clip(self, run: _SectionRun, chunk: int) -> _SectionRun:
        """Return the run between the chosen parts on either side of a chunk."""
        before = [p.last + 1 for p in self.parts if run.first <= p.last < chunk]
        after = [p.first - 1 for p in self.parts if chunk < p.first <= run.last]
        return _SectionRun(max((run.first, *before)), min((run.last, *after)))


async def compose(
    found: Candidates,
    candidates: Sequence[RankedChunk],
    hits: Sequence[Hit],
    read: ReadPassages,
    find_titles: FindTitles,
    *,
    tokens: int,
    excluded: Collection[int] = (),
) -> tuple[ContextSection, ...]:
    """Return the context of at most `tokens` tokens, each section counted with its place.

    `candidates` are chunks, best first, `hits` the first of them with their texts. Chunks that are
    `excluded` or deleted from the index meanwhile are left out.
    """
    places = SectionChunks(found)
    ranked = [
        RankedChunk(places.number_of(one.chunk), one.score) for one in candidates[:MOST_CANDIDATES]
    ]
    left_out = {places.number_of(chunk) for chunk in excluded}
    wanted = _around(places, ranked, left_out)
    points = {chunk: places.point_of(chunk) for chunk in sorted(wanted)}
    texts = await read(list(points.values()))
    passages = {chunk: texts[point] for chunk, point in points.items() if point in texts}
    labels = {
        label
        for one in ranked
        if one.chunk in passages
        for label in _list_labels(passages[one.chunk].chunk.text)
    }
    titles = await find_titles(labels) if labels else ()
    composer = _Composer(places, passages, titles, tokens, len(hits))
    return tuple(composer.sections(composer.select(ranked), ranked, hits))


def lists_pages(text: str, titles: Collection[str], *, own: str = "") -> bool:
    """Return whether a text only lists other pages than `own`.

    An item lists a page if it begins with one of `titles`, which are in lower case, or consists of
    a reference such as `guides/start`.
    """
    items = [line for line in text.split("\n") if _ITEM.match(line)]
    if not items:
        return False
    listed = sum(_names_page(line, titles, own) for line in items)
    words = sum(len(line.split()) for line in text.split("\n") if not _ITEM.match(line))
    return listed >= _LISTED_SHARE * len(items) and words <= _INTRODUCTION_WORDS * len(items)


def _list_labels(text: str) -> list[str]:
    """Return what may be titles of pages in the items of a text, in lower case."""
    return [_find_label(_strip_item(line)) for line in text.split("\n") if _ITEM.match(line)]


def _names_page(item: str, titles: Collection[str], own: str) -> bool:
    bare = _strip_item(item)
    label = _find_label(bare)
    return (label in titles and label != own) or _REFERENCE.fullmatch(bare) is not None


def _strip_item(item: str) -> str:
    opening = _ITEM.match(item)
    return item[opening.end() if opening else 0 :].strip()


def _find_label(bare: str) -> str:
    return bare.partition(": ")[0].strip(" .*_:").casefold()


def _around(
    places: SectionChunks, ranked: Sequence[RankedChunk], excluded: Collection[int]
) -> set[int]:
    """Return the chunks to read: those that are ranked, and their neighbours in their sections."""
    wanted: set[int] = set()
    seen: set[int] = set()
    for candidate in ranked:
        chunk = candidate.chunk
        section = places.section_of(chunk)
        is_whole = section not in seen and len(seen) < WHOLE_SECTIONS + 2
        seen.add(section)
        reach = _READ_AROUND_WHOLE if is_whole else _READ_AROUND
        for step in (1, -1):
            for near in range(chunk, chunk + step * (reach + 1), step):
                if not places.are_together(near, chunk) or near in excluded:
                    break
                wanted.add(near)
    return wanted


class _Composer:
    """Chooses parts among the chunks that were read."""

    def __init__(
        self,
        places: SectionChunks,
        passages: Mapping[int, Passage],
        titles: Collection[str],
        tokens: int,
        hits: int,
    ) -> None:
        self._places = places
        self._titles = titles
        self._passages = passages
        self._tokens = tokens
        self._hits = hits
        self._sizes = {chunk: count_tokens(one.chunk.text) for chunk, one in passages.items()}

    def select(self, ranked: Sequence[RankedChunk]) -> _Selection:
        """Return the parts for the ranked chunks, best first, as long as there is room."""
        selection = _Selection()
        later: list[tuple[int, RankedChunk]] = []
        for rank, candidate in enumerate(ranked):
            if candidate.chunk not in self._passages:
                continue
            is_begun = self._places.section_of(candidate.chunk) in selection.sections
            is_further = rank >= self._hits and is_begun
            if is_further or self._lists_pages(candidate.chunk):
                later.append((rank, candidate))
            elif not self._take(selection, rank, candidate):
                break
        for rank, candidate in later:
            self._take(selection, rank, candidate)
        return selection

    def sections(
        self, selection: _Selection, ranked: Sequence[RankedChunk], hits: Sequence[Hit]
    ) -> Iterator[ContextSection]:
        """Return the parts as texts, in the order of their documents, the best document first."""
        levels = {hit.chunk_id: hit.levels for hit in hits}
        ranks = {hit.chunk_id: rank for rank, hit in enumerate(hits)}
        best: dict[int, float] = {}
        for part in selection.parts:
            document = self._places.document_of(part.first)
            best[document] = max(best.get(document, part.score), part.score)
        order = {document: at for at, document in enumerate(sorted(best, key=lambda d: -best[d]))}
        parts = sorted(
            selection.parts,
            key=lambda part: (order[self._places.document_of(part.first)], part.first),
        )
        for part in self._merge(parts):
            passages = [self._passages[chunk] for chunk in range(part.first, part.last + 1)]
            joined = join_texts([passage.chunk.text for passage in passages])
            ids = tuple(passage.chunk.chunk_id for passage in passages)
            places = zip(ids, joined.spans, strict=True)
            found = [FoundSpan(ranks[one], *span) for one, span in places if one in ranks]
            own = self._passages[part.best]
            yield ContextSection(
                best=make_hit(own, part.score, levels.get(own.chunk.chunk_id, ())),
                text=joined.text,
                chunk_ids=ids,
                found=tuple(sorted(found, key=lambda span: span.rank)),
            )

    def _merge(self, parts: Iterable[_ChosenPart]) -> Iterator[_ChosenPart]:
        """Return parts in order; neighbours in one section become one part."""
        current: _ChosenPart | None = None
        for part in parts:
            if current is None:
                current = part
            elif part.first == current.last + 1 and self._continues(part.first, current.last):
                best = max(current, part, key=lambda one: one.score)
                current = _ChosenPart(current.first, part.last, best.best, best.score)
            else:
                yield current
                current = part
        if current is not None:
            yield current

    def _take(self, selection: _Selection, rank: int, candidate: RankedChunk) -> bool:
        """Add the part around a chunk; return whether there is room for more."""
        chunk = candidate.chunk
        room = self._tokens - selection.tokens - count_tokens(self._name_place(chunk)) - 1
        if room < LEAST_TOKENS:
            return False
        if chunk in selection.chunks:
            return True
        is_whole = len(selection.parts) < WHOLE_SECTIONS
        size = self._tokens // WHOLE_SHARE if is_whole else PASSAGE_TOKENS
        largest = self._tokens // WHOLE_SHARE if rank < self._hits else LARGEST_CHUNK_TOKENS
        if self._sizes[chunk] > min(room, max(size, largest)):
            return True
        run = selection.clip(self._run(chunk), chunk)
        part = self._grow(run, chunk, candidate.score, min(size, room), room)
        selection.add(part, self._places.section_of(chunk))
        selection.tokens = self._tokens - room + self._count(part)
        return True

    def _run(self, chunk: int) -> _SectionRun:
        """Return the chunks around a chunk that were read and have its heading and anchor."""
        first = last = chunk
        while self._continues(first - 1, first):
            first -= 1
        while self._continues(last + 1, last):
            last += 1
        return _SectionRun(first, last)

    def _continues(self, near: int, chunk: int) -> bool:
        if near not in self._passages or not self._places.are_together(near, chunk):
            return False
        one, other = self._passages[near].chunk, self._passages[chunk].chunk
        return one.anchor == other.anchor

    def _grow(
        self, run: _SectionRun, chunk: int, score: float, size: int, room: int
    ) -> _ChosenPart:
        part = _ChosenPart(chunk, chunk, chunk, score)
        tokens = self._sizes[chunk]
        while True:
            grown = False
            for near in (part.last + 1, part.first - 1):
                if run.first <= near <= run.last and tokens + self._cost(near, part) <= size:
                    tokens += self._cost(near, part)
                    part.first, part.last = min(part.first, near), max(part.last, near)
                    grown = True
            if not grown:
                break
        self._complete_steps(part, run, min(room, tokens + STEPS_TOKENS), tokens)
        return part

    def _complete_steps(self, part: _ChosenPart, run: _SectionRun, most: int, tokens: int) -> None:
        while part.first > run.first and self._cuts_steps(part.first - 1):
            tokens += self._cost(part.first - 1, part)
            if tokens > most:
                return
            part.first -= 1
        while part.last < run.last and self._cuts_steps(part.last):
            tokens += self._cost(part.last + 1, part)
            if tokens > most:
                return
            part.last += 1

    def _cuts_steps(self, chunk: int) -> bool:
        """Return whether a list of numbered steps goes on in the chunk after this one."""
        before, after = self._text(chunk), self._text(chunk + 1)
        step = _STEP.match(after[count_overlap(before, after) :].lstrip("\n"))
        return step is not None and int(step[1]) > 1

    def _cost(self, near: int, part: _ChosenPart) -> int:
        """Return the tokens of what a neighbour adds to a part."""
        before, after = (near, part.first) if near < part.first else (part.last, near)
        texts = self._text(before), self._text(after)
        shared = max(count_overlap(*texts), count_table_header(*texts))
        return self._sizes[near] - count_tokens(texts[1][:shared]) + 1

    def _count(self, part: _ChosenPart) -> int:
        texts = [self._text(chunk) for chunk in range(part.first, part.last + 1)]
        return count_tokens(join_texts(texts).text)

    def _text(self, chunk: int) -> str:
        return self._passages[chunk].chunk.text

    def _name_place(self, chunk: int) -> str:
        passage = self._passages[chunk]
        return " > ".join(dict.fromkeys((*passage.crumbs, *passage.chunk.heading_path)))

    def _lists_pages(self, chunk: int) -> bool:
        own = self._passages[chunk].title.casefold()
        return lists_pages(self._text(chunk), self._titles, own=own)


def make_hit(passage: Passage, score: float, levels: tuple[str, ...]) -> Hit:
    """Return a passage as a hit."""
    return Hit(
        chunk_id=passage.chunk.chunk_id,
        document_id=passage.document_id,
        page=passage.page,
        title=passage.title,
        text=passage.chunk.text,
        crumbs=passage.crumbs,
        heading_path=passage.chunk.heading_path,
        anchor=passage.chunk.anchor,
        url=passage.url,
        path=passage.source,
        language=passage.language,
        score=round(score, 6),
        levels=levels,
        version=passage.stated_version,
    )
