"""Conversations with tools in the form of OpenAI's chat completions."""

import json
from typing import Any

from openai.types.chat.chat_completion import Choice
from pydantic import JsonValue

from llm.conversations.turns import (
    ModelMessage,
    StopReason,
    ToolConversation,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from llm.vendors.wire import ModelReply, StepReply


def make_step_parameters(conversation: ToolConversation) -> dict[str, Any]:
    """Return the messages and the tools of a request."""
    messages = [_make_message(message) for message in conversation.messages]
    if conversation.system:
        messages.insert(0, {"role": "system", "content": conversation.system})
    if not conversation.tools:
        return {"messages": messages}
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
            },
        }
        for tool in conversation.tools
    ]
    choice = conversation.tool_choice.value
    return {"messages": messages, "tools": tools, "tool_choice": choice}


def read_step(choice: Choice, reply: ModelReply) -> StepReply:
    """Return the message of a completion, with its calls."""
    calls = tuple(
        ToolUse(
            call_id=call.id,
            name=call.function.name,
            arguments=read_arguments(call.function.arguments),
        )
        for call in choice.message.tool_calls or ()
        if call.type == "function"
    )
    stop = StopReason.TOOL_USE if calls else StopReason.END_TURN
    return StepReply(
        message=ModelMessage(text=reply.text, calls=calls),
        stop=StopReason.MAX_TOKENS if reply.truncated else stop,
        usage=reply.usage,
        refusal=reply.refusal,
        answered_by=reply.answered_by,
    )


def read_arguments(text: str) -> JsonValue:
    """Return the arguments that a model wrote as JSON, or its text if that is no JSON."""
    try:
        found: JsonValue = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return found


def _make_message(message: UserMessage | ModelMessage | ToolMessage) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        return {"role": "user", "content": message.text}
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not message.calls:
        return {"role": "assistant", "content": message.text}
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": _write_arguments(call.arguments)},
        }
        for call in message.calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _write_arguments(arguments: JsonValue) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
