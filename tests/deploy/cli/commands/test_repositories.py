"""`refdesk ingest git:PATH`."""

from pathlib import Path

import pytest

from tests.knowledge.connectors.test_git_repository import Repository
from tests.support.command_line import Run, one_line

pytestmark = pytest.mark.slow


def test_a_revision_is_ingested_again_when_it_changes(run: Run, elsewhere: Path) -> None:
    repository = Repository(elsewhere / "product")
    repository.commit(docs__a_md="# Setup\n\nInstall it with pip.", docs__b_md="# B\n\nText.")
    words = ("ingest", "git:product", "--folder", "docs", "--web-address", "https://h.test/{path}")

    first = run(*words)
    (repository.folder / "docs" / "b.md").unlink()
    repository.commit(docs__a_md="# Setup\n\nInstall it with uv.", docs__c_md="# C\n\nMore.")
    second = run(*words)
    shown = run("documents", "show", "*a", "--json").json["documents"]

    assert "documents: 2 added; " in first.out
    assert "documents: 1 added, 1 changed, 1 removed; " in second.out
    assert [one["id"] for one in shown] == ["product/docs/a"]
    assert shown[0]["url"] == "https://h.test/docs/a.md"
    assert list((elsewhere / "data").glob("git-*")) == []


def test_a_folder_that_is_no_repository_is_said_and_loses_nothing(
    run: Run, elsewhere: Path
) -> None:
    repository = Repository(elsewhere / "product")
    repository.commit(a_md="# Setup\n\nInstall it with pip.")
    run("ingest", "git:product")
    (repository.folder / ".git").rename(elsewhere / "moved")

    failed = run("ingest", "git:product", "--json")

    assert failed.status == 6
    assert (
        "expected a Git repository with the revision 'HEAD'" in failed.json["failed"][0]["reason"]
    )
    assert len(run("documents", "list", "--json").json["documents"]) == 1
    assert "are for repositories" in one_line(run("ingest", "product", "--folder", "docs"))
