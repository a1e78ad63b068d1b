"""Recognises attempts to turn the desk against its instructions, in the question itself.

Signs are weighted: one certain sign is enough, weaker ones must add up. A question that merely uses
the attackers' words ("override", "instructions", "secret", "inject") bears no sign: each needs its
object to be the desk itself, its instructions, or a persona it is told to take on. The signs stand
in `injection.toml`. They are looked for in the whole text and in each of its `readings`, so that a
disguise does not hide them.
"""

import asyncio
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from llm.offline.attacks.disguises import readings

CERTAIN = 1.0
BUDGET_SECONDS = 0.5
"""How long a question is looked through before it goes on with what was found by then."""

_LONGEST_QUESTION = 300
_LONG_CHARACTERS = 900
_VERY_LONG_CHARACTERS = 2500
_LONG_WEIGHT = 0.4


@dataclass(frozen=True, slots=True)
class Sign:
    """Something an attack says; `weight` 1 convicts alone."""

    kind: str
    weight: float
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What kind of attack was found, or None, and whether everything was looked through."""

    kind: str | None = None
    is_complete: bool = True


def attack_in(text: str) -> str | None:
    """Return what kind of attack `text` is, or None; it is read to its end."""
    return inspect(text, deadline=None).kind


async def inspect_within(budget_seconds: float, *texts: str) -> Inspection:
    """Inspect `texts` beside the event loop, until an attack is found or the budget is spent."""
    return await asyncio.to_thread(inspect, *texts, deadline=perf_counter() + budget_seconds)


def inspect(*texts: str, deadline: float | None) -> Inspection:
    """Return the first attack in `texts`; `deadline` is a time of `perf_counter`."""
    for text in dict.fromkeys(texts):
        for reading in readings(text):
            found: list[Sign] = []
            for sign in SIGNS:
                if deadline is not None and perf_counter() > deadline:
                    return Inspection(is_complete=False)
                if _bears(reading, sign):
                    found.append(sign)
            if _weight(found, len(text)) >= CERTAIN:
                return Inspection(max(found, key=lambda sign: sign.weight).kind)
    return Inspection()


def _bears(reading: str, sign: Sign) -> bool:
    return any(not _is_asked_about(reading, it) for it in sign.pattern.finditer(reading))


def _is_asked_about(reading: str, found: re.Match[str]) -> bool:
    """Tell whether a clause asks how something is done, and does not speak to the desk."""
    before = reading[max(0, found.start() - _LONGEST_QUESTION) : found.start()]
    clause = _CLAUSE_END.split(before)[-1] + found[0]
    return _ASKED.match(clause) is not None and _TO_YOU.search(clause) is None


def _weight(found: list[Sign], characters: int) -> float:
    """Return what the signs weigh together; several weigh more in a long text, one alone does not.

    People who write at length use one of the attackers' phrases now and then, and attackers many.
    """
    weight = sum(sign.weight for sign in found)
    if len(found) > 1 and characters > _LONG_CHARACTERS:
        weight += _LONG_WEIGHT * (1 + (characters > _VERY_LONG_CHARACTERS))
    return weight


def _signs() -> tuple[Sign, ...]:
    named = {name: value for name, value in _TABLE.items() if isinstance(value, str)}
    return tuple(
        Sign(row["kind"], row["weight"], _compile("|".join(row["any"]), named))
        for row in _TABLE["sign"]
    )


def _compile(pattern: str, named: dict[str, str]) -> re.Pattern[str]:
    for name, value in named.items():
        pattern = pattern.replace(f"<{name}>", value)
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ASKED = _compile(_TABLE["question"]["asked"], _TABLE["question"])
_TO_YOU = _compile(_TABLE["question"]["to_you"], {})
_CLAUSE_END = re.compile('[.,:!?;()"\n\u2013\u2014\u3002\uff01\uff1f\uff0c]| - ')
SIGNS = _signs()
