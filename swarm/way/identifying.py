"""Says which facts the workers of a plan need, from their types and from the question itself."""

from collections.abc import Mapping, Sequence

from llm.offline.support import terms, weight_of
from llm.offline.words import normalise
from swarm.information.fields import FieldType, RequiredInfoField
from swarm.information.requests import RESEARCH
from swarm.planning.plan import SwarmPlan
from swarm.workers.worker_type import WorkerRegistry

_MOST_SUBJECT_TERMS = 3
ASPECT = RequiredInfoField(
    name="aspect",
    question="Which aspect of it matters to you?",
    type=FieldType.TEXT,
    cues=("cost", "price", "risk", "security", "privacy", "performance", "history", "limits"),
)


def identify_required(
    plan: SwarmPlan,
    registry: WorkerRegistry,
    needed: Mapping[str, Sequence[RequiredInfoField]] | None = None,
) -> dict[str, tuple[RequiredInfoField, ...]]:
    """Return the facts that each worker needs first, by its id; `needed` are those of a planner.

    A request that only names a subject needs the aspect that matters: see `find_bare_subject`.
    """
    fields = {name: tuple(own) for name, own in registry.list_required(plan.workers).items()}
    for name, own in (needed or {}).items():
        fields[name] = (*fields.get(name, ()), *own)
    if plan.workers and find_bare_subject(plan.question):
        first = plan.workers[0].id
        fields[first] = (*fields.get(first, ()), ASPECT)
    return fields


def find_bare_subject(question: str) -> str:
    """Return the subject of a request such as "Research quantum computing"; empty: it asks more."""
    plain = f"{normalise(question).strip()} "
    opening = next((one for one in RESEARCH if plain.startswith(one)), "")
    if not opening or question.rstrip().endswith("?"):
        return ""
    subject = plain.removeprefix(opening).strip()
    carrying = [term for term in terms(subject) if weight_of(term) >= 1]
    return subject if 0 < len(carrying) <= _MOST_SUBJECT_TERMS else ""
