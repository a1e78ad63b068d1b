"""Finds by words whether a question asks for a review, and which specialists it needs."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from envelope.ways.specialists import SpecialistName
from envelope.ways.tool_loop import QueryType

_FILE = Path(__file__).with_name("review_cues.toml")
_S = SpecialistName
_SHORTEST = 5
"""A cue of fewer letters must be the whole word: "act" is not the beginning of "active"."""
_EXTRA: Mapping[str, SpecialistName] = {
    "risk": _S.RISK_VERIFIER,
    "citations": _S.CITATION_AUDITOR,
    "gaps": _S.GAP_SYNTHESIZER,
    "classifying": _S.CLASSIFIER,
}
_WORD = re.compile(r"[^\W_]{1,60}")


@dataclass(frozen=True, slots=True)
class PlannedReview:
    """A review: its kind, and the specialists that it needs in any order.

    `is_vague`: the question names neither a document nor rules, such as "Is it compliant?".
    """

    kind: QueryType
    sequence: tuple[SpecialistName, ...]
    is_vague: bool = False


def plan_review(question: str) -> PlannedReview | None:
    """Return the review that a question asks for; None: it asks for none.

    It names something that is reviewed, and a check of it, its risks, or a report about it.
    """
    found = {name for name in _load() if _has(question, name)}
    checks = "checking" in found and bool({"rules", "reviewed"} <= found)
    checks = checks or _asks_for_conformity(question)
    is_review = checks or ("reviewed" in found and bool({"risk", "gaps"} & found))
    if not is_review:
        return None
    sequence = [_S.EXTRACTOR, _S.REQUIREMENT_EXTRACTOR, _S.COMPLIANCE]
    if "reporting" in found:
        every = [name for name in SpecialistName if name is not _S.SYNTHESIS]
        return PlannedReview(QueryType.REPORTING, tuple(every))
    sequence += [one for name, one in _EXTRA.items() if name in found]
    return PlannedReview(
        QueryType.RISK if "risk" in found else QueryType.COMPLIANCE,
        tuple(sequence),
        is_vague=_asks_for_conformity(question) and not _list_names(question),
    )


def _asks_for_conformity(question: str) -> bool:
    """Return whether a question asks only if something keeps the rules, in other words too.

    "Are quiet hours legal?" asks about a subject, which a search finds.
    """
    asked, _ = _split_choice(question)
    named = {word.casefold() for word in _list_names(question)}
    other = [
        word
        for word in _WORD.findall(asked.casefold())
        if word not in named and word not in _load()["empty"] and not _has(word, "conformity")
    ]
    return _has(question, "conformity") and not other


def _list_names(question: str) -> list[str]:
    """Return the words that name a document or rules, or may be a part of such a name."""
    asked, chosen = _split_choice(question)
    words = _WORD.findall(asked)
    kinds = [word for word in words if _has(word, "reviewed") or _has(word, "rules")]
    return [*_WORD.findall(chosen), *kinds] + [
        word
        for word in words[1:]
        if (word[0].isupper() or word.isdecimal())
        and word.casefold() not in _load()["empty"]
        and not _has(word, "conformity")
    ]


def _split_choice(question: str) -> tuple[str, str]:
    """Return a question, and the choice in reply to a clarification: "Is it? (A title)"."""
    asked, mark, chosen = question.partition(" (")
    is_chosen = bool(mark) and chosen.endswith(")")
    return (asked, chosen[:-1]) if is_chosen else (question, "")


def _has(question: str, name: str) -> bool:
    plain = question.casefold()
    words = _WORD.findall(plain)
    for cue in _load()[name]:
        if " " in cue and cue in plain:
            return True
        if len(cue) < _SHORTEST and cue in words:
            return True
        if len(cue) >= _SHORTEST and any(word.startswith(cue) for word in words):
            return True
    return False


@cache
def _load() -> Mapping[str, tuple[str, ...]]:
    tables: dict[str, list[str]] = tomllib.loads(_FILE.read_text("utf-8"))
    return {name: tuple(cues) for name, cues in tables.items()}
