"""Records digests of the evidence that each hop read and wrote. Evidence is the attributes on which
an answer is based: plans, results, passages, texts. A record is made from the payload that was
delivered to the agent and from what it returned, so it does not depend on the agent's own
statements. The worker records each hop; `manager.evidence_checks` compares the records.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from envelope.envelope import Envelope

MOST_RECORDS = 300
"""The records that a question keeps; from then on no further hops are recorded."""
_MOST_NAMES = 300
_MOST_CHUNKS = 400
COUNTED_SOURCES = frozenset({"tool:compliance_review", "tool:check_criteria"})
"""Sources that count checked documents; no call returned them."""
EVERY_CHUNK = "*"
"""Stands for the further chunks of a hop that found more than are recorded; after the id of a
document and `#`, for all of its chunks."""
_LOG = "evidence_log"
_DIGEST_BYTES = 9
_COUNTED_BY = "/"


class EvidenceForm(Enum):
    """How an attribute is divided into pieces of evidence with a digest each."""

    WHOLE = "whole"
    ENTRIES = "entries"
    CALLS = "calls"
    CALL = "call"
    BRIEFS = "briefs"
    BRIEF = "brief"


HANDED_OVER = (
    "extracted", "classification", "checklist", "verdicts", "risks", "citation_audit", "gaps",
    "review_report",
)  # fmt: skip
"""What specialists write for those after them."""
EVIDENCE: Mapping[str, tuple[EvidenceForm, str]] = {
    "canonical_question": (EvidenceForm.WHOLE, "question"),
    "tool_calls": (EvidenceForm.CALLS, "call"),
    "tool_call": (EvidenceForm.CALL, "call"),
    "multi_tool_results": (EvidenceForm.ENTRIES, "result"),
    "search_results": (EvidenceForm.WHOLE, "search_results"),
    "search_context": (EvidenceForm.WHOLE, "search_context"),
    "source_references": (EvidenceForm.WHOLE, "source_references"),
    "sources_used": (EvidenceForm.WHOLE, "sources_used"),
    "response": (EvidenceForm.WHOLE, "response"),
    "swarm_plan": (EvidenceForm.BRIEFS, "brief"),
    "worker_task": (EvidenceForm.BRIEF, "brief"),
    **{name: (EvidenceForm.WHOLE, name) for name in HANDED_OVER},
    "task_ledger": (EvidenceForm.WHOLE, "task_ledger"),
    "worker_outputs": (EvidenceForm.ENTRIES, "output"),
}
"""The attributes that are evidence, and the name of their pieces in the records."""
FINDERS = frozenset({"search", "tool"})
"""The roles that read documents: the chunks in their writes count as found."""
SPECIALISTS = frozenset(
    {
        "extractor", "classifier", "requirement_extractor", "compliance", "risk_verifier",
        "citation_auditor", "gap_synthesizer",
    }
)  # fmt: skip
"""The roles that read whole documents, unit by unit; those of a review are named as a whole."""
_READERS = FINDERS | SPECIALISTS
INDEX_READERS = frozenset({"plan", "tool"}) | SPECIALISTS
"""The roles of which the version of the index is recorded: they work side by side, on any pod."""
_CHUNK, _DOCUMENT = frozenset({"chunk_id"}), frozenset({"document_id"})
_CITING = frozenset({"source_references", "sources_used", "search_results", "worker_outputs"})
_CONTAINERS = (list, dict)
_SAYS_ITS_MODEL = frozenset({"answer_model", "decided_by", "judge"})


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """What one hop read and wrote: digests by the name of the piece, such as `result/r1-1`.

    `found` are the chunks that a finder returned, `cited` those that another role names as sources.
    `done` are the calls that an executor recorded. `models` answered in this hop, `named` are those
    that it says answered. `foreign` are pairs of a requested model and another one that answered.
    `joined` is written by the manager at a join: the keys of the branches that ended well, by path.
    A read digest is empty where the attribute was not there. `index` is the version of the index
    that the hop read.
    """

    stage: str
    role: str
    branch: str = ""
    read: Mapping[str, str] = field(default_factory=dict)
    wrote: Mapping[str, str] = field(default_factory=dict)
    found: Sequence[str] = ()
    cited: Sequence[str] = ()
    done: Sequence[str] = ()
    models: Sequence[str] = ()
    named: Sequence[str] = ()
    foreign: Sequence[Sequence[str]] = ()
    joined: Mapping[str, str] = field(default_factory=dict)
    index: str = ""


def find_evidence_names(reads: Collection[str]) -> frozenset[str]:
    """Return those of the attributes that are evidence."""
    return frozenset(EVIDENCE.keys() & reads)


def record_evidence(
    envelope: Envelope,
    role: str,
    names: Iterable[str],
    writes: Mapping[str, JsonValue],
    models: Iterable[tuple[str, str]] = (),
    index: str = "",
) -> dict[str, JsonValue]:
    """Return the attribute `evidence_log` with one more record; nothing where none is needed.

    `names` are the attributes that the agent reads; the digests are of the delivered payload.
    `models` and `index`: see
    `record_hop`.
    """
    payload = envelope.payload
    log = payload.get(_LOG)
    if isinstance(log, list) and len(log) >= MOST_RECORDS:
        return {}
    read = {name: payload.get(name) for name in names}
    stage = str(payload.get("stage") or role)
    record = record_hop(stage, role, envelope.branch, read, writes, models, index=index)
    return {_LOG: [record]} if record else {}


def record_hop(
    stage: str,
    role: str,
    branch: str,
    read: Mapping[str, JsonValue],
    wrote: Mapping[str, JsonValue],
    models: Iterable[tuple[str, str]] = (),
    *,
    index: str = "",
) -> dict[str, JsonValue]:
    """Return the record of a hop as JSON; empty if it touched no evidence and asked no model.

    `read` has all evidence that the role reads; None: it was not there. `models` are the model of
    each call and, if another one answered, its name.
    """
    fields: dict[str, Any] = {}
    if read and (digests := digest_read(read)):
        fields["read"] = digests
    if wrote:
        fields |= _record_writes(role, wrote)
    if asked := list(models):
        fields["models"] = list(dict.fromkeys(model for model, _ in asked))
        if foreign := [[model, answered] for model, answered in asked if answered]:
            fields["foreign"] = foreign
    if index:
        fields["index"] = index
    if not fields:
        return {}
    where = {"stage": stage, "role": role, **({"branch": branch} if branch else {})}
    return {**where, **fields}


def read_record(fields: Mapping[str, Any]) -> EvidenceRecord:
    """Return a record from its JSON; raises `TypeError` for one of a later version."""
    return EvidenceRecord(**fields)


def record_join(stage: str, branch: str, joined: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the record of a join as JSON; `joined` are the keys of its branches, by path."""
    where = {"stage": stage, "role": "manager", **({"branch": branch} if branch else {})}
    return {**where, "joined": dict(joined)}


def digest_evidence(values: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the digests of the pieces of evidence among these attributes."""
    digests: dict[str, str] = {}
    for name, value in values.items():
        if name in EVIDENCE:
            digests |= digest_attribute(name, value)
    return digests


def digest_payload(payload: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield the pieces of evidence that a payload has, with their digests."""
    for name in EVIDENCE.keys() & payload.keys():
        yield from digest_attribute(name, payload[name]).items()


def digest_read(read: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the digests of what a hop read; an empty one for each attribute that was absent."""
    digests: dict[str, str] = {}
    for name, value in read.items():
        if value is not None:
            digests |= digest_attribute(name, value)
        elif EVIDENCE[name][0] is EvidenceForm.WHOLE:
            digests[EVIDENCE[name][1]] = ""
    return digests


def digest_attribute(name: str, value: JsonValue) -> dict[str, str]:
    """Return the digests of the pieces of one attribute that is evidence."""
    form, piece = EVIDENCE[name]
    match form, value:
        case EvidenceForm.ENTRIES, dict():
            pieces = {f"{piece}/{key}": each for key, each in list(value.items())[:_MOST_NAMES]}
        case EvidenceForm.CALLS, list():
            calls = [each for each in value[:_MOST_NAMES] if isinstance(each, dict)]
            pieces = {f"{piece}/{each.get('call_id')}": each for each in calls}
        case EvidenceForm.BRIEFS, dict():
            workers = value.get("workers")
            briefs = [one for one in _list(workers)[:_MOST_NAMES] if isinstance(one, dict)]
            pieces = {f"{piece}/{brief.get('id')}": brief for brief in briefs}
        case EvidenceForm.BRIEF, dict():
            worker = value.get("worker")
            pieces = {f"{piece}/{worker.get('id')}": worker} if isinstance(worker, dict) else {}
        case EvidenceForm.CALL, dict():
            pieces = {f"{piece}/{value.get('call_id')}": value}
        case _:
            pieces = {piece: value}
    return {key: _digest_piece(each) for key, each in pieces.items()}


def name_index_version(revision: str, *, counted_by: str = "") -> str:
    """Return the version of an index; `counted_by` is the process that counts its revisions."""
    return f"{counted_by}{_COUNTED_BY}{revision}" if counted_by else revision


def are_different_versions(one: str, other: str) -> bool:
    """Return whether two versions of an index differ; those of two processes are not compared."""
    owners = [version.rpartition(_COUNTED_BY)[0] for version in (one, other)]
    return bool(one and other) and owners[0] == owners[1] and one != other


def count_items(digest: str) -> int:
    """Return the number of items of the list that a digest is of; 0 for other values."""
    return int(digest.partition(":")[2] or 0)


def compute_short_digest(value: JsonValue) -> str:
    """Return a short digest of a JSON value; the order of the keys of objects counts."""
    return hashlib.blake2b(to_json(value), digest_size=_DIGEST_BYTES).hexdigest()


def _record_writes(role: str, wrote: Mapping[str, JsonValue]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if digests := digest_evidence(wrote):
        fields["wrote"] = digests
    if role in _READERS:
        if found := _list_found(role, wrote):
            fields["found"] = found
    elif cited := _list_cited(wrote):
        fields["cited"] = cited
    if "tool_executions" in wrote and (done := list(_list_done(wrote["tool_executions"]))):
        fields["done"] = done
    if named := _list_named(wrote):
        fields["named"] = named
    return fields


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _digest_piece(value: JsonValue) -> str:
    """Return the digest; that of a list has the number of items, so that a lost one is seen."""
    digest = compute_short_digest(value)
    return f"{digest}:{len(value)}" if isinstance(value, list) else digest


def _list_found(role: str, wrote: Mapping[str, JsonValue]) -> list[str]:
    found = _list_chunks(wrote.values())
    if role in SPECIALISTS:
        documents = _list_texts(wrote.values(), _DOCUMENT)
        found += [f"{name}#{EVERY_CHUNK}" for name in documents]
    return found


def _list_cited(wrote: Mapping[str, JsonValue]) -> list[str]:
    if _CITING.isdisjoint(wrote):
        return []
    return _list_chunks(value for name, value in wrote.items() if name in _CITING)


def _list_chunks(values: Iterable[JsonValue]) -> list[str]:
    names = _list_texts(values, _CHUNK)
    return names if len(names) <= _MOST_CHUNKS else [*names[:_MOST_CHUNKS], EVERY_CHUNK]


def _list_done(executions: JsonValue) -> Iterator[str]:
    for execution in executions if isinstance(executions, list) else ():
        if isinstance(execution, dict) and isinstance(execution.get("call_id"), str):
            yield str(execution["call_id"])


def _list_named(wrote: Mapping[str, JsonValue]) -> list[str]:
    """Return the models, `model@provider`, that the writes name as the author of something."""
    found: list[str] = []
    for name, value in wrote.items():
        if isinstance(value, _CONTAINERS):
            if name != "multi_tool_results":
                _add_texts(value, _SAYS_ITS_MODEL, found)
        elif name in _SAYS_ITS_MODEL and isinstance(value, str):
            found.append(value)
    return list(dict.fromkeys(name for name in found if "@" in name)) if found else []


def _list_texts(values: Iterable[JsonValue], names: frozenset[str]) -> list[str]:
    """Return the different texts under these names in objects, at any depth, in their order."""
    found: list[str] = []
    for value in values:
        if isinstance(value, _CONTAINERS):
            _add_texts(value, names, found)
    return list(dict.fromkeys(found))


def _add_texts(
    value: dict[str, JsonValue] | list[JsonValue], names: frozenset[str], found: list[str]
) -> None:
    if isinstance(value, list):
        for each in value:
            if isinstance(each, _CONTAINERS):
                _add_texts(each, names, found)
        return
    for key, each in value.items():
        if isinstance(each, _CONTAINERS):
            _add_texts(each, names, found)
        elif key in names and isinstance(each, str):
            found.append(each)
