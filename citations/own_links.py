"""Keeps links that lead to our own reader, and drops all others."""

from urllib.parse import quote

Base = str | tuple[str, ...]
"""The beginning of the addresses that are ours, or several."""
_SAFE = "/#?&=.-_~%:+"


def keep_own_link(link: str, base: Base = "") -> str:
    """Return a link, quoted for an attribute: below `base`, or an absolute path or anchor.

    Any other one is dropped: an empty text is returned.
    """
    plain = "".join(link.split())
    is_path = plain.startswith("/") and not plain.startswith(("//", "/\\"))
    is_own = bool(base) and plain.startswith(base)
    if not (is_own or is_path or plain.startswith("#")) or "\\" in plain:
        return ""
    return quote(plain, safe=_SAFE)
