"""Searches the documents for the question and assembles the context for the answer.

With a model, the quality of a search is only information for the writer. The search ends the
question only if nothing relevant was found. Without a model, passages are shown regardless of their
quality. The search asks for clarification only if a short question fits two pages equally well.
"""

import re
import time
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep
from envelope.conversation import (
    REFUSALS,
    ClarificationOption,
    ClarificationReason,
    ConversationAct,
    QuestionTranslation,
    Turn,
)
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import MOST_PICTURES, FoundPart, SearchResult, SearchStats, SourcePicture
from knowledge.errors import KnowledgeError
from knowledge.port import (
    ANSWER_CHARACTERS,
    MATCHES_NOTHING,
    ContextSection,
    Findings,
    Searcher,
    SearchRequest,
    find_refusal_reason,
    find_uncompared,
)
from knowledge.search.joined import search_all, search_place
from knowledge.sections import count_tokens

_FURTHER_SHARE = 2
"""A repeated search may add at most the limit of the context divided by this number."""
_LARGEST_SHARE = 2
"""The maximum size of the context after all repeated searches, as a multiple of the limit."""
_BETWEEN = "\n\n"
_REPEATED = "repeated_search"
"""The fallback that is recorded when a repeated search fails."""
_OPTIONS = 5
_MERE_REPLY = 3
_SHORT_QUESTION = 6
"""Maximum number of words of a short question."""
_ALIKE = 0.75
"""A short question is ambiguous if the second page reaches this share of the best page's score, and
of the best keyword score. Ranks alone do not show how well the second page fits.
"""
_MOST_FURTHER = 12
"""Maximum number of sources that one repeated search adds, because a writer has to read all of
them.
"""
_MOST_TERMS = 3
"""Maximum number of terms that one repeated search looks up separately."""
_MISSING = re.compile(r"[\"“«„]([^\"”»“]{3,120})[\"”»“]")


_NOTHING_MATCHES = (ClarificationReason.INSUFFICIENT_CONTEXT, ClarificationReason.MODEL_FAILED)
_NOTHING_FURTHER = Findings(hits=(), quality="good", answerability=0.0, coverage=0.0)


class Reads(BaseModel, frozen=True):
    """The question, its conversation, and the sources of an earlier attempt."""

    canonical_question: str
    question_parts: tuple[str, ...] = ()
    question_translations: tuple[QuestionTranslation, ...] = ()
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
    missing: str = ""
    searches_again: bool = False
    assumption: str = ""
    conversation_act: ConversationAct | None = None
    model_failure: str = ""
    groups: tuple[str, ...] = ()


class Writes(MayAsk, frozen=True):
    """The sources, their text without repetition, and whether they are sufficient."""

    search_results: tuple[SearchResult, ...] = ()
    search_context: str = ""
    search_stats: SearchStats
    search_quality: Literal["excellent", "good", "poor"]
    search_error: str = ""
    tried_chunks: tuple[str, ...] = ()
    clarification_options: tuple[ClarificationOption, ...] = ()
    document_languages: tuple[str, ...] = ()
    common_terms: tuple[str, ...] = ()


class SearchAgent(Agent[Reads, Writes]):
    """Searches, assembles the context within its limit, and reports insufficient results.

    A repeated search keeps the sources of earlier attempts and adds others. Terms that the judge
    found missing are searched for separately, and their results come first. Then the question is
    searched for without the chunks of earlier attempts. The first source keeps its position in the
    context, and therefore its number.
    """

    role = Role.SEARCH
    step = ProgressStep.SEARCH
    slots = 8
    needs_index = True
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        searcher: Searcher,
        max_context_length: int = 6000,
        limit: int = 50,
        uses_model: bool = True,
    ) -> None:
        self._searcher = searcher
        self._max_tokens = max_context_length
        self._limit = limit
        self._uses_model = uses_model

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            searcher=parts.searcher,
            max_context_length=parts.context_tokens,
            limit=parts.settings.search_results_limit,
            uses_model=parts.uses_model,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        started = time.perf_counter()
        kept = _GivenContext.of(reads) if reads.attempt else _GivenContext()
        try:
            if reads.attempt:
                given, findings = await self._search_again(reads, kept)
            else:
                findings = await self._search_first(reads)
                given = kept.extend(findings.context)
        except KnowledgeError as error:
            if not kept.results:
                return Wrote(_report_failure(str(error), started))
            # The sources of the earlier attempt remain.
            return Wrote(self._make_writes(reads, kept, _NOTHING_FURTHER, started, failed=True))
        writes = self._make_writes(reads, given, findings, started)
        if kept.results:
            return Wrote(_continue(writes, reads, is_larger=given.chunks != kept.chunks))
        return Wrote(self._stop_or_continue(writes, reads, findings))

    async def _search_first(self, reads: Reads) -> Findings:
        findings = await self._search_question(reads, self._request(reads))
        asked = _find_asked_language(reads)
        if findings.quality == "poor" and asked != reads.language:
            # Nothing was found in the requested language: search in the language of the question.
            again = reads.model_copy(update={"language": asked})
            findings = await self._searcher.search(self._request(again))
        return findings

    async def _search_question(self, reads: Reads, request: SearchRequest) -> Findings:
        """Return the findings for the message, or those at a location that the user chose."""
        if reads.chosen_place:
            return await search_place(self._searcher, request, reads.chosen_place)
        return await search_all(self._searcher, _list_requests(reads, request))

    async def _search_again(
        self, reads: Reads, kept: "_GivenContext"
    ) -> tuple["_GivenContext", Findings]:
        """Return the context with the results for each missing term, followed by those for the
        question.
        """
        request = self._request(reads)
        room = self._count_room(kept)
        terms = _list_missing(reads)
        given, exclude = kept, _already_used(reads)
        for place, term in enumerate(terms):
            share = max(0, room) // (len(terms) + 1 - place)
            asked = replace(request, exclude=exclude, context_tokens=share)
            term_findings = await self._searcher.search(_ask_term(asked, term))
            given = given.add_some(term_findings.context, _MOST_FURTHER // (len(terms) + 1))
            exclude = (*exclude, *_list_chunks(term_findings))
            room -= _count_tokens_of(term_findings)
        further = replace(request, exclude=exclude, context_tokens=max(0, room))
        findings = await search_all(self._searcher, _list_requests(reads, further))
        added = len(given.results) - len(kept.results)
        return given.add_some(findings.context, _MOST_FURTHER - added), findings

    def _request(self, reads: Reads) -> SearchRequest:
        answers = [turn.text for turn in reads.history if turn.speaker == "assistant"]
        leans_back = bool(reads.related_history)
        return SearchRequest(
            run=self.run,
            question=reads.canonical_question,
            text=_wording(reads),
            text_eng=reads.text_eng,
            language=reads.language or None,
            related=reads.related_history or self._find_last_question(reads),
            previous_answer=answers[-1][:ANSWER_CHARACTERS] if answers and leans_back else "",
            limit=self._limit,
            attempt=reads.attempt,
            context_tokens=self._max_tokens,
            groups=reads.groups,
            reranked=True,
        )

    def _find_last_question(self, reads: Reads) -> tuple[str, ...]:
        """Return the last question if no model has determined whether this one refers to it."""
        if self._uses_model:
            return ()
        asked = (turn.text for turn in reversed(reads.history) if turn.speaker == "user")
        return tuple(islice(asked, 1))

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
        fallbacks = (*findings.fallbacks, *((_REPEATED,) if failed else ()))
        return Writes(
            search_results=context.results,
            search_context=context.text,
            search_stats=SearchStats(
                total_results=max(findings.total, len(findings.hits)),
                used_results=len(context.results),
                left_out=context.left_out,
                context_length=count_tokens(context.text),
                average_score=sum(scores) / len(scores) if scores else 0.0,
                answerability=findings.answerability,
                milliseconds=_milliseconds(started),
                fallbacks=fallbacks,
                from_cache=findings.from_cache,
                matches_nothing=self._matches_nothing(reads, findings),
            ),
            search_quality=findings.quality,
            tried_chunks=tuple(dict.fromkeys((*_already_used(reads), *context.chunks))),
            document_languages=find_uncompared(findings, text=reads.text, text_eng=reads.text_eng),
            common_terms=findings.common,
        )

    @staticmethod
    def _matches_nothing(reads: Reads, findings: Findings) -> bool:
        """Return True if the first search found nothing that resembles the question."""
        return not reads.attempt and not reads.chosen_place and findings.match_nothing

    def _stop_or_continue(self, writes: Writes, reads: Reads, findings: Findings) -> Writes:
        """Return `writes`; if the search ends the question, with the reason and the locations."""
        reason = _find_reason_to_stop(reads, findings, uses_model=self._uses_model)
        message = MATCHES_NOTHING
        if self._uses_model and findings.hits and reason in _NOTHING_MATCHES:
            # The writer reads all results, and states itself if they do not answer the question.
            reason = None
        if reason is None and not self._uses_model:
            reason, message = _find_unclear(reads, findings)
        if reason is None:
            return writes
        places = (
            ClarificationOption(label=place.label, crumbs=place.crumbs) for place in findings.places
        )
        is_foreign = reason is ClarificationReason.NO_TRANSLATION
        if is_foreign:
            writes = writes.model_copy(update={"document_languages": findings.languages})
        return writes.model_copy(
            update={
                "search_quality": "poor" if reason in REFUSALS else writes.search_quality,
                "needs_clarification": True,
                "clarification_reason": reason,
                "clarification_message": message,
                "clarification_options": tuple(dict.fromkeys(places))[:_OPTIONS],
            }
        )


@dataclass(frozen=True, slots=True)
class _GivenContext:
    """The text of the context, its parts (best first), and the chunks that were added.

    `left_out` counts the sections that were found but not added.
    """

    text: str = ""
    results: tuple[SearchResult, ...] = ()
    chunks: tuple[str, ...] = ()
    left_out: int = 0

    @classmethod
    def of(cls, reads: Reads) -> Self:
        """Return the context of the earlier attempt."""
        length = len(reads.search_context)
        used = (
            result for result in reads.search_results if result.span and result.span[1] <= length
        )
        return cls(reads.search_context, tuple(used))

    def add_some(self, sections: tuple[ContextSection, ...], most: int) -> "_GivenContext":
        """Return the context followed by the best of further sections, at most `most` of them."""
        best = sorted(sections, key=lambda item: -item.best.score)[: max(0, most)]
        chosen = self.extend(tuple(section for section in sections if section in best))
        return replace(chosen, left_out=self.left_out + len(sections) - len(best))

    def extend(self, sections: tuple[ContextSection, ...]) -> "_GivenContext":
        """Return the context followed by further sections, without repeating or moving text."""
        blocks = [self.text] if self.text else []
        length = len(self.text)
        first = 1 + max((part.rank for result in self.results for part in result.found), default=-1)
        further: list[SearchResult] = []
        for section in sections:
            start = length + (len(_BETWEEN) if blocks else 0)
            blocks.append(section.text)
            length = start + len(section.text)
            further.append(_make_result(section, (start, length), first))
        further.sort(key=lambda item: -item.score)
        chunks = (identifier for section in sections for identifier in section.chunk_ids)
        return _GivenContext(
            _BETWEEN.join(blocks), (*self.results, *further), (*self.chunks, *chunks)
        )


def _continue(writes: Writes, reads: Reads, *, is_larger: bool) -> Writes:
    """Return the writes of a further search. If it found new sources, or if an answer has to be
    corrected, the model writes again; otherwise, the question ends.
    """
    if not reads.searches_again:
        # The earlier answer was written from these sources, so they suffice for another attempt.
        quality = "good" if writes.search_quality == "poor" else writes.search_quality
        return writes.model_copy(update={"search_quality": quality})
    asks = not is_larger
    reason = ClarificationReason.INSUFFICIENT_CONTEXT if asks else None
    return writes.model_copy(
        update={
            "needs_clarification": asks,
            "clarification_reason": reason,
            "clarification_message": reads.missing if asks else "",
        }
    )


def _find_asked_language(reads: Reads) -> str:
    """Return the language of the question; a rephrased answer may be requested in a different
    one.
    """
    if reads.conversation_act is not ConversationAct.REPHRASE:
        return reads.language
    spoken = (turn.language for turn in reversed(reads.history) if turn.speaker == "user")
    return next((language for language in spoken if language), reads.language)


def _wording(reads: Reads) -> str:
    """Return the user's wording, unless it only refers to a question, such as "2" or "shorter"."""
    if reads.conversation_act is ConversationAct.REPHRASE:
        return ""
    if len(reads.text) * _MERE_REPLY < len(reads.canonical_question):
        return ""
    return reads.text


def _list_missing(reads: Reads) -> list[str]:
    """Return the details that the writer found missing, or the terms that the judge quotes in its
    analysis.
    """
    if reads.searches_again and not reads.quality_analysis:
        return [reads.missing] if reads.missing.strip() else []
    return list(dict.fromkeys(_MISSING.findall(reads.quality_analysis)))[:_MOST_TERMS]


def _list_requests(reads: Reads, request: SearchRequest) -> list[SearchRequest]:
    """Return the searches for a message: as typed, for each of its questions, and for its
    translations into the languages of the documents.
    """
    alone = replace(request, text="", text_eng="", related=(), previous_answer="")
    parts = [replace(alone, question=part) for part in reads.question_parts]
    translations = [
        replace(alone, question=translation.question, language=translation.language)
        for translation in reads.question_translations
    ]
    return [request, *parts, *translations]


def _ask_term(request: SearchRequest, term: str) -> SearchRequest:
    """Return a search for a single term."""
    return replace(request, question=term, text="", text_eng="", related=(), previous_answer="")


def _list_chunks(findings: Findings) -> tuple[str, ...]:
    return tuple(identifier for section in findings.context for identifier in section.chunk_ids)


def _count_tokens_of(findings: Findings) -> int:
    return sum(count_tokens(section.text) for section in findings.context)


def _find_reason_to_stop(
    reads: Reads, findings: Findings, *, uses_model: bool
) -> ClarificationReason | None:
    """Return why nothing relevant was found, or None if something was, or may have been."""
    if findings.hits and (reads.chosen_place or not findings.match_nothing):
        return None
    reason = find_refusal_reason(
        findings,
        language=reads.language,
        text=reads.text,
        text_eng=reads.text_eng,
        uses_model=uses_model,
    )
    if reason is None and (not findings.hits or findings.are_calibrated):
        # A message that no model interpreted proves nothing about the documents.
        is_interpreted = not reads.model_failure
        return (
            ClarificationReason.INSUFFICIENT_CONTEXT
            if is_interpreted
            else ClarificationReason.MODEL_FAILED
        )
    return reason


def _find_unclear(reads: Reads, findings: Findings) -> tuple[ClarificationReason | None, str]:
    """Return why the person is asked before passages are shown, if no model decides."""
    is_clear = reads.related_history or reads.assumption or reads.chosen_place
    if is_clear or reads.question_parts:
        return None, ""
    if len(reads.canonical_question.split()) <= _SHORT_QUESTION and _fit_alike(findings):
        return (
            ClarificationReason.AMBIGUOUS_QUERY,
            "The question matches several pages equally well.",
        )
    return None, ""


def _fit_alike(findings: Findings) -> bool:
    """Return whether the two best pages fit equally well; pages that hardly fit are shown
    instead.
    """
    if len(findings.places) < 2 or (findings.quality == "poor" and not findings.are_calibrated):
        return False
    first, second = findings.places[:2]
    is_alike = first.score > 0 and second.score >= _ALIKE * first.score
    return is_alike and second.word_fit >= _ALIKE


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
        **best.place.list_fields(),
        score=best.score,
        levels=best.levels,
        span=span,
        is_cut=section.is_cut,
        is_release_notes=section.is_release_notes,
        found=tuple(
            FoundPart(rank=first_rank + part.rank, start=part.start, end=part.end)
            for part in section.found
        ),
        pictures=tuple(
            SourcePicture(id=name, caption=caption)
            for name, caption in section.pictures[:MOST_PICTURES]
        ),
    )


def _report_failure(error: str, started: float) -> Writes:
    return Writes(
        search_stats=SearchStats(milliseconds=_milliseconds(started)),
        search_quality="poor",
        search_error=error,
        needs_clarification=True,
        clarification_reason=ClarificationReason.INTERNAL_FAULT,
        clarification_message="The documents cannot be searched at the moment.",
    )


def _milliseconds(started: float) -> float:
    return (time.perf_counter() - started) * 1000
