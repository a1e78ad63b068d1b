"""A suite whose tests are interrupted; tests/test_time_limits.py runs it, and reads the results.

Each interrupted test raises the alarm of its own time limit; the next one must find nothing of it.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from threading import Thread, get_ident

import pytest

from envelope.role import Role
from tests.support.http_server import HttpServerFixture

PLACES = ("set-up", "shared set-up", "test", "worker", "waiting", "teardown", "group")
"""Where a test is interrupted; "group": a task beside a fixture fails."""
VARIABLE = "REFDESK_LEFT_BY_AN_INTERRUPTED_TEST"
set_ups: list[str] = []


def interrupt(_reads: object = None) -> None:
    signal.raise_signal(signal.SIGALRM)


@pytest.fixture(params=[f"{place}, {turn}" for place in PLACES for turn in ("interrupted", "next")])
def turn(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def shared() -> str:
    """A fixture of all tests, whose first set-up is interrupted."""
    set_ups.append("shared")
    if len(set_ups) == 1:
        interrupt()
    return "shared"


@pytest.fixture
async def key(
    turn: str, http_server: HttpServerFixture, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """A key, with which the server refuses everybody who has none."""
    if turn.endswith("next"):
        yield ""
        return
    monkeypatch.setenv(VARIABLE, turn)
    made = await http_server.key()
    if turn.startswith("set-up"):
        interrupt()
    if turn.startswith("group"):
        async with asyncio.TaskGroup() as group:
            group.create_task(_fail())
            yield made
        return
    yield made
    if turn.startswith("teardown"):
        interrupt()


async def _fail() -> None:
    pytest.fail("a task of a fixture fails")


async def test_one_after_the_other(
    turn: str, key: str, http_server: HttpServerFixture, request: pytest.FixtureRequest
) -> None:
    if turn.startswith("shared"):
        assert request.getfixturevalue("shared") == "shared"
    if turn.endswith("next"):
        await find_nothing(http_server)
    elif turn.startswith("test"):
        interrupt()
    elif turn.startswith("worker"):
        http_server.harness.script.next(Role.LANG, interrupt)
        await ask(http_server, key)
    elif turn.startswith("waiting"):
        main = get_ident()
        Thread(target=lambda: signal.pthread_kill(main, signal.SIGALRM)).start()
        await asyncio.Event().wait()


async def ask(http_server: HttpServerFixture, key: str) -> None:
    client = http_server.client(key)
    opened = (await client.post("/v1/conversations")).json()["conversation_id"]
    await client.post(f"/v1/conversations/{opened}/messages", json={"text": "Hello?"})


async def find_nothing(http_server: HttpServerFixture) -> None:
    """Fail if anything of the test before is left."""
    kept = [key async for key in http_server.harness.client.scan_iter()]
    assert not [key for key in kept if b"keys" in key or b"{c-" in key]
    assert VARIABLE not in os.environ
    assert (await http_server.client().post("/v1/conversations")).status_code == 201
