"""Lists the documents of a zip archive, and reads them without unpacking it to disk.

Nothing of an archive becomes a path of this machine. Sizes, their ratio and the number of members
are bounded: both the stated ones and those that are read.
"""

import stat
import threading
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from knowledge.documents.decoding import MAX_BYTES
from knowledge.documents.errors import ReadingError, TooLargeError, WrongFormatError
from knowledge.documents.folder import (
    DEEPEST_FOLDER,
    FolderListing,
    FoundFile,
    display_name,
    is_left_out,
)
from knowledge.documents.formats import SUFFIXES
from knowledge.documents.metadata.folder_rules import RULES_FILE
from knowledge.documents.skipping import list_skipped

MOST_MEMBERS = 100_000
MOST_UNPACKED_BYTES = 2_000_000_000
HIGHEST_RATIO = 200
"""Unpacked bytes for each packed one; text has up to about 20."""
_SMALL = 1_000_000
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError)
_LOCKED = 0x1


class ZipArchive:
    """An open archive; members are read one after the other."""

    def __init__(self, path: Path) -> None:
        """Open an archive; raise a `ReadingError` for one that is damaged or too large."""
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise WrongFormatError(f"expected a zip archive, found a damaged one: {error}") from (
                error
            )
        self.members = self._archive.infolist()
        if len(self.members) > MOST_MEMBERS:
            raise TooLargeError(
                f"an archive may have {MOST_MEMBERS} files, this one has {len(self.members)}"
            )
        size = sum(member.file_size for member in self.members)
        if size > MOST_UNPACKED_BYTES:
            raise TooLargeError(
                f"an archive may have {MOST_UNPACKED_BYTES} bytes unpacked, this one has {size}"
            )
        self._left = MOST_UNPACKED_BYTES
        self._lock = threading.Lock()

    def read(self, member: zipfile.ZipInfo) -> bytes:
        """Return a member; raise a `ReadingError`."""
        try:
            with self._lock, self._archive.open(member) as part:
                data = part.read(min(MAX_BYTES, self._left) + 1)
        except _DAMAGED as error:
            raise WrongFormatError(f"it is damaged in the archive: {error}") from error
        self._left -= len(data)
        if len(data) > MAX_BYTES:
            raise TooLargeError(f"a file may have {MAX_BYTES} bytes, this one has more")
        if self._left < 0:
            raise TooLargeError(f"an archive may have {MOST_UNPACKED_BYTES} bytes unpacked")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFile(FoundFile):
    """A file in an archive; its location is that of the archive."""

    archive: ZipArchive
    member: zipfile.ZipInfo

    def read(self) -> bytes:
        """Return its bytes; raise a `ReadingError`."""
        return self.archive.read(self.member)


def expand_archives(found: FolderListing) -> None:
    """Add the files in the archives of a listing, each below the path of its archive."""
    for file in found.archives:
        try:
            archive = ZipArchive(file.location)
        except ReadingError as error:
            found.failures.append((file.path, str(error)))
            continue
        if any(PurePosixPath(member.filename).name == RULES_FILE for member in archive.members):
            reason = f"rules of access ({RULES_FILE}) are read in folders only: unpack the archive"
            found.failures.append((file.path, reason))
            continue
        unknown: list[PurePosixPath] = []
        for member, path in _list_members(archive, file.path, found):
            if path.suffix.lower() in SUFFIXES:
                names = (root.joinpath(*_split(member)) for root in (file.path, *file.origins))
                origins = (*(name for name in names if name != path), *file.origins)
                location = file.location
                found.files.append(
                    ArchivedFile(path, location, origins=origins, archive=archive, member=member)
                )
            else:
                unknown.append(path)
        found.skipped += list_skipped(unknown)
    found.files.sort(key=lambda file: file.path)


def _list_members(
    archive: ZipArchive, root: PurePosixPath, found: FolderListing
) -> Iterator[tuple[zipfile.ZipInfo, PurePosixPath]]:
    known: set[PurePosixPath] = set()
    for member in archive.members:
        parts = _split(member)
        if member.is_dir() or any(is_left_out(part) for part in parts if part != ".."):
            continue
        path = root.joinpath(*(display_name(part) for part in parts))
        reason = _find_fault(member, parts)
        if not reason and path in known:
            reason = "the archive has another file of this name"
        if reason:
            found.skipped.append((root / display_name(member.filename.strip("/")), reason))
            continue
        known.add(path)
        yield member, path


def _split(member: zipfile.ZipInfo) -> list[str]:
    """Return the folders and the name of a member, as its archive names them."""
    return [part for part in member.filename.replace("\\", "/").split("/") if part]


def _find_fault(member: zipfile.ZipInfo, parts: list[str]) -> str:
    """Return why a member is not read, or an empty text."""
    if ".." in parts or member.filename.startswith(("/", "\\")) or not parts or ":" in parts[0]:
        return "its path leads out of the archive"
    if len(parts) > DEEPEST_FOLDER:
        return f"it is deeper than {DEEPEST_FOLDER} folders"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "a link in an archive is not followed"
    if member.flag_bits & _LOCKED:
        return "it is locked with a password"
    packed = max(1, member.compress_size)
    if member.file_size > _SMALL and member.file_size > HIGHEST_RATIO * packed:
        ratio = member.file_size // packed
        return f"it unpacks to {ratio} times its size, as a zip bomb does"
    return ""
