"""Collects the gaps in a review, which are of five kinds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agents.agent import AgentRole, ProgressStep
from agents.review.audit import CitationAudit
from agents.review.passages import RulePassage, cut_document, cut_passages, divide_sizes, list_units
from agents.review.requirements import Extraction, TextPlace
from agents.review.specialist import (
    LoopReads,
    LoopWrites,
    ReadsScope,
    SpecialistAgent,
)
from agents.review.verdicts import (
    CollectedGaps,
    ReviewResult,
    Status,
    SynthesizedGap,
    compress_requirements,
    compress_verdicts,
)
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import (
    FindingList,
    StoredChecklist,
    StoredVerdicts,
)
from llm.tasks.review import GAP_SYNTHESIZER, FoundGap, GapSynthesizerInputs

_LONGEST = 2_000
_MOST_MET = 40
"""The number of fulfilled requirements that a model reads in addition to the violations and
gaps.
"""
_BATCH_CHARACTERS, _BATCH_ITEMS = 24_000, 60


class Reads(LoopReads, ReadsScope, frozen=True):
    """The checklist, its verdicts, the documents, the audit, and the tool calls made so far."""

    checklist: StoredChecklist | None = None
    verdicts: StoredVerdicts | None = None
    citation_audit: FindingList | None = None


class Writes(LoopWrites, frozen=True):
    """The gaps, or tool calls to make first."""

    gaps: FindingList | None = None


class GapSynthesizerAgent(SpecialistAgent[Reads, Writes]):
    """Treats each gap verdict as a gap; to find the other kinds, a model reads all passages in
    batches.

    Without a model, the list is empty and the report states that gaps were not searched for. If the
    model fails for all batches, there is no list, because an empty list would claim that there are
    no gaps.
    """

    role = Role.GAP_SYNTHESIZER
    step = ProgressStep.CHECK
    model_task = GAP_SYNTHESIZER
    agent_role = AgentRole.SYNTHESIZE
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        if reads.checklist is None or reads.verdicts is None:
            text = "no gaps were collected, because the output of compliance is missing"
            return Wrote(Writes(errors=(self.toolbox.make_error(text),)))
        if self.toolbox.is_offline:
            # The report states that they were not searched for.
            return Wrote(Writes(gaps=FindingList(items=0)))
        extraction = await self.toolbox.load(reads.checklist.reference, Extraction)
        review = await self.toolbox.load(reads.verdicts.reference, ReviewResult)
        passages = await self._cut(reads)
        inputs = await self._make_inputs(reads, extraction, review)
        batches = [
            inputs.model_copy(update={"passages": tuple(passage.unit for passage in own)})
            for own in _divide(passages)
        ]
        toolbox = replace(self.toolbox, known=compress_requirements(extraction.requirements))
        given = await toolbox.consult_each(
            GAP_SYNTHESIZER, batches, reads.turns, reads, by="passages"
        )
        if (asked := given.calls) is not None:
            return Wrote(Writes(**asked.as_writes()))
        if not given.outputs:
            return Wrote(Writes(errors=given.errors))
        found_gaps = [gap for output in given.outputs for gap in output.gaps]
        gaps = [*_list_regulatory(review, extraction), *_convert(found_gaps, extraction, passages)]
        kinds = Counter(gap.kind for gap in gaps)
        return Wrote(
            Writes(
                gaps=FindingList(
                    reference=await self.toolbox.store(CollectedGaps(gaps=tuple(gaps))),
                    items=len(gaps),
                    summary=tuple(f"{kind}: {count}" for kind, count in kinds.items()),
                    decided_by=given.decided_by,
                ),
                errors=given.errors,
            )
        )

    async def _make_inputs(
        self, reads: Reads, extraction: Extraction, review: ReviewResult
    ) -> GapSynthesizerInputs:
        """Return the inputs without passages: all unmet requirements, and some of the fulfilled
        ones.
        """
        met = review.of_status(Status.COMPLIANT)[:_MOST_MET]
        verdicts = compress_verdicts((*review.findings, *met))
        names = [verdict.requirement_id for verdict in verdicts]
        return GapSynthesizerInputs(
            question=reads.question,
            language=reads.language,
            requirements=compress_requirements(extraction.requirements, names),
            verdicts=verdicts,
            wrong_citations=await self._list_wrong(reads.citation_audit),
            today=self._today().isoformat(),
        )

    async def _cut(self, reads: Reads) -> tuple[RulePassage, ...]:
        names = [document.document_id for document in reads.scope.documents]
        read = await self.toolbox.read_documents(names, reads.groups)
        return cut_passages(list_units([cut_document(document) for document in read]))

    async def _list_wrong(self, audit: FindingList | None) -> tuple[str, ...]:
        if audit is None or not audit.reference:
            return ()
        citation_audit = await self.toolbox.load(audit.reference, CitationAudit)
        return tuple(
            f"{citation.label} {'; '.join(citation.problems)}"
            for citation in citation_audit.citations
            if not citation.is_good
        )


def _divide(passages: Sequence[RulePassage]) -> Iterator[Sequence[RulePassage]]:
    sizes = [len(passage.text) for passage in passages]
    for first, last in divide_sizes(sizes, _BATCH_CHARACTERS, _BATCH_ITEMS):
        yield passages[first : last + 1]


def _list_regulatory(review: ReviewResult, extraction: Extraction) -> Iterator[SynthesizedGap]:
    """Yield the requirements that a model considered unmet, each with its reason."""
    known = {requirement.id: requirement for requirement in extraction.requirements}
    for verdict in review.of_status(Status.GAP):
        requirement = known.get(verdict.requirement_id)
        if requirement is not None:
            yield SynthesizedGap(
                kind="regulatory",
                summary=verdict.note or requirement.statement,
                requirement_ids=(requirement.id,),
                places=(requirement.place,),
            )


def _convert(
    gaps: Sequence[FoundGap], extraction: Extraction, passages: Sequence[RulePassage]
) -> Iterator[SynthesizedGap]:
    """Yield the other gaps whose requirements and passages exist, without duplicates."""
    known = {requirement.id for requirement in extraction.requirements}
    places: dict[str, TextPlace] = {passage.id: passage.place for passage in passages}
    seen: set[tuple[object, ...]] = set()
    for gap in gaps:
        is_known = known.issuperset(gap.requirement_ids)
        key = (gap.kind, gap.requirement_ids, gap.passages or gap.summary)
        if gap.kind == "regulatory" or not is_known or key in seen:
            continue
        seen.add(key)
        yield SynthesizedGap(
            kind=gap.kind,
            summary=" ".join(gap.summary.split())[:_LONGEST],
            requirement_ids=gap.requirement_ids,
            places=tuple(places[name] for name in gap.passages if name in places),
        )
