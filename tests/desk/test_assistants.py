"""Several assistants on one desk: each answers from its own documents alone."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from fakeredis import FakeAsyncRedis

from config.errors import PromptError
from config.settings import Settings
from config.way_settings import FOLDER as PROFILES
from config.way_settings import find_own_prompts
from deploy.assembly.agent_factory import make_worker_specs
from deploy.assembly.assistant_prompts import (
    PromptFolders,
    load_overriding_prompts,
)
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.runtime import ROLES, connect_runtime, desk, desks, run_workers
from envelope.conversation import ClarificationReason
from envelope.specialists import SpecialistName
from gateway.desk import Message
from knowledge.errors import IndexOwned
from knowledge.ingestion_report import PlainReport
from llm.tasks.question import ClarifyInputs, ScopeInputs
from llm.tasks.review import ComplianceInputs
from tests.support.app_harness import settings_of
from tests.support.empty_redis import play_redis

QUESTION = "How do I reset a password?"


PAGES = {
    ("default", "accounts"): "# Reset a password\n\nChoose Forgotten in the portal and wait.\n",
    ("other", "accounts"): "# Reset a password\n\nAsk Miss Marple at the xylophone desk.\n",
}


FURTHER = [
    {
        "tenant": tenant,
        "assistant": assistant,
        "domain_name": "Accounts",
        "domain_scope": "passwords and accounts",
    }
    for tenant, assistant in PAGES
]


@pytest.mark.slow
async def test_an_assistant_answers_from_its_own_documents_alone(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "data", assistants=FURTHER)
    quiet = PlainReport(lambda _line: None)
    own = settings
    for (tenant, assistant), page in PAGES.items():
        folder = tmp_path / tenant
        folder.mkdir()
        (folder / "passwords.md").write_text(page)
        own = settings.model_copy(update={"tenant": tenant, "assistant": assistant})
        assert (await run_ingestion(own, [folder], quiet)).added == 1

    async with (
        connect_runtime(settings, endpoint=play_redis()) as post,
        open_knowledge(settings) as knowledge,
        run_workers(post, ROLES, knowledge),
    ):
        replies = {
            name: await one.ask(Message(QUESTION, "c1", "m1"))
            for name, one in desks(post, "test").items()
        }
        with pytest.raises(IndexOwned):
            async with open_knowledge(own, alone=True):
                pass
        stranger = settings.model_copy(update={"tenant": "nobody"})
        foreign = await desk(type(post)(post.endpoint, post.broker, stranger), "test").ask(
            Message(QUESTION, "c1", "m1")
        )

    assert "Forgotten" in str(replies["default", "accounts"]["text"])
    assert "Marple" in str(replies["other", "accounts"]["text"])
    assert "Marple" not in str(replies["default", "accounts"])
    assert "Forgotten" not in str(replies["other", "accounts"])
    assert replies["default", "default"]["outcome"] in {"refused", "clarification"}
    assert foreign["outcome"] == "failed"
    assert "Marple" not in str(foreign)
    assert "Forgotten" not in str(foreign)


OWN = "You greet like a pirate.\n---\n{{ question | data('question') }}\n"


ASKED = ScopeInputs(question="How?", domain_name="Ships", coverage=0.5)


WORDED = ClarifyInputs(
    reason=ClarificationReason.OUT_OF_SCOPE, language="en", topic="Ships", fixed_text="No."
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


REVIEWED = ComplianceInputs(question="Does it comply?", requirements=(), passages=())


def test_the_file_of_a_specialist_names_its_prompt_which_can_be_changed_while_it_is_used(
    tmp_path: Path,
) -> None:
    profile = 'name = "compliance"\nprompt = "strict.txt"\ntools = ["graph_search"]\n'
    folder = folder_of(tmp_path / "team", "compliance.toml", profile)
    folder_of(folder, "strict.txt", OWN)
    folders = PromptFolders()
    prompts = folders.of(None, folder)

    before = prompts.render("compliance", REVIEWED).system
    folder_of(folder, "strict.txt", OWN.replace("pirate", "judge"))
    folders.reload()

    assert before == "You greet like a pirate."
    assert prompts.render("compliance", REVIEWED).system == "You greet like a judge."
    product = load_overriding_prompts(None)
    assert prompts.render("scope", ASKED) == product.render("scope", ASKED)


def test_the_file_of_every_specialist_names_the_prompt_of_the_product() -> None:
    product, named = load_overriding_prompts(None), load_overriding_prompts(None, PROFILES)

    assert sorted(find_own_prompts(PROFILES)) == sorted(SpecialistName)
    assert named.render("compliance", REVIEWED) == product.render("compliance", REVIEWED)


def test_a_file_of_no_specialist_is_refused_by_its_name(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "team", "lawyer.toml", 'name = "lawyer"\n')

    with pytest.raises(PromptError, match="found 'lawyer'"):
        load_overriding_prompts(None, folder)


def test_prompts_injected_into_a_process_replace_those_of_every_folder_also_later(
    tmp_path: Path,
) -> None:
    folders = PromptFolders()
    first = folders.of(None)

    folders.inject_prompts({"scope": OWN})
    later = folders.of(folder_of(tmp_path / "own", "scope.txt", OWN.replace("pirate", "judge")))
    folders.reload()

    for prompts in (first, later):
        assert prompts.render("scope", ASKED).system == "You greet like a pirate."
    for name, text, message in (
        ("scope", "Only one part.", "line '---'"),
        ("lawyer", OWN, "lawyer"),
    ):
        with pytest.raises(PromptError, match=message):
            folders.inject_prompts({name: text})


@pytest.mark.parametrize(
    ("prompt", "message"), [("none.txt", "exists neither in"), ("../secret.txt", "prompt")]
)
def test_a_specialist_whose_prompt_is_missing_ends_the_start(
    tmp_path: Path, prompt: str, message: str
) -> None:
    profile = f'name = "compliance"\nprompt = "{prompt}"\n'
    folder = folder_of(tmp_path / "team", "compliance.toml", profile)

    with pytest.raises(PromptError, match=message):
        load_overriding_prompts(None, folder)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("responde.txt", OWN, "found responde.txt"),
        ("scope.md", OWN, "found no file .txt"),
        ("scope.txt", "Only one part.", "must contain exactly one line '---'"),
        ("scope.txt", "Sys.\n---\n{{ secret }}", "uses unknown variables"),
        ("scope.txt", "Sys.\n---\n{% if %}", "is not a valid Jinja template"),
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
