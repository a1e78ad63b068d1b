"""Generates pages of documentation, and parts of pages, from code.

`python -m deploy.generate.pages` writes them.
"""

import json
import subprocess
import sys
import types
import typing
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined, to_json
from pydantic_settings import BaseSettings

from agents.agent import Agent, ProgressStep
from agents.roster import AGENTS, SPECS, AgentSpec, load_agent
from config.env_file import HARMLESS
from config.settings import Settings
from config.way_settings import load_profiles
from deploy.generate.client_contract import describe_additions
from deploy.generate.manifests import GROUPS, Group
from deploy.generate.pods import list_steps
from envelope.payload import CATALOGUE, Attribute, MergeRule
from envelope.role import INGESTING, Role
from envelope.specialists import NEEDS, PHASES, SpecialistName
from manager.flow_proofs import draw
from manager.flows import EVERY
from manager.state import MANAGER_READS, MANAGER_WRITES

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
INTERNAL = DOCS / "internal"
ROSTER = ROOT / "agents" / "roster.json"
WIDGET_STEPS = ROOT / "gateway" / "widget" / "parts" / "steps.js"

_CONTRACTS = """# Contracts: who reads and writes what

Generated from `envelope/payload.py`, `manager/state.py` and the agents by
`python -m deploy.generate.pages`; do not edit.

An agent receives the attributes that it reads and returns those that it writes. It has no access
to others. The gateway sets the attributes that no role writes when it accepts a message.

| attribute | type | meaning | written by | read by |
|---|---|---|---|---|
"""
_SETTINGS = """# Settings

Generated from the settings in `config/` by `python -m deploy.generate.pages`; do not edit.

A setting is an environment variable or a line in a settings file. Specify the file with the
option `--env-file FILE` of a command, or with the variable `REFDESK_ENV_FILE`. If neither is given,
Refdesk reads `.env` in the working directory, unless other users can write to it. If the variable
is empty, Refdesk does not read a file. Example of a file:

```bash
DOMAIN_NAME="Help of Acme Pay"
HISTORY_TURNS=4
WAY=tools
PRODUCT_NAMES='["Acme Pay", "Acme Go"]'
INSTANCES='{{"response": 4}}'
```

When a command starts, it prints which file it reads, and warns about unknown
names and about secrets that other users can read.

A `.env` file that is read automatically can set only {harmless}, because it may come from an
unpacked archive or a cloned repository. If it contains another setting, or a value with `${{...}}`,
the command fails with an error. Keys, URLs, models, paths, prices and permissions must be set in a
file that you specify.
"""
_AREA = """
## {title}

| variable | default | value | meaning |
|---|---|---|---|
"""

_VALUES: dict[type, str] = {
    bool: "`true` or `false`",
    int: "whole number",
    float: "number",
    SecretStr: "secret",
    str: "text",
    Path: "path",
    tuple: "list",
    list: "list",
    dict: "object (JSON)",
    BaseModel: "object (JSON)",
}
"""Example values of settings by type; the first type that matches is used."""

_STEPS = """\
// What people see at each stage of a question.
// Written by `python -m deploy.generate.pages`; change the step of the agent instead.

export const STEPS = {steps};
export const STEP_OF = {{
{stages}
}};
"""
_GROUP_TABLE = """\
| Group | Roles | Scaled by the depth of | Entries per replica | Replicas |
|---|---|---|---|---|
"""

_TEAM_TABLE = """\
| Agent | Tier | Role | Phase | Needs | Tools | Calls | Temperature |
|---|---|---|---|---|---|---|---|
"""
_GROUPS: tuple[type[BaseModel], ...] = tuple(
    group
    for group in Settings.__bases__
    if issubclass(group, BaseModel) and group is not BaseSettings
)


def pages() -> dict[Path, str]:
    """Return the generated files, by path."""
    return {
        ROSTER: describe_agents(),
        INTERNAL / "flow.md": draw(EVERY),
        INTERNAL / "contracts.md": _CONTRACTS
        + "".join(map(_contract, CATALOGUE))
        + describe_additions(),
        DOCS / "settings.md": _SETTINGS.format(harmless=_list_harmless())
        + "".join(_area(title, own) for title, own in _areas().items()),
        DOCS / "deployment.md": _with_block(
            DOCS / "deployment.md", "groups", _GROUP_TABLE + "".join(map(_describe_group, GROUPS))
        ),
        DOCS / "ways.md": _with_block(DOCS / "ways.md", "specialists", _describe_team()),
        WIDGET_STEPS: _widget_steps(),
    }


def main() -> int:
    """Write the generated files: first `roster.json`, then all other files, which are derived from
    it.
    """
    roster = describe_agents()
    if ROSTER.read_text(encoding="utf-8") != roster:
        ROSTER.write_text(roster, encoding="utf-8")
        again = (sys.executable, "-m", __spec__.name)
        return subprocess.run(again, check=False).returncode  # noqa: S603 - this module
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


def describe_agents() -> str:
    """Return `roster.json`, which contains the declarations of the agent classes, in the order of
    the roles.

    Raises `ValueError` for a role without an agent.
    """
    return json.dumps(dict(map(_describe_agent, _list_agents())), indent=1) + "\n"


def _list_agents() -> list[type[Agent[Any, Any]]]:
    packages = {path.stem: f"agents.{path.parent.name}" for path in ROSTER.parent.glob("*/*.py")}
    roles = [role for role in Role if role not in {Role.MANAGER, *INGESTING}]
    if without := [role.value for role in roles if role.value not in packages]:
        raise ValueError(f"expected a module agents/<way>/{without[0]}.py, found none")
    return [load_agent(packages[role.value], role) for role in roles]


def _describe_agent(agent: type[Agent[Any, Any]]) -> tuple[str, dict[str, object]]:
    facts = asdict(AgentSpec.of(agent))
    role = facts.pop("role")
    sides = {side: sorted(facts.pop(side)) for side in ("reads", "writes")}
    return role.value, {**facts, **sides}


def _with_block(page: Path, name: str, block: str) -> str:
    """Return a page in which the text between the markers of `name` is replaced; raises
    `ValueError`.
    """
    first, last = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->"
    before, begins, rest = page.read_text(encoding="utf-8").partition(first)
    _, ends, after = rest.partition(last)
    if not begins or not ends:
        raise ValueError(f"{page.name}: expected {first.strip()} and {last}, found not both")
    return f"{before}{first}\n{block}\n{last}{after}"


def _describe_group(group: Group) -> str:
    roles, scaled_by = _roles(group.roles), _roles(group.scales_by)
    cells = (f"`{group.name}`", roles, scaled_by, str(group.depth_each), f"2 to {group.most}")
    return "| " + " | ".join(cells) + " |\n"


def _describe_team() -> str:
    """Return the table of the agents that plan, and of the agents whose work is planned."""
    team = [spec for spec in SPECS.values() if spec.agent_role is not None]
    return _TEAM_TABLE + "".join(map(_describe_specialist, team))


def _describe_specialist(spec: AgentSpec) -> str:
    known = spec.role.value in set(SpecialistName)
    name = SpecialistName(spec.role.value) if known else None
    profile = None if name is None else load_profiles()[name.value]
    cells = (
        f"`{spec.role.value}`",
        spec.tier.value,
        "" if spec.agent_role is None else spec.agent_role.value,
        "routing" if name is None else PHASES[name].value,
        ""
        if name is None
        else ", ".join(f"`{specialist_name.value}`" for specialist_name in NEEDS[name]),
        "" if profile is None else ", ".join(f"`{tool}`" for tool in profile.tools),
        "" if profile is None or not profile.tools else str(profile.max_iterations),
        "" if profile is None else f"{profile.temperature:g}",
    )
    return "| " + " | ".join(cells) + " |\n"


def _widget_steps() -> str:
    steps = list(ProgressStep)
    stages = [f"  {name}: {steps.index(step)}," for name, step in _list_later_steps()]
    return _STEPS.format(steps=json.dumps([step.value for step in steps]), stages="\n".join(stages))


def _list_later_steps() -> list[tuple[str, ProgressStep]]:
    """Return the progress step of each stage after the first step."""
    first = next(iter(ProgressStep))
    return [(name, step) for name, step in list_steps().items() if step is not first]


def _contract(attribute: Attribute) -> str:
    cells = (
        f"`{attribute.name}`",
        f"`{_type(attribute.type)}`".replace("|", "\\|"),
        attribute.meaning + _describe_merge(attribute.merge),
        _roles(_list_roles(attribute, "writes")) or "gateway",
        _roles(_list_roles(attribute, "reads")),
    )
    return "| " + " | ".join(cells) + " |\n"


def _list_roles(attribute: Attribute, side: Literal["reads", "writes"]) -> list[Role]:
    agents = [spec.role for spec in AGENTS if attribute.name in getattr(spec, side)]
    of_manager = MANAGER_READS if side == "reads" else MANAGER_WRITES
    return [*agents, Role.MANAGER] if attribute.name in of_manager else agents


def _describe_merge(rule: MergeRule) -> str:
    return "" if rule is MergeRule.REPLACE else f" (merged by `{rule.value}`)"


def _list_harmless() -> str:
    names = [name.upper() for name in Settings.model_fields if name.upper() in HARMLESS]
    return ", ".join(f"`{name}`" for name in names)


def _areas() -> dict[str, set[str]]:
    """Return the names of the settings in each group, by the title of the group."""
    areas = {_title(group): set(group.model_fields) for group in _GROUPS}
    shared = set[str]().union(*areas.values())
    return {**areas, "Processes": set(Settings.model_fields) - shared}


def _title(group: type[BaseModel]) -> str:
    """Return the title of a group of settings, which is the first sentence of its docstring."""
    sentence = " ".join((group.__doc__ or "").partition(".")[0].split())
    title = sentence.removeprefix("Settings for ")
    return title[:1].upper() + title[1:]


def _area(title: str, own: Collection[str]) -> str:
    """Return a table of the settings in a group."""
    rows = (_setting(name) for name in Settings.model_fields if name in own)
    return _AREA.format(title=title) + "".join(rows)


def _setting(name: str) -> str:
    field = Settings.model_fields[name]
    default = field.default
    if isinstance(default, Collection) and not isinstance(default, str):
        default = to_json(default).decode() if default else ""
    if isinstance(default, bool):
        default = to_json(default).decode()
    is_derived = field.default_factory is not None and default is PydanticUndefined
    shown = "" if is_derived or default in (None, "") else f"`{default}`"
    value = _describe_value(field.annotation)
    return f"| `{name.upper()}` | {shown} | {value} | {field.description} |\n"


def _describe_value(annotation: object) -> str:
    """Return a description of the values that a setting accepts."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, types.UnionType) or origin is typing.Union:
        return _describe_value(
            next(argument for argument in arguments if argument is not type(None))
        )
    if origin is typing.Literal:
        return _list_choices(map(str, arguments))
    kind = origin if isinstance(origin, type) else annotation
    assert isinstance(kind, type)  # noqa: S101 - all other types are handled above
    if issubclass(kind, StrEnum):
        return _list_choices(kind)
    return next(words for known, words in _VALUES.items() if issubclass(kind, known))


def _list_choices(names: Iterable[str]) -> str:
    *some, last = [f"`{name}`" for name in names]
    return f"{', '.join(some)} or {last}"


def _roles(roles: Sequence[Role]) -> str:
    return ", ".join(role.value for role in roles)


def _type(annotation: object) -> str:
    if annotation is type(None):
        return "None"
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if isinstance(annotation, types.UnionType) or origin is typing.Union:
        return " | ".join(_type(argument) for argument in arguments)
    if origin is typing.Literal:
        return " | ".join(f'"{argument}"' for argument in arguments)
    if arguments:
        inner = ", ".join("..." if item is ... else _type(item) for item in arguments)
        return f"{getattr(origin, '__name__', origin)}[{inner}]"
    return getattr(annotation, "__name__", str(annotation))


if __name__ == "__main__":
    sys.exit(main())
