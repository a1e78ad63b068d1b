"""Derives the name, the breadcrumbs and the language of a page from its path."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

_CODES = (
    "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nb nl no pl pt ro "
    "ru sk sl sr sv th tr uk vi zh"
)
_LANGUAGES = frozenset(_CODES.split(" "))
# A folder of this name may as well mean information technology or the United Kingdom.
_ABBREVIATIONS = "ar ca cs da el et fa he hi id it ms no pt sl sr tr uk"
_DOUBTFUL = frozenset(_ABBREVIATIONS.split(" "))
_REGION = re.compile(r"[-_](?:[A-Za-z]{2}|[A-Za-z]{4}|\d{3})\Z")
_ORDER = re.compile(r"\A\d{1,4}[-_. ]+(?=\D)")
_INDEX_NAMES = frozenset({"index", "_index", "readme", "__index__", "home"})
_PROSE = frozenset({".md", ".mdx", ".markdown", ".rst", ".html", ".htm", ".txt"})


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a page; `language` is a tag such as `de` or `pt-br`, or None.

    `groups` (the groups that may read the page) and `version` (of the described product) come from
    folder rules, unless the page states them. `url` is the URL given by the source, which the page
    itself cannot change. `is_foreign`: the page was written by a third party and cannot choose its
    id. `is_reply`: the page is a reply to a message in another file and need not repeat it.
    `repeated` is boilerplate of the website, see `knowledge.documents.furniture`.
    `other_languages` are those of other files with this name, such as `a.de.md` beside `a.md`; a
    page in one of them is named with the `ending`, which no other page has.
    """

    name: str
    folders: tuple[str, ...]
    file_title: str
    is_index: bool
    language: str | None
    groups: tuple[str, ...] = ()
    url: str | None = None
    is_foreign: bool = False
    version: str = ""
    is_reply: bool = False
    repeated: tuple[str, ...] = ()
    other_languages: tuple[str, ...] = ()
    ending: str = ""

    def crumbs(self, title: str) -> tuple[str, ...]:
        """Return the humanised folder names and the title; an index page represents its folder."""
        folders = self.folders[:-1] if self.is_index else self.folders
        return tuple(crumb for crumb in (*folders, title) if crumb)


NOWHERE = Location(name="", folders=(), file_title="", is_index=False, language=None)


def locate(
    path: PurePosixPath,
    language_folders: Collection[PurePosixPath],
    titles: Mapping[PurePosixPath, str] | None = None,
) -> Location:
    """Return the location of a file; paths are relative to the ingested folder.

    `titles` are the titles of folders from their index pages; other folders are named after their
    directories.
    """
    kept: list[str] = []
    crumbs: list[str] = []
    language = None
    for depth, part in enumerate(path.parts[:-1], start=1):
        folder = PurePosixPath(*path.parts[:depth])
        if language is None and folder in language_folders:
            language = language_tag(part)
        else:
            kept.append(part)
            crumbs.append((titles or {}).get(folder, humanise(part)))
    stem, suffix_language = _stem(path)
    file_name = stem if path.suffix.lower() in _PROSE else f"{stem}{path.suffix.lower()}"
    return Location(
        name="/".join((*kept, file_name)),
        folders=tuple(crumbs),
        file_title=humanise(stem),
        is_index=stem.lower() in _INDEX_NAMES,
        language=language if language is not None else suffix_language,
    )


def tell_apart(places: Mapping[PurePosixPath, Location]) -> dict[PurePosixPath, Location]:
    """Return the locations of files; of those with one name and language, such as `a.md` and
    `a.txt`, all but the first are named with their suffix.
    """
    stated: dict[str, list[str | None]] = {}
    for place in places.values():
        stated.setdefault(place.name, []).append(_base(place.language))
    names = set(stated)
    languages: set[tuple[str, str | None]] = set()
    bases: set[tuple[str, str | None]] = set()
    apart: dict[PurePosixPath, Location] = {}
    for path, place in places.items():
        base = _base(place.language)
        # A language with another region has the same id if it is the default language.
        others = {base} if (place.name, base) in bases else set()
        if base is None:
            others = {language for language in stated[place.name] if language is not None}
        is_first = (place.name, place.language) not in languages
        languages.add((place.name, place.language))
        bases.add((place.name, base))
        ending = "" if is_first and not others else _find_ending(place.name, path, names)
        names.add(place.name + ending)
        apart[path] = replace(
            place,
            name=place.name if is_first else place.name + ending,
            other_languages=tuple(sorted(filter(None, others))) if is_first else (),
            ending=ending,
        )
    return apart


def language_folders(paths: Iterable[PurePosixPath]) -> frozenset[PurePosixPath]:
    """Return the folders that contain the pages of one language.

    These are folders named after a language code. A code that is also a common word or abbreviation
    counts only if the parent has another such folder, or if the page also exists outside of the
    folder.
    """
    known = frozenset(paths)
    inside: dict[PurePosixPath, list[PurePosixPath]] = {}
    for path in known:
        for folder in path.parents:
            if language_tag(folder.name):
                inside.setdefault(folder, []).append(path)
    per_parent = Counter(folder.parent for folder in inside)
    return frozenset(
        folder
        for folder, paths in inside.items()
        if _code(folder.name) not in _DOUBTFUL
        or per_parent[folder.parent] > 1
        or any(folder.parent / path.relative_to(folder) in known for path in paths)
    )


def language_tag(name: str) -> str | None:
    """Return the language that a folder name states, such as `de`, or `pt-br` for `pt_BR`, or
    None.
    """
    return name.replace("_", "-").lower() if _code(name) in _LANGUAGES else None


def humanise(name: str) -> str:
    """Return a file's or folder's name as words: `01-rate_plans` is `Rate plans`."""
    words = " ".join(re.split(r"[-_\s]+", _ORDER.sub("", name))).strip()
    return words[:1].upper() + words[1:]


def _find_ending(name: str, path: PurePosixPath, names: Collection[str]) -> str:
    """Return the suffix of a file, repeated until it makes a new name."""
    suffix = ending = path.suffix.lower() or ".file"
    while name + ending in names:
        ending += suffix
    return ending


def _base(language: str | None) -> str | None:
    return None if language is None else language.partition("-")[0]


def _code(name: str) -> str:
    return _REGION.sub("", name).lower()


def _stem(path: PurePosixPath) -> tuple[str, str | None]:
    stem, _, tail = path.stem.rpartition(".")
    language = language_tag(tail) if stem else None
    return (stem, language) if language is not None else (path.stem, None)
