"""Checks the citations in the reviewed documents, and the locations that verdicts refer to."""

from collections.abc import Sequence
from dataclasses import replace

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
    ReadsScope,
    SpecialistAgent,
)
from agents.review.verdicts import ReviewResult
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import FindingList, SpecialistError, StoredVerdicts
from llm.tasks.review import (
    CITATION_AUDITOR,
    CheckedStatement,
    CitationAuditorInputs,
    CitedStatement,
)

_MOST_STATEMENTS = 60
"""Maximum number of citations that a model compares with their sources; the rules check all
citations.
"""
_MOST_SUMMARY = 5
_LONGEST = 4_000


class Reads(LoopReads, ReadsScope, frozen=True):
    """The documents, the verdicts, and the tool calls made so far."""

    verdicts: StoredVerdicts | None = None


class Writes(LoopWrites, frozen=True):
    """The audit, or tool calls to make first."""

    citation_audit: FindingList | None = None


class CitationAuditorAgent(SpecialistAgent[Reads, Writes]):
    """Looks up each cited source in the documents that the person may read.

    Rules prove that a source exists and contains the numbers in the claim; a model judges whether
    it supports the claim. The text at the locations in verdicts is compared word for word with the
    current documents.
    """

    role = Role.CITATION_AUDITOR
    step = ProgressStep.CHECK
    model_task = CITATION_AUDITOR
    agent_role = AgentRole.AUDIT
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        names = [document.document_id for document in reads.scope.documents]
        documents = await self.toolbox.read_documents(names, reads.groups)
        if not documents:
            text = "there is no document whose citations can be checked"
            return Wrote(Writes(errors=(self.toolbox.make_error(text),)))
        claims = [claim for document in documents for claim in read_citations(document.text).claims]
        proved = await self._prove(claims, reads.groups)
        decided_by, errors = "", tuple[SpecialistError, ...]()
        if proved and not self.toolbox.is_offline:
            turns = reads.turns
            inputs = CitationAuditorInputs(
                question=reads.question,
                language=reads.language,
                statements=tuple(
                    _make_statement(at, *audited)
                    for at, audited in enumerate(proved[:_MOST_STATEMENTS])
                ),
            )
            given = await self.toolbox.consult(CITATION_AUDITOR, inputs, turns, reads)
            if isinstance(given, NoOutput) and given.calls:
                return Wrote(Writes(**given.as_writes()))
            errors = given.errors
            if not isinstance(given, NoOutput):
                checked = {statement.id: statement for statement in given.output.statements}
                proved = [
                    (_add_judgement(citation, checked.get(_name(at))), passage)
                    for at, (citation, passage) in enumerate(proved)
                ]
                decided_by = given.decided_by
        audited = [*(citation for citation, _ in proved), *await self._compare_places(reads)]
        wrong = [citation for citation in audited if not citation.is_good]
        return Wrote(
            Writes(
                citation_audit=FindingList(
                    reference=await self.toolbox.store(CitationAudit(citations=tuple(audited))),
                    items=len(audited),
                    summary=tuple(
                        f"{citation.label}: {'; '.join(citation.problems)}"
                        for citation in wrong[:_MOST_SUMMARY]
                    ),
                    decided_by=decided_by,
                ),
                errors=errors,
            )
        )

    async def _prove(
        self, claims: Sequence[CitedClaim], groups: Sequence[str]
    ) -> list[tuple[AuditedCitation, CitablePassage | None]]:
        """Return the results of the rules for each claim, and the passage that is closest to it."""
        wanted = {normalise_name(name) for claim in claims for name in claim.names}
        listed = await self.toolbox.library.list_documents(groups) if wanted else []
        read = await self.toolbox.read_documents(find_cited_documents(listed, wanted), groups)
        by_name: dict[str, list[CitablePassage]] = {}
        for passage in (
            citable_passage
            for document in read
            for citable_passage in list_citable_passages(document)
        ):
            for name in passage.names:
                by_name.setdefault(normalise_name(name), []).append(passage)
        audited = []
        for claim in claims:
            named = find_named(claim, by_name)
            audited.append((audit_citation(claim, named), _choose_shown(claim.claim, named)))
        return audited

    async def _compare_places(self, reads: Reads) -> list[AuditedCitation]:
        """Return, for each piece of evidence, whether it occurs verbatim at its location."""
        if reads.verdicts is None:
            return []
        review = await self.toolbox.load(reads.verdicts.reference, ReviewResult)
        evidence = [read for verdict in review.verdicts for read in verdict.evidence]
        names = {read.place.document_id for read in evidence}
        read = await self.toolbox.read_documents(sorted(names), reads.groups)
        texts = {
            unit.unit_id: unit.text for document in read for unit in cut_document(document).units
        }
        titles = {document.listed.id: document.listed.title for document in read}
        citations = []
        for verdict_evidence in evidence:
            stands = verdict_evidence.text in texts.get(verdict_evidence.place.unit_id, "")
            place = " > ".join(verdict_evidence.place.heading_path)
            title = titles.get(verdict_evidence.place.document_id, "the document")
            problem = f"the quotation is no longer in {title}, {place}"
            citations.append(
                AuditedCitation(
                    label=verdict_evidence.place.name(title),
                    claim=verdict_evidence.text,
                    exists=verdict_evidence.place.unit_id in texts,
                    says="yes" if stands else "no",
                    passage_id=verdict_evidence.place.unit_id,
                    place=place,
                    problems=() if stands else (problem,),
                )
            )
        return citations


def _name(at: int) -> str:
    return f"c{at + 1}"


def _choose_shown(claim: str, named: Sequence[CitablePassage]) -> CitablePassage | None:
    """Return the cited text that a model compares with a claim: all of it if it is short, because
    the closest words of another language may be in another passage, or the closest passage.
    """
    closest = choose_closest(claim, named)
    texts = [f"{passage.place}\n{passage.text}".strip() for passage in named]
    if closest is None or len(named) < 2 or sum(map(len, texts)) > _LONGEST:
        return closest
    return replace(closest, text="\n\n".join(texts), place="")


def _make_statement(
    at: int, proved: AuditedCitation, passage: CitablePassage | None
) -> CitedStatement:
    return CitedStatement(
        id=_name(at),
        statement=proved.claim[:_LONGEST],
        citation=proved.label,
        passage="" if passage is None else passage.text,
        place="" if passage is None else passage.place,
        language="en" if passage is None else passage.language,
        known=proved.problems,
    )


def _add_judgement(proved: AuditedCitation, checked: CheckedStatement | None) -> AuditedCitation:
    """Return a citation with a model's judgement; the results of the rules are kept."""
    if checked is None or not proved.exists:
        return proved
    problems = checked.problems
    if not problems and checked.says != "yes":
        problems = (f"the source does not support the statement ({checked.says})",)
    return proved.model_copy(
        update={
            "says": checked.says,
            "omitted": checked.omitted,
            "is_well_formatted": proved.is_well_formatted and checked.is_well_formatted,
            "problems": tuple(dict.fromkeys((*proved.problems, *problems))),
        }
    )
