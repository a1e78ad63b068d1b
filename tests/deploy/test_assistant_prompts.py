"""An assistant may replace prompts by files in its own folder, which are checked at start."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from fakeredis import FakeAsyncRedis

from config.errors import PromptError
from config.settings import Settings
from deploy.assembly.agent_factory import make_worker_specs
from deploy.assembly.assistant_prompts import load_overriding_prompts
from envelope.conversation import ClarificationReason
from llm.tasks import clarify, scope
from tests.support.app_harness import settings_of

OWN = "You greet like a pirate.\n---\n{{ question | data('question') }}\n"
ASKED = scope.Inputs(question="How?", domain_name="Ships", coverage=0.5)
WORDED = clarify.Inputs(
    reason=ClarificationReason.OUT_OF_SCOPE, language="en", domain_name="Ships", fixed_text="No."
)


def folder_of(path: Path, name: str, text: str) -> Path:
    path.mkdir(exist_ok=True)
    (path / name).write_text(text, encoding="utf-8")
    return path


def test_a_prompt_of_the_folder_replaces_that_of_the_product_and_no_other(tmp_path: Path) -> None:
    own = load_overriding_prompts(folder_of(tmp_path / "own", "scope.txt", OWN))
    product = load_overriding_prompts(None)

    assert own.render("scope", ASKED).system == "You greet like a pirate."
    assert own.render("clarify", WORDED) == product.render("clarify", WORDED)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("responde.txt", OWN, "found responde.txt"),
        ("scope.md", OWN, "found no file .txt"),
        ("scope.txt", "Only one part.", "expected one line '---'"),
        ("scope.txt", "Sys.\n---\n{{ secret }}", "found ['secret']"),
        ("scope.txt", "Sys.\n---\n{% if %}", "is no template"),
    ],
)
async def test_a_wrong_folder_of_any_assistant_ends_the_start_with_its_name(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    wrong = folder_of(tmp_path / "wrong", name, text)
    further = {
        "assistant": "ships",
        "domain_name": "Ships",
        "domain_scope": "ships",
        "prompts_folder": str(wrong),
    }
    settings = settings_of(tmp_path / "data", assistants=[further])

    async with AsyncExitStack() as stack:
        with pytest.raises(PromptError) as raised:
            await start(settings, stack)

    assert str(wrong) in str(raised.value)
    assert message in str(raised.value)


async def start(settings: Settings, stack: AsyncExitStack) -> None:
    client = FakeAsyncRedis()
    stack.push_async_callback(client.aclose)
    await make_worker_specs(settings, ["lang"], client, None, stack, meter=None)
