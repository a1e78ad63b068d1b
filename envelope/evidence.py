"""Records digests of the evidence that each hop read and wrote. Evidence consists of the attributes
on which an answer is based: plans, results, passages, and texts. A record is derived from the
payload that was delivered to the agent and from what the agent returned, so it does not depend on
the agent's own claims. The worker records each hop, and `manager.evidence_checks` compares the
records.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from envelope.envelope import Envelope
from envelope.json_values import read_list

MOST_RECORDS = 300
"""Maximum number of records per question; further hops are not recorded."""
_MOST_NAMES = 300
_MOST_CHUNKS = 400
COUNTED_SOURCES = frozenset({"tool:compliance_review", "tool:check_criteria"})
"""Sources with counts of checked documents, which were not returned by a tool call."""
EVERY_CHUNK = "*"
"""Stands for the chunks of a hop beyond the maximum number of recorded chunks; `<document id>#*`
stands for all chunks of a document.
"""
_LOG = "evidence_log"
_DIGEST_BYTES = 9
_COUNTED_BY = "/"


class EvidenceForm(Enum):
    """How an attribute is split into items of evidence, each with its own digest."""

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
"""Attributes that specialists write for later specialists."""
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
"""The attributes that are evidence, each with its format and the name of its items in records."""
FINDERS = frozenset({"search", "tool"})
"""The roles that search documents, so that chunks in the attributes that they write count as
found.
"""
SPECIALISTS = frozenset(
    {
        "extractor", "classifier", "requirement_extractor", "compliance", "risk_verifier",
        "citation_auditor", "gap_synthesizer",
    }
)  # fmt: skip
"""The roles that read whole documents; a record contains these documents instead of all chunks."""
_READERS = FINDERS | SPECIALISTS
INDEX_READERS = frozenset({"plan", "tool"}) | SPECIALISTS
"""The roles whose index version is recorded, because they run concurrently in different
processes.
"""
_CHUNK, _DOCUMENT = frozenset({"chunk_id"}), frozenset({"document_id"})
_CITING = frozenset({"source_references", "sources_used", "search_results", "worker_outputs"})
_CONTAINERS = (list, dict)
_SAYS_ITS_MODEL = frozenset({"answer_model", "decided_by", "judge"})


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """The evidence that one hop read and wrote.

    - `read`, `wrote`: digests by name of the item, such as `result/r1-1`; the digest of an absent
      attribute is empty
    - `found`: ids of the chunks that a search returned; `cited`: ids that another role cites
    - `done`: ids of the calls that an executor recorded
    - `models`: models that were called; `named`: models that the written attributes list as authors
    - `foreign`: pairs of a requested model and a different one that answered
    - `joined`: keys of the successful branches, by path; written by the manager at a join
    - `index`: the version of the index that the hop read
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
    """Return the attributes among `reads` that are evidence."""
    return frozenset(EVIDENCE.keys() & reads)


def record_evidence(
    envelope: Envelope,
    role: str,
    names: Iterable[str],
    writes: Mapping[str, JsonValue],
    models: Iterable[tuple[str, str]] = (),
    index: str = "",
) -> dict[str, JsonValue]:
    """Return a write that appends one record to `evidence_log`, or an empty object if there is no
    evidence.

    `names` contains the attributes that the agent reads; their digests are taken from the delivered
    payload. `models` and `index` are described in `record_hop`.
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
    """Return the record of a hop as JSON, or an empty object if it used neither evidence nor a
    model.

    `read` contains all evidence that the role reads, or None for absent attributes. `models`
    contains pairs of the requested model and, if a different one answered, its name, or "".
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
    """Parse a record; raises `TypeError` for a record of a later version."""
    return EvidenceRecord(**fields)


def record_join(stage: str, branch: str, joined: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the record of a join as JSON; `joined` maps branch paths to keys."""
    where = {"stage": stage, "role": "manager", **({"branch": branch} if branch else {})}
    return {**where, "joined": dict(joined)}


def digest_evidence(values: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the digests of the evidence in these attributes, by name of the item."""
    digests: dict[str, str] = {}
    for name, value in values.items():
        if name in EVIDENCE:
            digests |= digest_attribute(name, value)
    return digests


def digest_payload(payload: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield the name and digest of each item of evidence in a payload."""
    for name in EVIDENCE.keys() & payload.keys():
        yield from digest_attribute(name, payload[name]).items()


def digest_read(read: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the digests of what a hop read; the digest of an absent attribute is ""."""
    digests: dict[str, str] = {}
    for name, value in read.items():
        if value is not None:
            digests |= digest_attribute(name, value)
        elif EVIDENCE[name][0] is EvidenceForm.WHOLE:
            digests[EVIDENCE[name][1]] = ""
    return digests


def digest_attribute(name: str, value: JsonValue) -> dict[str, str]:
    """Return the digests of one attribute, by name of the item."""
    form, piece = EVIDENCE[name]
    match form, value:
        case EvidenceForm.ENTRIES, dict():
            pieces = {f"{piece}/{key}": item for key, item in list(value.items())[:_MOST_NAMES]}
        case EvidenceForm.CALLS, list():
            calls = [call for call in value[:_MOST_NAMES] if isinstance(call, dict)]
            pieces = {f"{piece}/{call.get('call_id')}": call for call in calls}
        case EvidenceForm.BRIEFS, dict():
            workers = value.get("workers")
            briefs = [
                brief for brief in read_list(workers)[:_MOST_NAMES] if isinstance(brief, dict)
            ]
            pieces = {f"{piece}/{brief.get('id')}": brief for brief in briefs}
        case EvidenceForm.BRIEF, dict():
            worker = value.get("worker")
            pieces = {f"{piece}/{worker.get('id')}": worker} if isinstance(worker, dict) else {}
        case EvidenceForm.CALL, dict():
            pieces = {f"{piece}/{value.get('call_id')}": value}
        case _:
            pieces = {piece: value}
    return {name: _digest_piece(content) for name, content in pieces.items()}


def name_index_version(revision: str, *, counted_by: str = "") -> str:
    """Return the version of an index; `counted_by` is the process that counts revisions."""
    return f"{counted_by}{_COUNTED_BY}{revision}" if counted_by else revision


def are_different_versions(first: str, second: str) -> bool:
    """Return whether two index versions differ; False if different processes count them."""
    owners = [version.rpartition(_COUNTED_BY)[0] for version in (first, second)]
    return bool(first and second) and owners[0] == owners[1] and first != second


def count_items(digest: str) -> int:
    """Return the number of items of a digested list; 0 for the digest of another value."""
    return int(digest.partition(":")[2] or 0)


def compute_short_digest(value: JsonValue) -> str:
    """Return a short digest of a JSON value. The digest depends on the order of the keys in
    objects.
    """
    return hashlib.blake2b(to_json(value), digest_size=_DIGEST_BYTES).hexdigest()


def _record_writes(role: str, wrote: Mapping[str, JsonValue]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if digests := digest_evidence(wrote):
        fields["wrote"] = digests
    if role in _READERS:
        if found_chunks := _list_found(role, wrote):
            fields["found"] = found_chunks
    elif cited_chunks := _list_cited(wrote):
        fields["cited"] = cited_chunks
    if "tool_executions" in wrote and (done_calls := list(_list_done(wrote["tool_executions"]))):
        fields["done"] = done_calls
    if named_models := _list_named(wrote):
        fields["named"] = named_models
    return fields


def _digest_piece(value: JsonValue) -> str:
    """Return the digest of a value; for a list, it includes the number of items, so that a lost
    item is detected.
    """
    digest = compute_short_digest(value)
    return f"{digest}:{len(value)}" if isinstance(value, list) else digest


def _list_found(role: str, wrote: Mapping[str, JsonValue]) -> list[str]:
    chunks = _list_chunks(wrote.values())
    if role in SPECIALISTS:
        documents = _list_texts(wrote.values(), _DOCUMENT)
        chunks += [f"{name}#{EVERY_CHUNK}" for name in documents]
    return chunks


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
    """Return the models (`model@provider`) that the written attributes list as authors."""
    models: list[str] = []
    for name, value in wrote.items():
        if isinstance(value, _CONTAINERS):
            if name != "multi_tool_results":
                _add_texts(value, _SAYS_ITS_MODEL, models)
        elif name in _SAYS_ITS_MODEL and isinstance(value, str):
            models.append(value)
    return list(dict.fromkeys(name for name in models if "@" in name)) if models else []


def _list_texts(values: Iterable[JsonValue], names: frozenset[str]) -> list[str]:
    """Return the distinct texts under these keys in nested objects, in order."""
    texts: list[str] = []
    for value in values:
        if isinstance(value, _CONTAINERS):
            _add_texts(value, names, texts)
    return list(dict.fromkeys(texts))


def _add_texts(
    value: dict[str, JsonValue] | list[JsonValue], names: frozenset[str], texts: list[str]
) -> None:
    if isinstance(value, list):
        for item in value:
            if isinstance(item, _CONTAINERS):
                _add_texts(item, names, texts)
        return
    for key, item in value.items():
        if isinstance(item, _CONTAINERS):
            _add_texts(item, names, texts)
        elif key in names and isinstance(item, str):
            texts.append(item)
