"""Six faults, planted at every stage of the four ways, are found; clean runs raise no alarm."""

import random
from collections.abc import Callable

import pytest
from pydantic import JsonValue

from swarm.integrity.fault_checks import FaultKind, find_faults, is_same_model
from swarm.integrity.records import (
    ReceiptKind,
    StageReport,
    WorkReceipt,
    compute_digest,
    digest_results,
    write_receipt,
)

WAYS = {
    "search": ("search", "response", "quality"),
    "tools": ("reason", "act", "reflect", "assess"),
    "specialists": ("extractor", "compliance", "report_generator", "synthesis"),
    "swarm": ("plan", "work", "synthesize", "judge"),
}
Run = tuple[list[StageReport], list[WorkReceipt]]


def make_run(way: str, seed: int) -> Run:
    """Return a clean run: each stage calls a model and tools, and uses what the last one wrote."""
    chance = random.Random(f"{way} {seed}")
    receipts: list[WorkReceipt] = []
    reports: list[StageReport] = []
    before: dict[str, str] = {}
    cited: tuple[str, ...] = ()
    for version, stage in enumerate(WAYS[way], start=1):
        made: dict[str, str] = {}
        for number in range(chance.randint(1, 3)):
            work_id = f"{stage}/t{number}"
            result: JsonValue = {"text": f"result {chance.random()}", "order": [number]}
            sources = (f"doc{chance.randint(0, 99)}#0",)
            receipt = write_receipt(work_id, ReceiptKind.TOOL, stage, result, sources=sources)
            receipts.append(receipt)
            made |= digest_results({work_id: result})
            cited = (*cited, *sources)
        model = ("small-model", "small-model-2026-01-01")
        model_id = f"{stage}/model"
        receipts.append(write_receipt(model_id, ReceiptKind.MODEL, stage, "text", models=model))
        reports.append(
            StageReport(
                stage=stage,
                claimed=(*made, model_id),
                used={**before, **made},
                expected=tuple(before),
                cited=cited,
                context_version=version,
                expected_version=version,
            )
        )
        before = made
    return reports, receipts


def lose(run: Run, at: int) -> Run:
    reports, receipts = run
    lost = next(iter(reports[at].used))
    used = {name: digest for name, digest in reports[at].used.items() if name != lost}
    later = [
        one.model_copy(update={"used": {k: v for k, v in one.used.items() if k != lost}})
        for one in reports
    ]
    later[at] = reports[at].model_copy(update={"used": used})
    return later, receipts


def alter(run: Run, at: int) -> Run:
    reports, receipts = run
    name = next(iter(reports[at].used))
    used = {**reports[at].used, name: compute_digest("another text")}
    reports[at] = reports[at].model_copy(update={"used": used})
    return reports, receipts


def invent(run: Run, at: int) -> Run:
    reports, receipts = run
    cited = (*reports[at].cited, "invented#7")
    reports[at] = reports[at].model_copy(update={"cited": cited})
    return reports, receipts


def exchange_model(run: Run, at: int) -> Run:
    reports, receipts = run
    model_id = f"{reports[at].stage}/model"
    return reports, [
        one.model_copy(update={"answered_by": "cheap-model"}) if one.work_id == model_id else one
        for one in receipts
    ]


def skip(run: Run, at: int) -> Run:
    reports, receipts = run
    skipped = next(name for name in reports[at].claimed if name.startswith(reports[at].stage))
    return reports, [one for one in receipts if one.work_id != skipped]


def make_stale(run: Run, at: int) -> Run:
    reports, receipts = run
    reports[at] = reports[at].model_copy(update={"context_version": at})
    return reports, receipts


PLANTED: dict[FaultKind, Callable[[Run, int], Run]] = {
    FaultKind.LOST_RESULT: lose,
    FaultKind.ALTERED_RESULT: alter,
    FaultKind.INVENTED_SOURCE: invent,
    FaultKind.WRONG_MODEL: exchange_model,
    FaultKind.SKIPPED_WORK: skip,
    FaultKind.STALE_CONTEXT: make_stale,
}
PLACES = [(way, at) for way, stages in WAYS.items() for at in range(len(stages))]


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_fault_is_found_at_every_stage_of_every_way(kind: FaultKind) -> None:
    found = [
        kind in {fault.kind for fault in find_faults(*PLANTED[kind](make_run(way, seed), at))}
        for way, at in PLACES
        for seed in range(10)
    ]

    assert sum(found) / len(found) >= 0.95


def test_clean_runs_raise_no_alarm() -> None:
    alarms = [find_faults(*make_run(way, seed)) for way in WAYS for seed in range(100)]

    assert [one for one in alarms if one] == []


def test_work_that_is_named_as_missing_is_not_lost() -> None:
    report = StageReport(stage="synthesize", expected=("w1",), missing=("w1",))

    assert find_faults([report], []) == ()


def test_a_result_that_nobody_expected_or_used_is_lost() -> None:
    receipt = write_receipt("w9", ReceiptKind.WORKER, "work", {"text": "found"})

    faults = find_faults([StageReport(stage="synthesize")], [receipt])

    assert [(one.kind, one.subject) for one in faults] == [(FaultKind.LOST_RESULT, "w9")]


def test_a_source_of_an_earlier_turn_is_not_invented() -> None:
    report = StageReport(stage="response", cited=("earlier#1",))

    assert find_faults([report], [], known_sources=["earlier#1"]) == ()


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert compute_digest({"a": 1, "b": [2]}) == compute_digest({"b": [2], "a": 1})
    assert compute_digest({"a": 1}) != compute_digest({"a": 2})


@pytest.mark.parametrize(
    ("requested", "answered_by", "same"),
    [
        ("small@openai", "small-2026-01-01", True),
        ("small", "small-mini", False),
        ("models/big", "big-20260101", True),
        ("alias", "big", True),
        ("", "big", False),
    ],
)
def test_a_dated_name_is_the_same_model(requested: str, answered_by: str, *, same: bool) -> None:
    assert is_same_model(requested, answered_by, {"alias": "big"}) is same
