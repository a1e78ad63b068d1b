"""Copies data folders of desks."""

import shutil
from pathlib import Path

from knowledge.index.maintenance.sparse_files import copy_sparse

_OF_A_RUNNING_DESK = shutil.ignore_patterns("broker", "records.sqlite3*")


def copy_folder(source: Path, target: Path) -> Path:
    """Copy a folder to a path that does not exist yet; return this path.

    What a desk that runs on it adds stays behind: the files of its Redis, and its records.
    """
    return Path(
        shutil.copytree(source, target, copy_function=copy_sparse, ignore=_OF_A_RUNNING_DESK)
    )
