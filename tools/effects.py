"""Effects of tools on the outside: receipts, so that each happens once, and approvals of people.

A receipt is `claimed` before its call and `done` with the result after it. A call that an earlier
delivery claimed is not repeated: it is unknown whether it was executed, and its receipt becomes
`unknown`.

The flow asks, and keeps the answer; how long it waits is the matter of its pause.
"""

import hashlib
import json
from enum import StrEnum
from typing import Protocol

from pydantic import BaseModel, JsonValue

from tools.calls import ApprovalRequest, ToolCall

MOST_RECEIPT_BYTES = 64_000
"""A longer result is stored without its data."""


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


class LocalReceipts:
    """Receipts of this process: for evaluations and tests, where nothing is delivered twice."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, bytes]] = {}
        self._unknown: set[str] = set()

    async def claim(self, key: ReceiptKey, *, was_approved: bool = False) -> tuple[str, bytes]:
        known = self._known.get(key.name)
        if known is not None:
            return known
        if key.action in self._unknown and not was_approved:
            return ReceiptState.UNKNOWN, b""
        return self._known.setdefault(key.name, (ReceiptState.CLAIMED, b""))

    async def finish(self, key: ReceiptKey, result: bytes) -> None:
        self._known[key.name] = (ReceiptState.DONE, result)

    async def mark_unknown(self, key: ReceiptKey) -> None:
        self._known[key.name] = (ReceiptState.UNKNOWN, b"")
        self._unknown.add(key.action)


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


_CHARACTERS = 32


def digest_arguments(arguments: JsonValue) -> str:
    """Return 32 hexadecimal characters that two different values do not share."""
    written = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(written.encode()).hexdigest()[:_CHARACTERS]
