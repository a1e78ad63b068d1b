"""Pictures of documents are kept with the text beside which they stand, and only as pictures."""

import base64
import hashlib
import io
from pathlib import Path, PurePosixPath

import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

from knowledge import chunking
from knowledge.documents import pictures
from knowledge.documents.formats import Item, read
from knowledge.documents.location import NOWHERE
from knowledge.documents.page import Block, BlockKind, LeftOut, Page
from knowledge.documents.pdf import pdf_reader
from tests.knowledge.documents.conftest import Desk
from tests.support.pictures import make_picture


def page_of(text: str, name: str, **beside: bytes) -> Page:
    path = PurePosixPath(name)
    named = {address.replace("__", "."): data for address, data in beside.items()}
    return read(Item(name, text.encode(), name, beside=named), path, NOWHERE)


def shown(page: Page) -> list[tuple[str, list[str]]]:
    passages = chunking.name_chunks(chunking.passages(page), "a")
    return [
        (passage.text.split("\n")[0], [caption for _, caption in passage.pictures])
        for passage in passages
    ]


STATION = """# Station

## Wire it

Connect terminal A.

![Wiring of terminal A](a.png)

## Mount it

1. Hang the pump.

   <img src="b.png" alt="The pump">

## Prices

It costs 12 EUR.
"""


def test_a_picture_belongs_to_the_text_of_its_own_section() -> None:
    page = page_of(STATION, "a.md", a__png=make_picture("green"), b__png=make_picture("red"))

    assert shown(page) == [
        ("Connect terminal A.", ["Wiring of terminal A"]),
        ("1. Hang the pump.", ["The pump"]),
        ("It costs 12 EUR.", []),
    ]
    (file, _) = page.files
    assert base64.b64decode(file.data) == make_picture("green")
    assert file.id == hashlib.sha256(make_picture("green")).hexdigest()[:32]


def test_a_figure_without_text_around_it_is_found_by_its_caption_alone() -> None:
    page = page_of("# A\n\n## Figure\n\n![Lonely](a.png)\n\n## B\n\nText.\n", "a.md",
                   a__png=make_picture())  # fmt: skip

    assert shown(page) == [("![Lonely]", ["Lonely"]), ("Text.", [])]


def test_html_gives_a_picture_the_caption_of_its_figure() -> None:
    data = base64.b64encode(make_picture()).decode()
    page = page_of(
        "<h1>Pump</h1><p>Hang it.</p><figure><img src='a.png' alt='pump'><figcaption>Pump "
        f"P-40</figcaption></figure><p>Then run it.<img src='data:image/png;base64,{data}'></p>",
        "a.html",
        a__png=make_picture("red"),
    )

    (passage,) = chunking.name_chunks(chunking.passages(page), "a")
    assert [caption for _, caption in passage.pictures] == ["Pump P-40", ""]


@pytest.mark.parametrize(
    "data",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a<script>alert(1)</script>",
        b"%PDF-1.7",
        b"",
        make_picture(size=(16, 16)),
    ],
)
def test_invalid_pictures_and_decorations_are_left_out(data: bytes) -> None:
    page = page_of("# A\n\nText.\n\n![One](a.png)\n", "a.md", a__png=data)

    assert page.files == ()
    assert shown(page) == [("Text.", [])]


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_the_size_of_a_picture_is_read_from_its_bytes(form: str) -> None:
    data = make_picture(form=form, size=(200, 100))

    media_type = pictures.recognise_type(data)

    assert media_type == f"image/{form.lower()}"
    assert pictures.measure(data, media_type) == (200, 100)


def test_pictures_beyond_the_limits_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_PICTURES", 1)
    page = page_of(STATION, "a.md", a__png=make_picture("green"), b__png=make_picture("red"))

    assert len(page.files) == 1
    assert [(part.what, part.count) for part in page.left_out] == [("picture", 1)]


async def test_a_page_is_read_again_when_its_picture_changes(desk: Desk) -> None:
    desk.write("guide/a.md", "# A\n\nText.\n\n![One](/img/one.png)\n")
    desk.write("static/img/one.png", make_picture("green"))

    first = await desk.ingest()
    again = await desk.ingest()
    desk.write("static/img/one.png", make_picture("red"))
    changed = await desk.ingest()

    assert (first.added, again.added, changed.changed) == (1, 0, 1)
    (document,) = desk.index.documents.values()
    assert [base64.b64decode(file.data) for file in document.files] == [make_picture("red")]


@pytest.mark.parametrize(
    "address",
    ["../../secret.png", "/../secret.png", "%2e%2e/%2e%2e/secret.png", ".hidden/a.png",
     "https://desk.example/a.png", "//desk.example/a.png", "outside.png", "private/a.png"],
)  # fmt: skip
async def test_no_picture_is_taken_that_is_outside_hidden_or_for_others(
    desk: Desk, address: str
) -> None:
    desk.write("../secret.png", make_picture())
    desk.write(".hidden/a.png", make_picture())
    desk.write("private/a.png", make_picture())
    desk.write("refdesk.toml", '[[documents]]\npath = "private/*"\ngroups = ["board"]\n')
    (desk.folder / "outside.png").symlink_to(Path(desk.folder.parent / "secret.png"))
    desk.write("a.md", f"# A\n\nText.\n\n![One]({address})\n")

    await desk.ingest()

    (document,) = desk.index.documents.values()
    assert document.files == ()


def test_a_picture_of_a_pdf_has_its_numbered_caption() -> None:
    file = io.BytesIO()
    writer = canvas.Canvas(file)
    writer.drawString(72, 750, "The pump hangs on two bolts.")
    picture = ImageReader(Image.open(io.BytesIO(make_picture("red"))))
    writer.drawImage(picture, 72, 600, 180, 120)
    writer.drawString(72, 585, "Figure 1: The bolts")
    writer.showPage()
    writer.drawString(72, 750, "Oil it.")
    writer.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    (block,) = [block for block in page.blocks if block.pictures]
    assert (block.anchor, [picture.caption for picture in block.pictures]) == (
        "page=1", ["Figure 1: The bolts"],
    )  # fmt: skip
    image = Image.open(io.BytesIO(base64.b64decode(block.pictures[0].data)))
    assert (image.size, image.convert("RGB").getpixel((5, 5))) == ((120, 80), (255, 0, 0))


@pytest.mark.parametrize(
    "damage", [(b"/Width 120", b"/Width 000"), (b"/FlateDecode", b"/XlateDecode")]
)
def test_a_damaged_picture_of_a_pdf_is_counted(damage: tuple[bytes, bytes]) -> None:
    file = io.BytesIO()
    writer = canvas.Canvas(file, pageCompression=0)
    writer.drawString(72, 750, "The pump hangs on two bolts.")
    picture = ImageReader(Image.open(io.BytesIO(make_picture("red"))))
    writer.drawImage(picture, 72, 600, 180, 120)
    writer.save()

    page = pdf_reader.read(file.getvalue().replace(*damage), "a.pdf")

    assert page.blocks == (Block(BlockKind.TEXT, "The pump hangs on two bolts.", anchor="page=1"),)
    assert page.left_out == (LeftOut("picture", 1, "damaged", ("page 1",)),)


SVG = base64.b64encode(b"<svg/>").decode()


@pytest.mark.parametrize(
    ("markup", "left_out"),
    [
        ("![The flow of a message](flow.png)", ["The flow of a message"]),
        ("![](https://cdn.test/flow.png)", ["https://cdn.test/flow.png"]),
        (f'<img alt="The seal" src="data:image/svg+xml;base64,{SVG}">', ["The seal"]),
        (f'<img alt="" src="data:image/svg+xml;base64,{SVG}">', []),
    ],
    ids=["missing", "remote", "unknown format", "decoration"],
)
def test_a_picture_that_cannot_be_kept_is_counted(markup: str, left_out: list[str]) -> None:
    page = page_of(f"# A\n\nText.\n\n{markup}\n", "a.md")

    assert [name for part in page.left_out for name in part.names] == left_out
