"""A disk is full, and has space again: nothing that was accepted is lost, and no process ends."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker.errors import BrokerUnavailableError
from cli.backup_file import read_backup, write_backup
from cli.commands.serve import answering
from config.settings import Settings
from deploy.assembly.open_records import connect_records
from deploy.assembly.runtime import desk
from gateway.desk import Message
from records.store import Selection
from tests.cli.commands.test_serve_process import serving
from tests.support.app_harness import EXAMPLES, command, environment, settings_of
from tests.support.folder_copy import copy_folder
from tests.support.postgres import PostgresServer
from tests.support.small_disk import SmallDisk, mount_disk
from tests.support.waiting import block_until, wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(300)]

QUESTION = "How do I configure SMS routing rules?"


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    """A disk with room for an index."""
    with mount_disk(400) as mounted:
        yield mounted


def refdesk(data: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a process: what the engine does on a full disk could end it."""
    return subprocess.run(
        command(*words), env=environment(data), capture_output=True, text=True, check=False
    )


def test_an_ingestion_without_space_says_so_and_can_be_repeated(disk: SmallDisk) -> None:
    data, source = disk.folder / "data", str(EXAMPLES / "sms_platform")
    data.mkdir()
    disk.fill()
    with (disk.folder / "ballast").open("r+b") as ballast:
        ballast.truncate(394 * 1024**2)

    refused = refdesk(data, "ingest", source)
    checked = refdesk(data, "doctor")
    disk.free()
    repeated = refdesk(data, "ingest", source)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is nearly full" in refused.stderr
    assert "FAULT disk" in checked.stdout
    assert repeated.returncode == 0
    assert "51 added" in repeated.stdout


def test_a_serving_desk_outlives_a_full_disk_and_says_what_is_wrong(
    disk: SmallDisk, library: Path, tmp_path: Path
) -> None:
    data = disk.folder / "data"
    copy_folder(library / "index", data / "index")
    (tmp_path / "new.md").write_text("# New\n\nThis page is new.")
    path = "/v1/conversations/c{}/messages"
    with serving(data) as (url, _), httpx.Client(base_url=url, timeout=120) as client:
        before = client.post(path.format(1), json={"text": QUESTION})
        disk.fill()

        def is_refusing() -> bool:
            return not client.get("/readyz").json()["accepting"]

        block_until(is_refusing)
        state = client.get("/readyz")
        refused = client.post(path.format(2), json={"text": QUESTION, "message_id": "m2"})
        earlier = client.get("/v1/conversations/c1")
        ingested = refdesk(data, "ingest", str(tmp_path / "new.md"))
        disk.free()
        block_until(lambda: client.get("/readyz").json()["accepting"])
        after = client.post(path.format(2), json={"text": QUESTION, "message_id": "m2"})
        again = refdesk(data, "ingest", str(tmp_path / "new.md"))

    assert (before.json()["outcome"], after.json()["outcome"]) == ("answered", "answered")
    assert (state.status_code, state.json()["status"]) == (200, "ready")
    assert "No space left on device" in state.json()["reason"]
    assert refused.status_code == 503
    assert earlier.status_code == 200
    assert (ingested.returncode, again.returncode) == (1, 0)
    assert "No space left on device" in ingested.stderr


@pytest.fixture(params=["sqlite", "postgresql"])
def records(request: pytest.FixtureRequest, disk: SmallDisk, tmp_path: Path) -> Iterator[str]:
    """The records on the disk."""
    if request.param == "sqlite":
        yield f"sqlite:///{disk.folder / 'records.sqlite3'}"
        return
    server = PostgresServer(disk.folder)
    server.start()
    try:
        yield server.url
    finally:
        server.kill()


async def test_records_of_a_full_disk_are_written_once_there_is_space(
    disk: SmallDisk, records: str, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path / "data", records_url=records)
    async with answering(settings, alone=False, records=True) as runtime:
        own = desk(runtime, "cli")
        await own.ask(Message(text="/help", conversation_id="c1", message_id="m1"))
        await wait_until(lambda: list_recorded(settings) == {"m1"})
        disk.fill()
        replies = [
            await own.ask(Message(text="/help", conversation_id=f"c{n}", message_id=f"m{n}"))
            for n in range(2, 60)
        ]
        disk.free()
        await wait_until(lambda: len(list_recorded(settings)) == 59)

    assert {reply["outcome"] for reply in replies} == {"answered"}


def list_recorded(settings: Settings) -> set[str]:
    store = connect_records(settings.records_url, settings.refdesk_data)
    try:
        store.prepare()
        return {record.message_id for record in store.find(Selection(), limit=1000)}
    finally:
        store.close()


async def test_a_backup_and_a_restore_without_space_change_nothing(
    disk: SmallDisk, library: Path, tmp_path: Path
) -> None:
    whole, file = tmp_path / "whole", tmp_path / "desk.backup"
    copy_folder(library / "index", whole / "index")
    await write_backup(settings_of(whole), file)
    here = settings_of(disk.folder / "data", redis_url=None)
    (disk.folder / "data" / "index").mkdir(parents=True)
    (disk.folder / "data" / "index" / "old").write_text("as before")
    disk.fill()

    with pytest.raises(OSError, match="No space left on device"):
        await write_backup(settings_of(whole), disk.folder / "desk.backup")
    with pytest.raises(OSError, match="No space left on device"):
        await read_backup(here, file, overwrite=True)
    left = sorted(path.name for path in disk.folder.iterdir())
    old = (disk.folder / "data" / "index" / "old").read_text()
    disk.free()
    restored = await read_backup(here, file, overwrite=True)

    assert (left, old) == (["ballast", "data"], "as before")
    assert restored.files > 10
    assert not (disk.folder / "data" / "index" / "old").exists()


async def test_a_restore_that_redis_has_no_memory_for_leaves_what_redis_had(
    client: Any, redis_url: str, library: Path, tmp_path: Path
) -> None:
    file = tmp_path / "desk.backup"
    for number in range(4):
        await client.set(f"rd:large{number}", os.urandom(5_000_000))
    await write_backup(settings_of(tmp_path / "whole", redis_url=redis_url), file)
    await client.flushall()
    await client.set("rd:old", b"as before")
    used = (await client.info("memory"))["used_memory"]
    await client.config_set("maxmemory", used + 8_000_000)
    try:
        with pytest.raises(BrokerUnavailableError, match=r"Redis cannot write: .*maxmemory"):
            await read_backup(
                settings_of(tmp_path / "here", redis_url=redis_url), file, overwrite=True
            )
    finally:
        await client.config_set("maxmemory", 0)

    assert await client.keys("rd:*") == [b"rd:old"]
    assert await client.get("rd:old") == b"as before"
