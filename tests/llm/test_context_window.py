"""The window of a model is what its server says, as each kind of server says it."""

import json
from typing import Any

import pytest

from llm.vendors.catalogue import VendorAccess, vendors_by_name
from llm.vendors.context_window import OLLAMA_DEFAULT, ContextWindow, find_window
from tests.support.model_server import ModelServer, Received, Response, running_server

VENDORS = vendors_by_name(["house"])
Answers = dict[str, Any]


class DescribingServer(ModelServer):
    """Describes its models at these paths, and knows no others."""

    def __init__(self, answers: Answers) -> None:
        super().__init__("")
        self.lists_models = False
        self._answers = answers

    def choose_response(self, received: Received) -> Response:
        if received.path not in self._answers:
            return Response(404)
        return Response(body=json.dumps(self._answers[received.path]).encode())


async def find(vendor: str, answers: Answers) -> ContextWindow | None:
    async with running_server(DescribingServer(answers)) as server:
        return await find_window(
            "qwen3", VENDORS[vendor], VendorAccess(base_url=f"{server.url}/v1")
        )


PROPS = {"/props": {"default_generation_settings": {"n_ctx": 8192}}}
SHOWN = {"parameters": "stop      <|im_end|>\nnum_ctx                        16384"}


@pytest.mark.parametrize(
    ("vendor", "answers", "tokens"),
    [
        ("ollama", {"/api/ps": {"models": [{"name": "qwen3", "context_length": 32768}]}}, 32768),
        ("ollama", {"/api/ps": {"models": []}, "/api/show": SHOWN}, 16384),
        ("llamacpp", PROPS, 8192),
        ("vllm", {"/v1/models": {"data": [{"id": "qwen3", "max_model_len": 40960}]}}, 40960),
        ("lmstudio", {"/api/v0/models": {"data": [{"id": "qwen3", "loaded_context_length": 4096}]}},
         4096),
        ("house", PROPS, 8192),
        ("openai", PROPS, 8192),
    ],
)  # fmt: skip
async def test_a_server_states_the_window_in_its_own_way(
    vendor: str, answers: Answers, tokens: int
) -> None:
    assert await find(vendor, answers) == ContextWindow(tokens, "server")


async def test_ollama_reads_its_default_where_nothing_else_is_set() -> None:
    window = await find("ollama", {"/api/show": {"parameters": "stop <|im_end|>"}})

    assert window == ContextWindow(OLLAMA_DEFAULT, "server_default")


@pytest.mark.parametrize(
    "answers",
    [{}, {"/props": ["n_ctx"]}, {"/props": {"default_generation_settings": {"n_ctx": "a"}}}],
)
async def test_a_server_that_states_nothing_has_no_known_window(answers: Answers) -> None:
    assert await find("llamacpp", answers) is None


async def test_the_window_of_a_vendors_model_is_that_of_the_price_list() -> None:
    known = await find_window("gpt-5-mini", VENDORS["openai"], VendorAccess(api_key="key"))
    unknown = await find_window("gpt-none", VENDORS["openai"], VendorAccess(api_key="key"))

    assert known is not None
    assert (known.origin, known.tokens > 100_000) == ("price_list", True)
    assert unknown is None


async def test_a_server_that_answers_at_any_path_is_not_ollama() -> None:
    assert await find("house", {"/api/ps": {"data": []}, "/api/show": {"data": []}}) is None
