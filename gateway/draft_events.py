"""Follows the draft of an answer in its journal: the sentences that are shown, and those retracted.

A draft is the checked beginning of an answer. It grows while the model writes; another writing, or
another attempt, replaces it. The judge reads the answer last, and its rejections are retracted.

| event     | data                                                                              |
|-----------|-----------------------------------------------------------------------------------|
| draft     | `draft`: the name of this text; `attempt`; `offset`: characters of it that stay;  |
|           | `text`: what follows them; `language`; `sources`: what it cites                   |
| retracted | `draft`; `sentences`: those that were shown and are not part of the answer        |
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from broker.values import Fields, JournalEntry
from citations.blocks import BlockKind, read_blocks
from citations.claims import sentences
from citations.marking import remove_marks
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.answer import Answer, Shows
from gateway.events import Event

_RETRACTED = 1
"""The number of a retraction within its entry; the stage of the same entry has number 0."""
_READ_BY_JUDGE = "quality"
_WRITTEN_BY = "response"
_FINAL = "final"
_APPROVED = "approved"
_WHOLE = (BlockKind.CODE, BlockKind.HEADER, BlockKind.ROW)


class DraftFollower:
    """Turns the entries of one journal, in their order, into events of its drafts."""

    def __init__(self, question: Question, *, shows: Shows, language: str = "en") -> None:
        self._question = question
        self._shows = shows
        self._language = language
        self._name = ""
        self._text = ""
        self._sent = ""
        self._approved = ""

    def skip(self, entry: JournalEntry) -> None:
        """Read an entry whose events the reader has; the next draft comes whole all the same."""
        for _ in self.read(entry):
            self._sent = ""

    def read(self, entry: JournalEntry) -> Iterator[Event]:
        """Yield the events of the next entry."""
        match entry.kind:
            case "draft":
                yield self._read_draft(entry)
            case "agent_run" if entry.fields.get("role") == _READ_BY_JUDGE:
                self._approved = _read_response(entry.fields)
            case "routed" if self._text:
                yield from self._retract(entry)

    def _read_draft(self, entry: JournalEntry) -> Event:
        name, answer = str(entry.fields.get("draft")), self._show(entry.fields)
        before = self._sent if name == self._name else ""
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, answer.text, strict=False))
        offset = sum(1 for _ in same)
        self._name, self._text, self._sent = name, answer.text, answer.text
        shown = answer.model_dump(mode="json", exclude_none=True)
        data: Fields = {
            "draft": name,
            "attempt": entry.fields.get("attempt", 0),
            "offset": offset,
            "text": answer.text[offset:],
            "language": answer.language,
            "sources": shown["sources"],
        }
        return Event(f"{entry.id}.0", "draft", data)

    def _show(self, fields: Fields) -> Answer:
        """Return the text and the sources as those of an answer are shown."""
        reply: Fields = {
            "conversation_id": self._question.conversation_id,
            "message_id": self._question.message_id,
            "outcome": Outcome.ANSWERED.value,
            "text": fields.get("text"),
            "language": fields.get("language"),
            "sources": fields.get("sources"),
        }
        return self._shows(reply, self._language)

    def _retract(self, entry: JournalEntry) -> Iterator[Event]:
        stage, target = entry.fields.get("stage"), entry.fields.get("target")
        if stage == _WRITTEN_BY and target == _READ_BY_JUDGE:
            return
        approved = self._approved if entry.fields.get("event") == _APPROVED else ""
        sentences = find_retracted(self._text, approved)
        if target != _FINAL or not approved:
            self._text = self._sent = ""
        if sentences:
            data: Fields = {"draft": self._name, "sentences": list(sentences)}
            yield Event(f"{entry.id}.{_RETRACTED}", "retracted", data)


def find_retracted(shown: str, approved: str) -> Sequence[str]:
    """Return the sentences, rows and code of `shown` that `approved` does not have, marks aside."""
    kept = set(_split(approved))
    return [part for part in _split(shown) if part not in kept]


def _split(text: str) -> Iterator[str]:
    for block in read_blocks(text):
        whole = block.kind in _WHOLE
        for part in (block.text,) if whole else sentences(block.text):
            bare = part if block.kind is BlockKind.CODE else remove_marks(part)
            if plain := " ".join(bare.split()):
                yield plain


def _read_response(fields: Fields) -> str:
    writes = fields.get("writes")
    response = writes.get("response") if isinstance(writes, dict) else None
    return response if isinstance(response, str) else ""
