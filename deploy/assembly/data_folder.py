"""Notes which Redis the owner of an index uses, and opens the list of sources of a data folder."""

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from config.settings import Settings
from deploy.errors import CommandError

if TYPE_CHECKING:
    from knowledge.source_registry import SourceRegistry

OWNERS_REDIS = "index-redis"
"""The file that names the Redis of the process that has opened the embedded index."""


def note_redis(settings: Settings) -> None:
    """Note which Redis this process uses, as the owner of the embedded index of a data folder."""
    note = settings.refdesk_data / OWNERS_REDIS
    with open(note, "w", encoding="utf-8", opener=_open_for_owner) as file:
        file.write(f"{os.getpid()} {_describe_redis(settings)}")


def check_redis_of_owner(settings: Settings) -> None:
    """Raise `CommandError` if the owner of the embedded index uses another Redis.

    Its workers would never see the questions of this process, which would all fail at their
    deadline. The note of a process that has ended is ignored.
    """
    try:
        note = (settings.refdesk_data / OWNERS_REDIS).read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    pid, _, theirs = note.partition(" ")
    own = _describe_redis(settings)
    if theirs != own and pid.isdigit() and _is_running(int(pid)):
        raise CommandError(
            f"process {pid} has opened the index in {settings.refdesk_data.resolve()} and uses "
            f"another Redis: {theirs}, found {own} here. Set the same REDIS_URL for both, set "
            "another REFDESK_DATA, or stop that process"
        )


def open_source_registry(settings: Settings) -> "SourceRegistry":
    """Return the list of the sources of an assistant."""
    # Imported here: most commands read no sources.
    from knowledge.source_registry import SourceRegistry

    return SourceRegistry(settings.refdesk_data, settings.tenant, settings.assistant)


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _describe_redis(settings: Settings) -> str:
    """Return the address of the Redis in use, without its credentials."""
    if settings.redis_url is None:
        return "the Redis of the data folder (no REDIS_URL)"
    parts = urlsplit(settings.redis_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
