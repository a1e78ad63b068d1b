"""The record of a message, built from its journal."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pydantic import JsonValue

from broker.values import JournalEntry
from envelope.json_values import read_list, read_objects, read_text, read_whole
from envelope.question import Question
from envelope.role import INGESTING

LONGEST_STEP = 300
"""Maximum number of characters of text in a step of the trace."""
NOT_DONE = "not_done"
"""The kind of a step that describes an error of a specialist."""
MOST_STEPS = 400
"""Maximum number of steps of a trace; a question with hundreds of branches may have more."""
MOST_NEAREST = 3
"""Maximum number of pages in `Record.nearest`."""
COURTESY, COMMAND = "courtesy", "command"
"""The ways of messages, such as greetings, that are not questions about the documents."""
PERSON, PERSON_DONE = "person", "person_done"
"""The reason stored for a request to talk to a person, while it is open and after it was
handled.
"""
_OWN_MODELS = frozenset({"offline"})
"""Model names that journals of older releases contain for rule-based calls."""

_PATTERNS = {
    "email": re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}"),
    "number": re.compile(r"\+?\d(?:[ ./-]?\d){6,30}"),
    "address": re.compile(r"https?://[^\s\"'<>]{1,2000}"),
}
Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Record:
    """One ended message.

    Times are in Unix seconds; `seconds` is the time from acceptance to the outcome. `person` is a
    pseudonym, empty if the user is unknown; `person_name` is the user's id in the channel, if it is
    stored. `quality` is 0 to 1, or None if the answer was not judged. `cost_usd` is None if the
    price of a call is unknown. `stage_seconds` is by role. `steps` is the trace, see `make_record`.
    `nearest` contains the locations that the search ranked first; `groups` are the user's groups.
    """

    tenant: str
    assistant: str
    conversation_id: str
    message_id: str
    accepted_at: float
    ended_at: float
    channel: str = ""
    person: str = ""
    person_name: str = ""
    way: str = ""
    language: str = ""
    question: str = ""
    canonical: str = ""
    outcome: str = ""
    reason: str = ""
    answered_by: str = ""
    answer: str = ""
    sources: tuple[dict[str, JsonValue], ...] = ()
    quality: float | None = None
    judge: str = ""
    models: tuple[str, ...] = ()
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    seconds: float = 0.0
    stage_seconds: dict[str, float] = field(default_factory=dict)
    steps: tuple[dict[str, JsonValue], ...] = ()
    rating: str = ""
    rating_reason: str = ""
    nearest: tuple[dict[str, JsonValue], ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def id(self) -> Question:
        """The identity of the message."""
        return Question(
            tenant=self.tenant,
            assistant=self.assistant,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
        )

    def redacted(self, redact: Redact) -> "Record":
        """Return the record with `redact` applied to all text from users and models."""
        return replace(
            self,
            question=redact(self.question),
            canonical=redact(self.canonical),
            answer=redact(self.answer),
            rating_reason=redact(self.rating_reason),
            steps=tuple(_redact_values(step, redact) for step in self.steps),
        )


def make_record(question: Question, entries: Sequence[JournalEntry]) -> Record | None:
    """Build the record of an ended question from its journal.

    Returns None if it has not ended, or if it is a request to the process that owns the index.

    Each step of the trace has `kind` (an event kind of the journal), `at` (seconds since
    acceptance) and, if applicable, `role`, `branch`, `seconds`, `text`, `model`, `tokens`,
    `cost_usd`. Steps with the kind `not_done` are errors of specialists.
    """
    if not entries or entries[0].kind != "accepted" or entries[-1].kind != "finished":
        return None
    accepted, finished = entries[0], entries[-1]
    if read_text(accepted.fields, "role") in INGESTING:
        return None
    reply = finished.fields
    written = _list_writes(entries)
    calls = [entry.fields for entry in entries if _is_model_call(entry)]
    return Record(
        tenant=question.tenant,
        assistant=question.assistant,
        conversation_id=question.conversation_id,
        message_id=question.message_id,
        accepted_at=accepted.at,
        ended_at=finished.at,
        channel=read_text(accepted.fields, "channel"),
        person=read_text(accepted.fields, "person"),
        person_name=read_text(accepted.fields, "person_name"),
        way=_find_way(entries),
        language=read_text(reply, "language"),
        question=read_text(accepted.fields, "text"),
        canonical=read_text(written, "canonical_question"),
        outcome=read_text(reply, "outcome"),
        reason=_find_reason(reply),
        answered_by=read_text(reply, "answered_by"),
        answer=read_text(reply, "text"),
        sources=tuple(_keep_place(source) for source in read_objects(reply.get("sources"))),
        quality=_number_or_none(reply.get("quality_score")),
        judge=_find_judge(written),
        models=tuple(dict.fromkeys(read_text(call, "model") for call in calls)),
        model_calls=len(calls),
        input_tokens=sum(read_whole(call.get("input_tokens")) for call in calls),
        output_tokens=sum(read_whole(call.get("output_tokens")) for call in calls),
        cost_usd=_sum_cost(calls),
        seconds=round(finished.at - accepted.at, 3),
        stage_seconds=_sum_stages(entries),
        steps=(
            *(_make_step(entry, accepted.at) for entry in entries[:MOST_STEPS]),
            *_list_undone(reply, round(finished.at - accepted.at, 3)),
        ),
        nearest=_list_nearest(written),
        groups=tuple(map(str, read_list(accepted.fields.get("groups")))),
    )


def redact(text: str, kinds: Sequence[str]) -> str:
    """Replace each match of these kinds with the name of the kind, such as `[email]`."""
    for kind in kinds:
        text = _PATTERNS[kind].sub(f"[{kind}]", text)
    return text


def _list_writes(entries: Iterable[JournalEntry]) -> dict[str, JsonValue]:
    """Return the last value of each attribute that was written by agents outside of branches."""
    written: dict[str, JsonValue] = {}
    for entry in entries:
        writes = entry.fields.get("writes")
        if entry.kind == "agent_run" and isinstance(writes, dict) and not _branch(entry):
            written.update(writes)
    return written


def _list_nearest(written: Mapping[str, JsonValue]) -> tuple[dict[str, JsonValue], ...]:
    """Return the location of the best result on each page, with the best pages first."""
    pages: dict[JsonValue, dict[str, JsonValue]] = {}
    for result in read_objects(written.get("search_results")):
        place = _keep_place(result)
        pages.setdefault(str(result.get("document_id") or place.get("title")), place)
    return tuple(pages.values())[:MOST_NEAREST]


def _is_model_call(entry: JournalEntry) -> bool:
    return entry.kind == "model_call" and entry.fields.get("model") not in _OWN_MODELS


def _find_way(entries: Sequence[JournalEntry]) -> str:
    """Return the way of answering that the manager chose last for the message."""
    rows = {str(entry.fields.get("row") or "").partition(".")[2] for entry in entries}
    for name in (COURTESY, COMMAND):
        if name in rows:
            return name
    flows = [entry.fields["flow"] for entry in entries if entry.fields.get("flow")]
    return str(flows[-1]).partition("@")[0] if flows else ""


def _find_reason(reply: Mapping[str, JsonValue]) -> str:
    if reply.get("asks_for_person"):
        return PERSON
    names = ("termination_reason", "clarification_reason", "fallback_reason")
    return next((text for name in names if (text := read_text(reply, name))), "")


def _find_judge(written: Mapping[str, JsonValue]) -> str:
    result = written.get("validation_result")
    return read_text(result, "judge") if isinstance(result, dict) else ""


def _sum_cost(calls: Sequence[Mapping[str, JsonValue]]) -> Decimal | None:
    prices = [call.get("cost_usd") for call in calls]
    if any(price is None for price in prices):
        return None
    return sum((Decimal(str(price)) for price in prices), Decimal(0))


def _sum_stages(entries: Iterable[JournalEntry]) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for entry in entries:
        if entry.kind == "agent_run":
            took = _number_or_none(entry.fields.get("milliseconds")) or 0.0
            sums[read_text(entry.fields, "role")] += took / 1000
    return {role: round(seconds, 3) for role, seconds in sums.items()}


def _make_step(entry: JournalEntry, accepted_at: float) -> dict[str, JsonValue]:
    fields = entry.fields
    step: dict[str, JsonValue] = {"kind": entry.kind, "at": round(entry.at - accepted_at, 3)}
    if _branch(entry):
        step["branch"] = _branch(entry)
    took = _number_or_none(fields.get("milliseconds"))
    if took is not None:
        step["seconds"] = round(took / 1000, 3)
    for name in ("role", "status", "row", "target", "task", "model", "cost_usd", "budget"):
        if fields.get(name) not in (None, ""):
            step[name] = fields[name]
    if entry.kind == "model_call":
        tokens = (read_whole(fields.get(name)) for name in ("input_tokens", "output_tokens"))
        step["tokens"] = sum(tokens)
    reason = fields.get("reason") or fields.get("error")
    if reason:
        step["text"] = str(reason)[:LONGEST_STEP]
    return step


def _list_undone(reply: Mapping[str, JsonValue], at: float) -> Iterator[dict[str, JsonValue]]:
    """Yield a step for each distinct error of a specialist."""
    errors = read_objects(reply.get("errors"))
    named = ((read_text(error, "specialist"), read_text(error, "text")) for error in errors)
    for role, text in list(dict.fromkeys(named))[:MOST_STEPS]:
        yield {"kind": NOT_DONE, "at": at, "role": role, "text": text[:LONGEST_STEP]}


def _keep_place(source: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the location of a source, without its text."""
    names = (
        "number",
        "chunk_id",
        "document_id",
        "title",
        "crumbs",
        "heading_path",
        "anchor",
        "url",
        "path",
    )
    return {name: source[name] for name in names if source.get(name)}


def _redact_values(step: Mapping[str, JsonValue], redact: Redact) -> dict[str, JsonValue]:
    return {
        name: redact(value) if name == "text" and isinstance(value, str) else value
        for name, value in step.items()
    }


def _branch(entry: JournalEntry) -> str:
    return str(entry.fields.get("branch") or "")


def _number_or_none(value: JsonValue) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]
