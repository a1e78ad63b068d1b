"""What a folder states about its documents: who may read them."""

from pathlib import Path

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.folder_rules import RULES_FILE, FolderRules, StatedByFolder

HR = '[[documents]]\npath = "hr/*"\ngroups = ["hr"]\n'


def write_rules(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RULES_FILE).write_text(text)
    return folder


def groups_of(file: Path) -> tuple[str, ...]:
    return FolderRules().find(file).groups


def test_a_pattern_covers_a_folder_and_all_below_it(tmp_path: Path) -> None:
    write_rules(tmp_path, HR)

    assert groups_of(tmp_path / "hr" / "leave.md") == ("hr",)
    assert groups_of(tmp_path / "hr" / "deep" / "er" / "leave.pdf") == ("hr",)
    assert groups_of(tmp_path / "hrx.md") == ()
    assert groups_of(tmp_path / "public" / "hr" / "leave.md") == ()


def test_the_last_table_that_matches_counts(tmp_path: Path) -> None:
    write_rules(tmp_path, f'{HR}[[documents]]\npath = "hr/holidays.md"\ngroups = []\n')

    assert groups_of(tmp_path / "hr" / "leave.md") == ("hr",)
    assert groups_of(tmp_path / "hr" / "holidays.md") == ()


def test_the_file_nearest_to_a_document_counts_and_the_others_hold_where_it_is_silent(
    tmp_path: Path,
) -> None:
    write_rules(tmp_path, f'{HR}[[documents]]\npath = "*"\nversion = "2"\n')
    write_rules(tmp_path / "hr", '[[documents]]\npath = "pay/*"\ngroups = ["board"]\n')

    stated = FolderRules().find(tmp_path / "hr" / "pay" / "bonus.md")
    assert stated == StatedByFolder(("board",), "2")
    assert groups_of(tmp_path / "hr" / "leave.md") == ("hr",)


def test_rules_above_the_ingested_folder_hold_too(tmp_path: Path) -> None:
    write_rules(tmp_path, HR)
    rules = FolderRules()

    assert rules.find(tmp_path / "hr" / "leave.md").groups == ("hr",)
    assert list(rules.find_unused(tmp_path / "hr")) == []


def test_a_rule_that_matches_nothing_is_named(tmp_path: Path) -> None:
    write_rules(tmp_path, HR.replace("hr/*", "HR/*"))
    rules = FolderRules()

    assert rules.find(tmp_path / "hr" / "leave.md").groups == ()
    assert list(rules.find_unused(tmp_path)) == [(tmp_path / RULES_FILE, "HR/*")]


@pytest.mark.parametrize(
    "text",
    [
        "documents = 3",
        "[[rules]]\npath = 'a'",
        "[[documents]]\npath = 'hr/*'",
        "[[documents]]\npath = 'hr/*'\ngroup = ['hr']",
        "[[documents]]\ngroups = ['hr']\nversion = '1'",
        "[[documents]]\npath = '/hr/*'\ngroups = ['hr']",
        "[[documents]]\npath = 'hr/*'\ngroups = 'hr'",
        "[[documents]]\npath = 'hr/*'\ngroups = ['']",
        "[[documents]]\npath = 'hr/*'\nversion = 2",
        "[[documents]\n",
        "\udcff",
        "",
    ],
)
def test_rules_that_cannot_be_used_stop_the_ingestion_instead_of_publishing(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / RULES_FILE).write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(WrongFormatError, match=RULES_FILE):
        FolderRules().find(tmp_path / "hr" / "leave.md")
