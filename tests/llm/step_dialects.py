"""How each vendor writes messages with calls of tools."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from llm.port import ToolChoice, ToolUse
from tests.llm.vendor_dialects import Google, OpenAI
from tests.support.model_server import Response

Turns = list[tuple[str, str]]


class StepDialect(Protocol):
    """One vendor's form; every message costs 100 input tokens, 40 cached, and 20 of output."""

    provider: str
    model: str

    def base_url(self, url: str) -> str: ...

    def calls(self, text: str, *calls: ToolUse) -> Response: ...

    def cut(self, text: str) -> Response: ...

    def refusal(self) -> Response: ...

    def failure(self, status: int) -> Response: ...

    def nonsense(self) -> Response: ...

    def tools_of(self, body: Mapping[str, Any]) -> list[tuple[str, str, Any]]: ...

    def turns_of(self, body: Mapping[str, Any]) -> Turns: ...

    def choice_of(self, body: Mapping[str, Any]) -> ToolChoice: ...


def send_json(value: object, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode())


class OpenAISteps(OpenAI):
    """Chat completions with tools."""

    def calls(self, text: str, *calls: ToolUse) -> Response:
        written = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in calls
        ]
        message = {"role": "assistant", "content": text or None, "tool_calls": written or None}
        return self._completion(message, "tool_calls" if calls else "stop")

    def raw_call(self, name: str, arguments: str) -> Response:
        function = {"name": name, "arguments": arguments}
        call = {"id": "c1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return self._completion(message, "tool_calls")

    def cut(self, text: str) -> Response:
        return self.cut_off(text)

    def nonsense(self) -> Response:
        return send_json({"surprise": True})

    def tools_of(self, body: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
        functions = [tool["function"] for tool in body["tools"]]
        return [
            (function["name"], function["description"], function["parameters"])
            for function in functions
        ]

    def turns_of(self, body: Mapping[str, Any]) -> Turns:
        turns: Turns = []
        for message in body["messages"]:
            if message["role"] == "tool":
                turns.append(("result", f"{message['tool_call_id']} {message['content']}"))
            elif message["role"] != "system":
                role = "model" if message["role"] == "assistant" else "user"
                turns.append((role, message["content"]))
                for call in message.get("tool_calls") or ():
                    function = call["function"]
                    line = f"{call['id']} {function['name']} {function['arguments']}"
                    turns.append(("call", line))
        return turns

    def choice_of(self, body: Mapping[str, Any]) -> ToolChoice:
        return ToolChoice(body["tool_choice"])


class GoogleSteps(Google):
    """Generated content with function calls."""

    def calls(self, text: str, *calls: ToolUse) -> Response:
        return send_json(self._written(text, calls, "STOP"))

    def cut(self, text: str) -> Response:
        return self.cut_off(text)

    def nonsense(self) -> Response:
        return send_json({"candidates": [{"content": {"role": "model", "parts": []}}]})

    def _written(self, text: str, calls: tuple[ToolUse, ...], finish: str) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"text": "Let me think.", "thought": True}]
        parts += [{"text": text}] if text else []
        parts += [{"functionCall": {"name": call.name, "args": call.arguments}} for call in calls]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish}
        return {"candidates": [candidate], "usageMetadata": self._usage()}

    def tools_of(self, body: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
        [tool] = body["tools"]
        declared = tool["functionDeclarations"]
        return [
            (tool["name"], tool["description"], tool["parameters_json_schema"]) for tool in declared
        ]

    def turns_of(self, body: Mapping[str, Any]) -> Turns:
        turns: Turns = []
        for content in body["contents"]:
            for part in content["parts"]:
                if "text" in part:
                    turns.append((content["role"], part["text"]))
                elif "functionCall" in part:
                    call = part["functionCall"]
                    line = f"{call['id']} {call['name']} {json.dumps(call['args'])}"
                    turns.append(("call", line))
                else:
                    result = part["functionResponse"]
                    [text] = result["response"].values()
                    turns.append(("result", f"{result['id']} {text}"))
        return turns

    def choice_of(self, body: Mapping[str, Any]) -> ToolChoice:
        mode = body["toolConfig"]["functionCallingConfig"]["mode"]
        return {"AUTO": ToolChoice.AUTO, "NONE": ToolChoice.NONE, "ANY": ToolChoice.REQUIRED}[mode]


class AnthropicSteps:
    """Messages with tool use."""

    provider = "anthropic"
    model = "claude-sonnet-4-5"

    def base_url(self, url: str) -> str:
        return f"{url}/v1"

    def calls(self, text: str, *calls: ToolUse) -> Response:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        blocks += [
            {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.arguments}
            for call in calls
        ]
        return send_json(self._message(blocks, "tool_use" if calls else "end_turn"))

    def cut(self, text: str) -> Response:
        return send_json(self._message([{"type": "text", "text": text}], "max_tokens"))

    def refusal(self) -> Response:
        return send_json(self._message([], "refusal"))

    def failure(self, status: int) -> Response:
        error = {"type": "some_error", "message": "The model did not work."}
        return send_json({"type": "error", "error": error}, status)

    def nonsense(self) -> Response:
        return send_json({"type": "message", "content": None})

    def stream(self, *texts: str, ends: bool = True) -> Response:
        start = self._message([], None)
        start["usage"]["output_tokens"] = 1
        events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
        events += [
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
            for text in texts
        ]
        if ends:
            usage = {"output_tokens": 20}
            delta = {"stop_reason": "end_turn"}
            events.append({"type": "message_delta", "delta": delta, "usage": usage})
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return Response(body=body.encode(), content_type="text/event-stream")

    def tools_of(self, body: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
        return [(tool["name"], tool["description"], tool["input_schema"]) for tool in body["tools"]]

    def turns_of(self, body: Mapping[str, Any]) -> Turns:
        turns: Turns = []
        for message in body["messages"]:
            role = "model" if message["role"] == "assistant" else "user"
            for block in message["content"]:
                if block["type"] == "text":
                    turns.append((role, block["text"]))
                elif block["type"] == "tool_use":
                    line = f"{block['id']} {block['name']} {json.dumps(block['input'])}"
                    turns.append(("call", line))
                else:
                    turns.append(("result", f"{block['tool_use_id']} {block['content']}"))
        return turns

    def choice_of(self, body: Mapping[str, Any]) -> ToolChoice:
        chosen = body["tool_choice"]["type"]
        return ToolChoice.REQUIRED if chosen == "any" else ToolChoice(chosen)

    def _message(self, blocks: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
        usage = {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 20}
        return {"type": "message", "content": blocks, "stop_reason": stop, "usage": usage}
