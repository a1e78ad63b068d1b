"""Finds six faults in the reports of stages, from receipts that others wrote.

- *lost result*: work has a receipt, or was expected, and no stage used or named it as missing;
- *altered result*: a stage used a result whose digest is not that of the receipt;
- *invented source*: a stage cites a chunk that no tool returned and no document was read for;
- *wrong model*: another model answered than the one that was requested;
- *skipped work*: a stage claims work without a receipt;
- *stale context*: a stage read another version of the payload than it was sent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from pydantic import BaseModel

from swarm.integrity.records import ReceiptKind, StageReport, WorkReceipt

ANY_MODEL = "*"
"""The alias of a model behind a server that answers with names of its choice."""


class FaultKind(StrEnum):
    """The faults that are looked for."""

    LOST_RESULT = "lost_result"
    ALTERED_RESULT = "altered_result"
    INVENTED_SOURCE = "invented_source"
    WRONG_MODEL = "wrong_model"
    SKIPPED_WORK = "skipped_work"
    STALE_CONTEXT = "stale_context"


class FoundFault(BaseModel, frozen=True, extra="forbid"):
    """One fault; `subject` is the id of the work or of the source."""

    kind: FaultKind
    stage: str
    subject: str
    detail: str = ""


def find_faults(
    reports: Sequence[StageReport],
    receipts: Iterable[WorkReceipt],
    *,
    known_sources: Iterable[str] = (),
    aliases: Mapping[str, str] | None = None,
) -> tuple[FoundFault, ...]:
    """Return the faults of a run, in the order of its stages.

    `known_sources` are chunks that earlier turns of the conversation showed. `aliases` are names of
    one model: a vendor answers with the dated name of the model that was requested.
    """
    by_id = {one.work_id: one for one in receipts}
    sources = {*known_sources, *(name for one in by_id.values() for name in one.sources)}
    found: list[FoundFault] = []
    for report in reports:
        found += _find_lost(report, by_id, reports)
        found += _find_altered(report, by_id)
        found += _find_invented(report, sources)
        found += _find_skipped(report, by_id)
        found += _find_stale(report)
    found += _find_wrong_models(by_id.values(), aliases or {})
    return tuple(dict.fromkeys(found))


def is_same_model(requested: str, answered_by: str, aliases: Mapping[str, str]) -> bool:
    """Return whether two names are those of one model; an alias may be followed by a date."""
    if not requested or not answered_by:
        return requested == answered_by
    if aliases.get(requested) == ANY_MODEL or aliases.get(requested.partition("@")[0]) == ANY_MODEL:
        return True
    bare = [name.partition("@")[0].rpartition("/")[2] for name in (requested, answered_by)]
    wanted, got = (aliases.get(name, name).rpartition("/")[2].casefold() for name in bare)
    wanted = wanted.removesuffix("-latest")
    rest = got.removeprefix(wanted)
    is_dated = rest != got and rest.lstrip("-@:").replace("-", "").isdigit() and len(rest) > 6
    return wanted == got or is_dated


def _find_lost(
    report: StageReport, by_id: Mapping[str, WorkReceipt], reports: Sequence[StageReport]
) -> Iterator[FoundFault]:
    """Yield work whose result should be there; a later stage need not use it again."""
    accounted = {*report.used, *report.missing}
    for work_id in report.expected:
        if work_id not in accounted:
            has_receipt = work_id in by_id
            detail = "it has a receipt" if has_receipt else "it has no receipt and is not named"
            yield FoundFault(
                kind=FaultKind.LOST_RESULT, stage=report.stage, subject=work_id, detail=detail
            )
    is_last = report is reports[-1]
    used = {work_id for one in reports for work_id in (*one.used, *one.missing, *one.expected)}
    for work_id in by_id if is_last else ():
        if work_id not in used and by_id[work_id].kind is not ReceiptKind.MODEL:
            detail = "no stage expected or used it"
            yield FoundFault(
                kind=FaultKind.LOST_RESULT,
                stage=by_id[work_id].stage,
                subject=work_id,
                detail=detail,
            )


def _find_altered(report: StageReport, by_id: Mapping[str, WorkReceipt]) -> Iterator[FoundFault]:
    for work_id, digest in report.used.items():
        receipt = by_id.get(work_id)
        if receipt is not None and receipt.digest != digest:
            yield FoundFault(kind=FaultKind.ALTERED_RESULT, stage=report.stage, subject=work_id)


def _find_invented(report: StageReport, sources: set[str]) -> Iterator[FoundFault]:
    for chunk_id in report.cited:
        if chunk_id not in sources:
            yield FoundFault(kind=FaultKind.INVENTED_SOURCE, stage=report.stage, subject=chunk_id)


def _find_skipped(report: StageReport, by_id: Mapping[str, WorkReceipt]) -> Iterator[FoundFault]:
    for work_id in (*report.claimed, *report.used):
        if work_id not in by_id:
            yield FoundFault(kind=FaultKind.SKIPPED_WORK, stage=report.stage, subject=work_id)


def _find_stale(report: StageReport) -> Iterator[FoundFault]:
    if report.context_version != report.expected_version:
        detail = f"read version {report.context_version}, was sent {report.expected_version}"
        yield FoundFault(
            kind=FaultKind.STALE_CONTEXT, stage=report.stage, subject=report.stage, detail=detail
        )


def _find_wrong_models(
    receipts: Iterable[WorkReceipt], aliases: Mapping[str, str]
) -> Iterator[FoundFault]:
    for receipt in receipts:
        is_model = receipt.kind is ReceiptKind.MODEL
        if is_model and not is_same_model(receipt.requested, receipt.answered_by, aliases):
            detail = f"requested {receipt.requested!r}, answered by {receipt.answered_by!r}"
            yield FoundFault(
                kind=FaultKind.WRONG_MODEL,
                stage=receipt.stage,
                subject=receipt.work_id,
                detail=detail,
            )
