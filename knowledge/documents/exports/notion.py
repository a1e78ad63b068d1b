"""Restores the names of pages in an export of Notion (Markdown, HTML and CSV).

The export adds the id of each page, 32 hexadecimal digits, to the names of its file and its folder.
"""

import re
from pathlib import PurePosixPath

from knowledge.documents.folder import FolderListing

_ID = re.compile(r"\A(.{0,300}) ([0-9a-f]{32})(_all)?\Z", re.DOTALL)
_OUTER = re.compile(r"\AExport-[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}\Z")
_ADDRESS = "https://www.notion.so/{}"


def restore_names(
    found: FolderListing,
) -> tuple[dict[PurePosixPath, PurePosixPath], dict[PurePosixPath, str]]:
    """Return the restored paths of exported pages, by path, and their addresses, by restored path.

    A page whose name is taken keeps the first digits of its id. A table that is exported twice,
    filtered and whole, is read once.
    """
    paths = {file.path for file in found.files}
    restored: dict[PurePosixPath, PurePosixPath] = {}
    addresses: dict[PurePosixPath, str] = {}
    taken = set(paths)
    for path in sorted(paths):
        match = _ID.match(path.stem)
        folders = [_clean(part) for part in path.parts[:-1] if not _OUTER.match(part)]
        if match is None:
            if folders != list(path.parts[:-1]) and any(_ID.match(part) for part in path.parts):
                restored[path] = PurePosixPath(*folders, path.name)
            continue
        new = PurePosixPath(*folders, f"{match[1]}{path.suffix}")
        if new in taken:
            new = new.with_name(f"{match[1]} {match[2][:6]}{path.suffix}")
        taken.add(new)
        restored[path] = new
        addresses[new] = _ADDRESS.format(match[2])
    return restored, addresses


def _clean(part: str) -> str:
    match = _ID.match(part)
    return match[1] if match is not None else part
