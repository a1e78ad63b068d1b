import os
import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from broker.embedded_redis import REMOVED, Endpoint, answers, find_server, run_embedded_redis
from broker.errors import BrokerUnavailableError, EmbeddedServerError
from broker.redis_broker import RedisBroker
from tests.support.broker_harness import BrokerHarness, finish, question
from tests.support.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent
USER = """
import asyncio, sys
from pathlib import Path
from broker.embedded_redis import run_embedded_redis

async def main():
    async with run_embedded_redis(Path(sys.argv[1])) as endpoint:
        client = endpoint.client()
        await client.incr("visits")
        print(endpoint.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def server() -> None:
    if find_server() is None:
        if os.environ.get("CI"):
            pytest.fail("no redis-server here, and CI must not skip what needs it")
        pytest.skip("no redis-server here")


@contextmanager
def another_process(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that uses the folder's Redis until it is killed."""
    command = [sys.executable, "-c", USER, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("unix://")
        yield process
        process.kill()


def keeper_pid(folder: Path) -> int:
    return int((folder / "broker" / "keeper.pid").read_text())


def socket_of(folder: Path) -> Path:
    return folder / "broker" / (folder / "broker" / "socket").read_text()


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


async def wait_until_stopped(folder: Path) -> None:
    """Wait until no server answers, and its keeper is gone."""
    pid, path = keeper_pid(folder), socket_of(folder)

    async def gone() -> bool:
        return not answers(path) and not runs(pid)

    await wait_until(gone)


async def visits(endpoint: Endpoint) -> int:
    client = endpoint.client()
    try:
        return int(await client.incr("visits"))
    finally:
        await client.aclose()


@pytest.mark.redis
@pytest.mark.usefixtures("server")
async def test_only_the_current_user_can_access_the_server_and_its_files(tmp_path: Path) -> None:
    async with run_embedded_redis(tmp_path) as endpoint:
        client: Any = endpoint.client()
        info = await client.info()
        for name in REMOVED:
            with pytest.raises(ResponseError, match="unknown command"):
                await client.execute_command(name)
        await client.aclose()
        path = socket_of(tmp_path)
        modes = [oct(node.stat().st_mode & 0o777) for node in (path, path.parent)]
    await wait_until_stopped(tmp_path)

    assert modes == ["0o700", "0o700"]
    assert info["tcp_port"] == 0
    assert {"CONFIG", "FLUSHALL", "FLUSHDB", "KEYS", "DEBUG", "MODULE"} <= set(REMOVED)


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.usefixtures("server")
async def test_data_survives_a_restart(tmp_path: Path) -> None:
    async with run_embedded_redis(tmp_path) as endpoint:
        first = await visits(endpoint)
    await wait_until_stopped(tmp_path)
    async with run_embedded_redis(tmp_path) as endpoint:
        second = await visits(endpoint)
    await wait_until_stopped(tmp_path)

    assert (first, second) == (1, 2)
    assert endpoint.durable


@pytest.mark.redis
@pytest.mark.usefixtures("server")
async def test_an_entry_deleted_from_among_others_leaves_no_word_in_memory(tmp_path: Path) -> None:
    words = [f"{random.getrandbits(64):016x}".encode() for _ in range(3)]
    async with run_embedded_redis(tmp_path) as endpoint:
        client: Any = endpoint.client()
        entries = [await client.xadd("stream", {"text": word}) for word in words]
        await client.xdel("stream", entries[1])

        kept = await client.dump("stream")
        await client.aclose()
    await wait_until_stopped(tmp_path)

    assert [word in kept for word in words] == [True, False, True]


@pytest.mark.redis
@pytest.mark.usefixtures("server")
async def test_a_second_user_attaches_and_the_last_to_leave_stops_it(tmp_path: Path) -> None:
    async with run_embedded_redis(tmp_path) as first:
        async with run_embedded_redis(tmp_path) as second:
            pass
        still_there = await visits(first)
    await wait_until_stopped(tmp_path)

    assert first.url == second.url
    assert still_there == 1


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.usefixtures("server")
async def test_the_server_stays_for_others_when_its_starter_is_killed(tmp_path: Path) -> None:
    with another_process(tmp_path) as starter:
        async with run_embedded_redis(tmp_path) as endpoint:
            starter.kill()
            starter.wait()
            assert await visits(endpoint) == 2
    await wait_until_stopped(tmp_path)


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.usefixtures("server")
async def test_no_process_is_left_behind_by_a_killed_user(tmp_path: Path) -> None:
    with another_process(tmp_path) as only:
        only.kill()

    await wait_until_stopped(tmp_path)
    async with run_embedded_redis(tmp_path) as endpoint:
        assert await visits(endpoint) == 2
    await wait_until_stopped(tmp_path)


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.usefixtures("server")
@pytest.mark.skipif(sys.platform != "linux", reason="the system ends the server with its keeper")
async def test_a_killed_keeper_ends_its_server_and_the_next_user_starts_a_new_one(
    tmp_path: Path,
) -> None:
    async with run_embedded_redis(tmp_path) as before:
        path = socket_of(tmp_path)
        assert await visits(before) == 1
        os.kill(keeper_pid(tmp_path), signal.SIGKILL)

        async def gone() -> bool:
            return not answers(path)

        await wait_until(gone)
        async with run_embedded_redis(tmp_path) as again:
            assert await visits(again) == 2
    await wait_until_stopped(tmp_path)


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.usefixtures("server")
async def test_a_server_that_dies_is_started_again_and_work_goes_on(tmp_path: Path) -> None:
    async with run_embedded_redis(tmp_path) as endpoint:
        harness = BrokerHarness(RedisBroker(endpoint.client()), None, RedisBroker)
        await harness.broker.prepare(["manager"])
        await harness.submit()
        client = endpoint.client()
        server_pid = int((await client.info("server"))["process_id"])
        os.kill(server_pid, signal.SIGTERM)

        async def dead() -> bool:
            return not runs(server_pid)

        async def is_settled() -> bool:
            try:
                return await harness.settle(await harness.take(), finish("still here"))
            except BrokerUnavailableError:
                return False

        await wait_until(dead)
        await wait_until(is_settled)
        reply = await harness.broker.replies.read_reply(question())
        assert reply is not None
        assert reply["text"] == "still here"
        await client.aclose()
        await harness.broker.close()
    await wait_until_stopped(tmp_path)


def copy_folder(folder: Path, to: Path) -> Path:
    """Copy a folder with all that is in it, as people do: sockets too."""
    subprocess.run(["cp", "-R", folder, to], check=True)
    return to


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("deep", ["", "long" * 30], ids=["short path", "long path"])
async def test_a_copied_folder_has_a_server_of_its_own(tmp_path: Path, deep: str) -> None:
    original = tmp_path / deep / "original"
    with another_process(original):
        copy = copy_folder(original, tmp_path / deep / "copy")
        with another_process(copy):
            async with run_embedded_redis(original) as first, run_embedded_redis(copy) as second:
                urls = (first.url, second.url)
                counted = [await visits(first), await visits(first), await visits(second)]
    await wait_until_stopped(original)
    await wait_until_stopped(copy)

    assert urls[0] != urls[1]
    # The original was used once before; what the copy held was not on disk for sure.
    assert counted[:2] == [2, 3]
    assert counted[2] in {2, 3}


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("deep", ["", "long" * 30], ids=["short path", "long path"])
async def test_a_copy_that_takes_the_place_of_its_original_does_not_join_it(
    tmp_path: Path, deep: str
) -> None:
    place, aside = tmp_path / deep / "data", tmp_path / deep / "aside"
    with another_process(place):
        place.rename(aside)
        copy_folder(aside, place)
        async with run_embedded_redis(place) as restored, run_embedded_redis(aside) as moved:
            apart = await server_of(restored) != await server_of(moved)
            # Whoever moves a folder finds the server that runs for it.
            assert await visits(moved) == 2
    await wait_until_stopped(place)
    await wait_until_stopped(aside)

    assert apart


async def server_of(endpoint: Endpoint) -> int:
    """Return the process of the server that answers here."""
    client = endpoint.client()
    try:
        return int((await client.info("server"))["process_id"])
    finally:
        await client.aclose()


@pytest.mark.redis
@pytest.mark.usefixtures("server")
async def test_a_folder_with_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30) / ("ü" * 60)

    async with run_embedded_redis(folder) as endpoint:
        assert await visits(endpoint) == 1
        assert len(endpoint.url) < 108
    await wait_until_stopped(folder)


@pytest.mark.redis
@pytest.mark.usefixtures("server")
async def test_data_of_a_newer_server_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "version").write_text("99.1")

    with pytest.raises(EmbeddedServerError, match=r"redis-server 99\.1 or newer"):
        async with run_embedded_redis(tmp_path):
            pass


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.usefixtures("server")
async def test_a_server_that_cannot_start_reports_the_reason(tmp_path: Path) -> None:
    (tmp_path / "broker" / "appendonlydir").mkdir(parents=True)
    manifest = tmp_path / "broker" / "appendonlydir" / "appendonly.aof.manifest"
    manifest.write_text("nonsense\n")
    (tmp_path / "broker" / "appendonly.aof").write_text("nonsense\n")  # as older servers name it

    with pytest.raises(EmbeddedServerError, match="did not start"):
        async with run_embedded_redis(tmp_path):
            pass


async def test_without_a_server_memory_is_shared_in_the_process_and_ends_with_it(
    tmp_path: Path,
) -> None:
    async with run_embedded_redis(tmp_path, find=list) as endpoint:
        assert [await visits(endpoint), await visits(endpoint)] == [1, 2]
        harness = BrokerHarness(RedisBroker(endpoint.client()), None, RedisBroker)
        await harness.broker.prepare(["manager"])
        await harness.submit()
        assert await harness.settle(await harness.take(), finish())
        await harness.broker.close()

    assert not endpoint.durable
    async with run_embedded_redis(tmp_path, find=list) as endpoint:
        assert await visits(endpoint) == 1


async def test_an_endpoint_that_is_sent_to_a_child_process_gets_lines_of_its_own() -> None:
    endpoint = Endpoint("unix:///nowhere", durable=True)
    client = endpoint.client()

    # As the quarantine sends it, while somebody here has lines.
    sent = pickle.loads(pickle.dumps(endpoint))  # noqa: S301 - our own bytes

    assert sent == endpoint
    assert len(endpoint.lines) == 1
    assert len(sent.lines) == 0
    await client.aclose()
