import pytest

from knowledge.documents.markup import markdown
from knowledge.documents.page import Block, BlockKind


def blocks(text: str) -> tuple[Block, ...]:
    return markdown.blocks_of(text)


def texts(text: str) -> list[str]:
    return [block.text for block in blocks(text)]


def test_headings_carry_their_level_and_their_stated_anchor() -> None:
    page = markdown.read(b"# Rate plans { #plans }\n\n## Peak hours {#peak .wide}\n", "plans.md")

    assert page.blocks == (
        Block(BlockKind.HEADING, "Rate plans", 1, "plans"),
        Block(BlockKind.HEADING, "Peak hours", 2, "peak"),
    )
    assert page.title == "Rate plans"


def test_headings_without_an_anchor_get_the_usual_slug_once_each() -> None:
    parsed = blocks("## Send `SMS` & wait!\n\n## Example\n\n## Example\n\n## Example-1\n")

    assert [block.anchor for block in parsed] == [
        "send-sms--wait",
        "example",
        "example-1",
        "example-1-1",
    ]


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: Routing\ndescription: How\nkeywords: [a, b]\nlang: de\nurl: /r\n---\n",
        "+++\ntitle='Routing'\ndescription='How'\ntags=['a', 'b']\nlang='de'\nurl='/r'\n+++\n",
    ],
)
def test_front_matter_states_title_description_keywords_language_and_address(front: str) -> None:
    page = markdown.read(f"{front}# Other\n".encode(), "routing.md")

    assert (page.title, page.description, page.keywords) == ("Routing", "How", ("a", "b"))
    assert (page.language, page.url) == ("de", "/r")


def test_a_page_without_headings_has_no_title_of_its_own() -> None:
    assert markdown.read(b"just a line\n", "x.md").title == ""


@pytest.mark.parametrize(
    "span",
    [
        "`DELETE /messages/{id}`",
        "`{name}`",
        "`List<int>`",
        "`<b>bold</b>`",
        "`a   b`",
        "`**kwargs` and `*args`",
        "`&amp;`",
        "`[text](link)`",
        r"`a\|b`",
        "``a`b``",
    ],
)
def test_a_code_span_keeps_every_character(span: str) -> None:
    assert texts(f"Send {span} first.") == [f"Send {span} first."]


def test_stars_between_digits_are_signs_of_a_product_and_no_emphasis() -> None:
    page = markdown.read(
        b"Boxes of 20*30*40 mm, 2**3**4 and *3* of **a*b** cost *5 euros*.", "a.md"
    )

    assert page.content == "Boxes of 20*30*40 mm, 2**3**4 and 3 of a*b cost 5 euros."


def test_a_code_span_survives_within_links_and_emphasis() -> None:
    assert texts("**[`GET /{id}`](https://x.test/a)** or *`a_b_c`*") == ["`GET /{id}` or `a_b_c`"]


def test_roles_of_documentation_generators_go_and_their_words_stay() -> None:
    text = "Use {py:func}`send` as in {ref}`Sending messages <send-target>` and {doc}`guide`."

    assert texts(text) == ["Use `send` as in Sending messages and guide."]


def test_backticks_that_open_nothing_stay() -> None:
    assert texts("a ` b *c*") == ["a ` b c"]
    assert texts(r"\`not *code*\`") == ["`not code`"]


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        (":::tip My tip\nText.\n:::", ["My tip", "Text."]),
        (":::note[My note]\nText.\n:::", ["My note", "Text."]),
        (':::tip{icon="x"}\nText.\n:::', ["Tip", "Text."]),
        ('::: {.callout-note title="Mine" collapse=true}\nText.\n:::', ["Mine", "Text."]),
        (":::{danger}\n:class: x\nText.\n:::", ["Danger", "Text."]),
        ("::::{grid} 2\n:::{card} Name\nText.\n:::\n::::", ["Name", "Text."]),
        ("::: package.module\n    options:\n      a: b\n\nText.", ["Text."]),
        ("::: package.module\n\nText:\n\n- A\n    - B", ["Text:", "- A", "  - B"]),
        ("- A\n\n    ::: package.module\n        a: b\n\n    B\n\n- C", ["- A", "  B", "- C"]),
        ('=== "Python"\n\n    Text.', ["Python: Text."]),
        ('!!! note "Careful"\n\n    Text.', ["Careful: Text."]),
        ("??? warning\n\n    Text.", ["Warning: Text."]),
        ('=== "A"\n\n    ```\n    x\n    ```\n\n=== "B"', ["A", "```\nx\n```", "B"]),
        ('??? tip "Why?"\n\n    Text.', ["Why? Text."]),
        ('!!! note "Empty"\n\n```\nx\n```', ["Empty", "```\nx\n```"]),
        ("[TOC]\n\nText[^1].\n\n[^1]: Note.", ["Text[1].", "[1] Note."]),
        ("*[HTML]: Hyper Text", ["HTML: Hyper Text"]),
        ("Ash Ltd  \nMill 7a\\\n04109 Leipzig", ["Ash Ltd\nMill 7a\n04109 Leipzig"]),
        ("- Ash Ltd  \n  Mill 7a", ["- Ash Ltd\n  Mill 7a"]),
        ("{{< tabs >}}\nText.\n{% raw %}", ["Text."]),
        ("{% if a %}5{%- else %}10{% endif %} s", ["{% if a %}5{%- else %}10{% endif %} s"]),
        (
            "```{confval} size\n:type: int\n:default: 5\n\nText.\n```",
            ["size, type: int, default: 5", "Text."],
        ),
        ("Press [here](x){ .md-button } :x-y: now { #a .b }", ["Press here :x-y: now"]),
    ],
)
def test_marks_of_site_generators_are_no_text(marked: str, shown: list[str]) -> None:
    assert texts(marked) == shown


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("A fee[^1].\n\n[^1]: It was\n    lower.\n\nB", ["A fee[1].", "B", "[1] It was lower."]),
        ("A[^1].\n\n[^1]: One.\n\n    Two.\n\nB.", ["A[1].", "B.", "[1] One.", "Two."]),
        ("1. A[^1]\n\n[^1]: Note.\n\n1. B", ["1. A[1]", "2. B", "[1] Note."]),
        ("A[^1].\n[^1]: See[^2].\n[^2]: Note.", ["A[1].", "[1] See[2].", "[2] Note."]),
        ("A[^1].\n\n[^1]: Run:\n\n    ```\n    if x:\n        y\n    ```\n\nB.",
         ["A[1].", "B.", "[1] Run:", "```\nif x:\n    y\n```"]),
        ("```\n[^1]: a\n    b\n```\n\nA[^1].", ["```\n[^1]: a\n    b\n```", "A[1]."]),
        (
            "Use `[^1]`.\n\nB.\n\n[^1]: Note.\n\n    More.",
            ["Use `[^1]`.", "B.", "[1] Note.", "More."],
        ),
    ],
)  # fmt: skip
def test_footnotes_are_at_the_end_with_their_marks_and_code_keeps_its_indents(
    written: str, shown: list[str]
) -> None:
    assert texts(written) == shown


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('<Step title="One">Do `a`.</Step>', ["One", "Do `a`."]),
        ('<Tabs>\n\t<Tab title="A">Alpha</Tab>\n\t<Tab title="B">Beta</Tab>\n</Tabs>\n\n- C\n  - D',
         ["A", "Alpha", "B", "Beta", "- C", "  - D"]),
        ("1. One\n\n   <Card\n     title='T'\n   >\n       Text.\n   </Card>\n\n2. Two",
         ["1. One", "   T", "   Text.", "2. Two"]),
        ('<Field name="id" type="int" required>\n    The id.\n</Field>',
         ["id, type: int, required", "The id."]),
        ('From <Badge text="v2" /> on, <Badge>new</Badge>.', ["From v2 on, new."]),
        ('<Card title="A" description="B" />', ["A B"]),
        ('a\n\n{% highlight go %}\nimport "fmt"\n    x\n{% endhighlight %}\n\nb',
         ["a", '```go\nimport "fmt"\n    x\n```', "b"]),
        ("{{< highlight >}}\n*x*\n{{< /highlight >}}", ["```\n*x*\n```"]),
        ('{{< notice warning "Change on May 2" >}}\nx\n{{< /notice >}}', ["Change on May 2", "x"]),
        ('{{< icon "phone" >}} 47', ["47"]),
        ("a {{< comment >}}not b{{< /comment >}}\n\n{{% comment %}}\nc\n{{% /comment %}}\n\nd",
         ["a", "d"]),
        ("{::comment}\nb\n{:/comment}\n\na {::comment}b{:/} c {% comment %}b{% endcomment %}\n\n"
         "{::nomarkdown}\n\n{:x: .y}\n\n* d\n{:toc}\n\n`{::comment}` {::comment} e",
         ["a c", "- d", "`{::comment}` e"]),
        ('1. a\n1. b\n   {{< figure src="x.png" caption="The c" >}}\n1. d',
         ["1. a", "2. b", "   The c", "3. d"]),
        ("<table><tr><td rowSpan={2}>a</td><td>b</td></tr><tr><td>c</td></tr></table>",
         ["| a | b |\n|---|---|\n| a | c |"]),
        ("```bash npm {1}\nx\n```", ["```bash npm {1}\nx\n```"]),
        ("```{python}\n*x*\n```", ["```python\n*x*\n```"]),
    ],
)  # fmt: skip
def test_components_and_shortcodes_keep_their_captions_and_code(
    written: str, shown: list[str]
) -> None:
    assert texts(written) == shown


def test_marks_in_code_stay() -> None:
    text = "```\n:::tip\n[TOC]\n[^1]: x\n```\n\nUse `{ .a }` and `:material-x:` and `[^1]`."

    parsed = blocks(text)

    assert parsed[0].text == "```\n:::tip\n[TOC]\n[^1]: x\n```"
    assert parsed[1].text == "Use `{ .a }` and `:material-x:` and `[^1]`."


def test_placeholders_of_generators_stay_and_no_cell_of_a_row_is_lost() -> None:
    code = "```bash\ncurl https://dl.acme.test/{{ version }}/app.tgz ${{ secrets.TOKEN }}\n```"
    names = "| Filter | Result |\n|---|---|\n| `{{ x | upper }}` | {{ y }} |"

    page = f"# Install {{{{ version }}}}\n\nUse `{{{{ version }}}}`.\n\n{code}\n\n{names}"
    content = markdown.read_text(page, "install.md").content

    assert content.startswith("# Install {{ version }}\n\nUse `{{ version }}`.")
    assert code in content
    assert "| `{{ x | upper }}` | {{ y }} |" in content


def test_labels_in_shortcodes_components_and_tables_of_lists_are_read() -> None:
    text = (
        '# A\n\n{{< tab name="Windows" >}}\nFolder A7.\n{{< /tab >}}\n\n'
        '{% tab title="Linux" %}\nFolder B9.\n{% endtab %}\n\n'
        '<ParamField body="code" type="string">\n  The code.\n</ParamField>\n\n'
        "```{list-table} Prices\n* - Plan\n  - Price\n* - Basic\n  - 10 *EUR*\n    a month\n```\n\n"
        '{{< figure src="plan.png" caption="Entrance by the quay" >}}\n\n'
        '{{< param "limit" >}} items.\n\n::: desk.plans\n    options:\n\n```\n::: desk.x\n```\n'
        "\n```{include} b.md\n```\n"
    )

    page = markdown.read(text.encode(), "a.md")

    assert [block.text for block in page.blocks] == [
        "A", "Windows", "Folder A7.", "Linux", "Folder B9.", "code, type: string", "The code.",
        "Prices", "| Plan | Price |\n|---|---|\n| Basic | 10 EUR a month |",
        "Entrance by the quay", "items.", "```\n::: desk.x\n```",
    ]  # fmt: skip
    assert [(part.what, part.names) for part in page.left_out] == [
        ("generated description", ("desk.plans",)),
        ("directive", ("include b.md",)),
        ("shortcode", ("param",)),
    ]


def test_statements_inside_of_structures_in_front_are_text() -> None:
    front = (
        "---\nhero:\n  name: Kassa\n  text: A till for clubs\n  image: {src: /a.png}\n"
        "attendees: [Nora Weiss, Tarek]\nlayout: home\n---\n"
    )

    page = markdown.read(f"{front}# VPN\n".encode(), "a.md")

    assert page.content == "# VPN\n\nhero: A till for clubs\nattendees: Nora Weiss; Tarek"
    assert [part.names for part in page.left_out] == [("hero", "layout")]


@pytest.mark.parametrize(
    "front",
    [
        "---\nowner: Team Kappa\nvalid_until: 2026-05-31\nlayout: wide\nmenu:\n  weight: 3\n---\n",
        "+++\nowner='Team Kappa'\nvalid_until=2026-05-31\nlayout='wide'\n[menu]\nweight=3\n+++\n",
    ],
)
def test_statements_in_front_are_text_and_settings_of_the_website_are_counted(front: str) -> None:
    page = markdown.read(f"{front}# VPN\n".encode(), "a.md")

    assert page.content == "# VPN\n\nowner: Team Kappa\nvalid_until: 2026-05-31"
    assert [(part.what, part.names) for part in page.left_out] == [
        ("front matter field", ("layout", "menu"))
    ]


def test_names_of_icons_and_emojis_are_shown_as_written() -> None:
    assert texts("On :material-android: :tada:\n\n|a|:x-y:{ .green }|\n|-|-|\n|b|c|") == [
        "On :material-android: :tada:", "| a | :x-y: |\n|---|---|\n| b | c |",
    ]  # fmt: skip


def test_items_that_are_indented_less_than_their_list_needs_are_no_code() -> None:
    written = "*    *   Height\n\n    *   Area\n\n*    *   up to 50\n\n    *   6\n\n2.  Then."

    parsed = blocks(written)

    assert {block.kind for block in parsed} == {BlockKind.ITEM}
    assert [block.text.strip("- ") for block in parsed] == [
        "Height",
        "Area",
        "up to 50",
        "6",
        "2. Then.",
    ]


def test_indented_code_after_a_list_and_a_paragraph_is_code() -> None:
    *_, code = blocks("1. Open it.\n2. Add this.\n\nThe file:\n\n    - name: rule")

    assert code.kind is BlockKind.CODE


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        ("[x:: y] ![[a b]] [[Note#Part]] (z:: 5)", ["[x:: y] ![[a b]] [[Note#Part]] (z:: 5)"]),
        ("A %%note%% b `%%c%%`.\n\n%% x %%\n\n%%\ny\n\nz\n%%\n\nC", ["A b `%%c%%`.", "C"]),
        ("100%% sure, 50%% not, %%d.\n\n%% open", ["100%% sure, 50%% not, %%d.", "%% open"]),
        ("> [!info]- Title *a*\n> Text\n> > [!NOTE]\n> > In", ["Title a", "Text", "Note", "In"]),
    ],
)  # fmt: skip
def test_boxes_and_comments_of_notes_are_read_as_they_are_shown(
    marked: str, shown: list[str]
) -> None:
    read = [part.removeprefix("> ") for part in texts(marked)]

    assert [" ".join(part.split(" ")) for part in read] == shown


def test_comments_of_notes_are_counted() -> None:
    page = markdown.read(b"A %%c%%\n", "a.md")

    assert [left_out.what for left_out in page.left_out] == ["comment"]


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        (r"Now \~\~400\~\~ 300", r"Now \~\~400\~\~ 300"),
        ("Now ~~400~~ 300", "Now ~~400~~ 300"),
        ("Now <i>&#126;~400~~</i>", r"Now \~\~400\~\~"),
        ("`~~a~~` ~~~ ~/x", "`~~a~~` ~~~ ~/x"),
    ],
)
def test_tildes_that_strike_nothing_out_are_no_marks(marked: str, shown: str) -> None:
    assert texts(marked) == [shown]


@pytest.mark.parametrize(
    "formula",
    [
        r"$x_1 * y_2 * z$", r"$\{a\_1\} \\ *b*$", r"$$a \\ *b*$$", r"\( a_1 * b_2 * c \)",
        r"\[ E = m \cdot c^2 * 3 * 4 \]",
    ],
)  # fmt: skip
def test_a_formula_is_shown_as_its_author_wrote_it(formula: str) -> None:
    assert texts(f"The *area* is {formula}, see.") == [f"The area is {formula}, see."]
    assert texts(f"- a\n- {formula}")[1] == f"- {formula}"


@pytest.mark.parametrize(
    "formula",
    [
        "$$\na \\\\\n- b_1\n= *c*\n$$",
        "\\[\n+ a\n# b\n\\]",
        "\\begin{align*}\na\n- b\n\\end{align*}",
    ],
)
def test_a_formula_of_several_lines_is_no_list(formula: str) -> None:
    assert texts(f"Text\n\n{formula}\n\n*End*") == ["Text", f"```math\n{formula}\n```", "End"]


def test_amounts_variables_and_escaped_brackets_are_no_formulas() -> None:
    text = (
        r"From **$5** to **$6**, **$a** and **$b**, \[a\_b\] \(c\), [$5](x) [$y](z), US$5 *x* US$"
    )

    assert texts(text) == ["From $5 to $6, $a and $b, [a_b] (c), $5 $y, US$5 x US$"]
    assert texts("$$\n*never* closed\n\nText") == ["$$ never closed", "Text"]


def test_the_label_of_a_tab_stays_with_its_content() -> None:
    text = (
        '=== "Windows"\n\n    === "x86"\n\n        2 GB\n\n'
        "        ```\n        run\n        ```\n\n"
        '        3 GB\n\n    === "ARM"\n\n        4 GB\n\nAfter\n'
    )

    assert texts(text) == [
        "Windows, x86: 2 GB", "```\nrun\n```", "Windows, x86: 3 GB", "Windows, ARM: 4 GB", "After",
    ]  # fmt: skip
