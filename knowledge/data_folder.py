"""Restricts the data folder to its owner."""

import stat
from pathlib import Path

import structlog

log = structlog.get_logger("deploy")

OWNER_ALONE = 0o700
OTHERS = 0o077
"""The permissions of all users but the owner."""


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
