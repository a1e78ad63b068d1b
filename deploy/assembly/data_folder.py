"""Records which Redis the owner of an index uses, and opens the list of sources in a data
folder.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deploy.errors import CommandError

if TYPE_CHECKING:
    from knowledge.source_registry import SourceRegistry

OWNERS_REDIS = "index-redis"
"""The file that contains the Redis URL of the process that has opened the embedded index."""


def note_redis(data_folder: Path, redis_url: str | None) -> None:
    """Record which Redis this process uses, as the owner of the embedded index in a data folder."""
    note = data_folder / OWNERS_REDIS
    with open(note, "w", encoding="utf-8", opener=_open_for_owner) as file:
        file.write(f"{os.getpid()} {_describe_redis(redis_url)}")


def check_redis_of_owner(data_folder: Path, redis_url: str | None) -> None:
    """Raise `CommandError` if the owner of the embedded index uses a different Redis.

    Its workers would never receive the questions of this process, which would all fail at their
    deadlines. The record of a process that has ended is ignored.
    """
    try:
        note = (data_folder / OWNERS_REDIS).read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    pid, _, theirs = note.partition(" ")
    own = _describe_redis(redis_url)
    if theirs != own and pid.isdigit() and _is_running(int(pid)):
        raise CommandError(
            f"process {pid} has already opened the index in {data_folder.resolve()} and uses "
            f"{theirs}, but this process uses {own}. Use the same REDIS_URL for "
            "both, set REFDESK_DATA to a different folder, or stop the other process"
        )


def open_source_registry(data_place: tuple[Path, str, str]) -> "SourceRegistry":
    """Return the list of the sources of an assistant."""
    # Imported here: most commands do not read sources.
    from knowledge.source_registry import SourceRegistry

    return SourceRegistry(*data_place)


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _describe_redis(redis_url: str | None) -> str:
    """Return the URL of the Redis in use, without its credentials."""
    if redis_url is None:
        return "the Redis of the data folder (no REDIS_URL)"
    parts = urlsplit(redis_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
