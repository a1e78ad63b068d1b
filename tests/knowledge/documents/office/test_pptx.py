import io
from collections.abc import Sequence
from itertools import permutations, starmap

import pptx
import pytest
from pptx.dml.color import RGBColor
from pptx.enum.dml import MSO_THEME_COLOR
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls, qn
from pptx.presentation import Presentation
from pptx.shapes.autoshape import Shape
from pptx.slide import _Background
from pptx.util import Inches

from knowledge.documents.office import pptx as pptx_reader
from knowledge.documents.page import Block, BlockKind, Page

WHITE, DARK = starmap(RGBColor, ((255, 255, 255), (31, 56, 100)))


def read(deck: Presentation) -> Page:
    file = io.BytesIO()
    deck.save(file)
    return pptx_reader.read(file.getvalue(), "a.pptx")


def test_a_slide_is_a_section_by_its_title_with_its_notes() -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Roadmap"
    slide.placeholders[1].text = "Search in May\nExport in June"
    slide.notes_slide.notes_text_frame.text = "Export depends on the vendor."

    page = read(deck)

    assert page.title == "Roadmap"
    assert page.blocks == (
        Block(BlockKind.HEADING, "Roadmap", 2, "slide=1"),
        Block(BlockKind.ITEM, "- Search in May"),
        Block(BlockKind.ITEM, "- Export in June"),
        Block(BlockKind.TEXT, "Notes:"),
        Block(BlockKind.TEXT, "Export depends on the vendor."),
    )


def test_notes_in_a_text_box_of_the_notes_page_are_read() -> None:
    deck = pptx.Presentation()
    page = deck.slides.add_slide(deck.slide_layouts[6]).notes_slide
    for at, shape in enumerate(page.placeholders):
        shape.text_frame.text = str(at)
    properties = page.notes_placeholder._element.nvSpPr.nvPr  # noqa: SLF001 - as LibreOffice writes it
    properties.remove(properties.ph)
    page.shapes[1].text_frame.text = "Bring 150 euros."

    assert [block.text for block in read(deck).blocks] == ["Slide 1", "Notes:", "Bring 150 euros."]


def test_a_slide_without_a_title_is_named_by_its_number() -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    box = slide.shapes.add_textbox(0, 0, Inches(1), Inches(1))
    box.text_frame.text = "Only a box."

    assert [block.text for block in read(deck).blocks] == ["Slide 1", "Only a box."]


def test_a_table_keeps_header_and_cells() -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Prices"
    size = (0, 0, Inches(4), Inches(2))
    table = slide.shapes.add_table(3, 2, *size).table
    for row, texts in enumerate((("Plan", "Price"), ("Basic", "5"), ("", "9"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))

    assert read(deck).blocks[1].text == (
        "| Plan | Price |\n|---|---|\n| Basic | 5 |\n| Basic | 9 |"
    )


def test_a_hidden_slide_is_left_out_with_a_note() -> None:
    deck = pptx.Presentation()
    for title in ("Shown", "Hidden"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    deck.slides[1]._element.set("show", "0")  # noqa: SLF001 - the library hides no slides

    page = read(deck)

    assert [block.text for block in page.blocks] == ["Shown"]
    assert [(part.what, part.names) for part in page.left_out] == [("hidden slide", ("2",))]


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_boxes_that_form_a_grid_are_read_row_by_row(order: Sequence[int]) -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for at in order:
        place = (Inches(1 + 4 * (at % 2)), Inches(1 + at // 2), Inches(2), Inches(0.5))
        slide.shapes.add_textbox(*place).text_frame.text = f"{'AB'[at // 2]}{at % 2}"

    assert [block.text for block in read(deck).blocks] == ["Slide 1", "A0", "A1", "B0", "B1"]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
@pytest.mark.parametrize("heights", [(0.4, 0.4, 0.4), (0.4, 0.8, 0.5)])
@pytest.mark.parametrize(
    "parts", [("Plan {}", "for teams {}", "5{} M"), ("9{} %", "of orders {}", "Rate {}")]
)
def test_the_parts_of_a_card_stay_together_in_whichever_order_they_were_drawn(
    order: Sequence[int], heights: Sequence[float], parts: Sequence[str]
) -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for at, (part, height) in enumerate(zip(parts, heights, strict=True)):
        for card in order:
            top = 1 + 3 * (card // 2) + sum(heights[:at])
            place = (Inches(1 + 3 * (card % 2)), Inches(top), Inches(2), Inches(height))
            slide.shapes.add_textbox(*place).text_frame.text = part.format(card)

    texts = [block.text for block in read(deck).blocks[1:]]

    assert texts == [part.format(card) for card in range(4) for part in parts]


def place_boxes(*places: tuple[str, float, float, float, float]) -> Page:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for text, *place in places:
        slide.shapes.add_textbox(*map(Inches, place)).text_frame.text = text
    return read(deck)


def test_the_parts_of_cards_whose_heights_differ_stay_together() -> None:
    page = place_boxes(
        ("Rent", 1, 1, 2, 0.4), ("Power", 4, 1, 2, 0.5), ("Water", 7, 1, 2, 0.4),
        ("30", 7, 1.5, 2, 0.9), ("10", 1, 1.5, 2, 0.8), ("20", 4, 1.6, 2, 1),
    )  # fmt: skip

    texts = [block.text for block in page.blocks[1:]]

    assert texts == ["Rent", "10", "Power", "20", "Water", "30"]
    assert not page.left_out


def test_boxes_on_a_tile_follow_each_other_in_whichever_place_they_are() -> None:
    page = place_boxes(
        ("", 1, 1, 3, 2), ("", 5, 1.9, 3, 3), ("Rent", 1.1, 1.1, 2, 0.4),
        ("20", 6, 4, 1, 0.4), ("Power", 5.1, 2, 2, 0.4), ("10", 2, 2, 1, 0.4),
    )  # fmt: skip

    assert [block.text for block in page.blocks[1:]] == ["Rent", "10", "Power", "20"]
    assert not page.left_out


@pytest.mark.parametrize(("dates", "noted"), [(("May 1", "June 2"), 1), (("120", "340"), 0)])
def test_rows_of_texts_that_may_be_cards_are_noted(dates: tuple[str, str], noted: int) -> None:
    page = place_boxes(
        ("Tender", 1, 1, 1, 0.4), ("Pilot", 4, 1, 1, 0.4),
        (dates[0], 1, 1.4, 1, 0.4), (dates[1], 4, 1.4, 1, 0.4),
    )  # fmt: skip

    assert [part.what for part in page.left_out] == ["reading order"] * noted


def test_an_order_of_boxes_that_contradicts_their_places_is_noted() -> None:
    page = place_boxes(("Total", 5, 5, 1, 0.4), ("12", 1, 1, 1, 0.4), ("Price", 3, 3, 1, 0.4))

    assert [block.text for block in page.blocks[1:]] == ["Total", "12", "Price"]
    assert [(part.what, part.names) for part in page.left_out] == [("reading order", ("slide 1",))]


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (("Build", "Learn", "Plan"), ["Plan", "Learn", "Build"]),
        (("שלוש", "שתיים", "אחת"), ["שלוש", "שתיים", "אחת"]),
    ],
)
def test_boxes_in_a_row_are_read_in_the_direction_of_their_text(
    texts: Sequence[str], shown: list[str]
) -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for at, text in enumerate(texts):
        place = (Inches(7 - 3 * at), Inches(1), Inches(2), Inches(1))
        slide.shapes.add_textbox(*place).text_frame.text = text

    assert [block.text for block in read(deck).blocks[1:]] == shown


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_placeholders_are_read_in_the_order_of_their_layout(order: Sequence[int]) -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[4])
    texts = ("Before", "12 min", "After", "7 min")
    boxes = [shape for shape in slide.placeholders if shape.placeholder_format.idx]
    for box, text in zip(boxes, texts, strict=True):
        box.text_frame.text = text
    for at in order:
        slide.shapes._spTree.append(boxes[at]._element)  # noqa: SLF001 - as above

    assert [block.text for block in read(deck).blocks] == ["Slide 1", *texts]


def test_a_footer_and_the_text_of_a_master_are_read_once() -> None:
    deck = pptx.Presentation()
    mark = deck.slides.add_slide(deck.slide_layouts[6]).shapes.add_textbox(0, 0, 9, 9)
    mark.text_frame.text = "Draft 3"
    deck.slide_master.shapes._spTree.append(mark._element)  # noqa: SLF001 - as above
    for number in "12":
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = f"Step {number}"
        for kind, text in (("ftr", "QP-114"), ("sldNum", number)):
            box = slide.shapes.add_textbox(0, 0, 9, 9)
            box.text_frame.text = text
            properties = box._element.nvSpPr.nvPr  # noqa: SLF001 - as above
            properties.append(parse_xml(f'<p:ph {nsdecls("p")} type="{kind}"/>'))

    assert [block.text for block in read(deck).blocks] == ["Draft 3", "QP-114", "Step 1", "Step 2"]


def add_text(shape: Shape, text: str, colour: RGBColor) -> Shape:
    shape.text_frame.text = text
    shape.text_frame.paragraphs[0].runs[0].font.color.rgb = colour
    return shape


def fill(shape: Shape | _Background, colour: RGBColor) -> None:
    shape.fill.solid()
    shape.fill.fore_color.rgb = colour


def test_text_in_the_colour_of_its_background_is_no_text() -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])

    def box(at: int, text: str, colour: RGBColor = WHITE) -> Shape:
        place = (Inches(at), Inches(1), Inches(1), Inches(1))
        return add_text(slide.shapes.add_textbox(*place), text, colour)

    box(0, "hidden on the page")
    fill(box(2, "on a dark box"), DARK)
    fill(box(4, "hidden on its box", DARK), DARK)
    box(2, "in front of the dark box")
    themed = box(6, "hidden by the theme").text_frame.paragraphs[0].runs[0]
    themed.font.color.theme_color = MSO_THEME_COLOR.BACKGROUND_1
    table = slide.shapes.add_table(1, 2, 0, Inches(3), Inches(1), Inches(1)).table
    for cell, text in zip(table.iter_cells(), ("hidden in a cell", "in a cell"), strict=True):
        add_text(cell, text, WHITE)
    fill(table.cell(0, 0), WHITE)

    page = read(deck)

    assert [block.text for block in page.blocks[1:]] == [
        "on a dark box", "in front of the dark box", "in a cell",
    ]  # fmt: skip
    assert [(part.what, part.count) for part in page.left_out] == [("hidden passage", 4)]


def test_white_text_on_a_slide_that_is_not_white_is_kept() -> None:
    deck = pptx.Presentation()
    for at, text in enumerate(("Hidden", "On blue", "On the blue master")):
        slide = deck.slides.add_slide(deck.slide_layouts[5 + at // 2])
        if at == 1:
            fill(slide.background, DARK)
        if at == 2:
            fill(deck.slide_master.background, DARK)
        box = slide.shapes.add_textbox(0, Inches(5), Inches(1), Inches(1))
        add_text(box, text, WHITE)
    deck.slides[0].background.fill.background()

    assert [block.text for block in read(deck).blocks if not block.level] == [
        "On blue", "On the blue master",
    ]  # fmt: skip


def test_letters_in_a_symbol_typeface_and_symbols_are_written_as_shown() -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    frame = slide.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame
    frame.text = "a = "
    frame.paragraphs[0].runs[0].font.name = "Symbol"
    run = frame.paragraphs[0].add_run()
    run.text = "\uf0b3 5 or ten"
    typeface = parse_xml(f'<a:sym {nsdecls("a")} typeface="Symbol"/>')
    run.font._element.append(typeface)  # noqa: SLF001 - the library has no symbols

    assert read(deck).blocks[1].text == "α = ≥ 5 or ten"


def test_numbers_and_symbols_that_a_layout_states_are_those_of_its_slides() -> None:
    deck = pptx.Presentation()
    layout = deck.slide_layouts[1]
    styles = layout.placeholders[1]._element.find(f".//{qn('a:lstStyle')}")  # noqa: SLF001 - as above
    styles.append(
        parse_xml(
            f'<a:lvl1pPr {nsdecls("a")}><a:buAutoNum type="arabicParenR"/>'
            '<a:defRPr strike="sngStrike"/></a:lvl1pPr>'
        )
    )
    styles.append(
        parse_xml(
            f"<a:lvl2pPr {nsdecls('a')}><a:buNone/>"
            '<a:defRPr><a:latin typeface="Wingdings"/></a:defRPr></a:lvl2pPr>'
        )
    )
    frame = deck.slides.add_slide(layout).placeholders[1].text_frame
    frame.text = "Sign\nPay\n\u00fc"
    frame.paragraphs[2].level = 1

    assert [block.text for block in read(deck).blocks] == [
        "Slide 1", "1) ~~Sign~~", "2) ~~Pay~~", "\u2713",
    ]  # fmt: skip


def test_text_of_a_master_that_its_layout_hides_is_not_read() -> None:
    deck = pptx.Presentation()
    layout = deck.slide_layouts[6]
    slide = deck.slides.add_slide(layout)
    for part, text in ((slide, "On the slide"), (layout, "Layout"), (deck.slide_master, "Draft")):
        box = slide.shapes.add_textbox(0, 0, 9, 9)
        box.text_frame.text = text
        part.shapes._spTree.append(box._element)  # noqa: SLF001 - as above
    layout._element.set("showMasterSp", "0")  # noqa: SLF001 - as above

    assert [block.text for block in read(deck).blocks] == ["Layout", "Slide 1", "On the slide"]
