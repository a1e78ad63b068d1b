import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.markup import html
from knowledge.documents.page import Block, BlockKind

PAGE = """<!doctype html><html lang="de"><head><title>Titel</title>
<meta name="description" content="Wozu"><meta name="keywords" content="a, b">
<link rel="canonical" href="https://example.org/x"><script>var text = "no";</script></head>
<body><nav>Menu</nav><main>%s</main><footer>Impressum</footer></body></html>"""


def blocks(markup: str) -> tuple[Block, ...]:
    return html.read((PAGE % markup).encode(), "a.html").blocks


def test_only_the_main_part_is_read_without_scripts_and_navigation() -> None:
    parsed = blocks("<p>Text<script>alert(1)</script><style>p{}</style></p><nav>no</nav>")

    assert parsed == (Block(BlockKind.TEXT, "Text", is_paragraph=True),)


def test_the_head_states_title_language_description_keywords_and_address() -> None:
    page = html.read((PAGE % "<p>Text").encode(), "a.html")

    assert (page.title, page.language, page.description) == ("Titel", "de", "Wozu")
    assert (page.keywords, page.url) == (("a", "b"), "https://example.org/x")


def test_headings_take_their_own_anchor_or_that_of_their_section() -> None:
    parsed = blocks(
        '<section id="intro"><h1>Hello<a class="headerlink" href="#">#</a></h1></section>'
        '<h2 id="two">Two</h2><h2>Three</h2>'
    )

    assert [(block.text, block.level, block.anchor) for block in parsed] == [
        ("Hello", 1, "intro"),
        ("Two", 2, "two"),
        ("Three", 2, "three"),
    ]


def test_an_encoding_that_is_stated_is_believed() -> None:
    markup = '<meta charset="windows-1251"><p>\u041f\u0440\u0438\u0432\u0435\u0442'

    page = html.read(markup.encode("windows-1251"), "a.html")

    assert page.blocks[0].text == "\u041f\u0440\u0438\u0432\u0435\u0442"
    assert page.warnings == ()


@pytest.mark.parametrize("stated", ["zlib", "unicode_escape", "no-such-thing"])
def test_an_encoding_that_is_none_is_not_believed(stated: str) -> None:
    page = html.read(f'<meta charset="{stated}"><p>caf\u00e9'.encode("latin-1"), "a.html")

    assert page.blocks[0].text == "caf\u00e9"
    assert "not UTF-8" in page.warnings[0]


def test_nesting_of_a_thousand_elements_is_read() -> None:
    read = blocks("<div>" * 1000 + "deep" + "</div>" * 1000)

    assert read == (Block(BlockKind.TEXT, "deep", is_paragraph=True),)


@pytest.mark.parametrize("tag", ["<div>", "<table><tr><td>", "<ul><li>", "<x-y>"])
def test_nesting_without_end_is_refused_before_it_costs_time(tag: str) -> None:
    with pytest.raises(WrongFormatError, match="2000 deep, found more"):
        html.read((tag * 100_000).encode(), "a.html")


def test_elements_that_are_never_closed_do_not_count_as_nesting() -> None:
    parsed = blocks("<p>one<br>two" * 5000)

    assert len(parsed) == 5000


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ('<h2><button aria-expanded="false" aria-controls="a">Refunds?</button></h2>'
         '<div id="a" style="display:none"><p>Within 5 days.</p></div>',
         "## Refunds?\n\nWithin 5 days."),
        ('<p>Text.</p><div id="a" style="display:none">Nobody opens it.</div>', "Text."),
        ('<ul><li><a data-bs-toggle="tab" href="#w">Windows</a></li></ul>'
         '<div id="w" class="tab-pane"><p>Folder A7.</p></div>', "Windows\n\nFolder A7."),
        ('<div role="tablist"><button role="tab" id="t">Linux</button></div>'
         '<div role="tabpanel" aria-labelledby="t"><p>Folder B9.</p></div>',
         "Linux\n\nFolder B9."),
        ('<p>Limit <input value="75 s"> <input type="hidden" value="x"></p>', "Limit 75 s"),
        ("<p><label><input type=checkbox checked> Export</label></p>", "☒ Export"),
        ("<p>Text.</p><button>Copy</button>", "Text."),
        ("<article><h3>News</h3><p>Fair.</p></article><h1>Hours</h1><p>Open at six.</p>",
         "### News\n\nFair.\n\n# Hours\n\nOpen at six."),
        ("<div>Site</div><article><h1>Hours</h1><p>Open at six.</p></article>",
         "# Hours\n\nOpen at six."),
        ('<div id="x"><ul role="tablist"><li role="tab">Linux</li><li role="tab">Windows</li></ul>'
         '<div role="tabpanel"><p>B9.</p></div><div role="tabpanel" hidden><p>C7.</p></div></div>',
         "Linux\n\nB9.\n\nWindows\n\nC7."),
        ('<ul role="tablist"><li role="tab">Linux</li></ul><p>No panel.</p>',
         "- Linux\n\nNo panel."),
        ('<input type="radio" id="a" checked><input type="radio" id="b"><div><label for="a">npm'
         '</label><label for="b">yarn</label></div><div><p>B9.</p><p>C7.</p></div>',
         "npm\n\nB9.\n\nyarn\n\nC7."),
        ('<div><input type="checkbox" id="c" checked><label for="c">Insured</label></div>'
         '<meter value="3" max="5"></meter> <progress value="70">70 %</progress>',
         "☒ Insured\n\n3/5 70 %"),
        ("<dl><dt>Size</dt><dd>3 cm</dd><dd>4 cm</dd><dt>Linux</dt><dd><dl><dt>x86</dt><dd>5 GB"
         "<pre>run</pre>6 GB</dd><dt>ARM</dt><dd>7 GB</dd></dl></dd></dl>8 GB",
         "Size: 3 cm\n\nSize: 4 cm\n\nLinux, x86: 5 GB\n\n```\nrun\n```\n\nLinux, x86: 6 GB\n\n"
         "Linux, ARM: 7 GB\n\n8 GB"),
        ("<pre><code><span>a</span><br><span>  b</span><br></code></pre>", "```\na\n  b\n```"),
        ('<p>Size <select multiple><option>S</select> from <input type="datetime-local" '
         'value="2024-03-05T10:00"></p>', "Size from 2024-03-05T10:00"),
        ("<pre>x = 10<sup>6</sup>\n<del>5\n6</del> 7</pre>",
         "```\nx = 10^6\n~~5~~\n~~6~~ 7\n```"),
        ('<ul role="tablist"><li role="tab" data-bs-toggle="tab" data-bs-target="#w">Mac</li></ul>'
         '<b role="tab" aria-controls="w">Mac</b><div id="w" role="tabpanel">Folder D3.</div>',
         "Mac\n\nFolder D3."),
        ('<button>Refunds?</button><div style="max-height:0;overflow:hidden">5 days.</div>'
         '<button>Share</button><i style="display:none">Copied</i>', "Refunds?\n\n5 days."),
        ('<p><del aria-hidden="true"><b>20 €</b></del> <i class="sr-only">Before: 20 €.</i>'
         '<ins aria-hidden="true"><b>15 €</b></ins> <i class="sr-only">Now: 15 €.</i></p>',
         "~~20 €~~ 15 €"),
        ('<ul><li><div class="checkbox checkbox-on"></div> Buy'
         '<li><div class="checkbox checkbox-off"></div> Sell</ul>', "- ☒ Buy\n\n- ☐ Sell"),
        ('<ul><li><i class="fas fa-check"></i> Users<li><b><i class="fa fa-times"></i></b> Log</ul>'
         '<ul><li><i class="fas fa-check"></i> Fee<li><i class="fas fa-check"></i> Tax</ul>',
         "- check Users\n\n- times Log\n\n- Fee\n\n- Tax"),
    ],
)  # fmt: skip
def test_the_text_of_controls_is_read(body: str, content: str) -> None:
    assert html.read(f"<body>{body}</body>".encode(), "a.html").content == content


def test_icons_with_names_are_the_values_of_their_cells() -> None:
    cells = (
        '<td><i class="x" aria-label="no"></i></td><td><img src="y.png" alt="yes"></td>'
        "<td><svg><title>part</title></svg></td><td><i aria-label='hint'></i> text</td>"
    )
    page = html.read(f"<table><tr><td>Export</td>{cells}</tr></table>".encode(), "a.html")

    assert "| Export | no | ![yes] | part | text |" in page.content


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ('<i class="fa fa-check text-success"></i>', "check"),
        ('<i class="fas fa-times" aria-hidden="true"></i>', "times"),
        ('<span class="icon-check"></span>', "check"),
        ('<i class="material-icons" aria-hidden="true">close</i>', "close"),
        ('<i class="fa fa-check" aria-hidden="true"></i> <span class="sr-only">Yes</span>', "Yes"),
        ('<span class="dot"></span><span class="sr-only">No</span>', "No"),
        ('<svg role="img" aria-label="Included"><path d="M2 8"/></svg>', "Included"),
        ('<span aria-hidden="true">✗</span><span class="visually-hidden">No</span>', "✗"),
        ('<span aria-hidden="true">5</span>', "5"),
        (
            '<span class="offscreen">$1.99</span><span aria-hidden="true">$1<b>99</b></span>',
            "$1.99",
        ),
        ('<img class="emoji" src="x.png" alt="✅">', "✅"),
        ('<img src="data:," alt="-">5', "5"),
        ('<img class="emoji" src="x.png" alt=":x:"> 5 kg', ":x: 5 kg"),
    ],
)
def test_a_cell_has_the_sign_that_a_person_sees_in_it(cell: str, shown: str) -> None:
    page = html.read(f"<table><tr><td>A</td><td>{cell}</td></tr></table>".encode(), "a.html")

    assert f"| A | {shown} |" in page.content
    assert page.left_out == ()


def test_icons_without_a_name_are_reported() -> None:
    body = b"<table><tr><td>A</td><td><svg><path d='M0'/></svg></td><td><i></i></td></tr></table>"

    (left_out,) = html.read(body, "a.html").left_out

    assert (left_out.what, left_out.count) == ("icon", 2)
