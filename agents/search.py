"""Searches the documents for the question and assembles the context of the answer."""

import re
import time
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts
from envelope.conversation import ClarificationOption, ClarificationReason, ConversationAct, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import FoundPart, SearchResult, SearchStats
from knowledge.errors import KnowledgeError
from knowledge.port import ANSWER_CHARACTERS, ContextSection, Findings, Searcher, SearchRequest
from knowledge.search.context.token_count import count_tokens
from knowledge.search.joined import search_parts, search_place
from knowledge.search.refusals import find_refusal_reason
from llm.offline.dialogue.subjects import names_no_subject

_FURTHER_SHARE = 2
"""A repeated search adds at most the limit of the context divided by this number."""
_LARGEST_SHARE = 2
"""The largest context after all repeated searches, as a multiple of the limit."""
_BETWEEN = "\n\n"
_REPEATED = "repeated_search"
"""The fallback that is counted when a repeated search fails."""
_OPTIONS = 5
_MERE_REPLY = 3
_MISSING = re.compile(r"[\"“«„]([^\"”»“]{3,60})[\"”»“]")


_NOTHING_FURTHER = Findings(hits=(), quality="good", answerability=0.0, coverage=0.0, ambiguity=0.0)


class Reads(BaseModel, frozen=True):
    """The question, its conversation, and the sources of an earlier attempt."""

    canonical_question: str
    question_parts: tuple[str, ...] = ()
    chosen_place: tuple[str, ...] = ()
    text: str = ""
    text_eng: str = ""
    language: str = ""
    related_history: tuple[str, ...] = ()
    history: tuple[Turn, ...] = ()
    attempt: int = 0
    quality_analysis: str = ""
    search_results: tuple[SearchResult, ...] = ()
    search_context: str = ""
    tried_chunks: tuple[str, ...] = ()
    assumption: str = ""
    conversation_act: ConversationAct | None = None
    groups: tuple[str, ...] = ()


class Writes(BaseModel, frozen=True):
    """The sources, their text without repetition, and whether they are enough."""

    search_results: tuple[SearchResult, ...] = ()
    search_context: str = ""
    search_stats: SearchStats
    search_quality: Literal["excellent", "good", "poor"]
    search_error: str = ""
    tried_chunks: tuple[str, ...] = ()
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""
    clarification_options: tuple[ClarificationOption, ...] = ()
    document_languages: tuple[str, ...] = ()


class SearchSettings(Protocol):
    """The settings that this agent needs."""

    @property
    def max_context_length(self) -> int: ...

    @property
    def search_results_limit(self) -> int: ...


class SearchAgent(Agent[Reads, Writes]):
    """Searches, assembles the context within its limit, and reports insufficient results.

    A repeated search keeps the sources of the earlier attempts and adds others: it excludes the
    chunks that were tried, takes more candidates, and adds the terms that the judge missed to the
    question. The first source keeps its position in the context, and therefore its number.
    """

    role = Role.SEARCH
    reads = Reads
    writes = Writes

    def __init__(
        self, *, searcher: Searcher, max_context_length: int = 3500, limit: int = 10
    ) -> None:
        self._searcher = searcher
        self._max_tokens = max_context_length
        self._limit = limit

    @classmethod
    def make(cls, parts: AgentParts[SearchSettings]) -> Self:
        return cls(
            searcher=parts.searcher,
            max_context_length=parts.settings.max_context_length,
            limit=parts.settings.search_results_limit,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        started = time.perf_counter()
        kept = _GivenContext.of(reads) if reads.attempt else _GivenContext()
        try:
            findings = await self._search(reads, kept)
            asked = _find_asked_language(reads)
            if findings.quality == "poor" and asked != reads.language:
                # Nothing in the wanted language: the question finds what it found in its own.
                again = reads.model_copy(update={"language": asked})
                findings = await self._searcher.search(self._request(again, kept))
        except KnowledgeError as error:
            if not kept.results:
                return Wrote(_report_failure(str(error), started))
            # The sources of the earlier attempt remain.
            return Wrote(self._make_writes(reads, kept, _NOTHING_FURTHER, started, failed=True))
        writes = self._make_writes(reads, kept.extend(findings.context), findings, started)
        if kept.results:
            # The earlier answer was written from these sources: they suffice for another attempt.
            quality = "good" if findings.quality == "poor" else findings.quality
            return Wrote(writes.model_copy(update={"search_quality": quality}))
        return Wrote(_ask_if_poor(writes, reads, findings))

    async def _search(self, reads: Reads, kept: "_GivenContext") -> Findings:
        """Return the first findings: of each question of the message, or at a chosen place."""
        request = self._request(reads, kept)
        if reads.question_parts and not reads.attempt:
            return await search_parts(self._searcher, request, reads.question_parts)
        if reads.chosen_place and not reads.attempt:
            return await search_place(self._searcher, request, reads.chosen_place)
        return await self._searcher.search(request)

    def _request(self, reads: Reads, kept: "_GivenContext") -> SearchRequest:
        answers = [turn.text for turn in reads.history if turn.speaker == "assistant"]
        leans_back = bool(reads.related_history)
        return SearchRequest(
            question=_with_missing(reads),
            text=_wording(reads),
            text_eng=reads.text_eng,
            language=reads.language or None,
            related=reads.related_history,
            turns=len(reads.history) - len(answers),
            previous_answer=answers[-1][:ANSWER_CHARACTERS] if answers and leans_back else "",
            limit=self._limit * (1 + reads.attempt),
            attempt=reads.attempt,
            exclude=_already_used(reads) if reads.attempt else (),
            context_tokens=self._count_room(kept),
            groups=reads.groups,
            reranked=True,
        )

    def _count_room(self, kept: "_GivenContext") -> int:
        """Return how many tokens the search may add."""
        if not kept.results:
            return self._max_tokens
        room = self._max_tokens * _LARGEST_SHARE - count_tokens(kept.text)
        return max(0, min(self._max_tokens // _FURTHER_SHARE, room))

    def _make_writes(
        self,
        reads: Reads,
        context: "_GivenContext",
        findings: Findings,
        started: float,
        *,
        failed: bool = False,
    ) -> Writes:
        scores = [result.score for result in context.results]
        given = (one for section in findings.context for one in section.chunk_ids)
        fallbacks = (*findings.fallbacks, *((_REPEATED,) if failed else ()))
        return Writes(
            search_results=context.results,
            search_context=context.text,
            search_stats=SearchStats(
                total_results=len(findings.hits),
                used_results=len(context.results),
                context_length=count_tokens(context.text),
                average_score=sum(scores) / len(scores) if scores else 0.0,
                answerability=findings.answerability,
                milliseconds=_milliseconds(started),
                fallbacks=fallbacks,
                from_cache=findings.from_cache,
            ),
            search_quality=findings.quality,
            tried_chunks=tuple(dict.fromkeys((*_already_used(reads), *given))),
        )


@dataclass(frozen=True, slots=True)
class _GivenContext:
    """The text of the context, and its parts, the best first."""

    text: str = ""
    results: tuple[SearchResult, ...] = ()

    @classmethod
    def of(cls, reads: Reads) -> Self:
        """Return the context of the earlier attempt."""
        length = len(reads.search_context)
        used = (one for one in reads.search_results if one.span and one.span[1] <= length)
        return cls(reads.search_context, tuple(used))

    def extend(self, sections: tuple[ContextSection, ...]) -> "_GivenContext":
        """Return the context followed by further sections; no text is repeated or moved."""
        blocks = [self.text] if self.text else []
        length = len(self.text)
        first = 1 + max((part.rank for one in self.results for part in one.found), default=-1)
        further: list[SearchResult] = []
        for section in sections:
            start = length + (len(_BETWEEN) if blocks else 0)
            blocks.append(section.text)
            length = start + len(section.text)
            further.append(_make_result(section, (start, length), first))
        further.sort(key=lambda one: -one.score)
        return _GivenContext(_BETWEEN.join(blocks), (*self.results, *further))


def _find_asked_language(reads: Reads) -> str:
    """Return the language of the question; a rephrased answer may be wanted in another one."""
    if reads.conversation_act is not ConversationAct.REPHRASE:
        return reads.language
    spoken = (turn.language for turn in reversed(reads.history) if turn.speaker == "user")
    return next((language for language in spoken if language), reads.language)


def _wording(reads: Reads) -> str:
    """Return the user's words, unless they only say "2" or "shorter" about a question."""
    if reads.conversation_act is ConversationAct.REPHRASE:
        return ""
    if len(reads.text) * _MERE_REPLY < len(reads.canonical_question):
        return ""
    return reads.text


def _with_missing(reads: Reads) -> str:
    """Return the question, in a repeated search with the terms that the judge missed."""
    if not reads.attempt:
        return reads.canonical_question
    missing = dict.fromkeys(_MISSING.findall(reads.quality_analysis))
    return " ".join((reads.canonical_question, *missing))


def _already_used(reads: Reads) -> tuple[str, ...]:
    if not reads.attempt:
        return ()
    used = (result.chunk_id for result in reads.search_results if result.span is not None)
    return tuple(dict.fromkeys((*reads.tried_chunks, *used)))


def _make_result(section: ContextSection, span: tuple[int, int], first_rank: int) -> SearchResult:
    best = section.best
    return SearchResult(
        chunk_id=best.chunk_id,
        document_id=best.document_id,
        title=best.title,
        crumbs=best.crumbs,
        heading_path=best.heading_path,
        anchor=best.anchor,
        url=best.url,
        path=best.path,
        language=best.language,
        version=best.version or None,
        score=best.score,
        levels=best.levels,
        span=span,
        found=tuple(
            FoundPart(rank=first_rank + part.rank, start=part.start, end=part.end)
            for part in section.found
        ),
    )


def _ask_if_poor(writes: Writes, reads: Reads, findings: Findings) -> Writes:
    """Return `writes` with a clarification or a refusal, if the findings do not suffice."""
    vague = not reads.related_history and names_no_subject(reads.canonical_question)
    if findings.quality != "poor" and not vague:
        return writes
    places = (
        ClarificationOption(label=place.label, crumbs=place.crumbs) for place in findings.places
    )
    options = tuple(dict.fromkeys(places))[:_OPTIONS]
    unclear = vague or findings.ambiguity >= 1 - findings.answerability - findings.ambiguity
    if unclear and findings.hits and reads.assumption:
        return writes.model_copy(update={"search_quality": "good"})
    if unclear:
        return writes.model_copy(
            update={
                "needs_clarification": True,
                "clarification_reason": ClarificationReason.AMBIGUOUS_QUERY,
                "clarification_message": "The question can be about several things.",
                "clarification_options": options,
            }
        )
    reason = find_refusal_reason(
        findings, language=reads.language, text=reads.text, text_eng=reads.text_eng
    )
    return writes.model_copy(
        update={
            "needs_clarification": True,
            "clarification_reason": reason or ClarificationReason.INSUFFICIENT_CONTEXT,
            "clarification_message": "The documents do not say enough to answer this.",
            "document_languages": findings.languages if reason is not None else (),
        }
    )


def _report_failure(error: str, started: float) -> Writes:
    return Writes(
        search_stats=SearchStats(
            total_results=0,
            used_results=0,
            context_length=0,
            average_score=0.0,
            answerability=0.0,
            milliseconds=_milliseconds(started),
        ),
        search_quality="poor",
        search_error=error,
        needs_clarification=True,
        clarification_reason=ClarificationReason.INTERNAL_FAULT,
        clarification_message="The documents cannot be searched at the moment.",
    )


def _milliseconds(started: float) -> float:
    return (time.perf_counter() - started) * 1000
