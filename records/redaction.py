"""Replaces personal data in texts before they are recorded."""

import re
from collections.abc import Sequence

_PATTERNS = {
    "email": re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}"),
    "number": re.compile(r"\+?\d(?:[ ./-]?\d){6,30}"),
    "address": re.compile(r"https?://[^\s\"'<>]{1,2000}"),
}


def redact(text: str, kinds: Sequence[str]) -> str:
    """Return a text in which each match of a kind is replaced by its name, such as `[email]`."""
    for kind in kinds:
        text = _PATTERNS[kind].sub(f"[{kind}]", text)
    return text
