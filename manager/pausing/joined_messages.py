"""Joins messages that followed at once into one, and hides from it what not all may read."""

from collections.abc import Sequence

from pydantic import JsonValue

from envelope.conversation import Pause
from envelope.envelope import Envelope, decode
from envelope.question import has_all
from manager.contract import write_payload

_NO_TEXT = frozenset({"command", "pause_reply", "review"})
_UNKNOWN = ""
"""Stands for the author of a message whose channel knows no people."""


def join_messages(envelope: Envelope, merged: Sequence[bytes]) -> Envelope:
    """Return the envelope with the texts of the messages that were merged into it at acceptance.

    It has the groups that all of their people have, and names all of these people.
    """
    if not merged:
        return envelope
    joined = [envelope, *map(decode, merged)]
    groups = set(envelope.groups).intersection(*(each.groups for each in joined))
    texts = [str(each.payload.get("text") or "") for each in joined]
    changes: dict[str, JsonValue] = {"text": "\n".join(texts)}
    people = {person for each in joined for person in _list_people(each)}
    if people != {_UNKNOWN}:
        changes["people"] = [*sorted(people)]
    return envelope.with_groups(tuple(sorted(groups))).replace(
        payload=write_payload(envelope.payload, changes)
    )


def take_shown(envelope: Envelope, shown: Sequence[bytes]) -> Envelope:
    """Return the envelope with the text of a message that waits behind its question.

    Only a text of the same person is looked at: others do not end the work, and may not learn of it
    from what follows. A command, a reply to a pause and a review are no text.
    """
    message = decode(shown[0]) if shown else None
    if (
        message is None
        or message.groups != envelope.groups
        or not _NO_TEXT.isdisjoint(message.payload)
    ):
        return envelope
    text = message.payload.get("text")
    if not text or _list_people(message) != _list_people(envelope):
        return envelope
    return envelope.replace(payload=write_payload(envelope.payload, {"text": text}))


def is_hidden_clarification(pause: JsonValue, groups: Sequence[str]) -> bool:
    """Return whether a stored pause is a clarification that people of these groups may not read.

    A pause of another kind stays open: people who lack one of its groups cannot close it.
    """
    if not isinstance(pause, dict):
        return False
    found = Pause.model_validate(pause)
    return found.kind == "clarification" and not has_all(found.groups or (), groups)


def _list_people(envelope: Envelope) -> list[str]:
    found = envelope.payload.get("people")
    known = [str(person) for person in found] if isinstance(found, list) else []
    return known or [_UNKNOWN]
