"""Chooses the way of a question by rules: by its comparisons, calculations and relations.

The weights say how many looks a question needs: two compared things, a calculation from results,
or a thing that is named only by its relation to another one. They were set so that questions
of one place stay below the limit of the search; `docs/measurements/evaluation.md` has the figures.
"""

from envelope.ways.tool_loop import Intent, QueryType
from llm.offline.phrases import QUESTION_WORDS
from llm.offline.planning.question_parts import QuestionParts, read_question
from llm.offline.planning.question_steps import count_relations, read_steps
from llm.offline.planning.review_planning import plan_review
from llm.offline.words import normalise
from llm.tasks.triage import Inputs, Output

_COMPARISON = 40
_ARITHMETIC = 40
_SEPARATE = 30
_RELATION = 14
_STEPS = 30
_SUMMARY = 30
_LONG = 25
_REVIEW = 85
_VAGUE = 0.7
_MOST = 100
_DOCUMENT_CHANGES = frozenset({"added", "removed"})
"""Cues of questions for the documents that are new in a version, or gone."""
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
    is_of_documents = bool(parts.versions) and not _DOCUMENT_CHANGES.isdisjoint(parts.cues)
    if parts.intent is Intent.COMPARISON and (len(parts.versions) > 1 or is_of_documents):
        reasons.append(("it compares versions", _COMPARISON))
    if parts.intent is Intent.SUMMARY and not _asks(parts.text):
        reasons.append(("it asks for a summary", _SUMMARY))
    if parts.arithmetic:
        reasons.append(("it computes", _ARITHMETIC))
    if len(parts.separate) > 1:
        reasons.append(("it has several parts", _SEPARATE * (len(parts.separate) - 1)))
    if parts.is_long:
        reasons.append(("it describes a whole matter", _LONG))
    return [*reasons, *_list_forms(parts)]


def _asks(text: str) -> bool:
    """Return whether a text is a question: "how do I resume a task" asks for no summary."""
    return normalise(text).split(" ", 1)[0] in QUESTION_WORDS


def _list_forms(parts: QuestionParts) -> list[tuple[str, int]]:
    """Return the forms of a question that need more than one look."""
    reasons = []
    steps = read_steps(parts.text)
    if steps.is_comparison:
        reasons.append(("it compares two things", _STEPS))
    elif steps.is_chain or steps.is_inside:
        reasons.append(("it names a thing by another one", _STEPS))
    relations = count_relations(parts.text)
    if relations:
        reasons.append(("one thing leads to another", _RELATION * (relations - 1)))
    return reasons
