"""Properties of code in Markdown: a person sees the same characters before and after reading."""

import re
from html import escape

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from knowledge.documents.markup import markdown
from knowledge.documents.page import BlockKind

PIECES = (
    "a", "b2", " ", "`", "``", "|", "<", ">", "<b>", "</div>", "&", "&amp;", "&lt;", "{", "}",
    "{{<", "{%", "{/*", "*/}", "*", "_", "~~", "[x](y)", "[^1]", "#", "\\", "$", "!!!", ":::",
    "::", "=>", "10–20 °C", "ж",
)  # fmt: skip
LINES = (
    "", "    indented", "```", "~~~", "# no heading", "!!! note", '=== "Tab"', "<Tabs>", ":::tip",
    "[^1]: x", "import a from 'b'", "export const a = 1", "| a | b |", "|---|---|", "[TOC]",
    "<!-- x -->", "(label)=", "{{% tab %}}", "- item", "> quoted", "*[HTML]: x",
    '<Card title="x" />', "---", "$x$", "{/* note */}",
)  # fmt: skip
CODE = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map(lambda parts: "".join(parts))
SPANS = CODE.map(str.strip).filter(bool)
CELLS = SPANS.filter(lambda code: "\\" not in code)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PARSER = MarkdownIt("commonmark").enable("table")


def write_span(code: str) -> str:
    """Return a span of code as CommonMark has it: between more backticks than it contains."""
    ticks = "`" * (max((len(run) for run in split_ticks(code)), default=0) + 1)
    border = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{border}{code}{border}{ticks}"


def split_ticks(code: str) -> list[str]:
    return "".join(sign if sign == "`" else " " for sign in code).split()


def list_spans(text: str) -> list[str]:
    """Return the spans of code in Markdown."""
    return [
        child.content
        for token in PARSER.parse(text)
        for child in token.children or ()
        if child.type == "code_inline"
    ]


@given(code=SPANS)
@example(code="{/* kept */}")
@QUICK
def test_a_span_of_code_shows_its_characters(code: str) -> None:
    (block,) = markdown.blocks_of(f"Send {write_span(code)} first.")

    assert list_spans(block.text) == [code]


@given(codes=st.lists(CELLS, min_size=2, max_size=3))
@QUICK
def test_code_in_a_table_shows_its_characters_in_its_own_cell(codes: list[str]) -> None:
    cells = " | ".join(write_span(code).replace("|", "\\|") for code in codes)
    heads = " | ".join(f"head {at}" for at in range(len(codes)))

    (block,) = markdown.blocks_of(f"| {heads} |\n{'|---' * len(codes)}|\n| {cells} |\n")

    assert block.kind is BlockKind.TABLE
    assert list_spans(block.text) == [" ".join(code.split()) for code in codes]


@given(lines=st.lists(st.one_of(st.sampled_from(LINES), CODE), min_size=1, max_size=6))
@QUICK
def test_a_block_of_code_shows_its_lines(lines: list[str]) -> None:
    body = "\n".join(["first", *lines, "last"])
    fence_of_body = "`" * max(3, 1 + max(map(len, re.findall("`+", body)), default=0))

    page = markdown.blocks_of(f"Before.\n\n{fence_of_body}text\n{body}\n{fence_of_body}\n\nAfter.")

    assert [block.text for block in page if block.kind is not BlockKind.CODE] == [
        "Before.",
        "After.",
    ]
    (block,) = (block for block in page if block.kind is BlockKind.CODE)
    (fence,) = (token for token in PARSER.parse(block.text) if token.type == "fence")
    assert fence.content == f"{body}\n"


@given(
    text=st.lists(st.sampled_from(("a", "<", ">", "&", "&amp;", "<b>", "&#62;", "7")), min_size=1)
)
@QUICK
def test_brackets_and_entities_in_prose_are_shown_as_a_person_sees_them(text: list[str]) -> None:
    seen = " ".join(text)

    (block,) = markdown.blocks_of(f"Value {escape(seen)} end.")

    assert block.text == f"Value {seen} end."
