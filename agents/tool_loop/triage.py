"""Chooses the way of answering a question for `WAY=auto`, and plans the specialists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts, AgentRole, AgentTier, DeskDomain, MayAsk, ProgressStep
from agents.named_documents import TitledDocument, list_named, offer_documents
from envelope.conversation import ClarificationOption, ClarificationReason
from envelope.outcome import GaveUp, HopOutcome, Wrote
from envelope.role import Role
from envelope.specialists import (
    FULL_REVIEW,
    CompletedSequence,
    ReviewScope,
    SpecialistName,
    complete_sequence,
)
from envelope.tool_loop import QueryType, Triage, WayName
from llm.errors import ModelError
from llm.port import Model
from llm.tasks.tool_loop import TRIAGE, TriageInputs, TriageOutput
from tools.listed_parts import find_items, split_questions
from tools.passages import describe_documents

if TYPE_CHECKING:
    from knowledge.library.library import Library

_S = SpecialistName
USUAL_SEQUENCES: dict[QueryType, tuple[SpecialistName, ...]] = {
    QueryType.COMPLIANCE: (_S.EXTRACTOR, _S.REQUIREMENT_EXTRACTOR, _S.COMPLIANCE),
    QueryType.RISK: (_S.EXTRACTOR, _S.REQUIREMENT_EXTRACTOR, _S.COMPLIANCE, _S.RISK_VERIFIER),
    QueryType.REPORTING: FULL_REVIEW,
}
"""The default sequence of specialists for each type of question."""
_REPORTED_KINDS = frozenset({QueryType.RISK, QueryType.REPORTING})
_REPORTED = frozenset({_S.RISK_VERIFIER, _S.GAP_SYNTHESIZER})
"""The types of questions, and the specialists, that have too many findings for an answer, so that
the sequence ends with the report.
"""
REVIEW_BY_REQUEST = (
    "no model is in use; to compare a document with rules, use the way "
    "`specialists`, `refdesk review` or `POST /v1/reviews`"
)
"""The reasoning for a question that may be meant as a review, which only a model can determine."""
_VAGUE = 0.6
"""Above this vagueness, the user is asked if the judgement states that work cannot begin."""
SPECIALISTS_KINDS = frozenset({QueryType.COMPLIANCE, QueryType.RISK, QueryType.REPORTING})
"""The types of questions that concern whole documents, which are never divided among workers."""


class Reads(BaseModel, frozen=True):
    """The question, the turns that it refers to, and the review named in the request."""

    canonical_question: str
    language: str = "en"
    related_history: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    review: ReviewScope | None = None


@dataclass(frozen=True, slots=True)
class WayTable:
    """The way of answering for each complexity and type of question."""

    search_below: int = 30
    specialists_above: int = 70
    swarm_above: int = 70

    def choose(
        self, complexity: int, kind: QueryType
    ) -> Literal[WayName.SEARCH, WayName.TOOLS, WayName.SPECIALISTS, WayName.SWARM]:
        """Return the way of answering for a question."""
        if complexity < self.search_below:
            return WayName.SEARCH
        if kind in SPECIALISTS_KINDS:
            return WayName.SPECIALISTS if complexity > self.specialists_above else WayName.TOOLS
        return WayName.SWARM if complexity > self.swarm_above else WayName.TOOLS


class Writes(MayAsk, frozen=True):
    """The decision with the sequence of specialists, or a clarification if work cannot begin."""

    triage: Triage
    agent_sequence: tuple[str, ...] = ()
    sequence_notes: tuple[str, ...] = ()
    clarification_options: tuple[ClarificationOption, ...] = ()
    unknown_documents: tuple[str, ...] | None = None


class TriageAgent(Agent[Reads, Writes]):
    """Asks a model which specialists a question needs; an explicitly requested review needs all of
    them.

    Unknown names are removed from a planned sequence, and specialists that the others depend on are
    added. If documents for a review are missing, the documents that the person may read are
    offered.
    """

    role = Role.TRIAGE
    step = ProgressStep.UNDERSTAND
    model_task = TRIAGE
    needs_index = True
    tier = AgentTier.ORCHESTRATOR
    agent_role = AgentRole.ORCHESTRATE
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        domain: DeskDomain | None = None,
        table: WayTable = WayTable(),
        library: "Library | None" = None,
        uses_model: bool = True,
    ) -> None:
        self._model = model
        self._uses_model = uses_model
        self._library = library
        self._domain = DeskDomain() if domain is None else domain
        self._table = table

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            model=parts.model(TRIAGE.name),
            domain=DeskDomain.of(parts.settings),
            table=WayTable(
                parts.settings.search_below_complexity,
                parts.settings.specialists_above_complexity,
                parts.settings.swarm_above_complexity,
            ),
            library=parts.library,
            uses_model=parts.uses_model,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.review is not None:
            return Wrote(_plan_review(reads.review))
        if not self._uses_model:
            return Wrote(await self._choose_without_model(reads))
        inputs = TriageInputs(
            question=reads.canonical_question,
            related=reads.related_history,
            domain_name=self._domain.name,
            domain_scope=self._domain.scope,
            documents=await self._describe_documents(reads),
        )
        try:
            given = await self._model.ask(TRIAGE, inputs, self.run)
        except ModelError as error:
            return GaveUp(f"{type(error).__name__}: {error}")
        sequence = complete_sequence(_plan(given.output))
        triage = self._decide(given.output, given.model, sequence)
        if not (given.output.needs_clarification and triage.vagueness > _VAGUE):
            return Wrote(
                Writes(triage=triage, agent_sequence=sequence.names, sequence_notes=sequence.notes)
            )
        return Wrote(await self._ask(triage, reads, given.output.offers))

    async def _choose_without_model(self, reads: Reads) -> Writes:
        """Choose the way of answering based on the form of the question.

        If it names a document and a rule, a review of them is planned as well: the flow of reviews
        starts it, and the other flows explain how to request it.
        """
        triage = _choose_by_form(reads.canonical_question)
        if self._library is None:
            return Writes(triage=triage)
        listed = [
            *await self._library.list_attached(reads.groups, self.run),
            *await self._library.list_documents(reads.groups),
        ]
        known = [
            TitledDocument(document.id, document.title, document.source, document.language)
            for document in listed
        ]
        named = list_named(reads.canonical_question, known)
        if (
            len({document.is_rule for document in named}) < 2
        ):  # the question does not name both a document and a rule
            return Writes(triage=triage)
        planned = {"agent_sequence": FULL_REVIEW, "reasoning": REVIEW_BY_REQUEST}
        return Writes(triage=triage.model_copy(update=planned), agent_sequence=FULL_REVIEW)

    async def _describe_documents(self, reads: Reads) -> tuple[str, ...]:
        if self._library is None:
            return ()
        listed = await self._library.list_documents(reads.groups)
        return describe_documents(listed, reads.canonical_question)

    async def _ask(self, triage: Triage, reads: Reads, offers: Sequence[str]) -> Writes:
        asked = Writes(
            triage=triage,
            needs_clarification=True,
            clarification_reason=ClarificationReason.MISSING_DETAILS,
            clarification_message=triage.reasoning or "It is unclear what is meant.",
        )
        if self._library is None or triage.query_type not in USUAL_SEQUENCES:
            return asked
        offered = await offer_documents(
            self._library,
            reads.canonical_question,
            reads.groups,
            reads.language,
            self.run,
            offers=offers,
        )
        return asked.model_copy(update=offered)

    def _decide(self, output: TriageOutput, model: str, sequence: CompletedSequence) -> Triage:
        return Triage(
            way=self._table.choose(output.complexity, output.query_type),
            complexity=output.complexity,
            query_type=output.query_type,
            semantic_type=output.semantic_type[:100],
            vagueness=output.vagueness,
            needs_clarification=output.needs_clarification,
            agent_sequence=sequence.names,
            reasoning=output.reasoning[:500],
            decided_by=model,
        )


def _choose_by_form(question: str) -> Triage:
    """Return the way of answering without a model; only a question that lists its parts is
    divided.
    """
    several = len(split_questions(question)) > 1
    is_listed = find_items(question) is not None
    way = WayName.SWARM if is_listed else WayName.TOOLS if several else WayName.SEARCH
    return Triage(
        way=way,
        complexity=0,
        query_type=QueryType.UNKNOWN,
        vagueness=0.0,
        reasoning="no model is in use: a question is divided only where it lists its parts",
        decided_by="rules",
    )


def _plan(output: TriageOutput) -> tuple[str, ...]:
    """Return the planned sequence or, if there is none, the usual one for the type of question. A
    sequence that finds risks or gaps ends with the report.
    """
    names = output.agent_sequence or USUAL_SEQUENCES.get(output.query_type, ())
    is_reported = output.query_type in _REPORTED_KINDS or not _REPORTED.isdisjoint(names)
    return (*names, _S.REPORT_GENERATOR) if is_reported else names


def _plan_review(review: ReviewScope) -> Writes:
    """Return the plan for a review whose documents the request names. It contains all specialists,
    or the requested ones with their dependencies.
    """
    asked = complete_sequence(review.specialists) if review.specialists else None
    names = FULL_REVIEW if asked is None else asked.names
    triage = Triage(
        way=WayName.SPECIALISTS,
        complexity=100,
        query_type=QueryType.REPORTING,
        semantic_type="compliance_check",
        vagueness=0.0,
        agent_sequence=names,
        reasoning="the request names the documents of a review",
        decided_by="request",
    )
    notes = () if asked is None else asked.notes
    return Writes(triage=triage, agent_sequence=names, sequence_notes=notes)
