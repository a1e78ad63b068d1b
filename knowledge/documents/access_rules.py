"""Decides who may read the files of a source: by every name that a file has or had.

A page of an archive, an export or a repository has another name than the file that it comes from.
The rules of folders hold for both: where several names are matched, only the groups that each rule
states may read the page. A page that no group could read is left out, never published.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from knowledge.documents.folder import ARCHIVE, FolderListing, FoundFile
from knowledge.documents.metadata.folder_rules import FolderRules, StatedByFolder

Stated = dict[PurePosixPath, StatedByFolder]
_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class RuleBase:
    """A folder in which the files of a source are, or would be: its rules hold for them.

    The rules of the folders above it hold, too: of those in `within`, if it is set, and of none in
    `outside`. All paths are absolute.
    """

    folder: Path
    within: Path | None = None
    outside: Path | None = None

    def find(self, rules: FolderRules, name: PurePosixPath) -> StatedByFolder:
        """Return what folders state about a file of this name; raises as `FolderRules.find`."""
        return rules.find(self.folder / name, within=self.within, outside=self.outside)


def state_access(found: FolderListing, bases: Sequence[RuleBase]) -> tuple[Stated, FolderRules]:
    """Return what folders state about each file, and the rules that were used.

    Files whose rules contradict each other are taken out of the listing, with the reason. Raises
    `OSError` or a `ReadingError` if rules cannot be read.
    """
    rules = FolderRules()
    stated: Stated = {}
    for file in found.files:
        each = [(name, base.find(rules, name)) for name in _list_names(file) for base in bases]
        restricting = [(name, one.groups) for name, one in each if one.groups]
        groups = _intersect([groups for _, groups in restricting])
        if restricting and not groups:
            found.skipped.append((file.path, _describe_conflict(restricting)))
            continue
        version = next((one.version for _, one in each if one.version), "")
        stated[file.path] = StatedByFolder(groups, version)
    found.files[:] = [file for file in found.files if file.path in stated]
    return stated, rules


def _list_names(file: FoundFile) -> list[PurePosixPath]:
    """Return the names of a file and of all that it comes from; its archives are among them."""
    names = dict.fromkeys((file.path, *file.origins))
    archives = (
        folder for name in names for folder in name.parents if folder.suffix.lower() == ARCHIVE
    )
    return list(dict.fromkeys((*names, *archives)))


def _intersect(restrictions: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the groups that are in each restriction, in the order of the first one."""
    if not restrictions:
        return ()
    first, *others = restrictions
    return tuple(group for group in first if all(group in other for other in others))


def _describe_conflict(restricting: Sequence[tuple[PurePosixPath, tuple[str, ...]]]) -> str:
    shown = dict.fromkeys(f"{name} is for {', '.join(groups)}" for name, groups in restricting)
    listed = "; ".join(list(shown)[:_MOST_SHOWN])
    return f"its rules of access name no common group, so that it is left out: {listed}"
