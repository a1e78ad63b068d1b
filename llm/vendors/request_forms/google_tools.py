"""Conversations with tools in the form of Google's Gemini models."""

import base64
from collections.abc import Iterator
from typing import Any

from google.genai import types

from llm.conversations.turns import (
    ModelMessage,
    StopReason,
    ToolChoice,
    ToolConversation,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from llm.vendors.wire import ModelReply, StepReply

_MODES = {
    ToolChoice.AUTO: types.FunctionCallingConfigMode.AUTO,
    ToolChoice.NONE: types.FunctionCallingConfigMode.NONE,
    ToolChoice.REQUIRED: types.FunctionCallingConfigMode.ANY,
}


def make_contents(conversation: ToolConversation) -> list[types.Content]:
    """Return the messages; the results of one message's calls are one content."""
    contents: list[types.Content] = []
    results: list[types.Part] = []
    for message in conversation.messages:
        if isinstance(message, ToolMessage):
            results.append(_make_result(message))
            continue
        contents += _flush(results)
        if isinstance(message, UserMessage):
            contents.append(types.Content(role="user", parts=[types.Part(text=message.text)]))
        else:
            contents.append(types.Content(role="model", parts=list(_make_parts(message))))
    return [*contents, *_flush(results)]


def make_tool_config(conversation: ToolConversation) -> dict[str, Any]:
    """Return the part of a configuration that describes the tools."""
    if not conversation.tools:
        return {}
    declarations = [
        types.FunctionDeclaration(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.input_schema,
        )
        for tool in conversation.tools
    ]
    calling = types.FunctionCallingConfig(mode=_MODES[conversation.tool_choice])
    return {
        "tools": [types.Tool(function_declarations=declarations)],
        "tool_config": types.ToolConfig(function_calling_config=calling),
    }


def read_message(
    conversation: ToolConversation, response: types.GenerateContentResponse, reply: ModelReply
) -> StepReply:
    """Return the message of a response; a call without an id gets one from its position."""
    candidates = response.candidates or []
    content = candidates[0].content if candidates else None
    calls: list[ToolUse] = []
    for part in (content.parts if content is not None else None) or []:
        if part.function_call is not None:
            place = f"call-{len(conversation.messages)}-{len(calls)}"
            signature = base64.b64encode(part.thought_signature or b"").decode()
            calls.append(
                ToolUse(
                    call_id=part.function_call.id or place,
                    name=part.function_call.name or "",
                    arguments=part.function_call.args or {},
                    signature=signature,
                )
            )
    stop = StopReason.TOOL_USE if calls else StopReason.END_TURN
    return StepReply(
        message=ModelMessage(text=reply.text, calls=tuple(calls)),
        stop=StopReason.MAX_TOKENS if reply.truncated else stop,
        usage=reply.usage,
        refusal=reply.refusal,
        answered_by=reply.answered_by,
    )


def _make_parts(message: ModelMessage) -> Iterator[types.Part]:
    if message.text or not message.calls:
        yield types.Part(text=message.text)
    for call in message.calls:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        yield types.Part(
            function_call=types.FunctionCall(id=call.call_id, name=call.name, args=arguments),
            thought_signature=base64.b64decode(call.signature) if call.signature else None,
        )


def _make_result(message: ToolMessage) -> types.Part:
    key = "error" if message.is_error else "output"
    return types.Part(
        function_response=types.FunctionResponse(
            id=message.call_id, name=message.name, response={key: message.text}
        )
    )


def _flush(results: list[types.Part]) -> list[types.Content]:
    """Return the gathered results as one content, if there are any, and empty the list."""
    gathered = [types.Content(role="user", parts=list(results))] if results else []
    results.clear()
    return gathered
