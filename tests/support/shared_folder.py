"""A folder that one process of a test run makes, and the others copy."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.folder_copy import copy_folder


def provide_folder(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]
) -> Path:
    """Return a folder of this process with what `make` writes, which runs once in a test run."""
    own = factory.mktemp(name)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        make(own)
        return own
    made = factory.getbasetemp().parent / name
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            unfinished = made.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(made)
    return copy_folder(made, own / "copy")
