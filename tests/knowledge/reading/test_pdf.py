from collections.abc import Sequence

import pytest

from knowledge.reading import pdf
from knowledge.reading.errors import NoTextError, ReadingError, WrongFormatError
from knowledge.reading.page import Block, Kind


def printed(pages: Sequence[Sequence[str]], extra: str = "") -> bytes:
    """Return a PDF whose pages show these lines."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {extra} >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        shown = " ".join(f"({line}) Tj 0 -20 Td" for line in lines)
        stream = f"BT /F1 12 Tf 50 700 Td {shown} ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    return _file(objects)


def _file(objects: Sequence[str]) -> bytes:
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return body + tail.encode() + f"startxref\n{len(body)}\n%%EOF\n".encode()


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
