"""Copies the documents in a store (S3, Google, Azure, SFTP, WebDAV) into a folder, and surveys it.

Every store is an fsspec file system. Only files whose ETag, or time and size, have changed are
fetched again. If a file cannot be fetched, its last copy is kept; if a file no longer exists, its
copy is removed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ValidationError

from knowledge.connectors.store_values import SCHEMES, StoreOutcome
from knowledge.documents.decoding import MAX_BYTES
from knowledge.documents.folder import ARCHIVE, RuleBase, display_name, is_left_out
from knowledge.documents.folder_rules import RULES_FILE
from knowledge.documents.formats import SUFFIXES, list_skipped
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey, survey
from knowledge.errors import ConnectorError
from knowledge.index.listing import ListedDocument

MOST_FILES = 100_000
MOST_BYTES = 8_000_000_000
_STATE = "store.json"
_TAGS = ("ETag", "etag", "md5Hash", "content_md5")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "modified")
_LONGEST_REASON = 300


class _State(BaseModel, extra="forbid"):
    """The files in the copy, by path, each with its version."""

    files: dict[str, str] = {}


class _Copy:
    """Copies files sequentially, within the limits of a store."""

    def __init__(self, files: Any, tree: Path, state: _State) -> None:  # fsspec has no types
        self.fetched = 0
        self.failures: list[tuple[str, str]] = []
        self.skipped: list[tuple[str, str]] = []
        self.unknown: list[PurePosixPath] = []
        self.is_full = False
        self._files = files
        self._tree = tree
        self._state = state
        self._bytes = 0
        self._present: set[str] = set()

    def take(self, path: PurePosixPath, name: str, entry: Mapping[str, Any]) -> None:
        """Fetch a file unless its copy has the same version."""
        if any(is_left_out(part) for part in path.parts):
            return
        is_rules = path.name == RULES_FILE
        if self._is_taken(path, name, is_rules=is_rules):
            return
        if not is_rules and path.suffix.lower() not in SUFFIXES | {ARCHIVE}:
            self.unknown.append(path)
            return
        size = int(entry.get("size") or 0)
        self._present.add(str(path))
        self._bytes += size
        if size > MAX_BYTES:
            reason = f"a file can have at most {MAX_BYTES} bytes; this one has {size}"
            self.skipped.append((str(path), reason))
        elif self._bytes > MOST_BYTES:
            self.is_full = True
            self.failures.append((str(path), f"a store can have at most {MOST_BYTES} bytes"))
        elif self._state.files.get(str(path)) != (mark := _mark_version(entry)):
            self._fetch(path, name, mark, is_rules=is_rules)

    def _is_taken(self, path: PurePosixPath, name: str, *, is_rules: bool) -> bool:
        """Return whether the name of a file is already used by another file.

        Names that differ only in invisible characters are treated as equal. Such a file must
        replace neither another file nor the access rules of a folder.
        """
        is_imitation = is_rules and not _keeps_name(path, name)
        if not is_imitation and str(path) not in self._present:
            return False
        self.skipped.append((str(path), f"the name {name!r} resembles the name of another file"))
        return True

    def _fetch(self, path: PurePosixPath, name: str, mark: str, *, is_rules: bool) -> None:
        target = self._tree / path
        waiting = target.with_name(f".{target.name}.new")
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._files.get_file(name, str(waiting))
            waiting.replace(target)
        except Exception as error:
            waiting.unlink(missing_ok=True)
            if is_rules:
                # It is unknown who may read the documents below.
                raise ConnectorError(str(path), _explain(error, str(path))) from error
            self.failures.append((str(path), _explain(error, str(path))))
            return
        self._state.files[str(path)] = mark
        self.fetched += 1

    def remove_gone(self) -> None:
        """Remove the copies of files that no longer exist in the store."""
        for gone in set(self._state.files) - self._present:
            (self._tree / gone).unlink(missing_ok=True)
            del self._state.files[gone]


def copy_store(place: str, folder: Path) -> StoreOutcome:
    """Update the copy of a store in `folder`; raises `ConnectorError`."""
    files, top = _open(place)
    try:
        listed_files = list(_list_files(files, top))
    except Exception as error:
        raise ConnectorError(place, _explain(error, place)) from error
    tree = locate_copy(place, folder)
    tree.mkdir(parents=True, exist_ok=True, mode=0o700)
    state = _read_state(folder)
    copied = _Copy(files, tree, state)
    # Files whose names stay as they are come first, so that no other file takes their place.
    listed_files.sort(key=lambda listed: not _keeps_name(listed[0], listed[1]))
    for path, name, entry in listed_files[:MOST_FILES]:
        copied.take(path, name, entry)
    is_partial = len(listed_files) > MOST_FILES or copied.is_full
    if not is_partial:
        copied.remove_gone()
    (folder / _STATE).write_text(state.model_dump_json(), "utf-8")
    return StoreOutcome(
        fetched=copied.fetched,
        failures=tuple(copied.failures),
        skipped=(
            *copied.skipped,
            *((str(path), reason) for path, reason in list_skipped(copied.unknown)),
        ),
        is_partial=is_partial,
    )


def locate_copy(place: str, folder: Path) -> Path:
    """Return the folder that contains the files; document names begin with its name."""
    name = PurePosixPath(place.partition("://")[2]).name
    return folder / "files" / (display_name(name).strip(".") or "store")


def survey_store(
    place: str,
    folder: Path,
    outcome: StoreOutcome,
    web_address: str,
    listed: Sequence[ListedDocument],
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    """Return the files in the copy of a store; the access rules are those in the store."""
    tree = Path(os.path.realpath(locate_copy(place, folder)))
    bases = [RuleBase(tree, within=tree)]
    surveyed = survey(tree, read_title, language_of, web_address, bases=bases)
    surveyed.walk.failures += [(PurePosixPath(path), reason) for path, reason in outcome.failures]
    surveyed.walk.skipped += outcome.skipped
    surveyed.walk.is_partial = outcome.is_partial
    return replace(surveyed, root=place)


def _open(place: str) -> tuple[Any, str]:  # as above
    """Return the file system for a URL, and the path in it; raises `ConnectorError`."""
    scheme, _, rest = place.partition("://")
    try:
        if scheme in ("webdav", "webdavs"):
            from webdav4.fsspec import WebdavFileSystem

            user, password = (os.environ.get(f"WEBDAV_{name}") for name in ("USERNAME", "PASSWORD"))
            base = f"{'https' if scheme == 'webdavs' else 'http'}://{rest}"
            auth = (user, password or "") if user else None
            return WebdavFileSystem(base, auth=auth, skip_instance_cache=True), ""
        from fsspec.core import url_to_fs

        options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
        if scheme == "sftp":
            options = _options_of_sftp()
        files, path = url_to_fs(place, **options)
    except ImportError as error:
        raise ConnectorError(
            place,
            f"{scheme}:// requires the extra {SCHEMES[scheme]!r}: install "
            f"refdesk[{SCHEMES[scheme]}]",
        ) from error
    except Exception as error:
        raise ConnectorError(place, _explain(error, place)) from error
    return files, str(path)


def _options_of_sftp() -> dict[str, Any]:
    """Return the options from the environment; keys are taken from the user's files and the SSH
    agent.
    """
    stated = {"password": "SFTP_PASSWORD", "known_hosts": "SFTP_KNOWN_HOSTS"}
    chosen = {option: os.environ[name] for option, name in stated.items() if name in os.environ}
    return {"skip_instance_cache": True, **chosen}


def _list_files(files: Any, top: str) -> Iterator[tuple[PurePosixPath, str, Mapping[str, Any]]]:
    """Yield the path, name, and entry of each file; paths that lead out of the store are
    omitted.
    """
    listed = files.find(top, detail=True)
    prefix = top.strip("/")
    for name, entry in sorted(listed.items()):
        bare = name.strip("/")
        inside = bare.removeprefix(prefix).strip("/") or PurePosixPath(bare).name
        path = PurePosixPath(*(display_name(part) for part in inside.split("/") if part))
        if entry.get("type") == "file" and path.parts and ".." not in path.parts:
            yield path, name, entry


def _keeps_name(path: PurePosixPath, name: str) -> bool:
    """Return whether the copy of a file has the same name as the file in the store."""
    return f"/{name.strip('/')}".endswith(f"/{path}")


def _mark_version(entry: Mapping[str, Any]) -> str:
    """Return a value that changes with a file: its ETag or, without one, its time and size."""
    tags = [str(entry[name]) for name in (*_TAGS, *_TIMES) if entry.get(name)]
    return f"{tags[0] if tags else ''} {entry.get('size')}"


def _read_state(folder: Path) -> _State:
    try:
        return _State.model_validate_json((folder / _STATE).read_bytes())
    except (OSError, ValidationError):
        # Everything is fetched again: that costs time and loses nothing.
        return _State()


def _explain(error: Exception, place: str) -> str:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
    return (
        f"{place} could not be read ({reason}). Check the address, the network and the "
        f"credentials in the environment; its documents are kept in the index"
    )
