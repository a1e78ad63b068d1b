"""Provides a temporary data folder, with the Redis that runs in it."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

REMOVAL_SECONDS = 20.0
"""How long to wait for the folder's server, which ends after the command that used it."""
_RETRY_SECONDS = 0.05


@asynccontextmanager
async def open_scratch_folder() -> AsyncIterator[Path]:
    """Provide a new folder while inside; raises `OSError` if it cannot be removed in 20 seconds."""
    folder = Path(tempfile.mkdtemp(prefix="refdesk-evaluate-"))
    try:
        yield folder
    finally:
        await _remove(folder)


async def _remove(folder: Path) -> None:
    until = time.monotonic() + REMOVAL_SECONDS
    while True:
        try:
            await asyncio.to_thread(_remove_now, folder)
        except OSError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


def _remove_now(folder: Path) -> None:
    # A server that still ends removes or writes files: `rmtree` raises then, and is repeated.
    if folder.exists():
        shutil.rmtree(folder)
