"""Surveys a copied revision of a repository, as a folder is surveyed."""

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath

from knowledge.connectors.git_repository import RevisionCopy
from knowledge.documents.exports.restoring import make_address
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey, survey


def survey_copy(
    root: str,
    tree: Path,
    folder: str,
    copied: RevisionCopy,
    read_title: ReadTitle,
    language_of: LanguageOf,
    *,
    web_address: str = "",
) -> Survey:
    """Return the files of a revision that was copied into `tree`; `root` names the source.

    Files have the addresses that `web_address` makes of their paths in the repository. Pages may
    refer to files outside `folder`, but not outside the repository.
    """
    found = survey(tree / folder, read_title, language_of)
    places = dict(found.locations)
    for file in found.walk.files:
        place = places[file.path]
        name = f"{tree.name}/{place.name}" if folder else place.name
        path = PurePosixPath(folder) / file.path
        url = make_address(web_address, path, copied.revision) if web_address else place.url
        places[file.path] = replace(place, name=name, url=url or place.url)
    top = Path(os.path.realpath(tree))
    found.walk.files[:] = [replace(file, top=file.top and top) for file in found.walk.files]
    found.walk.skipped += copied.skipped
    return replace(found, root=root, locations=places)
