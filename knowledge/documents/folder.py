"""Walks a folder in a fixed order: its files that have a reader, and the groups that may read them.

Hidden files and folders, version control and installed packages are left out. A symbolic link to a
file is read if the file is in the folder and is not read anyway; other links are not followed. An
opened file is checked once more, because a link may replace it after the walk. Files without a
reader are listed with the reason.

A page from an archive, an export or a repository has a different name from its file. Folder rules
apply to both names: if several rules match, only groups that all of them state may read the page.
If no such group exists, the page is left out rather than published.
"""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from knowledge.documents.decoding import MAX_BYTES, clean_text
from knowledge.documents.errors import ReadingError, TooLargeError, WrongFormatError
from knowledge.documents.folder_rules import RULES_FILE, FolderRules, StatedByFolder
from knowledge.documents.formats import SUFFIXES, list_skipped
from knowledge.documents.page import write_count

ARCHIVE = ".zip"
DEEPEST_FOLDER = 64
"""Maximum depth of folders; deeper nesting is considered an error."""

_DIGITS = re.compile(r"(\d{1,15})")
_LEAVES = "the link leaves the folder and was not followed"
_SPECIAL = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)
_PRIVATE = frozenset({".git", ".hg", ".svn", ".ssh"})
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "CVS", "bower_components", "__MACOSX"})
Stated = dict[PurePosixPath, StatedByFolder]
_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read; `path` is relative to the ingested folder, and the file must not be outside
    `top`.

    `origins` are further paths, relative to that folder, to which access rules apply: its name
    before it was restored, the target of a link, the files from which it was created. `pictures`
    are the files of its pictures, by the addresses that the page uses for them.
    """

    path: PurePosixPath
    location: Path
    top: Path | None = None
    origins: tuple[PurePosixPath, ...] = ()
    pictures: Mapping[str, Path] = field(default_factory=dict)

    def read(self) -> bytes:
        """Return its bytes; raise `OSError` or a `ReadingError`."""
        _refuse_special(self.location.stat())
        # The file may have been replaced: opening a pipe must not wait for a writer.
        with os.fdopen(os.open(self.location, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            _refuse_special(status)
            self._refuse_outside(file.fileno())
            if status.st_size > MAX_BYTES:
                size = status.st_size
                raise TooLargeError(
                    f"a file can have at most {MAX_BYTES} bytes; this one has {size}"
                )
            return file.read(MAX_BYTES + 1)

    def _refuse_outside(self, descriptor: int) -> None:
        if self.top is None:
            return
        opened = Path(f"/proc/self/fd/{descriptor}")
        place = os.readlink(opened) if opened.is_symlink() else os.path.realpath(self.location)
        if not Path(place).is_relative_to(self.top):
            raise WrongFormatError(_LEAVES)


@dataclass(slots=True)
class FolderListing:
    """The files found by a walk; `failures` are folders that could not be listed, with the reason.

    `skipped` are files without a reader, with the reason; `archives` are zip archives.
    `unreachable` contains files of which only an earlier version is available, with the reason.
    `is_partial`: further files may exist.
    """

    files: list[FoundFile] = field(default_factory=list)
    failures: list[tuple[PurePosixPath | str, str]] = field(default_factory=list)
    warnings: list[tuple[PurePosixPath | str, str]] = field(default_factory=list)
    skipped: list[tuple[PurePosixPath | str, str]] = field(default_factory=list)
    unreachable: list[tuple[str, str]] = field(default_factory=list)
    is_partial: bool = False
    archives: list[FoundFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RuleBase:
    """A folder that contains the files of a source, or would contain them; its rules apply to them.

    The rules of its parent folders apply as well, except those outside `within`, if it is set, and
    those inside `outside`. All paths are absolute.
    """

    folder: Path
    within: Path | None = None
    outside: Path | None = None

    def find(self, rules: FolderRules, name: PurePosixPath) -> StatedByFolder:
        """Return what folder rules state about a file of this name; raises as
        `FolderRules.find`.
        """
        return rules.find(self.folder / name, within=self.within, outside=self.outside)


def walk(root: Path) -> FolderListing:
    """Return the readable files below a folder, or only `root` if it is a file."""
    if not root.is_dir():
        path = PurePosixPath(display_name(root.name))
        names = (PurePosixPath(root.name), PurePosixPath(os.path.realpath(root)).name)
        origins = tuple(PurePosixPath(name) for name in names if str(name) != str(path))
        file = FoundFile(path, root, origins=origins)
        is_archive = root.suffix.lower() == ARCHIVE
        return FolderListing(archives=[file]) if is_archive else FolderListing([file])
    listing = FolderListing()
    top = Path(os.path.realpath(root))
    linked: list[FoundFile] = []
    unknown: list[PurePosixPath] = []
    waiting = [(root, PurePosixPath())]
    while waiting:
        folder, path = waiting.pop()
        for entry in _entries(folder, path if path.parts else str(root), listing):
            place = path / display_name(entry.name)
            raw = PurePosixPath(Path(entry.path).relative_to(root))
            file = FoundFile(place, Path(entry.path), top, () if raw == place else (raw,))
            if entry.is_dir(follow_symlinks=False):
                if len(place.parts) > DEEPEST_FOLDER:
                    listing.failures.append((place, f"it is deeper than {DEEPEST_FOLDER} folders"))
                else:
                    waiting.append((Path(entry.path), place))
            elif entry.is_symlink():
                _note_link(file, top, linked, listing)
            else:
                _sort_file(file, listing, unknown)
    met = {os.path.realpath(file.location) for file in listing.files}
    listing.files += [file for file in linked if os.path.realpath(file.location) not in met]
    listing.files.sort(key=lambda file: file.path)
    listing.skipped += list_skipped(place for place in unknown if place.name != RULES_FILE)
    return listing


def display_name(name: str) -> str:
    """Return a file name as one line of text, without bytes that are not UTF-8."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return " ".join(clean_text(text).split()) or "unnamed"


def is_left_out(name: str) -> bool:
    """Return whether a file or folder is left out because its name is hidden, or that of an
    installed package or of a file that Office creates while a document is open (`~$`).
    """
    return name.startswith((".", "~$")) or name in _SKIPPED


def is_private(target: Path) -> bool:
    """Return whether a file is left out because of its name; folders such as `..data` are
    allowed.
    """
    return target.name.startswith(".") or not _PRIVATE.isdisjoint(target.parts)


def state_access(listing: FolderListing, bases: Sequence[RuleBase]) -> tuple[Stated, FolderRules]:
    """Return what folder rules state about each file, and the rules that were used.

    Files to which contradictory rules apply, or rules that cannot be read, are removed from the
    listing, with the reason.
    """
    rules = FolderRules()
    stated: Stated = {}
    unclear: dict[str, list[PurePosixPath]] = {}
    for file in listing.files:
        try:
            each = [(name, base.find(rules, name)) for name in _list_names(file) for base in bases]
        except (OSError, ReadingError) as error:
            unclear.setdefault(str(error), []).append(file.path)
            continue
        restricting = [(name, folder.groups) for name, folder in each if folder.groups]
        groups = _intersect([groups for _, groups in restricting])
        if restricting and not groups:
            listing.skipped.append((file.path, _describe_conflict(restricting)))
            continue
        version = next((folder.version for _, folder in each if folder.version), "")
        stated[file.path] = StatedByFolder(groups, version)
    listing.files[:] = [file for file in listing.files if file.path in stated]
    for reason, paths in unclear.items():
        more = f"; it applies to {write_count(len(paths), 'file')}"
        listing.failures.append((paths[0], f"{reason}{more}"))
    return stated, rules


def make_sort_key(source: str) -> list[tuple[int, str]]:
    """Return a sort key for file names that puts `article_10` after `article_9`."""
    pieces = _DIGITS.split(source.casefold())
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces]


def _sort_file(file: FoundFile, listing: FolderListing, unknown: list[PurePosixPath]) -> None:
    suffix = file.path.suffix.lower()
    if suffix in SUFFIXES:
        listing.files.append(file)
    elif suffix == ARCHIVE:
        listing.archives.append(file)
    else:
        unknown.append(file.path)


def _refuse_special(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kinds = (kind for is_one, kind in _SPECIAL if is_one(status.st_mode))
        raise WrongFormatError(f"expected a file, found {next(kinds, 'a device')}")


def _entries(
    folder: Path, path: PurePosixPath | str, listing: FolderListing
) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not is_left_out(entry.name)]
    except OSError as error:
        listing.failures.append((path, f"the folder cannot be listed: {error.strerror}"))
        return []


def _note_link(link: FoundFile, top: Path, linked: list[FoundFile], listing: FolderListing) -> None:
    target = Path(os.path.realpath(link.location))
    if not target.is_relative_to(top):
        listing.warnings.append((link.path, "a link that leaves the folder was not followed"))
    elif is_private(target.relative_to(top)):
        listing.warnings.append((link.path, "a link to a hidden file was not followed"))
    elif link.path.suffix.lower() in SUFFIXES:
        origin = PurePosixPath(target.relative_to(top))
        linked.append(replace(link, origins=(*link.origins, origin)))


def _list_names(file: FoundFile) -> list[PurePosixPath]:
    """Return the names of a file and of everything from which it was created, including
    archives.
    """
    names = dict.fromkeys((file.path, *file.origins))
    archives = (
        folder for name in names for folder in name.parents if folder.suffix.lower() == ARCHIVE
    )
    return list(dict.fromkeys((*names, *archives)))


def _intersect(restrictions: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the groups that are in every restriction, in the order of the first one."""
    if not restrictions:
        return ()
    first, *others = restrictions
    return tuple(group for group in first if all(group in other for other in others))


def _describe_conflict(restricting: Sequence[tuple[PurePosixPath, tuple[str, ...]]]) -> str:
    shown = dict.fromkeys(f"{name} is for {', '.join(groups)}" for name, groups in restricting)
    listed = "; ".join(list(shown)[:_MOST_SHOWN])
    return (
        "the document was skipped, because its access rules have no group in common, so "
        f"nobody could read it: {listed}"
    )
