"""Surveys a copied revision of a repository, as a folder is surveyed."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from knowledge.connectors.git_repository import RevisionCopy
from knowledge.documents.exports import make_address
from knowledge.documents.folder import RuleBase
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
    places: Sequence[Path] = (),
) -> Survey:
    """Return the files of a revision that was copied into `tree`; `root` names the source.

    Files have the addresses that `web_address` makes of their paths in the repository. Pages may
    refer to files outside `folder`, but not outside the repository. `places` are the folders at
    which the repository is on this machine, see `find_places`.
    """
    bases = _list_bases(Path(os.path.realpath(tree)), folder, places)
    found = survey(tree / folder, read_title, language_of, bases=bases)
    located = dict(found.locations)
    for file in found.walk.files:
        place = located[file.path]
        name = f"{tree.name}/{place.name}" if folder else place.name
        path = PurePosixPath(folder) / file.path
        url = make_address(web_address, path, copied.revision) if web_address else place.url
        located[file.path] = replace(place, name=name, url=url or place.url)
    top = Path(os.path.realpath(tree))
    found.walk.files[:] = [replace(file, top=file.top and top) for file in found.walk.files]
    found.walk.skipped += copied.skipped
    return replace(found, root=root, locations=located)


def _list_bases(tree: Path, folder: str, places: Sequence[Path]) -> list[RuleBase]:
    """Return where rules of access are looked for: each of these places restricts the files.

    These are the copied revision, the working tree, and the folders above the repository. Rules of
    the repository, which others may have written, cannot loosen those above it. Rules that were
    made since an old revision hold for it, too.
    """
    bases = [RuleBase(tree / folder, within=tree)]
    for place in places:
        bases.append(RuleBase(place / folder, within=place))
        bases.append(RuleBase(place / folder, outside=place))
    return bases
