"""Which server the embedded broker takes."""

from pathlib import Path
from typing import Any

import pytest

from broker.embedded_redis import (
    Endpoint,
    ServerVersion,
    answers,
    find_server,
    find_servers,
    run_embedded_redis,
)
from broker.errors import EmbeddedServerError
from tests.support.waiting import wait_until


def server_in(folder: Path, version: str) -> Path:
    """A program that prints a version, in a separate folder."""
    folder.mkdir()
    program = folder / "redis-server"
    program.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0 bits=64'\n")
    program.chmod(0o755)
    return program


def test_the_newest_server_on_the_path_is_chosen_regardless_of_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = server_in(tmp_path / "old", "6.2.14"), server_in(tmp_path / "new", "99.0.1")

    for path in (f"{old.parent}:{new.parent}", f"{new.parent}:{old.parent}"):
        monkeypatch.setenv("PATH", path)

        assert find_server() == new


def test_a_server_that_is_too_old_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = server_in(tmp_path / "old", "5.0.7")
    monkeypatch.setenv("PATH", str(old.parent))

    assert find_server() != old


def test_a_server_of_the_path_goes_before_the_one_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = server_in(tmp_path / "own", "6.2.14")
    monkeypatch.setenv("PATH", str(own.parent))

    first, *others = find_servers()

    assert first == own
    assert [program.name for program in others] in (["valkey-server"], [])


@pytest.mark.parametrize(
    ("reader", "writer", "can"),
    [
        (("redis", (7, 0)), ("redis", (6, 2)), True),
        (("redis", (6, 2)), ("redis", (7, 0)), False),
        (("valkey", (9, 1)), ("redis", (7, 2)), True),
        (("valkey", (9, 1)), ("redis", (7, 4)), False),
        (("redis", (8, 0)), ("valkey", (7, 2)), False),
        (("valkey", (9, 1)), ("valkey", (9, 0)), True),
    ],
)
def test_a_server_opens_data_of_older_ones_and_valkey_those_of_redis_before_they_parted(
    reader: tuple[str, tuple[int, int]], writer: tuple[str, tuple[int, int]], can: bool
) -> None:
    assert ServerVersion(*reader).can_read_data_of(ServerVersion(*writer)) is can


@pytest.mark.redis
async def test_data_is_opened_by_a_server_that_can_though_another_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = find_server()
    assert real is not None, "a test of a real server needs one"
    preferred = server_in(tmp_path / "preferred", "6.2.14")
    note = tmp_path / "data" / "broker" / "version"
    socket = note.with_name("redis.sock")

    async with run_embedded_redis(tmp_path / "data", find=lambda: [real]) as endpoint:
        await _use(endpoint, "set", "kept", 1)
    await wait_until(lambda: not answers(socket))
    async with run_embedded_redis(tmp_path / "data", find=lambda: [preferred, real]) as endpoint:
        kept = await _use(endpoint, "get", "kept")
    await wait_until(lambda: not answers(socket))

    assert kept == b"1"
    assert note.read_text() != "redis 6.2"
    note.write_text("valkey 99.1")
    with pytest.raises(EmbeddedServerError, match=r"expected valkey-server 99\.1 or newer"):
        async with run_embedded_redis(tmp_path / "data", find=lambda: [preferred, real]):
            pass


async def _use(endpoint: Endpoint, *command: str | int) -> object:
    client: Any = endpoint.client()
    try:
        return await client.execute_command(*command)
    finally:
        await client.aclose()
