"""Combines the results of all calls into numbered sources."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep
from envelope.conversation import ClarificationReason
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import (
    MOST_PICTURES,
    TOOL_SOURCE,
    FoundPart,
    SearchResult,
    SourcePicture,
    SourceReference,
)
from knowledge.search.section_text import MARK
from knowledge.sections import count_tokens, join_texts
from llm.port import ModelMessage
from tools.calls import CitedPassage, PassageText, ToolResult

_BETWEEN = "\n\n"
_LEFT_OUT = f"{MARK}text left out]"
_FURTHER_SHARE = 0.5
"""The share of the context that each further round may add."""
_LEVEL = "tools"


class Reads(BaseModel, frozen=True):
    """The question, the rounds with their results, and what was written from the earlier rounds."""

    canonical_question: str
    language: str = "en"
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}
    search_context: str = ""
    response: str = ""
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


class Writes(MayAsk, frozen=True):
    """The sources that an answer may cite, with their texts.

    If a further round adds nothing to them, `is_loop_over` is true or, if no answer could be
    written, the clarification attributes contain what its writer asked for.
    """

    search_results: tuple[SearchResult, ...]
    search_context: str
    source_references: tuple[SourceReference, ...]
    is_loop_over: bool = False


@dataclass(frozen=True, slots=True)
class _ChosenSource:
    """A passage that is passed to the writer, and its size."""

    passage: PassageText
    tokens: int


class ReflectAgent(Agent[Reads, Writes]):
    """Takes passages from the results of each round in turn, so that no call displaces another one.

    The passages in one section form one source, in the order of the document; omitted text between
    them is marked. Sources from an earlier round keep their numbers, so an answer based on them
    stays valid. If several results quote the same passage, the longest text is kept. A result that
    is itself a source, such as a calculation, has the tool's name.

    If the last round added nothing to the sources, no answer is written from them again.
    """

    role = Role.REFLECT
    step = ProgressStep.SEARCH
    reads = Reads
    writes = Writes

    def __init__(self, *, max_context_length: int = 6000) -> None:
        self._max_tokens = max_context_length

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(max_context_length=parts.context_tokens)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        sources = _join_sections(self._choose(list(_list_rounds(reads))))
        results, references = [], []
        start = 0
        for number, source in enumerate(sources, start=1):
            span = (start, start + len(source.text))
            start = span[1] + len(_BETWEEN)
            fields = {
                **_describe(source.citation),
                "span": span,
                "found": source.parts,
                "is_cut": source.is_cut,
                "pictures": source.pictures,
            }
            references.append(SourceReference.model_validate({**fields, "number": number}))
            own = {"score": source.citation.score, "levels": (_LEVEL,)}
            document = {"document_id": source.citation.document_id}
            results.append(SearchResult.model_validate({**fields, **own, **document}))
        context = _BETWEEN.join(source.text for source in sources)
        return Wrote(
            Writes(
                search_results=tuple(results),
                search_context=context,
                source_references=tuple(references),
                **(_end_loop(reads) if context and context == reads.search_context else {}),
            )
        )

    def _choose(self, rounds: Sequence[Sequence[ToolResult]]) -> list[_ChosenSource]:
        """Return the sources that fit into the limit of the first round, which is increased for
        each further round.
        """
        chosen: dict[str, _ChosenSource] = {}
        used = 0
        for number, results in enumerate(rounds):
            room = self._max_tokens * (1 + _FURTHER_SHARE * number)
            for passage in _take_in_turn(results):
                name = passage.citation.chunk_id
                tokens = count_tokens(passage.text)
                known = chosen.get(name)
                if known is not None and known.passage.text not in passage.text:
                    continue
                more = tokens - (0 if known is None else known.tokens)
                if used + more > room and chosen:
                    continue
                chosen[name] = _ChosenSource(passage, tokens)
                used += more
        return list(chosen.values())


@dataclass(frozen=True, slots=True)
class _Source:
    """The passages in one section as one text; `parts` contains the rank and position of each
    passage.
    """

    citation: CitedPassage
    text: str
    parts: tuple[FoundPart, ...]
    is_cut: bool
    pictures: tuple[SourcePicture, ...]


def _end_loop(reads: Reads) -> dict[str, Any]:
    """Return the attributes of a loop whose last round added nothing to the sources."""
    if reads.response:
        return {"is_loop_over": True}
    return {
        "needs_clarification": True,
        "clarification_reason": reads.clarification_reason
        or ClarificationReason.INSUFFICIENT_CONTEXT,
        "clarification_message": reads.clarification_message,
    }


def _list_rounds(reads: Reads) -> Iterator[list[ToolResult]]:
    for value in reads.plan_messages:
        message = ModelMessage.model_validate(value)
        executed = (reads.multi_tool_results.get(use.call_id) for use in message.calls)
        results = [ToolResult.model_validate(result) for result in executed if result is not None]
        yield [result for result in results if result.success]


def _take_in_turn(results: Iterable[ToolResult]) -> Iterator[PassageText]:
    """Yield the first passage of every result, then the second ones, and so on."""
    for row in zip_longest(*map(_list_quoted, results)):
        yield from (passage_text for passage_text in row if passage_text is not None)


def _list_quoted(result: ToolResult) -> list[PassageText]:
    """Return the passages quoted in a result, preceded by its own text if that is a source as well.

    A comparison may refer to removed documents, which have no passages.
    """
    if not result.is_source:
        return list(result.quoted)
    own = CitedPassage(
        chunk_id=f"{TOOL_SOURCE}{result.call_id}",
        document_id=f"{TOOL_SOURCE}{result.tool}",
        title=result.tool,
    )
    return [PassageText(citation=own, text=result.text), *result.quoted]


def _describe(citation: CitedPassage) -> dict[str, object]:
    return citation.model_dump(exclude={"document_id", "score", "pictures"})


def _join_sections(chosen: Sequence[_ChosenSource]) -> list[_Source]:
    """Return the chosen passages grouped by section, ordered by the first passage of each
    section.
    """
    sections: dict[object, list[tuple[int, PassageText]]] = {}
    for rank, source in enumerate(chosen):
        sections.setdefault(_find_section(source.passage.citation), []).append(
            (rank, source.passage)
        )
    return [_join(passages) for passages in sections.values()]


def _find_section(citation: CitedPassage) -> object:
    """Return the identity of a passage's section; a passage without a number forms its own
    section.
    """
    if not _find_ordinal(citation):
        return citation.chunk_id
    return citation.document_id, citation.version, citation.heading_path, citation.anchor


def _find_ordinal(citation: CitedPassage) -> int:
    """Return the 1-based position of a passage in its document, or 0 if its id contains none."""
    number = citation.chunk_id.rpartition("#")[2]
    return int(number) + 1 if number.isdecimal() and "#" in citation.chunk_id else 0


def _join(passages: Sequence[tuple[int, PassageText]]) -> _Source:
    """Return the passages in one section in the order of the document."""
    ordered = sorted(passages, key=lambda item: _find_ordinal(item[1].citation))
    text, parts, is_cut = "", [], False
    for run in _list_runs(ordered):
        if text:
            text += f"{_BETWEEN}{_LEFT_OUT}{_BETWEEN}"
            is_cut = True
        joined = join_texts([passage_text.text for _, passage_text in run])
        for (rank, _), (begin, end) in zip(run, joined.spans, strict=True):
            parts.append(FoundPart(rank=rank, start=len(text) + begin, end=len(text) + end))
        text += joined.text
    best = passages[0][1].citation
    pictures = dict.fromkeys(picture for _, one in ordered for picture in one.citation.pictures)
    return _Source(
        best,
        text,
        tuple(sorted(parts, key=lambda item: item.rank)),
        is_cut,
        tuple(pictures)[:MOST_PICTURES],
    )


def _list_runs(
    ordered: Sequence[tuple[int, PassageText]],
) -> Iterator[list[tuple[int, PassageText]]]:
    """Yield groups of passages that follow each other in the document without a gap."""
    run: list[tuple[int, PassageText]] = []
    for numbered in ordered:
        if run and _find_ordinal(numbered[1].citation) - _find_ordinal(run[-1][1].citation) != 1:
            yield run
            run = []
        run.append(numbered)
    yield run
