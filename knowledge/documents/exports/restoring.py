"""Restores what exports of other products hide: names, conversations and web addresses of pages."""

import re
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import quote

from knowledge.documents.exports.notion import restore_names
from knowledge.documents.exports.slack import restore_conversations
from knowledge.documents.exports.zip_archive import expand_archives
from knowledge.documents.folder import FolderListing

_ID = re.compile(r"(?:\A|[_ -])(\d{3,20})\Z")

Addresses = dict[PurePosixPath, str]


def restore_exports(found: FolderListing, web_address: str = "") -> Addresses:
    """Open the archives of a listing and restore the pages of exports in it.

    Returns the web addresses of pages by path: those that exports state, and those that
    `web_address` makes, see `make_address`.
    """
    expand_archives(found)
    conversations = restore_conversations(found, web_address)
    restored, stated = restore_names(found)
    found.files[:] = [
        replace(file, path=restored[file.path], origins=(*file.origins, file.path))
        if file.path in restored
        else file
        for file in found.files
    ]
    found.files.sort(key=lambda file: file.path)
    if not web_address:
        return stated
    made = {
        file.path: make_address(web_address, file.path)
        for file in found.files
        if file.path not in conversations
    }
    return {**stated, **{path: url for path, url in made.items() if url}, **conversations}


def make_address(pattern: str, path: PurePosixPath, revision: str = "") -> str:
    """Return the web address of a file, or an empty text.

    `pattern` contains `{path}`, `{page}` (the path without its ending), `{id}` (the number at the
    end of the file's name, as Confluence writes it) or `{revision}`; without any of them it is
    the address below which files have their paths.
    """
    if "{" not in pattern:
        return f"{pattern.rstrip('/')}/{quote(str(path))}"
    identity = _ID.search(path.stem)
    if "{id}" in pattern and identity is None:
        return ""
    values = {
        "{path}": quote(str(path)),
        "{page}": quote(str(path.with_suffix(""))),
        "{id}": identity[1] if identity is not None else "",
        "{revision}": quote(revision),
    }
    for name, value in values.items():
        pattern = pattern.replace(name, value)
    return pattern
