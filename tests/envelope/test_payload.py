from typing import Any

import pytest
from pydantic import JsonValue

from envelope.payload import MERGE_FUNCTIONS, MergeRule, merge_writes


@pytest.mark.parametrize(
    ("rule", "present", "written", "merged"),
    [
        (MergeRule.REPLACE, "a", "b", "b"),
        (MergeRule.APPEND, [1], [1, 2], [1, 1, 2]),
        (MergeRule.APPEND, None, [2], [2]),
        (MergeRule.APPEND, "a", "b", ["a", "b"]),
        (MergeRule.APPEND_UNIQUE, [1, {"a": 1}], [{"a": 1}, 2, 2], [1, {"a": 1}, 2]),
        (MergeRule.MERGE, {"a": {"x": 1, "y": 1}}, {"a": {"y": 2}, "b": 3},
         {"a": {"x": 1, "y": 2}, "b": 3}),
        (MergeRule.MERGE, {"a": {"x": 1}}, {"a": [2]}, {"a": [2]}),
        (MergeRule.MERGE, None, {"a": 1}, {"a": 1}),
    ],
)  # fmt: skip
def test_a_write_meets_the_present_value_by_its_rule(
    rule: MergeRule, present: Any, written: Any, merged: Any
) -> None:
    assert MERGE_FUNCTIONS[rule](present, written) == merged


def test_every_rule_has_a_function() -> None:
    assert set(MERGE_FUNCTIONS) == set(MergeRule)


RULES = {"found": MergeRule.MERGE, "seen": MergeRule.APPEND}


def test_only_attributes_with_a_rule_are_merged_and_nothing_is_changed_in_place() -> None:
    payload: dict[str, JsonValue] = {"found": {"a": 1}, "seen": [1], "text": "old"}

    merged = merge_writes(payload, {"found": {"b": 2}, "seen": [2], "text": "new"}, RULES)

    assert merged == {"found": {"a": 1, "b": 2}, "seen": [1, 2], "text": "new"}
    assert payload == {"found": {"a": 1}, "seen": [1], "text": "old"}
