import io
import zipfile

import pytest

from knowledge.documents.markup import html
from tests.knowledge.documents.conftest import Desk

SHEET = """
@media print { .price { display: none } }
.old { text-decoration: line-through; }
.internal { display: none }
ol.clauses { list-style-type: upper-roman }
.warning::before { content: "Warning: " }
"""
PAGE = """<html><head><link rel="stylesheet" href="styles/site.css?v=1"></head><body>
<h1>Prices</h1><p class="price">Now 300.</p><p class="old">Was 400.</p>
<p class="internal">Bought for 100.</p><p class="warning">Hot.</p>
<ol class="clauses"><li>One.</li></ol>%s</body></html>"""
READ = "# Prices\n\nNow 300.\n\n~~Was 400.~~\n\nWarning: Hot.\n\nI. One."


def read(markup: str, **sheets: str) -> str:
    """Return the content of a page; `a` in `sheets` is the file `a.css`."""
    files = {f"{name}.css": css.encode() for name, css in sheets.items()}
    return html.read(markup.encode(), "a.html", files.get).content


async def test_a_page_is_read_with_the_style_sheet_in_its_folder_and_again_if_it_changes(
    desk: Desk,
) -> None:
    desk.write("site/styles/site.css", SHEET)
    desk.write("site/prices.html", PAGE % "")

    await desk.ingest()
    (document,) = desk.index.documents.values()
    again = await desk.ingest()
    desk.write("site/styles/site.css", SHEET.replace("line-through", "none"))
    changed = await desk.ingest()

    assert document.content == READ
    assert (again.added, again.changed, changed.changed) == (0, 0, 1)
    (document,) = desk.index.documents.values()
    assert "\n\nWas 400.\n\n" in document.content


@pytest.mark.parametrize("base", ["../assets/", "/assets/", "../assets/index.html", "/assets/x"])
async def test_addresses_are_relative_to_the_stated_base(desk: Desk, base: str) -> None:
    desk.write("assets/styles/site.css", "@import '../more.css';" + SHEET)
    desk.write("assets/more.css", ".more { display: none }")
    desk.write("site/styles/site.css", "p { text-decoration: line-through }")
    page = PAGE.replace("<head>", f"<head><BASE target=x href='{base}'>")
    desk.write("site/prices.html", page % "<p class=more>SECRET</p>")

    await desk.ingest()

    (document,) = desk.index.documents.values()
    assert document.content == READ


async def test_a_base_on_another_server_has_no_files_here(desk: Desk) -> None:
    desk.write("site/styles/site.css", SHEET)
    desk.write("site/a.html", "<base href='https://a.example/'>" + PAGE % "")

    await desk.ingest()

    (document,) = desk.index.documents.values()
    assert "\n\nWas 400.\n\n" in document.content


async def test_the_pages_of_an_archive_are_read_with_its_style_sheets(desk: Desk) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("export/styles/site.css", SHEET)
        archive.writestr("export/prices.html", PAGE % "")
    desk.write("export.zip", packed.getvalue())

    await desk.ingest()

    (document,) = desk.index.documents.values()
    assert document.content == READ


@pytest.mark.parametrize(
    "address",
    [
        "../../secret.css",
        "/../secret.css",
        "https://desk.example/site.css",
        "//desk.example/site.css",
        ".hidden/site.css",
        "private/site.css",
        "outside.css",
        "above.css",
    ],
)
async def test_no_style_sheet_is_read_that_is_outside_hidden_or_for_others(
    desk: Desk, address: str
) -> None:
    desk.write("../secret.css", SHEET)
    desk.write(".hidden/site.css", SHEET)
    desk.write("above.css", SHEET)
    desk.write("site/private/site.css", SHEET)
    desk.write("refdesk.toml", '[[documents]]\npath = "site/private/*"\ngroups = ["board"]\n')
    (desk.folder / "site" / "outside.css").symlink_to(desk.folder.parent / "secret.css")
    desk.write("site/a.html", f"<link rel=stylesheet href='{address}'><p class=old>Was 400.")

    await desk.ingest()

    (document,) = desk.index.documents.values()
    assert document.content == "Was 400."


@pytest.mark.parametrize(
    "opener",
    [
        "<script src=tabs.js></script>",
        "<script>open()</script>",
        "<script type=module>open()</script>",
        "<b onclick='toggle()'>More</b>",
        "<a href='javascript:toggle()'>More</a>",
    ],
)
def test_a_file_hides_nothing_that_a_script_may_open(opener: str) -> None:
    content = read(
        "<link rel=stylesheet href=a.css><h2 class=q>Why?</h2><div class=answer>Because."
        f"<s class=old>No.</s><a class=mark></a></div>{opener}",
        a=".answer,.mark{display:none}.mark::before{content:'PERMALINK'}.q::before{content:'Q: '}",
    )

    assert content.startswith("## Q: Why?\n\nBecause.~~No.~~")
    assert "PERMALINK" not in content


@pytest.mark.parametrize(
    ("head", "is_hidden"),
    [
        ("<link rel='stylesheet' href='a.css' media='screen'>", True),
        ("<link rel='STYLESHEET' href='a.css#x'>", True),
        ("<style>@import 'a.css';</style>", True),
        ("<style>@import url( \"a.css\" ) screen;</style>", True),
        ("<link rel=stylesheet href=b.css>", True),
        ("<link rel=stylesheet href=a.css><style>.x{display:block}</style>", False),
        ("<style>.x{display:block}</style><link rel=stylesheet href=a.css>", True),
        ("<link rel=stylesheet href=a.css media=print>", False),
        ("<link rel=stylesheet href=a.css disabled>", False),
        ("<link rel='alternate stylesheet' href=a.css>", False),
        ("<link rel=preload href=a.css>", False),
        ("<style>@import 'a.css' print;</style>", False),
        ("<noscript><link rel=stylesheet href=a.css></noscript>", False),
        ("<script type='application/ld+json'>{}</script><link rel=stylesheet href=a.css>", True),
        ("<link rel=stylesheet href=c.css>", False),
    ],
)  # fmt: skip
def test_a_style_sheet_applies_as_its_link_states(head: str, *, is_hidden: bool) -> None:
    content = read(
        f"<head>{head}</head><p class=x>SECRET<p>Shown.",
        a=".x{display:none}",
        b="/* all */ @charset 'utf-8'; @import url(a.css); @import 'b.css'; .y{color:red}",
        c=".x:not(:target), details:not([open]) .x{display:none}",
    )

    assert content == ("Shown." if is_hidden else "SECRET\n\nShown.")


@pytest.mark.parametrize(
    "css",
    [
        ".a{color:red;.x{display:none}}",
        ".a{& > .x{display:none}}",
        ".a{@media screen{.x{display:none}}}",
        "q::before{content:'{'}.x{display:none}",
        ":is(.a, .b) .x{display:none}",
        "p:not(.y, .z):where(.x){display:none}",
        r".q\:x{color:red}.x{display:none}",
        ".x{}" + ".y{display:block}" * 2000 + ".x{display:none}",
    ],
)
def test_rules_are_read_as_browsers_read_them(css: str) -> None:
    markup = "<link rel=stylesheet href=a.css><div class=a><p class=x>SECRET</p></div>Shown."

    assert read(markup, a=css) == "Shown."


def test_white_text_on_a_background_that_a_file_sets_is_read() -> None:
    markup = "<link rel=stylesheet href=a.css><div class=hero><h1>Shown</h1></div><p>SECRET"

    assert read(markup, a=".hero{background:#003}h1,p{color:#fff}") == "# Shown"


@pytest.mark.parametrize(
    ("css", "markup"),
    [
        (":not(.x) " * 9 + "p{display:none}", "<div>" * 1000 + "<p>Shown."),
        ("p:nth-child(2n){display:none}" * 99, "<p></p>" * 9000 + "<p>Shown."),
        ("body:has(b) p, b ~ p{display:none}", "<p></p>" * 40_000 + "<p>Shown."),
        ("p{display:none}" * 9000, "<p></p>" * 9000 + "<p class=z>Shown."),
    ],
)
def test_rules_that_would_take_too_long_are_counted(css: str, markup: str) -> None:
    css += "[class=z]{display:block!important}.internal{display:none}"
    page = html.read(f"<style>{css}</style>{markup}<p class=internal>SECRET".encode(), "a.html")

    assert page.content == "Shown."
    (left_out,) = page.left_out
    assert left_out.what == "style rule"
