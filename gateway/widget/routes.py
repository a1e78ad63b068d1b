"""The HTTP routes of the widget: its script, and a page that shows it.

The parts are ES modules. The joined script has a single scope, so imports and exports are removed.
Comments and indentation are removed as well. Nothing else is changed, and nothing is compiled.
"""

import base64
import hashlib
import html
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from gateway.public_path import public_path
from gateway.static_files import make_response, read_design

HOUR_SECONDS = 3600
YEAR_SECONDS = 365 * 24 * HOUR_SECONDS
SCRIPT = "text/javascript; charset=utf-8"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""The page's Content-Security-Policy: only scripts and connections of this server."""
FILES = {
    "demo.css": "text/css; charset=utf-8",
    "demo.js": SCRIPT,
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageContents:
    """The contents of the page: the `name` of the assistant, a notice that depends on `state`, and
    example questions.

    `key`: a key is required; `empty`: there are no documents; `search`: there is no model; `away`:
    a store does not respond.
    """

    name: str = "Refdesk"
    state: Literal["ready", "key", "empty", "search", "away"] = "ready"
    questions: tuple[str, ...] = ()


FindContents = Callable[[Request], Awaitable[PageContents]]
_PLACEHOLDER = re.compile(r"\{\{([a-z]{1,20})\}\}")

ENTRY = "widget.js"
_IMPORT = re.compile(r'^import \{[^{}]*\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class |const |function |async )", re.MULTILINE)

_COMMENT = re.compile(r"^[ ]*(?://[^\n]*|/\*\*.*?\*/)\n", re.MULTILINE | re.DOTALL)
_TRAILING_COMMENT = re.compile(r"(?<=[;,{]) // [^\n\"'`]*$", re.MULTILINE)
"""Matches a comment after code. A comment that contains a quotation mark is kept, because it may be
part of a string.
"""
_DESIGN = "/* The colours, fonts, sizes and spaces of gateway/design.css. */"
_SIZE = re.compile(r"(?<![\d.])([\d.]++)rem")
_INDENT = re.compile(r"^[ ]+|^\n", re.MULTILINE)


class Embedding(BaseModel):
    """The URL and integrity hash of one version of the script."""

    src: str = Field(description="path of the script on this server")
    integrity: str = Field(description="value of the script tag's attribute `integrity`")


@dataclass(frozen=True, slots=True)
class WidgetScript:
    """The joined script; `digest` is its SHA-256."""

    text: bytes
    digest: bytes

    @property
    def version(self) -> str:
        """The part of the URL that identifies this version."""
        return self.digest.hex()[:16]

    @property
    def path(self) -> str:
        """The URL path of this version."""
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


async def _default_contents(_request: Request) -> PageContents:
    return PageContents()


def widget_router(find_contents: FindContents = _default_contents) -> APIRouter:
    """Return the routes, which do not need a key and return no personal data.

    `find_contents` returns the contents of the page for the caller of a request.
    """
    router = APIRouter(include_in_schema=False)
    methods = ["GET", "HEAD"]

    @router.api_route("/widget", methods=methods)
    async def embedding(request: Request) -> Embedding:
        """Return the URL and the integrity hash of the script, for script tags."""
        script = widget_script()
        return Embedding(src=f"{public_path(request)}{script.path}", integrity=script.integrity)

    @router.api_route("/", methods=methods)
    async def demo_page(request: Request) -> Response:
        """Return the page that shows the widget."""
        kind = "text/html; charset=utf-8"
        body = _make_page(await find_contents(request), public_path(request))
        return make_response(request, body, kind, further={"Content-Security-Policy": POLICY})

    @router.api_route("/widget/refdesk.js", methods=methods)
    async def newest_script(request: Request) -> Response:
        """Return the current script."""
        return _script(request, f"max-age={HOUR_SECONDS}, stale-while-revalidate={HOUR_SECONDS}")

    @router.api_route("/widget/refdesk.{version}.js", methods=methods)
    async def exact_script(request: Request, version: str) -> Response:
        """Return a specific version of the script; the response never changes."""
        if version != widget_script().version:
            return Response(status_code=404)
        return _script(request, f"max-age={YEAR_SECONDS}, immutable")

    @router.api_route("/widget/{name}", methods=methods)
    async def page_file(request: Request, name: str) -> Response:
        """Return a static file of the page."""
        if name not in FILES:
            return Response(status_code=404)
        design = read_design() if name.endswith(".css") else ""
        return make_response(request, f"{design}{part(name)}".encode(), FILES[name])

    return router


def _script(request: Request, kept: str) -> Response:
    """Return the script for pages of any origin; it contains no private data."""
    script = widget_script()
    shared = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
    return make_response(request, script.text, SCRIPT, f"public, {kept}", shared)


def _make_page(contents: PageContents, path: str) -> bytes:
    script = widget_script()
    values = {
        "path": path,
        "address": script.path,
        "integrity": script.integrity,
        "name": contents.name,
        "state": contents.state,
        # The widget separates example questions by this character.
        "questions": " | ".join(text.replace("|", "/") for text in contents.questions),
    }
    # One pass, so that braces within a value are not replaced.
    page = _PLACEHOLDER.sub(lambda found: html.escape(values[found[1]]), part("demo.html"))
    return page.encode()


def _read(name: str, parts: dict[str, str]) -> None:
    """Append a part after the parts that it imports."""
    source = part(f"parts/{name}")
    for imported in _IMPORT.findall(source):
        if imported not in parts:
            _read(imported, parts)
    code = _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", source)))
    parts[name] = _INDENT.sub("", _TRAILING_COMMENT.sub("", code)).replace(_DESIGN, _write_design())


def _write_design() -> str:
    """Return the design of all pages; a page with the widget may use other colours and fonts.

    Sizes depend on the font size of the widget, because the page may use another `rem`.
    """
    lines = (line.strip().rstrip(";") for line in read_design().splitlines())
    declared = (line.removeprefix("--").split(": ", 1) for line in lines if line.startswith("--"))
    return "\n".join(
        f"--{name}: {_SIZE.sub(_scale, value)};"
        if _SIZE.search(value)
        else f"--{name}: var(--refdesk-{name}, {value});"
        for name, value in declared
    )


def _scale(size: re.Match[str]) -> str:
    return f"calc({size[1]} * var(--refdesk-font-size, 16px))"
