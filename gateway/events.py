"""Turns a journal into the public events of a message: an allow-list of entries and fields.

| event    | from the entry | data                                                       |
|----------|----------------|------------------------------------------------------------|
| accepted | accepted       | `conversation_id`, `message_id`                            |
| stage    | routed         | `stage`: the role that begins now; `attempt`: from 0;      |
|          |                | `branches`: the branches that begin now, if any;           |
|          |                | `plan`: a description of each of them, or empty;           |
|          |                | `completed`: the parts of the plan that have ended         |
| branch   | routed         | a `branch` has ended; `status`: `completed` or `failed`    |
| text     | finished       | `text`: the next piece; `offset`: characters before it     |
| sources  | finished       | `sources`: the sources that the text cites                 |
| done     | finished       | the whole `Answer`; this is the last event                 |

The id of an event is `<entry>.<number>`: the entry of the journal and, because one entry may become
several events, the number within it. The same journal gives the same events with the same ids in
every process, so that a reader can resume at any process.

A draft is the checked beginning of an answer. It grows while the model writes. If the answer is
rewritten or attempted again, the draft is replaced. The judge reads the answer last, and sentences
that it rejects are retracted.

| event     | data                                                                              |
|-----------|-----------------------------------------------------------------------------------|
| draft     | `draft`: the name of this text; `attempt`; `offset`: characters of it to keep;    |
|           | `text`: the text after them; `language`; `sources`: the cited sources             |
| retracted | `draft`; `sentences`: sentences that were shown but are not part of the answer    |
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from broker.values import Fields, JournalEntry
from citations.blocks import BlockForm, read_blocks
from citations.claims import sentences
from citations.links import plain_line
from citations.marking import remove_marks
from envelope.json_values import read_whole
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.answer import Answer, Shows
from gateway.errors import MessageError

PIECE_CHARACTERS = 48
"""A piece of an answer ends at the first space after this many characters."""
BEGINNING = "0"
_NO_ATTEMPTS = frozenset({"round", "wave", "sequence", "step", "iteration"})
"""Counters that do not count repetitions, such as the round of a loop."""
_ID = re.compile(r"(\d{1,16})-(\d{1,20})\.(\d{1,9})", re.ASCII)
_LARGEST = 2**64 - 1
_PIECE = re.compile(rf"(?s).{{{PIECE_CHARACTERS},}}?\s+|.+")
_RETRACTED = 1
"""The number of a retraction within its entry; the stage of the same entry has number 0."""
_JUDGE = "quality"
_HAVE_DRAFT = frozenset({"response", "write"})
"""The stages after which the draft remains valid if a judge reads it."""
_READ_DRAFT = frozenset({_JUDGE, "loop_judge"})
_FINAL = "final"
_APPROVED = "approved"
_WHOLE = (BlockForm.CODE, BlockForm.HEADER, BlockForm.ROW)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a message."""

    id: str
    name: str
    data: Fields


@dataclass(frozen=True, slots=True)
class EventCursor:
    """The last event that a reader received; `number` is its number within the journal's
    `entry`.
    """

    entry: str = BEGINNING
    number: int = -1

    @property
    def before(self) -> str:
        """The id after which to read the journal so that `entry` is returned again."""
        if self.number < 0:
            return self.entry
        milliseconds, sequence = (int(part) for part in self.entry.split("-"))
        if sequence:
            return f"{milliseconds}-{sequence - 1}"
        return f"{milliseconds - 1}-{_LARGEST}" if milliseconds else BEGINNING

    def is_past(self, entry_id: str) -> bool:
        """Return whether this cursor is after an entry."""
        return _order(f"{self.entry}.0") > _order(f"{entry_id}.0")

    def covers(self, event: Event) -> bool:
        """Return whether the reader has received this event."""
        return _order(event.id) <= _order(f"{self.entry}.{self.number}")


class DraftFollower:
    """Turns the entries of a journal, in order, into events about its drafts."""

    def __init__(self, question: Question, *, shows: Shows, language: str = "en") -> None:
        self._question = question
        self._shows = shows
        self._language = language
        self._name = ""
        self._text = ""
        """The part of the draft that can be retracted; passages from the documents cannot be
        retracted.
        """
        self._sent = ""
        self._approved = ""

    def skip(self, entry: JournalEntry) -> None:
        """Process an entry whose events the reader already has; the next draft is sent in full
        anyway.
        """
        for _ in self.read(entry):
            self._sent = ""

    def read(self, entry: JournalEntry) -> Iterator[Event]:
        """Yield the events of the next entry."""
        match entry.kind:
            case "draft":
                yield self._read_draft(entry)
            case "agent_run" if entry.fields.get("role") == _JUDGE:
                self._approved = _read_response(entry.fields)
            case "routed" if self._text:
                yield from self._retract(entry)

    def _read_draft(self, entry: JournalEntry) -> Event:
        name, answer = str(entry.fields.get("draft")), self._show(entry.fields)
        before = self._sent if name == self._name else ""
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, answer.text, strict=False))
        offset = sum(1 for _ in same)
        self._name, self._sent = name, answer.text
        self._text = "" if entry.fields.get("is_quoted") else answer.text
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
        """Return the text and sources, formatted as in an answer."""
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
        if stage in _HAVE_DRAFT and target in _READ_DRAFT:
            return
        approved = self._approved if entry.fields.get("event") == _APPROVED else ""
        sentences = find_retracted(self._text, approved)
        if target != _FINAL or not approved:
            self._text = self._sent = ""
        if sentences:
            data: Fields = {"draft": self._name, "sentences": list(sentences)}
            yield Event(f"{entry.id}.{_RETRACTED}", "retracted", data)


def place_of(event_id: str) -> EventCursor:
    """Return the cursor for an event id; raises `MessageError` for an invalid id."""
    match = _ID.fullmatch(event_id)
    if match is None or int(match[2]) > _LARGEST:
        raise MessageError(
            "the id of the event is invalid; expected an id such as '1700000000000-0.0'"
        )
    return EventCursor(f"{match[1]}-{match[2]}", int(match[3]))


def events_of(
    entry: JournalEntry, question: Question, *, shows: Shows, language: str = "en"
) -> Iterator[Event]:
    """Yield the public events of a journal entry."""
    match entry.kind:
        case "accepted":
            yield Event(f"{entry.id}.0", "accepted", _names(question))
        case "routed" if entry.fields.get("target") == "return":
            yield Event(f"{entry.id}.0", "branch", _branch(entry.fields))
        case "routed" if entry.fields.get("target") != "final" and "branch" not in entry.fields:
            yield Event(f"{entry.id}.0", "stage", _stage(entry.fields))
        case "finished":
            yield from answer_events(entry.id, shows(entry.fields, language))


def answer_events(entry_id: str, answer: Answer) -> Iterator[Event]:
    """Yield the events of an answer: its text in pieces, its sources, and `done`."""
    number = offset = 0
    for piece in pieces(answer.text):
        yield Event(f"{entry_id}.{number}", "text", {"text": piece, "offset": offset})
        number, offset = number + 1, offset + len(piece)
    shown = answer.model_dump(mode="json", exclude_none=True)
    if answer.sources:
        yield Event(f"{entry_id}.{number}", "sources", {"sources": shown["sources"]})
        number += 1
    yield Event(f"{entry_id}.{number}", "done", shown)


def pieces(text: str) -> list[str]:
    """Return a text split after spaces; joined together, the pieces are equal to the text."""
    return _PIECE.findall(text)


def find_retracted(shown: str, approved: str) -> Sequence[str]:
    """Return the sentences, rows, and code in `shown` that are not in `approved`, ignoring
    marks.
    """
    kept = set(_split(approved))
    return [part for part in _split(shown) if part not in kept]


def _names(question: Question) -> Fields:
    return {"conversation_id": question.conversation_id, "message_id": question.message_id}


def _stage(fields: Fields) -> Fields:
    counters = fields.get("counters")
    counts = counters if isinstance(counters, dict) else {}
    attempt = sum(read_whole(count) for name, count in counts.items() if name not in _NO_ATTEMPTS)
    begun = fields.get("branches")
    branches: Fields = {}
    if isinstance(begun, list):
        plan = fields.get("plan")
        labels = plan if isinstance(plan, list) and len(plan) == len(begun) else [""] * len(begun)
        branches = {"branches": begun, "plan": [plain_line(str(label)) for label in labels]}
        completed = fields.get("completed")
        if isinstance(completed, list):
            branches["completed"] = [plain_line(str(label)) for label in completed]
    return {"stage": str(fields.get("target")), "attempt": attempt, **branches}


def _branch(fields: Fields) -> Fields:
    failed = fields.get("event") == "failed" or bool(fields.get("termination_reason"))
    return {"branch": str(fields.get("branch")), "status": "failed" if failed else "completed"}


def _order(event_id: str) -> tuple[int, int, int]:
    entry, _, number = event_id.rpartition(".")
    milliseconds, _, sequence = entry.partition("-")
    return int(milliseconds or 0), int(sequence or 0), int(number)


def _split(text: str) -> Iterator[str]:
    for block in read_blocks(text):
        whole = block.kind in _WHOLE
        for part in (block.text,) if whole else sentences(block.text):
            bare = part if block.kind is BlockForm.CODE else remove_marks(part)
            if plain := " ".join(bare.split()):
                yield plain


def _read_response(fields: Fields) -> str:
    writes = fields.get("writes")
    response = writes.get("response") if isinstance(writes, dict) else None
    return response if isinstance(response, str) else ""
