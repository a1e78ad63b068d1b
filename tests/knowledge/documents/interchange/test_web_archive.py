from email.mime.image import MIMEImage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.interchange import web_archive


def test_the_main_page_of_a_web_archive_is_read_and_its_frames_are_counted() -> None:
    archive = MIMEMultipart("related")
    archive.attach(MIMEText("<h1>Fees</h1><p>Größe: 40 €", "html", "utf-8"))
    archive.attach(MIMEImage(b"GIF89a", "gif"))
    archive.attach(MIMEText("<p>Advertisement", "html"))

    page = web_archive.read(archive.as_bytes(), "a.mhtml")

    assert [block.text for block in page.blocks] == ["Fees", "Größe: 40 €"]
    assert list(map(str, page.left_out)) == [
        "1 frame left out: only the main page of a web archive is read"
    ]


def test_style_sheets_in_a_web_archive_strike_out_and_number_text() -> None:
    archive = MIMEMultipart("related")
    page = "<link rel=stylesheet href='cid:css-1@a'><p><i class=old>15 €</i> 12 €<ol><li>Deposit"
    archive.attach(MIMEText(page, "html", "utf-8"))
    sheet = MIMEText(".old{text-decoration:line-through} li::before{content:'§ 1 '}", "css")
    sheet["Content-Location"] = "cid:css-1@a"
    archive.attach(sheet)

    blocks = web_archive.read(archive.as_bytes(), "a.mht").blocks

    assert blocks[0].text == "~~15 €~~ 12 €"
    assert "§ 1 Deposit" in blocks[1].text


def test_an_archive_without_a_page_is_refused() -> None:
    with pytest.raises(WrongFormatError, match="found none"):
        web_archive.read(b"Subject: Fees\n\nText.\n", "a.mht")
