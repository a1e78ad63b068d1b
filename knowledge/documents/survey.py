"""Determines the files at a path and their locations before they are read."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from knowledge.documents import formats, front_matter, location
from knowledge.documents.decoding import decode
from knowledge.documents.errors import ReadingError
from knowledge.documents.exports import restore_exports
from knowledge.documents.folder import (
    ARCHIVE,
    FolderListing,
    FoundFile,
    RuleBase,
    Stated,
    state_access,
    walk,
)
from knowledge.documents.formats import Item
from knowledge.documents.interchange import mail
from knowledge.documents.interchange.mail import find_replies
from knowledge.documents.location import Location
from knowledge.documents.slack_export import DerivedFile

_LONGEST_CRUMB = 60

_VOTES = 7
_SHORTEST_SAMPLE = 40
_SAMPLE_CHARACTERS = 6000
_TEXTS = frozenset({".md", ".mdx", ".markdown", ".rst", ".adoc", ".html", ".htm", ".txt"})
_WITH_FRONT_MATTER = frozenset({".md", ".mdx", ".markdown"})
_TAGS = re.compile(r"<[^<>]{0,2000}>")
_CODE = re.compile(r"```[^`]*(?:```|\Z)|`[^`\n]*`")

LanguageOf = Callable[[str], str]
"""Returns the ISO 639-1 code of a text."""
ReadTitle = Callable[[Item, PurePosixPath, Location], str]
"""Returns the title of a document; raises a `ReadingError`."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The files at a path; `root` names it in an index.

    `part` is the absolute path to which the files are limited; None for all of the root.
    """

    root: str
    walk: FolderListing
    locations: Mapping[PurePosixPath, Location]
    part: str | None = None


def survey(
    path: Path,
    read_title: ReadTitle,
    language_of: LanguageOf,
    web_address: str = "",
    bases: Sequence[RuleBase] = (),
) -> Survey:
    """Return the files at a path; raises `OSError` if nothing exists there or access is denied.

    `read_title` reads the index pages of folders, whose titles become the folders' names. A folder
    named like a language is one of that language if `language_of` detects it in its texts.
    `web_address` is the URL template of the files, see `knowledge.documents.exports`. `bases` are
    the folders whose access rules apply; empty for those of the path.
    """
    path.stat()
    listing = walk(path)
    addresses = restore_exports(listing, web_address)
    stated = _find_stated(path, listing, bases)
    public = [file for file in listing.files if not stated[file.path].groups]
    titling = public if path.is_dir() or listing.archives else []
    places = place_files(listing.files, titling, read_title, language_of)
    replies = set(find_replies(_read_messages(listing.files)))
    folder = Path(os.path.realpath(path)).name if path.is_dir() else ""
    language = None
    if _is_in_language(listing.files, PurePosixPath(), folder, language_of):
        language = location.language_tag(folder)
    for file in listing.files:
        place, states = places[file.path], stated[file.path]
        if isinstance(file, DerivedFile):
            place = replace(place, file_title=file.title, folders=file.folders, is_index=False)
        if folder and language is None:
            place = replace(place, name=f"{folder}/{place.name}")
        places[file.path] = replace(
            place,
            url=addresses.get(file.path) or place.url,
            language=place.language or language,
            is_reply=file.path in replies,
            groups=states.groups,
            version=states.version,
        )
    return Survey(os.path.realpath(path), listing, places)


def place_files(
    files: Sequence[FoundFile],
    titling: Sequence[FoundFile],
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> dict[PurePosixPath, Location]:
    """Return the locations of files, derived from their paths and texts.

    The index pages in `titling` provide the titles of their folders, which all readers can see.
    """
    folders = frozenset(
        folder
        for folder in location.language_folders(file.path for file in files)
        if _is_in_language(files, folder, folder.name, language_of)
    )
    titles = {
        folder: location.humanise(folder.stem)
        for file in files
        for folder in file.path.parents
        if folder.suffix.lower() == ARCHIVE
    }
    stated = {folder: title for folder, title in _titles(titling, read_title) if folder.name}
    # A title that folders of several names have ("Overview") does not tell them apart.
    counts = Counter(
        title for title, _ in {(title, folder.name) for folder, title in stated.items()}
    )
    titles |= {folder: title for folder, title in stated.items() if counts[title] == 1}
    places = {file.path: location.locate(file.path, folders, titles) for file in files}
    return location.tell_apart(places)


def _read_messages(files: Iterable[FoundFile]) -> Iterable[tuple[PurePosixPath, bytes]]:
    for file in files:
        if file.path.suffix.lower() != mail.SUFFIX:
            continue
        try:
            yield file.path, file.read()
        except (OSError, ReadingError):
            # The file is reported when it is read as a document.
            continue


def _find_stated(path: Path, listing: FolderListing, bases: Sequence[RuleBase]) -> Stated:
    """Return what folder rules state about each file; a rule without an effect causes a warning."""
    top = Path(os.path.realpath(path))
    if not bases:
        # A folder may be reached by a link: the rules above both of its places hold.
        places = dict.fromkeys((top, Path(os.path.abspath(path))))
        bases = [RuleBase(place if path.is_dir() else place.parent) for place in places]
    stated, rules = state_access(listing, bases)
    if path.is_dir():
        listing.warnings += [
            (
                PurePosixPath(place.relative_to(top)),
                f"its rule for {pattern!r:.100} matches no document",
            )
            for place, pattern in rules.find_unused(top)
        ]
    return stated


def _titles(
    files: Iterable[FoundFile], read_title: ReadTitle
) -> Iterable[tuple[PurePosixPath, str]]:
    """Yield the titles that index pages give their folders."""
    for file in files:
        place = location.locate(file.path, ())
        if not place.is_index or formats.holds_many(file.path):
            continue
        try:
            data = file.read()
            if _states_groups(file.path, data):
                continue
            (item,) = formats.items_of(file.path, data)
            title = read_title(item, file.path, place)
        except (OSError, ReadingError):
            # The file is reported as broken when it is read as a document.
            continue
        if title and title != place.file_title and len(title) <= _LONGEST_CRUMB:
            yield file.path.parent, title


def _states_groups(path: PurePosixPath, data: bytes) -> bool:
    """Return whether a page states the groups that may read it, so that its title is not public."""
    if path.suffix.lower() not in _WITH_FRONT_MATTER:
        return False
    front, _ = front_matter.take(decode(data)[0])
    return bool(front.groups or front.unclear_groups)


def _is_in_language(
    files: Sequence[FoundFile], folder: PurePosixPath, name: str, language_of: LanguageOf
) -> bool:
    """Return whether most of the first texts in a folder are in the language of its name."""
    tag = location.language_tag(name)
    if tag is None:
        return False
    votes: list[bool] = []
    short: list[str] = []
    has_texts = False
    for file in files:
        if len(votes) == _VOTES:
            break
        if file.path.is_relative_to(folder) and file.path.suffix.lower() in _TEXTS:
            has_texts = True
            sample = _read_sample(file)
            if len(sample) >= _SHORTEST_SAMPLE:
                votes.append(language_of(sample) == tag.partition("-")[0])
            elif sample:
                short.append(sample)
    if short and not votes:
        return language_of("\n".join(short)) == tag.partition("-")[0]
    return sum(votes) * 2 > len(votes) or (has_texts and not votes)


def _read_sample(file: FoundFile) -> str:
    """Return the first prose of a text file, without front matter, code and markup."""
    try:
        text, _ = decode(file.read())
    except (OSError, ReadingError):
        return ""
    _, body = front_matter.take(text[:_SAMPLE_CHARACTERS])
    lines = (line for line in _CODE.sub(" ", _TAGS.sub(" ", body)).split("\n"))
    return "\n".join(line for line in lines if len(line.split()) > 2)
