"""Approvals: a person is shown one dangerous call, and approves that call and nothing else.

The flow asks, and keeps the answer; how long it waits is the matter of its pause.
"""

from tools.calls import ApprovalRequest, ToolCall
from tools.effects.digests import digest_arguments


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
