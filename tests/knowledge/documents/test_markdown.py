from knowledge.documents.markup import markdown
from knowledge.documents.page import Block, BlockKind


def blocks(text: str) -> tuple[Block, ...]:
    return markdown.blocks_of(text)


def test_headings_carry_their_level_and_their_stated_anchor() -> None:
    page = markdown.read(b"# Rate plans { #plans }\n\n## Peak hours {#peak .wide}\n", "plans.md")

    assert page.blocks == (
        Block(BlockKind.HEADING, "Rate plans", 1, "plans"),
        Block(BlockKind.HEADING, "Peak hours", 2, "peak"),
    )
    assert page.title == "Rate plans"


def test_headings_without_an_anchor_get_the_usual_slug_once_each() -> None:
    found = blocks("## Send `SMS` & wait!\n\n## Example\n\n## Example\n\n## Example-1\n")

    assert [block.anchor for block in found] == [
        "send-sms--wait",
        "example",
        "example-1",
        "example-1-1",
    ]


def test_front_matter_states_title_description_keywords_language_and_address() -> None:
    text = (
        "---\ntitle: Routing\ndescription: How\nkeywords: [a, b]\nlang: de\nurl: /r\n---\n# Other\n"
    )

    page = markdown.read(text.encode(), "routing.md")

    assert (page.title, page.description, page.keywords) == ("Routing", "How", ("a", "b"))
    assert (page.language, page.url) == ("de", "/r")


def test_lists_keep_their_items_and_markers() -> None:
    found = blocks("- one\n  more\n- two\n  1. three\n\n     again\n")

    assert [block.text for block in found] == ["- one more", "- two", "  1. three", "     again"]
    assert {block.kind for block in found} == {BlockKind.ITEM}


def test_code_and_tables_are_blocks_of_their_own() -> None:
    found = blocks("```python\nx = {'a': '*b*'}\n```\n\n| a | b |\n|---|---|\n| *1* | 2 |\n")

    assert found == (
        Block(BlockKind.CODE, "```python\nx = {'a': '*b*'}\n```"),
        Block(BlockKind.TABLE, "| a | b |\n|---|---|\n| 1 | 2 |"),
    )


def test_a_broken_table_stays_text() -> None:
    found = blocks("| a | b |\n|--\n| 1 |\n")

    assert [block.kind for block in found] == [BlockKind.TEXT]
    assert "| 1 |" in found[0].text


def test_inline_markup_goes_and_inline_code_stays() -> None:
    found = blocks(
        "See **the [guide](http://a_b.c/x_(y))** and ![a map](m.png), `my_*name*` &amp; me."
    )

    assert found[0].text == "See the guide and ![a map], `my_*name*` & me."


def test_snake_case_words_are_no_emphasis() -> None:
    assert (
        blocks("set max_retry_count and 2 * 3 * 4")[0].text == "set max_retry_count and 2 * 3 * 4"
    )


def test_the_body_of_an_admonition_is_text_and_not_code() -> None:
    found = blocks('!!! note "Mind"\n\n    The **limit** is per day.\n')

    assert [block.kind for block in found] == [BlockKind.TEXT]
    assert found[0].text == "Mind: The limit is per day."


def test_boxes_and_listings_of_documentation_generators_are_read() -> None:
    found = blocks(
        "(plans)=\n# Plans\n\n"
        "```{note} Mind\n:class: x\n\nThe **limit** of {ref}`a plan <plan>`.\n```\n\n"
        "```{code-block} python\nx = 1\n```\n\n```{toctree}\na\n```\n"
    )

    assert [block.text for block in found] == [
        "Plans",
        "Mind",
        "The limit of a plan.",
        "```python\nx = 1\n```",
    ]


def test_html_inside_markdown_is_read_as_text_and_scripts_are_dropped() -> None:
    assert blocks("<div>Hello <b>you</b><script>alert(1)</script></div>\n")[0].text == "Hello you"


def test_a_page_without_headings_has_no_title_of_its_own() -> None:
    assert markdown.read(b"just a line\n", "x.md").title == ""
