"""Keeps a written answer in case the question ends before a judge has read it.

Such an answer is checked by the rules that do not need a model: parts that are proven false are
omitted, and addresses that occur in neither a source nor a user message are removed. The answer
states that it has not been judged.
"""

from citations.citing import claims_something
from citations.faults import CheckedAnswer, text_of, withhold_faults
from citations.marking import remove_marks
from citations.wording import check_missing, list_notices
from envelope.sources import SourceReference, SourceUsed
from envelope.texts import Texts
from manager.state import BestAnswer, Json, State

UNJUDGED_FIELDS = frozenset(
    field.name for field in (BestAnswer.is_unjudged, BestAnswer.is_cut, BestAnswer.lacks)
)


def unjudged_answer(state: State) -> Json | None:
    """Return the fields of an answer that a model wrote and that has not been judged.

    Returns None if there is no such answer, if the judge has rejected it, or if nothing remains of
    it.
    """
    judged = state.judged_answer
    if not state.response or state.answered_by == "search":
        return None
    if judged is not None and remove_marks(judged.text) == remove_marks(state.response):
        return None
    answer = _read_answer(state)
    kept = withhold_faults(answer)
    if not kept.used or not any(map(claims_something, kept.blocks)):
        return None
    return {
        "text": kept.text,
        "sources": [source.model_dump(mode="json") for source in kept.used],
        "quality_score": None,
        "is_unjudged": True,
        "is_cut": len(kept.blocks) < len(answer.blocks),
        "lacks": _find_lacks(state, answer),
    }


def add_notices(best: BestAnswer, texts: Texts, language: str) -> str:
    """Return the text of an answer; for an unjudged answer, with the notices that its reader
    needs.
    """
    if not best.is_unjudged:
        return best.text
    notices = list_notices(
        best.text, texts, language, is_cut=best.is_cut, lacks=best.lacks, unjudged=""
    )
    return "\n\n".join((best.text, *notices))


def _read_answer(state: State) -> CheckedAnswer:
    turns = state.history
    asked = state.canonical_question
    return CheckedAnswer(
        text=state.response,
        context=state.search_context,
        references=tuple(map(SourceReference.model_validate, state.source_references)),
        used=tuple(map(SourceUsed.model_validate, state.sources_used)),
        language=state.language,
        said=(
            asked,
            state.assumption,
            *map(str, state.collected_info.values()),
            *(turn.text for turn in turns),
        ),
        typed=(state.text, *(turn.text for turn in turns if turn.speaker == "user")),
        assumption=state.assumption,
    )


def _find_lacks(state: State, answer: CheckedAnswer) -> str | None:
    if not state.missing:
        return None
    known = "\n".join(text_of(reference, answer.context) for reference in answer.references)
    return check_missing(state.missing, (known, state.canonical_question))
