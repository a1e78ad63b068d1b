"""Writes down what a judge found wrong, so that the next attempt can read it.

One line for the whole, then one line for each claim that failed (`- unsupported: ...`) and for each
thing that was asked and not answered (`- missing: "..."`).
"""

import re
from collections.abc import Sequence

_UNSUPPORTED = "- unsupported: "
_CLAIM = re.compile(rf"^{_UNSUPPORTED}(.+)$", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_LONGEST = 500


def complaints(said: str, unsupported: Sequence[str], missing: Sequence[str]) -> str:
    """Return the analysis as text."""
    lines = [_line(said)]
    lines += [f"{_UNSUPPORTED}{_line(claim)}" for claim in unsupported]
    lines += [f'- missing: "{_line(part)}"' for part in missing]
    return "\n".join(line for line in lines if line)


def parse_unsupported(analysis: str) -> tuple[str, ...]:
    """Return the claims that `analysis` names as unsupported."""
    return tuple(_CLAIM.findall(analysis))


def same_claim(claim: str) -> str:
    """Return what two wordings of one claim share: their words, without spaces and signs."""
    return "".join(sign for sign in claim.casefold() if sign.isalnum())


def _line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()[:_LONGEST]
