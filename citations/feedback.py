"""Writes and reads the complaints of a judge, which the next attempt at an answer gets to read.

The first line is about the whole answer. Then follows one line for each claim that failed (`-
unsupported: ...`) and for each part of the question without an answer (`- missing: "..."`).
"""

import re
from collections.abc import Sequence

_UNSUPPORTED = "- unsupported: "
_CLAIM = re.compile(rf"^{_UNSUPPORTED}(.+)$", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_LONGEST = 500


def complaints(summary: str, unsupported: Sequence[str], missing: Sequence[str]) -> str:
    """Return the analysis as text; `summary` is its first line."""
    lines = [_line(summary)]
    lines += [f"{_UNSUPPORTED}{_line(claim)}" for claim in unsupported]
    lines += [f'- missing: "{_line(part)}"' for part in missing]
    return "\n".join(line for line in lines if line)


def parse_unsupported(analysis: str) -> tuple[str, ...]:
    """Return the claims that `analysis` names as unsupported."""
    return tuple(_CLAIM.findall(analysis))


def same_claim(claim: str) -> str:
    """Return a key that is equal for two spellings of one claim: its letters and digits."""
    return "".join(sign for sign in claim.casefold() if sign.isalnum())


def _line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()[:_LONGEST]
