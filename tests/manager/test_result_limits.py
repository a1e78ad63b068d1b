"""What a branch returns when it is large: whole texts, and the passages that there is room for."""

from typing import Any

from pydantic import JsonValue

from envelope.encoding import to_json
from manager.result_limits import LARGEST_LOGS, LARGEST_PASSAGES, limit_result
from manager.state import Json


def make_result(**writes: JsonValue) -> Json:
    return {"status": "completed", "hops": 2, "writes": writes}


def make_passages(count: int, characters: int = 2_000) -> list[JsonValue]:
    return [{"text": f"{number:03}" + "p" * characters} for number in range(count)]


def measure(value: JsonValue) -> int:
    return len(to_json(value))


def test_a_result_within_the_limits_is_unchanged() -> None:
    result = make_result(response="short")

    assert limit_result(result) is result


def test_a_requested_page_is_returned_whole_beside_many_passages() -> None:
    page = "".join(f"POST /v1/orders/{number} returns 201. " for number in range(300))
    read: Json = {"text": page, "quoted": make_passages(60)}

    limited: Any = limit_result(make_result(multi_tool_results={"r1": read}))

    assert limited["writes"]["multi_tool_results"]["r1"]["text"] == page


def test_the_last_passages_are_dropped_and_counted() -> None:
    report = "The limit is 40 requests. " * 300
    output: JsonValue = {"text": report, "passages": make_passages(60)}

    limited: Any = limit_result(make_result(worker_outputs={"w0": output}))

    kept = limited["writes"]["worker_outputs"]["w0"]
    passages = kept["passages"]
    assert kept["text"] == report
    assert passages == make_passages(60)[: len(passages)]
    assert LARGEST_PASSAGES - 2_100 < measure(passages) <= LARGEST_PASSAGES
    assert limited["left_out"] == {"passages": 60 - len(passages)}


def test_the_largest_list_of_passages_gives_way_first() -> None:
    results: Json = {"r1": {"quoted": make_passages(3)}, "r2": {"quoted": make_passages(60)}}

    limited: Any = limit_result(make_result(multi_tool_results=results))

    kept = limited["writes"]["multi_tool_results"]
    assert len(kept["r1"]["quoted"]) == 3


def test_logs_use_up_no_room_of_texts_and_passages() -> None:
    records: list[JsonValue] = [{"read": "d" * 1_000} for _ in range(200)]
    writes: Json = {"response": "r" * 60_000, "passages": make_passages(20)}

    limited: Any = limit_result({**make_result(**writes), "evidence_log": records})

    kept = limited["evidence_log"]
    assert limited["writes"] == writes
    assert LARGEST_LOGS - 1_100 < measure(kept) <= LARGEST_LOGS
    assert limited["left_out"] == {"records": 200 - len(kept)}


def test_a_typed_copy_of_a_text_is_dropped_before_a_result_fails() -> None:
    result = make_result(
        multi_tool_results={
            f"r{number}": {"text": "t" * 12_000, "data": {"body": "d" * 30_000}}
            for number in range(4)
        }
    )

    limited: Any = limit_result(result)

    results = limited["writes"]["multi_tool_results"]
    assert results["r3"] == {"text": "t" * 12_000, "data": None}
    assert limited["left_out"] == {"copies": 4}


def test_a_text_that_is_too_large_becomes_a_failure_with_the_reason() -> None:
    limited: Any = limit_result(
        {**make_result(response="x" * 200_000), "evidence_log": [{"read": "d"}]}
    )

    assert (limited["status"], limited["hops"], limited["writes"]) == ("failed", 2, {})
    assert "at most 128,000 bytes" in str(limited["reason"])
    assert limited["evidence_log"] == [{"read": "d"}]


def test_the_given_result_is_not_changed() -> None:
    result = make_result(worker_outputs={"w0": {"text": "t", "passages": make_passages(60)}})

    before = measure(result)
    limit_result(result)

    assert measure(result) == before
