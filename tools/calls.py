"""The data of a tool call: the call, its caller, its result and its record.

Calls that change external systems have receipts, so that each of them is executed at most once, and
may need approval. A receipt is `claimed` before the call, and `done` with the result after it. A
call that an earlier delivery claimed is not repeated. It is unknown whether it was executed, so its
receipt becomes `unknown`. The flow asks for approvals with a pause.
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
"""Maximum number of characters of a stored tool name, because models may invent names of any
length.
"""
CHANGES = "changes"
"""The key in `ToolResult.metadata` that marks calls that changed an external system."""
MOST_RECEIPT_BYTES = 64_000
"""A larger result is stored without its data."""
_CHARACTERS = 32


class EffectClass(StrEnum):
    """The side effects of a tool, which determine whether it is retried and needs approval."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    EFFECT = "effect"
    DANGEROUS = "dangerous"

    @property
    def may_repeat(self) -> bool:
        """Whether a failed call may be retried."""
        return self in {EffectClass.READ, EffectClass.IDEMPOTENT}


class ToolErrorType(StrEnum):
    """How a call ended.

    `budget` and `approval` mean that the call was not made, because the budget was exhausted, or
    because a dangerous call has not been approved yet. `unknown` means that a side effect may have
    occurred.
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
    """An unvalidated call by a model or a planner.

    `arguments` should be an object, but a model may write any JSON value. `depends_on` is accepted
    only for calls from earlier releases, and is ignored.
    """

    call_id: str
    tool: str
    arguments: JsonValue = Field(default_factory=dict)
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The calling agent, and the user for whom it works.

    `allowed` contains the names of the tools that the agent may use, or is None for all except
    dangerous ones. `groups` are the user's groups, whose documents the tools may read. `approved`
    contains the IDs of approvals that were given (see `make_approval_id`). `run` is the run of the
    agent.
    """

    agent: str
    allowed: frozenset[str] | None = None
    groups: tuple[str, ...] = ()
    language: str = "en"
    approved: frozenset[str] = frozenset()
    run: Run = OUTSIDE


class CitedPassage(Place, frozen=True, extra="forbid"):
    """A passage that supports a result; `score` is comparable only within the same result."""

    chunk_id: str
    document_id: str
    score: float = 0.0
    pictures: tuple[SourcePicture, ...] = ()


class PassageText(BaseModel, frozen=True, extra="forbid"):
    """The text of a cited passage, as a source for an answer.

    `is_linked` is True if another passage mentions it.
    """

    citation: CitedPassage
    text: str
    is_linked: bool = False


class ApprovalRequest(BaseModel, frozen=True, extra="forbid"):
    """A request to approve a dangerous call, with its maximum cost."""

    approval_id: str
    tool: str
    arguments: JsonValue
    most_cost_micros: int | None = Field(
        default=None, ge=0, description="cost in millionths of a USD; None: unknown"
    )


class ToolResult(BaseModel, frozen=True, extra="forbid"):
    """The result of a call, including calls that were not made.

    `text` is the shortened result for a model; `data` is the typed output as JSON, or None if it is
    larger than `executor.MOST_DATA_BYTES`. `citations` are complete. `quoted` contains the texts of
    quoted passages. If it is empty and `is_source` is true, the text itself is a source. `metadata`
    contains counts, and `CHANGES` if the call changed an external system.
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
    nearest: str | None = Field(default=None, description="existing tool with a similar name")
    approval: ApprovalRequest | None = Field(default=None, description="question to the person")

    @property
    def was_hallucinated(self) -> bool:
        """Whether the model called a tool that does not exist or that it is not allowed to use."""
        return self.error_type is ToolErrorType.HALLUCINATION


class ToolExecution(BaseModel, frozen=True, extra="forbid"):
    """The record of a call for the journal; `attempts` is 0 if the tool did not run."""

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
    """The state of a receipt. A call runs only if this delivery has just claimed it.

    `full` means that the conversation has reached its limit of receipts.
    """

    CLAIMED = "claimed"
    DONE = "done"
    UNKNOWN = "unknown"
    FULL = "full"


class ReceiptKey(BaseModel, frozen=True):
    """Identifies a call within its question and branch."""

    call_id: str
    tool: str
    digest: str

    @property
    def action(self) -> str:
        """The key of the action, which is shared by calls of the same tool with the same
        arguments.
        """
        return f"{self.tool}/{self.digest}"

    @property
    def name(self) -> str:
        """The name that identifies the call."""
        return f"{self.action}/{self.call_id}"


class ToolReceipts(Protocol):
    """The receipts of a branch of a question, as seen by one delivery."""

    async def claim(self, key: ReceiptKey, *, was_approved: bool = False) -> tuple[str, bytes]:
        """Claim a call. Return its state and, if it is done, its encoded result.

        If the outcome of an action is unknown, it remains unknown under other call ids, unless a
        user has approved this call since then.
        """
        ...

    async def finish(self, key: ReceiptKey, result: bytes) -> None:
        """Store the result of a claimed call."""
        ...

    async def mark_unknown(self, key: ReceiptKey) -> None:
        """Mark the outcome of a claimed call as unknown."""
        ...


def make_receipt_key(call: ToolCall, tool: str) -> ReceiptKey:
    """Return the key of a call. `tool` is the canonical name; the call itself may use an alias."""
    return ReceiptKey(call_id=call.call_id, tool=tool, digest=digest_arguments(call.arguments))


def make_approval_id(call: ToolCall, tool: str) -> str:
    """Return the id of the approval for a call, which depends on the arguments."""
    return f"{call.call_id}/{tool}/{digest_arguments(call.arguments)}"


def request_approval(
    call: ToolCall, tool: str, *, most_cost_micros: int | None = None
) -> ApprovalRequest:
    """Return the request to approve a call."""
    return ApprovalRequest(
        approval_id=make_approval_id(call, tool),
        tool=tool,
        arguments=call.arguments,
        most_cost_micros=most_cost_micros,
    )


def digest_arguments(arguments: JsonValue) -> str:
    """Return the first 32 hexadecimal characters of the SHA-256 of a JSON value."""
    written = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(written.encode()).hexdigest()[:_CHARACTERS]
