"""Determines the language of a caller."""

from starlette.requests import Request


def choose_language(request: Request, named: str | None = None) -> str:
    """Return the language that was `named`, else the first that the browser names (ISO 639-1)."""
    if named is None:
        named = request.headers.get("accept-language", "").split(",")[0].split(";")[0].strip()
    code = named.split("-")[0].lower()
    return code if len(code) == 2 and code.isascii() and code.isalpha() else "en"
