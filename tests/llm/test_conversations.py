"""Conversations with tools: their values, and what every vendor makes of them on the wire."""

from llm.conversations.turns import (
    ModelMessage,
    ToolConversation,
    ToolMessage,
    ToolUse,
    UserMessage,
)

ASKED = ToolConversation(task="reason", messages=(UserMessage(text="What is the fee?"),))


def test_a_conversation_travels_as_json_with_calls_and_results() -> None:
    use = ToolUse(call_id="c1", name="search", arguments={"query": "fee"}, signature="s")
    longer = ASKED.extend(
        ModelMessage(text="I search.", calls=(use,)),
        ToolMessage(call_id="c1", name="search", text="150 euros"),
    )

    assert ToolConversation.model_validate_json(longer.model_dump_json()) == longer
    assert len(ASKED.messages) == 1
