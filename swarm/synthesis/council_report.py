"""The report of a council: what its members agree on, where they differ, and what each one adds."""

from collections.abc import Mapping, Sequence

from swarm.planning.plan import SwarmPlan
from swarm.synthesis.merged_claims import MergedClaim
from swarm.synthesis.report import SwarmReport, write_report
from swarm.workers.output import WorkerOutput

_LEAST_AGREEING = 2


def write_council_report(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], *, persona: str = ""
) -> SwarmReport:
    """Return a balanced report: every member has the same length."""
    report = write_report(plan, outputs, persona=persona)
    numbers = {chunk_id: number for number, chunk_id in enumerate(report.sources, start=1)}
    agreed = [one for one in report.claims if len(one.worker_ids) >= _LEAST_AGREEING]
    names = {worker.id: worker.specialization for worker in plan.workers}
    own = {
        worker.id: [one for one in report.claims if one.worker_ids == (worker.id,)]
        for worker in plan.workers
    }
    share = min((len(claims) for claims in own.values() if claims), default=0)
    parts = [
        persona and f"{persona}:",
        _write("Agreement:", agreed, numbers, names) or "Agreement: none was found.",
        *(
            _write(f"{names[worker_id]}:", claims[:share], numbers, names)
            for worker_id, claims in own.items()
        ),
        _write_dissent(report, numbers, names),
        "\n".join(["Missing:", *(f"- {one}" for one in report.missing)]) if report.missing else "",
    ]
    return report.model_copy(update={"text": "\n\n".join(part for part in parts if part)})


def _write(
    head: str,
    claims: Sequence[MergedClaim],
    numbers: Mapping[str, int],
    names: Mapping[str, str],
) -> str:
    if not claims:
        return ""
    lines = []
    for claim in claims:
        # In the line itself: a head without a source does not pass the check of an answer.
        who = [names[one] for one in claim.worker_ids if one in names]
        by = f"agreement: {', '.join(who)}" if len(who) >= _LEAST_AGREEING else f"{who[0]} alone"
        lines.append(f"- {claim.text} [{numbers[claim.source.chunk_id]}] ({by})")
    return "\n".join([head, *lines])


def _write_dissent(
    report: SwarmReport, numbers: Mapping[str, int], names: Mapping[str, str]
) -> str:
    if not report.contradictions:
        return "Dissent: none was found; the members quote different things."
    lines = []
    for found in report.contradictions:
        one, other = (
            f"{', '.join(names.get(worker, worker) for worker in claim.worker_ids)} "
            f"[{numbers[claim.source.chunk_id]}]"
            for claim in (found.one, found.other)
        )
        lines.append(f"- Dissent: {one} against {other}: {found.reason}")
    return "\n".join(["Dissent:", *lines])
