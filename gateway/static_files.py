"""Serves static files of the product, compressed and cacheable by browsers."""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from fastapi import Request, Response


def make_response(
    request: Request,
    body: bytes,
    kind: str,
    kept: str = "no-cache",
    further: Mapping[str, str] | None = None,
) -> Response:
    """Return a file, compressed if the browser accepts it, or status 304 if the browser already has
    it.
    """
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"Cache-Control": kept, "ETag": tag, "Vary": "Accept-Encoding", **(further or {})}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        body = _compress(body)
    return Response(body, headers={**headers, "Content-Type": kind})


@cache
def read_design() -> str:
    """Return the style sheet with the colors, sizes, and spacing for all pages."""
    return files("gateway").joinpath("design.css").read_text()


@cache
def _compress(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)
