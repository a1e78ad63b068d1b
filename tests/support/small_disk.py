"""A file system of its own that a test fills: a tmpfs, which only root can mount."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

BLOCK = bytes(64 * 1024)


@dataclass
class SmallDisk:
    """A folder with a file system of its own."""

    folder: Path

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def fill(self) -> None:
        """Leave no space."""
        with self._ballast.open("wb", buffering=0) as file:
            try:
                while file.write(BLOCK):
                    pass
            except OSError:
                assert shutil.disk_usage(self.folder).free == 0

    def free(self) -> None:
        """Make space again."""
        self._ballast.unlink()


@contextmanager
def mount_disk(megabytes: int) -> Iterator[SmallDisk]:
    """Mount a disk of this size while inside; where this is not possible, the test is skipped."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    # Not below the folder of the test, which a database of another user may not enter.
    with TemporaryDirectory(prefix="refdesk-disk-") as folder:
        words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder]
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            pytest.skip("no disk can be mounted here")
        try:
            yield SmallDisk(Path(folder))
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
