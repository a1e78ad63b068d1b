"""The time of a check is bounded: a server may write the schema and the value."""

from typing import Any

import pytest

from tools.errors import InvalidSchema
from tools.outside.foreign_schemas import ForeignSchema
from tools.outside.schema_cost import check_cost, find_target

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}},
}


def test_a_schema_that_contains_itself_without_alternatives_is_checked() -> None:
    check_cost(TREE)

    assert ForeignSchema(TREE).find_problems({"child": {"child": {"n": "x"}}})


@pytest.mark.parametrize(
    "part",
    [
        {"anyOf": [{"$ref": "#"}, {"$ref": "#", "minProperties": 0}]},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"not": {"$ref": "#"}}},
        {"type": "object", "patternProperties": {"a": {"$ref": "#"}, "a?": {"$ref": "#"}}},
        {"type": "object", "properties": {"definitions": {"oneOf": [{"$ref": "#"}]}}},
    ],
)
def test_a_schema_that_contains_itself_among_alternatives_is_refused(part: Any) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": part}}

    with pytest.raises(InvalidSchema, match="in a schema that contains itself"):
        check_cost(schema)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "$id": "x"}, "found \\$id"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, "found \\$dynamicRef"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "reference inside the schema"),
        ({"allOf": [{"type": "object"}] * 5_000}, "at most 5000 parts"),
    ],
)
def test_a_schema_of_unknown_cost_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        check_cost(schema)


def test_alternatives_and_properties_of_any_name_are_allowed_without_recursion() -> None:
    check_cost(
        {
            "type": "object",
            "properties": {"id": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/id"}]}},
            "$defs": {"id": {"type": "string", "default": {"$ref": "data"}}},
        }
    )


@pytest.mark.parametrize(
    ("reference", "target"),
    [("#", TREE), ("#/properties/n", {"type": "integer"}), ("#/none", None), ("x", None)],
)
def test_references_lead_to_parts_of_the_schema_only(reference: str, target: object) -> None:
    assert find_target(TREE, reference) == target
