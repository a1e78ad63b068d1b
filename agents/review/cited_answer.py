r"""Turns `\cite{id}` into the numbers of sources, and names the ids that do not exist."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from envelope.ways.specialists import CitationCheck

_CITE = re.compile(r"\\cite\{([^{}\n]{1,1000})\}")
_MOST = 100


@dataclass(frozen=True, slots=True)
class NumberedAnswer:
    """An answer with `[n]` in place of its citations, and what became of them."""

    text: str
    check: CitationCheck


def number_citations(answer: str, numbers: Mapping[str, int]) -> NumberedAnswer:
    """Return an answer whose citations are numbers of sources; ids without a number are removed."""
    used: dict[str, None] = {}
    invalid: dict[str, None] = {}

    def show(found: re.Match[str]) -> str:
        names = [name.strip() for name in found[1].split(",") if name.strip()]
        used.update(dict.fromkeys(name for name in names if name in numbers))
        invalid.update(dict.fromkeys(name for name in names if name not in numbers))
        return "".join(f"[{numbers[name]}]" for name in names if name in numbers)

    text = _CITE.sub(show, answer)
    check = CitationCheck(
        used_citations=tuple(used),
        invalid_citations=tuple(name[:200] for name in list(invalid)[:_MOST]),
        valid=not invalid,
    )
    return NumberedAnswer(text, check)
