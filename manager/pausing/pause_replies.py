"""Builds the replies of messages that end with a pause, or at a pause that they cannot answer."""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue, TypeAdapter

from citations.links import plain_line
from envelope.conversation import Pause, PauseQuestion, SuggestedAction
from envelope.outcome import Outcome
from manager.flow import Ending
from manager.pausing.reply_reading import compute_code, list_missing
from manager.port import ReplyTexts

PAUSE_ENDINGS = frozenset({Ending.PAUSE, Ending.PAUSE_OVER, Ending.PAUSE_FOREIGN})
Payload = Mapping[str, JsonValue]
_REPLY: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def end_with_pause(
    ending: Ending, payload: Payload, texts: ReplyTexts, language: str
) -> dict[str, JsonValue]:
    """Return the questions of a pause; else why it does not go on, with its best answer."""
    pause = find_new_pause(payload)
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
    found = _REPLY.validate_python(best)
    return {**found, "outcome": Outcome.ANSWERED.value, "text": f"{over}\n\n{found.get('text')}"}


def find_new_pause(payload: Payload) -> Pause | None:
    """Return the pause with which a message ends, if it asks for information or an approval."""
    found = payload.get("new_pause")
    return Pause.model_validate(found) if isinstance(found, dict) else None


def make_pause_reply(pause: Pause, texts: ReplyTexts, language: str) -> dict[str, JsonValue]:
    """Return the reply that asks the questions of a pause which are still open."""
    missing = {one.name for one in list_missing(pause, pause.answers)}
    asked = [one for one in pause.questions if one.field is None or one.field.name in missing]
    lead = texts.text(f"ask_{pause.kind}", language)
    lines = [plain_line(one.text) for one in asked]
    if len(lines) > 1:
        # A single question has none: the choices below it are numbered.
        lines = [f"{number}. {line}" for number, line in enumerate(lines, 1)]
    actions = [one.model_dump(mode="json", exclude_none=True) for one in
               _make_actions(pause, asked, texts, language)]  # fmt: skip
    questions: list[JsonValue] = [one.model_dump(mode="json", exclude_none=True) for one in asked]
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


def _make_actions(
    pause: Pause, asked: Sequence[PauseQuestion], texts: ReplyTexts, language: str
) -> Iterable[SuggestedAction]:
    """Yield the buttons of a pause: approve and deny, or the choices of its only question."""
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
