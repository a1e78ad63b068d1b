"""The envelope: the immutable value that agents exchange for one message, and its encoding."""

from dataclasses import fields
from typing import Literal, TypedDict, Unpack

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import from_json

from envelope.encoding import to_json
from envelope.question import NAME, Question

SCHEMA_VERSION = 3
"""The newest version that this code reads, in which an envelope has `branch` and `gathered`."""
_WITHOUT_GROUPS, _WITH_GROUPS = 1, 2
STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Hop:
    """The result of the last hop, on which the manager bases its decision."""

    role: str
    status: Literal["wrote", "gave_up", "failed"]
    wrote: tuple[str, ...] = Field(default=(), description="names of the payload attributes")
    reason: str = ""


class EnvelopeChanges(TypedDict, total=False):
    """The attributes that `Envelope.replace` changes, with their types."""

    schema_version: int
    flow: str
    tenant: str
    assistant: str
    channel: str
    conversation_id: str
    message_id: str
    create_ts: float
    update_ts: float
    deadline_ts: float
    process_count: int
    retries: int
    total_processing_time: float
    sender_role: str
    target_role: str
    target_list: str
    result_list: str
    trace_parent: str
    groups: tuple[str, ...]
    branch: str
    gathered: dict[str, JsonValue] | None
    hop: Hop | None
    payload: dict[str, JsonValue]


_ATTRIBUTES = EnvelopeChanges.__annotations__.keys()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Envelope:
    """System attributes, which the framework maintains, and one payload for the agents.

    Times are Unix seconds, durations are seconds. `replace` returns a changed copy.
    """

    schema_version: int = _WITHOUT_GROUPS
    flow: str = "assistant"
    tenant: str = Field(pattern=NAME)
    assistant: str = Field(pattern=NAME)
    channel: str = Field(pattern=NAME)
    conversation_id: str = Field(min_length=1, max_length=128)
    message_id: str = Field(min_length=1, max_length=128)
    create_ts: float
    update_ts: float
    deadline_ts: float
    process_count: int = Field(
        default=0, ge=0, description="number of hops (runs of agents) so far"
    )
    retries: int = Field(default=0, ge=0, description="retries of the current hop after failures")
    total_processing_time: float = Field(default=0.0, ge=0)
    sender_role: str = ""
    target_role: str = ""
    target_list: str = ""
    result_list: str = ""
    trace_parent: str = ""
    groups: tuple[str, ...] = Field(
        default=(), description="groups of the user; no role changes them"
    )
    branch: str = Field(
        default="",
        max_length=200,
        description="path of the branch, such as w2/t1; empty outside branches",
    )
    gathered: dict[str, JsonValue] | None = Field(
        default=None, description="results of branches by path, for the manager's next decision"
    )
    hop: Hop | None = None
    payload: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def question(self) -> Question:
        """The full identity of the message in this envelope."""
        return Question(
            tenant=self.tenant,
            assistant=self.assistant,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
        )

    def replace(self, **changes: Unpack[EnvelopeChanges]) -> "Envelope":
        """Return a copy with these attributes changed; the values are not validated.

        Raises `TypeError` for an attribute that does not exist.
        """
        if not changes.keys() <= _ATTRIBUTES:
            unknown = sorted(changes.keys() - _ATTRIBUTES)
            raise TypeError(f"unknown attributes of an envelope: {unknown}")
        # Validating the copy of each hop would cost a tenth of a question's processor time.
        copied = object.__new__(Envelope)
        object.__setattr__(copied, "__dict__", self.__dict__ | changes)
        return copied

    def with_groups(self, groups: tuple[str, ...]) -> "Envelope":
        """Return a copy for a user in these groups.

        A copy with groups has a newer schema version, so that an old worker cannot ignore them.
        """
        version = _WITH_GROUPS if groups else _WITHOUT_GROUPS
        return self.replace(schema_version=version, groups=groups)

    def with_branch(self, path: str, payload: dict[str, JsonValue]) -> "Envelope":
        """Return the first envelope of a branch; its counters start at 0."""
        return self.replace(
            schema_version=SCHEMA_VERSION,
            branch=path,
            payload=payload,
            hop=None,
            process_count=0,
            retries=0,
            total_processing_time=0.0,
        )

    def with_gathered(self, gathered: dict[str, JsonValue]) -> "Envelope":
        """Return a copy with the results of branches."""
        return self.replace(schema_version=SCHEMA_VERSION, gathered=gathered)

    def encode(self) -> bytes:
        """Return the frame as JSON in UTF-8, without attributes that the schema version does not
        have.
        """
        values = self.__dict__
        if self.schema_version < SCHEMA_VERSION:
            values = values.copy()
            del values["branch"], values["gathered"]
            if not self.groups:
                del values["groups"]
        return to_json(values)

    def delta_from(self, base: "Envelope") -> bytes | None:
        """Return the changes since `base`, an earlier envelope of the same message, as a frame.

        `apply_delta` restores the complete frame. Returns None if a payload attribute was removed,
        if `gathered` is set, or if the flow changed.
        """
        if self.gathered is not None or self.flow != base.flow:
            return None
        new = self.payload.copy()
        for name, value in base.payload.items():
            if name not in new:
                return None
            if new[name] is value:
                del new[name]
        values = self.__dict__
        changes = {name: values[name] for name in _VARIABLE}
        changes["payload"] = new
        return to_json(changes)


_FIXED = frozenset({
    "schema_version", "flow", "tenant", "assistant", "channel", "conversation_id", "message_id",
    "create_ts", "deadline_ts", "result_list", "trace_parent", "groups", "branch", "gathered",
})  # fmt: skip
"""Attributes that are never part of a delta: `gathered`, and those that are constant for a message
or a branch. If the reply to a pause changes the flow, there is no delta.
"""
_VARIABLE = tuple(field.name for field in fields(Envelope) if field.name not in _FIXED)
_ENVELOPE = TypeAdapter(Envelope)


class EnvelopeError(Exception):
    """The root of all errors of this package."""


class DecodeError(EnvelopeError):
    """The bytes are not an envelope; `frame` contains them."""

    def __init__(self, reason: str, frame: bytes) -> None:
        super().__init__(reason)
        self.frame = frame


class NewerVersionError(DecodeError):
    """A newer version of Refdesk wrote this envelope."""


class ContractError(EnvelopeError):
    """The attributes of an agent's `Reads` or `Writes` do not match the payload catalogue."""


def decode(frame: bytes) -> Envelope:
    """Return the envelope in `frame`.

    Raises `NewerVersionError` for a higher schema version and `DecodeError` for any other invalid
    frame; both errors contain the bytes.
    """
    try:
        return _ENVELOPE.validate_json(frame)
    except ValidationError as error:
        version = _version(frame)
        if version is not None and version > SCHEMA_VERSION:
            raise NewerVersionError(
                f"expected an envelope of schema version {SCHEMA_VERSION} or older, "
                f"found version {version}: update this worker first",
                frame,
            ) from error
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DecodeError(
            f"expected an envelope in JSON, found {first['msg'].lower()}"
            + (f" at {place!r}" if place else ""),
            frame,
        ) from error


def apply_delta(base: bytes, part: bytes) -> bytes:
    """Return the complete frame: the frame `base` with the changes in the delta `part`.

    Raises `ValueError` if one of them is not a JSON object with an object as payload.
    """
    whole, changed = from_json(base), from_json(part)
    if not (isinstance(whole, dict) and isinstance(changed, dict)):
        raise ValueError("expected two objects")
    payloads = whole.get("payload", {}), changed.get("payload", {})
    if not all(isinstance(payload, dict) for payload in payloads):
        raise ValueError("expected an object as payload")
    return to_json({**whole, **changed, "payload": {**payloads[0], **payloads[1]}})


def _version(frame: bytes) -> int | None:
    try:
        value = from_json(frame)
    except ValueError:
        return None
    version = value.get("schema_version") if isinstance(value, dict) else None
    return version if isinstance(version, int) else None
