"""The typed state of a message: the attributes that the manager reads and writes.

Payloads and branch results are JSON. In the manager, only this module converts them to typed
values. A property is validated when it is read. An invalid value is logged and treated as absent;
invalid items of a list are skipped.

The properties of `State` and the fields of `Changes` are the `Reads` and `Writes` of the manager.
They must be attributes of the payload catalogue, and are listed in `docs/internal/contracts.md`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypedDict, TypeVar, Unpack, overload

import structlog
from pydantic import BaseModel, JsonValue
from pydantic_core import from_json

from envelope.conversation import (
    ClarificationReason,
    ConversationAct,
    Pause,
    PauseQuestion,
    PauseReply,
    Preferences,
    SuggestedAction,
    Turn,
)
from envelope.envelope import ContractError
from envelope.evidence import EvidenceRecord, digest_payload, read_record
from envelope.payload import ATTRIBUTES, MERGE_RULES, merge_writes
from envelope.sources import SearchResult
from envelope.swarm import LedgerStep, PlanStep
from envelope.texts import choose_texts_language

log = structlog.get_logger("manager")
Json = dict[str, JsonValue]
Payload = Mapping[str, JsonValue]
T = TypeVar("T")
V = TypeVar("V", bound="JsonObject")
M = TypeVar("M", bound=BaseModel)
PauseState = Literal["over", "unanswered", "foreign"]
PauseAnswer = Literal["replied", "denied"]
ReplyReading = Literal["asked", "reply", "other", "unread"]
_PAUSE_STATES: tuple[PauseState, ...] = ("over", "unanswered", "foreign")
_PAUSE_ANSWERS: tuple[PauseAnswer, ...] = ("replied", "denied")
_REPLY_READINGS: tuple[ReplyReading, ...] = ("asked", "reply", "other", "unread")


class JsonObject:
    """An immutable JSON object with typed properties."""

    __slots__ = ("json",)
    json: Json

    def __init__(self, json: Json) -> None:
        # Hot path: a frozen dataclass takes twice as long to create.
        _set_json(self, json)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: JSON objects are immutable")

    def __contains__(self, attribute: "Property[Any]") -> bool:
        """Return whether the object contains a field, even if its value is null."""
        return attribute.name in self.json

    def copy(self, *attributes: "Property[Any]") -> Json:
        """Return the unconverted values of these attributes, without those that do not exist in the
        object.
        """
        json = self.json
        return {
            attribute.name: json[attribute.name]
            for attribute in attributes
            if attribute.name in json
        }

    def copy_filled(self, *attributes: "Property[Any]") -> Json:
        """Return the unconverted values of these attributes, without those that are null or
        empty.
        """
        return {name: value for name, value in self.copy(*attributes).items() if value}


_set_json = JsonObject.__dict__["json"].__set__


class Property(Generic[T]):
    """A descriptor for the field of the same name, which is converted when it is read.

    `convert` raises `ValueError` for an invalid value, which is logged. In that case, and if the
    field is null or absent, the value is `default`. A value of the exact type `kind` is not
    converted.
    """

    __slots__ = ("_convert", "_default", "_kind", "name")

    def __init__(
        self, convert: Callable[[JsonValue], T], default: T, kind: type | None = None
    ) -> None:
        self._convert = convert
        self._default = default
        self._kind = kind
        self.name = ""

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: JsonObject, owner: type) -> T: ...

    def __get__(self, instance: JsonObject | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value: Any = instance.json.get(self.name)
        kind: Any = value.__class__
        if kind is self._kind:
            valid: T = value
            return valid
        if value is None:
            return self._default
        try:
            return self._convert(value)
        except ValueError as error:
            _report_invalid(self.name, value, error)
            return self._default


def _report_invalid(name: str, value: JsonValue, error: Exception) -> None:
    kind, reason = type(value).__name__, str(error)[:200]
    log.warning("payload_value_invalid", attribute=name, found=kind, reason=reason)


def _narrowing(expected: str, kind: type[T], *more: type) -> Callable[[JsonValue], T]:
    """Return a converter that raises `ValueError` for other types; booleans do not count as
    numbers.
    """
    kinds = (kind, *more)

    def narrow(value: Any) -> T:
        narrowed: T = value
        if value.__class__ is not kind and (
            not isinstance(value, kinds) or isinstance(value, bool)
        ):
            raise ValueError(f"expected {expected}")
        return narrowed

    return narrow


_narrow_text = _narrowing("a string", str)
_narrow_flag = _narrowing("true or false", bool)
_narrow_whole = _narrowing("a whole number", int)
_narrow_number = _narrowing("a number", float, int)
_narrow_object: Callable[[JsonValue], Json] = _narrowing("an object", dict)
_narrow_list: Callable[[JsonValue], list[JsonValue]] = _narrowing("a list", list)


def _text() -> Property[str]:
    return Property(_narrow_text, "", str)


def _optional_text() -> Property[str | None]:
    return Property[str | None](_narrow_text, None, str)


def _flag() -> Property[bool]:
    return Property(_narrow_flag, False, bool)


def _optional_flag() -> Property[bool | None]:
    return Property[bool | None](_narrow_flag, None, bool)


def _whole(default: int = 0) -> Property[int]:
    return Property(_narrow_whole, default, int)


def _optional_number() -> Property[float | None]:
    return Property[float | None](_narrow_number, None)


def _number() -> Property[float]:
    return Property(_narrow_number, 0.0)


def _object() -> Property[Json]:
    return Property(_narrow_object, {}, dict)


def _list() -> Property[list[JsonValue]]:
    return Property(_narrow_list, [], list)


def _each(convert: Callable[[JsonValue], T]) -> Callable[[JsonValue], tuple[T, ...]]:
    """Return a list converter that logs and skips invalid items."""

    def convert_list(value: JsonValue) -> tuple[T, ...]:
        items = list[T]()
        for item in _narrow_list(value):
            try:
                items.append(convert(item))
            except ValueError as error:
                _report_invalid("item of a list", item, error)
        return tuple(items)

    return convert_list


def _texts() -> Property[tuple[str, ...]]:
    return Property(_each(_narrow_text), ())


def _by_name(convert: Callable[[JsonValue], T]) -> Property[dict[str, T]]:
    """Return a property for an object; invalid values in the object are logged and skipped."""

    def convert_object(value: JsonValue) -> dict[str, T]:
        converted = dict[str, T]()
        for name, item in _narrow_object(value).items():
            try:
                converted[name] = convert(item)
            except ValueError as error:
                _report_invalid("value of an object", item, error)
        return converted

    return Property(convert_object, {})


def _choice(values: Iterable[T]) -> Property[T | None]:
    """Return a property whose value is one of these values, or None."""
    known = {str(value): value for value in values}

    def convert(value: JsonValue) -> T | None:
        if (choice := known.get(_narrow_text(value))) is None:
            raise ValueError(f"expected one of {', '.join(known)}")
        return choice

    return Property[T | None](convert, None)


def _view(kind: type[V]) -> Property[V | None]:
    return Property[V | None](lambda value: kind(_narrow_object(value)), None)


def _views(kind: type[V]) -> Property[tuple[V, ...]]:
    return Property(_each(lambda value: kind(_narrow_object(value))), ())


def _views_by_name(kind: type[V]) -> Property[dict[str, V]]:
    return _by_name(lambda value: kind(_narrow_object(value)))


def _model(kind: type[M]) -> Property[M | None]:
    return Property[M | None](kind.model_validate, None)


def _models(kind: type[M]) -> Property[tuple[M, ...]]:
    return Property(_each(kind.model_validate), ())


class TriageView(JsonObject):
    """The way of answering that triage chose."""

    way = _text()


class PlannedCall(JsonObject):
    """A planned tool call."""

    call_id = _text()
    tool = _text()
    arguments = _object()


class ToolExecutionView(JsonObject):
    """The record of a tool call that was executed or rejected."""

    tool_name = _text()
    agent_name = _text()
    arguments = _object()
    success = _flag()
    error_type = _text()
    error = _text()
    duration_ms = _number()
    attempts = _whole()


class PlannedWorkerView(JsonObject):
    """A planned worker of a swarm."""

    id = _text()
    objective = _text()
    specialization = _text()
    subject = _text()
    tools = _list()
    depends_on = _texts()
    priority = _whole(default=5)


class SwarmPlanView(JsonObject):
    """The plan of a swarm."""

    strategy = _text()
    workers = _views(PlannedWorkerView)
    criteria = _list()


class WorkerTaskView(JsonObject):
    """The brief of a branch."""

    worker = _view(PlannedWorkerView)


class PassageView(JsonObject):
    """A passage that a worker found."""

    text = _text()


class WorkerOutputView(JsonObject):
    """The result of a worker."""

    status = _text()
    text = _text()
    passages = _views(PassageView)
    effects = _texts()


class TaskView(JsonObject):
    """A task of the ledger; its state is empty before it starts."""

    task_id = _text()
    title = _text()
    state = _text()
    attempts = _whole()
    error = _text()


class TaskLedgerView(JsonObject):
    """The tasks into which a question was split."""

    tasks = _views(TaskView)


class ReportNote(JsonObject):
    """A fixed text below the answer of a swarm, given by its key and the value that it contains."""

    key = _text()
    value = _text()


class PartView(JsonObject):
    """A part of a specialist's work."""

    key = _text()
    label = _text()


class FurtherRoundView(JsonObject):
    """A further round of specialists."""

    names = _texts()
    focus = _text()


class ExtractedView(JsonObject):
    """The documents of a review."""

    documents = _list()
    against = _list()


class ValidationView(JsonObject):
    """The check of the claims of an answer."""

    grounded = _optional_flag()
    approved = _flag()


class BestAnswer(JsonObject):
    """The best answer so far, as a reply."""

    text = _text()
    quality_score = _optional_number()
    is_approved = _flag()
    """Whether the judge approved the answer, in which case it does not need a note."""
    is_unjudged = _flag()
    """Whether no judge has read the answer, in which case it is sent with a note."""
    is_cut = _flag()
    """Whether parts were left out of an unjudged answer; see also `lacks`."""
    lacks = _optional_text()
    """The information that the writer could not find, or an empty string if the user must not see
    it; None if nothing is missing.
    """


class WrittenView(JsonObject):
    """An answer that the judge did not approve."""

    text = _text()


class UsageView(JsonObject):
    """The calls and the cost of models."""

    calls = _whole()
    cost_usd = _optional_text()
    by_worker = _views_by_name(JsonObject)


class BranchResult(JsonObject):
    """The result of a branch."""

    status = _text()
    reason = _text()
    attempts = _whole()
    writes = _object()
    hops = _whole()
    seconds = _number()
    model_usage = _object()
    exhausted_budget = _text()
    evidence_log = _list()
    left_out = _by_name(_narrow_whole)
    """The number of dropped items for each kind of content; see `manager.result_limits`."""


def read_results(gathered: Payload | None) -> dict[str, BranchResult]:
    """Return the results of branches by path; results that are not objects are omitted."""
    results = gathered if gathered is not None else {}
    return {
        path: BranchResult(result) for path, result in results.items() if isinstance(result, dict)
    }


class ScatteredBranch(JsonObject):
    """An entry of `branches`: the path, key and status of a branch, and the reason for a failure.

    Use `make` to create one.
    """

    branch = _text()
    key = _text()
    status = _text()
    reason = _text()
    attempts = _whole()

    @classmethod
    def make(cls, path: str, key: str, status: str, **more: str | int) -> "ScatteredBranch":
        """Return an entry; `more` may contain `reason` and `attempts`."""
        return cls({"branch": path, "key": key, "status": status, **more})


class Changes(TypedDict, total=False):
    """The attributes that the manager may write, with their types."""

    text: str
    history: Sequence[Turn]
    history_summary: str
    history_kept: int
    preferences: Preferences
    open_pause: Pause | None
    people: Sequence[str]
    pause_state: PauseState
    keeps_pause: bool
    new_pause: Pause
    cancelled_tasks: Sequence[str]
    closes_pause: bool
    reply_text: str
    pause_answer: PauseAnswer
    reply_reading: ReplyReading
    needs_input: Sequence[PauseQuestion]
    user_inputs: Mapping[str, JsonValue]
    approvals: Mapping[str, bool]
    statistics: Mapping[str, float]
    stage: str
    asking_stage: str
    attempt: int
    model_usage: Mapping[str, JsonValue]
    exhausted_budget: str
    counters: Mapping[str, int]
    branches: Sequence[ScatteredBranch]
    branch_hops: int
    branches_made: int
    waiting_branches: "Sequence[BranchItem]"
    agent_sequence: Sequence[str]
    sequence_place: int
    part: Mapping[str, JsonValue]
    round_focus: str
    tool_call: Mapping[str, JsonValue]
    tool_caller: Mapping[str, JsonValue]
    worker_task: Mapping[str, JsonValue]
    way_fallback: str
    best_answer: Mapping[str, object] | None
    termination_reason: str
    needs_clarification: bool
    clarification_reason: str
    message_reference: str


class Additions(TypedDict, total=False):
    """The attributes to which the manager may add items."""

    errors: Sequence[Json]
    evidence_log: Sequence[Json]


@dataclass(frozen=True, slots=True)
class BranchItem:
    """A branch of a scatter.

    `key` identifies it in `depends_on` of other branches and in the reported results. `adds`
    contains attributes that the branch gets in addition to the inherited ones. Higher priorities
    start first. `label` describes the branch to the user.
    """

    key: str
    adds: Changes = field(default_factory=Changes)
    depends_on: tuple[str, ...] = ()
    priority: int = 0
    label: str = ""


class _WaitingItem(JsonObject):
    key = _text()
    adds = _object()
    depends_on = _texts()
    priority = _whole()
    label = _text()

    def restore(self) -> BranchItem:
        """Return the item. Its `adds` were encoded by this module, so they have the correct
        types.
        """
        adds: Any = self.adds
        return BranchItem(self.key, adds, self.depends_on, self.priority, self.label)


def _read_record(value: JsonValue) -> EvidenceRecord:
    try:
        return read_record(_narrow_object(value))
    except TypeError as error:
        # A process of a newer version may have written it during a rolling update.
        raise ValueError("expected a record of this version") from error


class State(JsonObject):
    """The payload of a message, or only the attributes that one hop wrote."""

    __slots__ = ()

    text = _text()
    command = _optional_text()
    history = _models(Turn)
    client_keeps_history = _flag()
    shows_drafts = _flag()
    history_summary = _text()
    history_kept = _whole()
    preferences = _model(Preferences)
    open_pause = _model(Pause)
    pause_reply = _model(PauseReply)
    people = _texts()
    pause_state = _choice(_PAUSE_STATES)
    keeps_pause = _flag()
    leaves_open = _flag()
    new_pause = _model(Pause)
    cancelled_tasks = _texts()
    closes_pause = _flag()
    reply_text = _text()
    pause_answer = _choice(_PAUSE_ANSWERS)
    reply_reading = _choice(_REPLY_READINGS)
    needs_input = _models(PauseQuestion)
    user_inputs = _object()
    approvals = _by_name(_narrow_flag)
    statistics = _by_name(_narrow_number)
    stage = _text()
    model_usage = _view(UsageView)
    exhausted_budget = _text()
    counters = _by_name(_narrow_whole)
    branches = _views(ScatteredBranch)
    branch_hops = _whole()
    branches_made = _whole()
    triage = _view(TriageView)
    intent = _text()
    tool_calls = _views(PlannedCall)
    continues_planning = _flag()
    is_loop_over = _flag()
    plan_rounds = _views(JsonObject)
    agent_sequence = _texts()
    sequence_notes = _list()
    review = _object()
    errors = _list()
    part_plan = _views(PartView)
    extracted = _view(ExtractedView)
    checklist = _object()
    verdicts = _object()
    review_report = _object()
    citation_check = _object()
    further_round = _view(FurtherRoundView)
    sequence_place = _whole()
    multi_tool_results = _object()
    tool_executions = _views(ToolExecutionView)
    routing = _view(JsonObject)
    swarm_plan = _view(SwarmPlanView)
    plan_step = _choice(PlanStep)
    task_ledger = _view(TaskLedgerView)
    ledger_step = _choice(LedgerStep)
    ready_tasks = _texts()
    collected_info = _object()
    worker_task = _view(WorkerTaskView)
    worker_outputs = _views_by_name(WorkerOutputView)
    worker_progress = _object()
    way_fallback = _text()
    best_answer = _view(BestAnswer)
    judged_answer = _view(WrittenView)
    termination_reason = _text()
    language = _text()
    texts_language = _text()
    confidence = _number()
    text_eng = _text()
    decided_by = _text()
    canonical_question = _text()
    context_type = _text()
    clarification_result = _text()
    remaining_questions = _texts()
    conversation_act = _choice(ConversationAct)
    within_scope = _optional_flag()
    verified_answer = _text()
    needs_clarification = _flag()
    clarification_reason = _choice(ClarificationReason)
    search_results = _list()
    search_quality = _text()
    search_error = _text()
    search_context = _text()
    source_references = _list()
    assumption = _text()
    missing = _text()
    response = _text()
    sources_used = _list()
    report_notes = _views(ReportNote)
    searches_again = _flag()
    generation_error = _text()
    answer_model = _text()
    answered_by = _text()
    fallback_reason = _text()
    passages = _object()
    quality_score = _optional_number()
    quality_decision = _text()
    validation_result = _view(ValidationView)
    clarification_type = _text()
    suggested_actions = _list()
    remember_preferences = _model(Preferences)
    forget = _text()

    evidence_log = Property[tuple[EvidenceRecord, ...]](_each(_read_record), ())
    waiting_branches = Property[tuple[BranchItem, ...]](
        _each(lambda value: _WaitingItem(_narrow_object(value)).restore()), ()
    )

    @classmethod
    def decode(cls, frame: bytes) -> "State":
        """Return the state of an encoded payload; raises `ValueError` unless it is an object."""
        return cls(_narrow_object(from_json(frame)))

    def changed(self, **changes: Unpack[Changes]) -> "State":
        """Return the state with these changes.

        Raises `ContractError` for an attribute that the manager may not write.
        """
        if not changes.keys() <= MANAGER_WRITES:
            foreign = ", ".join(sorted(changes.keys() - MANAGER_WRITES))
            raise ContractError(f"the manager wrote attributes that are not its own: {foreign}")
        return State({**self.json, **_encode(changes)})

    def added(self, **additions: Unpack[Additions]) -> "State":
        """Return the state with these items added according to the merge rules of the catalogue."""
        return self.merged(dict[str, Any](additions))

    def merged(self, writes: Payload) -> "State":
        """Return the state with the writes of a branch merged according to the rules of the
        catalogue.
        """
        return State(merge_writes(self.json, writes, MERGE_RULES))

    def written(self, names: Iterable[str]) -> "State":
        """Return a state with only these attributes, such as the attributes that a hop wrote."""
        payload = self.json
        return State({name: payload[name] for name in names if name in payload})

    def copy_short(self, names: Iterable[str], longest: int) -> Json:
        """Return the named attributes whose values are at most `longest` characters long."""
        payload = self.json
        return {
            name: payload[name]
            for name in names
            if name in payload and _is_short(payload[name], longest)
        }

    def without(self, attributes: "Iterable[Property[Any]]") -> "State":
        """Return the state without these attributes."""
        left_out = frozenset(attribute.name for attribute in attributes)
        return State({name: value for name, value in self.json.items() if name not in left_out})

    @property
    def reply_language(self) -> str:
        """The language of the texts around the answer, or "" if it was not detected."""
        return choose_texts_language(self.language, self.texts_language)

    @property
    def offered_actions(self) -> tuple[SuggestedAction, ...]:
        """The suggested actions, parsed."""
        return _each(SuggestedAction.model_validate)(self.suggested_actions)

    def digest_evidence(self) -> Iterable[tuple[str, str]]:
        """Return the name and digest of each item of evidence in the payload."""
        return digest_payload(self.json)

    def list_nearest_results(self, most: int) -> tuple[SearchResult, ...]:
        """Return the first search result of each of the `most` closest pages."""
        nearest: dict[str, JsonValue] = {}
        for result in self.search_results:
            if len(nearest) == most:
                break
            if isinstance(result, dict):
                nearest.setdefault(str(result.get("document_id")), result)
        return tuple(SearchResult.model_validate(result) for result in nearest.values())


MANAGER_READS = frozenset(
    name for name, member in vars(State).items() if isinstance(member, Property)
)
MANAGER_WRITES = frozenset(Changes.__annotations__) | Additions.__annotations__.keys()
if _unknown := (MANAGER_READS | MANAGER_WRITES) - ATTRIBUTES.keys():
    raise ContractError(f"the catalogue has no attribute {', '.join(sorted(_unknown))}")


def _is_short(value: JsonValue, longest: int) -> bool:
    if isinstance(value, str):
        return len(value) <= longest
    return not isinstance(value, (list, dict)) or len(str(value)) <= longest


def _dump(value: BaseModel) -> JsonValue:
    dumped: JsonValue = value.model_dump(mode="json", exclude_none=True)
    return dumped


def _dump_pause(pause: Pause) -> JsonValue:
    dumped: JsonValue = pause.model_dump(mode="json", exclude_defaults=True)
    return dumped


def _encode_item(item: BranchItem) -> JsonValue:
    return {
        "key": item.key,
        "adds": _encode(item.adds),
        "depends_on": list(item.depends_on),
        "priority": item.priority,
        "label": item.label,
    }


_ENCODERS: Mapping[str, Callable[[Any], JsonValue]] = {
    "history": lambda turns: [_dump(turn) for turn in turns],
    "preferences": _dump,
    "open_pause": lambda pause: None if pause is None else _dump(pause),
    "new_pause": _dump_pause,
    "needs_input": lambda questions: [_dump(question) for question in questions],
    "branches": lambda branches: [branch.json for branch in branches],
    "waiting_branches": lambda items: [_encode_item(item) for item in items],
    **dict.fromkeys(("people", "cancelled_tasks", "agent_sequence"), list),
}
"""Encoders for attributes whose values are not JSON."""


def _encode(changes: Changes) -> Json:
    encoded: dict[str, Any] = dict(changes)
    if not _ENCODERS.keys().isdisjoint(encoded):
        for name in _ENCODERS.keys() & encoded.keys():
            encoded[name] = _ENCODERS[name](encoded[name])
    return encoded
