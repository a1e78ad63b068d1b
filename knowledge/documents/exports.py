"""Restores information that exports hide (names, conversations and URLs of pages) and opens zip
archives.

Some exports append the id of each page, 32 hexadecimal digits, to the names of its file and folder.

Members of an archive are never written to disk. Their sizes, their compression ratio and their
number are limited, both as declared and as actually read.
"""

import io
import re
import stat
import threading
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from knowledge.documents.decoding import MAX_BYTES
from knowledge.documents.errors import ReadingError, TooLargeError, WrongFormatError
from knowledge.documents.folder import (
    ARCHIVE,
    DEEPEST_FOLDER,
    FolderListing,
    FoundFile,
    display_name,
    is_left_out,
)
from knowledge.documents.folder_rules import RULES_FILE
from knowledge.documents.formats import SUFFIXES, list_skipped
from knowledge.documents.slack_export import restore_conversations

_ID = re.compile(r"(?:\A|[_ -])(\d{3,20})\Z")

Addresses = dict[PurePosixPath, str]
_NOTION_ID = re.compile(r"\A(.{0,300}) ([0-9a-f]{32})(_all)?\Z", re.DOTALL)
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}"
_OUTER = re.compile(rf"\A(?:{_UUID}_)?Export(?:Block)?-{_UUID}(?:-Part-\d{{1,3}})?(?:\.zip)?\Z")
_ADDRESS = "https://www.notion.so/{}"
MOST_MEMBERS = 100_000
MOST_UNPACKED_BYTES = 2_000_000_000
HIGHEST_RATIO = 200
"""Maximum ratio of unpacked to packed bytes; text has a ratio of up to about 20."""
_SMALL = 1_000_000
_MOST_KEPT = 16
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError)
_LOCKED = 0x1
_OTHER_ARCHIVES = {
    "[Content_Types].xml": "it is an Office file; give it a suffix such as .docx or .xlsx",
    "entities.xml": "it is an XML export of Confluence, which is a backup; export the space as "
    "HTML, or read it with confluence://",
}
"""Archives that are not read, by a file in them."""


class ZipArchive:
    """An open archive; its members are read one after the other."""

    def __init__(self, file: Path | io.BytesIO) -> None:
        """Open an archive; raises a `ReadingError` if it is damaged or too large."""
        try:
            self._archive = zipfile.ZipFile(file)
        except OSError as error:
            raise WrongFormatError(f"the file cannot be read: {error.strerror}") from error
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise WrongFormatError(f"the zip archive is damaged: {error}") from error
        self.members = self._archive.infolist()
        if len(self.members) > MOST_MEMBERS:
            raise TooLargeError(
                f"an archive can have at most {MOST_MEMBERS} files; this one has "
                f"{len(self.members)}"
            )
        size = sum(member.file_size for member in self.members)
        if size > MOST_UNPACKED_BYTES:
            raise TooLargeError(
                f"an archive can have at most {MOST_UNPACKED_BYTES} bytes unpacked; this one has "
                f"{size}"
            )
        self._named = {tuple(_split(member)): member for member in self.members}
        self._kept: dict[tuple[str, ...], bytes] = {}
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
            raise TooLargeError(f"a file can have at most {MAX_BYTES} bytes; this one has more")
        if self._left < 0:
            raise TooLargeError(f"an archive can have at most {MOST_UNPACKED_BYTES} bytes unpacked")
        return data

    def read_shared(self, path: tuple[str, ...], largest: int) -> bytes | None:
        """Return a file to which many pages of the archive may refer, by its folders and its name,
        or None if there is none of at most `largest` bytes; raises a `ReadingError`.
        """
        member = self._named.get(path)
        if member is None or _find_fault(member, list(path)) or member.file_size > largest:
            return None
        if path not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[path] = self.read(member)
        return self._kept[path]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFile(FoundFile):
    """A file in an archive; its location is the path of the archive."""

    archive: ZipArchive
    member: zipfile.ZipInfo

    def read(self) -> bytes:
        """Return its bytes; raise a `ReadingError`."""
        return self.archive.read(self.member)


def restore_exports(listing: FolderListing, web_address: str = "") -> Addresses:
    """Open the archives in a listing and restore the names of exported pages.

    Returns the URLs of pages by path: those that exports state, and those built from `web_address`,
    see `make_address`.
    """
    expand_archives(listing)
    conversations = restore_conversations(listing, web_address)
    _leave_filtered_tables(listing)
    restored, stated = restore_names(listing)
    listing.files[:] = [
        replace(file, path=restored[file.path], origins=(*file.origins, file.path))
        if file.path in restored
        else file
        for file in listing.files
    ]
    listing.files.sort(key=lambda file: file.path)
    if not web_address:
        return stated
    made = {
        file.path: make_address(web_address, file.path)
        for file in listing.files
        if file.path not in conversations
    }
    return {**stated, **{path: url for path, url in made.items() if url}, **conversations}


def make_address(pattern: str, path: PurePosixPath, revision: str = "") -> str:
    """Return the URL of a file, or an empty string.

    `pattern` contains `{path}`, `{page}` (the path without its suffix), `{id}` (the number at the
    end of the file name, as in exports of Confluence) or `{revision}`; without any of these it is
    the base URL to which the path is appended.
    """
    if "{" not in pattern:
        return f"{pattern.rstrip('/')}/{quote(str(path))}"
    identity = _ID.search(path.stem)
    if "{id}" in pattern and identity is None:
        return ""
    values = {
        "{path}": quote(str(path)),
        "{page}": quote(str(path.with_suffix(""))),
        "{id}": identity[1] if identity is not None else "",
        "{revision}": quote(revision),
    }
    for name, value in values.items():
        pattern = pattern.replace(name, value)
    return pattern


def restore_names(
    listing: FolderListing,
) -> tuple[dict[PurePosixPath, PurePosixPath], dict[PurePosixPath, str]]:
    """Return the restored paths of exported pages, by path, and their URLs, by restored path.

    If a restored name is already taken, the page keeps the first digits of its id.
    """
    paths = {file.path for file in listing.files}
    restored: dict[PurePosixPath, PurePosixPath] = {}
    addresses: dict[PurePosixPath, str] = {}
    taken = set(paths)
    for path in sorted(paths):
        match = _NOTION_ID.match(path.stem)
        folders = [
            _NOTION_ID.sub(r"\1", part) for part in path.parts[:-1] if not _OUTER.match(part)
        ]
        if match is None:
            has_id = any(_NOTION_ID.match(part) for part in path.parts)
            if folders != list(path.parts[:-1]) and has_id:
                restored[path] = PurePosixPath(*folders, path.name)
            continue
        new = PurePosixPath(*folders, f"{match[1]}{path.suffix}")
        if new in taken:
            new = new.with_name(f"{match[1]} {match[2][:6]}{path.suffix}")
        taken.add(new)
        restored[path] = new
        addresses[new] = _ADDRESS.format(match[2])
    return restored, addresses


def expand_archives(listing: FolderListing) -> None:
    """Add the files in the archives of a listing, each below the path of its archive.

    Archives inside archives are opened as well, because large exports are split into them; archives
    nested more deeply are not.
    """
    for file in listing.archives:
        try:
            archive = ZipArchive(file.location)
        except ReadingError as error:
            listing.failures.append((file.path, str(error)))
            continue
        _expand(archive, file, listing)
    listing.files.sort(key=lambda file: file.path)


def _leave_filtered_tables(listing: FolderListing) -> None:
    """Leave out the tables of Notion that are also exported with all rows and columns."""
    paths = {file.path for file in listing.files}
    for path in sorted(paths):
        complete = path.with_name(f"{path.stem}_all{path.suffix}")
        if complete in paths and _NOTION_ID.match(path.stem):
            paths.remove(path)
            listing.skipped.append((path, f"a filtered copy of the table {complete.name}"))
    listing.files[:] = [file for file in listing.files if file.path in paths]


def _expand(
    archive: ZipArchive, file: FoundFile, listing: FolderListing, *, is_inner: bool = False
) -> None:
    if any(_split(member)[-1:] == [RULES_FILE] for member in archive.members):
        reason = f"access rules ({RULES_FILE}) are supported in folders only: unpack the archive"
        listing.failures.append((file.path, reason))
        return
    for member in archive.members:
        if member.filename in _OTHER_ARCHIVES:
            listing.failures.append((file.path, _OTHER_ARCHIVES[member.filename]))
            return
    unknown: list[PurePosixPath] = []
    for member, path in _list_members(archive, file.path, listing):
        names = (root.joinpath(*_split(member)) for root in (file.path, *file.origins))
        origins = (*(name for name in names if name != path), *file.origins)
        inner = ArchivedFile(path, file.location, origins=origins, archive=archive, member=member)
        if path.suffix.lower() in SUFFIXES:
            listing.files.append(inner)
        elif path.suffix.lower() == ARCHIVE and not is_inner:
            try:
                opened = ZipArchive(io.BytesIO(archive.read(member)))
            except ReadingError as error:
                listing.failures.append((path, str(error)))
                continue
            _expand(opened, inner, listing, is_inner=True)
        else:
            unknown.append(path)
    listing.skipped += list_skipped(unknown)


def _list_members(
    archive: ZipArchive, root: PurePosixPath, listing: FolderListing
) -> Iterator[tuple[zipfile.ZipInfo, PurePosixPath]]:
    known: set[PurePosixPath] = set()
    for member in archive.members:
        parts = _split(member)
        if member.is_dir() or any(is_left_out(part) for part in parts if part != ".."):
            continue
        path = root.joinpath(*(display_name(part) for part in parts))
        reason = _find_fault(member, parts)
        if not reason and path in known:
            reason = "the archive contains another file with this name"
        if reason:
            listing.skipped.append((root / display_name(member.filename.strip("/")), reason))
            continue
        known.add(path)
        yield member, path


def _split(member: zipfile.ZipInfo) -> list[str]:
    """Return the folders and the name of a member."""
    return [part for part in member.filename.replace("\\", "/").split("/") if part]


def _find_fault(member: zipfile.ZipInfo, parts: list[str]) -> str:
    """Return why a member is not read, or an empty string."""
    if ".." in parts or member.filename.startswith(("/", "\\")) or not parts or ":" in parts[0]:
        return "its path leads outside of the archive"
    if len(parts) > DEEPEST_FOLDER:
        return f"it is deeper than {DEEPEST_FOLDER} folders"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "links in an archive are not followed"
    if member.flag_bits & _LOCKED:
        return "it is protected by a password"
    packed = max(1, member.compress_size)
    if member.file_size > _SMALL and member.file_size > HIGHEST_RATIO * packed:
        ratio = member.file_size // packed
        return f"it would unpack to {ratio} times its size, like a zip bomb"
    return ""
