"""Describes tools to models: the plain form, and the forms of OpenAI, Google and Anthropic."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import JsonValue

from llm.port import ToolDescription
from tools.catalog import ToolCatalog
from tools.tool import Tool

Node = dict[str, JsonValue]
_DROPPED = frozenset({"title"})


def get_tool_schema(catalog: ToolCatalog, name: str) -> Node | None:
    """Return `{name, description, input_schema}` of a tool, or None when there is none."""
    tool = catalog.find(name)
    return None if tool is None else _make_plain(describe_tool(tool))


def describe_tool(tool: Tool[Any, Any]) -> ToolDescription:
    """Return the description of a tool for a model."""
    schema = inline_references(tool.describe_inputs())
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    schema.setdefault("required", [])
    return ToolDescription(name=tool.name, description=tool.description, input_schema=schema)


def describe_tools(tools: Iterable[Tool[Any, Any]]) -> tuple[ToolDescription, ...]:
    """Return the descriptions of tools for a model."""
    return tuple(describe_tool(tool) for tool in tools)


def inline_references(schema: Mapping[str, JsonValue]) -> Node:
    """Return a schema without titles, in which every reference is replaced by its definition.

    Raises `ValueError` for a definition that contains itself: a tool has no such input.
    """
    definitions = cast("Mapping[str, Node]", schema.get("$defs", {}))
    own = {key: value for key, value in schema.items() if key != "$defs"}
    return cast("Node", _inline(own, definitions, ()))


def _inline(
    value: JsonValue, definitions: Mapping[str, Node], inside: tuple[str, ...]
) -> JsonValue:
    if isinstance(value, list):
        return [_inline(one, definitions, inside) for one in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in inside:
            raise ValueError(f"expected an input that does not contain itself, found {name!r}")
        further = {key: one for key, one in value.items() if key != "$ref"}
        return _inline({**definitions[name], **further}, definitions, (*inside, name))
    return {
        # A property may be named "title": only the keyword of a schema is left out.
        key: _inline_properties(one, definitions, inside)
        if key == "properties" and isinstance(one, dict)
        else _inline(one, definitions, inside)
        for key, one in value.items()
        if key not in _DROPPED
    }


def _inline_properties(
    properties: Node, definitions: Mapping[str, Node], inside: tuple[str, ...]
) -> JsonValue:
    return {name: _inline(one, definitions, inside) for name, one in properties.items()}


def _make_plain(tool: ToolDescription) -> Node:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.input_schema),
    }
