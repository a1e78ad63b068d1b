"""`refdesk models`: what the configured models are used for, and whether they can do it."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cli.commands.models import EXIT_FAULTS
from tests.support.command_line import Run
from tests.support.model_server import ModelServer, Received, Response, running_server

ANSWER = {"text_eng": "How long is the library open?", "confidence": 1.0, "corrections": []}
COMPLETION = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "qwen3",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": json.dumps(ANSWER)}}],
    "usage": {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320},
}  # fmt: skip

CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
TOOL_CALL = {"choices": [{"message": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]}


class FaultyServer(ModelServer):
    """Answers what each model is made for: `works`, `hangs`, or a status with a message."""

    def __init__(self) -> None:
        super().__init__("")

    def choose_response(self, received: Received) -> Response:
        if received.body["model"] == "broken":
            return Response(404, b'{"error": {"message": "the GPU fell off"}}')
        if received.body["model"] == "page":
            return Response(body=b"<html><title>Sign in</title></html>")
        if "tools" in received.body:
            return Response(400, b'{"error": {"message": "does not support tools"}}')
        return Response(body=json.dumps(COMPLETION).encode())


class OllamaServer(ModelServer):
    """Answers every prompt, and describes a model that reads as much as it is told."""

    def __init__(self, context_length: int) -> None:
        super().__init__("")
        self.lists_models = False
        self._context_length = context_length

    def choose_response(self, received: Received) -> Response:
        if received.path == "/api/ps":
            row = {"name": "qwen3", "context_length": self._context_length}
            return Response(body=json.dumps({"models": [row]}).encode())
        if "tools" in received.body:
            return Response(body=json.dumps(TOOL_CALL).encode())
        return Response(body=json.dumps(COMPLETION).encode())


@contextmanager
def serving(server: ModelServer) -> Iterator[str]:
    """Serve from another thread: the command has an event loop of its own."""
    started, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with running_server(server):
            started.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield server.url
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def at_address(name: str, url: str) -> str:
    return json.dumps({name: {"base_url": url}})


def test_a_model_that_answers_is_described_with_what_it_reads(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(OllamaServer(32_768)) as url:
        monkeypatch.setenv("GEN_MODEL", "qwen3@ollama")
        monkeypatch.setenv("COMPATIBLE_SERVERS", at_address("ollama", f"{url}/v1"))
        result = run("models")

    assert result.status == 0, result.err
    assert "qwen3@ollama" in result.out
    assert "this machine" in result.out
    assert "output follows a JSON schema" in result.out
    assert "32,768 tokens, reported by its server" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_a_model_that_reads_less_than_a_prompt_holds_is_a_fault_with_its_remedy(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(OllamaServer(4096)) as url:
        monkeypatch.setenv("GEN_MODEL", "qwen3@ollama")
        monkeypatch.setenv("COMPATIBLE_SERVERS", at_address("ollama", f"{url}/v1"))
        result = run("models", "--json")
        shown = run("models")

    assert result.status == EXIT_FAULTS
    [check] = result.json
    assert (check["window"]["tokens"], check["is_cut"]) == (4096, True)
    assert "OLLAMA_CONTEXT_LENGTH" in shown.out


def test_a_server_that_is_not_there_is_named_with_its_address(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEN_MODEL", "qwen3@llamacpp")
    monkeypatch.setenv("COMPATIBLE_SERVERS", at_address("llamacpp", "http://127.0.0.1:9/v1"))

    result = run("models")

    assert result.status == EXIT_FAULTS
    assert "http://127.0.0.1:9/v1" in result.out
    assert "problem" in result.out


def test_without_a_model_the_command_says_how_to_get_one(run: Run) -> None:
    result = run("models")

    assert result.status == 0
    assert "GEN_MODEL" in result.out


def test_a_model_that_fails_hides_no_other_and_the_message_of_the_vendor_is_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(FaultyServer()) as url:
        monkeypatch.setenv("GEN_MODEL", "broken@vllm,page@vllm,works@vllm")
        monkeypatch.setenv("COMPATIBLE_SERVERS", at_address("vllm", url))
        result = run("models", "--json")

    assert result.status == EXIT_FAULTS
    broken, page, works = result.json
    assert "the GPU fell off" in broken["problem"]
    assert "'Sign in'" in page["problem"]
    assert f"try {url}/v1 in COMPATIBLE_SERVERS" in page["problem"]
    assert (works["problem"], works["streams"]) == ("", False)


@pytest.mark.parametrize(("way", "status"), [("search", 0), ("tools", EXIT_FAULTS)])
def test_a_model_that_calls_no_tools_is_a_fault_only_where_tools_are_needed(
    run: Run, monkeypatch: pytest.MonkeyPatch, way: str, status: int
) -> None:
    with serving(FaultyServer()) as url:
        monkeypatch.setenv("GEN_MODEL", "works@vllm")
        monkeypatch.setenv("WAY", way)
        monkeypatch.setenv("COMPATIBLE_SERVERS", at_address("vllm", f"{url}/v1"))
        result = run("models")

    assert result.status == status, result.err
    assert "does not support tools" in " ".join(result.out.split())
