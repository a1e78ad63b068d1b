"""The report of a council: what its members agree on, where they differ, and what each one adds."""

from collections.abc import Mapping, Sequence

from swarm.planning.plan import SwarmPlan
from swarm.synthesis.merged_claims import MergedClaim
from swarm.synthesis.report import SwarmReport, word_reason, write_report
from swarm.synthesis.wording import NO_AGREEMENT, NO_DISSENT, ReportNote, ReportWording, Say
from swarm.workers.output import WorkerOutput

MEMBERS = frozenset({"advocate", "critic", "practitioner", "auditor"})
"""The members whose names have a translation."""
_LEAST_AGREEING = 2


def write_council_report(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], wording: ReportWording
) -> SwarmReport:
    """Return a balanced report: every member has the same length.

    Notes say where no agreement and no dissent was found: no source says so.
    """
    say = wording.say
    report = write_report(plan, outputs, wording)
    numbers = {chunk_id: number for number, chunk_id in enumerate(report.sources, start=1)}
    agreed = [one for one in report.claims if len(one.worker_ids) >= _LEAST_AGREEING]
    names = {
        worker.id: wording.name("report", worker.specialization, MEMBERS) for worker in plan.workers
    }
    own = {
        worker.id: [one for one in report.claims if one.worker_ids == (worker.id,)]
        for worker in plan.workers
    }
    share = min((len(claims) for claims in own.values() if claims), default=0)
    parts = [
        wording.persona and f"{wording.persona}:",
        _write(say("report_agreement"), agreed, numbers, names, say),
        *(
            _write(f"{names[worker_id]}:", claims[:share], numbers, names, say)
            for worker_id, claims in own.items()
        ),
        _write_dissent(report, numbers, names, say),
    ]
    notes = [] if agreed else [ReportNote(key=NO_AGREEMENT)]
    notes += [] if report.contradictions else [ReportNote(key=NO_DISSENT)]
    text = "\n\n".join(part for part in parts if part)
    return report.model_copy(update={"text": text, "notes": (*report.notes, *notes)})


def _write(
    head: str,
    claims: Sequence[MergedClaim],
    numbers: Mapping[str, int],
    names: Mapping[str, str],
    say: Say,
) -> str:
    if not claims:
        return ""
    lines = []
    for claim in claims:
        # In the line itself: a head without a source does not pass the check of an answer.
        who = [names[one] for one in claim.worker_ids if one in names]
        agrees = len(who) >= _LEAST_AGREEING
        by = (
            say("report_agree", names=", ".join(who))
            if agrees
            else say("report_alone", name=who[0])
        )
        lines.append(f"- {claim.text} [{numbers[claim.source.chunk_id]}] ({by})")
    return "\n".join([head, *lines])


def _write_dissent(
    report: SwarmReport, numbers: Mapping[str, int], names: Mapping[str, str], say: Say
) -> str:
    if not report.contradictions:
        return ""
    lines = []
    for found in report.contradictions:
        one, other = (
            f"{', '.join(names.get(worker, worker) for worker in claim.worker_ids)} "
            f"[{numbers[claim.source.chunk_id]}]"
            for claim in (found.one, found.other)
        )
        reason = word_reason(found, say)
        lines.append(f"- {say('report_against', one=one, other=other, reason=reason)}")
    return "\n".join([say("report_dissent"), *lines])
