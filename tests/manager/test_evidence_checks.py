"""What the records of hops show, and what they do not."""

import json

import pytest
from pydantic import JsonValue

from envelope.evidence import (
    MOST_RECORDS,
    name_index_version,
    record_hop,
    record_join,
)
from manager import evidence_checks
from manager.state import State

CALLS: list[JsonValue] = [
    {"call_id": "r1-1", "tool": "search"},
    {"call_id": "r1-2", "tool": "lookup"},
]
Payload = dict[str, JsonValue]


def check_evidence(payload: Payload, branch: str = "") -> tuple[evidence_checks.EvidenceFault, ...]:
    return evidence_checks.check_evidence(State(payload), branch)


def make_result(call_id: str) -> Payload:
    passage: Payload = {"citation": {"chunk_id": f"{call_id}#0"}, "text": "found"}
    return {"call_id": call_id, "quoted": [passage]}


def make_clean() -> Payload:
    """A round of two calls, combined and answered."""
    results: Payload = {name: make_result(name) for name in ("r1-1", "r1-2")}
    log = [record_hop("reason", "reason", "", {"multi_tool_results": None}, {"tool_calls": CALLS})]
    for path, call in zip(("t0", "t1"), CALLS, strict=True):
        assert isinstance(call, dict)
        name = str(call["call_id"])
        wrote: Payload = {
            "multi_tool_results": {name: results[name]},
            "tool_executions": [{"call_id": name}],
        }
        log.append(record_hop("act", "tool", path, {"tool_call": call}, wrote))
    log.append(record_join("results", "", {"t0": "r1-1", "t1": "r1-2"}))
    references: list[JsonValue] = [{"number": 1, "chunk_id": "r1-1#0"}]
    reflected: Payload = {"source_references": references, "search_context": "found"}
    log.append(record_hop("reflect", "reflect", "", {"multi_tool_results": results}, reflected))
    models = [("small@vendor", "")]
    answer: Payload = {
        "response": "It is [1].", "sources_used": references, "answer_model": "small@vendor",
    }  # fmt: skip
    log.append(record_hop("write", "response", "", reflected, answer, models))
    return {"evidence_log": [*log], "multi_tool_results": results, **reflected, **answer}


def kinds(payload: Payload) -> set[str]:
    return {fault.kind.value for fault in check_evidence(payload)}


def change_record(payload: Payload, number: int, **changes: JsonValue) -> Payload:
    log = payload["evidence_log"]
    assert isinstance(log, list)
    record = log[number]
    assert isinstance(record, dict)
    changed = [*log[:number], {**record, **changes}, *log[number + 1 :]]
    return {**payload, "evidence_log": changed}


def test_a_clean_run_has_no_fault_also_after_its_payload_was_encoded() -> None:
    payload = make_clean()

    assert check_evidence(payload) == ()
    assert check_evidence(json.loads(json.dumps(payload))) == ()
    assert check_evidence({}) == ()


def test_a_result_that_is_gone_or_changed_in_the_payload_is_named() -> None:
    payload = make_clean()
    changed: Payload = {"r1-1": make_result("r1-1"), "r1-2": {"text": "another"}}

    assert kinds({**payload, "multi_tool_results": {"r1-1": make_result("r1-1")}}) == {
        "lost_result"
    }
    assert kinds({**payload, "multi_tool_results": changed}) == {"altered_result"}
    assert kinds({**payload, "search_context": "something else"}) == {"altered_result"}


@pytest.mark.parametrize(
    ("number", "changes", "kind"),
    [
        (4, {"read": {"result/r1-1": "0"}}, "lost_result"),
        (5, {"read": {"search_context": ""}}, "stale_context"),
        (5, {"read": {"search_context": "0"}}, "altered_result"),
        (5, {"cited": ["invented#1"]}, "invented_source"),
        (5, {"foreign": [["small@vendor", "cheap"]]}, "wrong_model"),
        (5, {"named": ["large@vendor"]}, "skipped_work"),
        (1, {"done": []}, "skipped_work"),
        (1, {"wrote": {}}, "lost_result"),
        (1, {"read": {"call/r1-2": "0"}}, "stale_context"),
        (3, {"joined": {"t7": "r1-7"}}, "skipped_work"),
    ],
)
def test_a_fault_in_a_record_is_found_under_its_name(
    number: int, changes: dict[str, JsonValue], kind: str
) -> None:
    assert kind in kinds(change_record(make_clean(), number, **changes))


def test_the_result_of_a_tool_is_a_source_and_an_earlier_model_may_be_named() -> None:
    payload = change_record(make_clean(), 5, cited=["tool:r1-1"])
    later = record_hop("assess", "assess", "", {}, {"answer_model": "small@vendor"})
    log = payload["evidence_log"]
    assert isinstance(log, list)

    assert check_evidence({**payload, "evidence_log": [*log, later]}) == ()
    assert kinds(change_record(payload, 5, cited=["tool:r9-9"])) == {"invented_source"}


def test_a_list_that_lost_an_item_is_a_lost_result() -> None:
    payload = make_clean()
    two: list[JsonValue] = [
        {"number": 1, "chunk_id": "r1-1#0"},
        {"number": 2, "chunk_id": "r1-2#0"},
    ]
    wrote = record_hop("reflect", "reflect", "", {}, {"source_references": two})
    read = record_hop("write", "response", "", {"source_references": two[:1]}, {})
    log = payload["evidence_log"]
    assert isinstance(log, list)

    faults = check_evidence({"evidence_log": [*log[:4], wrote, read]})

    assert {fault.kind.value for fault in faults if fault.stage == "write"} == {"lost_result"}


def make_index_log(plan: str, worker: str) -> Payload:
    """A plan and the call of one of its workers, which read these versions of the index."""
    planned = record_hop("plan", "plan", "", {}, {"swarm_plan": {"workers": []}}, index=plan)
    called = record_hop("act", "tool", "w0/t0", {"tool_call": CALLS[0]}, {}, index=worker)
    return {"evidence_log": [planned, called]}


def test_a_worker_that_reads_another_version_of_the_index_than_the_plan_is_found() -> None:
    [fault] = check_evidence(make_index_log("v1", "v2"))

    assert (fault.kind.value, fault.subject) == ("stale_context", "w0/t0")
    assert "'v2'" in fault.detail
    assert "'v1'" in fault.detail


def test_versions_that_two_processes_count_are_not_compared() -> None:
    first, other = (name_index_version("1", counted_by=process) for process in ("a", "b"))

    assert check_evidence(make_index_log("v1", "v1")) == ()
    assert check_evidence(make_index_log(first, other)) == ()
    assert check_evidence(make_index_log("v1", "")) == ()
    assert kinds(make_index_log(first, name_index_version("2", counted_by="a"))) == {
        "stale_context"
    }


def test_a_hop_without_evidence_and_without_a_model_leaves_no_record() -> None:
    assert record_hop("lang", "lang", "", {}, {"language": "en"}) == {}


def test_records_of_a_later_version_and_a_full_log_raise_no_alarm() -> None:
    payload = make_clean()
    log = payload["evidence_log"]
    assert isinstance(log, list)
    later: Payload = {"stage": "write", "role": "response", "new_field": 1}
    full: Payload = {"evidence_log": [*log] + [log[0]] * MOST_RECORDS, "response": "not recorded"}

    assert check_evidence({**payload, "evidence_log": [*log, later]}) == ()
    assert "altered_result" not in kinds(full)


def test_a_branch_is_checked_against_its_joined_results() -> None:
    result = make_result("r1-1")
    call: Payload = {"call_id": "r1-1", "tool": "search"}
    wrote: Payload = {
        "multi_tool_results": {"r1-1": result},
        "tool_executions": [{"call_id": "r1-1"}],
    }
    log = [
        record_hop("reason", "reason", "m1", {"multi_tool_results": None}, {"tool_calls": [call]}),
        record_hop("act", "tool", "m1/t0", {"tool_call": call}, wrote),
        record_join("results", "m1", {"m1/t0": "r1-1"}),
    ]
    whole: Payload = {"evidence_log": [*log], "multi_tool_results": {"r1-1": result}}

    assert check_evidence(whole, "m1") == ()
    [lost] = check_evidence({"evidence_log": [*log], "multi_tool_results": {}}, "m1")
    assert (lost.kind.value, lost.subject) == ("lost_result", "result/r1-1")
