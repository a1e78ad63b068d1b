"""A tool under another name, with arguments that the caller does not choose."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, Field, JsonValue

from tools.calls import CitedPassage, QuotedPassage, ToolCaller
from tools.errors import InvalidInput
from tools.tool import Tool

_PLACEHOLDER = "{}"


class ToolSetEntry(BaseModel, frozen=True, extra="forbid"):
    """One tool of a set."""

    tool: str
    description: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    fixed: dict[str, JsonValue] = Field(default_factory=dict)
    templates: dict[str, str] = Field(default_factory=dict)


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
        self.base = tool.name
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
