"""Says which facts the workers of a plan need, from their types and from the question itself."""

from collections.abc import Mapping, Sequence

from llm.offline.dialogue.subjects import asks_completely, points_back
from llm.offline.support import terms, weight_of
from llm.offline.words import normalise
from swarm.information.fields import FieldType, RequiredInfoField
from swarm.planning.plan import SwarmPlan
from swarm.workers.worker_type import WorkerRegistry

_RESEARCH = ("research ", "investigate ", "study ", "look into ", "do research on ", "analyse ",
             "analyze ", "explore ")  # fmt: skip
_MOST_SUBJECT_TERMS = 3
_REQUESTS = (
    *_RESEARCH, "compare ", "explain ", "describe ", "summarise ", "summarize ", "tell me ",
    "show me ", "give me ", "vergleiche ", "erkläre ", "beschreibe ", "zeige mir ", "comparez ",
    "explique ", "décris ", "compara ", "explica ", "confronta ", "spiega ", "descrivi ",
)  # fmt: skip
"""With what a request begins, which is no value of a fact."""
_LEAST_REQUEST_TERMS = 2
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
    opening = next((one for one in _RESEARCH if plain.startswith(one)), "")
    if not opening or question.rstrip().endswith("?"):
        return ""
    subject = plain.removeprefix(opening).strip()
    carrying = [term for term in terms(subject) if weight_of(term) >= 1]
    return subject if 0 < len(carrying) <= _MOST_SUBJECT_TERMS else ""


def is_new_request(text: str) -> bool:
    """Return whether an answer in free text asks for something else: "Compare Python and Rust".

    A question word or the imperative of a request is followed by two words that carry a subject,
    and nothing points back.
    """
    if points_back(text):
        return False
    plain = f"{normalise(text).strip()} "
    opening = next((one for one in _REQUESTS if plain.startswith(one)), "")
    carrying = {term for term in terms(plain.removeprefix(opening)) if weight_of(term) >= 1}
    return asks_completely(text) or (bool(opening) and len(carrying) >= _LEAST_REQUEST_TERMS)
