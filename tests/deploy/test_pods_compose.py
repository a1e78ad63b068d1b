"""The Compose file is one, and says nothing that the code does not know."""

import argparse
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
import yaml

from config.settings import Settings, load_settings
from deploy.assembly import ROLES
from deploy.command import VERBS
from deploy.pods import LEAVING_SECONDS
from tests.deploy.house import ROOT
from worker.shutdown import GRACE_SECONDS

COMPOSE = ROOT / "deploy" / "compose.yaml"
WORKERS = ("light", "models", "search")
CHATS = ("slack", "telegram")
Service = dict[str, Any]


def understood(words: list[str]) -> bool:
    """Whether the command takes these words; it ends the test where it does not."""
    parser = argparse.ArgumentParser()
    import_module(f"deploy.commands.{words[0]}").add_arguments(parser)
    parser.parse_args(words[1:])
    return words[0] in VERBS


@pytest.fixture(scope="module")
def services() -> dict[str, Service]:
    found: dict[str, Service] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


@pytest.mark.slow
def test_the_file_has_the_form_of_a_compose_file() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]

    said = subprocess.run([*check, COMPOSE], capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stdout


def test_workers_together_work_for_every_role(services: dict[str, Service]) -> None:
    commands = [services[name]["command"] for name in WORKERS]

    assert [command[:2] for command in commands] == [["worker", "--role"]] * 3
    assert {role for command in commands for role in command[2:]} == set(ROLES)


def test_every_part_of_the_desk_runs_a_verb_of_the_command(services: dict[str, Service]) -> None:
    ours = [service for service in services.values() if service["image"].startswith("refdesk")]

    assert len(ours) == 6
    for service in ours:
        assert understood(service["command"])


@pytest.mark.parametrize("name", [*WORKERS, "gateway", *CHATS])
def test_each_is_told_settings_that_exist_and_hold(name: str, services: dict[str, Service]) -> None:
    told = services[name]["environment"]

    assert {key.lower() for key in told} <= set(Settings.model_fields)
    load_settings(_env_file=None, redis_url=told["REDIS_URL"])


def test_each_may_take_its_grace_time_before_it_is_killed(services: dict[str, Service]) -> None:
    for name in WORKERS:
        assert services[name]["stop_grace_period"] == f"{GRACE_SECONDS + LEAVING_SECONDS:.0f}s"


def test_no_part_of_the_desk_may_do_more_than_it_needs(services: dict[str, Service]) -> None:
    for name in (*WORKERS, "gateway", *CHATS):
        service = services[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_chat_doors_are_off_until_asked_for_and_hold_no_secret(
    services: dict[str, Service],
) -> None:
    for name in CHATS:
        told = services[name]["environment"]
        tokens = [key for key in told if key.endswith("_TOKEN")]

        assert services[name]["profiles"] == [name]
        assert "--gateway-only" in services[name]["command"]
        assert "ports" not in services[name]
        assert tokens
        assert all(told[token] is None for token in tokens)  # passed on when it is set


def test_redis_neither_evicts_nor_forgets(services: dict[str, Service]) -> None:
    words = services["redis"]["command"]
    options = dict(zip(words[1::2], words[2::2], strict=True))

    assert options == {
        "--appendonly": "yes",
        "--appendfsync": "everysec",
        "--maxmemory-policy": "noeviction",
    }
    assert services["redis"]["volumes"] == ["redis:/data"]
