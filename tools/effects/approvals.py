"""Approvals: a person is shown one dangerous call, and approves that call and nothing else.

The functions are pure: the flow stores the request with its pause, and asks them when an answer
arrives. An approval is bound to the tool and to the digest of the arguments.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from tools.calls import ApprovalRequest, ToolCall
from tools.effects.digests import digest_arguments

APPROVAL_SECONDS = 900.0
"""How long a person may think: what they were shown is still true for that long."""


class ApprovalAnswer(StrEnum):
    """What an answer to a request is worth; only `approved` lets the call run."""

    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"
    FOREIGN = "foreign"
    ALREADY_ANSWERED = "already_answered"


def make_approval_id(call: ToolCall, tool: str) -> str:
    """Return the id of the approval that a call needs; other arguments need another one."""
    return f"{call.call_id}/{tool}/{digest_arguments(call.arguments)}"


def request_approval(
    call: ToolCall,
    tool: str,
    description: str,
    *,
    now: datetime,
    asks: str = "",
    most_cost_micros: int | None = None,
    seconds: float = APPROVAL_SECONDS,
) -> ApprovalRequest:
    """Return what a person is asked; `asks` is the person who may answer (empty: any)."""
    return ApprovalRequest(
        approval_id=make_approval_id(call, tool),
        call_id=call.call_id,
        tool=tool,
        description=description,
        arguments=call.arguments,
        digest=digest_arguments(call.arguments),
        most_cost_micros=most_cost_micros,
        asks=asks,
        expires=now + timedelta(seconds=seconds),
    )


def judge_answer(
    request: ApprovalRequest,
    *,
    approves: bool,
    person: str,
    now: datetime,
    was_answered: bool = False,
) -> ApprovalAnswer:
    """Return what the answer of a person is worth; the first valid one alone counts."""
    if was_answered:
        return ApprovalAnswer.ALREADY_ANSWERED
    if request.asks not in ("", person):
        return ApprovalAnswer.FOREIGN
    if now >= request.expires:
        return ApprovalAnswer.EXPIRED
    return ApprovalAnswer.APPROVED if approves else ApprovalAnswer.DECLINED


def is_approval_of(request: ApprovalRequest, call: ToolCall, tool: str) -> bool:
    """Return whether a request asked for exactly this call."""
    return request.approval_id == make_approval_id(call, tool)
