"""What the desk does with each shape that a server may send, by vendor and by task.

For each field that a client reads, the server omits it, or sends null, another type, an empty
value, a list of parts, or the same value twice. The outcome is an answer or the reason of an error;
`requests` are the paid calls.
"""

import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from config.texts import load_texts
from envelope.run import OUTSIDE
from llm.errors import ModelError
from llm.port import ConversationModel, TextListener, ToolConversation, ToolDescription, UserMessage
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from llm.vendors.model_transport import RetryRules
from tests.llm.sample_task import BLUE, COLOUR, SKY, PlainPrompts
from tests.support.model_server import ModelServer, Response

TWICE = RetryRules(attempts=2, wait_initial_seconds=0.001, wait_max_seconds=0.002)
TEXT = BLUE.model_dump_json()
ANSWER = "answer"
ASKED = ToolConversation(
    task="look",
    messages=(UserMessage(text="Look it up."),),
    tools=(ToolDescription(name="search", description="Searches.", input_schema={}),),
)
FieldPath = tuple[str | int, ...]
Change = Callable[[Any], Any]
OMIT = object()
CHANGES: Mapping[str, Change] = {
    "omitted": lambda _: OMIT,
    "null": lambda _: None,
    "another type": lambda old: {"surprise": old} if not isinstance(old, dict) else 7,
    "empty": lambda old: type(old)(),
    "parts": lambda old: [{"type": "text", "text": old}] if isinstance(old, str) else old,
    "repeated": lambda old: [*old, *old] if isinstance(old, list) else old,
}


@dataclass(frozen=True)
class Exchange:
    """A correct exchange of one vendor for one task: the events of a stream, or one body."""

    provider: str
    task: str
    bodies: tuple[dict[str, Any], ...]
    fields: Mapping[FieldPath, Mapping[str, str]]
    """The fields that the client reads, with the outcomes of changes that are not an answer."""

    def changed(self, path: FieldPath, change: Change) -> list[dict[str, Any]]:
        return [_change(body, path, change) for body in self.bodies]


def _change(body: dict[str, Any], path: FieldPath, change: Change) -> dict[str, Any]:
    body = copy.deepcopy(body)
    place: Any = body
    try:
        for step in path[:-1]:
            place = place[step]
        new = change(place[path[-1]])
    except (KeyError, IndexError):
        return body
    if new is OMIT:
        del place[path[-1]]
    else:
        place[path[-1]] = new
    return body


USAGE = {"prompt_tokens": 100, "completion_tokens": 20}
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "a"}'}}
NOTHING = ("omitted", "null", "another type", "empty")
UNREADABLE = dict.fromkeys(NOTHING, "unreadable")
TEXT_ONLY = UNREADABLE | {"parts": "unreadable"}
UNNAMED = dict.fromkeys((*NOTHING, "parts"), "unnamed")
"""A call that names no tool is refused like a call of an unknown tool."""
LIST = UNREADABLE | {"repeated": "unreadable"}
TYPED = {"another type": "unreadable", "parts": "unreadable"}
"""A field that the client of the vendor checks: it has no other server."""
ANY: Mapping[str, str] = {}
"""A field without which an answer is an answer."""


def _openai(message: str, **fields: object) -> dict[str, Any]:
    content = {"role": "assistant", "content": TEXT, "refusal": None, **fields}
    choice = {"index": 0, message: content, "finish_reason": "stop"}
    return {"id": "c", "object": "o", "model": "m", "choices": [choice], "usage": USAGE}


def _google(*parts: dict[str, Any]) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20},
        "modelVersion": "m",
    }


def _anthropic(*blocks: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 20}
    stop = {"stop_reason": "end_turn", "usage": usage}
    return {"type": "message", "role": "assistant", "model": "m", "content": list(blocks), **stop}


OPENAI_USAGE: Mapping[FieldPath, Mapping[str, str]] = {
    ("usage",): ANY,
    ("usage", "prompt_tokens"): ANY,
    ("usage", "completion_tokens"): ANY,
    ("model",): ANY,
    ("id",): ANY,
    ("choices", 0, "index"): ANY,
    ("choices", 0, "finish_reason"): ANY,
}
FUNCTION = ("choices", 0, "message", "tool_calls", 0, "function")
EXCHANGES = (
    Exchange(
        "openai",
        "ask",
        (_openai("message"),),
        {
            ("choices",): UNREADABLE,
            ("choices", 0): UNREADABLE,
            ("choices", 0, "message"): UNREADABLE,
            ("choices", 0, "message", "content"): UNREADABLE,
            ("choices", 0, "message", "role"): ANY,
            **OPENAI_USAGE,
        },
    ),
    Exchange(
        "openai",
        "stream",
        (
            _openai("delta", content=TEXT[:9]),
            _openai("delta", content=TEXT[9:]),
            {"choices": [], "usage": USAGE},
        ),
        {
            ("choices",): UNREADABLE,
            ("choices", 0, "delta"): UNREADABLE,
            ("choices", 0, "delta", "content"): UNREADABLE,
            ("choices", 0, "delta", "role"): ANY,
            **OPENAI_USAGE,
        },
    ),
    Exchange(
        "openai",
        "tools",
        (_openai("message", content=None, tool_calls=[CALL]),),
        {
            ("choices", 0, "message", "tool_calls"): UNREADABLE | {"another type": "unnamed"},
            ("choices", 0, "message", "tool_calls", 0): UNNAMED
            | {"omitted": "unreadable", "null": "unreadable"},
            (*FUNCTION[:-1], "id"): ANY,
            (*FUNCTION[:-1], "type"): ANY,
            FUNCTION: UNNAMED,
            (*FUNCTION, "name"): UNNAMED,
            (*FUNCTION, "arguments"): ANY,
            **OPENAI_USAGE,
        },
    ),
    Exchange(
        "openai",
        "embed",
        ({"data": [{"index": 0, "embedding": [1.0, 0.0]}], "usage": {"prompt_tokens": 3}},),
        {
            ("data",): LIST,
            ("data", 0): UNREADABLE,
            ("data", 0, "index"): ANY,
            ("data", 0, "embedding"): LIST,
            ("data", 0, "embedding", 0): UNREADABLE | {"empty": ANSWER},
            ("usage",): ANY,
            ("usage", "prompt_tokens"): ANY,
        },
    ),
    Exchange(
        "google",
        "ask",
        (_google({"text": TEXT}),),
        {
            ("candidates",): UNREADABLE,
            ("candidates", 0): UNREADABLE,
            ("candidates", 0, "content"): UNREADABLE,
            ("candidates", 0, "content", "parts"): LIST,
            ("candidates", 0, "content", "parts", 0): UNREADABLE,
            ("candidates", 0, "content", "parts", 0, "text"): TEXT_ONLY,
            ("candidates", 0, "finishReason"): TYPED,
            ("usageMetadata",): TYPED,
            ("usageMetadata", "promptTokenCount"): TYPED,
            ("modelVersion",): TYPED,
        },
    ),
    Exchange(
        "google",
        "tools",
        (_google({"functionCall": {"name": "search", "args": {"q": "a"}}}),),
        {
            ("candidates", 0, "content", "parts", 0, "functionCall"): UNREADABLE
            | {"empty": "unnamed"},
            ("candidates", 0, "content", "parts", 0, "functionCall", "name"): UNNAMED | TYPED,
            ("candidates", 0, "content", "parts", 0, "functionCall", "args"): TYPED,
        },
    ),
    Exchange(
        "google",
        "embed",
        ({"embeddings": [{"values": [1.0, 0.0]}]},),
        {
            ("embeddings",): LIST,
            ("embeddings", 0): UNREADABLE,
            ("embeddings", 0, "values"): LIST,
        },
    ),
    Exchange(
        "anthropic",
        "ask",
        (_anthropic({"type": "text", "text": TEXT}),),
        {
            ("content",): LIST,
            ("content", 0): UNREADABLE,
            ("content", 0, "type"): ANY,
            ("content", 0, "text"): UNREADABLE,
            ("stop_reason",): ANY,
            ("usage",): ANY,
            ("usage", "input_tokens"): ANY,
            ("model",): ANY,
        },
    ),
    Exchange(
        "anthropic",
        "stream",
        (
            {"type": "message_start", "message": _anthropic()},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": TEXT}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        ),
        {
            ("type",): ANY,
            ("message",): ANY,
            ("delta",): UNREADABLE,
            ("delta", "text"): UNREADABLE,
            ("delta", "type"): ANY,
            ("delta", "stop_reason"): ANY,
        },
    ),
    Exchange(
        "anthropic",
        "tools",
        (_anthropic({"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "a"}}),),
        {
            ("content", 0, "type"): TEXT_ONLY,
            ("content", 0, "id"): ANY,
            ("content", 0, "name"): UNNAMED,
            ("content", 0, "input"): ANY,
        },
    ),
)
MODELS = {"openai": "local-7b", "google": "gemini-2.5-flash", "anthropic": "claude-sonnet-4-5"}


def _list_shapes() -> Iterator[Any]:
    for exchange in EXCHANGES:
        for path, outcomes in exchange.fields.items():
            for name, change in CHANGES.items():
                place = ".".join(map(str, path))
                bodies = exchange.changed(path, change)
                if bodies != list(exchange.bodies):
                    row = (exchange.provider, exchange.task, bodies, outcomes.get(name, ANSWER))
                    yield pytest.param(
                        *row, id=f"{exchange.provider} {exchange.task} {place} {name}"
                    )


def open_registry(server: ModelServer) -> Registry:
    """Return the models of the three vendors at this server."""
    access = {
        "openai": VendorAccess("k", f"{server.url}/v1"),
        "google": VendorAccess("k", server.url),
        "anthropic": VendorAccess("k", f"{server.url}/v1"),
    }
    return Registry(prompts=PlainPrompts(), access=access, retries=TWICE)


@pytest.fixture
async def registry(server: ModelServer) -> AsyncIterator[Registry]:
    registry = open_registry(server)
    yield registry
    await registry.close()


async def find_outcome(registry: Registry, provider: str, task: str) -> tuple[str, str]:
    """Return `answer`, or the reason of the error and its message, which names the model.

    Any other exception fails the test.
    """
    try:
        return await _ask(registry, provider, task), ""
    except ModelError as error:
        is_named = any(name in str(error) for name in (MODELS[provider], "embeds"))
        return error.reason if is_named else "unnamed model", str(error)


async def _ask(registry: Registry, provider: str, task: str) -> str:
    model = registry.model(f"{MODELS[provider]}@{provider}")
    assert isinstance(model, ConversationModel)
    if task == "embed":
        embedder = registry.embedder(f"embeds@{provider}", 2)
        [vector] = await embedder.embed(["text"], OUTSIDE)
        return ANSWER if len(vector) == 2 else "wrong"
    if task == "tools":
        step = await model.converse(ASKED, OUTSIDE)
        return ANSWER if step.message.calls[-1].name == "search" else step.message.calls[-1].name
    listener = TextListener(COLOUR.name) if task == "stream" else None
    answer = await model.ask(COLOUR, SKY, OUTSIDE, listener=listener)
    return ANSWER if answer.output == BLUE else "wrong"


def send(task: str, bodies: Sequence[object]) -> Response:
    if task != "stream":
        return Response(body=json.dumps(bodies[0]).encode())
    events = "".join(f"data: {json.dumps(body)}\n\n" for body in bodies)
    return Response(body=f"{events}data: [DONE]\n\n".encode(), content_type="text/event-stream")


@pytest.mark.filterwarnings("ignore:.*is not a valid FinishReason:UserWarning")
@pytest.mark.parametrize(("provider", "task", "bodies", "expected"), list(_list_shapes()))
async def test_every_shape_is_an_answer_or_a_reason_and_is_paid_twice_at_most(
    server: ModelServer,
    registry: Registry,
    provider: str,
    task: str,
    bodies: Sequence[object],
    expected: str,
) -> None:
    server.will_send(*[send(task, bodies)] * 6)

    outcome, _ = await find_outcome(registry, provider, task)

    assert outcome == expected
    # One repair attempt; vectors are computed, so that asking again would not change them.
    assert len(server.received) == (2 if expected == "unreadable" and task != "embed" else 1)


STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>"


def _pieces(*deltas: dict[str, Any], end: dict[str, Any] | None = STOP) -> list[dict[str, Any]]:
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return events if end is None else [*events, end]


def _stream(*deltas: dict[str, Any], end: dict[str, Any] | None = STOP) -> Response:
    return send("stream", _pieces(*deltas, end=end))


def _body(value: object, status: int = 200) -> Response:
    return Response(status, value if isinstance(value, bytes) else json.dumps(value).encode())


def _raw(text: str, content_type: str = "text/event-stream") -> Response:
    return Response(body=text.encode(), content_type=content_type)


def _message(**fields: object) -> Response:
    return _body(_openai("message", **fields))


def _tools(*calls: object, **fields: object) -> Response:
    return _message(content=None, tool_calls=list(calls), **fields)


def _error(status: int, message: object, **fields: object) -> Response:
    return _body({"error": {"message": message, **fields}}, status)


def _vectors(*rows: object) -> Response:
    return _body({"data": list(rows)})


FIRST, SECOND = {"content": TEXT[:9]}, {"content": TEXT[9:]}
WHOLE = {"content": TEXT}
THOUGHTS = "I wonder {what} to say."
STREAM_TEXT = send("stream", _pieces(FIRST, SECOND)).body.decode()
OLDER_CALL = {"name": "search", "arguments": '{"q": "a"}'}
SEEN: Mapping[str, tuple[str, str, Response, str, int]] = {
    "an error object with status 200": ("openai", "ask", _error(200, "no GPU"), "unavailable", 2),
    "an error string with status 200": (
        "openai",
        "ask",
        _body({"error": "Unexpected endpoint"}),
        "unavailable",
        2,
    ),
    "an error object with code 429 and status 200": (
        "openai",
        "ask",
        _error(200, "slow", code=429),
        "too_busy",
        2,
    ),
    "a reply with `error: false`": (
        "openai",
        "ask",
        _body(_openai("message") | {"error": False}),
        ANSWER,
        1,
    ),
    "an error object in a stream": (
        "openai",
        "stream",
        _stream(FIRST, end={"error": "x"}),
        "unavailable",
        2,
    ),
    "an error event (Anthropic)": (
        "anthropic",
        "stream",
        send("stream", [{"type": "error", "error": {"message": "overloaded"}}]),
        "unavailable",
        2,
    ),
    "a web page": ("openai", "ask", _raw(PAGE.decode(), "text/html"), "misconfigured", 1),
    "a web page instead of a stream": ("openai", "stream", _body(PAGE), "misconfigured", 1),
    "a web page (Google)": ("google", "ask", _body(PAGE), "misconfigured", 1),
    "a web page instead of a stream (Google)": (
        "google",
        "stream",
        _body(PAGE),
        "misconfigured",
        1,
    ),
    "a web page instead of a stream (Anthropic)": (
        "anthropic",
        "stream",
        _body(PAGE),
        "misconfigured",
        1,
    ),
    "a web page instead of vectors": ("openai", "embed", _body(PAGE), "misconfigured", 1),
    "an empty body": ("openai", "ask", _body(b""), "unreadable", 2),
    "an empty stream": ("openai", "stream", _raw(""), "unreadable", 2),
    "a list that contains the reply": (
        "openai",
        "ask",
        _body([_openai("message")]),
        "unreadable",
        2,
    ),
    "a JSON string": ("openai", "ask", _body("blue"), "unreadable", 2),
    "a truncated body": (
        "openai",
        "ask",
        _body(json.dumps(_openai("message")).encode()[:80]),
        "unreadable",
        2,
    ),
    "two choices": (
        "openai",
        "ask",
        _body({"choices": [*_openai("message")["choices"], {"message": {"content": "red"}}]}),
        ANSWER,
        1,
    ),
    "a text completion": ("openai", "ask", _body({"choices": [{"text": TEXT}]}), ANSWER, 1),
    "a stream that was not requested": ("openai", "ask", _stream(FIRST, SECOND), ANSWER, 1),
    "a complete body instead of a stream": ("openai", "stream", _message(), ANSWER, 1),
    "a complete body on several lines instead of a stream": (
        "openai",
        "stream",
        _raw(json.dumps(_openai("message"), indent=2), "application/json"),
        ANSWER,
        1,
    ),
    "a complete body instead of a stream (Anthropic)": (
        "anthropic",
        "stream",
        _body(_anthropic({"type": "text", "text": TEXT})),
        ANSWER,
        1,
    ),
    "a stream with the content type text/plain": (
        "openai",
        "stream",
        _raw(STREAM_TEXT, "text/plain"),
        ANSWER,
        1,
    ),
    "a stream that begins with invalid JSON": (
        "openai",
        "stream",
        _raw(f"data: {{oops\n\n{STREAM_TEXT}"),
        ANSWER,
        1,
    ),
    "a stream with text before and after the events": (
        "openai",
        "stream",
        _raw(f"hello\n{STREAM_TEXT}bye\n"),
        ANSWER,
        1,
    ),
    "a stream with invalid lines between the events": (
        "openai",
        "stream",
        _raw(STREAM_TEXT.replace("\n\n", "\n\noops\n")),
        ANSWER,
        1,
    ),
    "a stream with Unicode line separators in a string": (
        "openai",
        "stream",
        _raw(STREAM_TEXT.replace('"choices"', '"note": "a\u2028b\u0085c", "choices"')),
        ANSWER,
        1,
    ),
    "a stream with keep-alive comments": (
        "openai",
        "stream",
        _raw(f": alive\n\n: alive\n\n{STREAM_TEXT}"),
        ANSWER,
        1,
    ),
    "a stream with CRLF line endings": (
        "openai",
        "stream",
        _raw(STREAM_TEXT.replace("\n", "\r\n")),
        ANSWER,
        1,
    ),
    "a stream without empty lines between the events": (
        "openai",
        "stream",
        _raw(STREAM_TEXT.replace("\n\n", "\n")),
        ANSWER,
        1,
    ),
    "a complete stream without an end marker": (
        "openai",
        "stream",
        _stream(FIRST, SECOND, end=None),
        ANSWER,
        1,
    ),
    "a truncated stream": ("openai", "stream", _stream(FIRST, end=None), "unavailable", 2),
    "a stream with the answer in one piece": (
        "openai",
        "stream",
        _stream(WHOLE, end={"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        ANSWER,
        1,
    ),
    "reasoning before the answer": (
        "openai",
        "stream",
        _stream({"reasoning_content": THOUGHTS, "content": ""}, WHOLE),
        ANSWER,
        1,
    ),
    "reasoning in an unknown field": ("openai", "ask", _message(musings=THOUGHTS), ANSWER, 1),
    "reasoning as a part of the content": (
        "openai",
        "ask",
        _message(content=[{"type": "thinking", "thinking": [{"text": "x"}]}, {"text": TEXT}]),
        ANSWER,
        1,
    ),
    "an answer in the reasoning field": (
        "openai",
        "ask",
        _message(content=None, reasoning=TEXT),
        ANSWER,
        1,
    ),
    "a streamed answer in the reasoning field": (
        "openai",
        "stream",
        _stream({"thinking": TEXT}),
        ANSWER,
        1,
    ),
    "an answer inside `<think>` tags": (
        "openai",
        "ask",
        _message(content=f"<think>{TEXT}</think>"),
        ANSWER,
        1,
    ),
    "reasoning without an answer": (
        "openai",
        "ask",
        _message(content=None, reasoning=THOUGHTS),
        "unreadable",
        2,
    ),
    "a tool call with arguments as an object": (
        "openai",
        "tools",
        _tools({"id": "c", "function": {"name": "search", "arguments": {"q": "a"}}}),
        ANSWER,
        1,
    ),
    "a call in the older field `function_call`": (
        "openai",
        "tools",
        _message(content=None, function_call=OLDER_CALL),
        ANSWER,
        1,
    ),
    "a tool call that is not in a list": (
        "openai",
        "tools",
        _message(content=None, tool_calls=CALL),
        ANSWER,
        1,
    ),
    "a tool call without a name, and a valid call": (
        "openai",
        "tools",
        _tools({"id": "c"}, CALL),
        ANSWER,
        1,
    ),
    "status 404 for an unknown path": (
        "openai",
        "ask",
        _body({"detail": "Not Found"}, 404),
        "misconfigured",
        1,
    ),
    "status 404 for an unknown path, as text": (
        "openai",
        "ask",
        _body(b"404 page not found", 404),
        "misconfigured",
        1,
    ),
    "status 405 with a web page": ("openai", "ask", _body(PAGE, 405), "misconfigured", 1),
    "status 501 with a web page": ("openai", "ask", _body(PAGE, 501), "misconfigured", 1),
    "status 404 for an unknown path (llama.cpp)": (
        "openai",
        "ask",
        _error(404, "File Not Found", type="not_found_error"),
        "misconfigured",
        1,
    ),
    "embeddings not supported (llama.cpp)": (
        "openai",
        "embed",
        _error(501, "This server does not support embeddings.", type="not_supported_error"),
        "misconfigured",
        1,
    ),
    "unknown model (Ollama)": (
        "openai",
        "ask",
        _error(404, 'model "x" not found, try pulling it first', type="api_error"),
        "model_gone",
        1,
    ),
    "tools not supported (Ollama)": (
        "openai",
        "tools",
        _error(400, "registry.ollama.ai/library/x does not support tools", type="api_error"),
        "rejected",
        1,
    ),
    "input too long for an embedding (Ollama)": (
        "openai",
        "embed",
        _error(400, "the input length exceeds the context length", type="api_error"),
        "too_long",
        1,
    ),
    "prompt too long (llama.cpp)": (
        "openai",
        "ask",
        _error(
            400,
            "request (9031 tokens) exceeds the available context size (8192 tokens), try "
            "increasing it",
            type="exceed_context_size_error",
        ),
        "too_long",
        1,
    ),
    "tool calls in the second choice": (
        "openai",
        "tools",
        _body(
            {
                "choices": [
                    {"index": 0, "message": {"content": "I search."}},
                    {"index": 1, "message": {"tool_calls": [CALL]}},
                ]
            }
        ),
        ANSWER,
        1,
    ),
    "unknown model": ("openai", "ask", _error(404, "model 'x' not found"), "model_gone", 1),
    "access denied": ("openai", "ask", _error(403, "not in your country"), "rejected", 1),
    "status 502 with a web page": ("openai", "ask", _body(PAGE, 502), "unavailable", 2),
    "status 402": ("openai", "ask", _error(402, "pay"), "quota_spent", 1),
    "prompt too long": ("openai", "ask", _error(400, "maximum context length is 8"), "too_long", 1),
    "prompt too long, stated only by an error code": (
        "openai",
        "ask",
        _error(400, "no", code="context_length_exceeded"),
        "too_long",
        1,
    ),
    "prompt too long (Anthropic)": (
        "anthropic",
        "ask",
        _error(400, "prompt is too long: 9 > 8"),
        "too_long",
        1,
    ),
    "prompt too long (Google)": (
        "google",
        "ask",
        _error(400, "The input token count exceeds 8"),
        "too_long",
        1,
    ),
    "status 413 of a proxy": ("openai", "ask", _body(b"Payload Too Large", 413), "too_long", 1),
    "status 422 with a list of errors": (
        "openai",
        "embed",
        _body({"detail": [{"msg": "no"}]}, 422),
        "rejected",
        1,
    ),
    "vectors in base64": ("openai", "embed", _vectors({"embedding": "AACAPwAAAAA="}), ANSWER, 1),
    "a vector that contains NaN": (
        "openai",
        "embed",
        _body(b'{"data":[{"embedding":[NaN,1]}]}'),
        "unreadable",
        1,
    ),
    "a vector of an unexpected length": (
        "openai",
        "embed",
        _vectors({"embedding": [1.0]}),
        "unreadable",
        1,
    ),
    "deeply nested JSON": ("openai", "ask", _body(b"[" * 100_000), "unreadable", 2),
}


MATRIX = Path(__file__).parents[2] / "docs" / "model_servers.md"
TEXTS = load_texts()


async def make_row(name: str, server: ModelServer, registry: Registry) -> tuple[str, str, int]:
    """Play a shape; return its row of the page, the outcome and the number of paid calls."""
    provider, task, response, *_ = SEEN[name]
    before = len(server.received)
    server.responses.clear()
    server.will_send(*[response] * 6)
    outcome, message = await find_outcome(registry, provider, task)
    paid = len(server.received) - before
    shown = TEXTS.text(f"reason_{outcome}", "en") if outcome != ANSWER and task != "embed" else ""
    said = message.replace(server.url, "http://server").replace("|", "\\|")
    cells = (task, provider, name, outcome, str(paid), shown, said)
    return f"| {' | '.join(cells)} |", outcome, paid


@pytest.mark.parametrize("name", SEEN)
async def test_shapes_that_servers_were_seen_to_send_have_an_outcome(
    server: ModelServer, registry: Registry, name: str
) -> None:
    row, *outcome = await make_row(name, server, registry)

    assert tuple(outcome) == SEEN[name][3:]
    assert row in MATRIX.read_text("utf-8").splitlines()
