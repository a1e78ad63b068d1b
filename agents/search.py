"""Looks the question up in the documents."""

import re
import time
from typing import Literal, Protocol, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts
from envelope.conversation import ClarificationOption, ClarificationReason, ConversationAct, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import SearchResult, SearchStats
from knowledge.errors import KnowledgeError
from knowledge.port import Findings, Hit, Searcher, SearchRequest
from knowledge.search.refusals import find_refusal_reason
from llm.offline.dialogue.subjects import names_no_subject

_CHARACTERS_PER_TOKEN = 4
_BETWEEN = "\n\n"
_OPTIONS = 5
_ANSWER_CHARACTERS = 500
_MERE_REPLY = 3
_MISSING = re.compile(r"[\"“«„]([^\"”»“]{3,60})[\"”»“]")


class Reads(BaseModel, frozen=True):
    """The question, its conversation, and what an earlier attempt tried."""

    canonical_question: str
    text: str = ""
    text_eng: str = ""
    language: str = ""
    related_history: tuple[str, ...] = ()
    history: tuple[Turn, ...] = ()
    attempt: int = 0
    quality_analysis: str = ""
    search_results: tuple[SearchResult, ...] = ()
    tried_chunks: tuple[str, ...] = ()
    assumption: str = ""
    conversation_act: ConversationAct | None = None


class Writes(BaseModel, frozen=True):
    """What was found, its text once, and whether it is enough."""

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
    """Search, lay out the context within its limit, and say when it is not enough.

    A further attempt differs from the one before: it leaves out what was tried, looks wider, and
    adds what the judge found missing.
    """

    role = Role.SEARCH
    reads = Reads
    writes = Writes

    def __init__(
        self, *, searcher: Searcher, max_context_length: int = 4000, limit: int = 10
    ) -> None:
        self._searcher = searcher
        self._max_characters = max_context_length * _CHARACTERS_PER_TOKEN
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
        try:
            findings = await self._searcher.search(self._request(reads))
        except KnowledgeError as error:
            return Wrote(_report_failure(str(error), started))
        return Wrote(_asking(self._make_writes(reads, findings, started), reads, findings))

    def _request(self, reads: Reads) -> SearchRequest:
        answers = [turn.text for turn in reads.history if turn.speaker == "assistant"]
        leans_back = bool(reads.related_history)
        return SearchRequest(
            question=_with_missing(reads),
            text=_wording(reads),
            text_eng=reads.text_eng,
            language=reads.language or None,
            related=reads.related_history,
            turns=len(reads.history) - len(answers),
            previous_answer=answers[-1][:_ANSWER_CHARACTERS] if answers and leans_back else "",
            limit=self._limit * (1 + reads.attempt),
            attempt=reads.attempt,
            exclude=_already_used(reads) if reads.attempt else (),
        )

    def _make_writes(self, reads: Reads, findings: Findings, started: float) -> Writes:
        context, results = _laid_out(findings.hits, self._max_characters)
        used = [result for result in results if result.span is not None]
        scores = [result.score for result in used]
        return Writes(
            search_results=results,
            search_context=context,
            search_stats=SearchStats(
                total_results=len(results),
                used_results=len(used),
                context_length=-(-len(context) // _CHARACTERS_PER_TOKEN),
                average_score=sum(scores) / len(scores) if scores else 0.0,
                answerability=findings.answerability,
                milliseconds=_milliseconds(started),
                fallbacks=findings.fallbacks,
            ),
            search_quality=findings.quality,
            tried_chunks=tuple(
                dict.fromkeys((*_already_used(reads), *(hit.chunk_id for hit in used)))
            ),
        )


def _wording(reads: Reads) -> str:
    """Return the user's own words, unless they are a mere "2" or "shorter" about a question."""
    if reads.conversation_act is ConversationAct.REPHRASE:
        return ""
    if len(reads.text) * _MERE_REPLY < len(reads.canonical_question):
        return ""
    return reads.text


def _with_missing(reads: Reads) -> str:
    """Return the question, with what the judge quoted as missing after a research decision."""
    if not reads.attempt:
        return reads.canonical_question
    missing = dict.fromkeys(_MISSING.findall(reads.quality_analysis))
    return " ".join((reads.canonical_question, *missing))


def _already_used(reads: Reads) -> tuple[str, ...]:
    if not reads.attempt:
        return ()
    used = (result.chunk_id for result in reads.search_results if result.span is not None)
    return tuple(dict.fromkeys((*reads.tried_chunks, *used)))


def _laid_out(hits: tuple[Hit, ...], limit: int) -> tuple[str, tuple[SearchResult, ...]]:
    """Return the texts of the best hits, one block each, and the hits with their places in it."""
    blocks: list[str] = []
    results: list[SearchResult] = []
    length = 0
    for hit in hits:
        start = length + (len(_BETWEEN) if blocks else 0)
        fits = start + len(hit.text) <= limit
        if fits:
            blocks.append(hit.text)
            length = start + len(hit.text)
        results.append(_result(hit, (start, length) if fits else None))
    return _BETWEEN.join(blocks), tuple(results)


def _result(hit: Hit, span: tuple[int, int] | None) -> SearchResult:
    return SearchResult(
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        title=hit.title,
        crumbs=hit.crumbs,
        heading_path=hit.heading_path,
        anchor=hit.anchor,
        url=hit.url,
        path=hit.path,
        language=hit.language,
        score=hit.score,
        levels=hit.levels,
        span=span,
    )


def _asking(writes: Writes, reads: Reads, findings: Findings) -> Writes:
    """Return `writes` with a question back, or a refusal, when what was found is too little."""
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
