import pytest

from knowledge.reading import pdf
from knowledge.reading.errors import NoTextError, ReadingError, WrongFormatError
from knowledge.reading.page import Block, Kind
from tests.knowledge.reading.printing import printed


def test_every_page_is_a_place() -> None:
    page = pdf.read(printed([["Rates are low."], ["Calls are", "free."]]), "a.pdf")

    assert page.blocks == (
        Block(Kind.TEXT, "Rates are low.", 0, "page=1"),
        Block(Kind.TEXT, "Calls are free.", 0, "page=2"),
    )


def test_page_numbers_and_hyphens_at_line_ends_go() -> None:
    page = pdf.read(printed([["The num-", "ber of calls.", "17"]]), "a.pdf")

    assert page.blocks[0].text == "The number of calls."


def test_headings_come_from_the_outline() -> None:
    outline = (
        "/Outlines << /Type /Outlines /Count 1 /First << /Title (Peak hours) "
        "/Dest [4 0 R /Fit] >> >>"
    )

    page = pdf.read(printed([["Lead.", "Peak hours", "Calls cost more."]], outline), "a.pdf")

    assert [(block.kind, block.text) for block in page.blocks] == [
        (Kind.TEXT, "Lead."),
        (Kind.HEADING, "Peak hours"),
        (Kind.TEXT, "Calls cost more."),
    ]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"PK\x03\x04rest", "a zip archive"),
        (b"", "something else"),
        (b"%PDF-1.4\nnothing", "a damaged one"),
        (b"%PDF-1.4\n" + b"\xff" * 500 + b"startxref\n5\n%%EOF", "a damaged one"),
    ],
)
def test_what_is_no_pdf_is_told(data: bytes, found: str) -> None:
    with pytest.raises(WrongFormatError, match=f"expected a PDF, found {found}"):
        pdf.read(data, "a.pdf")


def test_pages_without_text_are_told() -> None:
    with pytest.raises(NoTextError, match="pictures"):
        pdf.read(printed([[]]), "a.pdf")


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.7, 0.8])
def test_a_pdf_that_is_cut_off_is_told(share: float) -> None:
    whole = printed([["Rates are low."], ["Calls are free."]])

    with pytest.raises(ReadingError, match=r"expected (a PDF|text)"):
        pdf.read(whole[: int(len(whole) * share)], "a.pdf")
