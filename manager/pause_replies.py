"""Parses replies to a pause with rules, and builds the replies that ask the questions of a
pause.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import isfinite

from pydantic import JsonValue, TypeAdapter

from citations.links import plain_line
from citations.verbatim import as_markdown
from envelope.conversation import InputField, Pause, PauseQuestion, PauseReply, SuggestedAction
from envelope.outcome import Outcome
from envelope.texts import Texts
from manager.flow import Ending
from manager.state import BestAnswer, Json, State
from manager.unjudged import add_notices

PAUSE_ENDINGS = frozenset({Ending.PAUSE, Ending.PAUSE_OVER, Ending.PAUSE_FOREIGN})
LONGEST_VALUE = 2_000
"""Maximum number of characters of a value."""
CODE_DIGITS = 8
_QUESTION_MARKS = ("?", "？", "؟")
_CODED = re.compile(r"(?P<label>[^#\n]{1,80}) #(?P<code>[0-9a-f]{8})")
_REPLY: TypeAdapter[Json] = TypeAdapter(Json)
Values = dict[str, str | float | None]
"""Values by field name; None if the user declined to give a value and must not be asked again."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The user approved the request or gave all required values (`is_granted`), or declined or
    stopped.
    """

    is_granted: bool
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Values are missing or invalid; `values` contains the valid ones so far."""

    values: Values


@dataclass(frozen=True, slots=True)
class NotOpen:
    """The pause has expired, was answered, or does not belong to this conversation."""


@dataclass(frozen=True, slots=True)
class OtherTopic:
    """The message is not a reply to the pause."""


ReadReply = Answered | Unanswered | NotOpen | OtherTopic


@dataclass(frozen=True, slots=True)
class ReplyLabels:
    """The normalized labels of the approve, deny, and stop buttons, in all languages.

    `yes` and `no` contain words that users may type instead.
    """

    approve: frozenset[str]
    deny: frozenset[str]
    stop: frozenset[str] = frozenset()
    yes: frozenset[str] = frozenset()
    no: frozenset[str] = frozenset()


def end_with_pause(ending: Ending, state: State, texts: Texts, language: str) -> Json:
    """Return the questions of a pause. If the pause cannot continue, return the reason, with the
    best answer if there is one.
    """
    pause = state.new_pause
    language = (pause.language if pause is not None else "") or language
    if ending is Ending.PAUSE and pause is not None:
        return make_pause_reply(pause, texts, language)
    if ending is Ending.PAUSE_FOREIGN:
        text = texts.text("pause_foreign", language)
        return {"outcome": Outcome.REFUSED.value, "text": text}
    best = pause.best_answer if pause is not None else None
    over = texts.text("pause_over", language)
    if best is None:
        return {"outcome": Outcome.REFUSED.value, "text": over}
    reply = _REPLY.validate_python(best)
    text = add_notices(BestAnswer(reply), texts, language)
    return {**reply, "outcome": Outcome.ANSWERED.value, "text": f"{over}\n\n{text}"}


def make_pause_reply(pause: Pause, texts: Texts, language: str) -> Json:
    """Return the reply that asks the open questions of a pause."""
    missing = {field.name for field in list_missing(pause, pause.answers)}
    asked = [
        question
        for question in pause.questions
        if question.field is None or question.field.name in missing
    ]
    asked = asked[:1] if pause.is_one_by_one else asked
    lead = texts.text(f"ask_{pause.kind}", language)
    lines = [as_markdown(plain_line(question.text)) for question in asked]
    if len(lines) > 1:
        # A single question is not numbered, because its choices are, as options below it.
        choices = [
            as_markdown(
                ", ".join(map(plain_line, question.field.choices if question.field else ()))
            )
            for question in asked
        ]
        lines = [
            f"{number}. {line} ({shown})" if shown else f"{number}. {line}"
            for number, (line, shown) in enumerate(zip(lines, choices, strict=True), 1)
        ]
    actions = [action.model_dump(mode="json", exclude_none=True) for action in
               _make_actions(pause, asked, texts, language)]  # fmt: skip
    questions: list[JsonValue] = [
        question.model_dump(mode="json", exclude_none=True) for question in asked
    ]
    return {
        "outcome": "clarification",
        "text": "\n".join((lead, *lines)),
        "suggested_actions": [*actions],
        "pause": {
            "id": pause.pause_id,
            "kind": pause.kind,
            "expires": pause.expires,
            "questions": questions,
        },
    }


def compute_code(pause_id: str) -> str:
    """Return the hexadecimal code that identifies a pause in its buttons."""
    return hashlib.blake2b(pause_id.encode(), digest_size=CODE_DIGITS // 2).hexdigest()


def read_typed(pause: Pause | None, reply: PauseReply, now: float) -> ReadReply:
    """Return the meaning of a structured reply; `now` is in Unix seconds."""
    if pause is None or reply.pause_id != pause.pause_id or now >= pause.expires:
        return NotOpen()
    if reply.approve is False:
        return Answered(is_granted=False, values=dict(pause.answers))
    if pause.kind == "approval":
        return Answered(is_granted=True) if reply.approve else Unanswered({})
    return _complete(pause, _read_values(pause, reply.fields))


def read_words(
    pause: Pause | None, text: str, labels: ReplyLabels, now: float, *, is_own: bool = True
) -> ReadReply:
    """Return the meaning of a text message, or of a button click, which sends the button's label as
    text.

    Free text from a user who was not asked (`is_own` is False) is treated as a different topic.
    `now` is in Unix seconds.
    """
    # Repeated lines are one click: messages in quick succession are joined.
    lines = list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    words = lines[0] if len(lines) == 1 else ""
    coded = _CODED.fullmatch(words)
    label = _fold(coded["label"] if coded else words)
    is_button = coded is not None and label in labels.approve | labels.deny
    if coded is not None and is_button and not _is_code_of(pause, coded["code"], now):
        return NotOpen()
    if pause is None or now >= pause.expires:
        return OtherTopic()
    if label in labels.deny | labels.stop:
        return Answered(is_granted=False, values=dict(pause.answers))
    if pause.kind == "approval":
        plain = _fold(words) if is_own else ""
        if plain in labels.no:
            return Answered(is_granted=False)
        is_granted = label in labels.approve or plain in labels.yes
        return Answered(is_granted=True) if is_granted else OtherTopic()
    return _read_lines(pause, lines, is_own=is_own)


def needs_reading(pause: Pause, state: State, read: ReadReply) -> bool:
    """Return whether a model must interpret a message, because the rules did not find all missing
    values.
    """
    is_words = state.pause_reply is None and state.command is None and bool(state.text.strip())
    is_open = pause.kind == "information" and state.reply_reading is None
    return is_open and is_words and isinstance(read, OtherTopic | Unanswered)


def may_be_reply(state: State) -> bool:
    """Return whether a message that the model could not interpret may still answer a pause."""
    return state.reply_reading == "unread" and not state.text.rstrip().endswith(_QUESTION_MARKS)


def list_fields(pause: Pause) -> list[InputField]:
    """Return the fields of a pause."""
    return [question.field for question in pause.questions if question.field is not None]


def list_missing(pause: Pause, values: Mapping[str, str | float | None]) -> list[InputField]:
    """Return the required fields that have no value and that the user has not declined."""
    return [field for field in list_fields(pause) if field.required and field.name not in values]


def _make_actions(
    pause: Pause, asked: Sequence[PauseQuestion], texts: Texts, language: str
) -> Iterable[SuggestedAction]:
    """Yield the buttons of a pause: approve and deny, or the choices for its only question."""
    if pause.kind == "approval":
        for key in ("approve", "deny"):
            label = texts.text(key, language)
            yield SuggestedAction(label=label, value=f"{label} #{compute_code(pause.pause_id)}")
        return
    if len(asked) == 1:
        wanted = asked[0].field
        for choice in (wanted.choices if wanted is not None else ()) or asked[0].suggestions:
            yield SuggestedAction(label=choice, value=choice)
    label = texts.text("exit_action", language)
    yield SuggestedAction(label=label, value=label, kind="exit")


def _is_code_of(pause: Pause | None, code: str, now: float) -> bool:
    return pause is not None and code == compute_code(pause.pause_id) and now < pause.expires


def _read_lines(pause: Pause, lines: Sequence[str], *, is_own: bool) -> ReadReply:
    """Parse lines such as `name: value`, or the whole text as the value of the only open field."""
    names = {field.name.casefold(): field.name for field in list_fields(pause)}
    named: dict[str, str | int | float | None] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon and name.strip().casefold() in names:
            named[names[name.strip().casefold()]] = value.strip()
    if named:
        return _complete(pause, _read_values(pause, named))
    missing = list_missing(pause, pause.answers)
    missing = missing[:1] if pause.is_one_by_one else missing
    text = "\n".join(lines)
    if len(missing) != 1 or text.endswith(_QUESTION_MARKS):
        return OtherTopic()
    if missing[0].type == "text" and not is_own:
        return OtherTopic()
    values = _read_values(pause, {missing[0].name: text})
    return _complete(pause, values) if values else OtherTopic()


def _complete(pause: Pause, values: Values) -> ReadReply:
    known = {**pause.answers, **values}
    return Unanswered(known) if list_missing(pause, known) else Answered(True, known)


def _read_values(pause: Pause, given: Mapping[str, str | int | float | None]) -> Values:
    """Return the values that are valid for the type of their field."""
    values: Values = {}
    for wanted in list_fields(pause):
        if wanted.name not in given:
            continue
        stated = given[wanted.name]
        value = None if stated is None else _parse(wanted, stated)
        if stated is None or value is not None:
            values[wanted.name] = value
    return values


def _parse(wanted: InputField, given: str | int | float) -> str | float | None:
    text = str(given).strip()
    if not text or len(text) > LONGEST_VALUE:
        return None
    if wanted.type == "number":
        return _parse_number(given, text)
    if wanted.type == "date":
        return _parse_date(text)
    if wanted.type == "choice":
        return _parse_choice(wanted.choices, text)
    return text


def _parse_number(given: str | int | float, text: str) -> float | None:
    if isinstance(given, str) and _is_ambiguous(text):
        return None
    try:
        number = float(text.replace(",", ".") if isinstance(given, str) else given)
    except (ValueError, OverflowError):
        return None
    if not isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _is_ambiguous(text: str) -> bool:
    """Return whether the value of a number depends on the locale, such as "1,200" or "1.200"."""
    whole, mark, rest = text.replace(",", ".").partition(".")
    has_whole = bool(whole.lstrip("+-").strip("0"))
    return bool(mark) and has_whole and len(rest) == 3 and rest.isdecimal()


def _parse_date(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def _parse_choice(choices: Sequence[str], text: str) -> str | None:
    """Return the choice with this label or with this 1-based number in the list, or None."""
    by_words = {_fold(choice): choice for choice in choices}
    if _fold(text) in by_words:
        return by_words[_fold(text)]
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(len(choices)))
    return choices[int(text) - 1] if is_number and 0 < int(text) <= len(choices) else None


def _fold(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")
