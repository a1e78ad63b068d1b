"""Measures the context of answers: the suite `context`.

Each question is searched for in the same way as in the agent's first attempt. A question counts as
*found* if its context contains any part of a section that answers it, and as *whole* if it contains
the whole section. If only the page is known, every section of the page counts as an answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from benchmarks.quality.collection import open_collection
from cli.evaluation.questions import GoldQuestion, corpus_of, questions_of
from config.settings import Settings
from deploy.assembly.model_choice import USUAL_CONTEXT
from knowledge.document import Chunk
from knowledge.embedding import Embedder
from knowledge.index.port import Index
from knowledge.port import ContextSection, Searcher
from knowledge.sections import count_tokens, document_of

Figures = dict[str, object]
_GOLD_TEXT_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class MeasuredContext:
    """The context of one question; `tokens` counts sections including their headings and locations.

    `position` is the 1-based position of the first section that answers the question; 0: none does.
    """

    found: bool
    whole: bool
    page: bool
    tokens: int
    sections: int
    position: int
    kind: str


async def evaluate(data: Path, *, embedder: Embedder | None = None) -> Figures:
    """Return the figures of a folder; raises `UnknownFormatError` for another kind of folder."""
    corpus = corpus_of(data)
    settings = Settings(_env_file=None)
    questions = questions_of(data, limit=settings.search_results_limit)
    async with open_collection(corpus, settings, embedder) as knowledge:
        pages = await _read_pages(
            knowledge.index, {name for question in questions for name in question.gold}
        )
        tokens = settings.max_context_length
        tokens = USUAL_CONTEXT if tokens is None else tokens
        measured = [await _measure(knowledge.searcher, asked, pages, tokens) for asked in questions]
    kinds = sorted({context.kind for context in measured})
    return {
        "suite": "context",
        "data": data.name,
        "limit": tokens,
        **_summarize(measured),
        "by": {kind: _summarize([m for m in measured if m.kind == kind]) for kind in kinds},
    }


async def _measure(
    searcher: Searcher,
    asked: GoldQuestion,
    pages: Mapping[str, Sequence[Chunk]],
    tokens: int,
) -> MeasuredContext:
    findings = await searcher.search(replace(asked.request, context_tokens=tokens))
    given = {identifier for section in findings.context for identifier in section.chunk_ids}
    kind, answering = _find_sections(asked, pages)
    return MeasuredContext(
        found=any(not given.isdisjoint(section) for section in answering),
        whole=any(given.issuperset(section) for section in answering),
        page=any(section.best.page in asked.gold for section in findings.context),
        tokens=sum(_count(section) for section in findings.context),
        sections=len(findings.context),
        position=_find_position(findings.context, answering),
        kind=kind,
    )


def _find_position(context: Sequence[ContextSection], answering: Sequence[set[str]]) -> int:
    for position, section in enumerate(context, start=1):
        if any(not chunk_ids.isdisjoint(section.chunk_ids) for chunk_ids in answering):
            return position
    return 0


def _count(section: ContextSection) -> int:
    return count_tokens(section.text) + count_tokens(section.best.place.trail)


def _find_sections(
    asked: GoldQuestion, pages: Mapping[str, Sequence[Chunk]]
) -> tuple[str, list[set[str]]]:
    """Return how exactly the location of the answer is known, and the chunks of each section
    there.
    """
    chunks = [chunk for name in sorted(asked.gold) for chunk in pages.get(name, ())]
    quoted = " ".join(asked.text.split())[:_GOLD_TEXT_CHARACTERS]
    if quoted:
        quoting = [{chunk.chunk_id} for chunk in chunks if quoted in " ".join(chunk.text.split())]
        if quoting:
            return "text", quoting
    sections = list(_split_sections(chunks))
    named = [ids for anchor, ids in sections if asked.anchor and anchor == asked.anchor]
    if named:
        return "section", named
    return "page", [ids for _, ids in sections]


def _split_sections(chunks: Iterable[Chunk]) -> Iterable[tuple[str | None, set[str]]]:
    for (_, _, anchor), own in groupby(
        chunks, key=lambda item: (document_of(item.chunk_id), item.heading_path, item.anchor)
    ):
        yield anchor, {chunk.chunk_id for chunk in own}


async def _read_pages(index: Index, names: set[str]) -> dict[str, list[Chunk]]:
    """Return the chunks of pages in order, in every language."""
    pages: dict[str, list[Chunk]] = {}
    for document in await index.load(sorted(await index.versions())):
        if document.page in names:
            points = [chunk.point for chunk in document.chunks]
            passages = await index.passages(points)
            pages.setdefault(document.page, []).extend(passages[point].chunk for point in points)
    return pages


def _summarize(measured: Sequence[MeasuredContext]) -> Figures:
    tokens = sorted(context.tokens for context in measured)
    sections = sorted(context.sections for context in measured)
    positions = sorted(context.position for context in measured if context.position)
    return {
        "questions": len(measured),
        "found": _share([context.found for context in measured]),
        "whole": _share([context.whole for context in measured]),
        "page": _share([context.page for context in measured]),
        "tokens": {
            "p50": _pick(tokens, 50),
            "p95": _pick(tokens, 95),
            "max": tokens[-1] if tokens else 0,
        },
        "sections": {"p50": _pick(sections, 50), "max": sections[-1] if sections else 0},
        "position": {"p50": _pick(positions, 50), "p95": _pick(positions, 95)},
    }


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def _pick(ordered: Sequence[int], percent: int) -> int:
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] if ordered else 0
