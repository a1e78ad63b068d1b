"""Finds faults in the evidence records of a question's hops; see `envelope.evidence`.

- *lost result*: a call was recorded or its branch succeeded, but its result did not arrive;
- *altered result*: a hop read, or the payload contains, other evidence than was written;
- *invented source*: a hop cites a source that no search or tool returned;
- *wrong model*: a model other than the requested one answered;
- *skipped work*: a result or a model call is claimed without a record of it;
- *stale context*: a hop read an outdated version of the evidence, or another version of the index
  than earlier hops.

A branch sees the evidence of its parent, and the parent sees the results of the branch after its
join. Therefore, calls of two workers may have the same id.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import BaseModel, JsonValue

from broker.values import Fields
from envelope.evidence import (
    COUNTED_SOURCES,
    EVERY_CHUNK,
    FINDERS,
    HANDED_OVER,
    MOST_RECORDS,
    SPECIALISTS,
    EvidenceRecord,
    are_different_versions,
    count_items,
    record_hop,
    record_join,
)
from envelope.role import Role
from envelope.sources import TOOL_SOURCE
from envelope.verified import OWNERS_PAGE
from manager.state import BranchResult, State

OnFault = Callable[[str], None]
"""Called with each kind of fault that was found in the evidence of a finished question."""
_MOST_SHOWN = 20
_MANAGER, _TRUNK = "manager", ""
_CALL, _RESULT, _OUTPUT = "call/", "result/", "output/"
_RETURNED = (_RESULT, _OUTPUT)
_ORDERS = (_CALL, "brief/")
_READS_ALL: Mapping[str, str] = {
    "reason": _RESULT,
    "reflect": _RESULT,
    "work": _RESULT,
    **dict.fromkeys(SPECIALISTS, _RESULT),
    "ledger": _OUTPUT,
    "synthesize": _OUTPUT,
}
"""The roles that must read every result of their branches, and the prefix of these results."""


class FaultKind(StrEnum):
    """The kinds of faults."""

    LOST_RESULT = "lost_result"
    ALTERED_RESULT = "altered_result"
    INVENTED_SOURCE = "invented_source"
    WRONG_MODEL = "wrong_model"
    SKIPPED_WORK = "skipped_work"
    STALE_CONTEXT = "stale_context"


class EvidenceFault(BaseModel, frozen=True, extra="ignore"):
    """A fault; `subject` is the id of the evidence, branch, model, or source that it concerns."""

    kind: FaultKind
    stage: str
    subject: str
    detail: str = ""


@dataclass(slots=True)
class _KnownEvidence:
    """The evidence of the hops so far: writes by branch, sources found, and models called."""

    written: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    index: str = ""

    def find(self, branch: str, name: str) -> Sequence[str]:
        """Return the versions of an item of evidence that are visible to a branch, oldest first."""
        while True:
            versions = self.written.get(branch, {}).get(name)
            if versions or not branch:
                return versions or ()
            branch = branch.rpartition("/")[0]

    def list_names(self, branch: str, prefix: str) -> list[str]:
        """Return the names with this prefix that were written in a branch or joined into it."""
        return [name for name in self.written.get(branch, {}) if name.startswith(prefix)]

    def write(self, branch: str, name: str, digest: str) -> None:
        """Add a version of an item of evidence."""
        self.written.setdefault(branch, {}).setdefault(name, []).append(digest)

    def join(self, branch: str, path: str, *, is_call: bool) -> None:
        """Add the results of the branch at `path` to its parent `branch`.

        The branch of a tool call returns the result of the call; other branches return only their
        outputs.
        """
        for name, versions in self.written.get(path, {}).items():
            is_result = name.startswith(_RESULT) and is_call
            if is_result or name.startswith(_OUTPUT) or name in HANDED_OVER:
                self.write(branch, name, versions[-1])


def check_evidence(state: State, branch: str = _TRUNK) -> tuple[EvidenceFault, ...]:
    """Return the faults of a question so far, in the order of its hops.

    `branch` is the branch of the payload in `state`, or "" for the trunk.
    """
    records = state.evidence_log
    work = _group_by_branch(records)
    known = _KnownEvidence()
    faults: list[EvidenceFault] = []
    for record in records:
        faults += _check_reads(record, known)
        # Checked first, because most hops of a search have no such work.
        if record.done or record.wrote:
            faults += _check_work(record)
        if record.cited:
            faults += _check_sources(record, known)
        if record.foreign or record.named:
            faults += _check_models(record, known)
        if record.index:
            faults += _check_index(record, known)
        _add_record(record, work, known)
        if record.joined:
            faults += _check_join(record, work, known)
    if len(records) < MOST_RECORDS:
        faults += _check_payload(state, known, branch)
    return tuple(dict.fromkeys(faults))


def ignore_fault(_kind: str) -> None:
    """Ignore the fault."""


def note_shortened(result: Fields, branch: str) -> Fields:
    """Return the result of a branch, with a record if content was dropped to limit its size."""
    view = BranchResult(result)
    if not view.left_out or BranchResult.evidence_log not in view:
        return result
    record = record_hop("return", _MANAGER, branch, {}, view.writes)
    return {**result, "evidence_log": [*view.evidence_log, record]}


def note_join(state: State, branch: str, joined: Mapping[str, str]) -> State:
    """Return the state with a record of the successful branches; `joined` maps paths to keys."""
    if not joined or State.evidence_log not in state:
        return state
    return state.added(evidence_log=[record_join(state.stage, branch, joined)])


def list_faults(state: State, branch: str = "") -> list[Fields]:
    """Return at most 20 faults found so far in a branch of a question; "" is the trunk."""
    if State.evidence_log not in state:
        return []
    return [_describe(fault) for fault in check_evidence(state, branch)[:_MOST_SHOWN]]


def report_faults(
    reply: Mapping[str, JsonValue],
    faults: Sequence[Fields],
    on_fault: OnFault = ignore_fault,
) -> dict[str, JsonValue]:
    """Return the reply with the faults added, and call `on_fault` once per kind."""
    if not faults:
        return dict(reply)
    for kind in sorted({str(fault["kind"]) for fault in faults}):
        on_fault(kind)
    return {**reply, "faults": [*faults]}


def _group_by_branch(records: Sequence[EvidenceRecord]) -> Mapping[str, Sequence[EvidenceRecord]]:
    work: dict[str, list[EvidenceRecord]] = {}
    for record in records:
        work.setdefault(record.branch, []).append(record)
    return work


def _add_record(
    record: EvidenceRecord, work: Mapping[str, Sequence[EvidenceRecord]], known: _KnownEvidence
) -> None:
    for name, digest in record.wrote.items():
        known.write(record.branch, name, digest)
    for path in record.joined:
        roles = {evidence_record.role for evidence_record in work.get(path, ())} - {_MANAGER}
        known.join(record.branch, path, is_call=roles <= FINDERS)
    known.sources |= {*record.found}
    known.models |= {*record.models}
    known.index = known.index or record.index


def _check_reads(record: EvidenceRecord, known: _KnownEvidence) -> Iterator[EvidenceFault]:
    for name, digest in record.read.items():
        versions = known.find(record.branch, name)
        if versions:
            yield from _compare(record.stage, name, digest, versions)
        elif name.startswith(_RETURNED):
            detail = "the hop read a result that no hop wrote"
            yield _make(FaultKind.SKIPPED_WORK, record.stage, name, detail)
    prefix = _READS_ALL.get(record.role)
    for name in known.list_names(record.branch, prefix) if prefix is not None else ():
        if name not in record.read:
            yield _make(FaultKind.LOST_RESULT, record.stage, name, "the result was not read")


def _compare(
    stage: str, name: str, digest: str, versions: Sequence[str]
) -> Iterator[EvidenceFault]:
    if digest == versions[-1]:
        return
    if not digest and name in HANDED_OVER:
        yield _make(FaultKind.LOST_RESULT, stage, name, "the result was missing")
    elif not digest:
        yield _make(
            FaultKind.STALE_CONTEXT,
            stage,
            name,
            "the hop read the value without the latest changes",
        )
    elif digest in versions:
        yield _make(FaultKind.STALE_CONTEXT, stage, name, "the hop read an earlier version")
    elif count_items(digest) < count_items(versions[-1]):
        yield _make(
            FaultKind.LOST_RESULT, stage, name, "the hop read fewer items than were written"
        )
    else:
        yield _make(
            FaultKind.ALTERED_RESULT, stage, name, "the value differs from the written value"
        )


def _check_work(record: EvidenceRecord) -> Iterator[EvidenceFault]:
    """Yield results without an execution, and executions without a result."""
    if record.role == _MANAGER:
        return
    results = {name for name in record.wrote if name.startswith(_RESULT)}
    done = {f"{_RESULT}{call_id}" for call_id in record.done}
    for name in sorted(results - done):
        detail = "there is no record of the call for this result"
        yield _make(FaultKind.SKIPPED_WORK, record.stage, name, detail)
    for name in sorted(done - results):
        yield _make(
            FaultKind.LOST_RESULT,
            record.stage,
            name,
            "the call was executed, but its result is missing",
        )
    if record.role in FINDERS:
        calls = {name.removeprefix(_CALL) for name in record.read if name.startswith(_CALL)}
        for call_id in record.done if calls else ():
            if call_id not in calls:
                detail = "the executed call differs from the requested call"
                yield _make(FaultKind.STALE_CONTEXT, record.stage, f"{_CALL}{call_id}", detail)


def _check_sources(record: EvidenceRecord, known: _KnownEvidence) -> Iterator[EvidenceFault]:
    if EVERY_CHUNK in known.sources:
        return
    for name in sorted({*record.cited} - COUNTED_SOURCES):
        if record.role == Role.GUARDRAILS and name.endswith(OWNERS_PAGE):
            # A verified answer cites a page that its owner chose; no search of this question found
            # it.
            continue
        # The result of a tool call is a source with the name of the call.
        result = f"{_RESULT}{name.removeprefix(TOOL_SOURCE)}"
        is_result = name.startswith(TOOL_SOURCE) and any(
            result in pieces for pieces in known.written.values()
        )
        whole = f"{name.rpartition('#')[0]}#{EVERY_CHUNK}"
        if known.sources.isdisjoint({name, whole}) and not is_result and name != EVERY_CHUNK:
            yield _make(
                FaultKind.INVENTED_SOURCE,
                record.stage,
                name,
                "no tool or search returned this source",
            )


def _check_models(record: EvidenceRecord, known: _KnownEvidence) -> Iterator[EvidenceFault]:
    for requested, answered in record.foreign:
        detail = f"requested {requested!r}, answered by {answered!r}"
        yield _make(FaultKind.WRONG_MODEL, record.stage, requested, detail)
    for name in record.named:
        if name not in record.models and name not in known.models:
            detail = "the answer names this model, which was not called"
            yield _make(FaultKind.SKIPPED_WORK, record.stage, name, detail)


def _check_index(record: EvidenceRecord, known: _KnownEvidence) -> Iterator[EvidenceFault]:
    """Yield a fault if a hop read a different version of the index than the first hop."""
    if are_different_versions(known.index, record.index):
        detail = (
            f"the hop read index version {record.index[:40]!r}, an earlier hop {known.index[:40]!r}"
        )
        yield _make(FaultKind.STALE_CONTEXT, record.stage, record.branch or record.role, detail)


def _check_join(
    join: EvidenceRecord, work: Mapping[str, Sequence[EvidenceRecord]], known: _KnownEvidence
) -> Iterator[EvidenceFault]:
    """Yield faults of successful branches: no work, different work than requested, or no result."""
    for path, key in join.joined.items():
        own = work.get(path, ())
        if not own:
            detail = "the branch succeeded without a record of its work"
            yield _make(FaultKind.SKIPPED_WORK, join.stage, path, detail)
            continue
        orders = {name for record in own for name in record.read if name.startswith(_ORDERS)}
        if orders and not orders & {f"{kind}{key}" for kind in _ORDERS}:
            detail = "the branch worked on a different item"
            yield _make(FaultKind.STALE_CONTEXT, join.stage, key, detail)
        elif orders and not known.written.get(path, {}).keys() & {f"{k}{key}" for k in _RETURNED}:
            yield _make(
                FaultKind.LOST_RESULT, join.stage, key, "the result of the branch did not arrive"
            )


def _check_payload(state: State, known: _KnownEvidence, branch: str) -> Iterator[EvidenceFault]:
    """Yield faults of the payload: evidence that is missing, or is not the latest version that was
    written.
    """
    for name, digest in state.digest_evidence():
        versions = known.find(branch, name)
        if versions:
            yield from _compare(_MANAGER, name, digest, versions)
        elif name.startswith(_RETURNED):
            detail = "the payload contains a result that no hop wrote"
            yield _make(FaultKind.SKIPPED_WORK, _MANAGER, name, detail)
    arrived = {_RESULT: state.multi_tool_results.keys(), _OUTPUT: state.worker_outputs.keys()}
    for prefix, there in arrived.items():
        for name in known.list_names(branch, prefix):
            if name.removeprefix(prefix) not in there:
                yield _make(FaultKind.LOST_RESULT, _MANAGER, name, "the result did not arrive")


def _make(kind: FaultKind, stage: str, subject: str, detail: str) -> EvidenceFault:
    return EvidenceFault(kind=kind, stage=stage, subject=subject, detail=detail)


def _describe(fault: EvidenceFault) -> Fields:
    return {name: str(value) for name, value in fault.model_dump(mode="json").items() if value}
