"""Generates pages of documentation from code: `python -m deploy.generate.pages` writes them."""

import sys
import types
import typing
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel
from pydantic_settings import BaseSettings

from config.settings import Settings
from envelope.payload import CATALOGUE, Attribute
from envelope.role import Role
from manager.diagram import draw
from manager.flow import ASSISTANT, Flow

DOCS = Path(__file__).parent.parent.parent / "docs"

_CONTRACTS = """# Contracts: who reads and writes what

Generated from `envelope/payload.py` by `python -m deploy.generate.pages`; do not edit.

An agent receives the attributes that it reads and returns those that it writes. It has no access
to others. The gateway sets the attributes that no role writes when it accepts a message.

| attribute | type | meaning | written by | read by |
|---|---|---|---|---|
"""
_SETTINGS = """# Settings

Generated from the settings in `config/` by `python -m deploy.generate.pages`; do not edit.

A setting is an environment variable or a line in a file of settings. `REFDESK_ENV_FILE` names the
file. If the variable is unset, Refdesk reads `.env` in the working directory, unless another user
may have written it. If the variable is empty, Refdesk reads no file. A command prints at its start
the file that it reads, unknown names in it, and secrets in it that other users can read.
"""
_AREA = """
## {title}

| variable | default | type | meaning |
|---|---|---|---|
"""


def pages() -> dict[str, str]:
    """Return the generated pages, by file name."""
    return {
        "flow.md": draw(Flow(ASSISTANT)),
        "contracts.md": _CONTRACTS + "".join(_contract(attribute) for attribute in CATALOGUE),
        "settings.md": _SETTINGS + "".join(_area(group) for group in (*_GROUPS, Settings)),
    }


def main() -> int:
    """Write the pages into `docs/`."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
    return 0


def _contract(attribute: Attribute) -> str:
    cells = (
        f"`{attribute.name}`",
        f"`{_type(attribute.type)}`".replace("|", "\\|"),
        attribute.meaning,
        _roles(attribute.written_by) or "gateway",
        _roles(attribute.read_by),
    )
    return "| " + " | ".join(cells) + " |\n"


_GROUPS = tuple(group for group in Settings.__bases__ if group is not BaseSettings)


def _area(group: type[BaseModel]) -> str:
    """Return a table of the settings of a group, with the summary of its module as heading."""
    summary = (sys.modules[group.__module__].__doc__ or "").partition("\n")[0]
    title = summary.partition(", and all")[0].removeprefix("Settings of ").removesuffix(".")
    names = [name for name in Settings.model_fields if name in group.__annotations__]
    head = _AREA.format(title=title[:1].upper() + title[1:])
    return head + "".join(_setting(name) for name in names)


def _setting(name: str) -> str:
    field = Settings.model_fields[name]
    default = field.default
    shown = "" if default in (None, "", (), {}) else f"`{default}`"
    kind = _type(field.annotation).replace("|", "\\|")
    return f"| `{name.upper()}` | {shown} | `{kind}` | {field.description} |\n"


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
