"""Normalizes URLs, so that different URLs of the same page become equal."""

import re
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

LONGEST_ADDRESS = 2000
PORTS = {"http": 80, "https": 443}
"""The allowed schemes and their default ports."""
_IN_PATH = "/%:@!$&()*+,;=~-._"
_IN_QUERY = f"{_IN_PATH}?"
_DOT = re.compile(r"%2e", re.IGNORECASE)
_TRACKING = ("utm_", "gclid=", "fbclid=", "msclkid=", "mc_cid=", "mc_eid=")


def normalise(address: str, base: str = "") -> str | None:
    """Return a normalized absolute http(s) URL without fragment, or None if it is invalid.

    The host is in lower case; default ports, dot segments in the path, and tracking parameters are
    removed.
    """
    try:
        parts = urlsplit(urljoin(base, address.strip()))
        host, port = (parts.hostname or "").encode("idna").decode("ascii").lower(), parts.port
    except (ValueError, UnicodeError):
        return None
    if parts.scheme not in PORTS or not host or "@" in parts.netloc:
        return None
    shown = f"[{host}]" if ":" in host else host
    place = shown if port in (None, PORTS[parts.scheme]) else f"{shown}:{port}"
    path = quote(_remove_dots(parts.path), safe=_IN_PATH)
    whole = urlunsplit((parts.scheme, place, path, _clean_query(parts.query), ""))
    return whole if len(whole) <= LONGEST_ADDRESS and whole.isprintable() else None


def _remove_dots(path: str) -> str:
    """Return a path without dot segments, including percent-encoded ones."""
    kept: list[str] = []
    parts = _DOT.sub(".", path).split("/")
    for part in parts[1:]:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if parts[-1] in (".", "..") and kept:
        kept.append("")
    return f"/{'/'.join(kept)}"


def _clean_query(query: str) -> str:
    kept = (part for part in query.split("&") if not part.lower().startswith(_TRACKING))
    return quote("&".join(kept), safe=_IN_QUERY)
