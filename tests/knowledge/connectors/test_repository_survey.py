"""Rules of access hold for the pages of a repository: its own, and those around it."""

from pathlib import Path

import pytest

from knowledge.connectors.git_repository import (
    RepositoryError,
    copy_revision,
    find_places,
    survey_copy,
)
from tests.knowledge.connectors.test_git_repository import Repository
from tests.knowledge.documents.test_folder import write_rules

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "clones").mkdir()
    return Repository(tmp_path / "clones" / "product")


class Copies:
    """Copies revisions into folders, and surveys them."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._made = 0
        self.skipped: list[tuple[str, str]] = []

    def find_readers(
        self, place: Path, revision: str = "", folder: str = ""
    ) -> dict[str, tuple[str, ...]]:
        """Return the groups of each page of a repository by its path."""
        self._made += 1
        tree = self._target / str(self._made) / place.name
        tree.mkdir(parents=True)
        copied = copy_revision(place, revision, folder, tree)
        survey = survey_copy(
            "git", tree, folder, copied, lambda *_: "", lambda _: "en", places=find_places(place)
        )
        self.skipped = [(str(path), reason) for path, reason in survey.walk.skipped]
        return {str(path): location.groups for path, location in survey.locations.items()}


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path / "copies")


@pytest.mark.parametrize("folder", ["", "docs"])
def test_rules_above_a_clone_hold_for_its_pages(
    repository: Repository, copies: Copies, tmp_path: Path, folder: str
) -> None:
    repository.commit(docs__hr_md="# Pay", docs__open_md="# Open")
    write_rules(tmp_path, {"clones/product/docs/hr.md": ["hr"]})

    readers = copies.find_readers(repository.folder, folder=folder)

    below = "" if folder else "docs/"
    assert readers == {f"{below}hr.md": ("hr",), f"{below}open.md": ()}


def test_rules_of_the_revision_hold_in_all_folders_of_it(
    repository: Repository, copies: Copies
) -> None:
    repository.commit(docs__hr_md="# Pay")
    write_rules(repository.folder, {"docs/*": ["hr"]})
    committed = repository.commit(docs__open_md="# Open")
    (repository.folder / "refdesk.toml").unlink()

    assert copies.find_readers(repository.folder, committed, "docs") == {
        "hr.md": ("hr",), "open.md": ("hr",),
    }  # fmt: skip


def test_rules_of_a_repository_cannot_loosen_those_above_it(
    repository: Repository, copies: Copies
) -> None:
    write_rules(repository.folder, {"*": []})
    repository.commit(pay_md="# Pay")
    write_rules(repository.folder.parent, {"product/*": ["hr"]})

    assert copies.find_readers(repository.folder) == {"pay.md": ("hr",)}

    write_rules(repository.folder, {"*": ["everybody"]})
    repository.commit(more_md="# More")

    assert copies.find_readers(repository.folder) == {}
    assert "pay.md is for everybody; pay.md is for hr" in dict(copies.skipped)["pay.md"]


def test_an_old_revision_without_rules_does_not_publish_what_is_restricted_since(
    repository: Repository, copies: Copies
) -> None:
    old = repository.commit(hr__pay_md="# Pay")
    write_rules(repository.folder, {"hr/*": ["hr"]})
    repository.commit(open_md="# Open")

    assert copies.find_readers(repository.folder, old) == {"hr/pay.md": ("hr",)}


@pytest.mark.parametrize("place", ["product/.git", "product/hr", "link"])
def test_rules_hold_whatever_folder_of_the_clone_is_named(
    repository: Repository, copies: Copies, place: str
) -> None:
    repository.commit(hr__pay_md="# Pay")
    clones = repository.folder.parent
    (clones / "link").symlink_to(repository.folder)
    write_rules(clones, {"product/hr/*": ["hr"]})

    assert copies.find_readers(clones / place) == {"hr/pay.md": ("hr",)}


@pytest.mark.parametrize("name", ["product", "product.git"])
def test_rules_hold_for_a_bare_clone_with_and_without_its_ending(
    repository: Repository, copies: Copies, tmp_path: Path, name: str
) -> None:
    repository.commit(pay_md="# Pay")
    bare = tmp_path / "product.git"
    repository.run("clone", "--quiet", "--bare", ".", str(bare))
    write_rules(tmp_path, {f"{name}/pay.md": ["hr"]})

    assert copies.find_readers(bare) == {"pay.md": ("hr",)}


def test_rules_that_a_revision_hides_behind_a_link_stop_its_ingestion(
    repository: Repository, tmp_path: Path
) -> None:
    (repository.folder / "rules").write_text("")
    (repository.folder / "refdesk.toml").symlink_to("rules")
    repository.commit(docs__pay_md="# Pay")

    with pytest.raises(RepositoryError, match="access rules, cannot be used: links"):
        copy_revision(repository.folder, "", "docs", tmp_path / "copy")
