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

[combinations]                # tools that a plan often calls together, by purpose
safety_and_penalties = ["regulation_search", "penalty_lookup"]
```
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from tools.catalog import NamedTool, ToolCatalog, ToolSetEntry
from tools.errors import InvalidToolSet

T = TypeVar("T")
COMBINATIONS = "combinations"
"""The table of a file that is no tool."""
_LEAST_COMBINED = 2
Combinations = Mapping[str, tuple[str, ...]]


_SET = TypeAdapter(dict[str, ToolSetEntry])
_COMBINED = TypeAdapter(dict[str, tuple[str, ...]])


def load_tool_set(path: Path, catalog: ToolCatalog) -> ToolCatalog:
    """Return a catalogue with the tools and combinations of a file; raises `InvalidToolSet`."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidToolSet(f"expected a tool set in {path.name!r}, found {error}") from error
    tools = {name: one for name, one in content.items() if name != COMBINATIONS}
    extended = catalog.extend(make_tool_set(tools, catalog, path.name))
    found = _read(_COMBINED, content.get(COMBINATIONS, {}), f"{path.name}: {COMBINATIONS}")
    return combine_tools(extended, found, f"{path.name}: {COMBINATIONS}")


def make_tool_set(content: Mapping[str, Any], catalog: ToolCatalog, source: str) -> list[NamedTool]:
    """Return the tools of the content of a file; raises `InvalidToolSet`."""
    entries = _read(_SET, dict(content), source)
    return [_make_tool(name, entry, catalog, source) for name, entry in entries.items()]


def combine_tools(catalog: ToolCatalog, combinations: Combinations, source: str) -> ToolCatalog:
    """Return a catalogue with further combinations, whose names are those of its tools.

    Raises `InvalidToolSet` for a tool that does not exist, for one that a combination has twice,
    for fewer than two tools, and for a purpose that has a combination already.
    """
    named = {
        purpose: tuple(_find_members(purpose, names, catalog, source))
        for purpose, names in combinations.items()
    }
    for purpose in named.keys() & catalog.combinations.keys():
        raise InvalidToolSet(f"{source}: expected one combination {purpose!r}, found two")
    return catalog.combine({**catalog.combinations, **named})


def _find_members(
    purpose: str, names: tuple[str, ...], catalog: ToolCatalog, source: str
) -> Iterator[str]:
    place = f"{source}: {purpose}"
    if len(names) < _LEAST_COMBINED:
        found = f"{names[0]!r} alone" if names else "none"
        raise InvalidToolSet(f"{place}: expected at least two tools, found {found}")
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
        raise InvalidToolSet(f"{source}: expected a name that no other tool has, found {name!r}")
    arguments = tool.describe_inputs().get("properties")
    for argument in (*entry.fixed, *entry.templates):
        # A tool of a server that is away has no arguments yet: they are checked at each call.
        if isinstance(arguments, dict) and argument not in arguments:
            known = ", ".join(arguments)
            raise InvalidToolSet(f"{source}: {name}: expected one of {known}, found {argument!r}")
    return NamedTool(name, entry, tool)
