"""`refdesk documents`: what the index holds, by id, file and pattern."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(run: Run, elsewhere: Path) -> Path:
    """An ingested folder with a folder in it."""
    folder = elsewhere / "handbook"
    (folder / "hr").mkdir(parents=True)
    (folder / "billing.md").write_text("# Billing\n\nInvoices are sent on the first day.\n")
    (folder / "hr" / "leave.md").write_text("# Leave\n\nEverybody has 27 days of leave a year.\n")
    (folder / "hr" / "sick.md").write_text("# Sickness\n\nCall your manager before nine.\n")
    assert run("ingest", str(folder)).status == 0
    return folder


def list_ids(run: Run, *patterns: str) -> list[str]:
    result = run("documents", "list", *patterns, "--json")
    return [document["id"] for document in json.loads(result.out)["documents"]]


def test_documents_are_listed_by_id_file_folder_and_pattern(run: Run, folder: Path) -> None:
    assert list_ids(run) == ["handbook/billing", "handbook/hr/leave", "handbook/hr/sick"]
    assert list_ids(run, "handbook/billing") == ["handbook/billing"]
    assert list_ids(run, str(folder / "hr" / "leave.md")) == ["handbook/hr/leave"]
    assert list_ids(run, "handbook/hr") == ["handbook/hr/leave", "handbook/hr/sick"]
    assert list_ids(run, "*sick*") == ["handbook/hr/sick"]

    shown = run("documents", "show", "hr/leave.md")
    assert "title: Leave" in shown.out
    assert f"file: {folder / 'hr' / 'leave.md'}" in shown.out


def test_a_record_is_shown_and_removed_by_its_file(run: Run, folder: Path) -> None:
    record = {"id": "pay-1", "source": "https://docs.example/pay", "content": "Paid monthly."}
    (folder / "records.json").write_text(json.dumps([record]))
    run("ingest", str(folder))

    shown = run("documents", "show", "pay-1")
    removed = run("documents", "remove", str(folder / "records.json"))

    assert f"file: {folder / 'records.json'}\n" in shown.out
    assert "url: https://docs.example/pay\n" in shown.out
    assert "removed pay-1" in removed.out


def test_a_folder_that_was_deleted_can_be_cleared(run: Run, folder: Path) -> None:
    shutil.rmtree(folder)

    removed = run("documents", "remove", str(folder))

    assert removed.status == 0
    assert "removed 3 documents" in removed.out
    empty = run("documents", "list")
    assert empty.status == 0
    assert f"there are no documents in {folder.parent / 'data'}" in empty.out


def test_nothing_is_removed_without_a_name_or_with_an_unknown_one(run: Run, folder: Path) -> None:
    nameless = run("documents", "remove")
    unknown = run("documents", "remove", "nobody")

    assert nameless.status == 1
    assert "requires an id, a file, a folder or a pattern" in nameless.err
    assert unknown.status == 3
    assert "there are no documents that match 'nobody'" in unknown.out
    assert len(list_ids(run)) == 3


def test_a_subfolder_that_is_ingested_again_doubles_nothing(run: Run, folder: Path) -> None:
    (folder / "hr" / "sick.md").unlink()
    (folder / "hr" / "travel.md").write_text("# Travel\n\nBook at the travel desk.\n")

    result = run("ingest", str(folder / "hr"))

    assert "1 added, 1 unchanged, 1 removed" in result.out
    assert list_ids(run) == ["handbook/billing", "handbook/hr/leave", "handbook/hr/travel"]


def test_a_folder_takes_over_the_folder_in_it_that_was_ingested_before(
    run: Run, folder: Path
) -> None:
    run("documents", "remove", "*")
    run("ingest", str(folder / "hr"))
    assert list_ids(run) == ["hr/leave", "hr/sick"]

    run("ingest", str(folder))

    assert list_ids(run) == ["handbook/billing", "handbook/hr/leave", "handbook/hr/sick"]
