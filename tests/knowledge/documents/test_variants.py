"""What tells the variants of an instruction apart survives reading, whatever wrote the page."""

from pathlib import PurePosixPath

import pytest

from knowledge.chunking import passages
from knowledge.documents import formats
from knowledge.documents.formats import Item
from knowledge.documents.location import locate
from knowledge.documents.page import Page


def read(name: str, text: str) -> Page:
    path = PurePosixPath(name)
    return formats.read(Item(name, text.encode(), name), path, locate(path, ()))


def texts(name: str, text: str) -> list[str]:
    return [block.text for block in read(name, text).blocks]


TABS = """
<Tabs>
  <TabItem value="apt" label="Debian" default>

    Run it:

    ```sh
    apt install x
    ```

  </TabItem>
  <TabItem value="Fedora">
    dnf does it.
  </TabItem>
</Tabs>
"""


@pytest.mark.parametrize("name", ["a.md", "a.mdx"])
def test_the_label_of_a_tab_stands_above_what_the_tab_holds(name: str) -> None:
    assert texts(name, TABS) == [
        "Debian",
        "Run it:",
        "```sh\napt install x\n```",
        "Fedora",
        "dnf does it.",
    ]


@pytest.mark.parametrize("name", ["a.md", "a.mdx"])
def test_tags_of_tabs_on_one_line_lose_no_label(name: str) -> None:
    tabs = (
        '<Tabs><TabItem value="apt" label="Debian">\n\nRun apt.\n\n'
        '</TabItem><TabItem value="rpm" label="Fedora">\n\nRun dnf.\n\n</TabItem></Tabs>\n'
    )

    assert texts(name, tabs) == ["Debian", "Run apt.", "Fedora", "Run dnf."]


@pytest.mark.parametrize(
    ("info", "kept"),
    [
        ('yaml tab="Kubernetes"', 'yaml tab="Kubernetes"'),
        ('yaml title="values.yaml" hl_lines="2"', 'yaml title="values.yaml"'),
        ("sh [npm]", "sh [npm]"),
        ("{.python .numberLines}", "python"),
    ],
)
def test_a_fence_keeps_the_label_of_its_tab_or_file(info: str, kept: str) -> None:
    assert texts("a.md", f"```{info}\nx\n```\n") == [f"```{kept}\nx\n```"]


def test_tabs_and_captions_of_sphinx_are_kept() -> None:
    page = (
        ".. tabs::\n\n   .. code-tab:: python Sync\n\n      a = 1\n\n   .. group-tab:: Async\n\n"
        "      b is two.\n\n.. code-block:: yaml\n   :caption: values.yaml\n\n   kind: Pod\n\n"
        ".. figure:: x.png\n\n   The caption.\n\n.. deprecated:: 2.1\n\n   Use b.\n"
    )

    assert texts("a.rst", page) == [
        "```python Sync\na = 1\n```",
        "Async",
        "b is two.",
        '```yaml title="values.yaml"\nkind: Pod\n```',
        "The caption.",
        "deprecated 2.1",
        "Use b.",
    ]


def test_captions_of_myst_are_kept() -> None:
    page = (
        "```{code-block} yaml\n:caption: values.yaml\n\na: 1\n```\n\n"
        "```{figure} img.png\n:name: x\n\nThe caption.\n```\n"
    )

    assert texts("a.md", page) == ['```yaml title="values.yaml"\na: 1\n```', "The caption."]


def test_a_box_without_a_title_is_headed_by_its_kind() -> None:
    assert texts("a.md", ":::danger\n\nNever.\n\n:::\n") == ["Danger", "Never."]
    assert texts("a.rst", ".. warning::\n\n   Careful.\n") == ["Warning: Careful."]


def test_what_stands_for_a_picture_is_marked_and_no_sentence() -> None:
    assert texts("a.md", "![Wiring of A](a.png)\n\n[![Build](b.svg)](https://ci.example/x)\n") == [
        "![Wiring of A]",
        "![Build]",
    ]


def test_items_of_nested_lists_of_html_keep_their_place() -> None:
    page = "<ol start=3><li>one<ul><li>two</li></ul>rest of one</li><li>four</li></ol>"

    assert texts("a.html", page) == ["3. one", "  - two", "   rest of one", "4. four"]


def test_the_caption_of_a_table_stands_above_it() -> None:
    page = "<table><caption>Prices</caption><tr><th>a<th>b<tr><td>1<td>2</table>"

    assert texts("a.html", page) == ["Prices", "| a | b |\n|---|---|\n| 1 | 2 |"]


def test_the_address_of_a_link_reaches_the_passage_that_shows_its_label() -> None:
    markdown = "Ask [support](https://help.example/a).\n"
    sphinx = "Ask `support <https://help.example/a>`_.\n"

    for name, page in (("a.md", markdown), ("a.rst", sphinx)):
        (passage,) = passages(read(name, page))
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
