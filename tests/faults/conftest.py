import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SEED = 2026


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path is short enough for a socket in it."""
    return tmp_path_factory.mktemp("f")


@pytest.fixture
def seed() -> Iterator[int]:
    """Seeds what is random; a failure prints it, and `REFDESK_FAULT_SEED` takes another."""
    chosen = int(os.environ.get("REFDESK_FAULT_SEED", SEED))
    print(f"REFDESK_FAULT_SEED={chosen}")
    yield chosen
