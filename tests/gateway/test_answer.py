"""What leaves the desk is safe in every field, whoever wrote it."""

import json
from typing import Any

from gateway.answer import answer_of

EVIL = "https://evil.example/login"
REPLY: dict[str, Any] = {
    "conversation_id": "c1",
    "message_id": "m1",
    "outcome": "clarification",
    "text": "Which one?",
    "suggested_actions": [
        {"label": f"Sign in at {EVIL}", "value": f"Sign in at {EVIL}", "kind": "option"}
    ],
    "pause": {
        "id": "p1",
        "kind": "information",
        "expires": 1.0,
        "questions": [
            {
                "id": "q1",
                "text": f"Look at {EVIL}",
                "suggestions": [f"[here]({EVIL})"],
                "field": {"name": "site", "type": "choice", "choices": [EVIL, "ours"]},
            }
        ],
    },
    "plan_rounds": [{"round": 1, "intent": f"open {EVIL}", "reasoning": f"[see]({EVIL})"}],
    "tasks": [{"task_id": "t1", "title": f"Read {EVIL}", "state": "failed", "error": EVIL}],
    "cancelled_tasks": [f"Read {EVIL}"],
    "routing": {"reasoning": f"because of {EVIL}"},
    "triage": {"reason": EVIL},
    "assessment": {"gaps": [EVIL]},
    "errors": [{"message": EVIL}],
    "faults": [{"what": EVIL}],
    "sequence_notes": [EVIL],
    "further_round": {"why": EVIL},
    "way_fallback": EVIL,
    "tool_calls": [
        {
            "tool_name": "search",
            "arguments": {"query": EVIL},
            "success": False,
            "error_type": "execution",
            "error": f"the server said: go to {EVIL}",
        }
    ],
}


def test_no_field_of_an_answer_carries_a_link_that_nobody_checked() -> None:
    shown = answer_of(REPLY, words=lambda key, _: key, with_usage=True)

    written = json.dumps(shown.model_dump(mode="json"))
    assert "evil" not in written
    assert "Read \\u2026" in written
    assert shown.tasks is not None
    assert shown.pause is not None


def test_a_zero_width_space_hides_no_address() -> None:
    reply = {
        **REPLY,
        "text": "Sign in at ev\u200bil.exam\u200bple/login or https:\u200b//evil.example",
    }

    shown = answer_of(reply, words=lambda key, _: key)

    assert "evil" not in shown.text.replace("\u200b", "")
