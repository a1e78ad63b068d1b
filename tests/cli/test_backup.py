"""A backup is taken while questions are answered, and restored without loss and without doubles."""

import asyncio
import io
import json
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pydantic import SecretStr

from broker.embedded_redis import Endpoint
from broker.maintenance.snapshot import RedisSnapshot, SavedKey, SnapshotError
from cli.backup_file import END, FORMAT, MANIFEST, RECORDS, REDIS, read_backup, write_backup
from cli.commands.serve import answering
from config.settings import Settings
from deploy.assembly.open_records import connect_records
from deploy.assembly.runtime import desk
from deploy.errors import CommandError
from gateway.desk import Message
from records.store import Selection
from tests.support.app_harness import settings_of
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_until

EARLIER, DURING = 8, 24
HERE, THERE = 11, 12
"""Databases of the server that no other test uses."""
VERIFIED, ASKED = "verified_answers", "gap_questions"
NAME = {"tenant": "default", "assistant": "default"}
ROW = {
    **NAME, "id": "v1", "question": "May I?", "answer": "Yes.", "sources": "[]", "created_at": 1.0,
    "changed_at": 2.0,
}  # fmt: skip
GAP = {**NAME, "id": "g1", "state": "done", "created_at": 1.0, "changed_at": 2.0}
IN_GAP = {
    **NAME, "conversation_id": "c1", "message_id": "m1", "model": "m", "vector": b"\x00\xff",
    "gap_id": "g1",
}  # fmt: skip
pytestmark = [pytest.mark.redis, pytest.mark.slow]


def make_settings(folder: Path, url: str, number: int) -> Settings:
    """An installation on a database of the same server."""
    return settings_of(folder, redis_url=f"{url}?db={number}")


def make_message(number: int) -> Message:
    return Message(text="/help", conversation_id=f"c{number}", message_id=f"m{number}")


@pytest.fixture(autouse=True)
async def _databases_are_empty(redis_url: str) -> None:
    for number in (HERE, THERE):
        client = Endpoint(url=f"{redis_url}?db={number}", durable=True).client()
        await client.flushdb()
        await client.aclose()


@pytest.fixture
async def backup(tmp_path: Path, redis_url: str) -> tuple[Path, dict[str, str]]:
    """A backup of a desk that answers meanwhile, and the answers that were given before."""
    file, answers = tmp_path / "desk.backup", dict[str, str]()
    here = make_settings(tmp_path / "here", redis_url, HERE)
    async with answering(here, alone=False, records=True) as runtime:
        own = desk(runtime, "cli")

        async def ask(number: int) -> None:
            reply = await own.ask(make_message(number))
            if number < EARLIER:
                answers[f"m{number}"] = str(reply["text"])

        for number in range(EARLIER):
            await ask(number)
        async with asyncio.TaskGroup() as tasks:
            for number in range(EARLIER, EARLIER + DURING):
                tasks.create_task(ask(number))
            await write_backup(here, file)
        await wait_until(lambda: len(list_recorded(here)) == EARLIER + DURING)
    return file, answers


async def test_a_restored_backup_contains_everything_once_and_open_questions_continue(
    backup: tuple[Path, dict[str, str]], tmp_path: Path, redis_url: str
) -> None:
    file, answers = backup
    there = make_settings(tmp_path / "there", redis_url, THERE)

    await read_backup(there, file, overwrite=False)

    async with answering(there, alone=False, records=True) as runtime:
        questions = [
            question
            for number in range(EARLIER + DURING)
            for question in await runtime.broker.admin.find_questions(f"m{number}")
        ]
        assert {item.message_id for item in questions} >= answers.keys()
        for question in questions:
            reply = await runtime.broker.replies.await_reply(question, block_seconds=20)
            assert reply is not None
            assert reply["outcome"] == "answered"
            assert reply["text"] == answers.get(question.message_id, reply["text"])
            entries = await runtime.broker.replies.read_journal(question)
            assert Counter(entry.kind for entry in entries)["finished"] == 1
        ended = {item.message_id for item in questions}
        # The records were copied last: some are of questions that came after the copy of Redis.
        await wait_until(lambda: set(list_recorded(there)) >= ended)
    recorded = list_recorded(there)
    assert len(recorded) == len(set(recorded))


def list_recorded(settings: Settings) -> list[str]:
    store = connect_records(settings.records_url, settings.refdesk_data)
    try:
        store.prepare()
        findings = store.find(Selection(), limit=1000)
        return [record.message_id for record in findings if record.message_id.startswith("m")]
    finally:
        store.close()


async def test_nothing_is_overwritten_without_being_told_to(
    backup: tuple[Path, dict[str, str]], tmp_path: Path, redis_url: str
) -> None:
    file, _ = backup
    here = make_settings(tmp_path / "here", redis_url, HERE)
    recorded = len(list_recorded(here))

    with pytest.raises(CommandError, match="--overwrite"):
        await read_backup(here, file, overwrite=False)
    await read_backup(here, file, overwrite=True)

    assert recorded == len(list_recorded(here)) == EARLIER + DURING


async def test_a_restore_that_is_interrupted_leaves_the_earlier_keys(
    backup: tuple[Path, dict[str, str]],
    tmp_path: Path,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, _ = backup
    client = Endpoint(url=f"{redis_url}?db={HERE}", durable=True).client()
    before = {*await client.keys()}
    write = RedisSnapshot.write
    interrupted = iter([asyncio.CancelledError()])

    async def write_or_stop(snapshot: RedisSnapshot, keys: Iterator[SavedKey]) -> int:
        for interruption in interrupted:
            raise interruption
        return await write(snapshot, keys)

    monkeypatch.setattr(RedisSnapshot, "write", write_or_stop)
    with pytest.raises(asyncio.CancelledError):
        await read_backup(make_settings(tmp_path / "here", redis_url, HERE), file, overwrite=True)

    assert before
    assert {*await client.keys()} == before
    await client.aclose()


async def test_a_backup_of_a_newer_format_is_refused_before_anything_is_changed(
    backup: tuple[Path, dict[str, str]], tmp_path: Path, redis_url: str
) -> None:
    file, _ = backup
    newer = tmp_path / "newer.backup"
    with tarfile.open(file) as old, tarfile.open(newer, "w:gz") as made:
        for entry in old.getmembers():
            content = old.extractfile(entry)
            assert content is not None
            data = content.read()
            if entry.name == "manifest.json":
                data = json.dumps({**json.loads(data), "format": FORMAT + 1}).encode()
                entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    there = make_settings(tmp_path / "there", redis_url, THERE)

    with pytest.raises(CommandError, match=f"expected a backup of format {FORMAT}"):
        await read_backup(there, newer, overwrite=True)

    assert list_recorded(there) == []


async def test_a_file_that_was_cut_off_or_names_a_place_outside_is_refused(
    tmp_path: Path, redis_url: str
) -> None:
    there = make_settings(tmp_path / "there", redis_url, THERE)
    cut = tmp_path / "cut.backup"
    with tarfile.open(cut, "w:gz") as made:
        entry = tarfile.TarInfo("manifest.json")
        entry.size = 2
        made.addfile(entry, io.BytesIO(b"{}"))

    with pytest.raises(CommandError, match="not a complete backup"):
        await read_backup(there, cut, overwrite=True)


BROKEN_HASH = (
    "EMNAokC7C7sAAAAoAIJmMAOCdiADAWYxIAcgAwFmMiAHIAMBZjMgByADAWY0IAcgAwFmNSAHIAMBZjYgByADAWY3IAcg"
    "AwFmOCAHIAMBZjkgBwg5A4NmMTAEg3ZABAJmMTFACSAEAmYxMkAJIAQCZjEzQAkgBAJmMTRACSAEAmYxNUAJIAQCZjE2"
    "QAkgBAJmMTdACSAEAmYxOEB5IAQCZjE5QAkCOQT/CgCw11Cw95PljA=="
)
"""A hash of Redis 7.0 with a wrong length inside, and a right checksum."""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"manifest.json": b"[]"}, "damaged"),
        ({"manifest.json": b"[" * 100_000}, "damaged"),
        ({REDIS: b"no JSON"}, "damaged"),
        ({REDIS: b'{"name": "rd:x", "value": "\xff", "expires_at": 0}'}, "damaged"),
        ({REDIS: b'{"name": "rd:x"}'}, "damaged"),
        ({RECORDS: b'{"tenant": "a", "cost_usd": "x"}'}, "damaged"),
        ({RECORDS: b"[1]"}, "damaged"),
        ({"data/../../x": b"x"}, "unsafe name"),
        ({"data/": b"x"}, "unsafe name"),
        ({"data/broker/appendonlydir/x.incr.aof": b"FLUSHALL"}, "an unexpected file"),
        ({"data/records.sqlite3-wal": b"x"}, "an unexpected file"),
        ({"data/owner.lock": b"1"}, "an unexpected file"),
    ],
)
async def test_a_hostile_file_replaces_nothing(
    changes: dict[str, bytes], reason: str, tmp_path: Path, redis_url: str
) -> None:
    there = make_settings(tmp_path / "there", redis_url, THERE)
    (there.refdesk_data / "index").mkdir(parents=True)
    (there.refdesk_data / "index" / "kept").write_text("x")
    hostile = write_file(tmp_path, there, changes)

    with pytest.raises(CommandError, match=reason):
        await read_backup(there, hostile, overwrite=True)

    assert (there.refdesk_data / "index" / "kept").exists()


async def test_a_value_that_would_crash_redis_is_refused_and_the_earlier_keys_stay(
    tmp_path: Path, redis_url: str
) -> None:
    there = make_settings(tmp_path / "there", redis_url, THERE)
    key = {"name": "rd:x", "value": BROKEN_HASH, "expires_at": None}
    hostile = write_file(tmp_path, there, {REDIS: json.dumps(key).encode()})
    client = Endpoint(url=there.redis_url or "", durable=True).client()
    await client.set("rd:kept", "x")

    with pytest.raises(SnapshotError, match="Bad data format"):
        await read_backup(there, hostile, overwrite=True)

    assert await client.get("rd:kept") == b"x"
    await client.aclose()


def write_file(folder: Path, settings: Settings, changes: Mapping[str, bytes]) -> Path:
    """Write a complete, empty backup with these changes."""
    path = folder / "hostile.backup"
    complete = {
        MANIFEST: json.dumps({"format": FORMAT, "shards": settings.shards}).encode(),
        REDIS: b"",
        RECORDS: b"",
        END: b"",
    }
    with tarfile.open(path, "w:gz") as made:
        for name, data in {**complete, **changes}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return path


@pytest.fixture
def postgres_url() -> Iterator[str]:
    with TemporaryDirectory(prefix="refdesk-postgres-", dir="/tmp") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        yield server.url
        server.kill()


async def test_records_verified_answers_and_states_of_gaps_move_between_databases(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    here = make_settings(tmp_path / "here", redis_url, HERE).model_copy(
        update={"records_url": SecretStr(postgres_url)}
    )
    there = make_settings(tmp_path / "there", redis_url, THERE)
    file = tmp_path / "desk.backup"
    written: list[tuple[str, dict[str, Any]]] = [
        (VERIFIED, {**ROW, "question": "May I? \u2028"}),
        ("gaps", GAP),
        (ASKED, IN_GAP),
    ]
    async with answering(here, alone=False, records=True) as runtime:
        await desk(runtime, "cli").ask(make_message(1))
        await wait_until(lambda: list_recorded(here) == ["m1"])
        store = connect_records(here.records_url, here.refdesk_data)
        store.restore_owned(written)
        result = await write_backup(here, file)
        all_recorded = [record.id for record in store.read_all()]
        store.close()

    await read_backup(there, file, overwrite=False)

    restored = connect_records(there.records_url, there.refdesk_data)
    owned = list(restored.read_owned())
    restored.close()
    assert list_recorded(there) == ["m1"]
    assert sorted(owned, key=str) == sorted(written, key=str)
    assert result.records == len(all_recorded), all_recorded
    assert result.notes == (
        ["settings and secrets of the environment are not in the file: keep them elsewhere"]
    )
