"""Checks citations: those of the reviewed documents, and the places that verdicts name."""

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts
from agents.specialists.specialist import CallsTools, LoopTurns, TeamSettings, Toolbox, add_focus
from compliance.auditing.citable_passages import find_cited_documents, list_citable_passages
from compliance.auditing.citation_audit import (
    AuditedCitation,
    CitablePassage,
    CitationAudit,
    normalise_name,
)
from compliance.auditing.citation_reading import CitedClaim, read_citations
from compliance.team.units import cut_document
from compliance.verdicts.review import ReviewResult
from envelope.conversation import Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.ways.specialists import Extracted, FindingList, SpecialistError, StoredVerdicts
from llm.offline.support import support
from llm.tasks.specialists.citation_auditor import TASK, CheckedStatement, CitedStatement, Inputs

_MOST_STATEMENTS = 60
_MOST_SUMMARY = 5
_LONGEST = 4_000


class Reads(BaseModel, frozen=True):
    """The documents and the verdicts, and the loop of tools so far."""

    canonical_question: str
    text: str = ""
    history: tuple[Turn, ...] = ()
    round_focus: str = ""
    language: str = "en"
    groups: tuple[str, ...] = ()
    extracted: Extracted | None = None
    verdicts: StoredVerdicts | None = None
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}


class Writes(BaseModel, frozen=True):
    """The audit; or the calls of tools before."""

    citation_audit: FindingList | None = None
    errors: tuple[SpecialistError, ...] = ()
    tool_calls: tuple[dict[str, JsonValue], ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()


class CitationAuditorAgent(Agent[Reads, Writes]):
    """Looks up each cited source in the documents that the person may read.

    The places of verdicts are compared word for word with the documents as they are now.
    """

    role = Role.CITATION_AUDITOR
    reads = Reads
    writes = Writes

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    @classmethod
    def make(cls, parts: AgentParts[TeamSettings]) -> Self:
        return cls(Toolbox.make(parts, TASK.name))

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        found = reads.extracted if reads.extracted is not None else Extracted()
        names = [one.document_id for one in found.documents]
        documents = await self._toolbox.library.read(names, reads.groups)
        if not documents:
            text = "expected a document whose citations are checked, found none"
            return Wrote(Writes(errors=(self._toolbox.make_error(text),)))
        answers = [read_citations(one.text) for one in documents]
        claims = [claim for one in answers for claim in one.claims][:_MOST_STATEMENTS]
        inputs = Inputs(
            question=add_focus(reads.canonical_question, reads.round_focus),
            language=reads.language,
            statements=await self._find_statements(claims, reads.groups),
        )
        audited: list[AuditedCitation] = []
        errors: tuple[SpecialistError, ...] = ()
        if claims:
            turns = LoopTurns.parse(reads.plan_messages, reads.multi_tool_results)
            given = await self._toolbox.consult(TASK, inputs, turns, reads)
            if isinstance(given, CallsTools):
                return Wrote(
                    Writes(
                        tool_calls=given.calls, plan_messages=(given.message,), errors=given.errors
                    )
                )
            checked = {one.id: one for one in given.output.statements}
            audited = [
                _convert(claim, statement, checked[statement.id])
                for claim, statement in zip(claims, inputs.statements, strict=True)
                if statement.id in checked
            ]
            errors = given.errors
        audited += await self._compare_places(reads)
        audit = CitationAudit(citations=tuple(audited))
        wrong = [one for one in audited if not one.is_good]
        return Wrote(
            Writes(
                citation_audit=FindingList(
                    reference=await self._toolbox.store(audit),
                    items=len(audited),
                    summary=tuple(
                        f"{one.label}: {'; '.join(one.problems)}" for one in wrong[:_MOST_SUMMARY]
                    ),
                    decided_by=self._toolbox.model.name,
                ),
                errors=errors,
            )
        )

    async def _find_statements(
        self, claims: Sequence[CitedClaim], groups: Sequence[str]
    ) -> tuple[CitedStatement, ...]:
        """Return each claim with the passage of its source that is most about it."""
        wanted = {normalise_name(name) for one in claims for name in one.names}
        listed = await self._toolbox.library.list_documents(groups) if wanted else []
        ids = find_cited_documents(listed, wanted)
        read = await self._toolbox.library.read(ids, groups)
        passages = [passage for one in read for passage in list_citable_passages(one)]
        return tuple(
            _make_statement(number, claim, passages) for number, claim in enumerate(claims, start=1)
        )

    async def _compare_places(self, reads: Reads) -> list[AuditedCitation]:
        """Return whether the text of each piece of evidence stands at its place."""
        if reads.verdicts is None:
            return []
        review = await self._toolbox.load(reads.verdicts.reference, ReviewResult)
        evidence = [(one.requirement_id, read) for one in review.verdicts for read in one.evidence]
        names = {read.place.document_id for _, read in evidence}
        read = await self._toolbox.library.read(sorted(names), reads.groups)
        texts = {unit.unit_id: unit.text for one in read for unit in cut_document(one).units}
        found = []
        for name, one in evidence:
            stands = one.text in texts.get(one.place.unit_id, "")
            problem = f"{one.place.unit_id} does not have the text that {name} cites"
            found.append(
                AuditedCitation(
                    label=name,
                    claim=one.text,
                    exists=one.place.unit_id in texts,
                    says="yes" if stands else "no",
                    support=1.0 if stands else 0.0,
                    passage_id=one.place.unit_id,
                    place=" > ".join(one.place.heading_path),
                    problems=() if stands else (problem,),
                )
            )
        return found


def _make_statement(
    number: int, claim: CitedClaim, passages: Sequence[CitablePassage]
) -> CitedStatement:
    names = {normalise_name(name) for name in claim.names}
    own = [one for one in passages if names & {normalise_name(name) for name in one.names}]
    best = max(own, key=lambda one: support(claim.claim, one.text), default=None)
    return CitedStatement(
        id=f"c{number}",
        statement=claim.claim[:_LONGEST],
        citation=claim.names[0] if claim.names else claim.label,
        passage=best.text if best is not None else "",
        place=best.place if best is not None else "",
        language=best.language if best is not None else "en",
    )


def _convert(
    claim: CitedClaim, statement: CitedStatement, checked: CheckedStatement
) -> AuditedCitation:
    problems = checked.problems
    if not problems and not (checked.exists and checked.says == "yes"):
        problems = (f"the source does not say it ({checked.says})",)
    return AuditedCitation(
        label=claim.label,
        claim=claim.claim,
        exists=checked.exists,
        says=checked.says,
        omitted=checked.omitted,
        is_well_formatted=checked.is_well_formatted,
        place=statement.place,
        problems=problems,
    )
