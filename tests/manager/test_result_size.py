import json

from pydantic import JsonValue

from manager.branches import bound_result, cut_text


def test_a_small_result_stays_as_it_is() -> None:
    result: dict[str, JsonValue] = {"status": "completed", "writes": {"text": "short"}}

    assert bound_result(result) is result


def test_long_texts_keep_their_beginning_and_their_end() -> None:
    text = "a" * 600_000 + "z" * 600_000

    cut = bound_result({"status": "completed", "writes": {"call": {"text": text, "id": 7}}})

    assert len(json.dumps(cut)) <= 32_000
    found = cut["writes"]["call"]["text"]  # type: ignore[index,call-overload]
    assert str(found).startswith("aaa")
    assert str(found).endswith("zzz")
    assert cut["cut"] is True
    assert cut["writes"]["call"]["id"] == 7  # type: ignore[index,call-overload]


def test_a_text_keeps_its_first_60_and_its_last_35_percent() -> None:
    cut = cut_text("x" * 700 + "y" * 300, 100)

    assert (cut.count("x"), cut.count("y")) == (60, 35)


def test_what_no_cut_makes_small_is_a_failure_that_says_so() -> None:
    bounded = bound_result({"status": "completed", "hops": 2, "writes": {"n": [1] * 100_000}})

    assert bounded["status"] == "failed"
    assert bounded["hops"] == 2
    assert "at most 32000 bytes" in str(bounded["reason"])
