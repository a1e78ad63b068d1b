"""Restricts the data folder to its owner, and records in it that a key was created."""

import os
import stat
from pathlib import Path

import structlog

log = structlog.get_logger("deploy")

OWNER_ALONE = 0o700
OTHERS = 0o077
"""The permissions of all users but the owner."""
KEYS_MADE = "keys-made"
EXPLANATION = """\
A key of the HTTP API was created. While this file exists, no server with this data folder answers
without a key, even if Redis has lost its keys. Remove it only if no key is needed any more.
"""


def protect_data_folder(folder: Path) -> None:
    """Create a data folder that only its owner can enter, or make an existing one so.

    A folder of another owner stays as it is, and a warning is logged.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=OWNER_ALONE)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & OTHERS:
        return
    found = {"folder": str(folder), "found": f"{mode:o}", "expected": f"{OWNER_ALONE:o}"}
    try:
        folder.chmod(mode & ~OTHERS)
    except OSError as error:
        log.warning("data_folder_permissions_insecure", **found, error=str(error))
    else:
        log.warning("data_folder_permissions_fixed", **found)


class KeyHistory:
    """Records outside Redis that a key was ever created, in case Redis loses its keys."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def has_keys(self) -> bool:
        """Whether a key was ever created for this data folder."""
        return (self._folder / KEYS_MADE).exists()

    def note(self) -> None:
        """Record that a key was created; a file that cannot be written is logged."""
        if self.has_keys:
            return
        try:
            protect_data_folder(self._folder)
            mark = os.open(self._folder / KEYS_MADE, os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(mark, "w", encoding="utf-8") as file:
                file.write(EXPLANATION)
        except OSError as error:
            log.warning("key_history_not_writable", hint="set REQUIRE_KEYS=true", error=str(error))
