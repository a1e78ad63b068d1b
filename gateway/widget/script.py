"""Joins the widget's parts into one script: one request, one integrity hash.

The parts are ES modules. The joined script has one scope, so imports and exports are removed.
Comments and indentation are removed too; nothing else changes, and nothing is compiled.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ENTRY = "widget.js"
_IMPORT = re.compile(r'^import \{[^{}]*\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class |const |function |async )", re.MULTILINE)

_COMMENT = re.compile(r"^[ ]*(?://[^\n]*|/\*\*.*?\*/)\n", re.MULTILINE | re.DOTALL)
_TRAILING_COMMENT = re.compile(r"(?<=[;,{]) // [^\n\"'`]*$", re.MULTILINE)
"""A comment behind code; one with a quotation mark stays, because it may be part of a text."""
_INDENT = re.compile(r"^[ ]+|^\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WidgetScript:
    """The joined script; `digest` is its SHA-256."""

    text: bytes
    digest: bytes

    @property
    def version(self) -> str:
        """The part of an address that identifies this version."""
        return self.digest.hex()[:16]

    @property
    def path(self) -> str:
        """The address path of this version."""
        return f"/widget/refdesk.{self.version}.js"

    @property
    def integrity(self) -> str:
        """The `integrity` attribute of a script tag for this version."""
        return f"sha256-{base64.b64encode(self.digest).decode()}"


@cache
def widget_script() -> WidgetScript:
    """Return the joined script of the widget."""
    parts: dict[str, str] = {}
    _read(ENTRY, parts)
    body = "\n".join(parts.values())
    text = f'(() => {{\n"use strict";\n\n{body}}})();\n'.encode()
    return WidgetScript(text, hashlib.sha256(text).digest())


def part(name: str) -> str:
    """Return the text of a file of this package."""
    return files(__package__).joinpath(name).read_text()


def _read(name: str, parts: dict[str, str]) -> None:
    """Append a part after the parts that it imports."""
    source = part(f"parts/{name}")
    for imported in _IMPORT.findall(source):
        if imported not in parts:
            _read(imported, parts)
    code = _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", source)))
    parts[name] = _INDENT.sub("", _TRAILING_COMMENT.sub("", code))
