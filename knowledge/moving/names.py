"""Gives files the names that they had before they were moved."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from knowledge.documents.location import Location
from knowledge.documents.survey import Survey
from knowledge.index.listing import ListedDocument


def keep_names(found: Survey, listed: Iterable[ListedDocument]) -> Survey:
    """Return a survey in which files that were moved before keep their names."""
    own = [document for document in listed if document.root == found.root]
    names = {document.source: document.location_name for document in own if document.keeps_name}
    if not names or found.moved is not None:
        return found
    known = {document.source for document in own}
    return replace(found, locations=set_names(found.locations, names, known))


def set_names(
    locations: Mapping[PurePosixPath, Location],
    names: Mapping[str, str],
    known: Collection[str] = (),
) -> dict[PurePosixPath, Location]:
    """Return locations with these names of files.

    A file that would have one of them gets a free one, unless it is in the index already (`known`):
    pages in several languages share their name.
    """
    taken = set(names.values())
    every = taken.union(place.name for place in locations.values())
    placed: dict[PurePosixPath, Location] = {}
    for path, place in locations.items():
        source = str(path)
        is_taken = place.name in taken and source not in known
        name = names.get(source) or (_find_free(place.name, every) if is_taken else place.name)
        is_same = name == place.name
        placed[path] = place if is_same else replace(place, name=name, keeps_name=True)
    return placed


def _find_free(name: str, every: set[str]) -> str:
    number = 2
    while f"{name}-{number}" in every:
        number += 1
    return f"{name}-{number}"
