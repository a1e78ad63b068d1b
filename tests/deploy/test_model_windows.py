"""The context of an answer fits the window that a server of one's own really has."""

import json
from pathlib import Path

from config.settings import USUAL_CONTEXT
from deploy.assembly.models import note_windows
from tests.support.app_harness import settings_of
from tests.support.model_server import ModelServer, Received, Response, running_server


class ShortSighted(ModelServer):
    """Has a window of 8,192 tokens, as it says where llama.cpp's server says it."""

    def choose_response(self, received: Received) -> Response:
        assert received.path == "/props"
        return Response(body=json.dumps({"default_generation_settings": {"n_ctx": 8192}}).encode())


async def test_a_small_window_makes_the_context_of_an_answer_small(tmp_path: Path) -> None:
    short_sighted = ShortSighted("")
    short_sighted.lists_models = False
    async with running_server(short_sighted) as server:
        settings = settings_of(
            tmp_path, gen_model="qwen3@llamacpp", llamacpp_base_url=f"{server.url}/v1"
        )
        sized = await note_windows(settings)

    assert settings.context_tokens == USUAL_CONTEXT
    assert sized.context_tokens == 8192 // 3


async def test_a_window_that_the_owner_states_is_not_looked_up(tmp_path: Path) -> None:
    limits = {"qwen3@llamacpp": {"context_window": 32_000}}
    settings = settings_of(
        tmp_path, gen_model="qwen3@llamacpp", llamacpp_base_url="http://127.0.0.1:9/v1",
        model_limits=limits,
    )  # fmt: skip

    assert (await note_windows(settings)).context_tokens == USUAL_CONTEXT
