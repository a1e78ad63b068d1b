"""The built-in and additional tools of an assistant, by name.

Every subclass of `Tool` in `tools/builtin` is registered automatically. A tool set is a TOML file
that defines tools as other tools with fixed arguments:

```toml
[penalty_lookup]
tool = "search"
description = "Finds the penalties for a breach."
aliases = ["penalties"]

[penalty_lookup.fixed]        # arguments that the caller cannot set
limit = 3

[penalty_lookup.templates]    # {} is replaced by the argument of the caller
query = "penalty fine sanction {}"

[combinations]                # tools that are often called together, by purpose
safety_and_penalties = ["regulation_search", "penalty_lookup"]
```

`describe_tool` describes a tool to models.
"""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import isabstract, isclass
from pathlib import Path
from pkgutil import walk_packages
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from llm.port import ToolDescription
from tools.calls import CitedPassage, PassageText, ToolCaller
from tools.errors import InvalidInput, InvalidToolSet
from tools.tool import Tool, ToolParts

_LONGEST_COMPARED = 100
_PLACEHOLDER = "{}"


class ToolSetEntry(BaseModel, frozen=True, extra="forbid"):
    """A tool of a tool set."""

    tool: str
    description: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    fixed: dict[str, JsonValue] = Field(default_factory=dict)
    templates: dict[str, str] = Field(default_factory=dict)


T = TypeVar("T")
COMBINATIONS = "combinations"
"""The only table in a tool set that does not define a tool."""
_LEAST_COMBINED = 2
Combinations = Mapping[str, tuple[str, ...]]

_SET = TypeAdapter(dict[str, ToolSetEntry])
_COMBINED = TypeAdapter(dict[str, tuple[str, ...]])
Node = dict[str, JsonValue]
_USUAL: tuple[tuple[str, JsonValue], ...] = (
    ("additionalProperties", False),
    ("default", ""),
    ("default", []),
)
_DROPPED = frozenset({"title", "minLength", "maxLength"})
"""Keywords that are not shown to models. A value beyond a limit is rejected with the reason."""


class ToolCatalog:
    """Tools by name and alias; raises `ValueError` if two tools have the same name.

    `combinations` maps a purpose to tools that are often called together. Callers see each preset
    of a tool as a separate tool.
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
                described = tool.describe_preset(fixed)
                entry = ToolSetEntry(tool=tool.name, description=described, fixed=dict(fixed))
                self._presets[name] = NamedTool(name, entry, tool)
                self._add_names(self._presets[name])

    def _add_names(self, tool: Tool[Any, Any]) -> None:
        for name in (tool.name, *tool.aliases):
            if name in self._canonical:
                raise ValueError(f"expected one tool named {name!r}, found two")
            self._canonical[name] = tool.name

    def find(self, name: str) -> Tool[Any, Any] | None:
        """Return the tool with this name or alias, or None."""
        canonical = self._canonical.get(name, "")
        return self._tools.get(canonical) or self._presets.get(canonical)

    def names(self, allowed: Collection[str] | None = None) -> list[str]:
        """Return the names, without aliases, of all tools or of the tools in `allowed`.

        Presets are included only if they are in `allowed`.
        """
        if allowed is None:
            return list(self._tools)
        return [name for name in (*self._tools, *self._presets) if name in allowed]

    def find_nearest(self, name: str, allowed: Collection[str] | None = None) -> str | None:
        """Return the tool whose name or alias is most similar to `name`, or None."""
        known = {
            alias: canonical
            for alias, canonical in self._canonical.items()
            if allowed is None or canonical in allowed
        }
        near = get_close_matches(name[:_LONGEST_COMPARED].lower(), known, n=1, cutoff=0.5)
        return known[near[0]] if near else None

    def select(self, allowed: Collection[str] | None = None) -> list[Tool[Any, Any]]:
        """Return all tools, or the tools in `allowed`, sorted by name."""
        known = {**self._tools, **self._presets}
        return [known[name] for name in sorted(self.names(allowed))]

    def select_distinct(self) -> list[Tool[Any, Any]]:
        """Return all tools except tools that a tool set only renames."""
        renamed = {tool.renames for tool in self._tools.values() if isinstance(tool, NamedTool)}
        return [tool for tool in self.select() if tool.name not in renamed]

    def extend(self, tools: Iterable[Tool[Any, Any]]) -> "ToolCatalog":
        """Return a catalogue that includes additional tools."""
        return ToolCatalog((*self._tools.values(), *tools), self.combinations)

    def list_callable(self) -> frozenset[str]:
        """Return the names of all tools, including presets."""
        return frozenset((*self._tools, *self._presets))

    def combine(self, combinations: Mapping[str, tuple[str, ...]]) -> "ToolCatalog":
        """Return a catalogue with these combinations, without validating them."""
        return ToolCatalog(self._tools.values(), combinations)


class NamedTool(Tool[BaseModel, BaseModel]):
    """A tool under a different name, with arguments that the caller cannot set."""

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

    @property
    def renames(self) -> str:
        """The name of the tool that this one only renames, or "" if it changes arguments."""
        return "" if self._entry.fixed or self._entry.templates else self._tool.name

    def read_inputs(self, arguments: JsonValue) -> BaseModel:
        if not isinstance(arguments, dict):
            raise InvalidInput(f"expected the arguments as a JSON object, found {arguments!r:.80}")
        chosen = self._entry.fixed.keys() & arguments.keys()
        if chosen:
            raise InvalidInput(
                f"the argument {min(chosen)!r} is fixed by this tool and cannot be set"
            )
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
            free = {
                name: schema for name, schema in properties.items() if name not in self._entry.fixed
            }
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

    def quote(self, output: BaseModel) -> Iterable[PassageText]:
        return self._tool.quote(output)


def make_builtin(parts: ToolParts) -> ToolCatalog:
    """Return a catalogue of the built-in tools."""
    return ToolCatalog(tool_class.make(parts) for tool_class in list_builtin())


@cache
def list_builtin() -> tuple[type[Tool[Any, Any]], ...]:
    """Return the classes of the built-in tools, sorted by tool name."""
    return tuple(sorted(_find_classes(), key=lambda tool_class: tool_class.name))


def load_tool_set(path: Path, catalog: ToolCatalog) -> ToolCatalog:
    """Return a catalogue with the tools and combinations of a file; raises `InvalidToolSet`."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidToolSet(f"the tool set in {path.name!r} cannot be read: {error}") from error
    tools = {name: table for name, table in content.items() if name != COMBINATIONS}
    extended = catalog.extend(make_tool_set(tools, catalog, path.name))
    source = f"{path.name}: {COMBINATIONS}"
    combinations = _read(_COMBINED, content.get(COMBINATIONS, {}), source)
    return combine_tools(extended, combinations, source)


def make_tool_set(content: Mapping[str, Any], catalog: ToolCatalog, source: str) -> list[NamedTool]:
    """Return the tools in the content of a tool set; raises `InvalidToolSet`."""
    entries = _read(_SET, dict(content), source)
    return [_make_tool(name, entry, catalog, source) for name, entry in entries.items()]


def combine_tools(catalog: ToolCatalog, combinations: Combinations, source: str) -> ToolCatalog:
    """Return a catalogue with these combinations, after validating them.

    Raises `InvalidToolSet` for an unknown tool, a duplicate tool, or fewer than two tools.
    """
    named = {
        purpose: tuple(_find_members(purpose, names, catalog, source))
        for purpose, names in combinations.items()
    }
    return catalog.combine(named)


def describe_tool(tool: Tool[Any, Any]) -> ToolDescription:
    """Return the description of a tool for a model."""
    schema = inline_references(tool.describe_inputs())
    schema.pop("description", None)
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    schema.setdefault("required", [])
    return ToolDescription(name=tool.name, description=tool.description, input_schema=schema)


def describe_tools(tools: Iterable[Tool[Any, Any]]) -> tuple[ToolDescription, ...]:
    """Return the descriptions of tools for a model."""
    return tuple(describe_tool(tool) for tool in tools)


def inline_references(schema: Mapping[str, JsonValue]) -> Node:
    """Return a schema with all references inlined, without keywords that a model does not need.

    Raises `ValueError` for a recursive definition.
    """
    definitions = cast("Mapping[str, Node]", schema.get("$defs", {}))
    own = {key: value for key, value in schema.items() if key != "$defs"}
    return cast("Node", _inline(own, definitions, ()))


def _find_classes() -> Iterator[type[Tool[Any, Any]]]:
    package = import_module("tools.builtin")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        if module.ispkg:
            continue
        for member in vars(import_module(module.name)).values():
            is_own = isclass(member) and member.__module__ == module.name
            if is_own and issubclass(member, Tool) and not isabstract(member):
                yield member


def _find_members(
    purpose: str, names: tuple[str, ...], catalog: ToolCatalog, source: str
) -> Iterator[str]:
    place = f"{source}: {purpose}"
    if len(names) < _LEAST_COMBINED:
        given = f"{names[0]!r} alone" if names else "none"
        raise InvalidToolSet(f"{place}: expected at least two tools, found {given}")
    seen: set[str] = set()
    for name in names:
        tool = catalog.find(name)
        if tool is None:
            near = catalog.find_nearest(name)
            hint = f" (nearest: {near})" if near else ""
            known = ", ".join(sorted(catalog.names()))
            raise InvalidToolSet(f"{place}: expected one of {known}, found {name!r}{hint}")
        if tool.name in seen:
            raise InvalidToolSet(f"{place}: expected each tool once, found {tool.name!r} twice")
        seen.add(tool.name)
        yield tool.name


def _read(form: TypeAdapter[T], content: object, source: str) -> T:
    try:
        return form.validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidToolSet(f"{source}: {place}: {first['msg']}") from error


def _make_tool(name: str, entry: ToolSetEntry, catalog: ToolCatalog, source: str) -> NamedTool:
    tool = catalog.find(entry.tool)
    if tool is None:
        known = ", ".join(catalog.names())
        raise InvalidToolSet(
            f"{source}: {name}.tool: expected one of {known}, found {entry.tool!r}"
        )
    if catalog.find(name) is not None:
        raise InvalidToolSet(f"{source}: the name {name!r} is already used by another tool")
    arguments = tool.describe_inputs().get("properties")
    for argument in (*entry.fixed, *entry.templates):
        # The tool of an unavailable server has no schema yet; its arguments are checked at each
        # call.
        if isinstance(arguments, dict) and argument not in arguments:
            known = ", ".join(arguments)
            raise InvalidToolSet(f"{source}: {name}: expected one of {known}, found {argument!r}")
    return NamedTool(name, entry, tool)


def _inline(
    value: JsonValue, definitions: Mapping[str, Node], inside: tuple[str, ...]
) -> JsonValue:
    if isinstance(value, list):
        return [_inline(item, definitions, inside) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in inside:
            raise ValueError(f"the input {name!r} must not contain itself")
        further = {key: keyword for key, keyword in value.items() if key != "$ref"}
        return _inline({**definitions[name], **further}, definitions, (*inside, name))
    return {
        # A property may be named "title"; only the schema keyword is dropped.
        key: _inline_properties(keyword, definitions, inside)
        if key == "properties" and isinstance(keyword, dict)
        else _inline(keyword, definitions, inside)
        for key, keyword in value.items()
        if key not in _DROPPED and (key, keyword) not in _USUAL
    }


def _inline_properties(
    properties: Node, definitions: Mapping[str, Node], inside: tuple[str, ...]
) -> JsonValue:
    return {name: _inline(schema, definitions, inside) for name, schema in properties.items()}
