"""The tools of an assistant by name: those below `tools/builtin`, and further ones.

A tool is found by its module alone: a new file below `tools/builtin` is a new tool.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import isabstract, isclass
from pkgutil import walk_packages
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, Field, JsonValue

from tools.calls import CitedPassage, QuotedPassage, ToolCaller
from tools.errors import InvalidInput
from tools.tool import Tool, ToolParts

_LONGEST_COMPARED = 100


class ToolCatalog:
    """Tools by their names and aliases; raises `ValueError` when two tools have the same name.

    `combinations` are names of tools that are often called together, by purpose. A name among the
    presets of a tool is a tool of its own for those who call it.
    """

    def __init__(
        self,
        tools: Iterable[Tool[Any, Any]],
        combinations: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self.combinations = combinations
        self._tools: dict[str, Tool[Any, Any]] = {}
        self._canonical: dict[str, str] = {}
        self._presets: dict[str, Tool[Any, Any]] = {}
        for tool in tools:
            self._tools[tool.name] = tool
            self._add_names(tool)
            for name, fixed in tool.presets.items():
                entry = ToolSetEntry(
                    tool=tool.name, description=tool.description, fixed=dict(fixed)
                )
                self._presets[name] = NamedTool(name, entry, tool)
                self._add_names(self._presets[name])

    def _add_names(self, tool: Tool[Any, Any]) -> None:
        for name in (tool.name, *tool.aliases):
            if name in self._canonical:
                raise ValueError(f"expected one tool named {name!r}, found two")
            self._canonical[name] = tool.name

    def find(self, name: str) -> Tool[Any, Any] | None:
        """Return the tool of a name or alias; None when there is none."""
        canonical = self._canonical.get(name, "")
        return self._tools.get(canonical) or self._presets.get(canonical)

    def names(self, allowed: Collection[str] | None = None) -> list[str]:
        """Return the names, without aliases, of all tools or of those that are allowed.

        A name that fixes arguments of a tool is listed only where it is allowed by itself.
        """
        if allowed is None:
            return list(self._tools)
        return [name for name in (*self._tools, *self._presets) if name in allowed]

    def find_nearest(self, name: str, allowed: Collection[str] | None = None) -> str | None:
        """Return the existing tool whose name or alias is most like `name`, or None."""
        known = {
            alias: canonical
            for alias, canonical in self._canonical.items()
            if allowed is None or canonical in allowed
        }
        near = get_close_matches(name[:_LONGEST_COMPARED].lower(), known, n=1, cutoff=0.5)
        return known[near[0]] if near else None

    def select(self, allowed: Collection[str] | None = None) -> list[Tool[Any, Any]]:
        """Return the tools in the order of their names; all, or those that are allowed."""
        known = {**self._tools, **self._presets}
        return [known[name] for name in sorted(self.names(allowed))]

    def extend(self, tools: Iterable[Tool[Any, Any]]) -> "ToolCatalog":
        """Return a catalogue of these and further tools."""
        return ToolCatalog((*self._tools.values(), *tools), self.combinations)

    def list_bases(self) -> dict[str, str]:
        """Return the tool behind each tool of a set, by the name of the latter."""
        return {name: tool.base for name, tool in self._tools.items() if tool.base}

    def list_outside(self) -> list[str]:
        """Return the names of the tools that neither are built in nor belong to a set."""
        own = {found.name for found in list_builtin()}
        return [name for name, tool in self._tools.items() if name not in own and not tool.base]

    def combine(self, combinations: Mapping[str, tuple[str, ...]]) -> "ToolCatalog":
        """Return a catalogue with these combinations, which are not checked here."""
        return ToolCatalog(self._tools.values(), combinations)


def make_builtin(parts: ToolParts) -> ToolCatalog:
    """Return a catalogue of the built-in tools."""
    return ToolCatalog(found.make(parts) for found in list_builtin())


@cache
def list_builtin() -> tuple[type[Tool[Any, Any]], ...]:
    """Return the classes of the built-in tools, by the names of the tools."""
    return tuple(sorted(_find_classes(), key=lambda found: found.name))


def _find_classes() -> Iterator[type[Tool[Any, Any]]]:
    package = import_module("tools.builtin")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        if module.ispkg:
            continue
        for found in vars(import_module(module.name)).values():
            is_own = isclass(found) and found.__module__ == module.name
            if is_own and issubclass(found, Tool) and not isabstract(found):
                yield found


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
