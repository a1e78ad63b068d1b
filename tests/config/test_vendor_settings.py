"""Every vendor of the table has its settings."""

import pytest

from config.errors import SettingsError
from config.settings import Settings, load_settings
from deploy.assembly.model_choice import vendor_access
from deploy.assembly.models import make_registry
from deploy.logging_setup import secrets_of
from llm.errors import MissingKey
from llm.port import Model, ScoreModel
from llm.vendors.catalogue import VENDORS, Vendor

LOCAL = "http://127.0.0.1:9/v1"


def settings(**changes: object) -> Settings:
    return load_settings(_env_file=None, **changes)


def make_model(chosen: Settings, vendor: Vendor) -> Model | ScoreModel:
    registry = make_registry(chosen)
    name = f"some@{vendor.name}"
    return registry.model(name) if vendor.chats else registry.reranker(name, 1.0)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_a_vendor_of_the_table_is_reached_by_its_settings(vendor: Vendor) -> None:
    named: dict[str, object] = {vendor.key_variable.lower(): "sk-1"}
    if vendor.is_local:
        named = {"compatible_servers": {vendor.name: {"base_url": LOCAL, "api_key": "sk-1"}}}
    elif vendor.chats:
        named[vendor.url_variable.lower()] = LOCAL

    chosen = settings(**named)

    # One that only reranks has no address but its own, which no test may ask.
    assert not vendor.chats or make_model(chosen, vendor).name == f"some@{vendor.name}"
    assert vendor_access(chosen)[vendor.name].api_key == "sk-1"
    assert secrets_of(chosen) == {"sk-1"}


@pytest.mark.parametrize(
    "vendor", [vendor for vendor in VENDORS if vendor.needs_key], ids=lambda vendor: vendor.name
)
def test_a_vendor_without_a_key_is_reported_by_the_name_of_its_variable(vendor: Vendor) -> None:
    with pytest.raises(MissingKey, match=f"{vendor.name.upper()}_API_KEY"):
        make_model(settings(), vendor)


@pytest.mark.parametrize(
    "vendor",
    [vendor for vendor in VENDORS if vendor.has_settings and vendor.chats],
    ids=lambda vendor: vendor.name,
)
def test_an_empty_address_of_a_vendor_is_unset(vendor: Vendor) -> None:
    chosen = settings(**{vendor.url_variable.lower(): ""})

    assert vendor_access(chosen)[vendor.name].base_url is None


def test_a_vendor_that_has_no_common_address_needs_one() -> None:
    with pytest.raises(MissingKey, match="AZURE_BASE_URL"):
        make_registry(settings(azure_api_key="k")).model("ours@azure")


def test_servers_under_names_of_the_operator_stand_side_by_side() -> None:
    chosen = settings(
        compatible_servers={
            "groq": {"base_url": LOCAL, "api_key": "sk-groq"},
            "vllm": {"base_url": "http://127.0.0.1:8/v1"},
        }
    )

    model = make_registry(chosen).model("llama@groq,qwen@vllm,gpt-oss@groq")

    assert model.name == "llama@groq,qwen@vllm,gpt-oss@groq"
    assert secrets_of(chosen) == {"sk-groq"}
    assert "sk-groq" not in repr(chosen)


@pytest.mark.parametrize("name", ["openai", "offline", "scripted", "a b", ""])
def test_a_server_may_not_take_the_name_of_a_vendor(name: str) -> None:
    with pytest.raises(SettingsError, match="COMPATIBLE_SERVERS: expected names other than"):
        settings(compatible_servers={name: {"base_url": LOCAL}})


@pytest.mark.parametrize(
    ("chain", "writes"),
    [
        ("offline", False),
        ("gpt-5-mini@openai", True),
        ("gpt-5-mini@openai, offline", True),
        ("scripted", True),
    ],
)
def test_a_model_writes_the_answers_unless_the_chain_is_offline_alone(
    chain: str, writes: bool
) -> None:
    assert Settings(gen_model=chain, _env_file=None).uses_model is writes
