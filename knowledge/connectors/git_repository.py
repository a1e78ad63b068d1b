"""Copies a revision of a local Git repository into a folder, without running any program from the
repository.

Only `rev-parse`, `ls-tree` and `cat-file` are run. They do not check out files, so neither hooks
nor filters of the repository run. No transport is allowed, so nothing is fetched. Paths come from
the repository and are checked; links and submodules are omitted.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from knowledge.documents.decoding import MAX_BYTES
from knowledge.documents.exports import make_address
from knowledge.documents.folder import DEEPEST_FOLDER, RuleBase
from knowledge.documents.folder_rules import RULES_FILE
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey, survey
from knowledge.errors import ConnectorError

MOST_FILES = 200_000
MOST_BYTES = 2_000_000_000
_LARGEST_SNIPPET = 256 * 1024
"""Maximum size in bytes of a file outside the requested folder that pages in it may include."""
_SECONDS = 120.0
_FILE, _PROGRAM, _LINK, _MODULE = b"100644", b"100755", b"120000", b"160000"
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.allow=never")


class RepositoryError(ConnectorError):
    """A repository, revision, or folder cannot be read."""

    def __init__(self, repository: Path, reason: str) -> None:
        super().__init__(str(repository), reason)


@dataclass(slots=True)
class RevisionCopy:
    """A revision that was copied: its name, and the `skipped` paths with the reasons."""

    revision: str
    files: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Blob:
    path: PurePosixPath
    identity: bytes
    size: int


def copy_revision(repository: Path, revision: str, folder: str, target: Path) -> RevisionCopy:
    """Copy the files of a revision into `target`, including small files outside of `folder`.

    `revision` is a branch, a tag or a commit; empty for the checked-out one. Raises
    `RepositoryError`, and `OSError` if `target` cannot be written.
    """
    commit = _find_commit(repository, revision)
    copied = RevisionCopy(revision or _name_branch(repository) or commit)
    wanted = PurePosixPath(folder)
    blobs = list(_list_blobs(repository, commit, wanted, copied))
    if not any(blob.path.is_relative_to(wanted) for blob in blobs):
        raise RepositoryError(
            repository,
            f"{folder or 'the repository'!r} contains no files at revision {copied.revision!r} "
            f"of {repository}",
        )
    paths = {blob.path for blob in blobs}
    if len(paths) < len(blobs) or any(paths.intersection(path.parents) for path in paths):
        raise RepositoryError(
            repository, f"the revision {copied.revision!r} has several files with the same name"
        )
    if len(blobs) > MOST_FILES or sum(blob.size for blob in blobs) > MOST_BYTES:
        raise RepositoryError(
            repository,
            f"a revision can have at most {MOST_FILES} files and {MOST_BYTES} bytes; specify a "
            "folder",
        )
    _write_blobs(repository, blobs, target)
    copied.files = len(blobs)
    return copied


def find_places(repository: Path) -> list[Path]:
    """Return all absolute paths of folders on this machine by which a repository can be named.

    `repository` may be a folder inside its working tree, its `.git` folder, or a bare repository.
    Raises `RepositoryError`.
    """
    process = _run(repository, "rev-parse", "--show-toplevel")
    if process.returncode != 0:
        process = _run(repository, "rev-parse", "--absolute-git-dir")
    if process.returncode != 0:
        raise RepositoryError(repository, f"there is no Git repository at {repository}")
    place = Path(os.fsdecode(process.stdout.removesuffix(b"\n")))
    top = place.parent if place.name == ".git" else place
    given = Path(os.path.abspath(repository))
    if not Path(os.path.realpath(given)).is_relative_to(os.path.realpath(top)):
        # The folders above it, whose rules of access hold, would be those of another place.
        raise RepositoryError(
            repository,
            f"the working tree of the repository at {given} is at {top}, because its "
            "configuration sets core.worktree",
        )
    if os.path.realpath(given) != os.path.realpath(top):
        # A folder inside the repository: its rules are those of the tree, and its name is not a
        # root.
        given = top
    places = dict.fromkeys((top, given, Path(os.path.realpath(top))))
    named = (place.with_name(place.name.removesuffix(".git")) for place in places)
    return list(dict.fromkeys((*places, *named)))


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

    `web_address` creates the URLs of files from their paths in the repository. Pages may refer to
    files outside of `folder`, but not outside of the repository. `places` contains the paths of the
    repository on this machine, see `find_places`.
    """
    bases = _list_bases(Path(os.path.realpath(tree)), folder, places)
    surveyed = survey(tree / folder, read_title, language_of, bases=bases)
    located = dict(surveyed.locations)
    for file in surveyed.walk.files:
        place = located[file.path]
        name = f"{tree.name}/{place.name}" if folder else place.name
        path = PurePosixPath(folder) / file.path
        url = make_address(web_address, path, copied.revision) if web_address else place.url
        located[file.path] = replace(place, name=name, url=url or place.url)
    top = Path(os.path.realpath(tree))
    surveyed.walk.files[:] = [replace(file, top=file.top and top) for file in surveyed.walk.files]
    surveyed.walk.skipped += copied.skipped
    return replace(surveyed, root=root, locations=located)


def _find_commit(repository: Path, revision: str) -> str:
    asked = f"{revision or 'HEAD'}^{{commit}}"
    process = _run(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", asked)
    if process.returncode != 0:
        reason = process.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        raise RepositoryError(
            repository,
            f"there is no Git repository with the revision {revision or 'HEAD'!r} at "
            f"{repository}{': ' if reason else ''}{reason}",
        )
    return process.stdout.decode("ascii").strip()


def _name_branch(repository: Path) -> str:
    process = _run(repository, "symbolic-ref", "--quiet", "--short", "HEAD")
    return process.stdout.decode("utf-8", "replace").strip()


def _list_blobs(
    repository: Path, commit: str, wanted: PurePosixPath, copied: RevisionCopy
) -> Iterator[_Blob]:
    process = _run(repository, "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    if process.returncode != 0:
        raise RepositoryError(repository, f"the files of {commit} in {repository} cannot be listed")
    for entry in process.stdout.split(b"\0"):
        head, tab, name = entry.partition(b"\t")
        if not tab:
            continue
        mode, _, identity, size = head.split()
        path = PurePosixPath(name.decode("utf-8", "replace"))
        is_inside = path.is_relative_to(wanted)
        reason = _find_fault(mode, path, size)
        is_rules = path.name == RULES_FILE and (is_inside or wanted.is_relative_to(path.parent))
        if reason and is_rules:
            raise RepositoryError(
                repository, f"{path}, which contains access rules, cannot be used: {reason}"
            )
        if reason:
            if is_inside:
                copied.skipped.append((str(path), reason))
        elif is_inside or is_rules or int(size) <= _LARGEST_SNIPPET:
            yield _Blob(path, identity, int(size))


def _find_fault(mode: bytes, path: PurePosixPath, size: bytes) -> str:
    """Return why a file in a repository is omitted, or an empty string."""
    if mode in (_LINK, _MODULE):
        return "links in a repository are not followed" if mode == _LINK else "a submodule"
    if mode not in (_FILE, _PROGRAM) or not size.isdigit():
        return "no file"
    is_unsafe = path.is_absolute() or any(
        part in ("..", ".git") or "\0" in part for part in path.parts
    )
    if is_unsafe or not path.parts or len(path.parts) > DEEPEST_FOLDER:
        return "the path leads outside the repository, or is too deep"
    return f"a file can have at most {MAX_BYTES} bytes" if int(size) > MAX_BYTES else ""


def _write_blobs(repository: Path, blobs: list[_Blob], target: Path) -> None:
    command = _command(repository, "cat-file", "--batch")
    with subprocess.Popen(  # noqa: S603 - our arguments; the objects are data
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RepositoryError(repository, "git cannot list files")
        for blob in blobs:
            process.stdin.write(blob.identity + b"\n")
            process.stdin.flush()
            head = process.stdout.readline().split()
            if len(head) != 3 or head[1] != b"blob" or int(head[2]) != blob.size:
                process.kill()
                raise RepositoryError(
                    repository, f"the file {blob.path} of {repository} cannot be read"
                )
            data = process.stdout.read(blob.size)
            process.stdout.read(1)
            place = target / blob.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)


def _run(repository: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(  # noqa: S603 - as above
            _command(repository, *words),
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            env=_environment(),
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise RepositoryError(repository, f"git cannot be executed: {error}") from error


def _command(repository: Path, *words: str) -> list[str]:
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    return ["git", *settings, "-C", str(repository), *words]


def _environment() -> dict[str, str]:
    """Return the environment for git, without variables that select other repositories or
    programs.
    """
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {
        **kept,
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _list_bases(tree: Path, folder: str, places: Sequence[Path]) -> list[RuleBase]:
    """Return the folders in which access rules are looked up; each of them can restrict the files.

    These are the copied revision, the working tree, and the folders above the repository. Rules in
    the repository, which other people may have written, cannot loosen those above it. Rules that
    were created after an old revision apply to it as well.
    """
    bases = [RuleBase(tree / folder, within=tree)]
    for place in places:
        bases.append(RuleBase(place / folder, within=place))
        bases.append(RuleBase(place / folder, outside=place))
    return bases
