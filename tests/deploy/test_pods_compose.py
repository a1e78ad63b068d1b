"""The Compose file is one, and says nothing that the code does not know."""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from redis import Redis
from redis.exceptions import NoPermissionError, RedisError

from broker.embedded_redis import find_server
from cli.main import VERBS
from config.settings import Settings, load_settings
from deploy.assembly.runtime import READ, ROLES, WRITE
from deploy.generate.pods import LEAVING_SECONDS, TOOLS_FOLDER
from deploy.generate.redis_users import COMMANDS
from gateway.chat_channels import CHAT_CHANNELS
from tests.support.app_harness import ROOT
from tests.support.waiting import block_until
from worker.shutdown import GRACE_SECONDS

COMPOSE = ROOT / "deploy" / "compose.yaml"
WORKERS = ("manager", "light", "models", "search", "read", "write")
CHATS = tuple(spec.name for spec in CHAT_CHANNELS)
Service = dict[str, Any]


def is_understood(words: list[str]) -> bool:
    """Whether the command takes these words; it ends the test where it does not."""
    parser = argparse.ArgumentParser()
    import_module(f"cli.commands.{words[0]}").add_arguments(parser)
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

    assert [command[:2] for command in commands] == [["worker", "--role"]] * len(WORKERS)
    assert {role for command in commands for role in command[2:]} == {*ROLES, READ, WRITE}


def test_every_part_of_the_desk_runs_a_verb_of_the_command(services: dict[str, Service]) -> None:
    ours = [service for service in services.values() if "refdesk" in service["image"]]

    assert len(ours) == len((*WORKERS, "gateway", *CHATS))
    for service in ours:
        assert is_understood(service["command"])


@pytest.mark.parametrize("name", [*WORKERS, "gateway", *CHATS])
def test_each_gets_settings_that_exist_and_hold(name: str, services: dict[str, Service]) -> None:
    settings = services[name]["environment"]

    assert {key.lower() for key in settings} <= set(Settings.model_fields)
    redis_url = re.sub(r"\$\{REDIS_PASSWORD[^}]*\}", "secret", settings["REDIS_URL"])
    load_settings(_env_file=None, redis_url=redis_url)


@pytest.mark.parametrize("name", [*WORKERS, "gateway", *CHATS])
def test_every_setting_reaches_every_part(name: str, services: dict[str, Service]) -> None:
    fixed = {key for key, value in services[name]["environment"].items() if value is not None}

    # Whatever the file contains arrives, and nothing but what must be so here stands above it.
    assert services[name]["env_file"] == [{"path": ".env", "required": False}]
    own = {"gateway": {"REQUIRE_KEYS"}, "read": {"INGESTION_READERS"}}.get(name, set())
    assert fixed == {"REDIS_URL", "QDRANT_URL", "REFDESK_DATA", "HEALTH_PORT", "LOG_LEVEL", *own}


def test_every_image_can_be_pinned_by_its_digest(services: dict[str, Service]) -> None:
    assert {service["image"].partition(":-")[0] for service in services.values()} == {
        "${REFDESK_IMAGE",
        "${REDIS_IMAGE",
        "${QDRANT_IMAGE",
    }
    assert "PYTHON_IMAGE" in services["gateway"]["build"]["args"]


def test_redis_and_qdrant_are_reached_from_inside_alone(services: dict[str, Service]) -> None:
    networks = yaml.safe_load(COMPOSE.read_text())["networks"]

    assert networks["inside"] == {"internal": True}
    for name in ("redis", "qdrant"):
        assert services[name]["networks"] == ["inside"]
        assert "ports" not in services[name]
        assert services[name]["cap_drop"] == ["ALL"]


def redis_options(services: dict[str, Service]) -> list[str]:
    """The words of the server, with a password."""
    words = services["redis"]["command"][1:]
    return [word.replace("${REDIS_PASSWORD}", "secret") for word in words]


@pytest.fixture
def guarded(services: dict[str, Service], tmp_path: Path) -> Iterator[str]:
    """The socket of a server that is started with the words of the Compose file."""
    program = find_server()
    if program is None:
        assert not os.environ.get("CI"), "CI must not skip what needs a redis-server"
        pytest.skip("no redis-server here")
    socket = tmp_path / "r.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--dir", str(tmp_path)]
    words = [str(program), *redis_options(services), *options]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    block_until(lambda: socket.exists() or server.poll() is not None)
    assert server.poll() is None, "redis-server ended"
    yield str(socket)
    server.terminate()
    server.wait()


@pytest.mark.redis
def test_redis_lets_nobody_in_without_a_password_nor_do_harm_with_it(guarded: str) -> None:
    refdesk: Any = Redis.from_url(f"unix://refdesk:secret@{guarded}")
    stranger = Redis.from_url(f"unix://{guarded}")

    assert refdesk.set("rd:shards", 1)
    for words in ("CONFIG GET *", "FLUSHALL", "KEYS *", "GET other"):
        with pytest.raises(NoPermissionError):
            refdesk.execute_command(*words.split())
    with pytest.raises(RedisError, match="authenticated"):
        stranger.ping()
    refdesk.close()
    stranger.close()


def test_each_may_take_its_grace_time_before_it_is_killed(services: dict[str, Service]) -> None:
    for name in WORKERS:
        assert services[name]["stop_grace_period"] == f"{GRACE_SECONDS + LEAVING_SECONDS:.0f}s"


def test_no_part_of_the_desk_may_do_more_than_it_needs(services: dict[str, Service]) -> None:
    for name in (*WORKERS, "gateway", *CHATS):
        service = services[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_chat_channels_are_off_until_asked_for_and_hold_no_secret(
    services: dict[str, Service],
) -> None:
    for name in CHATS:
        settings = services[name]["environment"]
        tokens = [key for key in settings if key.endswith("_TOKEN")]

        assert services[name]["profiles"] == [name]
        assert "--gateway-only" in services[name]["command"]
        assert "ports" not in services[name]
        assert tokens
        assert all(settings[token] is None for token in tokens)  # passed on when it is set


def test_only_parts_that_call_tools_mount_the_folder_of_outside_tools(
    services: dict[str, Service],
) -> None:
    mounts = {name: services[name]["volumes"] for name in (*WORKERS, *CHATS, "gateway")}

    mount = f"${{OUTSIDE_TOOLS_FOLDER:-./outside_tools}}:{TOOLS_FOLDER}:ro"
    calling = {name for name in WORKERS if "tool" in services[name]["command"]}
    assert calling == {"search"}
    assert {name for name, found in mounts.items() if mount in found} == calling


def test_persistent_data_has_a_named_volume(services: dict[str, Service]) -> None:
    owners = {"search": "search:/data", "gateway": "gateway:/data"}

    named = {name: services[name]["volumes"][0] for name in owners}

    assert named == owners
    assert services["qdrant"]["volumes"] == ["qdrant:/qdrant/storage"]


def test_redis_neither_evicts_nor_forgets(services: dict[str, Service]) -> None:
    words = services["redis"]["command"]
    users = words.index("--user")
    options = dict(zip(words[1:users:2], words[2:users:2], strict=True))

    assert options == {
        "--appendonly": "yes",
        "--appendfsync": "everysec",
        "--maxmemory-policy": "noeviction",
        "--stream-node-max-entries": "1",
    }
    assert services["redis"]["volumes"] == ["redis:/data"]
    assert tuple(word[1:] for word in words if word.startswith("+")) == COMMANDS
