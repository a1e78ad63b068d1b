"""How each vendor says things on the wire."""

import json
from collections.abc import Sequence
from typing import Any, Protocol

from tests.support.model_server import Received, Response


class Dialect(Protocol):
    """One vendor's formats: an answer of 100 input tokens, 40 of them cached, and 20 of output."""

    provider: str
    model: str
    embedding_model: str
    dimensions: int

    def base_url(self, url: str) -> str: ...

    def answer(self, text: str) -> Response: ...

    def refusal(self) -> Response: ...

    def cut_off(self, text: str) -> Response: ...

    def failure(self, status: int, **headers: str) -> Response: ...

    def stream(self, *texts: str, finished: bool = True) -> Response: ...

    def vectors(self, vectors: Sequence[Sequence[float]]) -> Response: ...

    def key(self, received: Received) -> str: ...

    def schema(self, received: Received) -> Any: ...

    def room(self, received: Received) -> int: ...

    def said(self, received: Received) -> list[tuple[str, str]]: ...


def _json(value: object, status: int = 200, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, json.dumps(value).encode(), named)


def _events(events: Sequence[object], *, last: str = "") -> Response:
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + last
    return Response(body=text.encode(), content_type="text/event-stream")


class OpenAI:
    """Chat completions and embeddings."""

    provider = "openai"
    model = "gpt-4o-mini"
    embedding_model = "text-embedding-3-small"
    dimensions = 1536

    def base_url(self, url: str) -> str:
        return f"{url}/v1"

    def answer(self, text: str) -> Response:
        return self._completion({"role": "assistant", "content": text}, "stop")

    def refusal(self) -> Response:
        message = {"role": "assistant", "content": None, "refusal": "I will not say."}
        return self._completion(message, "stop")

    def cut_off(self, text: str) -> Response:
        return self._completion({"role": "assistant", "content": text}, "length")

    def failure(self, status: int, **headers: str) -> Response:
        error = {"message": "The model did not work.", "type": "some_error", "code": None}
        return _json({"error": error}, status, **headers)

    def rejection(self, parameter: str, message: str) -> Response:
        """A request of which one parameter is not accepted."""
        error = {"message": message, "type": "invalid_request_error", "param": parameter}
        return _json({"error": {**error, "code": "unsupported_parameter"}}, 400)

    def stream(self, *texts: str, finished: bool = True) -> Response:
        events = [self._chunk({"content": text}, None) for text in texts]
        if not finished:
            return _events(events)
        events.append(self._chunk({}, "stop"))
        events.append(self._chunk(None, None) | {"usage": self._usage()})
        return _events(events, last="data: [DONE]\n\n")

    def vectors(self, vectors: Sequence[Sequence[float]]) -> Response:
        data = [
            {"object": "embedding", "index": number, "embedding": list(vector)}
            for number, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 12, "total_tokens": 12}
        # The index gives the order, not the position.
        return _json({"object": "list", "model": "m", "data": data[::-1], "usage": usage})

    def key(self, received: Received) -> str:
        return received.headers["authorization"].removeprefix("Bearer ")

    def schema(self, received: Received) -> Any:
        return received.body["response_format"]["json_schema"]["schema"]

    def room(self, received: Received) -> int:
        body = received.body
        return int(body.get("max_completion_tokens") or body["max_tokens"])

    def said(self, received: Received) -> list[tuple[str, str]]:
        names = {"assistant": "model"}
        return [
            (names.get(message["role"], message["role"]), message["content"])
            for message in received.body["messages"]
        ]

    def _completion(self, message: dict[str, Any], finish: str) -> Response:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return _json(
            {
                "id": "c1",
                "object": "chat.completion",
                "created": 1,
                "model": self.model,
                "choices": [choice],
                "usage": self._usage(),
            }
        )

    def _chunk(self, delta: dict[str, Any] | None, finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": self.model,
            "choices": [] if delta is None else [choice],
        }

    def _usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 40},
        }


class Google:
    """Generated content and embeddings."""

    provider = "google"
    model = "gemini-2.5-flash"
    embedding_model = "gemini-embedding-001"
    dimensions = 3072

    def base_url(self, url: str) -> str:
        return url

    def answer(self, text: str) -> Response:
        return _json(self._content(text, "STOP"))

    def refusal(self) -> Response:
        blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
        return _json(blocked | {"usageMetadata": self._usage()})

    def cut_off(self, text: str) -> Response:
        return _json(self._content(text, "MAX_TOKENS"))

    def failure(self, status: int, **headers: str) -> Response:
        error = {"code": status, "message": "The model did not work.", "status": "SOME_ERROR"}
        return _json({"error": error}, status, **headers)

    def stream(self, *texts: str, finished: bool = True) -> Response:
        events = [self._content(text, None) for text in texts]
        return _events([*events, self._content("", "STOP")] if finished else events)

    def vectors(self, vectors: Sequence[Sequence[float]]) -> Response:
        return _json({"embeddings": [{"values": list(vector)} for vector in vectors]})

    def key(self, received: Received) -> str:
        return received.headers["x-goog-api-key"]

    def schema(self, received: Received) -> Any:
        return received.body["generationConfig"]["responseJsonSchema"]

    def room(self, received: Received) -> int:
        return int(received.body["generationConfig"]["maxOutputTokens"])

    def said(self, received: Received) -> list[tuple[str, str]]:
        system = received.body["systemInstruction"]["parts"][0]["text"]
        turns = [(turn["role"], turn["parts"][0]["text"]) for turn in received.body["contents"]]
        return [("system", system), *turns]

    def _content(self, text: str, finish: str | None) -> dict[str, Any]:
        thought = {"text": "Let me think.", "thought": True}
        candidate: dict[str, Any] = {
            "content": {"role": "model", "parts": [thought, {"text": text}]}
        }
        if finish is not None:
            candidate["finishReason"] = finish
        return {"candidates": [candidate], "usageMetadata": self._usage()}

    def _usage(self) -> dict[str, Any]:
        return {
            "promptTokenCount": 100,
            "candidatesTokenCount": 15,
            "thoughtsTokenCount": 5,
            "cachedContentTokenCount": 40,
            "totalTokenCount": 120,
        }
