"""Restricts the data folder to its owner, and checks the free disk space."""

import shutil
import stat
from pathlib import Path

import structlog

from knowledge.errors import IndexUnavailable

log = structlog.get_logger("deploy")

OWNER_ALONE = 0o700
OTHERS = 0o077
"""The permissions of all users except the owner."""
LEAST_FREE_BYTES = 128 * 1024 * 1024
"""Disk space that a change may need; the files of an empty index take 37 MB, which are mapped in
advance.
"""


def protect_data_folder(folder: Path) -> None:
    """Create a data folder that only its owner can access, or restrict an existing one.

    A folder that belongs to another user is not changed, and a warning is logged.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=OWNER_ALONE)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & OTHERS:
        return
    described = {"folder": str(folder), "found": f"{mode:o}", "expected": f"{OWNER_ALONE:o}"}
    try:
        folder.chmod(mode & ~OTHERS)
    except OSError as error:
        log.warning("data_folder_permissions_insecure", **described, error=str(error))
    else:
        log.warning("data_folder_permissions_fixed", **described)


def check_space(folder: Path) -> None:
    """Raise `IndexUnavailable` if the disk is nearly full.

    The engine writes through mapped files. If the disk has no room for them, the operating system
    ends the process with SIGBUS, and with it every question that the process is answering.
    """
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise IndexUnavailable(
            f"the disk of {folder} is nearly full: {free // 1024**2} MiB are free, and a change of "
            f"the index needs {LEAST_FREE_BYTES // 1024**2} MiB: free some space, then repeat "
            "this"
        )
