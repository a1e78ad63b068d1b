"""Makes one script of the widget's parts: one request, one integrity hash.

The parts are ES modules, as browsers and editors read them. Joined they share one scope, so that
their imports and exports fall away. Comments and indentation are for who reads the parts, and are
left out; nothing else is changed, and nothing is compiled.
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
_INDENT = re.compile(r"^[ ]+|^\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WidgetScript:
    """The script as it is served; `digest` is its SHA-256."""

    text: bytes
    digest: bytes

    @property
    def version(self) -> str:
        """What names exactly this script in an address."""
        return self.digest.hex()[:16]

    @property
    def path(self) -> str:
        """Where the desk serves exactly this script."""
        return f"/widget/refdesk.{self.version}.js"

    @property
    def integrity(self) -> str:
        """What a script tag says, so that a browser runs this and nothing else."""
        return f"sha256-{base64.b64encode(self.digest).decode()}"


@cache
def widget_script() -> WidgetScript:
    """Return the widget."""
    parts: dict[str, str] = {}
    _read(ENTRY, parts)
    body = "\n".join(parts.values())
    text = f'(() => {{\n"use strict";\n\n{body}}})();\n'.encode()
    return WidgetScript(text, hashlib.sha256(text).digest())


def part(name: str) -> str:
    """Return the text of a file that stands beside this one."""
    return files(__package__).joinpath(name).read_text()


def _read(name: str, parts: dict[str, str]) -> None:
    """Add a part behind those it imports."""
    source = part(f"parts/{name}")
    for imported in _IMPORT.findall(source):
        if imported not in parts:
            _read(imported, parts)
    parts[name] = _INDENT.sub("", _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", source))))
