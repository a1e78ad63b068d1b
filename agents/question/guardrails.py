"""Decides whether a question is within the scope of the desk."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Protocol, Self

from pydantic import BaseModel, Field

from agents.agent import Agent, AgentParts
from envelope.conversation import ClarificationReason
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.understanding import Understanding
from envelope.ways.specialists import ReviewScope
from envelope.ways.tool_loop import WayName
from knowledge.errors import KnowledgeError
from knowledge.port import Findings, Hit, Searcher, SearchRequest
from knowledge.search.refusals import find_refusal_reason
from llm.attacks.injection import BUDGET_SECONDS, inspect_within
from llm.errors import ModelError
from llm.offline.scope_rules import ACCEPTED_COVERAGE, CERTAIN_COVERAGE, LEAST_COVERAGE
from llm.port import Model
from llm.tasks.scope import TASK, Inputs, Output, Strictness

if TYPE_CHECKING:
    from knowledge.library.library import NamedInText
    from knowledge.search.early_embedding import EarlyEmbedding

_NEAREST = 5
_CERTAIN = 0.95
_SURE = 0.5
"""The least confidence of an accepted verdict that was given without the documents."""
OFFLINE = "offline"
_VERSION_WORDS = frozenset(
    ("version", "revision", "release", "edition", "fassung", "versión", "edición", "édition")
)
_NAMED_BY_REQUEST = "the request names the documents of a review"


class Reads(BaseModel, frozen=True):
    """The question as typed, and as it can be understood alone."""

    canonical_question: str
    text: str = ""
    text_eng: str = ""
    language: str = ""
    related_history: tuple[str, ...] = ()
    understanding: Understanding | None = None
    groups: tuple[str, ...] = ()
    review: ReviewScope | None = None


class Writes(BaseModel, frozen=True):
    """The verdict: a question outside the scope is declined, an unclear one is asked about."""

    within_scope: bool
    guardrails_confidence: float = Field(ge=0, le=1)
    guardrails_analysis: str
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""
    document_languages: tuple[str, ...] = ()
    decided_by: Literal["rules", "combined_call", "own_call"] = "rules"
    asked_again: str = ""


class GuardrailsSettings(Protocol):
    """The settings that this agent needs."""

    @property
    def domain_name(self) -> str: ...

    @property
    def domain_scope(self) -> str: ...

    @property
    def guardrails_strictness(self) -> Strictness: ...

    @property
    def skip_certain_calls(self) -> bool: ...

    @property
    def has_scope_of_documents(self) -> bool: ...

    @property
    def way(self) -> WayName: ...


FindNamed = Callable[[str, Sequence[str]], Awaitable["NamedInText"]]
"""Returns the versions and documents that a text names, for a person of these groups."""


class GuardrailsAgent(Agent[Reads, Writes]):
    """Accepts questions about the subject of the documents and declines attacks on the desk.

    A question with the signs of an attack is always judged by a separate call, whose inputs name
    the signs: a model weighs them, and the offline rules refuse. The analysis names them.

    Without a verdict no question is accepted: the user is asked instead. A question that could not
    be inspected for attacks in time is judged like any other, and the analysis notes it.

    With `skips_certain`, a question that the documents almost certainly cover is within scope
    without a model call, unless the strictness is high. It requires that the documents define the
    scope: coverage does not show whether a question is within a narrower one. And it requires a
    calibrated embedding model: coverage by words alone is never certain.

    With an `early_embedding` a vendor embeds the question for the search stage while the scope
    model judges, and the documents are searched by words meanwhile. After a combined call the
    question has its vector, which both stages use.

    Where tools can answer, a question that names a document or two versions is within scope, too: a
    summary or a comparison has hardly a word in common with the text.

    A review whose documents the request names is within scope: it reads these documents alone, and
    they need not be in the index.

    The verdict of a combined call is given without the documents. It counts if the coverage agrees
    with it; otherwise a call with the findings decides, and `asked_again` states the reason.
    """

    role = Role.GUARDRAILS
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        searcher: Searcher,
        domain_name: str,
        domain_scope: str = "",
        strictness: Strictness = "medium",
        inspection_seconds: float = BUDGET_SECONDS,
        skips_certain: bool = False,
        early_embedding: "EarlyEmbedding | None" = None,
        find_named: FindNamed | None = None,
        reviews_documents: bool = False,
    ) -> None:
        self._find_named = find_named
        self._reviews_documents = reviews_documents
        self._model = model
        self._searcher = searcher
        self._early = early_embedding
        self._domain_name = domain_name
        self._domain_scope = domain_scope
        self._strictness = strictness
        self._inspection_seconds = inspection_seconds
        self._skips_certain = skips_certain and strictness != "high"

    @classmethod
    def make(cls, parts: AgentParts[GuardrailsSettings]) -> Self:
        return cls(
            model=parts.model(TASK.name),
            searcher=parts.searcher,
            domain_name=parts.settings.domain_name,
            domain_scope=parts.settings.domain_scope,
            strictness=parts.settings.guardrails_strictness,
            skips_certain=(
                parts.settings.skip_certain_calls and parts.settings.has_scope_of_documents
            ),
            early_embedding=parts.early_embedding,
            find_named=None if parts.settings.way is WayName.SEARCH else parts.find_named,
            reviews_documents=parts.settings.way in {WayName.SPECIALISTS, WayName.AUTO},
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.review is not None:
            return Wrote(_accept_review(reads.review))
        early = self._early if self._is_still_to_embed(reads) else None
        if early is None:
            return Wrote(await self._judge(reads))
        async with early.during(self._request(reads)):
            return Wrote(await self._judge(reads))

    def _is_still_to_embed(self, reads: Reads) -> bool:
        """Return whether a vendor embeds the question now; a combined call has had it embedded."""
        return self._early is not None and reads.understanding is None

    async def _judge(self, reads: Reads) -> Writes:
        inspection = await inspect_within(self._inspection_seconds, reads.text, reads.text_eng)
        writes = await self._verdict(reads, inspection.kinds)
        if not inspection.is_complete:
            writes = writes.model_copy(update=_note_unread_rest(writes, self._inspection_seconds))
        return writes

    async def _verdict(self, reads: Reads, signs: tuple[str, ...]) -> Writes:
        try:
            findings = await self._searcher.search(self._request(reads))
        except KnowledgeError as error:
            return _unsearchable(error)
        reason = find_refusal_reason(
            findings, language=reads.language, text=reads.text, text_eng=reads.text_eng
        )
        if reason is ClarificationReason.NO_DOCUMENTS:
            return _refuse(reason, findings, "there are no documents")
        if signs:
            return await self._weigh_signs(reads, findings, signs)
        if reads.review is not None:
            return self._apply_verdict(
                Output(verdict="within", confidence=1.0, analysis=_NAMED_BY_REQUEST)
            )
        if self._skips_certain and reason is None and _is_certainly_covered(findings):
            return self._apply_verdict(_judge_covered(findings))
        named = await self._describe_named(reads)
        if self._skips_certain and named:
            return self._apply_verdict(Output(verdict="within", confidence=0.9, analysis=named))
        part = reads.understanding
        why = "" if part is None else _find_doubt(part, findings, self._strictness)
        if part is not None and part.verdict is not None and not why:
            found = Output(
                verdict=part.verdict, confidence=part.verdict_confidence, analysis=part.analysis
            )
            return _note_decision(self._apply_verdict(found), "combined_call")
        return _note_decision(await self._ask_model(reads, findings, reason), "own_call", why)

    async def _describe_named(self, reads: Reads) -> str:
        """Return what the question names of the documents, where tools read it; empty: nothing.

        One version alone may be a year: it is a name after a word such as "version".
        """
        if self._find_named is None:
            return ""
        named = await self._find_named(reads.canonical_question, reads.groups)
        if named.document_ids:
            count = len(named.document_ids)
            return f"it names {count} document{'s' if count > 1 else ''}"
        if named.versions[1:] or _names_version(reads.canonical_question, named.versions):
            return f"it names of the versions: {', '.join(named.versions)}"
        return ""

    async def _weigh_signs(
        self, reads: Reads, findings: Findings, signs: tuple[str, ...]
    ) -> Writes:
        """Return the verdict of the scope model, whose inputs name the signs of an attack.

        Neither the coverage nor a combined call, which saw no signs, decides about them.
        """
        why = f"signs of an attempt to change how the desk works ({', '.join(signs)})"
        writes = await self._ask_model(reads, findings, None, signs)
        analysis = f"{writes.guardrails_analysis}; {why}"
        writes = writes.model_copy(update={"guardrails_analysis": analysis})
        return _note_decision(writes, "own_call", why if reads.understanding is not None else "")

    async def _ask_model(
        self,
        reads: Reads,
        findings: Findings,
        reason: ClarificationReason | None,
        signs: tuple[str, ...] = (),
    ) -> Writes:
        try:
            given = await self._model.ask(TASK, self._inputs(reads, findings, signs))
        except ModelError as error:
            return self._ask_back(f"no verdict could be had: {error}")
        if reason is not None and given.model == OFFLINE and given.output.verdict != "within":
            return _refuse(reason, findings, "rules cannot compare texts in different languages")
        return self._apply_verdict(given.output)

    def _inputs(self, reads: Reads, findings: Findings, signs: tuple[str, ...]) -> Inputs:
        return Inputs(
            question=reads.canonical_question,
            text=reads.text,
            related=reads.related_history,
            domain_name=self._domain_name,
            domain_scope=self._domain_scope,
            strictness=self._strictness,
            coverage=findings.coverage,
            ambiguity=findings.ambiguity,
            nearest=tuple(dict.fromkeys(_place(hit) for hit in findings.hits[:_NEAREST])),
            signs=signs,
            reviews_documents=self._reviews_documents,
        )

    def _request(self, reads: Reads) -> SearchRequest:
        return SearchRequest(
            question=reads.canonical_question,
            text=reads.text,
            text_eng=reads.text_eng,
            language=reads.language or None,
            related=reads.related_history,
            limit=_NEAREST,
            groups=reads.groups,
            by_words=self._is_still_to_embed(reads),
        )

    def _apply_verdict(self, found: Output) -> Writes:
        if found.verdict == "unclear":
            return self._ask_back(found.analysis, found.confidence)
        if found.verdict == "outside":
            return self._decline(found.analysis, found.confidence)
        return Writes(
            within_scope=True,
            guardrails_confidence=found.confidence,
            guardrails_analysis=found.analysis,
            decided_by="rules",
        )

    def _decline(self, analysis: str, confidence: float = _CERTAIN) -> Writes:
        return Writes(
            within_scope=False,
            guardrails_confidence=confidence,
            guardrails_analysis=analysis,
            needs_clarification=True,
            clarification_reason=ClarificationReason.OUT_OF_SCOPE,
            clarification_message=f"This desk answers questions about {self._about()}.",
        )

    def _ask_back(self, analysis: str, confidence: float = 0.0) -> Writes:
        return Writes(
            within_scope=False,
            guardrails_confidence=confidence,
            guardrails_analysis=analysis,
            needs_clarification=True,
            clarification_reason=ClarificationReason.SCOPE_UNCLEAR,
            clarification_message=f"It is not clear whether the question is about {self._about()}.",
        )

    def _about(self) -> str:
        scope = self._domain_scope.strip().rstrip(".")
        return f"{self._domain_name} ({scope})" if scope else self._domain_name


def _names_version(question: str, versions: Sequence[str]) -> bool:
    """Return whether a word for versions is before one of these."""
    words = [word.strip(".,;:!?()\"'") for word in question.split()]
    return any(
        before.casefold() in _VERSION_WORDS and word in versions for before, word in pairwise(words)
    )


def _is_certainly_covered(findings: Findings) -> bool:
    return findings.are_calibrated and findings.coverage >= CERTAIN_COVERAGE


def _judge_covered(findings: Findings) -> Output:
    covered = f"the documents cover it with {findings.coverage:.2f}"
    return Output(verdict="within", confidence=findings.coverage, analysis=covered)


def _find_doubt(part: Understanding, findings: Findings, strictness: Strictness) -> str:
    """Return how the documents contradict a verdict given without them, or an empty text."""
    covered = findings.coverage
    if part.verdict is None or part.verdict == "unclear" or part.verdict_confidence < _SURE:
        return "the combined call gave no sure verdict on the scope"
    if part.verdict == "within" and covered < LEAST_COVERAGE:
        return f"within scope, but the documents cover it with {covered:.2f} only"
    if part.verdict == "outside" and covered >= ACCEPTED_COVERAGE[strictness]:
        return f"not within scope, but the documents cover it with {covered:.2f}"
    return ""


def _note_decision(
    writes: Writes, decided_by: Literal["rules", "combined_call", "own_call"], why: str = ""
) -> Writes:
    noted = {"decided_by": decided_by} | ({"asked_again": why} if why else {})
    return writes.model_copy(update=noted)


def _unsearchable(error: KnowledgeError) -> Writes:
    return Writes(
        within_scope=False,
        guardrails_confidence=0.0,
        guardrails_analysis=f"the documents could not be searched: {error}",
        needs_clarification=True,
        clarification_reason=ClarificationReason.INTERNAL_FAULT,
        clarification_message="The documents cannot be searched at the moment.",
    )


def _refuse(reason: ClarificationReason, findings: Findings, analysis: str) -> Writes:
    """Return a refusal that makes no statement about the subject of the question."""
    return Writes(
        within_scope=False,
        guardrails_confidence=_CERTAIN,
        guardrails_analysis=analysis,
        needs_clarification=True,
        clarification_reason=reason,
        document_languages=findings.languages,
    )


def _note_unread_rest(writes: Writes, seconds: float) -> dict[str, str]:
    note = f"not all of it could be looked through for attacks within {seconds:g} s"
    return {"guardrails_analysis": f"{writes.guardrails_analysis}; {note}"}


def _place(hit: Hit) -> str:
    return " > ".join(dict.fromkeys((*hit.crumbs, *hit.heading_path))) or hit.title


def _accept_review(review: ReviewScope) -> Writes:
    named = len(review.documents), len(review.against)
    analysis = "the request names {} documents to review against {} documents".format(*named)
    return Writes(within_scope=True, guardrails_confidence=1.0, guardrails_analysis=analysis)
