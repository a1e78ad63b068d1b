import pytest
from pydantic import BaseModel, Field

from tools.calls import ToolCaller
from tools.catalog import ToolCatalog
from tools.schemas import get_tool_schema, inline_references
from tools.tool import Tool


class Span(BaseModel):
    """A part of a text."""

    start: int = 0


class Inputs(BaseModel, extra="forbid"):
    """Takes a span, and a field that is called as a keyword of schemas."""

    span: Span
    title: str = Field(description="of the page")


class Nested(Tool[Inputs, Inputs]):
    """Has an input with a part."""

    name = "nested"
    description = "Does nothing."
    inputs = Inputs
    output = Inputs

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Inputs:
        return inputs


def test_a_schema_has_no_references_and_keeps_its_fields() -> None:
    schema = get_tool_schema(ToolCatalog([Nested()]), "nested")

    assert schema == {
        "name": "nested",
        "description": "Does nothing.",
        "input_schema": {
            "type": "object",
            "description": Inputs.__doc__,
            "additionalProperties": False,
            "properties": {
                "span": {
                    "type": "object",
                    "description": Span.__doc__,
                    "properties": {"start": {"type": "integer", "default": 0}},
                },
                "title": {"type": "string", "description": "of the page"},
            },
            "required": ["span", "title"],
        },
    }


def test_every_builtin_tool_has_a_schema_that_describes_each_argument(catalog: ToolCatalog) -> None:
    for tool in catalog.select():
        schema = get_tool_schema(catalog, tool.name)

        assert schema is not None
        assert "$ref" not in str(schema)
        properties = schema["input_schema"]["properties"]  # type: ignore[index, call-overload]
        assert all("description" in str(one) for one in properties.values())  # type: ignore[union-attr]


def test_an_unknown_tool_has_no_schema(catalog: ToolCatalog) -> None:
    assert get_tool_schema(catalog, "invented") is None


def test_a_definition_that_contains_itself_is_refused() -> None:
    node = {"properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}

    with pytest.raises(ValueError, match="does not contain itself"):
        inline_references(schema)  # type: ignore[arg-type]
