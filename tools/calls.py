"""The values of a tool call: the call, its caller, its result and its record.

Effects of tools on the outside have receipts, so that each happens once, and approvals of people. A
receipt is `claimed` before its call and `done` with the result after it. A call that an earlier
delivery claimed is not repeated: it is unknown whether it was executed, and its receipt becomes
`unknown`. The flow asks, and keeps the answer; how long it waits is the matter of its pause.
"""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import BaseModel, Field, JsonValue

from envelope.place import Place
from envelope.run import OUTSIDE, Run
from envelope.sources import SourcePicture

LONGEST_NAME = 200
"""Characters of a tool's name that are kept; models invent names of any length."""
CHANGES = "changes"
"""The entry of `ToolResult.metadata` of a call that changed something outside."""
MOST_RECEIPT_BYTES = 64_000
"""A longer result is stored without its data."""
_CHARACTERS = 32


class EffectClass(StrEnum):
    """What a tool changes outside: decides whether it is repeated and who must approve it."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    EFFECT = "effect"
    DANGEROUS = "dangerous"

    @property
    def may_repeat(self) -> bool:
        """Whether a failed call may be made again."""
        return self in {EffectClass.READ, EffectClass.IDEMPOTENT}


class ToolErrorType(StrEnum):
    """How a call ended.

    `budget` and `approval` are calls that were not made: the budget was used up, or a dangerous
    call has not been approved yet. `unknown` is an effect that may have happened.
    """

    SUCCESS = "success"
    HALLUCINATION = "hallucination"
    VALIDATION = "validation"
    EXECUTION = "execution"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    APPROVAL = "approval"
    UNKNOWN = "unknown"


class ToolCall(BaseModel, frozen=True, extra="forbid"):
    """A call as a model or a planner wrote it; nothing about it is checked yet.

    `arguments` is an object, or whatever else the model wrote in its place. Calls of earlier
    releases have `depends_on`; nothing reads it.
    """

    call_id: str
    tool: str
    arguments: JsonValue = Field(default_factory=dict)
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The agent that calls, and the person for whom it works.

    `allowed` are the names of the tools that the agent may use; None: all. `groups` are those of
    the person: a tool reads only documents that they may read. `approved` has the ids of
    approvals (`tools.calls.make_approval_id`) that a person has given. `run` is the run in which
    the agent calls.
    """

    agent: str
    allowed: frozenset[str] | None = None
    groups: tuple[str, ...] = ()
    language: str = "en"
    approved: frozenset[str] = frozenset()
    run: Run = OUTSIDE


class CitedPassage(Place, frozen=True, extra="forbid"):
    """A passage that a result relies on; `score` compares the citations of one result."""

    chunk_id: str
    document_id: str
    score: float = 0.0
    pictures: tuple[SourcePicture, ...] = ()


class PassageText(BaseModel, frozen=True, extra="forbid"):
    """The text of a cited passage, from which an answer may be written.

    `is_linked` says that another passage names it.
    """

    citation: CitedPassage
    text: str
    is_linked: bool = False


class ApprovalRequest(BaseModel, frozen=True, extra="forbid"):
    """What a person is asked before a dangerous call: the call, and what it costs at most."""

    approval_id: str
    tool: str
    arguments: JsonValue
    most_cost_micros: int | None = Field(
        default=None, ge=0, description="millionths of a USD; None: not known"
    )


class ToolResult(BaseModel, frozen=True, extra="forbid"):
    """The result of a call, also of one that was not made.

    `text` is the result for a model, shortened; `data` the typed output as JSON, or None when it is
    larger than `executor.MOST_DATA_BYTES`. `citations` are complete. `quoted` has the
    texts of those passages that a tool quotes; without them the text itself is
    a source if `is_source` says so. `metadata` has counts, and `CHANGES` where the call changed
    something outside.
    """

    call_id: str
    tool: str
    success: bool
    error_type: ToolErrorType
    text: str = ""
    data: JsonValue = None
    citations: tuple[CitedPassage, ...] = ()
    quoted: tuple[PassageText, ...] = ()
    is_source: bool = False
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    error: str | None = None
    nearest: str | None = Field(default=None, description="the existing tool of a similar name")
    approval: ApprovalRequest | None = Field(default=None, description="what a person is asked")

    @property
    def was_hallucinated(self) -> bool:
        """Whether the model named a tool that does not exist for it."""
        return self.error_type is ToolErrorType.HALLUCINATION


class ToolExecution(BaseModel, frozen=True, extra="forbid"):
    """The record of a call for the journal; `attempts` is 0 when the tool did not run."""

    call_id: str
    tool_name: str
    agent_name: str
    timestamp: str = Field(description="ISO 8601, UTC")
    duration_ms: float = Field(ge=0)
    attempts: int = Field(ge=0)
    success: bool
    error_type: ToolErrorType
    error: str | None = None
    input_tokens: int = Field(default=0, ge=0, description="estimated from the arguments")
    output_tokens: int = Field(default=0, ge=0, description="estimated from the text")
    result_summary: str = Field(default="", description="the first 200 characters of the text")


class ReceiptState(StrEnum):
    """The state of a call; only `claimed` by this very delivery lets it run.

    `full`: the conversation has too many receipts, and nothing more can be noted.
    """

    CLAIMED = "claimed"
    DONE = "done"
    UNKNOWN = "unknown"
    FULL = "full"


class ReceiptKey(BaseModel, frozen=True):
    """One call within its question and branch; the receipts know those."""

    call_id: str
    tool: str
    digest: str

    @property
    def action(self) -> str:
        """The effect itself: two calls of the same tool with the same arguments share it."""
        return f"{self.tool}/{self.digest}"

    @property
    def name(self) -> str:
        """The call."""
        return f"{self.action}/{self.call_id}"


class ToolReceipts(Protocol):
    """The receipts of one branch of one question, as one delivery sees them."""

    async def claim(self, key: ReceiptKey, *, was_approved: bool = False) -> tuple[str, bytes]:
        """Claim a call, or return its state, and its result if it is done.

        An action whose outcome is unknown stays unknown under every other call id, unless a person
        has approved this call since.
        """
        ...

    async def finish(self, key: ReceiptKey, result: bytes) -> None:
        """Store the result of a call that was claimed."""
        ...

    async def mark_unknown(self, key: ReceiptKey) -> None:
        """Store that it is unknown whether a claimed call was executed."""
        ...


def make_receipt_key(call: ToolCall, tool: str) -> ReceiptKey:
    """Return the key of a call; `tool` is the tool's own name, which may not be the called one."""
    return ReceiptKey(call_id=call.call_id, tool=tool, digest=digest_arguments(call.arguments))


def make_approval_id(call: ToolCall, tool: str) -> str:
    """Return the id of the approval that a call needs; other arguments need another one."""
    return f"{call.call_id}/{tool}/{digest_arguments(call.arguments)}"


def request_approval(
    call: ToolCall, tool: str, *, most_cost_micros: int | None = None
) -> ApprovalRequest:
    """Return what a person is asked."""
    return ApprovalRequest(
        approval_id=make_approval_id(call, tool),
        tool=tool,
        arguments=call.arguments,
        most_cost_micros=most_cost_micros,
    )


def digest_arguments(arguments: JsonValue) -> str:
    """Return 32 hexadecimal characters that two different values do not share."""
    written = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(written.encode()).hexdigest()[:_CHARACTERS]
