"""Takes required facts from the messages of the user, and words the questions for the rest.

A value counts only if it has the form of its field. Given values are kept when the rest is asked
again; an answer that is itself a question answers no field.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from pydantic import BaseModel, JsonValue

from llm.offline.words import normalise
from swarm.information.fields import FieldType, RequiredInfoField, TypedQuestion

LONGEST_VALUE = 500
_LONGEST = 4_000
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:[.,]\d{1,6})?(?![\w])")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_YES = frozenset({"yes", "y", "true", "ja", "sí", "si", "oui", "ok", "sure", "of course"})
_NO = frozenset({"no", "n", "false", "nein", "non", "nope"})
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


class CollectedInfo(BaseModel, frozen=True, extra="forbid"):
    """The facts that were given, by field, and the questions for those that were not.

    `is_other_question`: the answer was a new question; nothing was taken from it.
    """

    values: dict[str, JsonValue] = {}
    questions: tuple[TypedQuestion, ...] = ()
    is_other_question: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether no required fact is missing."""
        return not any(one.field.required for one in self.questions)


def gather(
    fields: Mapping[str, Sequence[RequiredInfoField]],
    messages: Iterable[str],
    known: Mapping[str, JsonValue] | None = None,
) -> CollectedInfo:
    """Return the facts in the messages of the user, newest last, and one list of questions.

    `fields` are those of each worker, by its id: a field that several workers need is asked once.
    Only required fields are asked; others get their default.
    """
    values = dict(known or {})
    texts = [text[:_LONGEST] for text in messages]
    asked: dict[str, TypedQuestion] = {}
    for worker_id, own in fields.items():
        for field in own:
            if field.name not in values:
                found = _find_value(field, texts)
                if found is not None:
                    values[field.name] = found
            if field.name in values:
                continue
            if field.required:
                asked[field.name] = _ask(asked.get(field.name), field, worker_id)
            elif field.default is not None:
                values[field.name] = field.default
    return CollectedInfo(values=values, questions=tuple(asked.values()))


def read_answers(
    questions: Sequence[TypedQuestion],
    answer: str | Mapping[str, JsonValue],
    known: Mapping[str, JsonValue] | None = None,
) -> CollectedInfo:
    """Return the facts of an answer, typed by question id or as one text, and the open questions.

    A text answers several questions by its lines, in their order, or by the cues of their fields.
    """
    values = dict(known or {})
    if isinstance(answer, str) and is_question(answer):
        return CollectedInfo(values=values, questions=tuple(questions), is_other_question=True)
    lines = [] if not isinstance(answer, str) else answer[:_LONGEST].strip().splitlines()
    open_questions = []
    for number, question in enumerate(questions):
        given: JsonValue = None
        if isinstance(answer, str):
            given = _find_value(question.field, [answer[:_LONGEST]])
            if given is None and len(lines) == len(questions):
                given = parse_value(question.field, lines[number])
            if given is None and len(questions) == 1:
                given = parse_value(question.field, answer)
        else:
            given = parse_value(question.field, answer.get(question.id))
        if given is None:
            open_questions.append(question)
        else:
            values[question.field.name] = given
    return CollectedInfo(values=values, questions=tuple(open_questions))


def parse_value(field: RequiredInfoField, value: JsonValue) -> JsonValue:
    """Return a value in the form of a field; None if it has another form."""
    if field.type is FieldType.YES_NO:
        return _parse_yes_no(value)
    if field.type is FieldType.NUMBER:
        return _parse_number(value)
    if not isinstance(value, str):
        return None
    text = value.strip()[:LONGEST_VALUE]
    if field.type is FieldType.DATE:
        return _parse_date(text)
    if field.type is FieldType.CHOICE:
        plain = normalise(text)
        return next((one for one in field.choices if normalise(one) == plain), None)
    return text or None


def is_question(text: str) -> bool:
    """Return whether an answer asks instead of answering."""
    return text.strip().endswith(_QUESTION_MARKS)


def _find_value(field: RequiredInfoField, texts: Sequence[str]) -> JsonValue:
    """Return the value of a field in free text, the newest first; None if it is not there."""
    for text in reversed(texts):
        plain = f" {normalise(text)} "
        if field.type is FieldType.CHOICE:
            named = [one for one in field.choices if f" {normalise(one)} " in plain]
            if len(named) == 1:
                return named[0]
            continue
        if field.type is FieldType.TEXT:
            cue = next((one for one in field.cues if f" {normalise(one)} " in plain), None)
            if cue is not None:
                return cue
            continue
        position = _find_cue(field, text)
        if position < 0:
            continue
        found = _find_typed(field, text[position:])
        if found is not None:
            return found
    return None


def _find_cue(field: RequiredInfoField, text: str) -> int:
    """Return where the first cue of a field is in a text; -1: nowhere."""
    folded = text.casefold()
    places = [folded.find(cue.casefold()) for cue in field.cues]
    return min((place for place in places if place >= 0), default=-1)


def _find_typed(field: RequiredInfoField, text: str) -> JsonValue:
    if field.type is FieldType.NUMBER:
        return _parse_number(text)
    return _parse_date(text) if field.type is FieldType.DATE else None


def _parse_number(value: JsonValue) -> JsonValue:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value
    found = _NUMBER.search(str(value)[:_LONGEST])
    return float(found[0].replace(",", ".")) if found is not None else None


def _parse_date(text: str) -> JsonValue:
    found = _ISO_DATE.search(text)
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3])).isoformat()
    except ValueError:
        return None


def _parse_yes_no(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return value
    plain = normalise(value).strip() if isinstance(value, str) else ""
    if plain in _YES:
        return True
    return False if plain in _NO else None


def _ask(known: TypedQuestion | None, field: RequiredInfoField, worker_id: str) -> TypedQuestion:
    if known is not None:
        return known.model_copy(update={"workers": (*known.workers, worker_id)})
    return TypedQuestion(
        id=field.name,
        text=field.question,
        field=field,
        suggestions=field.choices[:5],
        workers=(worker_id,),
    )
