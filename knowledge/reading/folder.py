"""Walks a folder: every file whose format is known, in a fixed order.

Hidden files and folders, version control and installed packages are left out. A link that leaves
the folder is not followed; a folder reached twice is walked once.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from knowledge.reading.decoding import cleaned
from knowledge.reading.formats import SUFFIXES

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "CVS", "bower_components"})


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read; `path` is relative to the ingested folder."""

    path: PurePosixPath
    location: Path


@dataclass(slots=True)
class Walk:
    """What a walk found; `failures` are folders that could not be listed, with the reason."""

    files: list[FoundFile] = field(default_factory=list)
    failures: list[tuple[PurePosixPath, str]] = field(default_factory=list)
    warnings: list[tuple[PurePosixPath, str]] = field(default_factory=list)


def walk(root: Path) -> Walk:
    """Return the readable files below a folder, or the one file that `root` is."""
    found = Walk()
    if not root.is_dir():
        found.files.append(FoundFile(PurePosixPath(shown(root.name)), root))
        return found
    top = root.resolve()
    seen = {top}
    waiting = [(root, PurePosixPath())]
    while waiting:
        folder, path = waiting.pop()
        for entry in _entries(folder, path, found):
            place = path / shown(entry.name)
            if _leaves(entry, top):
                found.warnings.append((place, "a link that leaves the folder was not followed"))
            elif entry.is_dir():
                _queue(Path(entry.path), place, seen, waiting)
            elif entry.is_file() and place.suffix.lower() in SUFFIXES:
                found.files.append(FoundFile(place, Path(entry.path)))
    found.files.sort(key=lambda file: file.path)
    return found


def shown(name: str) -> str:
    """Return a file's name as text: without bytes that are not UTF-8, on one line."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return " ".join(cleaned(text).split()) or "unnamed"


def _entries(folder: Path, path: PurePosixPath, found: Walk) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            names = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        found.failures.append((path, f"the folder cannot be listed: {error.strerror}"))
        return
    yield from (entry for entry in names if entry.name not in _SKIPPED)


def _leaves(entry: os.DirEntry[str], top: Path) -> bool:
    return entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(top)


def _queue(
    folder: Path, path: PurePosixPath, seen: set[Path], waiting: list[tuple[Path, PurePosixPath]]
) -> None:
    target = folder.resolve()
    if target not in seen:
        seen.add(target)
        waiting.append((folder, path))
