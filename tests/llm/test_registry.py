import subprocess
import sys

import pytest

from envelope.run import OUTSIDE
from llm.errors import MissingKey, UnknownModel, UnknownProvider
from llm.registry import Registry
from llm.vendors.catalogue import ModelName, VendorAccess, parse_models, vendors_by_name
from tests.llm.sample_task import BLUE, COLOUR, SKY, PlainPrompts
from tests.support.scripted_model import ScriptedModel

LOCAL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("gpt-5-mini@openai", [("gpt-5-mini", "openai")]),
        ("gpt-4", [("gpt-4", "openai")]),
        ("o3-mini", [("o3-mini", "openai")]),
        ("gemini-2.5-flash", [("gemini-2.5-flash", "google")]),
        ("claude-sonnet-4-5", [("claude-sonnet-4-5", "anthropic")]),
        ("Qwen/Qwen3-Embedding-8B", [("Qwen/Qwen3-Embedding-8B", "deepinfra")]),
        ("maker/model-7b@openai", [("maker/model-7b", "openai")]),
        ("offline", [("offline", "offline")]),
        (
            " gpt-4@openai , gemini-2.5-flash@google,offline",
            [("gpt-4", "openai"), ("gemini-2.5-flash", "google"), ("offline", "offline")],
        ),
    ],
)
def test_a_setting_names_models_and_their_providers(
    setting: str, names: list[tuple[str, str]]
) -> None:
    assert parse_models(setting) == [ModelName(*name) for name in names]


@pytest.mark.parametrize(
    "setting", ["", "gpt-4@nowhere", "llama", "@openai", "offline,", "gpt-4@openai@x", "offline@x"]
)
def test_an_unknown_host_is_a_clear_error(setting: str) -> None:
    with pytest.raises(UnknownProvider, match="expected a model such as"):
        parse_models(setting)


def test_a_model_twice_in_a_chain_is_an_error() -> None:
    with pytest.raises(UnknownProvider, match="each model once"):
        parse_models("gpt-4,gpt-4@openai")


def test_a_model_may_have_the_name_of_its_server() -> None:
    access = {"own": VendorAccess(None, "http://127.0.0.1:1/v1")}
    [name] = parse_models("own@own", vendors_by_name(access))

    assert (name.is_local, str(name)) == (False, "own@own")


@pytest.mark.parametrize(
    ("setting", "variable"),
    [("gpt-4@openai", "OPENAI_API_KEY"), ("offline,gemini-2.5-flash@google", "GOOGLE_API_KEY")],
)
def test_a_missing_key_is_reported_before_anything_is_asked(setting: str, variable: str) -> None:
    with pytest.raises(MissingKey, match=variable):
        Registry(prompts=PlainPrompts()).model(setting)


def test_a_compatible_server_needs_no_key() -> None:
    registry = Registry(prompts=PlainPrompts(), access={"openai": VendorAccess(base_url=LOCAL)})

    assert registry.model("local-7b@openai").name == "local-7b@openai"


def test_a_chain_shares_its_members_with_other_settings() -> None:
    registry = Registry()

    assert registry.model("offline").name == "offline"


async def test_scripted_is_the_script_that_was_handed_in() -> None:
    script = ScriptedModel([BLUE])

    assert (
        await Registry(scripted=script).model("scripted").ask(COLOUR, SKY, OUTSIDE)
    ).output == BLUE
    with pytest.raises(UnknownProvider, match="no script for the model"):
        Registry().model("scripted")


def test_the_key_is_not_in_the_representation_of_a_vendor() -> None:
    assert "secret" not in repr(VendorAccess(api_key="secret"))


def test_an_embedding_model_is_made_by_its_name() -> None:
    registry = Registry(
        access={
            "openai": VendorAccess(base_url=LOCAL),
            "google": VendorAccess(api_key="k", base_url=LOCAL),
        }
    )

    small = registry.embedder("text-embedding-3-small@openai")
    gemini = registry.embedder("gemini-embedding-001@google")

    assert (small.dimensions, gemini.dimensions) == (1536, 3072)


def test_an_unknown_embedding_model_is_a_clear_error() -> None:
    registry = Registry(access={"openai": VendorAccess(base_url=LOCAL)})

    with pytest.raises(UnknownModel, match="text-embedding-3-small"):
        registry.embedder("text-embedding-9@openai")
    with pytest.raises(UnknownProvider, match="text-embedding-3-small"):
        registry.embedder("offline")


@pytest.mark.slow
def test_vendor_clients_are_imported_on_first_use() -> None:
    program = (
        "import sys\n"
        "from llm.registry import Registry\n"
        "import llm.chain, llm.stored_model\n"
        "import llm.vendors.embeddings, llm.vendors.vendor_model\n"
        "Registry().model('offline')\n"
        "vendors = {'openai', 'google.genai', 'genai_prices', 'httpx2'}\n"
        "print(sorted(vendors & set(sys.modules)))\n"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )

    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")
