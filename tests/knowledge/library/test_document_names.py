import pytest

from knowledge.index.listing import ListedDocument
from knowledge.library.document_names import DocumentNames


def make_listed(name: str, title: str, version: str = "") -> ListedDocument:
    return ListedDocument(
        id=name, title=title, source="s", root="r", language="en", chunks=1, stated_version=version
    )


NAMES = DocumentNames(
    [
        make_listed("ac2", "AC-2 Account Management"),
        make_listed("ac2-10@r4", "AC-2(10) Account Management | Shared", "r4"),
        make_listed("ac2-10@r5", "AC-2(10) Account Management | Shared", "r5"),
        make_listed("a6", "Article 6 Lawfulness"),
        make_listed("song", "Victrola (song)"),
        make_listed("it", "It"),
        make_listed("year", "1984"),
    ]
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("[Withdrawn: Incorporated into AC-2.]", ["ac2"]),
        ("see AC-2 (10)", ["ac2-10@r5"]),
        ("pursuant to Article 6(2)(a)", ["a6"]),
        ("article 60", []),
        ("the performer of Victrola was", ["song"]),
        ("VICTROLA (SONG)", ["song"]),
        ("it is", []),
        ("", []),
    ],
)
def test_a_text_names_documents_by_title_and_code(text: str, ids: list[str]) -> None:
    assert [one for name in NAMES.find_in(text) for one in name.document_ids] == ids


def test_a_version_that_is_asked_for_is_the_one_that_is_found() -> None:
    assert NAMES.find("ac-2(10)", "r4") == ["ac2-10@r4"]
    assert NAMES.find("AC-2(10)") == ["ac2-10@r5"]
    assert NAMES.find("unknown") == []


def test_a_long_text_is_read_in_time() -> None:
    assert len(NAMES.find_in("AC-2, " * 20_000)) == 20_000
