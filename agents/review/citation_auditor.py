"""Checks citations: those of the reviewed documents, and the places that verdicts name."""

from collections.abc import Sequence

from agents.agent import AgentRole, ProgressStep
from agents.review.audit import (
    AuditedCitation,
    CitablePassage,
    CitationAudit,
    CitedClaim,
    audit_citation,
    choose_closest,
    find_cited_documents,
    find_named,
    list_citable_passages,
    normalise_name,
    read_citations,
)
from agents.review.passages import cut_document
from agents.review.specialist import (
    LoopReads,
    LoopWrites,
    NoOutput,
    SpecialistAgent,
)
from agents.review.verdicts import ReviewResult
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import Extracted, FindingList, SpecialistError, StoredVerdicts
from llm.tasks.review import (
    CITATION_AUDITOR,
    CheckedStatement,
    CitationAuditorInputs,
    CitedStatement,
)

_MOST_STATEMENTS = 60
"""A model compares this many citations with their sources; code checks all of them."""
_MOST_SUMMARY = 5
_LONGEST = 4_000


class Reads(LoopReads, frozen=True):
    """The documents and the verdicts, and the loop of tools so far."""

    extracted: Extracted | None = None
    verdicts: StoredVerdicts | None = None


class Writes(LoopWrites, frozen=True):
    """The audit; or the calls of tools before."""

    citation_audit: FindingList | None = None


class CitationAuditorAgent(SpecialistAgent[Reads, Writes]):
    """Looks up each cited source in the documents that the person may read.

    Code proves that a source exists and has the numbers of the claim; a model judges whether it
    supports the claim. The places of verdicts are compared word for word with the documents as they
    are now.
    """

    role = Role.CITATION_AUDITOR
    step = ProgressStep.CHECK
    model_task = CITATION_AUDITOR
    agent_role = AgentRole.AUDIT
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        found = reads.extracted if reads.extracted is not None else Extracted()
        names = [one.document_id for one in found.documents]
        documents = await self.toolbox.read_documents(names, reads.groups)
        if not documents:
            text = "expected a document whose citations are checked, found none"
            return Wrote(Writes(errors=(self.toolbox.make_error(text),)))
        claims = [claim for one in documents for claim in read_citations(one.text).claims]
        proved = await self._prove(claims, reads.groups)
        decided_by, errors = "", tuple[SpecialistError, ...]()
        if proved and not self.toolbox.is_offline:
            turns = reads.turns
            inputs = CitationAuditorInputs(
                question=reads.question,
                language=reads.language,
                statements=tuple(
                    _make_statement(at, *one) for at, one in enumerate(proved[:_MOST_STATEMENTS])
                ),
            )
            given = await self.toolbox.consult(CITATION_AUDITOR, inputs, turns, reads)
            if isinstance(given, NoOutput) and given.calls:
                return Wrote(Writes(**given.as_writes()))
            errors = given.errors
            if not isinstance(given, NoOutput):
                checked = {one.id: one for one in given.output.statements}
                proved = [
                    (_add_judgement(one, checked.get(_name(at))), passage)
                    for at, (one, passage) in enumerate(proved)
                ]
                decided_by = given.decided_by
        audited = [*(one for one, _ in proved), *await self._compare_places(reads)]
        wrong = [one for one in audited if not one.is_good]
        return Wrote(
            Writes(
                citation_audit=FindingList(
                    reference=await self.toolbox.store(CitationAudit(citations=tuple(audited))),
                    items=len(audited),
                    summary=tuple(
                        f"{one.label}: {'; '.join(one.problems)}" for one in wrong[:_MOST_SUMMARY]
                    ),
                    decided_by=decided_by,
                ),
                errors=errors,
            )
        )

    async def _prove(
        self, claims: Sequence[CitedClaim], groups: Sequence[str]
    ) -> list[tuple[AuditedCitation, CitablePassage | None]]:
        """Return what code proves about each claim, and the passage closest to it."""
        wanted = {normalise_name(name) for one in claims for name in one.names}
        listed = await self.toolbox.library.list_documents(groups) if wanted else []
        read = await self.toolbox.read_documents(find_cited_documents(listed, wanted), groups)
        by_name: dict[str, list[CitablePassage]] = {}
        for passage in (one for document in read for one in list_citable_passages(document)):
            for name in passage.names:
                by_name.setdefault(normalise_name(name), []).append(passage)
        found = []
        for claim in claims:
            named = find_named(claim, by_name)
            found.append((audit_citation(claim, named), choose_closest(claim.claim, named)))
        return found

    async def _compare_places(self, reads: Reads) -> list[AuditedCitation]:
        """Return whether each piece of evidence is at its place word for word."""
        if reads.verdicts is None:
            return []
        review = await self.toolbox.load(reads.verdicts.reference, ReviewResult)
        evidence = [(one.requirement_id, read) for one in review.verdicts for read in one.evidence]
        names = {read.place.document_id for _, read in evidence}
        read = await self.toolbox.read_documents(sorted(names), reads.groups)
        texts = {unit.unit_id: unit.text for one in read for unit in cut_document(one).units}
        titles = {one.listed.id: one.listed.title for one in read}
        found = []
        for name, one in evidence:
            stands = one.text in texts.get(one.place.unit_id, "")
            place = " > ".join(one.place.heading_path)
            title = titles.get(one.place.document_id, "the document")
            problem = f"the quotation is no longer in {title}, {place}"
            found.append(
                AuditedCitation(
                    label=name,
                    claim=one.text,
                    exists=one.place.unit_id in texts,
                    says="yes" if stands else "no",
                    passage_id=one.place.unit_id,
                    place=place,
                    problems=() if stands else (problem,),
                )
            )
        return found


def _name(at: int) -> str:
    return f"c{at + 1}"


def _make_statement(
    at: int, proved: AuditedCitation, passage: CitablePassage | None
) -> CitedStatement:
    return CitedStatement(
        id=_name(at),
        statement=proved.claim[:_LONGEST],
        citation=proved.label,
        passage="" if passage is None else passage.text,
        place=proved.place,
        language="en" if passage is None else passage.language,
        known=proved.problems,
    )


def _add_judgement(proved: AuditedCitation, checked: CheckedStatement | None) -> AuditedCitation:
    """Return a citation with a model's judgement; what code has proved stays."""
    if checked is None or not proved.exists:
        return proved
    problems = checked.problems
    if not problems and checked.says != "yes":
        problems = (f"the source does not support it ({checked.says})",)
    return proved.model_copy(
        update={
            "says": checked.says,
            "omitted": checked.omitted,
            "is_well_formatted": proved.is_well_formatted and checked.is_well_formatted,
            "problems": tuple(dict.fromkeys((*proved.problems, *problems))),
        }
    )
