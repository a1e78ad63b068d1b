"""What a page of markup is read as: each example says which texts its blocks have."""

from pathlib import PurePosixPath

import pytest

from knowledge.chunking import passages
from knowledge.documents import formats
from knowledge.documents.formats import Item
from knowledge.documents.location import locate
from knowledge.documents.markup import asciidoc, html, restructuredtext
from knowledge.documents.page import Block, BlockKind, Page
from knowledge.documents.readers import Reader


def read(name: str, text: str) -> Page:
    path = PurePosixPath(name)
    return formats.read(Item(name, text.encode(), name), path, locate(path, ()))


TABS = (
    '<Tabs>\n  <TabItem value="apt" label="Debian" default>\n\n    Run it:\n\n'
    "    ```sh\n    apt install x\n    ```\n\n  </TabItem>\n"
    '  <TabItem value="Fedora">\n    dnf does it.\n  </TabItem>\n</Tabs>\n'
)
TABS_ON_A_LINE = (
    '<Tabs><TabItem value="apt" label="Debian">\n\nRun apt.\n\n'
    '</TabItem><TabItem value="rpm" label="Fedora">\n\nRun dnf.\n\n</TabItem></Tabs>\n'
)
DEBIAN = ["Debian", "Run it:", "```sh\napt install x\n```", "Fedora", "dnf does it."]
INNER = "<table><tr><th>Shift<th>Phone<tr><td>Early<td>{0}1<tr><td>Late<td>{0}2</table>"
SPANNED = "<table><tr><td>a<td>b<tr><td>c<td><table><tr><td>d</table></table>"

MARKDOWN = {
    "items of lists keep their markers": (
        "- one\n  more\n- two\n  1. three\n\n     again\n",
        ["- one more", "- two", "  1. three", "     again"],
    ),
    "code and tables are blocks of their own": (
        "```python\nx = {'a': '*b*'}\n```\n\n| a | b |\n|---|---|\n| *1* | 2 |\n",
        ["```python\nx = {'a': '*b*'}\n```", "| a | b |\n|---|---|\n| 1 | 2 |"],
    ),
    "inline markup goes, inline code stays": (
        "See **the [guide](http://a_b.c/x_(y))** and ![a map](m.png), `my_*name*` &amp; me.",
        ["See the guide and ![a map], `my_*name*` & me."],
    ),
    "words with lines are no emphasis": (
        "set max_retry_count and 2 * 3 * 4", ["set max_retry_count and 2 * 3 * 4"],
    ),
    "html is read as text, its scripts are not": (
        "<div>Hello <b>you</b><script>alert(1)</script></div>\n", ["Hello you"],
    ),
    "what stands for a picture is marked": (
        "![Wiring of A](a.png)\n\n[![Build](b.svg)](https://ci.example/x)\n",
        ["![Wiring of A]", "![Build]"],
    ),
    "the body of an admonition is text": (
        '!!! note "Mind"\n\n    The **limit** is per day.\n', ["Mind: The limit is per day."],
    ),
    "a box without a title is headed by its kind": (
        ":::danger\n\nNever.\n\n:::\n", ["Danger", "Never."],
    ),
    "the title of a note is no part of its first sentence": (
        '!!! warning "Extensions"\n    The server needs one.\n\n'
        "!!! danger\n    It cannot be undone.\n",
        ["Extensions: The server needs one.", "Danger: It cannot be undone."],
    ),
    "boxes and listings of MyST": (
        "(plans)=\n# Plans\n\n"
        "```{note} Mind\n:class: x\n\nThe **limit** of {ref}`a plan <plan>`.\n```\n\n"
        "```{code-block} python\nx = 1\n```\n\n```{toctree}\na\n```\n",
        ["Plans", "Mind", "The limit of a plan.", "```python\nx = 1\n```"],
    ),
    "captions of MyST": (
        "```{code-block} yaml\n:caption: values.yaml\n\na: 1\n```\n\n"
        "```{figure} img.png\n:name: x\n\nThe caption.\n```\n",
        ['```yaml title="values.yaml"\na: 1\n```', "The caption."],
    ),
    "a fence keeps its file and its options as written": (
        '```yaml title="a.yaml" hl_lines="2"\nx\n```\n',
        ['```yaml title="a.yaml" hl_lines="2"\nx\n```'],
    ),
    "labels of tabs": (TABS, DEBIAN),
    "labels of tabs on one line": (TABS_ON_A_LINE, ["Debian", "Run apt.", "Fedora", "Run dnf."]),
    "links by reference and emphasis beside other scripts": (
        "See [the guide][g] and *path*\u3067.\n\n[g]: https://a.example/g\n",
        ["See the guide and path\u3067."],
    ),
    "elements of html are blocks of their own": (
        "<h2>Prices</h2>\n<table><tr><th>A<th>B<tr><td><code>x</code><td>2</table>\n\n**More**\n",
        ["Prices", "| A | B |\n|---|---|\n| `x` | 2 |", "More"],
    ),
    "a note in a list is a part of its item": (
        '1. Open it.\n\n    !!! note "Mind `x`"\n        Slowly.\n\n2. Close it.\n',
        ["1. Open it.", "   Mind `x`", "   Slowly.", "2. Close it."],
    ),
    "code that nothing ends, ends with its note": (
        "!!! tip\n    ```\n    x\n\nAfter.\n", ["Tip", "```\nx\n```", "After."],
    ),
    "a note in code is code": (
        "- a\n\nAs:\n\n    !!! note\n        x\n\n```\n- b\n!!! note\n    y\n```\n",
        ["- a", "As:", "```\n!!! note\n    x\n```", "```\n- b\n!!! note\n    y\n```"],
    ),
    "imports and comments of mdx go, sentences and code stay": (
        "import A from './a.mdx'\n\nimport the file and\nexport it from there.\n\n"
        "Text {/* no\nmore */} here.\n\n```jsx\n{/* kept */}\n```\n\nAn open {/* one.\n",
        ["import the file and export it from there.", "Text here.", "```jsx\n{/* kept */}\n```",
         "An open {/* one."],
    ),
    "boxes between slashes": (
        "1. One\n\n    /// note | Details\n\n    Text.\n\n    ///\n",
        ["1. One", "   Details", "   Text."],
    ),
    "the name of an element that is not closed hides nothing": (
        "Fill <textarea> and <select>.\n\nAfter.\n", ["Fill <textarea> and <select>.", "After."],
    ),
}  # fmt: skip
MDX = {
    "labels of tabs": (TABS, DEBIAN),
    "labels of tabs on one line": (TABS_ON_A_LINE, ["Debian", "Run apt.", "Fedora", "Run dnf."]),
    "components and modules are left out": (
        "import { A } from 'a'\nimport {\n  B,\n} from 'b';\n\nexport const x = 1;\n\n# Hello\n\n"
        '{/* a comment */}\n<Tabs>\n<Tab title="On Linux">\n\nSome **text** <Badge/> here.\n\n'
        "</Tab>\n</Tabs>\n\n```js\nimport z from 'z'\n```\n",
        ["Hello", "On Linux", "Some text here.", "```js\nimport z from 'z'\n```"],
    ),
}
SPHINX = {
    "lists, code, tables and notes": (
        "- one\n- two\n\n.. code-block:: python\n\n   x = 1\n\n"
        "=== ===\nk   v\n=== ===\n1   2\n=== ===\n\n.. note:: Mind the *gap*.\n",
        ["- one", "- two", "```python\nx = 1\n```", "| k | v |\n|---|---|\n| 1 | 2 |",
         "Note: Mind the gap."],
    ),
    "roles and directives that nobody knows are their text": (
        "See :ref:`the guide <guide>` and :py:func:`~send`.\n\n"
        ".. versionadded:: 2.0\n   :hidden:\n\n   It sends *faster*.\n\n"
        ".. toctree::\n\n   a\n   b\n",
        ["See the guide and `send`.", "versionadded 2.0", "It sends faster."],
    ),
    "tabs and captions": (
        ".. tabs::\n\n   .. code-tab:: python Sync\n\n      a = 1\n\n   .. group-tab:: Async\n\n"
        "      b is two.\n\n.. code-block:: yaml\n   :caption: values.yaml\n\n   kind: Pod\n\n"
        ".. figure:: x.png\n\n   The caption.\n\n.. deprecated:: 2.1\n\n   Use b.\n",
        ["```python Sync\na = 1\n```", "Async", "b is two.",
         '```yaml title="values.yaml"\nkind: Pod\n```', "The caption.", "deprecated 2.1", "Use b."],
    ),
    "a box without a title is headed by its kind": (
        ".. warning::\n\n   Careful.\n", ["Warning: Careful."],
    ),
}  # fmt: skip
ASCIIDOC = {
    "tables keep header and cells": (
        '[cols="1,2"]\n|===\n|Name |Value\n\n|`a\\|b` |*one*\n\n.2+|Both |x\n|y\n|===\n',
        ["| Name | Value |\n|---|---|\n| `a\\|b` | one |\n| Both | x |\n| Both | y |"],
    ),
    "comments are no text": ("Seen.\n\n// hidden\n////\nhidden\n////\n", ["Seen."]),
}
HTML = {
    "lists, code and tables keep their form": (
        "<ul><li>a<ul><li>b</li></ul></li></ul><ol><li>c<li>d</ol>"
        '<pre><code class="language-py">x = 1\n  y</code></pre>'
        "<table><tr><th>k<th>v<tr><td>1<td>2 &amp; <b>3</b></table><p>Use <code>a_b</code>.</p>",
        ["- a", "  - b", "1. c", "2. d", "```py\nx = 1\n  y\n```",
         "| k | v |\n|---|---|\n| 1 | 2 & 3 |", "Use `a_b`."],
    ),
    "items of nested lists keep their place": (
        "<ol start=3><li>one<ul><li>two</li></ul>rest of one</li><li>four</li></ol>",
        ["3. one", "  - two", "   rest of one", "4. four"],
    ),
    "the caption of a table stands above it": (
        "<table><caption>Prices</caption><tr><th>a<th>b<tr><td>1<td>2</table>",
        ["Prices", "| a | b |\n|---|---|\n| 1 | 2 |"],
    ),
    "a table in a cell is its text and leaves the row one row": (
        f"<table><tr><th>Depot<th>Contacts<tr><td>Bremen<td>call {INNER.format(50)}"
        f"<tr><td>Kassel<td>{INNER.format(70)}<tr><td>Ulm<td>none</table>",
        ["| Depot | Contacts |\n|---|---|\n"
         "| Bremen | call Shift: Early, Phone: 501; Shift: Late, Phone: 502 |\n"
         "| Kassel | Shift: Early, Phone: 701; Shift: Late, Phone: 702 |\n"
         "| Ulm | none |"],
    ),
    "tables in cells that span rows stay texts in their cells": (
        f"<table><tr><th>k<th>v<tr><td rowspan=2>1<td>{SPANNED}<tr><td>2</table>",
        ["| k | v |\n|---|---|\n| 1 | a, b; c, d |\n| 1 | 2 |"],
    ),
}  # fmt: skip
FORMATS = {"a.md": MARKDOWN, "a.mdx": MDX, "a.rst": SPHINX, "a.adoc": ASCIIDOC, "a.html": HTML}
EXAMPLES = [
    pytest.param(name, text, shown, id=f"{name}: {what}")
    for name, examples in FORMATS.items()
    for what, (text, shown) in examples.items()
]


@pytest.mark.parametrize(("name", "text", "shown"), EXAMPLES)
def test_a_page_is_read_as_the_texts_of_its_blocks(name: str, text: str, shown: list[str]) -> None:
    assert [block.text for block in read(name, text).blocks if block.text] == shown


def test_items_code_and_tables_are_blocks_of_their_kind_and_a_broken_table_is_text() -> None:
    broken = "| a | b |\n|--\n| 1 |\n"
    page = read("a.md", f"- a\n\n```\nx\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n{broken}")

    kinds = [block.kind for block in page.blocks]
    assert kinds == [BlockKind.ITEM, BlockKind.CODE, BlockKind.TABLE, BlockKind.TEXT]
    assert "| 1 |" in page.blocks[-1].text


def test_sections_lists_and_attributes_of_asciidoc() -> None:
    page = read(
        "a.adoc",
        "= Guide\n:product: Refdesk\n:keywords: help, desk\n\n[[start]]\n== Start {product}\n\n"
        "Install it.\nThen *run* it. // shown\n\n* One\n** Inner\n* Two\n\n"
        "Then:\n\n. First\n. Second\n\nPort:: The number.\n",
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


def test_admonitions_links_and_macros_of_asciidoc_leave_their_text() -> None:
    page = read(
        "a.adoc",
        "NOTE: See https://example.com/a[the guide] and xref:b.adoc[page b], <<start,here>>.\n\n"
        "[WARNING]\n====\nDo not `DELETE /x/{id}`.\n====\n\nimage::a.png[]\ninclude::b.adoc[]\n",
    )

    assert [block.text for block in page.blocks if block.text] == [
        "NOTE: See the guide and page b, here.",
        "WARNING:",
        "Do not `DELETE /x/{id}`.",
    ]
    assert [part.names for part in page.left_out] == [("include b.adoc",), ("a.png",)]


def test_conditions_of_asciidoc_are_applied_and_excluded_parts_are_named() -> None:
    page = read(
        "a.adoc",
        "= A\n:pro:\n:version: 2\n:!beta:\nifndef::dir[:dir: img]\n\nUp to\nifdef::pro+dir[100]\n"
        "ifndef::pro[10]\nusers in {dir}.\n\n. One\n\nifdef::backend-html5[]\n. Two\nendif::[]\n\n"
        ". Three\n\n----\nx\nifdef::beta,web[]\ny\nendif::[]\n----\n"
        "ifeval::[{unknown} > 3]\nifdef::pro[]\nNo.\nendif::pro[]\nendif::[]\n"
        "\\ifdef::x[y]\n",
    )

    assert [block.text for block in page.blocks] == [
        "A", "Up to 100 users in img.", "1. One", "2. Two", "3. Three", "```\nx\n```",
        "ifdef::x[y]",
    ]  # fmt: skip
    assert [part.names for part in page.left_out] == [
        ("ifndef pro", "ifdef beta,web", "ifeval {unknown} > 3")
    ]


def test_numbers_and_headers_of_asciidoc_are_those_of_the_page() -> None:
    page = read(
        "a.adoc",
        '= Rules\n:sectnums:\n\n== Fees\n\n=== Rooms\n\n[options="header,footer"]\n|===\n'
        "|Size |25-40\n|Lift |4\n|===\n\n[%header,format=csv]\n|===\n1,2\na,b\n|===\n\n|===\n"
        "|Up to 4 |5\n\n|x |y\n|===\n\n[discrete]\n== Hours\n\n== Keys\n\n[start=3]\n. Stop\n+\n"
        "[WARNING]\n--\nWait.\n\n. Once\n--\n. Go\n",
    )

    assert [block.text for block in page.blocks] == [
        "Rules", "1. Fees", "1.1. Rooms", "| Size | 25-40 |\n|---|---|\n| Lift | 4 |",
        "| 1 | 2 |\n|---|---|\n| a | b |", "| Up to 4 | 5 |\n|---|---|\n| x | y |", "Hours",
        "2. Keys", "3. Stop", "WARNING:", "Wait.", "1. Once", "4. Go",
    ]  # fmt: skip


def test_inline_markup_of_asciidoc_leaves_what_a_reader_sees() -> None:
    page = read(
        "a.adoc",
        ":name: N\n\nOpen [.path]_x.rb_ or [.term]*z* **man**ual: \\{name} {name} `+{name}+` "
        '&#8805; 5 {lt}b{gt} C{plus}{plus} "`so`" `&lt;` kbd:[Ctrl,P] [.red.line-through]*400* +\n'
        "footnote:[See xref:a.adoc[chapter 2].]\n\n|===\n|a |b\n//|c\n|1 |2\n|===\n",
    )

    assert [block.text for block in page.blocks] == [
        'Open x.rb or z manual: {name} N `{name}` ≥ 5 <b> C++ "so" `<` Ctrl+P ~~400~~\n'
        "[See chapter 2.]",
        "| a | b |\n|---|---|\n| 1 | 2 |",
    ]


def test_an_attribute_of_asciidoc_can_use_others_and_continue_on_the_next_line() -> None:
    page = read("a.adoc", "= A\n:base: https://a.example\n:url: {base}/b \\\n  and more\n\n{url}\n")

    assert page.blocks[-1].text == "https://a.example/b and more"


PICTURES = [
    (
        asciidoc.read,
        ".The wiring\nimage::img/a.png[Terminal A, 300]\n\nSee image:b.png[] and image:c.png[C].\n",
        [("The wiring", "img/a.png"), ("", "b.png"), ("C", "c.png")],
        ["The wiring", "See and ![C]."],
    ),
    (
        restructuredtext.read,
        ".. figure:: a.png\n   :alt: the alt\n\n   The *caption*.\n\n"
        "+---+---+\n| a | b |\n+===+===+\n| c | d |\n+   +---+\n|   | e |\n+---+---+\n\n"
        "E41\n   No signal.\n\n.. image:: b.png\n   :alt: A gauge\n",
        [("The caption.", "a.png"), ("A gauge", "b.png")],
        ["The caption.", "| a | b |\n|---|---|\n| c | d |\n| c | e |", "E41: No signal."],
    ),
]


@pytest.mark.parametrize(("reader", "text", "pictures", "shown"), PICTURES)
def test_a_picture_has_a_caption_and_its_alternative_text_is_no_sentence(
    reader: Reader, text: str, pictures: list[tuple[str, str]], shown: list[str]
) -> None:
    blocks = reader(text.encode(), "a").blocks

    results = [(picture.caption, picture.address) for block in blocks for picture in block.pictures]
    assert results == pictures
    assert [block.text for block in blocks if block.text] == shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "Ask [support](https://help.example/a).\n"),
        ("a.rst", "Ask `support <https://help.example/a>`_.\n"),
    ],
)
def test_the_address_of_a_link_reaches_the_passage_that_shows_its_label(
    name: str, text: str
) -> None:
    (passage,) = passages(read(name, text))

    assert passage.links == (("support", "https://help.example/a"),)


def test_a_text_file_keeps_its_lines_unless_they_were_wrapped() -> None:
    prose = (
        "A long paragraph that a mail program has wrapped after about seventy\n"
        "characters is read as one text, because its lines end only where the\n"
        "next word has no room.\n"
    )

    (passage,) = passages(read("a.txt", f"ACME Ltd\nStreet 1\nPhone: 123\n\n{prose}"))

    assert passage.text == (f"ACME Ltd\nStreet 1\nPhone: 123\n\n{' '.join(prose.split())}")


def test_columns_of_a_text_file_keep_their_spaces() -> None:
    table = "Plan      Price   From\nBasic     4.50    March\nPremium   19.00   April"

    (passage,) = passages(read("a.txt", f"Prices of  2026\n\n{table}\n"))

    assert passage.text == f"Prices of 2026\n\n```\n{table}\n```"


def test_tables_as_values_numberings_and_struck_text_of_asciidoc() -> None:
    page = read(
        "a.adoc",
        "Was [.line-through]#400# 10^6^ H~2~O footnote:[Net.] menu:File[Save] +a_b_c+\n\n"
        '[format="csv",options="header"]\n|===\nName,Price\n"Bolt, long",1\n|===\n\n'
        ",===\nx1,2\n,===\n\n[start=4]\n. Fee\n.. Net\n. Due\n\n[upperroman]\n. First\n\n"
        "[WARNING]\n====\nHot.\n====\n\n[NOTE]\nCold.\n\n[quote,Ann Lee]\n____\nYes.\n____\n",
    )

    assert [block.text for block in page.blocks] == [
        "Was ~~400~~ 10^6 H2O [Net.] File > Save a_b_c",
        "| Name | Price |\n|---|---|\n| Bolt, long | 1 |",
        "|  |  |\n|---|---|\n| x1 | 2 |",
        "4. Fee", "  a. Net", "5. Due", "I. First", "WARNING:", "Hot.", "NOTE: Cold.",
        "Ann Lee:", "Yes.",
    ]  # fmt: skip


def test_numbers_of_lists_and_text_struck_out_by_a_style_sheet_are_read_from_html() -> None:
    page = read(
        "a.html",
        "<style>.old{text-decoration:line-through}</style><body><ol type=a start=3><li>Fee</li>"
        "<li value=7>Due</li></ol><p><span class=old>400</span> 450</p>"
        "<iframe src=https://x.example/map></iframe></body>",
    )

    assert page.content == "c. Fee\n\ng. Due\n\n~~400~~ 450"
    assert [(part.what, part.names) for part in page.left_out] == [
        ("embedded element", ("https://x.example/map",))
    ]


def test_lists_are_numbered_backwards_or_as_a_style_states_in_html() -> None:
    page = read(
        "a.html",
        "<style>.n{list-style:none}.r{list-style-type:upper-roman}</style>"
        "<ol reversed><li>b<li>a</ol><ol type=a start=27><li>c</ol>"
        "<ol class=r start=4><li>d</ol><ol class=n><li>(1) e</ol>",
    )

    assert page.content == "2. b\n\n1. a\n\naa. c\n\nIV. d\n\n- (1) e"


def test_references_and_links_of_asciidoc_have_the_titles_and_addresses_of_their_targets() -> None:
    page = read(
        "a.adoc",
        "[[fees]]\n== Fees *now*\n\n"
        "* See <<fees>>, <<fees,there>>, https://a.example[the _new_site_].\n"
        "[loweralpha]\n. One\n",
    )

    assert [block.text for block in page.blocks] == [
        "Fees now", "- See Fees now, there, the new_site.", "  a. One",
    ]  # fmt: skip
    assert page.links == (("the new_site", "https://a.example"),)


def test_line_breaks_stay_and_soft_hyphens_go_in_html() -> None:
    page = read(
        "a.html",
        "<h1>A<br>B</h1><p>Mill 7a<br> <br>04109 Do&shy;rf</p><ol><li>x<br>y</ol>"
        "<table><tr><td>Load<br>kg<td>1<br>234<td><p>8</p><p>9</p><p>7</p></table>",
    )

    table = "|  |  |  |\n|---|---|---|\n| Load kg | 1; 234 | 8; 9; 7 |"
    assert page.content == f"# A B\n\nMill 7a\n04109 Dorf\n\n1. x\n   y\n\n{table}"


def test_elements_that_are_shown_or_named_as_a_table_are_a_table() -> None:
    style = "<style>.t{display:table}.r{display:table-row}.c{display:table-cell}</style>"
    styled = "<div class=t><p class=r><b class=c>{}</b><i class=c>{}</i></p></div>"
    named = "<div role=table><p role=row><b role=rowheader>{}</b><i role=cell>{}</i></p></div>"
    layout = "<div class=t><div class=r><div class=c><h2>{}</h2></div><p class=c>{}</p></div></div>"

    page = read("a.html", style + "".join(part.format("A", 6) for part in (styled, named, layout)))

    table = "|  |  |\n|---|---|\n| A | 6 |"
    assert page.content == f"{table}\n\n{table}\n\n## A\n\n6"


def test_a_row_that_also_states_its_role_is_one_row() -> None:
    page = read("a.html", "<table><tr role=row><td>A<td>6<tr role=row><td>B<td>7</table>")

    assert page.content == "|  |  |\n|---|---|\n| A | 6 |\n| B | 7 |"


def test_a_first_row_with_a_value_in_each_line_of_a_cell_is_no_header() -> None:
    page = read(
        "a.html",
        "<table><tr><td>Adults<br>Dogs<td>12<br>6<tr><td>Cats<td>3</table>"
        "<table><tr><td>Belt<br>Gear<br>Fan<td>1,200 kg<br>350 kg<tr><td>Rope<td>light</table>",
    )

    assert page.content.split("\n\n") == [
        "|  |  |\n|---|---|\n| Adults | 12 |\n| Dogs | 6 |\n| Cats | 3 |",
        "|  |  |\n|---|---|\n| Belt Gear Fan | 1,200 kg 350 kg |\n| Rope | light |",
    ]


def test_rows_without_cells_and_lists_in_cells_are_read_from_html() -> None:
    page = read(
        "a.html",
        "<table><tr><th colspan=2>Lift<th>Load</tr><tr></tr><tr><td>A<td>B<td>630</tr></table>"
        "<table><tr><th>Step<tr><td><ol start=3><li>Open<li>Close</ol></table>",
    )

    assert "| A | B | 630 |" in page.content
    assert "3. Open\n\n4. Close" in page.content


def test_numbers_and_superscripts_that_a_style_sheet_states_are_read_from_html() -> None:
    style = (
        "ol{list-style-type:none}.a>li:before{content:counter(a,lower-latin) '. '}"
        ".b>li::before{content:counter(list-item) ' '}.a{counter-reset:a 1}"
        ".a>li{counter-increment:a}.up{vertical-align:super}"
    )
    page = read(
        "a.html",
        f"<style>{style}</style><ol class=a start=2><li>One</ol><ol class=b><li>Two</ol>"
        '<p>10<i class=up>6</i> x 2<i style="VERTICAL-ALIGN: sub">3</i>'
        '<a class=up href="#n">4</a></p><p class=up>5</p>',
    )

    assert page.content == "- b. One\n\n- 1 Two\n\n10^6 x 2_3[4]\n\n5"


@pytest.mark.parametrize(
    ("markup", "content"),
    [
        (
            "<style>.a{text-decoration:line-through}li.b{text-decoration:none}"
            ".c{text-decoration:line-through!important}#x{text-decoration-line:none}</style>"
            "<ul><li class='a b'>One<li class=a>Two<li class=c id=x>Three"
            "<li class=a style='text-decoration:none'>Four</ul>",
            "- One\n\n- ~~Two~~\n\n- ~~Three~~\n\n- Four",
        ),
        (
            "<style>@import 'a.css';.a &gt; i{display:block}</style>"
            "<p style='* height:1px;overflow:hidden'>1<i>2</i></p>",
            "12",
        ),
        ("<style>p[hidden]{display:block}</style><p hidden>Shown</p>", "Shown"),
        ("<div style='white-space:pre-line'>Ring 1\nRing 2</div>", "Ring 1\nRing 2"),
        ("<p style='white-space:pre'>a\n<code>b\nc</code></p>", "a\n`b c`"),
        (
            "<style>.e:before{content:'\\20AC'}.u:after{content:\" \" attr(data-u) / 'x'}</style>"
            "<p class=e>12</p><p class=u data-u=kWh>7</p>",
            "€12\n\n7 kWh",
        ),
        (
            "<style>body{counter-reset:c}h2{counter-reset:s}h2::before{counter-increment:c;"
            "content:'§ ' counter(c,upper-roman) ' '}h3::before{counter-increment:s;"
            "content:counter(c)'.'counter(s)'. '}</style><h1>T</h1><h2>A</h2><h3>x</h3><h3>y</h3>"
            "<h2>B</h2><h3>z</h3>",
            "# T\n\n## § I A\n\n### 1.1. x\n\n### 1.2. y\n\n## § II B\n\n### 2.1. z",
        ),
        (
            "<style>ol{counter-reset:s}li{display:block}li::before{counter-increment:s;"
            "content:counters(s,'.') ' '}</style><ol><li>One<ol><li>Inner<li>Next</ol><li>Two</ol>",
            "- 1 One\n\n  - 1.1 Inner\n\n  - 1.2 Next\n\n- 2 Two",
        ),
        (
            "<style>.p{display:inline-block;margin:0 6px}.f{display:flex}.l{display:block}</style>"
            "<p>Line <b class=p>7</b><b class=p>9</b></p><p class=f><i>1</i><i>2</i></p>"
            "<p><i class=l>3</i><i class=l>4</i></p><form>5</form><footer>6</footer>",
            "Line 7 9\n\n1 2\n\n3\n4\n\n5",
        ),
        (
            "<table><tfoot><tr><td>Total<td>3<thead><tr><th>A<th>B<tbody><tr><td>x<td>1"
            "<tr><td>y<td>2<thead><tr><td>C<td>D</table>",
            "| A | B |\n|---|---|\n| x | 1 |\n| y | 2 |\n| C | D |\n| Total | 3 |",
        ),
        (
            "<table role=presentation><tr><td><h2>Prices</h2><table><tr><td>Adults<td>5.40"
            "<tr><td>Children<td>2.70</table><td>Open daily</table>",
            "## Prices\n\n|  |  |\n|---|---|\n| Adults | 5.40 |\n| Children | 2.70 |\n\nOpen daily",
        ),
        (
            "<table><tr><td><h4>Ship to</h4>Oak St 5<td><h4>Bill to</h4>Elm St 6</table>",
            "#### Ship to\n\nOak St 5\n\n#### Bill to\n\nElm St 6",
        ),
        (
            "<table><tr><td>Fees<tr><td><table><tr><td>Net<td>4</table></table>",
            "Fees\n\n|  |  |\n|---|---|\n| Net | 4 |",
        ),
        (
            "<table><tr><td>(b)<td>cereals, except:<table><tr><td>(i)<td>rice</table>"
            "<table><tr><td>(ii)<td>maize</table></table><table><tr><td>\u2022<td><td>tea</table>",
            "(b) cereals, except:\n\n  (i) rice\n\n  (ii) maize\n\n- tea",
        ),
        (
            "<table><tr><td>Oak Ltd<td>Est. 1921<tr><td><a>Home</a><td><h2>Fees</h2>"
            "<table><tr><td>Net<td>4</table>Per day<tr><td>VAT<td>0.76<tr><td>Sum<td>4.76</table>",
            "|  |  |\n|---|---|\n| Oak Ltd | Est. 1921 |\n\nHome\n\n## Fees\n\n"
            "|  |  |\n|---|---|\n| Net | 4 |\n\nPer day\n\n"
            "|  |  |\n|---|---|\n| VAT | 0.76 |\n| Sum | 4.76 |",
        ),
        (
            "<table><tr><td><td><table><tr><td>Net<td>4<tr><td>VAT<td>1</table>"
            "<table><tr><td>Total<td>5 EUR</table></table>",
            "|  |  |\n|---|---|\n| Net | 4 |\n| VAT | 1 |\n\n|  |  |\n|---|---|\n| Total | 5 EUR |",
        ),
        (
            "<table><tr><th>Class<th>Rule<tr><td>A<td>has:<table><tr><td>(a)<td>a lock</table>"
            "<table><tr><td>(b)<td>a lamp</table>or none<tr><td>B<td>none</table>",
            "| Class | Rule |\n|---|---|\n| A | has: (a) a lock (b) a lamp or none |\n| B | none |",
        ),
        (
            "<p>Screw<a name=b1 href=#s1><sup>1</sup></a><a id=b3 href=#s3><sup>3</sup></a>, 0,3"
            "<a id=c2 href=#r2>&#160;(<span style=vertical-align:super>2</span>)</a>, part "
            "<a href=#p>3</a></p><p><a name=s1 href=#b1>1</a>Steel, 4 mm</p><p id=r2><a href=#c2>"
            "(<sup>2</sup>)</a> Until May</p><p id=s3><a href=#b3>3</a> Brass"
            "<a href=#b3>\u21a9</a>",
            "Screw[1][3], 0,3[2], part 3\n\n[1] Steel, 4 mm\n\n[2] Until May\n\n[3] Brass",
        ),
        (
            "<svg><text>Bay <tspan>05</tspan></text><text><tspan x=1 y=1>A</tspan>"
            "<tspan x=1 dy=9>B</tspan></text></svg>",
            "Bay 05\n\nA B",
        ),
    ],
)
def test_html_is_read_as_browsers_show_it(markup: str, content: str) -> None:
    assert read("a.html", markup).content == content


@pytest.mark.parametrize(
    "code",
    [
        "<pre><span class=linenos>1</span>a = 1</pre>",
        "<table><tr><td class=linenos><pre>1</pre></td><td><pre>a = 1</pre></td></tr></table>",
        "<table><tr><td class=lntd><pre>1</pre></td><td class=lntd><pre>a = 1</pre></table>",
        "<pre><span class=line><span class=ln>1</span>a = 1</span></pre>",
    ],
)
def test_numbers_of_lines_are_no_code(code: str) -> None:
    assert read("a.html", code).content == "```\na = 1\n```"


def test_lines_of_fields_stay_lines_and_wrapped_prose_is_joined() -> None:
    fields = "Status: signed\nPrice: 400 euros"

    assert read("a.md", fields).content == fields
    assert read("a.md", "Note: it\nis wrapped").content == "Note: it is wrapped"


def test_attributes_are_filled_in_code_of_asciidoc_that_says_so() -> None:
    code = '[source,xml,subs="{}"]\n----\nv{{v}}\n----\n\n'
    page = read("a.adoc", f":v: 2\n\n{code.format('+attributes')}{code.format('quotes')}")

    assert [block.text for block in page.blocks] == ["```xml\nv2\n```", "```xml\nv{v}\n```"]


def test_formulas_of_asciidoc_are_kept_as_written() -> None:
    page = read(
        "a.adoc", "stem:[x^2 >= 10^(-3)] or latexmath:[a_1\\text{m}], stem:[b[2\\]], 10^6^\n"
    )

    assert page.content == "x^2 >= 10^(-3) or a_1\\text{m}, b[2], 10^6"


def test_counters_of_deep_lists_and_numbers_of_any_length_cost_no_page() -> None:
    styles = "<style>li::before{content:counters(list-item,'.') ' '}</style>"
    deep = html.read(f"{styles}{'<ol><li>x' * 900}".encode(), "a.html")
    long = html.read(f"{styles}<ol start='{'9' * 6000}'><li>Rent</ol>".encode(), "b.html")

    assert len(deep.content) < 100_000
    assert "Rent" in long.content


def test_tasks_symbols_and_expanded_parts_of_html_are_read_as_people_see_them() -> None:
    page = read(
        "a.html",
        "<ul class=inline-task-list><li class=checked>Order<li>Pay</ul>"
        "<p><span style='font-family:Wingdings'>\u00fe</span> Approved"
        "<p><span style='font-family:Arial,Wingdings'>o</span> and"
        " <span style='font-family:\"Wingdings 2\"'>P</span> stay"
        "<div class=expand-container><div class=expand-control>Holidays</div>"
        "<div id=e class=expand-content style='display:none'>Double rate: 420.</div></div>",
    )

    assert [block.text for block in page.blocks] == [
        "- \u2612 Order", "- \u2610 Pay", "\u2611 Approved", "o and P stay", "Holidays",
        "Double rate: 420.",
    ]  # fmt: skip


def test_a_line_break_of_the_file_itself_does_not_divide_struck_text() -> None:
    page = read("a.html", "<p>Rent: <s>120.000\n&euro;</s> 95.500 &euro;<p>Old: <s>1<br>2</s>")

    assert page.content == "Rent: ~~120.000 €~~ 95.500 €\n\nOld: ~~1~~\n~~2~~"


def test_a_row_or_a_table_that_is_struck_out_strikes_out_its_cells() -> None:
    page = read(
        "a.html",
        "<style>.off td,.gone{text-decoration:line-through}</style>"
        "<table><tr class=gone><td>Yoga<td>Mon 9:00<tr class=off><td>Zumba<td>Wed 19:00"
        "<tr><td>Pilates<td>Tue 18:30</table><del><table><tr><td>Judo<td>Fri</table></del>",
    )

    assert [line for line in page.content.splitlines() if line[:2] == "| " and line[2] != " "] == [
        "| ~~Yoga~~ | ~~Mon 9:00~~ |",
        "| ~~Zumba~~ | ~~Wed 19:00~~ |",
        "| Pilates | Tue 18:30 |",
        "| ~~Judo~~ | ~~Fri~~ |",
    ]


def test_tables_beside_each_other_in_a_row_are_cards_and_no_values_of_the_row() -> None:
    card = "<td><table><tr><td><b>{}</b><tr><td>Fee: {}</table>"
    page = read(
        "a.html",
        f"<table><tr><td colspan=2>December<tr>{card.format('First aid', 'free')}"
        f"{card.format('Forklift', 85)}</table>",
    )

    assert page.content.split("\n\n") == [
        "December", "First aid", "Fee: free", "Forklift", "Fee: 85"
    ]  # fmt: skip
