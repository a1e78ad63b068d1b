"""Recognises attempts to turn the desk against its instructions, in the question itself.

Signs are weighted: one certain sign is enough, weaker ones must add up. A question that merely uses
the attackers' words ("override", "instructions", "secret", "inject") bears no sign: each needs its
object to be the desk itself, its instructions, or a persona it is told to take on. The signs stand
in `injection.toml`.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

CERTAIN = 1.0

_LONG_CHARACTERS = 900
_VERY_LONG_CHARACTERS = 2500
_LONG_WEIGHT = 0.4
_READ_CHARACTERS = 6000


@dataclass(frozen=True, slots=True)
class Sign:
    """Something an attack says; `weight` 1 convicts alone."""

    kind: str
    weight: float
    pattern: re.Pattern[str]


def attack_in(text: str) -> str | None:
    """Return what kind of attack `text` is, or None; it reads the first few thousand signs."""
    read = text[:_READ_CHARACTERS]
    found = [sign for sign in SIGNS if sign.pattern.search(read)]
    weight = sum(sign.weight for sign in found)
    if found and len(read) > _LONG_CHARACTERS:
        weight += _LONG_WEIGHT * (1 + (len(read) > _VERY_LONG_CHARACTERS))
    if weight < CERTAIN:
        return None
    return max(found, key=lambda sign: sign.weight).kind


def _signs() -> tuple[Sign, ...]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    named = {name: value for name, value in table.items() if isinstance(value, str)}
    return tuple(
        Sign(row["kind"], row["weight"], _compiled("|".join(row["any"]), named))
        for row in table["sign"]
    )


def _compiled(pattern: str, named: dict[str, str]) -> re.Pattern[str]:
    for name, value in named.items():
        pattern = pattern.replace(f"<{name}>", value)
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


SIGNS = _signs()
