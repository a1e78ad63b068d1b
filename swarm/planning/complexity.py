"""Measures how complex a question is, by dimension, and how many workers it deserves."""

from collections.abc import Sequence

from envelope.ways.tool_loop import Intent
from llm.offline.criteria.read_criteria import read_set_question
from llm.offline.planning.listed_items import find_compared_names
from llm.offline.planning.listed_things import find_compared_list
from llm.offline.planning.question_parts import read_question
from llm.offline.support import terms, weight_of
from llm.offline.words import normalise
from swarm.planning.plan import MOST_WORKERS, QueryComplexity

_WEIGHTS = {
    "breadth": 0.3,
    "depth": 0.25,
    "judgement": 0.2,
    "comparison": 0.15,
    "length": 0.05,
    "ambiguity": 0.05,
}
_EACH = (" each ", " every ", " all ", " respective ", " respectively ", " top ", " among ")
_NUMBERS = (
    " two ", " three ", " four ", " five ", " six ", " seven ", " eight ", " nine ", " ten ",
    " countries ", " members ", " several ",
)  # fmt: skip
_RANKS = (
    " largest ", " smallest ", " highest ", " lowest ", " most ", " longest ", " oldest ",
    " latest ", " last ", " first ", " biggest ", " tallest ",
)  # fmt: skip
_LINKS = (" of the ", " whose ", " who ", " which ", " that ", " in which ", " by the ")
_OPINION = (" best ", " should ", " opinion ", " recommend ", " better ", " pros ", " think ")
_MOST_PARTS = 6
_LONG_WORDS = 60
_FEW_TERMS = 3
_SECONDS_PER_WAVE = 6.0
_GROUP_WORKERS = 6
"""The workers for a group whose members are not known yet."""


def measure_complexity(question: str, *, documents: int = 0) -> QueryComplexity:
    """Return the complexity; `documents` is the number of documents that it is about, if any."""
    dimensions = {
        "breadth": _scale(_count_parts(question, documents) - 1, _MOST_PARTS - 1),
        "depth": _scale(_count_cues(question, _LINKS), 3),
        "comparison": 1.0 if is_comparison(question) else 0.0,
        "judgement": 1.0 if is_opinion(question) else 0.0,
        "length": _scale(len(question.split()), _LONG_WORDS),
        "ambiguity": _measure_ambiguity(question),
    }
    score = sum(_WEIGHTS[name] * value for name, value in dimensions.items())
    workers = min(MOST_WORKERS, max(1, _count_parts(question, documents)))
    return QueryComplexity(
        score=round(min(1.0, score), 4),
        dimensions={name: round(value, 4) for name, value in dimensions.items()},
        suggested_workers=workers,
        estimated_time_seconds=round(_SECONDS_PER_WAVE * (1 + -(-workers // 8)), 1),
    )


def is_comparison(question: str) -> bool:
    """Return whether a question sets things against each other."""
    parts = read_question(question)
    return parts.intent is Intent.COMPARISON or bool(find_compared_names(question))


def is_opinion(question: str) -> bool:
    """Return whether a question has no single answer: several perspectives serve it."""
    return _count_cues(question, _OPINION) > 0


def asks_for_each(question: str) -> bool:
    """Return whether a question asks about every member of a group."""
    is_ranked = _count_cues(question, _NUMBERS) > 0 and _count_cues(question, _RANKS) > 0
    return is_ranked or _count_cues(question, _EACH) > 0


def _count_parts(question: str, documents: int) -> int:
    if documents and read_set_question(question) is not None:
        return documents
    names = find_compared_list(question)
    separate = len(read_question(question).separate)
    compared = len(find_compared_names(question)) if is_comparison(question) else 0
    group = _GROUP_WORKERS if asks_for_each(question) else 0
    return max(1, len(names), separate, compared, group)


def _count_cues(question: str, cues: Sequence[str]) -> int:
    plain = f" {normalise(question)} "
    return sum(cue in plain for cue in cues)


def _measure_ambiguity(question: str) -> float:
    carrying = [term for term in terms(question) if weight_of(term) >= 1]
    return max(0.0, 1 - len(carrying) / _FEW_TERMS)


def _scale(value: float, most: float) -> float:
    return max(0.0, min(1.0, value / most))
