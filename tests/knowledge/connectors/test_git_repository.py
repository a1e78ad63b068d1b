"""Revisions of local Git repositories are read, and nothing in them runs."""

import os
import subprocess
from pathlib import Path

import pytest

from knowledge.connectors.git_repository import (
    RepositoryError,
    copy_revision,
    find_places,
    survey_copy,
)

pytestmark = pytest.mark.slow


class Repository:
    """A repository in which a test commits files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.run("init", "--quiet", "--initial-branch=main")

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.test", *words],
            cwd=self.folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            place = self.folder / name.replace("__", "/").replace("_md", ".md")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        self.run("add", "--all")
        self.run("commit", "--quiet", "--message", "change")
        return self.run("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "product")


def list_files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_a_revision_is_copied_and_not_the_files_that_are_checked_out(
    repository: Repository, tmp_path: Path
) -> None:
    first = repository.commit(docs__a_md="# A\n\nOne.")
    repository.commit(docs__a_md="# A\n\nTwo.", docs__b_md="# B")
    (repository.folder / "docs" / "dirty.md").write_text("# Not committed")
    old, new = tmp_path / "old", tmp_path / "new"

    assert copy_revision(repository.folder, first, "docs", old).revision == first
    assert copy_revision(repository.folder, "", "docs", new).revision == "main"

    assert list_files(old) == ["docs/a.md"]
    assert (old / "docs" / "a.md").read_text() == "# A\n\nOne."
    assert list_files(new) == ["docs/a.md", "docs/b.md"]


def test_links_and_programs_of_a_repository_do_nothing(
    repository: Repository, tmp_path: Path
) -> None:
    (repository.folder / "passwd.md").symlink_to("/etc/passwd")
    proof = tmp_path / "proof"
    hook = repository.folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {proof}\n")
    hook.chmod(0o755)
    repository.run("config", "filter.evil.smudge", f"touch {proof}")
    repository.run("config", "core.fsmonitor", f"touch {proof}")
    (repository.folder / ".gitattributes").write_text("*.md filter=evil\n")
    repository.run("-c", "core.fsmonitor=false", "add", "--all")
    repository.run("-c", "core.fsmonitor=false", "commit", "--quiet", "--message", "links")
    proof.unlink(missing_ok=True)

    copied = copy_revision(repository.folder, "", "", tmp_path / "copy")

    assert copied.skipped == [("passwd.md", "links in a repository are not followed")]
    assert list_files(tmp_path / "copy") == [".gitattributes"]
    assert not proof.exists()


@pytest.mark.parametrize(
    ("revision", "folder", "reason"),
    [
        ("nowhere", "", "with the revision 'nowhere'"),
        ("--output=x", "", "with the revision '--output=x'"),
        ("a\0b", "", "embedded null byte"),
        ("", "manual", "'manual' contains no files at revision 'main'"),
    ],
)
def test_a_missing_branch_or_folder_is_reported(
    repository: Repository, tmp_path: Path, revision: str, folder: str, reason: str
) -> None:
    repository.commit(a_md="# A")

    with pytest.raises(RepositoryError, match=reason):
        copy_revision(repository.folder, revision, folder, tmp_path / "copy")


def test_a_repository_cannot_move_itself_out_of_the_folders_whose_rules_restrict_it(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a_md="# A")
    (tmp_path / "elsewhere").mkdir()
    repository.run("config", "core.worktree", str(tmp_path / "elsewhere"))

    with pytest.raises(RepositoryError, match=r"its configuration sets core\.worktree"):
        find_places(repository.folder)


@pytest.mark.parametrize(
    "entries",
    [[(b"100644", b"\xfe.md"), (b"100644", b"\xff.md")], [(b"100644", b"a"), (b"40000", b"a")]],
)
def test_a_revision_with_two_files_of_one_name_is_refused(
    repository: Repository, tmp_path: Path, entries: list[tuple[bytes, bytes]]
) -> None:
    repository.commit(a_md="# A")
    objects = {
        mode: bytes.fromhex(repository.run("rev-parse", name))
        for mode, name in ((b"100644", "HEAD:a.md"), (b"40000", "HEAD:"))
    }
    tree = subprocess.run(
        ["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"],
        cwd=repository.folder, check=True, capture_output=True,
        input=b"".join(mode + b" " + name + b"\0" + objects[mode] for mode, name in entries),
    ).stdout.decode().strip()  # fmt: skip
    commit = repository.run("commit-tree", "-m", "two", tree)

    with pytest.raises(RepositoryError, match="several files with the same name"):
        copy_revision(repository.folder, commit, "", tmp_path / "copy")


def test_pages_have_addresses_and_may_use_files_of_the_whole_repository(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(docs__guide__a_md="# A\n\nOne.", examples__b_md="# B")
    tree = tmp_path / "copy" / "product"
    copied = copy_revision(repository.folder, "", "docs", tree)

    survey = survey_copy(
        "git:product/docs", tree, "docs", copied, lambda *_: "", lambda _: "en",
        web_address="https://h.test/blob/{revision}/{path}",
    )  # fmt: skip

    (file,) = survey.walk.files
    assert file.top == Path(os.path.realpath(tree))
    place = survey.locations[file.path]
    assert (place.name, place.folders) == ("product/docs/guide/a", ("Guide",))
    assert place.url == "https://h.test/blob/main/docs/guide/a.md"
