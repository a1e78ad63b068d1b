"""The routes of the widget: its script, and a page that shows it."""

import gzip
import hashlib
import html
from collections.abc import Mapping
from functools import cache

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from gateway.widget.script import part, widget_script

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
"""What the page needs: the widget asks for nothing but scripts and connections to its desk."""
FILES = {
    "demo.css": "text/css; charset=utf-8",
    "demo.js": SCRIPT,
    "icon.svg": "image/svg+xml",
}


class Embedding(BaseModel):
    """What a page needs to run exactly this version of the widget."""

    src: str = Field(description="of the script, at this desk")
    integrity: str = Field(description="for the script tag's attribute of this name")


def widget_router() -> APIRouter:
    """Return the routes; none says anything of anybody, and none needs a key."""
    router = APIRouter(include_in_schema=False)
    methods = ["GET", "HEAD"]

    @router.api_route("/widget", methods=methods)
    async def embedding() -> Embedding:
        """Tell the address and the integrity hash of the script, for who writes script tags."""
        return Embedding(src=widget_script().path, integrity=widget_script().integrity)

    @router.api_route("/", methods=methods)
    async def demo_page(request: Request) -> Response:
        """Show the widget."""
        kind = "text/html; charset=utf-8"
        return _make_response(request, _page(), kind, further={"Content-Security-Policy": POLICY})

    @router.api_route("/widget/refdesk.js", methods=methods)
    async def newest_script(request: Request) -> Response:
        """Return the script of this version of the desk."""
        return _script(request, f"max-age={HOUR_SECONDS}, stale-while-revalidate={HOUR_SECONDS}")

    @router.api_route("/widget/refdesk.{version}.js", methods=methods)
    async def exact_script(request: Request, version: str) -> Response:
        """Return the script of exactly this version, which never changes."""
        if version != widget_script().version:
            return Response(status_code=404)
        return _script(request, f"max-age={YEAR_SECONDS}, immutable")

    @router.api_route("/widget/{name}", methods=methods)
    async def page_file(request: Request, name: str) -> Response:
        """Return a file of the page."""
        if name not in FILES:
            return Response(status_code=404)
        return _make_response(request, part(name).encode(), FILES[name])

    return router


def _script(request: Request, kept: str) -> Response:
    """Return the script, for every website: it holds nothing but itself."""
    script = widget_script()
    shared = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
    return _make_response(request, script.text, SCRIPT, f"public, {kept}", shared)


def _make_response(
    request: Request,
    body: bytes,
    kind: str,
    kept: str = "no-cache",
    further: Mapping[str, str] | None = None,
) -> Response:
    """Return a file, compressed where that is understood, or that the browser has it already."""
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"Cache-Control": kept, "ETag": tag, "Vary": "Accept-Encoding", **(further or {})}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        body = _compress(body)
    return Response(body, headers={**headers, "Content-Type": kind})


@cache
def _compress(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


@cache
def _page() -> bytes:
    script = widget_script()
    named = {"{{address}}": script.path, "{{integrity}}": script.integrity}
    page = part("demo.html")
    for name, value in named.items():
        page = page.replace(name, html.escape(value))
    return page.encode()
