"""The text of pages that are pictures is recognised, page by page, where the extra is installed."""

import io
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

from knowledge.chunking import passages
from knowledge.documents import scans
from knowledge.documents.errors import PicturesError, WrongFormatError
from knowledge.documents.markup import markdown
from knowledge.documents.page import Page
from knowledge.documents.pdf import pdf_reader
from knowledge.documents.pictures import collect_pictures
from knowledge.documents.recognition import (
    RecognisedText,
    join_lines,
    load_recogniser,
    read_pictures,
)
from tests.support.pictures import make_picture


def scan(*pages: str) -> bytes:
    """Return a PDF: a page for each text, a picture where the text is empty."""
    file = io.BytesIO()
    writer = canvas.Canvas(file)
    for text in pages:
        if text:
            writer.drawString(72, 700, text)
        else:
            picture = Image.new("L", (200, 100), 255)
            ImageDraw.Draw(picture).text((10, 40), "4.2 bar")
            writer.drawImage(ImageReader(picture), 72, 600)
        writer.showPage()
    writer.save()
    return file.getvalue()


def recognise(picture: Any) -> list[RecognisedText]:
    assert min(picture.size) > 1000
    return [
        RecognisedText("4.2 bar", left=300, top=101, height=20),
        RecognisedText("The pump starts at", left=10, top=100, height=20),
        RecognisedText("Never run it dry.", left=10, top=140, height=20),
    ]


def test_a_page_that_is_a_picture_is_cited_by_its_page() -> None:
    page = pdf_reader.read(scan("First page.", "", "Third page."), "a.pdf", recognise)

    assert [(passage.text, passage.anchor) for passage in passages(page)] == [
        ("First page.", "page=1"),
        ("The pump starts at 4.2 bar\nNever run it dry.", "page=2"),
        ("Third page.", "page=3"),
    ]
    assert page.warnings == ("the text of page 2 was recognised in pictures and may have mistakes",)


def test_a_page_in_which_nothing_is_recognised_is_named() -> None:
    with pytest.raises(PicturesError, match="no text was recognised"):
        pdf_reader.read(scan("", ""), "a.pdf", lambda _: [])


def test_a_picture_that_is_given_as_a_document_is_cited_by_its_pages() -> None:
    file = io.BytesIO()
    first, second = (Image.new("L", (1200, 1100), shade) for shade in (255, 250))
    first.save(file, "TIFF", save_all=True, append_images=[second])

    page = scans.read(file.getvalue(), "scan.tiff", recognise)

    assert [(passage.text, passage.anchor) for passage in passages(page)] == [
        ("The pump starts at 4.2 bar\nNever run it dry.", "page=1"),
        ("The pump starts at 4.2 bar\nNever run it dry.", "page=2"),
    ]
    assert page.warnings == ("its text was recognised in pictures and may have mistakes",)


def test_a_damaged_picture_costs_only_itself() -> None:
    file = io.BytesIO()
    first, *others = (Image.new("L", (1200, 1100), shade) for shade in (255, 250, 245))
    first.save(file, "TIFF", save_all=True, append_images=others, compression="tiff_lzw")
    data = bytearray(file.getvalue())
    with Image.open(io.BytesIO(data)) as opened:
        opened.seek(1)
        [offset, *_] = opened.tag_v2[273]  # type: ignore[attr-defined] # where its strip begins
    data[offset : offset + 40] = b"\xff" * 40

    page = scans.read(bytes(data), "scan.tiff", recognise)

    assert [passage.anchor for passage in passages(page)] == ["page=1", "page=3"]
    assert [str(left_out) for left_out in page.left_out] == [
        "1 picture left out (page 2): the data is damaged"
    ]


def test_pictures_that_are_too_large_or_too_many_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = io.BytesIO()
    small, large = Image.new("L", (1200, 1100)), Image.new("L", (2000, 1100))
    small.save(file, "TIFF", save_all=True, append_images=[large, small, small])
    monkeypatch.setattr(scans, "MOST_PAGES", 3)
    monkeypatch.setattr(scans, "_LARGEST_AREA", 2_000_000)

    page = scans.read(file.getvalue(), "scan.tiff", recognise)

    assert [passage.anchor for passage in passages(page)] == ["page=1", "page=3"]
    assert [(left_out.count, left_out.names) for left_out in page.left_out] == [
        (1, ("page 2",)),
        (1, ("page 4",)),
    ]


def test_a_picture_of_a_document_that_cannot_be_opened_is_listed() -> None:
    whole = make_picture(size=(300, 200))
    page = show_panel(a__png=whole[:-40], b__png=make_picture("red", size=(300, 200)))

    read = read_pictures(page, lambda _: recognise_line("Code 7"))

    assert [passage.text for passage in passages(read) if "Code 7" in passage.text] == ["Code 7"]
    assert [str(left_out) for left_out in read.left_out] == [
        "1 picture text left out: the picture is damaged, or of a kind that cannot be opened here"
    ]


def test_a_picture_is_refused_that_is_none_or_without_text() -> None:
    file = io.BytesIO()
    Image.new("L", (1200, 1100), 255).save(file, "PNG")

    with pytest.raises(PicturesError, match="no text was recognised"):
        scans.read(file.getvalue(), "a.png", lambda _: [])
    for data in (b"", b"%PDF-1.7", file.getvalue()[:60]):
        with pytest.raises(WrongFormatError, match="expected a picture"):
            scans.read(data, "a.png", recognise)


def test_texts_beside_each_other_are_one_line() -> None:
    cells = [("SR-1180", 178, 606), ("Seal ring", 74, 608), ("Impeller", 75, 646)]

    assert join_lines([RecognisedText(text, left, top, 18) for text, left, top in cells]) == (
        "Seal ring SR-1180\nImpeller"
    )


@pytest.mark.slow
def test_a_scanned_sentence_is_read_by_the_models_of_the_extra() -> None:
    picture = Image.new("L", (1200, 200), 255)
    font = ImageFont.load_default(size=48)
    ImageDraw.Draw(picture).text((40, 60), "The pump starts at 4.2 bar", font=font)
    recognise = load_recogniser()
    assert not isinstance(recognise, str)

    assert join_lines(recognise(picture)) == "The pump starts at 4.2 bar"


def show_panel(**beside: bytes) -> Page:
    page = markdown.read_text(
        "# Alarm\n\nPress the button.\n\n![The panel](a.png)\n\nWait.\n\n## Battery\n\n"
        "![](a.png)\n\nChange it.\n\n![](b.png)\n",
        "a.md",
    )
    return collect_pictures(page, {name.replace("__", "."): data for name, data in beside.items()})


def test_text_in_a_picture_is_cited_as_a_separate_section() -> None:
    panel, icon = make_picture("green", size=(300, 200)), make_picture("red", size=(300, 60))

    page = read_pictures(show_panel(a__png=panel, b__png=icon), lambda _: recognise_line("Code 7"))

    assert [(passage.text, passage.heading_path, passage.anchor) for passage in passages(page)] == [
        ("Press the button.\n\n![The panel]\n\nWait.", (), "alarm"),
        ("Code 7", ("Picture 1: The panel",), "picture-1"),
        ("Change it.", ("Battery",), "battery"),
    ]
    assert page.warnings == ("the text of 1 picture was recognised and may have mistakes",)


def test_the_text_of_a_picture_on_another_server_is_cited_at_the_section_that_shows_it() -> None:
    page = show_panel(a__png=make_picture(size=(300, 200)))

    read = read_pictures(page, lambda _: recognise_line("Code 7"), is_outside=True)

    assert [passage.anchor for passage in passages(read)] == ["alarm", "alarm", "battery"]


def test_a_page_whose_pictures_say_nothing_stays_as_it_is() -> None:
    page = show_panel(a__png=make_picture(size=(300, 200)))

    assert read_pictures(page, lambda _: ()) == page


def recognise_line(text: str) -> list[RecognisedText]:
    return [RecognisedText(text, left=1, top=1, height=9)]
