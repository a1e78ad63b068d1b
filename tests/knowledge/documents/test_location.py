from pathlib import PurePosixPath

import pytest

from knowledge.documents.location import humanise, language_folders, language_tag, locate


def folders(*paths: str) -> set[str]:
    return {str(folder) for folder in language_folders(PurePosixPath(path) for path in paths)}


@pytest.mark.parametrize(
    ("name", "words"),
    [("01-rate_plans", "Rate plans"), ("2024-report", "Report"), ("API", "API"), ("404", "404")],
)
def test_names_become_words(name: str, words: str) -> None:
    assert humanise(name) == words


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("de", "de"),
        ("pt-BR", "pt-br"),
        ("zh_Hans", "zh-hans"),
        ("docs", None),
        ("dev", None),
        ("", None),
    ],
)
def test_a_folder_may_state_a_language(name: str, code: str | None) -> None:
    assert language_tag(name) == code


def test_a_code_that_is_a_usual_word_needs_a_witness() -> None:
    assert folders("it/a.md", "b.md") == set()
    assert folders("it/a.md", "de/a.md") == {"it", "de"}
    assert folders("it/a.md", "a.md") == {"it"}
    assert folders("docs/de/a.md") == {"docs/de"}


def test_the_language_folder_is_no_part_of_a_pages_name() -> None:
    path = PurePosixPath("docs/de/guide/hours.md")

    place = locate(path, {PurePosixPath("docs/de")})

    assert (place.name, place.language, place.folders) == (
        "docs/guide/hours",
        "de",
        ("Docs", "Guide"),
    )


def test_a_language_may_stand_in_the_files_name() -> None:
    place = locate(PurePosixPath("guide/hours.de.md"), ())

    assert (place.name, place.language) == ("guide/hours", "de")


def test_a_print_and_a_page_of_one_name_are_two() -> None:
    assert locate(PurePosixPath("a.pdf"), ()).name == "a.pdf"
    assert locate(PurePosixPath("a.html"), ()).name == "a"
