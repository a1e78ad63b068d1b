"""Writes and reads the complaints of a judge, which the next attempt at an answer gets to read.

The first line is about the whole answer. Then follow the passages that no source supports, each
with the reason, and a line for each part of the question without an answer (`- missing: "..."`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_UNSUPPORTED = "- unsupported: "
_REASON = "  because: "
_CLAIM = re.compile(rf"^{_UNSUPPORTED}(.+)$", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Complaint:
    """A passage that no source supports, and why."""

    claim: str
    reason: str = ""


def write_complaints(summary: str, unsupported: Sequence[Complaint], missing: Sequence[str]) -> str:
    """Return the analysis as text; `summary` is its first line."""
    lines = [_line(summary)]
    for one in unsupported:
        lines.append(f"{_UNSUPPORTED}{_line(one.claim)}")
        lines += [f"{_REASON}{_line(one.reason)}"] if one.reason else []
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
