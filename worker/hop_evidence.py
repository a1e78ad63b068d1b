"""Records the evidence that a hop read and wrote, outside its agent."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from broker.journal_events import JournalEvent
from broker.values import Fields, JournalEntry
from envelope.envelope import Envelope
from manager.evidence import EVIDENCE, MOST_RECORDS, record_hop

ATTRIBUTE = "evidence_log"


def find_evidence_names(reads: Collection[str]) -> frozenset[str]:
    """Return those of the attributes that are evidence."""
    return frozenset(EVIDENCE.keys() & reads)


def record_evidence(
    envelope: Envelope,
    role: str,
    names: Iterable[str],
    writes: Mapping[str, JsonValue],
    made: Sequence[JournalEvent],
    index: str = "",
) -> Fields:
    """Return the attribute `evidence_log` with one more record; nothing where none is needed.

    `names` are the attributes that the agent reads; the digests are of the delivered payload.
    `index` is the version of the index that it read.
    """
    payload = envelope.payload
    log = payload.get(ATTRIBUTE)
    if isinstance(log, list) and len(log) >= MOST_RECORDS:
        return {}
    read = {name: payload.get(name) for name in names}
    stage = str(payload.get("stage") or role)
    models = _list_models(made) if made else ()
    record = record_hop(stage, role, envelope.branch, read, writes, models, index=index)
    return {ATTRIBUTE: [record]} if record else {}


def _list_models(made: Sequence[JournalEvent]) -> Iterator[tuple[str, str]]:
    """Yield the model of each call that was answered, and the name of another one that answered."""
    for call in made:
        if isinstance(call, JournalEntry) and call.kind == "model_call":
            model, answered = str(call.fields.get("model")), call.fields.get("answered_by")
            if "@" in model and "error" not in call.fields:
                yield model, str(answered or "")
