"""`refdesk demo`: what the README does not show."""

from pathlib import Path

import pytest

from tests.cli.commands.test_models import at_address, serving
from tests.support.command_line import Run
from tests.support.folder_copy import copy_folder
from tests.support.model_server import ModelServer, Received, Response

pytestmark = pytest.mark.slow


class OllamaServer(ModelServer):
    """Lists its models, and answers no prompt."""

    def __init__(self, models: bytes) -> None:
        super().__init__("")
        self.lists_models = False
        self._models = models

    def choose_response(self, received: Received) -> Response:
        return Response(body=self._models) if received.path == "/v1/models" else Response(400)


@pytest.mark.parametrize(
    ("models", "command"),
    [
        (b'{"data": [{"id": "qwen3:8b"}, {"id": "a;b"}]}', "GEN_MODEL=qwen3:8b@ollama"),
        (b'{"data": [{"id": "a;b"}]}', "GEN_MODEL='a;b'@ollama"),
        (b"<html>", None),
    ],
)
def test_the_demo_names_the_models_of_a_server_on_this_machine(
    library: Path,
    run: Run,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    models: bytes,
    command: str | None,
) -> None:
    copy_folder(library / "index", elsewhere / "data" / "demo" / "index")

    with serving(OllamaServer(models)) as url:
        monkeypatch.setenv("COMPATIBLE_SERVERS", at_address("ollama", f"{url}/v1"))
        result = run("demo")

    assert result.status == 0, result.err
    assert "GEN_MODEL=gpt-5-mini@openai" in result.out
    assert "Ollama answers" in result.out if command else "Ollama" not in result.out
    assert command is None or command in result.out
