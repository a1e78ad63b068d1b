"""Ranks the risks of violations and gaps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agents.agent import AgentRole, ProgressStep
from agents.review.requirements import Extraction
from agents.review.specialist import (
    LoopReads,
    LoopWrites,
    SpecialistAgent,
)
from agents.review.verdicts import (
    RankedRisks,
    ReviewResult,
    Risk,
    compress_requirements,
    compress_verdicts,
    divide_findings,
)
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import (
    ErrorSeverity,
    FindingList,
    SpecialistError,
    StoredChecklist,
    StoredVerdicts,
)
from llm.tasks.review import RISK_VERIFIER, KnownVerdict, RankedRisk, RiskVerifierInputs


class Reads(LoopReads, frozen=True):
    """The checklist with its verdicts, and the tool calls made so far."""

    checklist: StoredChecklist | None = None
    verdicts: StoredVerdicts | None = None


class Writes(LoopWrites, frozen=True):
    """The ranked risks, or tool calls to make first."""

    risks: FindingList | None = None


class RiskVerifierAgent(SpecialistAgent[Reads, Writes]):
    """Ranks findings. A finding that the model omitted has no risk, and is reported in an entry of
    `errors`.
    """

    role = Role.RISK_VERIFIER
    step = ProgressStep.CHECK
    model_task = RISK_VERIFIER
    agent_role = AgentRole.VERIFY
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        if reads.checklist is None or reads.verdicts is None:
            text = "no risks were ranked, because the output of compliance is missing"
            return Wrote(Writes(errors=(self.toolbox.make_error(text),)))
        if self.toolbox.is_offline:
            # The report states that the findings were not ranked.
            return Wrote(Writes(risks=FindingList(items=0)))
        extraction = await self.toolbox.load(reads.checklist.reference, Extraction)
        review = await self.toolbox.load(reads.verdicts.reference, ReviewResult)
        findings = compress_verdicts(review.findings)
        if not findings:
            return Wrote(Writes(risks=FindingList(items=0)))
        batches = [
            RiskVerifierInputs(
                question=reads.question,
                language=reads.language,
                requirements=compress_requirements(
                    extraction.requirements, [verdict.requirement_id for verdict in own]
                ),
                verdicts=own,
            )
            for own in divide_findings(findings)
        ]
        toolbox = replace(self.toolbox, known=compress_requirements(extraction.requirements))
        given = await toolbox.consult_each(RISK_VERIFIER, batches, reads.turns, reads)
        if (asked := given.calls) is not None:
            return Wrote(Writes(**asked.as_writes()))
        if not given.outputs:
            # None instead of an empty list, which would claim that there are no risks.
            return Wrote(Writes(errors=given.errors))
        own = {risk.requirement_id: risk for output in given.outputs for risk in output.risks}
        risks = [
            _convert(own[finding.requirement_id])
            for finding in findings
            if finding.requirement_id in own
        ]
        risks.sort(key=lambda item: (-item.score, item.requirement_id))
        return Wrote(
            Writes(
                risks=FindingList(
                    reference=await self.toolbox.store(RankedRisks(risks=tuple(risks))),
                    items=len(risks),
                    decided_by=given.decided_by,
                ),
                errors=(*given.errors, *self._name_unranked(extraction, findings, own)),
            )
        )

    def _name_unranked(
        self,
        extraction: Extraction,
        findings: Sequence[KnownVerdict],
        ranked: Mapping[str, object],
    ) -> tuple[SpecialistError, ...]:
        lost = {finding.requirement_id for finding in findings}.difference(ranked)
        if not lost:
            return ()
        rules = [rule for rule in extraction.requirements if rule.id in lost]
        names = "; ".join(dict.fromkeys(rule.place.name(rule.statement) for rule in rules[:10]))
        text = f"{len(lost)} of {len(findings)} findings have no risk: {names}"
        return (self.toolbox.make_error(text, ErrorSeverity.MEDIUM),)


def _convert(risk: RankedRisk) -> Risk:
    return Risk.model_validate(risk.model_dump())
