from knowledge.documents.markup import asciidoc
from knowledge.documents.page import Block, BlockKind, Page


def read(text: str) -> Page:
    return asciidoc.read(text.encode(), "a.adoc")


def test_sections_lists_and_attributes() -> None:
    page = read(
        "= Guide\n:product: Refdesk\n:keywords: help, desk\n\n[[start]]\n== Start {product}\n\n"
        "Install it.\nThen *run* it. // shown\n\n* One\n** Inner\n* Two\n\n"
        "Then:\n\n. First\n. Second\n\nPort:: The number.\n"
    )

    assert (page.title, page.keywords) == ("Guide", ("help", "desk"))
    assert page.blocks == (
        Block(BlockKind.HEADING, "Guide", 1, "guide"),
        Block(BlockKind.HEADING, "Start Refdesk", 2, "start"),
        Block(BlockKind.TEXT, "Install it. Then run it. // shown"),
        Block(BlockKind.ITEM, "- One"),
        Block(BlockKind.ITEM, "  - Inner"),
        Block(BlockKind.ITEM, "- Two"),
        Block(BlockKind.TEXT, "Then:"),
        Block(BlockKind.ITEM, "1. First"),
        Block(BlockKind.ITEM, "2. Second"),
        Block(BlockKind.TEXT, "Port: The number."),
    )


def test_listings_keep_every_character() -> None:
    page = read("[source,python]\n----\nx = {'a': '*b*'}\n\n  # <1>\n----\n\n....\n_raw_\n....\n")

    assert [block.text for block in page.blocks] == [
        "```python\nx = {'a': '*b*'}\n\n  # <1>\n```",
        "```\n_raw_\n```",
    ]


def test_tables_keep_header_and_cells() -> None:
    page = read('[cols="1,2"]\n|===\n|Name |Value\n\n|`a\\|b` |*one*\n\n.2+|Both |x\n|y\n|===\n')

    assert page.blocks[0].text == (
        "| Name | Value |\n|---|---|\n| `a\\|b` | one |\n| Both | x |\n| Both | y |"
    )


def test_admonitions_links_and_macros_leave_their_text() -> None:
    page = read(
        "NOTE: See https://example.com/a[the guide] and xref:b.adoc[page b], <<start,here>>.\n\n"
        "[WARNING]\n====\nDo not `DELETE /x/{id}`.\n====\n\nimage::a.png[]\ninclude::b.adoc[]\n"
        "ifdef::web[]\nOnly web.\nendif::[]\n"
    )

    assert [block.text for block in page.blocks if block.text] == [
        "NOTE: See the guide and page b, here.",
        "Do not `DELETE /x/{id}`.",
        "Only web.",
    ]
    assert page.warnings == ("the file b.adoc was not included",)


def test_comments_are_no_text() -> None:
    assert [block.text for block in read("Seen.\n\n// hidden\n////\nhidden\n////\n").blocks] == [
        "Seen."
    ]


def test_a_picture_has_its_title_as_caption_and_its_alternative_text_is_no_sentence() -> None:
    page = (
        b".The wiring\nimage::img/a.png[Terminal A, 300]\n\nSee image:b.png[] and image:c.png[C].\n"
    )

    found = asciidoc.read(page, "a.adoc").blocks

    pictures = [(one.caption, one.address) for block in found for one in block.pictures]
    assert pictures == [("The wiring", "img/a.png"), ("", "b.png"), ("C", "c.png")]
    assert [block.text for block in found] == ["The wiring", "", "See and ![C]."]
