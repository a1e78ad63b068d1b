"""Decides which indexed documents belong to an ingested path if ingested paths overlap.

A folder inside an ingested folder is treated as a part of it, so its pages keep their names. A
folder that contains ingested paths takes over their documents.
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
    """Surveys documents outside of local paths; it receives the listing of the index."""

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
    """Return the files at a path, as part of the ingested folder that contains it, if there is one.

    Raises `OSError` if there are no files or access is denied.
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


def find_owned(listed: Sequence[ListedDocument], surveyed: Survey) -> dict[str, str]:
    """Return the content hashes, by id, of the indexed documents that a survey covers.

    These are the documents in the root of the survey, or in its part of the root, and documents of
    other roots whose files the survey found.
    """
    files = {os.path.join(surveyed.root, str(file.path)) for file in surveyed.walk.files}
    return {
        document.id: document.content_hash
        for document in listed
        if (
            document.root == surveyed.root
            and (surveyed.part is None or is_below(document.file, surveyed.part))
        )
        or (document.root != surveyed.root and document.file in files)
    }


def _take_part(walk: FolderListing, part: Path) -> FolderListing:
    """Return the files of a walk at or below `part`, a path relative to its folder."""
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
