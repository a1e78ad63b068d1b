"""The page for the HTTP API at `/docs`: Swagger UI for `/openapi.json`, served entirely from this
server.
"""

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from gateway.static_files import make_response

PATH = "/docs"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Allows scripts, styles, and requests only from this server; the style sheet contains icons as
data URLs.
"""
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
_FILES = {
    "start.js": _SCRIPT,
    "swagger-ui-bundle.js": _SCRIPT,
    "swagger-ui.css": _STYLE,
    "contrast.css": _STYLE,
}


def api_page_router() -> APIRouter:
    """Return the routes of the page and its files, which do not need a key."""
    router = APIRouter(include_in_schema=False)
    methods = ["GET", "HEAD"]

    @router.api_route(PATH, methods=methods)
    async def read_api_page(request: Request) -> Response:
        """Return the page."""
        policy = {"Content-Security-Policy": POLICY}
        kind = "text/html; charset=utf-8"
        return make_response(request, _read("index.html"), kind, further=policy)

    @router.api_route(f"{PATH}/{{name}}", methods=methods)
    async def read_api_page_file(request: Request, name: str) -> Response:
        """Return a file of the page."""
        if name not in _FILES:
            return Response(status_code=404)
        return make_response(request, _read(name), _FILES[name])

    return router


@cache
def _read(name: str) -> bytes:
    return files("gateway.http").joinpath("swagger_ui", name).read_bytes()
