from typing import Any

import pytest

from tools.errors import InvalidSchema
from tools.outside.foreign_schemas import ForeignSchema, digest_definition


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
        ({**make_schema(**{"a b": {}}), "required": ["a b"]}, "names of letters"),
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
