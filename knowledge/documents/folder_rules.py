"""Reads what a folder states about its documents, from the file `refdesk.toml`.

Each table `[[documents]]` has a `path`, a pattern relative to the folder in which `*` matches any
characters including slashes, and states the `groups` and the `version` of the matching documents.
The last matching table applies, and the file nearest to a document takes precedence. If a file
cannot be read, the ingestion of its folder stops, because its documents would become public.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from unicodedata import normalize

from envelope.question import parse_groups
from knowledge.documents.errors import WrongFormatError

RULES_FILE = "refdesk.toml"
_MOST_BYTES = 256 * 1024
_MOST_RULES = 1000
_TABLES = "documents"
_KEYS = frozenset({"path", "groups", "version"})
_LONGEST_VERSION = 40


@dataclass(frozen=True, slots=True)
class FolderRule:
    """What a folder states about the documents that match a pattern; None: not stated."""

    pattern: str
    groups: tuple[str, ...] | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class StatedByFolder:
    """What folder rules state about one document."""

    groups: tuple[str, ...] = ()
    version: str = ""


@dataclass(slots=True)
class FolderRules:
    """Folder rules; each file is read only once."""

    _read: dict[Path, tuple[FolderRule, ...]] = field(default_factory=dict)
    _used: set[tuple[Path, str]] = field(default_factory=set)

    def find(
        self, file: Path, *, within: Path | None = None, outside: Path | None = None
    ) -> StatedByFolder:
        """Return what the folders above a file state about it; raises `OSError` or a
        `ReadingError`.

        `file` is an absolute path. Only folders at or below `within` are used, and none at or below
        `outside`.
        """
        groups: tuple[str, ...] | None = None
        version: str | None = None
        for folder in file.parents:
            if within is not None and not folder.is_relative_to(within):
                break
            if outside is not None and folder.is_relative_to(outside):
                continue
            for rule in reversed(self._rules_of(folder)):
                if not _matches(file.relative_to(folder).as_posix(), rule.pattern):
                    continue
                self._used.add((folder, rule.pattern))
                groups = rule.groups if groups is None else groups
                version = rule.version if version is None else version
        return StatedByFolder(groups or (), version or "")

    def find_unused(self, folder: Path) -> Iterator[tuple[Path, str]]:
        """Yield the patterns in files at or below a folder that matched no document."""
        for place, rules in self._read.items():
            if place.is_relative_to(folder):
                for rule in rules:
                    if (place, rule.pattern) not in self._used:
                        yield place / RULES_FILE, rule.pattern

    def _rules_of(self, folder: Path) -> tuple[FolderRule, ...]:
        known = self._read.get(folder)
        if known is None:
            known = self._read[folder] = _read_rules(folder / RULES_FILE)
        return known


def _matches(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a name, regardless of the Unicode normalization of
    either.
    """
    return fnmatchcase(normalize("NFC", name), normalize("NFC", pattern))


def _read_rules(file: Path) -> tuple[FolderRule, ...]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if file.is_symlink():
            raise WrongFormatError(f"{file} is a broken link") from error
        return ()
    except OSError as error:
        raise WrongFormatError(f"{file} cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise WrongFormatError(f"{file}: expected at most {_MOST_BYTES} bytes, found more")
    try:
        stated = tomllib.loads(data.decode())
        return tuple(_parse(stated))
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300]
        raise WrongFormatError(f"{file} cannot be used: {reason}") from error


def _parse(stated: Mapping[str, object]) -> Iterator[FolderRule]:
    """Yield the rules of a file; raises `ValueError`."""
    tables = stated.get(_TABLES)
    if stated.keys() != {_TABLES} or not isinstance(tables, list):
        raise ValueError(f"expected tables [[{_TABLES}]], found {', '.join(stated) or 'none'}")
    if len(tables) > _MOST_RULES:
        raise ValueError(f"expected at most {_MOST_RULES} tables, found {len(tables)}")
    for table in tables:
        if not isinstance(table, dict) or not table.keys() <= _KEYS or len(table) < 2:
            raise ValueError(f"expected path with groups or version, found {table!r:.100}")
        yield _parse_rule(table)


def _parse_rule(table: Mapping[str, object]) -> FolderRule:
    pattern, groups, version = table.get("path"), table.get("groups"), table.get("version")
    if not isinstance(pattern, str) or not pattern or pattern.startswith(("/", "./", "../")):
        raise ValueError(f"expected a path relative to this file, found {pattern!r:.100}")
    if groups is not None and not isinstance(groups, list):
        raise ValueError(f"expected a list of groups for {pattern!r:.60}, found {groups!r:.60}")
    is_version = isinstance(version, str) and 0 < len(version.strip()) <= _LONGEST_VERSION
    if version is not None and not is_version:
        raise ValueError(
            f'expected a version such as "1.4" for {pattern!r:.60}, found {version!r:.60}'
        )
    return FolderRule(
        pattern,
        None if groups is None else parse_groups(groups),
        str(version).strip() if is_version else None,
    )
