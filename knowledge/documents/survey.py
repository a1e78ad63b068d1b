"""Surveys a path before it is read: its files, and where each of them stands."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from knowledge.documents import formats, location
from knowledge.documents.errors import ReadingError
from knowledge.documents.folder import FolderListing, FoundFile, walk
from knowledge.documents.formats import Item
from knowledge.documents.location import Location

_LONGEST_CRUMB = 60

ReadTitle = Callable[[Item, PurePosixPath, Location], str]
"""Returns the title of a document; raises a `ReadingError`."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A path as found; `root` names it in an index."""

    root: str
    walk: FolderListing
    locations: Mapping[PurePosixPath, Location]


def survey(path: Path, read_title: ReadTitle) -> Survey:
    """Return what is at a path; raise `OSError` when nothing is there or it may not be seen.

    `read_title` reads the index pages of folders, which are called by their titles.
    """
    path.stat()
    found = walk(path)
    folders = location.language_folders(file.path for file in found.files)
    titles = dict(_titles(found.files, read_title)) if path.is_dir() else {}
    places = {file.path: location.locate(file.path, folders, titles) for file in found.files}
    if path.is_dir():
        places = {
            file: _within(Path(os.path.realpath(path)).name, place)
            for file, place in places.items()
        }
    return Survey(os.path.realpath(path), found, places)


def _titles(
    files: Iterable[FoundFile], read_title: ReadTitle
) -> Iterable[tuple[PurePosixPath, str]]:
    """Return the title that the index page of a folder gives it."""
    for file in files:
        place = location.locate(file.path, ())
        if not place.is_index or formats.holds_many(file.path):
            continue
        try:
            (item,) = formats.items_of(file.path, file.read())
            title = read_title(item, file.path, place)
        except (OSError, ReadingError):
            # The file is told as broken when it is read for its own sake.
            continue
        if title != place.file_title and len(title) <= _LONGEST_CRUMB:
            yield file.path.parent, title


def _within(folder: str, place: Location) -> Location:
    """Let names begin with the ingested folder's own; a folder of one language states it."""
    language = location.language_tag(folder)
    if language is None:
        return replace(place, name=f"{folder}/{place.name}")
    return place if place.language is not None else replace(place, language=language)
