"""Decides whether a question is within the scope."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep, ReadsLanguage
from agents.question.meanings import find_section, number_places, word_meanings
from agents.question.replies import plain_reply
from agents.question.verified import (
    NOTHING,
    AskedQuestion,
    FindVerified,
    VerifiedMatch,
    match_verified,
)
from citations.links import plain_line
from envelope.conversation import (
    ClarificationOption,
    ClarificationReason,
    Pause,
    Turn,
    Understanding,
)
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import SourceUsed
from envelope.specialists import ReviewScope
from envelope.texts import Texts
from envelope.tool_loop import WayName
from envelope.verified import VerifiedAnswer
from knowledge.errors import KnowledgeError
from knowledge.port import (
    MATCHES_NOTHING,
    Findings,
    Searcher,
    SearchRequest,
    find_refusal_reason,
    find_uncompared,
)
from llm.errors import ModelError, has_unusable_output, name_failure
from llm.injection import BUDGET_SECONDS, inspect_within
from llm.port import Model, find_model
from llm.tasks.question import MATCH_VERIFIED, SCOPE, ScopeInputs, Strictness, Verdict

if TYPE_CHECKING:
    from knowledge.library.library import NamedInText
    from knowledge.search.question_vectors import EarlyEmbedding

MOST_QUESTIONS = 3
"""Maximum number of questions in one message that are answered together."""
_HARDLY_COVERED = 0.5
"""A question in a language that no document has counts as untranslated if its coverage is below
this value.
"""
_NEAREST = 5
DecidedBy = Literal["rules", "combined_call", "own_call"]
FindNamed = Callable[[str, Sequence[str]], Awaitable["NamedInText"]]
"""Returns the versions and documents that a text names, for a person in these groups."""


class Reads(ReadsLanguage, frozen=True):
    """The question as typed, and its standalone form."""

    canonical_question: str
    question_parts: tuple[str, ...] = ()
    text: str = ""
    text_eng: str = ""
    language: str = ""
    related_history: tuple[str, ...] = ()
    history: tuple[Turn, ...] = ()
    open_pause: Pause | None = None
    understanding: Understanding | None = None
    scope_error: str = ""
    model_failure: str = ""
    groups: tuple[str, ...] = ()
    review: ReviewScope | None = None


class Writes(MayAsk, frozen=True):
    """The verdict. A question outside the scope is declined, and the user is asked about an unclear
    one. Only this agent's own call states a confidence; rules and the combined call do not.
    """

    within_scope: bool
    guardrails_confidence: float | None = Field(default=None, ge=0, le=1)
    guardrails_analysis: str
    clarification_options: tuple[ClarificationOption, ...] = ()
    document_languages: tuple[str, ...] = ()
    decided_by: DecidedBy
    model_error: str = ""
    model_failure: str = ""
    verified_answer: str = ""
    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()


class GuardrailsAgent(Agent[Reads, Writes]):
    """Accepts questions about the subject of the documents and declines all others.

    The verdict comes from the combined call, or from a call of this agent, which receives what the
    documents contain about the question. Signs of an attack are passed to the model as a hint. The
    scope is decided first. Only for a question within the scope is the user asked which of several
    meanings they had in mind, or which of more than `MOST_QUESTIONS` questions comes first, unless
    tools can answer all of them. An option that the user chose is within the scope. So is a review
    whose documents the request names, because it reads only these documents, which do not have to
    be in the index.

    If a combined call gave no usable verdict, this agent calls the model as well. If its own call
    gives none either, the question does not pass, and the user is asked what it is about. Without a
    model, or if none can be reached, the topic of a question is unknown, so no question is declined
    as out of scope. The question ends here only if the search found no match in the documents, or
    if they are in other languages and there is no translation.

    A reply to a question from Refdesk is never declined for being short; instead, Refdesk asks
    again. A question that names a document continues if tools can read it. A question with the same
    meaning as one that has a verified answer gets that answer; see `agents.question.verified`. With
    an `early_embedding`, a vendor embeds the question for the search stage while the scope model
    judges it. In the meantime, the documents are searched by words.
    """

    role = Role.GUARDRAILS
    step = ProgressStep.UNDERSTAND
    model_task = SCOPE
    needs_index = True
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model | None,
        searcher: Searcher,
        domain_name: str,
        domain_scope: str = "",
        strictness: Strictness = "medium",
        inspection_seconds: float = BUDGET_SECONDS,
        early_embedding: "EarlyEmbedding | None" = None,
        find_named: FindNamed | None = None,
        reviews_documents: bool = False,
        find_verified: FindVerified | None = None,
        matcher: Model | None = None,
        texts: Texts | None = None,
        is_combined: bool = False,
        uses_model: bool = False,
    ) -> None:
        self._is_combined = is_combined
        self._uses_model = uses_model
        self._find_verified = find_verified
        self._matcher = matcher
        self._texts = texts
        self._find_named = find_named
        self._reviews_documents = reviews_documents
        self._model = model
        self._searcher = searcher
        self._early = early_embedding
        self._domain_name = domain_name
        self._domain_scope = domain_scope
        self._strictness = strictness
        self._inspection_seconds = inspection_seconds

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        settings = parts.settings
        return cls(
            model=find_model(parts.model(SCOPE.name)),
            is_combined=settings.combines_understanding,
            searcher=parts.searcher,
            domain_name=settings.domain_name,
            domain_scope=settings.domain_scope,
            strictness=settings.guardrails_strictness,
            early_embedding=parts.early_embedding,
            find_named=None if settings.way is WayName.SEARCH else parts.find_named,
            reviews_documents=settings.way in {WayName.SPECIALISTS, WayName.AUTO},
            find_verified=parts.find_verified,
            matcher=find_model(parts.model(MATCH_VERIFIED.name)),
            texts=parts.texts,
            uses_model=parts.uses_model,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        match = await self._match_verified(reads)
        if match.answer is not None:
            return Wrote(self._give_verified(match.answer, reads.reply_language))
        if match.candidates:
            return Wrote(_ask_whether(match.candidates))
        writes = await self._judge_scope(reads)
        if match.error and not writes.model_error:
            writes = writes.model_copy(update={"model_error": match.error})
        return Wrote(writes)

    def _find_model(self, reads: Reads) -> Model | None:
        """Return the model to call; after a combined call, only if it gave no usable verdict."""
        return self._model if not self._is_combined or reads.scope_error else None

    async def _match_verified(self, reads: Reads) -> VerifiedMatch:
        """Return the verified answer for a single question; reviews have none."""
        if reads.review is not None or len(reads.question_parts) > 1:
            return NOTHING
        asked = AskedQuestion(
            reads.canonical_question, reads.text, groups=reads.groups, pause=reads.open_pause
        )
        return await match_verified(asked, self._find_verified, self._matcher, self.run)

    def _give_verified(self, answer: VerifiedAnswer, language: str) -> Writes:
        note = "" if self._texts is None else self._texts.text(
            "verified_note", language, question=plain_line(answer.question)
        )  # fmt: skip
        note = f"{note} ({answer.date})" if note and answer.date else note
        return Writes(
            within_scope=True,
            guardrails_analysis=f"the owner has answered this question: {answer.question}",
            decided_by="own_call",
            verified_answer=answer.id,
            response="\n\n".join(filter(None, (note, answer.answer))),
            sources_used=answer.list_sources(),
        )

    async def _judge_scope(self, reads: Reads) -> Writes:
        writes = self._find_known(reads)
        if writes is None and self._early is not None and self._find_model(reads) is not None:
            async with self._early.during(self._request(reads)):
                writes = await self._judge(reads)
        elif writes is None:
            writes = await self._judge(reads)
        asks_much = len(reads.question_parts) > MOST_QUESTIONS and self._find_named is None
        if asks_much and writes.within_scope and not writes.needs_clarification:
            writes = writes.model_copy(update=_ask_which(reads.question_parts))
        return writes

    def _find_known(self, reads: Reads) -> Writes | None:
        """Return the verdict if it does not require a search in the documents."""
        if reads.review is not None:
            return _accept_review(reads.review)
        part = reads.understanding
        if part is not None and part.verdict is not None:
            writes = self._apply_verdict(part.verdict, part.analysis, part.meanings)
            writes = writes.model_copy(update={"decided_by": "combined_call"})
            return _name_signs(writes, part.signs)
        pause = reads.open_pause
        if pause is not None and plain_reply(reads.text, pause) is not None:
            return _accept("the user chose an offered option")
        return None

    async def _judge(self, reads: Reads) -> Writes:
        inspection = await inspect_within(self._inspection_seconds, reads.text, reads.text_eng)
        try:
            findings = await self._searcher.search(self._request(reads))
        except KnowledgeError as error:
            return _unsearchable(error)
        if findings.documents == 0:
            reason = ClarificationReason.NO_DOCUMENTS
            return _refuse(reason, findings, "there are no documents")
        writes = await self._ask_model(reads, findings, inspection.kinds)
        writes = _name_signs(writes, inspection.kinds)
        if not inspection.is_complete:
            note = (
                f"the text could not be searched for attacks completely within "
                f"{self._inspection_seconds:g} s"
            )
            analysis = f"{writes.guardrails_analysis}; {note}"
            writes = writes.model_copy(update={"guardrails_analysis": analysis})
        return writes

    async def _ask_model(self, reads: Reads, findings: Findings, signs: tuple[str, ...]) -> Writes:
        model = self._find_model(reads)
        if model is None:
            return await self._judge_without_model(reads, findings)
        nearest = tuple(dict.fromkeys(map(find_section, findings.hits)))
        try:
            inputs = self._inputs(reads, nearest, signs)
            output = (await model.ask(SCOPE, inputs, self.run)).output
        except ModelError as error:
            failure = name_failure(error)
            reads = reads.model_copy(update={"model_failure": failure or reads.model_failure})
            writes = await self._judge_without_model(reads, findings)
            described = f"{type(error).__name__}: {error}"
            if has_unusable_output(error) or error.reason == "too_long":
                writes = self._stop_unjudged(writes, described)
            return writes.model_copy(
                update={"model_error": described, "model_failure": reads.model_failure}
            )
        known = (reads.text, reads.canonical_question, self._domain_name, self._domain_scope)
        meanings = word_meanings(output.meanings, nearest, known)
        writes = self._apply_verdict(output.verdict, output.analysis, meanings)
        changes = {"decided_by": "own_call", "guardrails_confidence": output.confidence}
        return writes.model_copy(update=changes)

    def _stop_unjudged(self, writes: Writes, error: str) -> Writes:
        """Ask the user for clarification if the question was placed in scope by the search
        alone.
        """
        analysis = f"{writes.guardrails_analysis}; the model returned no usable verdict: {error}"
        if writes.within_scope and not writes.needs_clarification:
            writes = self._ask_back("", ())
        return writes.model_copy(update={"guardrails_analysis": analysis})

    async def _judge_without_model(self, reads: Reads, findings: Findings) -> Writes:
        """Return the verdict without a model, based on what the search found and was able to
        compare.
        """
        writes = await self._judge_findings(reads, findings)
        if writes.clarification_reason is ClarificationReason.NO_TRANSLATION:
            return writes
        uncompared = find_uncompared(findings, text=reads.text, text_eng=reads.text_eng)
        return writes.model_copy(update={"document_languages": uncompared})

    async def _judge_findings(self, reads: Reads, findings: Findings) -> Writes:
        covered = findings.coverage
        analysis = (
            "the meaning of the question was not judged; the coverage by the documents "
            f"is {covered:.2f}"
        )
        if covered >= _HARDLY_COVERED:
            return _accept(analysis)
        named = await self._describe_named(reads)
        if named:
            return _accept(named)
        reason = find_refusal_reason(
            findings,
            language=reads.language,
            text=reads.text,
            text_eng=reads.text_eng,
            uses_model=self._uses_model,
        )
        if reason is not None:
            compared = "without a model, texts in different languages cannot be compared"
            return _refuse(reason, findings, f"{analysis}; {compared}")
        if not findings.match_nothing or _judges_words_alone(findings, reads.language):
            return _accept(analysis)
        if reads.open_pause is not None:
            # Few words, such as "just tell me", have no meaning without the question that they
            # answer.
            return self._ask_back("", _list_offered(reads.open_pause))
        if reads.model_failure:
            return _refuse(ClarificationReason.MODEL_FAILED, findings, analysis)
        found_nothing = _refuse(ClarificationReason.INSUFFICIENT_CONTEXT, findings, analysis)
        return found_nothing.model_copy(update={"clarification_message": MATCHES_NOTHING})

    async def _describe_named(self, reads: Reads) -> str:
        """Return how many documents the question names, if tools can read them, or an empty
        string.
        """
        if self._find_named is None:
            return ""
        named = await self._find_named(reads.canonical_question, reads.groups)
        count = len(named.document_ids)
        if count:
            return f"the question names {count} document{'s' if count > 1 else ''}"
        return (
            f"the question names versions: {', '.join(named.versions)}"
            if named.versions[1:]
            else ""
        )

    def _inputs(
        self, reads: Reads, nearest: Sequence[ClarificationOption], signs: tuple[str, ...]
    ) -> ScopeInputs:
        return ScopeInputs(
            question=reads.canonical_question,
            text=reads.text,
            related=reads.related_history,
            domain_name=self._domain_name,
            domain_scope=self._domain_scope,
            strictness=self._strictness,
            nearest=number_places(nearest),
            signs=signs,
            reviews_documents=self._reviews_documents,
        )

    def _request(self, reads: Reads) -> SearchRequest:
        return SearchRequest(
            run=self.run,
            question=reads.canonical_question,
            text=reads.text,
            text_eng=reads.text_eng,
            language=reads.language or None,
            related=reads.related_history or self._find_last_question(reads),
            limit=_NEAREST,
            groups=reads.groups,
            by_words=self._early is not None and self._find_model(reads) is not None,
        )

    def _find_last_question(self, reads: Reads) -> tuple[str, ...]:
        """Return the last question if no model has determined whether this one refers to it."""
        if self._find_model(reads) is not None:
            return ()
        asked = (turn.text for turn in reversed(reads.history) if turn.speaker == "user")
        return tuple(islice(asked, 1))

    def _apply_verdict(
        self, verdict: Verdict, analysis: str, meanings: tuple[ClarificationOption, ...]
    ) -> Writes:
        if verdict == "outside":
            return self._decline(analysis)
        return self._ask_back(analysis, meanings) if verdict == "unclear" else _accept(analysis)

    def _decline(self, analysis: str) -> Writes:
        return Writes(
            within_scope=False,
            guardrails_analysis=analysis,
            needs_clarification=True,
            clarification_reason=ClarificationReason.OUT_OF_SCOPE,
            clarification_message=f"This desk answers questions about {self._about()}.",
            decided_by="rules",
        )

    def _ask_back(self, analysis: str, meanings: tuple[ClarificationOption, ...]) -> Writes:
        """Return a clarifying question; if there are locations to choose from, the question is
        ambiguous.
        """
        is_choice = len(meanings) > 1
        reason = (
            ClarificationReason.AMBIGUOUS_QUERY if is_choice else ClarificationReason.SCOPE_UNCLEAR
        )
        unclear = f"It is not clear whether the question is about {self._about()}."
        return Writes(
            within_scope=is_choice,
            guardrails_analysis=analysis,
            needs_clarification=True,
            clarification_reason=reason,
            clarification_message=analysis or unclear,
            clarification_options=meanings if is_choice else (),
            decided_by="rules",
        )

    def _about(self) -> str:
        return self._domain_scope.strip().rstrip(".") or self._domain_name


def _judges_words_alone(findings: Findings, language: str) -> bool:
    """Return whether only words were compared, and the documents are in other languages."""
    is_foreign = bool(findings.languages) and language not in findings.languages
    return is_foreign and not findings.are_calibrated


def _list_offered(pause: Pause) -> tuple[ClarificationOption, ...]:
    """Return the options of a pause, so that they can be offered again."""
    pairs = zip(pause.options, pause.places, strict=False)
    return tuple(
        ClarificationOption(label=label, crumbs=place, is_worded=True) for label, place in pairs
    )


def _ask_which(questions: tuple[str, ...]) -> dict[str, object]:
    return {
        "needs_clarification": True,
        "clarification_reason": ClarificationReason.MULTIPLE_TOPICS,
        "clarification_message": f"The message asks {len(questions)} questions at once.",
        "clarification_options": tuple(
            ClarificationOption(label=question) for question in questions
        ),
    }


def _ask_whether(candidates: Sequence[VerifiedAnswer]) -> Writes:
    """Return a clarifying question that offers similar verified answers, if there are any."""
    return Writes(
        within_scope=True,
        guardrails_analysis="the question is similar to questions that the owner has answered",
        needs_clarification=True,
        clarification_reason=ClarificationReason.AMBIGUOUS_QUERY,
        clarification_message="The owner may have answered this question.",
        clarification_options=tuple(
            ClarificationOption(label=candidate.question) for candidate in candidates
        ),
        decided_by="rules",
    )


def _accept(analysis: str) -> Writes:
    return Writes(within_scope=True, guardrails_analysis=analysis, decided_by="rules")


def _accept_review(review: ReviewScope) -> Writes:
    named = len(review.documents), len(review.against)
    analysis = "the request names {} documents to review against {} documents".format(*named)
    return _accept(analysis)


def _unsearchable(error: KnowledgeError) -> Writes:
    return Writes(
        within_scope=False,
        guardrails_analysis=f"the documents could not be searched: {error}",
        needs_clarification=True,
        clarification_reason=ClarificationReason.INTERNAL_FAULT,
        clarification_message="The documents cannot be searched at the moment.",
        decided_by="rules",
    )


def _refuse(reason: ClarificationReason, findings: Findings, analysis: str) -> Writes:
    """Return a refusal that makes no statement about the subject of the question."""
    return Writes(
        within_scope=False,
        guardrails_analysis=analysis,
        needs_clarification=True,
        clarification_reason=reason,
        document_languages=findings.languages,
        decided_by="rules",
    )


def _name_signs(writes: Writes, signs: tuple[str, ...]) -> Writes:
    """Return a verdict whose analysis lists the signs of an attack, for the operator."""
    if not signs:
        return writes
    note = f"signs of an attempt to change how the desk works: {', '.join(signs)}"
    analysis = "; ".join(filter(None, (writes.guardrails_analysis, note)))
    return writes.model_copy(update={"guardrails_analysis": analysis})
