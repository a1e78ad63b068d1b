"""Stores the files that people and programs upload to an assistant."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from knowledge.data_folder import protect_data_folder
from knowledge.documents.folder import ARCHIVE, display_name, is_left_out
from knowledge.documents.formats import SUFFIXES, explain_skip

_MOST_FOLDERS = 16
_LONGEST_PART = 240
"""The maximum length of the name of a file or folder, in bytes. File systems allow 255 bytes, and
the name is longer while the file is being written.
"""
_LONGEST_PATH = 1_000


class Uploads:
    """The uploaded files of one assistant; names are relative to `folder`."""

    def __init__(self, data: Path, tenant: str, assistant: str) -> None:
        digest = hashlib.sha256(f"{tenant}\n{assistant}".encode()).hexdigest()[:16]
        self._data = data
        self.folder = data.resolve() / "uploads" / digest / "uploads"

    def find_fault(self, name: str) -> str:
        """Return why a file with this name is not stored, or an empty string."""
        path = PurePosixPath(name)
        is_clean = str(path) == name and all(display_name(part) == part for part in path.parts)
        if path.is_absolute() or not is_clean or len(path.parts) > _MOST_FOLDERS:
            return f"expected a file name such as hr/leave.pdf, found {name!r}"
        if any(part == ".." or is_left_out(part) for part in path.parts):
            return f"the name must not contain hidden folders or files, found {name!r}"
        if fault := self._find_fault_of_place(path):
            return fault
        if path.suffix.lower() not in SUFFIXES | {ARCHIVE}:
            return f"the format of {name!r} is not supported: {explain_skip(path)}"
        return ""

    def _find_fault_of_place(self, path: PurePosixPath) -> str:
        """Return why the file system cannot store a file at a path, or an empty string."""
        sizes = [len(os.fsencode(part)) for part in path.parts]
        if max(sizes, default=0) > _LONGEST_PART or sum(sizes) > _LONGEST_PATH:
            return (
                f"the name is too long: at most {_LONGEST_PART} bytes for each folder and "
                f"file, and {_LONGEST_PATH} bytes in total"
            )
        above = (parent for parent in path.parents if str(parent) != ".")
        if (self.folder / path).is_dir() or any(
            (self.folder / pure_posix_path).is_file() for pure_posix_path in above
        ):
            return f"{str(path)!r} is the name of a folder; choose another file name"
        return ""

    def keep(self, name: str, data: bytes) -> str:
        """Write a file, replacing an earlier one, and return the name under which it is listed."""
        protect_data_folder(self._data)
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        waiting = target.with_name(f".{target.name}.new")
        waiting.write_bytes(data)
        waiting.replace(target)
        return name

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None if it does not exist or its name is invalid."""
        if self.find_fault(name):
            return None
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def forget(self, files: Iterable[str]) -> None:
        """Delete the files of removed documents, so that they are not ingested again."""
        for file in files:
            place = Path(os.path.normpath(file))
            if place.is_relative_to(self.folder):
                place.unlink(missing_ok=True)
