"""Chooses the way of a question by rules: by its comparisons, calculations and relations.

The weights say how many looks a question needs: two compared things, a calculation from results,
or a thing that is named only by its relation to another one. They were set so that questions
of one place stay below the limit of the search; `docs/measurements/evaluation.md` has the figures.
"""

import re

from envelope.ways.tool_loop import Intent, QueryType
from llm.offline.planning.question_parts import QuestionParts, read_question
from llm.offline.planning.question_steps import read_steps
from llm.offline.planning.review_planning import plan_review
from llm.tasks.triage import Inputs, Output

_COMPARISON = 40
_ARITHMETIC = 40
_SEPARATE = 30
_RELATION = 14
_STEPS = 30
_LONG = 25
_REVIEW = 85
_VAGUE = 0.7
_MOST = 100
_RELATIONS = re.compile(
    r"\b(?:whose|where|who|which|that|the \w{1,30} of (?:the|a|an)|in which|of which)\b",
    re.IGNORECASE,
)
"""Words by which a question names a thing through another one, in English."""
_LEAST_RELATIONS = 3
_TYPES = {Intent.COMPARISON: QueryType.CROSS_DOC, Intent.SUMMARY: QueryType.SYNTHESIS}


def answer(inputs: Inputs) -> Output:
    """Return the judgement about a question.

    Only a review without any name is vague: other questions are left to the search, which knows
    more.
    """
    review = plan_review(inputs.question)
    if review is not None:
        return Output(
            reasoning="it does not say which document is meant, and against which rules"
            if review.is_vague
            else "it asks for a review of a document against rules",
            query_type=review.kind,
            semantic_type="compliance_check",
            complexity=_REVIEW,
            vagueness=_VAGUE if review.is_vague else 0.0,
            needs_clarification=review.is_vague,
            agent_sequence=review.sequence,
        )
    parts = read_question(inputs.question)
    reasons = dict(_list_reasons(parts))
    return Output(
        reasoning=", ".join(reasons) or "one search can find it",
        query_type=_TYPES.get(parts.intent, QueryType.SIMPLE_SEARCH)
        if sum(reasons.values()) >= _COMPARISON // 2
        else QueryType.SIMPLE_SEARCH,
        semantic_type=parts.intent.value,
        complexity=min(_MOST, 5 + sum(reasons.values())),
        vagueness=0.0,
    )


def _list_reasons(parts: QuestionParts) -> list[tuple[str, int]]:
    reasons = []
    if parts.intent is Intent.COMPARISON and len(parts.versions) > 1:
        reasons.append(("it compares versions", _COMPARISON))
    if parts.arithmetic:
        reasons.append(("it computes", _ARITHMETIC))
    if len(parts.separate) > 1:
        reasons.append(("it has several parts", _SEPARATE * (len(parts.separate) - 1)))
    steps = read_steps(parts.text)
    if steps.is_comparison:
        reasons.append(("it compares two things", _STEPS))
    elif steps.is_chain or steps.is_inside:
        reasons.append(("it names a thing by another one", _STEPS))
    relations = len(_RELATIONS.findall(parts.text))
    if relations >= _LEAST_RELATIONS:
        reasons.append(("one thing leads to another", _RELATION * (relations - 1)))
    if parts.is_long:
        reasons.append(("it describes a whole matter", _LONG))
    return reasons
