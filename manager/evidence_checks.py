"""Finds six faults in the records of a question's hops; see `evidence`.

- *lost result*: a call was recorded or its branch ended well, and its result did not arrive;
- *altered result*: a hop read, or the payload has, other evidence than was written;
- *invented source*: a hop names a source that no search and no tool returned;
- *wrong model*: another model answered than the one that was requested;
- *skipped work*: a result, or a model's work, is claimed without a record of it;
- *stale context*: a hop read an earlier version of the evidence than the latest one, or another
  version of the index than the hops before it.

A branch sees the evidence of the branch in which it began, and its results are seen there from its
join on. So calls of two workers may have the same name.
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
"""Receives the kind of each fault that a question ends with."""
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
"""The roles that read every result of branches, and which."""


class FaultKind(StrEnum):
    """The faults that are looked for."""

    LOST_RESULT = "lost_result"
    ALTERED_RESULT = "altered_result"
    INVENTED_SOURCE = "invented_source"
    WRONG_MODEL = "wrong_model"
    SKIPPED_WORK = "skipped_work"
    STALE_CONTEXT = "stale_context"


class FoundFault(BaseModel, frozen=True, extra="ignore"):
    """One fault; `subject` is the id of the work or of the source."""

    kind: FaultKind
    stage: str
    subject: str
    detail: str = ""


@dataclass(slots=True)
class _KnownEvidence:
    """What the hops so far wrote in each branch, found and asked."""

    written: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    index: str = ""

    def find(self, branch: str, name: str) -> Sequence[str]:
        """Return the versions of a piece that a branch sees, oldest first."""
        while True:
            versions = self.written.get(branch, {}).get(name)
            if versions or not branch:
                return versions or ()
            branch = branch.rpartition("/")[0]

    def list_names(self, branch: str, prefix: str) -> list[str]:
        """Return the pieces of this kind that were written in a branch or joined into it."""
        return [name for name in self.written.get(branch, {}) if name.startswith(prefix)]

    def write(self, branch: str, name: str, digest: str) -> None:
        """Note one more version of a piece."""
        self.written.setdefault(branch, {}).setdefault(name, []).append(digest)

    def join(self, branch: str, path: str, *, is_call: bool) -> None:
        """Note that the results of a branch are seen in the one in which it began.

        The branch of a call returns its result; others keep those from which they wrote theirs.
        """
        for name, versions in self.written.get(path, {}).items():
            is_result = name.startswith(_RESULT) and is_call
            if is_result or name.startswith(_OUTPUT) or name in HANDED_OVER:
                self.write(branch, name, versions[-1])


def check_evidence(state: State, branch: str = _TRUNK) -> tuple[FoundFault, ...]:
    """Return the faults of a question so far, in the order of its hops.

    `branch` is the one whose payload it is: its evidence is not yet in the trunk.
    """
    records = state.evidence_log
    work = _group_by_branch(records)
    known = _KnownEvidence()
    faults: list[FoundFault] = []
    for record in records:
        faults += _check_reads(record, known)
        # Most hops of a search have nothing to check, so this is tested first.
        if record.done or record.wrote:
            faults += _check_work(record)
        if record.cited:
            faults += _check_sources(record, known)
        if record.foreign or record.named:
            faults += _check_models(record, known)
        if record.index:
            faults += _check_index(record, known)
        _note(record, work, known)
        if record.joined:
            faults += _check_join(record, work, known)
    if len(records) < MOST_RECORDS:
        faults += _check_payload(state, known, branch)
    return tuple(dict.fromkeys(faults))


def ignore_fault(_kind: str) -> None:
    """Count nothing."""


def note_shortened(result: Fields, branch: str) -> Fields:
    """Return the result of a branch with a record of what was dropped on purpose, if anything."""
    found = BranchResult(result)
    if not found.left_out or BranchResult.evidence_log not in found:
        return result
    record = record_hop("return", _MANAGER, branch, {}, found.writes)
    return {**result, "evidence_log": [*found.evidence_log, record]}


def note_join(state: State, branch: str, joined: Mapping[str, str]) -> State:
    """Return the state with a record of the branches that ended well, by path with their keys."""
    if not joined or State.evidence_log not in state:
        return state
    return state.added(evidence_log=[record_join(state.stage, branch, joined)])


def list_faults(state: State, branch: str = "") -> list[Fields]:
    """Return the faults of a question so far in a branch, "" the trunk; at most twenty."""
    if State.evidence_log not in state:
        return []
    return [_describe(fault) for fault in check_evidence(state, branch)[:_MOST_SHOWN]]


def report_faults(
    reply: Mapping[str, JsonValue],
    faults: Sequence[Fields],
    on_fault: OnFault = ignore_fault,
) -> dict[str, JsonValue]:
    """Return the reply with the faults that were found, which `on_fault` counts by kind."""
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


def _note(
    record: EvidenceRecord, work: Mapping[str, Sequence[EvidenceRecord]], known: _KnownEvidence
) -> None:
    for name, digest in record.wrote.items():
        known.write(record.branch, name, digest)
    for path in record.joined:
        roles = {evidence_record.role for evidence_record in work.get(path, ())} - {_MANAGER}
        known.join(record.branch, path, is_call=roles <= FINDERS)
    known.found |= {*record.found}
    known.models |= {*record.models}
    known.index = known.index or record.index


def _check_reads(record: EvidenceRecord, known: _KnownEvidence) -> Iterator[FoundFault]:
    for name, digest in record.read.items():
        versions = known.find(record.branch, name)
        if versions:
            yield from _compare(record.stage, name, digest, versions)
        elif name.startswith(_RETURNED):
            detail = "a result was read that no hop wrote"
            yield _make(FaultKind.SKIPPED_WORK, record.stage, name, detail)
    prefix = _READS_ALL.get(record.role)
    for name in known.list_names(record.branch, prefix) if prefix is not None else ():
        if name not in record.read:
            yield _make(FaultKind.LOST_RESULT, record.stage, name, "it was not read")


def _compare(stage: str, name: str, digest: str, versions: Sequence[str]) -> Iterator[FoundFault]:
    if digest == versions[-1]:
        return
    if not digest and name in HANDED_OVER:
        yield _make(FaultKind.LOST_RESULT, stage, name, "it was not there")
    elif not digest:
        yield _make(FaultKind.STALE_CONTEXT, stage, name, "it was read without what was written")
    elif digest in versions:
        yield _make(FaultKind.STALE_CONTEXT, stage, name, "an earlier version was read")
    elif count_items(digest) < count_items(versions[-1]):
        yield _make(FaultKind.LOST_RESULT, stage, name, "fewer items than were written")
    else:
        yield _make(FaultKind.ALTERED_RESULT, stage, name, "it is not as it was written")


def _check_work(record: EvidenceRecord) -> Iterator[FoundFault]:
    """Yield results without an execution, and executions without a result."""
    if record.role == _MANAGER:
        return
    results = {name for name in record.wrote if name.startswith(_RESULT)}
    done = {f"{_RESULT}{call_id}" for call_id in record.done}
    for name in sorted(results - done):
        detail = "a result without a record of its call"
        yield _make(FaultKind.SKIPPED_WORK, record.stage, name, detail)
    for name in sorted(done - results):
        yield _make(FaultKind.LOST_RESULT, record.stage, name, "the call was made")
    if record.role in FINDERS:
        calls = {name.removeprefix(_CALL) for name in record.read if name.startswith(_CALL)}
        for call_id in record.done if calls else ():
            if call_id not in calls:
                detail = "another call was made than the one that was sent"
                yield _make(FaultKind.STALE_CONTEXT, record.stage, f"{_CALL}{call_id}", detail)


def _check_sources(record: EvidenceRecord, known: _KnownEvidence) -> Iterator[FoundFault]:
    if EVERY_CHUNK in known.found:
        return
    for name in sorted({*record.cited} - COUNTED_SOURCES):
        if record.role == Role.GUARDRAILS and name.endswith(OWNERS_PAGE):
            # The owner cites a page in a verified answer; no search of this question found it.
            continue
        # The result of a tool is a source with the name of its call.
        result = f"{_RESULT}{name.removeprefix(TOOL_SOURCE)}"
        is_result = name.startswith(TOOL_SOURCE) and any(
            result in pieces for pieces in known.written.values()
        )
        whole = f"{name.rpartition('#')[0]}#{EVERY_CHUNK}"
        if known.found.isdisjoint({name, whole}) and not is_result and name != EVERY_CHUNK:
            yield _make(FaultKind.INVENTED_SOURCE, record.stage, name, "nothing returned it")


def _check_models(record: EvidenceRecord, known: _KnownEvidence) -> Iterator[FoundFault]:
    for requested, answered in record.foreign:
        detail = f"requested {requested!r}, answered by {answered!r}"
        yield _make(FaultKind.WRONG_MODEL, record.stage, requested, detail)
    for name in record.named:
        if name not in record.models and name not in known.models:
            detail = "its work is claimed, but it was not asked"
            yield _make(FaultKind.SKIPPED_WORK, record.stage, name, detail)


def _check_index(record: EvidenceRecord, known: _KnownEvidence) -> Iterator[FoundFault]:
    """Yield a hop that read another version of the index than the first one, such as the plan's."""
    if are_different_versions(known.index, record.index):
        detail = f"index version {record.index[:40]!r} was read, before it {known.index[:40]!r}"
        yield _make(FaultKind.STALE_CONTEXT, record.stage, record.branch or record.role, detail)


def _check_join(
    join: EvidenceRecord, work: Mapping[str, Sequence[EvidenceRecord]], known: _KnownEvidence
) -> Iterator[FoundFault]:
    """Yield branches that ended well without work, with other work, or without a result."""
    for path, key in join.joined.items():
        own = work.get(path, ())
        if not own:
            detail = "the branch ended well without a record of its work"
            yield _make(FaultKind.SKIPPED_WORK, join.stage, path, detail)
            continue
        orders = {name for record in own for name in record.read if name.startswith(_ORDERS)}
        if orders and not orders & {f"{kind}{key}" for kind in _ORDERS}:
            detail = "its branch worked on another one"
            yield _make(FaultKind.STALE_CONTEXT, join.stage, key, detail)
        elif orders and not known.written.get(path, {}).keys() & {f"{k}{key}" for k in _RETURNED}:
            yield _make(FaultKind.LOST_RESULT, join.stage, key, "its result did not arrive")


def _check_payload(state: State, known: _KnownEvidence, branch: str) -> Iterator[FoundFault]:
    """Yield evidence that is missing from the payload or differs from what was written last."""
    for name, digest in state.digest_evidence():
        versions = known.find(branch, name)
        if versions:
            yield from _compare(_MANAGER, name, digest, versions)
        elif name.startswith(_RETURNED):
            detail = "a result that no hop wrote"
            yield _make(FaultKind.SKIPPED_WORK, _MANAGER, name, detail)
    arrived = {_RESULT: state.multi_tool_results.keys(), _OUTPUT: state.worker_outputs.keys()}
    for prefix, there in arrived.items():
        for name in known.list_names(branch, prefix):
            if name.removeprefix(prefix) not in there:
                yield _make(FaultKind.LOST_RESULT, _MANAGER, name, "it did not arrive")


def _make(kind: FaultKind, stage: str, subject: str, detail: str) -> FoundFault:
    return FoundFault(kind=kind, stage=stage, subject=subject, detail=detail)


def _describe(fault: FoundFault) -> Fields:
    return {name: str(value) for name, value in fault.model_dump(mode="json").items() if value}
