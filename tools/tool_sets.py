"""Tool sets: tools of a TOML file, each another tool with a name and fixed arguments.

```toml
[penalty_lookup]
tool = "search"
description = "Finds the penalties for a breach."
aliases = ["penalties"]

[penalty_lookup.fixed]        # arguments that the caller does not choose
limit = 3

[penalty_lookup.templates]    # arguments that are put into a text; {} is the caller's argument
query = "penalty fine sanction {}"
```
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from tools.calls import CitedPassage, QuotedPassage, ToolCaller
from tools.catalog import ToolCatalog
from tools.errors import InvalidInput, InvalidToolSet
from tools.tool import Tool

_PLACEHOLDER = "{}"


class ToolSetEntry(BaseModel, frozen=True, extra="forbid"):
    """One tool of a set."""

    tool: str
    description: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    fixed: dict[str, JsonValue] = Field(default_factory=dict)
    templates: dict[str, str] = Field(default_factory=dict)


_SET = TypeAdapter(dict[str, ToolSetEntry])


class NamedTool(Tool[BaseModel, BaseModel]):
    """A tool under another name, with arguments that the caller does not choose."""

    def __init__(self, name: str, entry: ToolSetEntry, tool: Tool[Any, Any]) -> None:
        self.name = name
        self.aliases = entry.aliases
        self.description = entry.description
        self.effect = tool.effect
        self.timeout_seconds = tool.timeout_seconds
        self.is_source = tool.is_source
        self.most_cost_micros = tool.most_cost_micros
        self.inputs = tool.inputs
        self.output = tool.output
        self._entry = entry
        self._tool = tool

    def read_inputs(self, arguments: JsonValue) -> BaseModel:
        if not isinstance(arguments, dict):
            raise InvalidInput(f"expected an object of arguments, found {arguments!r:.80}")
        chosen = self._entry.fixed.keys() & arguments.keys()
        if chosen:
            raise InvalidInput(f"expected no argument {min(chosen)!r}: this tool fixes it")
        worded = {
            name: template.replace(_PLACEHOLDER, value)
            for name, template in self._entry.templates.items()
            if isinstance(value := arguments.get(name), str)
        }
        inputs: BaseModel = self._tool.read_inputs({**arguments, **worded, **self._entry.fixed})
        return inputs

    def describe_inputs(self) -> dict[str, JsonValue]:
        schema = dict(self._tool.describe_inputs())
        properties, required = schema.get("properties"), schema.get("required")
        if isinstance(properties, dict):
            free = {name: one for name, one in properties.items() if name not in self._entry.fixed}
            schema["properties"] = free
        if isinstance(required, list):
            schema["required"] = [name for name in required if name not in self._entry.fixed]
        return schema

    async def run(self, inputs: BaseModel, caller: ToolCaller) -> BaseModel:
        output: BaseModel = await self._tool.run(inputs, caller)
        return output

    def render(self, output: BaseModel) -> str:
        return self._tool.render(output)

    def cite(self, output: BaseModel) -> Iterable[CitedPassage]:
        return self._tool.cite(output)

    def quote(self, output: BaseModel) -> Iterable[QuotedPassage]:
        return self._tool.quote(output)


def load_tool_set(path: Path, catalog: ToolCatalog) -> list[NamedTool]:
    """Return the tools of a file; raises `InvalidToolSet`."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidToolSet(f"expected a tool set in {path.name!r}, found {error}") from error
    return make_tool_set(content, catalog, path.name)


def make_tool_set(content: Mapping[str, Any], catalog: ToolCatalog, source: str) -> list[NamedTool]:
    """Return the tools of the content of a file; raises `InvalidToolSet`."""
    try:
        entries = _SET.validate_python(dict(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidToolSet(f"{source}: {place}: {first['msg']}") from error
    return [_make_tool(name, entry, catalog, source) for name, entry in entries.items()]


def _make_tool(name: str, entry: ToolSetEntry, catalog: ToolCatalog, source: str) -> NamedTool:
    tool = catalog.find(entry.tool)
    if tool is None:
        known = ", ".join(catalog.names())
        raise InvalidToolSet(
            f"{source}: {name}.tool: expected one of {known}, found {entry.tool!r}"
        )
    if catalog.find(name) is not None:
        raise InvalidToolSet(f"{source}: expected a name that no other tool has, found {name!r}")
    arguments = tool.describe_inputs().get("properties")
    for argument in (*entry.fixed, *entry.templates):
        # A tool of a server that is away has no arguments yet: they are checked at each call.
        if isinstance(arguments, dict) and argument not in arguments:
            known = ", ".join(arguments)
            raise InvalidToolSet(f"{source}: {name}: expected one of {known}, found {argument!r}")
    return NamedTool(name, entry, tool)
