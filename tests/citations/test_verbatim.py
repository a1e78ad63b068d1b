"""Text of documents that is shown as Markdown reads as it stands in the document."""

import re
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from citations.links import Allowed, keep_links
from citations.verbatim import as_markdown, keep_literal

# Renders everything that a foreign client may render: HTML, tables, struck-out text.
RENDERER = MarkdownIt("gfm-like", {"html": True, "linkify": False})
ELEMENTS = "p|ul|ol|li|em|strong|code|pre|h[1-6]|blockquote|hr"
BACKSLASH = "\\"


def shown(markdown: str) -> str:
    """Return what a person sees, without white space and the signs of items."""
    html = RENDERER.render(markdown)
    text = re.sub(f"<(?:/?(?:{ELEMENTS})|br /|ol start=.*?)>", "", html)
    return "".join(unescape(text).split())


@given(st.text(alphabet="ab1é读 .\n*_~<>&[]()\\#+-=!$/;:x", max_size=80))
@example("2*3*4 and _private_ __init__.py *** 5 * 3")
@example(r"\\server\share C:\temp\new \d\.\d \/ end\ ".strip())
@example("<serial> <b>x</b> a < b > c &nbsp; &#65; A&B")
@example("> 3 kW\n\n+ 5 V\n\n# 12\n\n===\n\nm[2] [14] [x](y) [z]: w")
@example("    indented\n\n***\n\n~5 ~/x a~b~ $5 and $6")
def test_text_is_shown_unchanged_by_every_renderer(text: str) -> None:
    lines = text.split("\n")
    literal = [line for line in lines if not re.match(r"\s*(?:-(?:\s|\Z)|\d+[.)])", line)]
    plain = "\n".join(literal).replace("~~", "~").replace("](//", "](/")

    assert shown(as_markdown(plain)) == "".join(plain.split())
    safe = keep_links(as_markdown(plain), Allowed(any_host=True))
    assert safe.removed or shown(safe.text) == "".join(plain.split())


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("1. a\n2. b\n4. d", "<ol><li>a</li><li>b</li></ol><p>4. d</p>"),
        ("9. a\n\n1. FC", '<ol start="9"><li>a</li></ol><p>1. FC</p>'),
        ("2024. was", "<p>2024. was</p>"),
        ("01. a\n\n2) b", "<p>01. a</p><p>2) b</p>"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("- [ ] a\n- [x] b[2]", "<ul><li>[ ] a</li><li>[x] b[2]</li></ul>"),
    ],
)
def test_numbers_of_items_stay(text: str, html: str) -> None:
    assert RENDERER.render(as_markdown(text)).replace("\n", "") == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("~~400~~ 350, ~~ 7", "<p><s>400</s> 350, ~~ 7</p>"),
        ("a `x*y*~~` b", "<p>a <code>x*y*~~</code> b</p>"),
        ("1`000 and 2`000", "<p>1`000 and 2`000</p>"),
        ("```\na*b*\n```", "<pre><code>a*b*</code></pre>"),
        (r"\~\~400\~\~ kept", "<p>~~400~~ kept</p>"),
    ],
)
def test_code_and_struck_out_text_keep_their_form(text: str, html: str) -> None:
    assert RENDERER.render(as_markdown(text)).replace("\n", "") == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("- 5 K", "<p>- 5 K</p>"),
        ("At night:\n- .5 K\n- a", "<p>At night:</p><p>- .5 K</p><ul><li>a</li></ul>"),
        (r"\- 5 K", r"<p>\- 5 K</p>"),
        ("```\na*b", "<p>```a*b</p>"),
        ("a\n~~~\n```", "<p>a</p><p>~~~</p><p>```</p>"),
        ("```\na*b*\n```", "<pre><code>a*b*</code></pre>"),
    ],
)
def test_a_paragraph_that_looks_like_an_item_or_a_fence_stays_a_paragraph(
    text: str, html: str
) -> None:
    shown = RENDERER.render(as_markdown(f"{keep_literal(text)}\n\nEnd."))

    assert shown.replace("\n", "") == f"{html}<p>End.</p>"


def test_cells_keep_their_bars_and_backslashes() -> None:
    rows = ["| a\\|b | `1 \\| 2` |", "|---|---|", "| \\\\| | x\\ |", "| 2*3*4 | ~~4~~ 5 |"]

    html = RENDERER.render(as_markdown("\n".join(rows)))

    cells = [unescape(cell) for cell in re.findall(r"<t[hd]>(.*)</t[hd]>", html)]
    assert cells == [
        "a|b",
        "<code>1 | 2</code>",
        r"\|",
        BACKSLASH.join(("x", "")),
        "2*3*4",
        "<s>4</s> 5",
    ]
