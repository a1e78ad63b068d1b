"""Parts beside the text of Word documents and slides: built by hand, as the libraries have none."""

import io
import re
import zipfile
from collections.abc import Mapping

import pytest

from knowledge.documents.office import docx, pptx
from knowledge.documents.page import LeftOut, Page
from knowledge.documents.pictures import collect_pictures

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
C = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'


def pack(parts: Mapping[str, str], relations: Mapping[str, Mapping[str, str]]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
        for name, targets in relations.items():
            folder, _, part = name.rpartition("/")
            links = "".join(
                f'<Relationship Id="{target}" Type="x/{kind}" Target="{target}"/>'
                for target, kind in targets.items()
            )
            path = f"{folder}/_rels/{part}.rels"
            archive.writestr(path, f"<Relationships>{links}</Relationships>")
    return file.getvalue()


def read_body(body: str, parts: Mapping[str, str] | None = None, **named_parts: str) -> Page:
    """Return the page of a Word document with further parts: `styles__xml`."""
    named = {name.replace("__", "."): text for name, text in named_parts.items()}
    named |= parts or {}
    relations = {name: name.partition(".")[0].rstrip("0123456789") for name in named}
    document = f"<w:document {W} {R} {M} {A} {C}><w:body>{body}</w:body></w:document>"
    data = pack(
        {"word/document.xml": document, **{f"word/{name}": text for name, text in named.items()}},
        {"word/document.xml": relations},
    )
    return docx.read(data, "a.docx")


def paragraph(text: str, properties: str = "", run: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r>{run}<w:t>{text}</w:t></w:r></w:p>"


@pytest.mark.parametrize(
    ("run", "shown"),
    [
        ('<w:sym w:font="Symbol" w:char="F0B3"/>', "≥"),
        ('<w:sym w:font="Wingdings" w:char="F0FC"/>', "✓"),
        ('<w:sym w:font="Unknown" w:char="F0FC"/>', "\ufffd"),
        ('<w:rPr><w:rFonts w:ascii="Symbol"/></w:rPr><w:t>\uf0b1</w:t>', "±"),
        ('<w:rPr><w:rFonts w:ascii="Symbol" w:hAnsi="Arial"/></w:rPr><w:t>aé = 4</w:t>', "αé = 4"),
        ('<w:rPr><w:rFonts w:ascii="Wingdings 2"/></w:rPr><w:t>PO</w:t>', "✓✗"),
        ("<w:t>~</w:t></w:r><w:r><w:t>~400~~</w:t>", r"\~\~400\~\~"),
        ('<w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:checked/></w:checkBox>'
         "</w:ffData></w:fldChar>", "☒"),
        ("<w:ruby><w:rt><w:r><w:t>てん</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>点</w:t></w:r>"
         "</w:rubyBase></w:ruby>", "点"),
    ],
)  # fmt: skip
def test_symbols_boxes_and_words_with_readings_are_text(run: str, shown: str) -> None:
    page = read_body(f"<w:p><w:r><w:t>a</w:t></w:r><w:r>{run}</w:r></w:p>")

    assert page.content == f"a{shown}"


def test_text_that_a_style_hides_is_left_out_and_counted() -> None:
    style = (
        f'<w:styles {W}><w:style w:styleId="Base"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:styleId="Note"><w:basedOn w:val="Base"/></w:style></w:styles>'
    )
    run = '<w:rPr><w:rStyle w:val="Note"/></w:rPr>'

    page = read_body(paragraph("Seen.") + paragraph("Gone.", run=run), styles__xml=style)

    assert page.content == "Seen."
    assert [(part.what, part.count) for part in page.left_out] == [("hidden passage", 1)]


def define_level(level: int, text: str, style: str, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{style}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


NEVER_RESTARTS = '<w:lvlRestart w:val="0"/>'
NUMBERING = (
    f'<w:numbering {W}><w:abstractNum w:abstractNumId="1">{define_level(0, "*", "bullet")}'
    f"{define_level(1, '%2.', 'decimal')}"
    f"{define_level(2, 'Note %3', 'decimal', NEVER_RESTARTS)}"
    '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
)


def test_a_list_style_a_legal_number_and_an_override_count_as_word_shows_them() -> None:
    levels = define_level(0, "Article %1", "upperRoman")
    levels += define_level(1, "%1.%2", "decimal", '<w:isLgl/><w:pStyle w:val="Clause"/>')
    numbering = (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="1"><w:styleLink w:val="Legal"/>'
        f'{levels}</w:abstractNum><w:abstractNum w:abstractNumId="2">'
        '<w:numStyleLink w:val="Legal"/></w:abstractNum>'
        '<w:num w:numId="5"><w:abstractNumId w:val="2"/></w:num>'
        '<w:num w:numId="6"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0">'
        '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>'
        '<w:lvlText w:val="%1)"/></w:lvl></w:lvlOverride></w:num></w:numbering>'
    )
    style = (
        f'<w:styles {W}><w:style w:styleId="Clause"><w:pPr><w:numPr><w:numId w:val="5"/>'
        "</w:numPr></w:pPr></w:style></w:styles>"
    )
    listed = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="{}"/></w:numPr>'
    body = paragraph("Scope", listed.format(5)) + paragraph("Fee", '<w:pStyle w:val="Clause"/>')

    page = read_body(
        body + paragraph("Own", listed.format(6)), numbering__xml=numbering, styles__xml=style
    )

    assert [block.text for block in page.blocks] == ["Article I Scope", "  1.1 Fee", "b) Own"]


@pytest.mark.parametrize(
    ("style", "first", "shown"),
    [
        ('<w:numFmt w:val="chineseCountingThousand"/>', 9, ["九", "十", "十一"]),
        ('<w:numFmt w:val="japaneseCounting"/>', 19, ["十九", "二十", "二十一"]),
        ('<w:numFmt w:val="ganada"/>', 1, ["가", "나", "다"]),
        ('<w:numFmt w:val="arabicAbjad"/>', 2, ["ب", "ج", "د"]),
        ('<w:numFmt w:val="hebrew1"/>', 14, ["יד", "טו", "טז"]),
        ('<w:numFmt w:val="decimalZero"/><w:isLgl/>', 9, ["09", "10", "11"]),
        ('<w:numFmt w:val="decimalEnclosedCircle"/>', 9, ["⑨", "⑩", "⑪"]),
        ('<X><Choice><w:numFmt w:val="custom" w:format="001, 002, ..."/></Choice></X>', 98,
         ["098", "099", "100"]),
    ],
)  # fmt: skip
def test_numbers_of_lists_are_written_in_the_numbering_format_of_word(
    style: str, first: int, shown: list[str]
) -> None:
    style = style.replace("X>", "AlternateContent>")
    numbering = (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start '
        f'w:val="{first}"/>{style}<w:lvlText w:val="%1."/></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
    )

    page = read_body(item("a", 0) * 3, numbering__xml=numbering)

    assert [block.text for block in page.blocks] == [f"{label}. a" for label in shown]
    assert page.left_out == ()


def test_a_numbering_format_that_is_not_supported_is_counted() -> None:
    numbering = (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="1">'
        f"{define_level(0, '%1', 'ordinalText')}</w:abstractNum>"
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
    )

    page = read_body(item("Fee", 0), numbering__xml=numbering)

    assert page.content == "1 Fee"
    assert [(part.what, part.names) for part in page.left_out] == [
        ("list number", ("ordinalText",))
    ]


WHITE = '<w:rPr><w:color w:val="FFFFFF"/></w:rPr>'
DARK = '<w:shd w:val="clear" w:fill="1F3864"/>'


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (paragraph("Pay 5.", run=WHITE), ""),
        (paragraph("Pay 5.", DARK, run=WHITE), "Pay 5."),
        (paragraph("Pay 5.", run=WHITE.replace("</w:rPr>", f"{DARK}</w:rPr>")), "Pay 5."),
        (f"<w:tbl><w:tr><w:tc>{paragraph('Pay 5.', run=WHITE)}</w:tc></w:tr></w:tbl>", "Pay 5."),
        (paragraph("Pay 5.", run=WHITE) + "<w:p><w:r><w:pict/></w:r></w:p>", "Pay 5."),
    ],
)
def test_white_text_is_hidden_where_nothing_but_the_page_can_be_behind_it(
    body: str, shown: str
) -> None:
    page = read_body(paragraph("Visible.") + body)

    assert page.content == f"Visible.\n\n{shown}".strip()
    assert bool(page.left_out) == (not shown)


@pytest.mark.parametrize(("fill", "shown"), [("FFFFFF", ""), ("1F3864", "Pay 5.")])
def test_white_text_in_a_white_box_is_hidden(fill: str, shown: str) -> None:
    body = (
        '<w:p><w:r><w:t>Visible.</w:t></w:r><w:r><w:drawing><wp:anchor xmlns:wp="wp">'
        f'<wps:wsp xmlns:wps="wps"><wps:spPr><a:solidFill><a:srgbClr val="{fill}"/></a:solidFill>'
        f"</wps:spPr><wps:txbx><w:txbxContent>{paragraph('Pay 5.', run=WHITE)}</w:txbxContent>"
        "</wps:txbx></wps:wsp></wp:anchor></w:drawing></w:r></w:p>"
    )

    page = read_body(body)

    assert page.content == f"Visible.\n\n{shown}".strip()
    assert bool(page.left_out) == (not shown)


def test_white_spaces_still_indent_code() -> None:
    code = '<w:rPr><w:rFonts w:ascii="Consolas"/>{}</w:rPr>'
    white = f"{code.format(WHITE[7:-8])}<w:t>    </w:t></w:r><w:r>{code.format('')}"

    page = read_body(paragraph("if on:", run=code.format("")) + paragraph("close()", run=white))

    assert page.blocks[0].text == "```\nif on:\n    close()\n```"
    assert page.left_out == ()


def test_raised_small_type_and_capitals_are_written_as_word_shows_them() -> None:
    style = f'<w:styles {W}><w:style w:styleId="Sign"><w:rPr><w:caps/></w:rPr></w:style></w:styles>'
    small = '<w:rPr><w:position w:val="{}"/><w:sz w:val="14"/></w:rPr><w:t>{}</w:t></w:r><w:r>'
    body = paragraph("N", run=f"<w:t>mm</w:t></w:r><w:r>{small.format(8, 2)}")
    moved = paragraph("5", run='<w:rPr><w:position w:val="8"/></w:rPr><w:t>10</w:t></w:r><w:r>')
    body += moved + paragraph("valve e.04", '<w:pStyle w:val="Sign"/>')

    texts = [block.text for block in read_body(body, styles__xml=style).blocks]

    assert texts == ["mm^2N", "105", "VALVE E.04"]


def test_controls_readings_and_charts_of_a_paragraph_with_a_deleted_end_are_not_lost() -> None:
    joined = "<w:rPr><w:del/></w:rPr>"
    ruby = "<w:ruby><w:rt><w:r><w:t>てん</w:t></w:r></w:rt><w:rubyBase/></w:ruby>"
    control = f'<w:object><w:control w:name="Box"/></w:object>{ruby}'
    chart = '<w:drawing><c:chart r:id="chart1.xml"/></w:drawing>'
    body = paragraph("See", joined, f"{control}{chart}") + paragraph(" below.")

    page = read_body(body, {"chart1.xml": CHART})

    assert [(part.what, part.count) for part in page.left_out] == [
        ("reading", 1),
        ("form control", 1),
    ]
    assert [block.text.split("\n")[0] for block in page.blocks] == [
        "See below.",
        "Pumps",
        "|  | 2024 |",
    ]


def test_every_body_is_read_and_elements_that_show_the_current_date_or_page_are_counted() -> None:
    page = read_body(
        f"{paragraph('First.')}</w:body><w:body>{paragraph('Day', run='<w:dayLong/>')}"
    )

    assert page.content == "First.\n\nDay"
    assert [(part.what, part.names) for part in page.left_out] == [("field", ("DAYLONG",))]


def item(text: str, level: int, end: str = "") -> str:
    listed = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'
    return paragraph(text, f"{listed}<w:rPr>{end}</w:rPr>")


def test_numbers_restart_below_a_bullet_unless_their_level_never_restarts() -> None:
    body = "".join(
        item(text, level)
        for text, level in (("A", 0), ("one", 1), ("x", 2), ("two", 1), ("B", 0), ("three", 1),
                            ("y", 2))
    )  # fmt: skip

    page = read_body(body, numbering__xml=NUMBERING)

    assert [block.text.strip() for block in page.blocks] == [
        "- A", "1. one", "Note 1 x", "2. two", "- B", "1. three", "Note 2 y",
    ]  # fmt: skip


def test_a_list_that_restarts_is_continued_by_the_next_items_of_the_first_one() -> None:
    override = '<w:lvlOverride w:ilvl="1"><w:startOverride w:val="1"/></w:lvlOverride>'
    second = f'<w:num w:numId="2"><w:abstractNumId w:val="1"/>{override}</w:num></w:numbering>'
    numbering = NUMBERING.replace("</w:numbering>", second)
    restarted = item("c", 1).replace('w:numId w:val="1"', 'w:numId w:val="2"')

    page = read_body(
        item("a", 1) + item("b", 1) + restarted + item("d", 1) + restarted, numbering__xml=numbering
    )

    assert [block.text.strip()[:2] for block in page.blocks] == ["1.", "2.", "1.", "2.", "3."]


def test_a_level_that_is_left_out_above_an_item_is_counted() -> None:
    numbering = NUMBERING.replace("Note %3", "%2.%3")

    page = read_body(item("a", 2) + item("b", 1) + item("c", 2), numbering__xml=numbering)

    assert [block.text.strip() for block in page.blocks] == ["1.1 a", "2. b", "2.2 c"]


def test_an_empty_item_is_counted_and_a_deleted_end_or_a_style_separator_costs_no_number() -> None:
    body = item("one", 1) + item("", 1) + item("thr", 1, "<w:del/>") + item("ee", 1)

    body += item("Fees", 1, "<w:vanish/><w:specVanish/>")

    page = read_body(body, numbering__xml=NUMBERING)

    assert [block.text.strip() for block in page.blocks] == ["1. one", "3. three", "4. Fees"]


def test_cells_keep_their_automatic_numbers_all_their_tables_and_the_marks_of_notes() -> None:
    def row(*cells: str) -> str:
        return f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in cells)}</w:tr>"

    note = '<w:p><w:r><w:t>12</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    inner = "".join(f"<w:tbl>{row(paragraph(text), paragraph('5'))}</w:tbl>" for text in "XY")
    rows = row(item("", 1), note) + row(item("", 1), paragraph("9")) + row(item("", 1), inner)
    notes = f'<w:footnotes {W}><w:footnote w:id="2">{paragraph("Net")}</w:footnote></w:footnotes>'

    page = read_body(f"<w:tbl>{rows}</w:tbl>", numbering__xml=NUMBERING, footnotes__xml=notes)

    assert page.content.splitlines()[2:] == [
        "| 1. | 12[1] |", "| 2. | 9 |", "| 3. | X, 5 |", "| 3. | Y, 5 |", "", "[1] Net",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "mark"),
    [
        ("", "[1]"),
        ('<w:footnotePr><w:numFmt w:val="upperLetter"/></w:footnotePr>', "[A]"),
        ('<w:footnotePr><w:numRestart w:val="eachPage"/></w:footnotePr>', "[*]"),
    ],
)
def test_the_mark_of_a_note_is_the_number_or_the_sign_that_word_shows(
    settings: str, mark: str
) -> None:
    raised = '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
    own = f'<w:r>{raised}<w:footnoteReference w:id="3" w:customMarkFollows="1"/><w:t>2</w:t></w:r>'
    body = f'<w:p><w:r>{raised}<w:t>1</w:t><w:footnoteReference w:id="2"/></w:r>{own}</w:p>'
    notes = "".join(
        f'<w:footnote w:id="{at}">{paragraph(text)}</w:footnote>'
        for at, text in ((2, "Net"), (3, "2 Gross"))
    )

    page = read_body(
        body,
        footnotes__xml=f"<w:footnotes {W}>{notes}</w:footnotes>",
        settings__xml=f"<w:settings {W}>{settings}</w:settings>",
    )

    assert page.content == f"^1{mark}[2]\n\n{mark} Net\n\n2 Gross"


FIELD = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
CODE = "<w:r><w:instrText>{}</w:instrText></w:r>".format


@pytest.mark.parametrize(
    ("inner", "shown", "left_out"),
    [
        (CODE("IF ") + FIELD("begin") + CODE("MERGEFIELD x") + FIELD("separate")
         + "<w:r><w:t>2</w:t></w:r>" + FIELD("end") + CODE('= "2"') + FIELD("separate")
         + "<w:r><w:t>Night</w:t></w:r>", "Rate Night.", []),
        (CODE("MACROBUTTON Open click here"), "Rate click here.", []),
        (CODE("XE 7"), "Rate .", []),
        (CODE("AUTONUM"), "Rate .", [("field", ("AUTONUM",))]),
        (CODE("NUMPAGES"), "Rate .", [("field", ("NUMPAGES",))]),
    ],
)  # fmt: skip
def test_a_field_shows_its_result_and_is_counted_without_one(
    inner: str, shown: str, left_out: list[tuple[str, tuple[str, ...]]]
) -> None:
    text = "<w:r><w:t>{}</w:t></w:r>".format
    page = read_body(f"<w:p>{text('Rate ')}{FIELD('begin')}{inner}{FIELD('end')}{text('.')}</w:p>")

    assert page.content == shown
    assert [(part.what, part.names) for part in page.left_out] == left_out


def test_the_chosen_entry_of_a_form_field_and_decorated_text_are_read() -> None:
    entries = '<w:listEntry w:val="A"/><w:listEntry w:val="B"/>'
    field = f'<w:ffData><w:ddList><w:result w:val="1"/>{entries}</w:ddList></w:ffData>'
    shape = '<w:pict><v:textpath xmlns:v="v" string=" Draft"/></w:pict>'

    page = read_body(
        f'<w:p><w:r><w:fldChar w:fldCharType="begin">{field}</w:fldChar></w:r>{FIELD("end")}'
        f"<w:r>{shape}</w:r></w:p>"
    )

    assert page.content == "B Draft"


def test_styles_of_a_paragraph_and_of_a_run_strike_raise_hide_and_show_text() -> None:
    def style(name: str, look: str) -> str:
        return f'<w:style w:styleId="{name}"><w:rPr>{look}</w:rPr></w:style>'

    looks = {
        "Old": "<w:strike/>", "Up": '<w:vertAlign w:val="superscript"/>', "No": "<w:vanish/>",
        "Sign": '<w:rFonts w:ascii="Symbol"/>',
    }  # fmt: skip
    styles = "".join(style(name, look) for name, look in looks.items())

    def run(name: str, text: str) -> str:
        return f'<w:r><w:rPr><w:rStyle w:val="{name}"/></w:rPr><w:t>{text}</w:t></w:r>'

    body = paragraph("400", '<w:pStyle w:val="Old"/>')
    body += f"<w:p><w:r><w:t>10</w:t></w:r>{run('Up', '3')}{run('Sign', chr(0xF0B1))}</w:p>"
    body += paragraph("secret", '<w:pStyle w:val="No"/>')
    body += paragraph("hint", '<w:pStyle w:val="No"/>', run='<w:rPr><w:vanish w:val="0"/></w:rPr>')
    body += f'<w:p><w:pPr><w:pStyle w:val="No"/></w:pPr>{run("No", "shown")}</w:p>'

    page = read_body(body, styles__xml=f"<w:styles {W}>{styles}</w:styles>")

    assert page.content == "~~400~~\n\n10^3±\n\nhint\n\nshown"
    assert [(part.what, part.count) for part in page.left_out] == [("hidden passage", 1)]


@pytest.mark.parametrize("style", ["", '<w:pStyle w:val="Code"/>'])
def test_a_raised_sign_in_code_keeps_its_position(style: str) -> None:
    def run(text: str, more: str = "") -> str:
        fonts = f'<w:rPr><w:rFonts w:ascii="Consolas"/>{more}</w:rPr>'
        return f"<w:r>{fonts}<w:t>{text}</w:t></w:r>"

    raised = run("6", '<w:vertAlign w:val="superscript"/>')
    styles = '<w:style w:styleId="Code"><w:name w:val="Code"/></w:style>'

    page = read_body(
        f"<w:p><w:pPr>{style}</w:pPr>{run('10')}{raised}</w:p>",
        styles__xml=f"<w:styles {W}>{styles}</w:styles>",
    )

    assert page.content == ("```\n10^6\n```" if style else "`10`^6")


def test_hidden_rows_and_deleted_cells_are_counted_and_old_merges_span_columns() -> None:
    def cell(text: str, merge: str = "") -> str:
        return f"<w:tc><w:tcPr>{merge}</w:tcPr>{paragraph(text)}</w:tc>"

    wide = cell("Price", '<w:hMerge w:val="restart"/>') + cell("", "<w:hMerge/>")
    rows = [
        cell("Plan") + wide,
        cell("") + cell("Month") + cell("Year"),
        cell("A") + cell("1", "<w:cellDel/>") + cell("10"),
        cell("C") + cell("3") + cell("30"),
    ]
    hidden = f"<w:tr><w:trPr><w:hidden/></w:trPr>{cell('B')}{cell('2')}{cell('20')}</w:tr>"
    table = "".join(f"<w:tr>{row}</w:tr>" for row in rows)

    page = read_body(f"<w:tbl>{table}{hidden}</w:tbl>")

    assert page.content == (
        "| Plan | Price Month | Price Year |\n|---|---|---|\n| A |  | 10 |\n| C | 3 | 30 |"
    )
    assert {(part.what, part.count) for part in page.left_out} == {
        ("deleted cell", 1), ("hidden row", 1),
    }  # fmt: skip


def test_a_cell_repeats_only_the_text_of_a_shown_cell_that_spans_its_row() -> None:
    def row(texts: str, merge: str = "", properties: str = "") -> str:
        first, second = (f"{paragraph(text)}</w:tc>" for text in texts.split(","))
        merged = f"<w:tcPr>{merge}</w:tcPr>"
        return f"<w:tr><w:trPr>{properties}</w:trPr><w:tc>{merged}{first}<w:tc>{second}</w:tr>"

    begin, go_on = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    rows = row("Plan,Price") + row("A,1", begin) + row(",2", go_on)
    rows += row("B,3", begin, "<w:del/>") + row(",4", go_on) + row("C,5") + row(",6", go_on)

    page = read_body(f"<w:tbl>{rows}</w:tbl>")

    assert page.content.endswith("| A | 1 |\n| A | 2 |\n|  | 4 |\n| C | 5 |\n|  | 6 |")


def test_a_row_that_leaves_columns_out_keeps_its_cells_below_their_headers() -> None:
    def row(cells: str, properties: str = "") -> str:
        texts = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in cells.split())
        return f"<w:tr><w:trPr>{properties}</w:trPr>{texts}</w:tr>"

    last = row("305 415", '<w:gridBefore w:val="1"/>')

    page = read_body(f"<w:tbl>{row('Region Day Night')}{row('East 310 420')}{last}</w:tbl>")

    assert page.content.endswith("| East | 310 | 420 |\n|  | 305 | 415 |")


def test_a_table_in_the_frame_of_one_cell_and_a_large_first_letter_are_what_they_show() -> None:
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("Lost badge", "35 euros"))
    inner = f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>"
    frame = f"<w:tbl><w:tr><w:tc>{inner}<w:p/></w:tc></w:tr></w:tbl>"
    letter = paragraph("W", '<w:framePr w:dropCap="drop"/>')

    page = read_body(f"{frame}{letter}{paragraph('elding needs a permit.')}")

    assert "| Lost badge | 35 euros |" in page.content
    assert page.blocks[-1].text == "Welding needs a permit."


def test_headers_are_read_once_without_numbers_of_pages() -> None:
    header = f"<w:hdr {W}>{paragraph('QP-114, revision 7')}{paragraph('12')}</w:hdr>"

    page = read_body(paragraph("Rinse."), header1__xml=header, header2__xml=header)

    assert page.content == "QP-114, revision 7\n\nRinse."


CHART = (
    f"<c:chartSpace {C} {A}><c:chart><c:title><a:p><a:r><a:t>Pumps</a:t></a:r></a:p></c:title>"
    "<c:plotArea><c:barChart><c:ser><c:tx><c:v>2024</c:v></c:tx><c:cat><c:pt idx='0'>"
    "<c:v>North</c:v></c:pt><c:pt idx='1'><c:v>South</c:v></c:pt></c:cat><c:val>"
    "<c:formatCode>0%</c:formatCode><c:pt idx='0'><c:v>0.4</c:v></c:pt></c:val></c:ser>"
    "</c:barChart></c:plotArea></c:chart></c:chartSpace>"
)


def test_a_chart_is_a_table_of_the_values_that_it_shows() -> None:
    drawing = '<w:p><w:r><w:drawing><c:chart r:id="chart1.xml"/></w:drawing></w:r></w:p>'

    page = read_body(drawing, chart1__xml=CHART)

    assert page.content == "Pumps\n\n|  | 2024 |\n|---|---|\n| North | 40% |\n| South |  |"


def points(*texts: str) -> str:
    return "".join(f"<c:pt idx='{at}'><c:v>{t}</c:v></c:pt>" for at, t in enumerate(texts) if t)


@pytest.mark.parametrize(
    ("series", "shown"),
    [
        (f"<c:ser><c:cat><c:lvl>{points('01', '02', '01')}</c:lvl><c:lvl>{points('A', '', 'B')}"
         f"</c:lvl></c:cat><c:val>{points('5', '6', '7')}</c:val></c:ser>",
         ["| A 01 | 5 |", "| A 02 | 6 |", "| B 01 | 7 |"]),
        ("".join(f"<c:ser><c:xVal>{points(x)}</c:xVal><c:yVal>{points(y)}</c:yVal></c:ser>"
                 for x, y in ("18", "29")),
         ["| 1 | 8 |", "", "|  | Series 2 |", "|---|---|", "| 2 | 9 |"]),
    ],
)  # fmt: skip
def test_a_value_of_a_chart_has_all_the_labels_of_its_own_series(
    series: str, shown: list[str]
) -> None:
    drawing = '<w:p><w:r><w:drawing><c:chart r:id="chart1.xml"/></w:drawing></w:r></w:p>'
    chart = re.sub("<c:ser>.*</c:ser>", series, CHART)

    assert read_body(drawing, chart1__xml=chart).content.splitlines()[4:] == shown


def test_a_chart_without_stored_values_is_counted() -> None:
    drawing = '<w:p><w:r><w:drawing><c:chart r:id="chart1.xml"/></w:drawing></w:r></w:p>'
    stored = r"<c:(val|cat|tx)>.*?</c:\1>"

    page = read_body(drawing, chart1__xml=re.sub(stored, "", CHART))

    assert list(map(str, page.left_out)) == ["1 chart left out (Pumps): the file stores no values"]


def test_the_values_of_a_chart_are_those_of_its_labels() -> None:
    labels = (
        '<c:dLbls><c:numFmt formatCode="0.00%" sourceLinked="0"/><c:showVal val="{}"/></c:dLbls>'
    )
    drawing = '<w:p><w:r><w:drawing><c:chart r:id="chart1.xml"/></w:drawing></w:r></w:p>'

    shown, linked = (
        read_body(drawing, chart1__xml=CHART.replace("<c:val>", f"{labels.format(on)}<c:val>"))
        for on in "10"
    )

    assert "| North | 40.00% |" in shown.content
    assert "| North | 40% |" in linked.content


@pytest.mark.parametrize(
    "drawing",
    [
        '<w:drawing><a:blipFill><a:blip r:embed="image1.emf"/></a:blipFill></w:drawing>',
        '<w:drawing><a:blipFill><a:blip r:link="image1.emf"/></a:blipFill></w:drawing>',
        '<w:pict><v:imagedata xmlns:v="v" r:id="image1.emf"/></w:pict>',
    ],
)
def test_a_picture_that_cannot_be_shown_is_counted_even_without_a_caption(drawing: str) -> None:
    body = f"<w:p><w:r><w:t>Pump</w:t>{drawing}</w:r></w:p>"

    page = collect_pictures(read_body(body, {"image1.emf": "\x01\0\0\0 EMF"}), {})

    assert page.left_out == (LeftOut("picture", 1, "the format is not supported"),)


def test_a_diagram_is_a_list_in_its_order() -> None:
    points = "".join(
        f'<pt modelId="{name}"><t><p><r><t>{text}</t></r></p></t></pt>'
        for name, text in (("0", ""), ("2", "Director"), ("1", "Lead"), ("3", "Team"))
    )
    connections = "".join(
        f'<cxn srcId="{above}" destId="{below}" srcOrd="{order}"/>'
        for above, below, order in (("0", "2", 1), ("0", "1", 0), ("1", "3", 0))
    )
    data = f"<dataModel><ptLst>{points}</ptLst><cxnLst>{connections}</cxnLst></dataModel>"

    page = read_body(
        '<w:p><w:r><w:drawing><relIds r:dm="data1.xml"/></w:drawing></w:r></w:p>', data1__xml=data
    )

    assert [block.text for block in page.blocks] == ["- Lead", "  - Team", "- Director"]


def test_a_file_that_is_a_part_of_the_body_is_read_and_another_one_counted() -> None:
    page = read_body(
        '<w:altChunk r:id="aFChunk.html"/><w:p><w:r><w:object>'
        '<o:OLEObject xmlns:o="o" r:id="x.bin"/></w:object></w:r><w:subDoc r:id="b.docx"/></w:p>',
        {"aFChunk.html": "<h1>Minutes</h1><p>84,500 euros</p>"},
        x__bin="?",
    )

    assert page.content == "# Minutes\n\n84,500 euros"
    assert [(part.what, part.count) for part in page.left_out] == [("embedded file", 1)] * 2


def test_steps_of_a_slide_have_the_numbers_that_it_shows() -> None:
    def step(text: str, kind: str, start: str = "") -> str:
        number = f'<a:buAutoNum type="{kind}" {start}/>'
        return f"<a:p><a:pPr>{number}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>"

    steps = step("Close", "arabicPeriod", 'startAt="5"') + step("Vent", "arabicPeriod")
    letters = step("Stop", "arabicPeriod") + step("Keep", "alphaLcParenR")
    letters += step("Replace", "alphaLcParenR")
    shapes = "".join(
        f"<p:sp><p:nvSpPr><p:cNvPr {hidden}/></p:nvSpPr><p:txBody>{text}</p:txBody></p:sp>"
        for text, hidden in ((steps, ""), (letters, ""), (step("Old", ""), 'hidden="1"'))
    )
    data = pack(
        {
            "ppt/presentation.xml": f'<p:presentation {P} {R}><p:sldIdLst><p:sldId r:id="s.xml"/>'
            "</p:sldIdLst></p:presentation>",
            "ppt/s.xml": f"<p:sld {P} {A}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>",
        },
        {"ppt/presentation.xml": {"s.xml": "slide"}},
    )

    page = pptx.read(data, "a.pptx")

    texts = [block.text for block in page.blocks[1:]]
    assert texts == ["5. Close", "6. Vent", "1. Stop", "a) Keep", "b) Replace"]
    assert [(part.what, part.count) for part in page.left_out] == [("hidden shape", 1)]


def test_a_list_that_begins_with_a_large_number_does_not_repeat_its_marks() -> None:
    numbering = (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start '
        'w:val="9999999"/><w:numFmt w:val="chicago"/><w:lvlText w:val="%1."/></w:lvl>'
        '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
    )

    page = read_body(item("a", 0), numbering__xml=numbering)

    assert [block.text for block in page.blocks] == ["9999999. a"]
