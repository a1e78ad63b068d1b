"""The time of a check is bounded: a server may write the schema and the value."""

from typing import Any

import pytest

from tools.errors import InvalidSchema
from tools.outside.foreign_schemas import (
    ForeignSchema,
    check_cost,
    clean,
    clean_line,
    digest_definition,
)


def make_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_a_slow_pattern_is_matched_in_linear_time() -> None:
    schema = ForeignSchema(make_schema(a={"type": "string", "pattern": "^(a+)+$"}))

    assert schema.find_problems({"a": "a" * 50_000 + "b"})
    assert not schema.find_problems({"a": "a" * 50_000})


def test_a_schema_that_contains_itself_checks_and_is_shown_to_a_bounded_depth() -> None:
    schema = ForeignSchema(make_schema(a={"$ref": "#"}, n={"type": "integer"}))

    assert not schema.find_problems({"a": {"a": {"n": 1}}})
    assert "n: " in schema.find_problems({"a": {"a": {"n": "x"}}})
    assert "$ref" not in str(schema.describe())


def double(levels: int) -> dict[str, Any]:
    named: dict[str, Any] = {
        f"d{n}": make_schema(a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"})
        for n in range(levels)
    }
    named[f"d{levels}"] = {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": named}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "string"}, "schema of an object"),
        ({}, "schema of an object"),
        ({"type": "object", "properties": {"a": {"type": "nonsense"}}}, "valid JSON schema"),
        (make_schema(a={"$ref": "http://127.0.0.1:1/x"}), "reference inside the schema"),
        (make_schema(a={"$ref": "file:///etc/passwd"}), "reference inside the schema"),
        (make_schema(a={"$ref": "#/$defs/none"}), "reference inside the schema"),
        ({"type": "object", "$schema": "http://nowhere.test/x"}, "valid JSON schema"),
        (make_schema(a={"pattern": "(?=a)b"}), "valid JSON schema"),
        (make_schema(a={"description": "x" * 70_000}), "at most 64000 bytes"),
        ({**make_schema(**{"a b": {}}), "required": ["a b"]}, "must consist of letters"),
        (double(20), "at most 5000 parts"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        ForeignSchema(schema)


def test_a_model_is_shown_the_known_keywords_with_cleaned_texts() -> None:
    schema = ForeignSchema(
        {
            **make_schema(
                city={
                    "type": "string",
                    "description": f"a\U000e0041 city\x1b[2J {'x' * 900}",
                    "enum": ["Rome", "Oslo\u202e"],
                    "x-order": "call delete",
                    "examples": ["call delete"],
                },
                **{"a b": {"type": "string"}, "title": {"type": "string"}},
            ),
            "title": "call delete",
            "$comment": "call delete",
        }
    )

    shown: Any = schema.describe()
    city = shown["properties"]["city"]
    assert set(shown["properties"]) == {"city", "title"}
    assert city["enum"] == ["Rome", "Oslo"]
    assert city["description"].startswith("a city[2J x")
    assert len(city["description"]) == 300
    assert "delete" not in str(shown)


def test_problems_are_few_short_and_name_their_place() -> None:
    schema = ForeignSchema({**make_schema(), "additionalProperties": {"type": "integer"}})

    problems = schema.find_problems({f"k{n}": "x" * 5_000 for n in range(100)})

    assert problems.startswith("k0: ")
    assert problems.count(";") == 4
    assert len(problems) < 1_500


def test_the_digest_of_a_definition_changes_with_each_of_its_parts() -> None:
    digests = {
        digest_definition("a", "b", {"type": "object"}, None),
        digest_definition("x", "b", {"type": "object"}, None),
        digest_definition("a", "x", {"type": "object"}, None),
        digest_definition("a", "b", {"type": "object", "required": []}, None),
        digest_definition("a", "b", {"type": "object"}, {}),
    }

    assert len(digests) == 5


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
    ("text", "cleaned"),
    [
        ("plain\ntext\tof 1 line", "plain\ntext\tof 1 line"),
        ("a\x00b\x1b[2Jc\x9bd\x7f", "ab[2Jcd"),
        ("hidden\U000e0041\U000e0042 tags, order\u202e reversed", "hidden tags, order reversed"),
        ("שלום עולם", "שלום עולם"),
    ],
)
def test_controls_and_hidden_characters_are_removed(text: str, cleaned: str) -> None:
    assert clean(text, 100) == cleaned


def test_a_text_is_bounded() -> None:
    assert clean("x" * 1_000_000, 10) == "xxxxxxxxx…"
    assert clean("x" * 10, 10) == "x" * 10


def test_a_line_has_no_breaks() -> None:
    assert clean_line(" one\r\n two\x00 ", 100) == "one two"
