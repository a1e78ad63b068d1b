"""Combines the results of all calls into numbered sources."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, ProgressStep
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import TOOL_SOURCE, FoundPart, SearchResult, SourceReference
from knowledge.sections import count_tokens
from llm.port import ModelMessage
from tools.calls import CitedPassage, PassageText, ToolResult

_BETWEEN = "\n\n"
_FURTHER_SHARE = 0.5
"""The share of the context that each further round may add."""
_LEVEL = "tools"


class Reads(BaseModel, frozen=True):
    """The question, and the rounds with their results."""

    canonical_question: str
    language: str = "en"
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}


class Writes(BaseModel, frozen=True):
    """The sources that an answer may cite, with their texts."""

    search_results: tuple[SearchResult, ...]
    search_context: str
    source_references: tuple[SourceReference, ...]


@dataclass(frozen=True, slots=True)
class _ChosenSource:
    """The text of one source, and the round that found it."""

    passage: PassageText
    tokens: int


class ReflectAgent(Agent[Reads, Writes]):
    """Takes the results of each round in turn, so that no call displaces another one.

    The sources of an earlier round keep their numbers: an answer that was written from them stays
    valid. Of a passage that several results quote, the longest text is kept. A result that is a
    source itself, such as a calculation, has the tool's name.
    """

    role = Role.REFLECT
    step = ProgressStep.SEARCH
    reads = Reads
    writes = Writes

    def __init__(self, *, max_context_length: int = 8000) -> None:
        self._max_tokens = max_context_length

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(max_context_length=parts.context_tokens)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        chosen = self._choose(list(_list_rounds(reads)))
        texts = [one.passage.text for one in chosen]
        results, references = [], []
        start = 0
        for number, (one, text) in enumerate(zip(chosen, texts, strict=True), start=1):
            span = (start, start + len(text))
            start = span[1] + len(_BETWEEN)
            fields = _describe(one.passage.citation)
            found = (FoundPart(rank=number - 1, start=0, end=len(text)),)
            references.append(SourceReference(number=number, span=span, found=found, **fields))
            score = one.passage.citation.score
            result = {"score": score, "levels": (_LEVEL,), "span": span, "found": found}
            results.append(SearchResult.model_validate({**fields, **result, **_own_id(one)}))
        return Wrote(
            Writes(
                search_results=tuple(results),
                search_context=_BETWEEN.join(texts),
                source_references=tuple(references),
            )
        )

    def _choose(self, rounds: Sequence[Sequence[ToolResult]]) -> list[_ChosenSource]:
        """Return the sources within the room: that of the first round, and more for each other."""
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


def _list_rounds(reads: Reads) -> Iterator[list[ToolResult]]:
    for value in reads.plan_messages:
        message = ModelMessage.model_validate(value)
        found = (reads.multi_tool_results.get(use.call_id) for use in message.calls)
        results = [ToolResult.model_validate(one) for one in found if one is not None]
        yield [one for one in results if one.success]


def _take_in_turn(results: Iterable[ToolResult]) -> Iterator[PassageText]:
    """Yield the first passages of all results, then the second ones, and so on."""
    for row in zip_longest(*map(_list_quoted, results)):
        yield from (one for one in row if one is not None)


def _list_quoted(result: ToolResult) -> list[PassageText]:
    """Return what a result quotes, after its own text where that is a source, too.

    A comparison names removed documents, of which there is no passage.
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
    return citation.model_dump(exclude={"document_id", "score"})


def _own_id(source: _ChosenSource) -> dict[str, object]:
    return {"document_id": source.passage.citation.document_id}
