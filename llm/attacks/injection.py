"""Recognises attempts to turn the desk against its instructions, in the question itself.

Signs are weighted: one certain sign suffices, weaker ones must add up. A question that only uses
the words of attackers ("override", "instructions", "secret", "inject") has no sign: its object must
also be the desk itself, its instructions, or a persona for it. `injection.toml` lists the signs.
They are searched in the whole text and in each of its `readings`, so that a disguise does not hide
them.
"""

import asyncio
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from llm.attacks.disguises import readings

CERTAIN = 1.0
BUDGET_SECONDS = 0.5
"""The time limit of an inspection; after it the question continues with the findings so far."""

_LONGEST_QUESTION = 300
_LONG_CHARACTERS = 900
_VERY_LONG_CHARACTERS = 2500
_LONG_WEIGHT = 0.4


@dataclass(frozen=True, slots=True)
class Sign:
    """A pattern of attacks; one sign of `weight` 1 suffices."""

    kind: str
    weight: float
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The kinds of signs that make a text an attack, the strongest first; none: it is no known one.

    `is_complete` says that everything was looked through.
    """

    kinds: tuple[str, ...] = ()
    is_complete: bool = True


def attack_in(text: str) -> str | None:
    """Return the kind of attack in `text`, or None, without a time limit."""
    return next(iter(inspect(text, deadline=None).kinds), None)


async def inspect_within(budget_seconds: float, *texts: str) -> Inspection:
    """Inspect `texts` in a thread, until an attack is found or the budget is spent."""
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
                found.sort(key=lambda sign: sign.weight, reverse=True)
                return Inspection(tuple(dict.fromkeys(sign.kind for sign in found)))
    return Inspection()


def _bears(reading: str, sign: Sign) -> bool:
    return any(not _is_asked_about(reading, it) for it in sign.pattern.finditer(reading))


def _is_asked_about(reading: str, found: re.Match[str]) -> bool:
    """Return whether a clause is a question about the subject and not an order to the desk."""
    before = reading[max(0, found.start() - _LONGEST_QUESTION) : found.start()]
    clause = _CLAUSE_END.split(before)[-1] + found[0]
    return _ASKED.match(clause) is not None and _TO_YOU.search(clause) is None


def _weight(found: list[Sign], characters: int) -> float:
    """Return the weight of all signs; several signs weigh more in a long text.

    A long harmless text may contain one phrase of attackers; a long attack contains several.
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
