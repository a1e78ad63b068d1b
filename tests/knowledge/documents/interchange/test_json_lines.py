import json

import pytest

from knowledge.documents.errors import NoTextError, WrongFormatError
from knowledge.documents.interchange import json_lines
from knowledge.documents.page import BlockKind, Page


def read(**record: object) -> Page:
    return json_lines.read(json.dumps(record).encode(), "all.jsonl")


def test_a_prepared_document_keeps_what_was_prepared() -> None:
    page = read(
        id="doc-1",
        source="guide/plans.md",
        crumbs=["Guide", "Plans"],
        description="About plans",
        content="# Plans\n\nText.",
        summary="Short",
        keypoints=["one"],
        keywords=["plan"],
        chunks=["Text.", {"text": "More."}],
    )

    assert (page.id, page.name, page.source) == ("doc-1", "doc-1", "guide/plans.md")
    assert (page.title, page.crumbs) == ("Plans", ("Guide", "Plans"))
    assert page.prepared is not None
    assert page.prepared.chunks == ("Text.", "More.")
    assert (page.description, page.keywords) == ("About plans", ("plan",))


def test_versions_of_one_page_share_its_name_and_differ_in_language() -> None:
    english = read(page_id="a/b", lang="en", title="Hours", markdown="# Hours\n\nOpen.")
    german = read(page_id="a/b", lang="de", title="Zeiten", markdown="# Zeiten\n\nOffen.")

    assert english.name == german.name == "a/b"
    assert (english.language, german.language) == ("en", "de")


def test_stated_anchors_of_headings_win_over_slugs() -> None:
    headings = [{"level": 2, "text": "Peak hours", "anchor": "peak-time"}]

    page = read(page_id="p", markdown="# Plans\n\n## Peak `hours`\n", headings=headings)

    assert [block.anchor for block in page.blocks] == ["plans", "peak-time"]


def test_a_passage_is_plain_text_by_paragraphs() -> None:
    page = read(passage_id="p1", doc="d", text="One # two.\n\nThree *four*.")

    assert [block.text for block in page.blocks] == ["One # two.", "Three *four*."]
    assert {block.kind for block in page.blocks} == {BlockKind.TEXT}


def test_a_passage_without_a_title_is_called_by_how_it_begins() -> None:
    page = read(passage_id="p1", text="Peak hours cost more than others. " * 20)

    assert page.title.startswith("Peak hours cost more than others.")
    assert len(page.title) <= 80


def test_a_unit_has_its_label_before_its_title() -> None:
    page = read(unit_id="s1", label="Section 1", title="Aim", crumbs=["Act"], text="It aims.")

    assert (page.title, page.crumbs) == ("Section 1 Aim", ("Act",))


def test_an_unknown_shape_names_the_keys_found_and_expected() -> None:
    with pytest.raises(WrongFormatError, match=r"page_id, markdown; or .*found body, name"):
        read(name="x", body="y")


@pytest.mark.parametrize("line", [b"{", b"[1]", b"\xff\xfe{}", b"[" * 100_000, b'"text"'])
def test_a_line_that_is_no_object_is_reported(line: bytes) -> None:
    with pytest.raises(WrongFormatError, match="expected a JSON object, found"):
        json_lines.read(line, "all.jsonl")


def test_a_name_that_is_no_text_is_reported() -> None:
    with pytest.raises(WrongFormatError, match="'page_id'"):
        read(page_id=["x"], markdown="y")


def test_a_text_that_is_no_text_is_reported() -> None:
    with pytest.raises(NoTextError, match="'text'"):
        read(passage_id="x", text={"deep": [1]})


def test_half_a_surrogate_and_control_characters_do_not_pass() -> None:
    page = json_lines.read(
        b'{"passage_id": "x", "text": "a\\ud83d b\\u0000\\u001b[0m"}', "all.jsonl"
    )

    assert page.blocks[0].text == "a b[0m"


def test_lines_are_numbered_and_empty_ones_skipped() -> None:
    assert list(json_lines.lines_of(b"\xef\xbb\xbf{}\r\n\n  \n{1}")) == [(1, b"{}"), (4, b"{1}")]
