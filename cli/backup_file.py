"""Writes and reads backup files, which contain Redis, the index, files of the data folder, and
records.

The file is a compressed tar archive, written front to back:

| member            | content                                                                  |
|-------------------|--------------------------------------------------------------------------|
| manifest.json     | format, release, time, shards, contents of the file, and missing parts   |
| redis.jsonl       | a line for each key: name, value (base64), Unix seconds of its expiry    |
| data/...          | files of the data folder: sources, descriptions, websites, the index     |
| records.jsonl     | a line for each record, from any database                                |
| owned.jsonl       | a line for each verified answer and gap state, from the same database    |
| end.json          | the number of keys and records; a backup without it is incomplete        |

Redis is copied first, so that a question that ends during the backup is not lost; a repeated record
replaces the first one. The records may contain questions that were asked after Redis was copied.
"""

import asyncio
import base64
import io
import json
import os
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from broker.embedded_redis import Endpoint, run_embedded_redis
from broker.maintenance.snapshot import RedisSnapshot, SavedKey
from config.settings import Settings
from deploy.assembly.open_records import FILE as RECORDS_FILE
from deploy.assembly.open_records import connect_records
from deploy.errors import CommandError
from knowledge.data_folder import protect_data_folder
from memory.key_names import workers_key
from memory.presence import RedisPresence
from records.record import Record

if TYPE_CHECKING:
    from records.store import RecordStore

FORMAT = 1
MANIFEST, REDIS, DATA, RECORDS, OWNED, END = (
    "manifest.json", "redis.jsonl", "data", "records.jsonl", "owned.jsonl", "end.json",
)  # fmt: skip
INDEX = "index"
LEFT_OUT = frozenset({"broker", INDEX, "model_in_use"})
"""Parts of the data folder that are not copied as files: the files of Redis, and the index, which
is copied by the process that owns it.
"""
_TEMPORARY = ("backup-", "check-", "git-")
"""Prefixes of the folders of commands that may be running at the same time."""
KEEP_IN_MEMORY = 16 * 1024 * 1024
_DAMAGES = (ArithmeticError, AttributeError, EOFError, LookupError, OSError, RecursionError,
            TypeError, ValueError, tarfile.TarError, zlib.error)  # fmt: skip
"""Errors raised when reading an archive with missing, damaged, or foreign parts."""
_NOT_CHECKED = (
    "this Redis does not permit CONFIG SET sanitize-dump-payload, so it did not check the values "
    "in the file. Malformed values can crash it: restore only files that you trust"
)
_READERS: dict[str, Callable[[Any], Any]] = {
    "cost_usd": lambda value: None if value is None else Decimal(value),
    "sources": tuple,
    "steps": tuple,
    "models": tuple,
}


@dataclass(frozen=True, slots=True)
class BackupResult:
    """The content written to a file, or read from it."""

    keys: int
    records: int
    files: int
    notes: Sequence[str] = ()


@asynccontextmanager
async def open_endpoint(data_folder: Path, redis_url: str | None) -> AsyncIterator[Endpoint]:
    """Connect to Redis without preparing it, so that an empty one stays empty."""
    if redis_url is not None:
        yield Endpoint(url=redis_url, durable=True)
        return
    protect_data_folder(data_folder)
    async with run_embedded_redis(data_folder) as endpoint:
        if not endpoint.durable:
            raise CommandError(
                "there is nothing to back up: without a Redis server, data is lost when a "
                "process ends"
            )
        yield endpoint


async def write_backup(settings: Settings, target: Path) -> BackupResult:
    """Write a backup to a new file; raises `CommandError` if the file already exists."""
    if await asyncio.to_thread(target.exists):
        raise CommandError(f"{target} already exists; choose another file name")
    part = target.with_name(f"{target.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
                result = await _write_parts(settings, archive)
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
    return result


async def read_backup(settings: Settings, source: Path, *, overwrite: bool) -> BackupResult:
    """Restore a backup. Before anything is changed, raises `CommandError` if the file cannot be
    used by this installation, if something would be overwritten, or if processes are running.

    If something cannot be written, for example because a disk is full, Redis and the data folder
    remain unchanged, but the records in the file may have been added to those of the installation.
    """
    with _open(source) as archive:
        with _naming_damage():
            _check(archive, settings.shards)
            _check_content(archive)
        folder = settings.refdesk_data
        async with open_endpoint(folder, settings.redis_url) as endpoint:
            client = endpoint.client()
            try:
                snapshot = RedisSnapshot(client)
                await _check_target(folder, client, snapshot, overwrite=overwrite)
                # The server of the data folder always checks them.
                is_checked = settings.redis_url is None or await snapshot.check_values()
                protect_data_folder(folder)
                with tempfile.TemporaryDirectory(dir=folder, prefix="backup-") as written:
                    files = _write_files(archive, Path(written))
                    async with _replacing(snapshot, archive) as keys:
                        records = _restore_records(
                            archive, connect_records(settings.records_url, folder)
                        )
                    _replace_files(Path(written), folder)
            finally:
                await client.aclose()
    return BackupResult(keys, records, files, () if is_checked else (_NOT_CHECKED,))


def read_record(stated: dict[str, Any]) -> Record:
    """Return a record from a line of a backup; unknown fields are ignored."""
    known = {field.name for field in fields(Record)} & stated.keys()
    return Record(**{name: _READERS.get(name, _same)(stated[name]) for name in known})


async def _write_parts(settings: Settings, archive: tarfile.TarFile) -> BackupResult:
    notes = ["settings and secrets of the environment are not in the file: keep them elsewhere"]
    _add_json(archive, MANIFEST, {
        "format": FORMAT, "release": version("refdesk"), "created_at": time.time(),
        "shards": settings.shards,
    })  # fmt: skip
    async with open_endpoint(settings.refdesk_data, settings.redis_url) as endpoint:
        client = endpoint.client()
        try:
            keys = await _add_keys(archive, RedisSnapshot(client))
        finally:
            await client.aclose()
        protect_data_folder(settings.refdesk_data)
        # The path must mean the same to the process that owns the index.
        folder = settings.refdesk_data.resolve()
        with tempfile.TemporaryDirectory(dir=folder, prefix="backup-") as copied:
            if not await _copy_index(settings, Path(copied)):
                notes.append(
                    "this backup does not contain the index, which is on the server of "
                    "QDRANT_URL: use the snapshots of that server"
                )
            files = _add_files(archive, Path(copied), PurePosixPath(DATA, "index"))
            pointers = list((settings.refdesk_data / "index").glob("*.json"))
            for pointer in pointers:
                archive.add(pointer, f"{DATA}/index/{pointer.name}")
            files += len(pointers) + _add_data(archive, settings.refdesk_data)
    records = _add_records(archive, connect_records(settings.records_url, settings.refdesk_data))
    _add_json(archive, END, {"keys": keys, "records": records, "files": files})
    return BackupResult(keys, records, files, notes)


async def _copy_index(settings: Settings, folder: Path) -> bool:
    """Have the owner of each assistant's index copy its files; return False if the indexes are on a
    server.
    """
    from deploy.assembly.ingestion_run import request_documents
    from knowledge.owner_requests import OwnerRequest

    copied = []
    for assistant in settings.of_assistants():
        reply = await request_documents(assistant, OwnerRequest(action="copy", new=str(folder)))
        copied.append(bool(reply.get("copied")))
    return all(copied)


async def _add_keys(archive: tarfile.TarFile, snapshot: RedisSnapshot) -> int:
    with tempfile.SpooledTemporaryFile(KEEP_IN_MEMORY) as lines:
        count = await _copy_keys(snapshot, lines)
        _add_stream(archive, REDIS, lines)
    return count


async def _copy_keys(snapshot: RedisSnapshot, lines: IO[bytes]) -> int:
    count = 0
    async for key in snapshot.read():
        if key.name.decode() == workers_key():
            continue  # processes that run now are not those of the restored installation
        line = {
            "name": key.name.decode(),
            "value": base64.b64encode(key.value).decode(),
            "expires_at": key.expires_at,
        }
        lines.write(json.dumps(line).encode() + b"\n")
        count += 1
    return count


def _add_files(archive: tarfile.TarFile, folder: Path, place: PurePosixPath) -> int:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    for path in paths:
        archive.add(path, str(place / path.relative_to(folder).as_posix()), recursive=False)
    return len(paths)


def _add_data(archive: tarfile.TarFile, folder: Path) -> int:
    count = 0
    for top in sorted(folder.iterdir()):
        if _is_left_out(top.name):
            continue
        if top.is_dir():
            count += _add_files(archive, top, PurePosixPath(DATA, top.name))
        elif top.is_file():
            archive.add(top, f"{DATA}/{top.name}")
            count += 1
    return count


def _is_left_out(name: str) -> bool:
    """Return whether a part of the data folder is excluded from the files that are copied."""
    return (
        name in LEFT_OUT or name.startswith((*_TEMPORARY, RECORDS_FILE)) or (name.endswith(".lock"))
    )


def _add_records(archive: tarfile.TarFile, store: "RecordStore") -> int:
    """Add the records of a store to a backup, and close it."""
    count = 0
    try:
        store.prepare()
        with tempfile.SpooledTemporaryFile(KEEP_IN_MEMORY) as lines:
            for record in store.read_all():
                lines.write(json.dumps(asdict(record), default=str).encode() + b"\n")
                count += 1
            _add_stream(archive, RECORDS, lines)
        with tempfile.SpooledTemporaryFile(KEEP_IN_MEMORY) as lines:
            for table, row in store.read_owned():
                lines.write(json.dumps([table, row], default=_encode).encode() + b"\n")
            _add_stream(archive, OWNED, lines)
    finally:
        store.close()
    return count


def _encode(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode()}


def _decode(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value


def _add_json(archive: tarfile.TarFile, name: str, value: dict[str, Any]) -> None:
    _add_stream(archive, name, io.BytesIO(json.dumps(value).encode()))


def _add_stream(archive: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = content.seek(0, os.SEEK_END), 0o600, int(time.time())
    content.seek(0)
    archive.addfile(entry, content)


def _open(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source, "r:gz")
    except (OSError, tarfile.TarError) as error:
        raise CommandError(f"{source} is not a readable backup file: {error}") from error


def _check(archive: tarfile.TarFile, shards: int) -> None:
    names = set(archive.getnames())
    if MANIFEST not in names or END not in names:
        raise CommandError(
            "the file is not a complete backup: the backup was interrupted while it was written"
        )
    manifest = json.loads(_member(archive, MANIFEST).read())
    if manifest.get("format") != FORMAT:
        raise CommandError(
            f"expected a backup of format {FORMAT}, found {manifest.get('format')}, written by "
            f"Refdesk {manifest.get('release')}: restore it with that release or a newer one"
        )
    if manifest.get("shards") != shards:
        raise CommandError(
            f"the backup has SHARDS={manifest.get('shards')}, and this installation "
            f"{shards}: set SHARDS to the value of the backup"
        )


def _check_content(archive: tarfile.TarFile) -> None:
    """Read the whole backup once, so that no existing data is replaced by a damaged or malicious
    file.
    """
    for entry in archive.getmembers():
        _find_place(entry)
    for _ in _read_keys(_member(archive, REDIS)):
        pass
    for line in _member(archive, RECORDS):
        read_record(json.loads(line))
    if OWNED in archive.getnames():
        for line in _member(archive, OWNED):
            json.loads(line, object_hook=_decode)


@contextmanager
def _naming_damage() -> Iterator[None]:
    try:
        yield
    except CommandError:
        raise
    except _DAMAGES as error:
        raise CommandError(
            "the backup is damaged, and nothing was changed: use another backup "
            f"({type(error).__name__})"
        ) from error


async def _check_target(
    data_folder: Path, client: Any, snapshot: RedisSnapshot, *, overwrite: bool
) -> None:
    if living := await RedisPresence(client).living():
        alive = living[0]
        raise CommandError(
            f"processes of this installation are running ({alive.host}, pid {alive.pid}): stop "
            f"them first; a process that was killed is listed for half a minute"
        )
    has_index = any((data_folder / "index").glob("*"))
    if not overwrite and (has_index or not await snapshot.is_empty()):
        raise CommandError(
            "this installation already has data, which the backup would replace: to replace it, "
            "add --overwrite"
        )


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    member = archive.extractfile(name)
    if member is None:
        raise CommandError(f"the backup is damaged: {name} is not a regular file")
    return member


def _read_keys(lines: IO[bytes]) -> Iterator[SavedKey]:
    for line in lines:
        saved = json.loads(line)
        yield SavedKey(
            saved["name"].encode(), base64.b64decode(saved["value"]), saved["expires_at"]
        )


@asynccontextmanager
async def _replacing(snapshot: RedisSnapshot, archive: tarfile.TarFile) -> AsyncIterator[int]:
    """Replace the keys in Redis with those in the file; on an error, the previous keys are kept."""
    with tempfile.SpooledTemporaryFile(KEEP_IN_MEMORY) as before:
        await _copy_keys(snapshot, before)
        is_replaced = False
        try:
            await snapshot.delete_all()
            yield await snapshot.write(_read_keys(_member(archive, REDIS)))
            is_replaced = True
        finally:
            # Required also if the command is interrupted.
            if not is_replaced:
                before.seek(0)
                await snapshot.delete_all()
                await snapshot.write(_read_keys(before))


def _write_files(archive: tarfile.TarFile, folder: Path) -> int:
    count = 0
    for entry in archive.getmembers():
        place = _find_place(entry)
        if place is None:
            continue
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with target.open("wb") as written:
            shutil.copyfileobj(_member(archive, entry.name), written)
        count += 1
    return count


def _replace_files(written: Path, folder: Path) -> None:
    """Move files into the data folder, which does not require additional disk space."""
    shutil.rmtree(folder / "index", ignore_errors=True)
    for path in sorted(written.rglob("*")):
        if path.is_file():
            target = folder / path.relative_to(written)
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.replace(target)


def _find_place(entry: tarfile.TarInfo) -> PurePosixPath | None:
    """Return the path of an entry in the data folder, or None if it does not belong there.

    Raises `CommandError` for an unsafe path.
    """
    place = PurePosixPath(entry.name)
    if place.parts[:1] != (DATA,) or not entry.isfile():
        return None
    # The file may come from an untrusted source: its names must not lead out of the data folder.
    if place.is_absolute() or ".." in place.parts or len(place.parts) < 2:
        raise CommandError(f"the backup contains a file with an unsafe name: {entry.name!r}")
    # Redis, for example, executes the content of its files when it starts.
    if place.parts[1] != INDEX and _is_left_out(place.parts[1]):
        raise CommandError(f"the backup contains an unexpected file: {entry.name!r}")
    return PurePosixPath(*place.parts[1:])


def _restore_records(archive: tarfile.TarFile, store: "RecordStore") -> int:
    """Write the records of a backup into a store, and close it."""
    count = 0

    def read() -> Iterator[Record]:
        nonlocal count
        for line in _member(archive, RECORDS):
            count += 1
            yield read_record(json.loads(line))

    try:
        store.prepare()
        store.restore(read())
        # Files written by earlier releases do not have one.
        if OWNED in archive.getnames():
            lines = (json.loads(line, object_hook=_decode) for line in _member(archive, OWNED))
            store.restore_owned(lines)
    finally:
        store.close()
    return count


def _same(value: Any) -> Any:
    return value
