import os
from pathlib import Path

import pytest

SEED = 2026


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path is short enough for a socket in it."""
    return tmp_path_factory.mktemp("f")


@pytest.fixture
def seed() -> int:
    """Seeds what is random; a failure shows it, and `REFDESK_FAULT_SEED` takes another."""
    chosen = int(os.environ.get("REFDESK_FAULT_SEED", SEED))
    os.write(1, f"REFDESK_FAULT_SEED={chosen}\n".encode())
    return chosen
