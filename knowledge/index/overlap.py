"""Decides which indexed documents belong to an ingested path when ingested paths overlap.

A folder inside an ingested folder is read as its part, so its pages keep their names. A folder
around ingested paths takes their documents over.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Protocol

from knowledge.documents.folder import FolderListing
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey, survey
from knowledge.index.listing import ListedDocument, find_enclosing_root, is_below


class SurveySource(Protocol):
    """Surveys documents that are no local path; receives what the index lists."""

    def __call__(
        self, listed: Sequence[ListedDocument], read_title: ReadTitle, language_of: LanguageOf
    ) -> Survey: ...


def survey_part(
    path: Path,
    listed: Iterable[ListedDocument],
    read_title: ReadTitle,
    language_of: LanguageOf,
    web_address: str = "",
) -> Survey:
    """Return the files at a path, placed as in the ingested folder around it, if there is one.

    Raises `OSError` when there are none or access is denied.
    """
    path.stat()
    own = os.path.realpath(path)
    root = find_enclosing_root(listed, own)
    if root is not None and Path(root).is_dir():
        whole = survey(Path(root), read_title, language_of, web_address)
        part = _take_part(whole.walk, Path(own).relative_to(root))
        if part.files:
            return replace(whole, walk=part, part=own)
    return survey(path, read_title, language_of, web_address)


def find_owned(listed: Sequence[ListedDocument], found: Survey) -> dict[str, str]:
    """Return the content hashes by id of the indexed documents that a survey stands for.

    These are the documents of its root, or of its part, and those of other roots whose files it
    has found.
    """
    files = {os.path.join(found.root, str(file.path)) for file in found.walk.files}
    return {
        document.id: document.content_hash
        for document in listed
        if (
            document.root == found.root
            and (found.part is None or is_below(document.file, found.part))
        )
        or (document.root != found.root and document.file in files)
    }


def _take_part(walk: FolderListing, part: Path) -> FolderListing:
    """Return what a walk has found at or below `part`, a path relative to its folder."""
    return FolderListing(
        [file for file in walk.files if file.path.is_relative_to(part)],
        [
            (place, reason)
            for place, reason in walk.failures
            if PurePosixPath(place).is_relative_to(part)
        ],
        [
            (place, reason)
            for place, reason in walk.warnings
            if PurePosixPath(place).is_relative_to(part)
        ],
        [
            (place, reason)
            for place, reason in walk.skipped
            if PurePosixPath(place).is_relative_to(part)
        ],
    )
