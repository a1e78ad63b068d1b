import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from citations.addresses import page_of
from citations.links import Allowed, LinkedPage, allow, keep_links, plain_line
from tests.citations.shapes import IDS, PAGE, SHAPES, Shape, leads_elsewhere

HELD = frozenset(
    {"https://console.acme.test/settings", "help@acme.test", "https://api.acme.test/v1"}
)
ALLOWED = allow(
    [LinkedPage(PAGE, "Rules"), LinkedPage("https://docs.acme.test/a_(b)", "AB")], held=HELD
)
PARTS = [
    "[", "]", "(", ")", "<", ">", "!", "`", "```", "\n", "\n\n", " ", "\\", ":", "//", "&#58;", "'",
    '"', "x", "1", "> ", "- ", "# ", "|", "a href=", "https://evil.test", "//evil.test", PAGE,
    "[x]: ", "javascript:y", "evil.test/z", "@evil.test", "\u202e", "\x1b",
]  # fmt: skip
MONSTERS = [
    "[" * 50_000,
    "[a](" * 20_000,
    "[a](<" * 20_000,
    '[a](b "' * 15_000,
    "<" * 50_000,
    "<a " * 30_000,
    "`" * 50_000,
    "".join("`" * (n % 300) + "a" for n in range(600)),
    "a.b" * 30_000,
    "a." * 50_000,
    "x@" * 50_000,
    "x" * 100_000 + "@",
    "https:" * 15_000,
    "http://(" * 12_000,
    "www." * 25_000,
    "&#116" * 20_000,
    "[x]:" * 25_000,
    "[x]:\n" * 25_000,
    "![" * 50_000 + "](x)" * 10_000,
    "\\" * 100_000,
    ">" * 2_000 + "a",
    "//a." * 25_000,
    "a-" * 50_000,
    "+" * 100_000,
    "data:" * 20_000,
    "https://a" + ")" * 100_000,
    "[a](" + "b" * 3_000 + " " * 97_000,
    "[a]('" * 20_000,
    "<a b='" * 15_000,
    "[x][" * 25_000,
    "```\n" * 25_000,
    "> " * 5_000 + "[a](b)",
]


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_no_shape_of_a_foreign_link_is_left(shape: Shape) -> None:
    kept = keep_links(shape.text, ALLOWED)

    assert not leads_elsewhere(kept.text)
    assert shape.kept in kept.text
    assert "[1]" in kept.text
    assert kept.removed


@given(st.lists(st.sampled_from(PARTS), max_size=25).map("".join))
@settings(max_examples=400)
def test_in_any_text_every_link_of_commonmark_goes_to_a_source(text: str) -> None:
    kept = keep_links(text, ALLOWED).text

    tokens = MarkdownIt("commonmark", {"html": True}).parse(kept)
    every = [child for token in tokens for child in (token, *(token.children or ()))]
    targets = [str(token.attrs["href"]) for token in every if token.type == "link_open"]
    assert {page_of(target) for target in targets} <= set(ALLOWED.pages)
    assert not [token for token in every if token.type == "image"]
    assert "://evil.test" not in kept
    assert not re.search("[\u202e\x1b]", kept)


@given(st.lists(st.sampled_from(PARTS), max_size=25).map("".join))
@settings(max_examples=200)
def test_a_text_whose_links_were_kept_once_stays_free_of_foreign_ones(text: str) -> None:
    once = keep_links(text, ALLOWED).text

    assert "://evil.test" not in keep_links(once, ALLOWED).text


@pytest.mark.parametrize("number", range(len(MONSTERS)))
def test_no_text_takes_long(number: int) -> None:
    began = time.thread_time()

    keep_links(MONSTERS[number], ALLOWED)

    assert time.thread_time() - began < 20  # what is quadratic takes minutes


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"See [the rules]({PAGE}#top). [1]", f"See [the rules]({PAGE}#top). [1]"),
        ("See [them](HTTPS://Docs.ACME.test:443/rules/ 't'). [1]", f"See [them]({PAGE}). [1]"),
        (f"See {PAGE}. [1]", f"See {PAGE}. [1]"),
        ("[a](https://docs.acme.test/a_(b)) [1]", "[a](https://docs.acme.test/a_%28b%29) [1]"),
        (f"[evil.test]({PAGE}) [1]", f"[Rules]({PAGE}) [1]"),
        (f"[]({PAGE}) [1]", f"[Rules]({PAGE}) [1]"),
        ("See [Priority](priority.md). [1]", "See Priority. [1]"),
        ("`[x](y)` [1]", "`[x](y)` [1]"),
        ("Open https://console.acme.test/settings. [1]",
         "Open `https://console.acme.test/settings`. [1]"),
        ("Open https://console.acme.test/other. [1]", "Open [address removed]. [1]"),
        ("It begins with `https://`, not http://. [1]",
         "It begins with `https://`, not http://. [1]"),
        ("Open https://|evil.test. [1]", "Open [address removed]|[address removed]. [1]"),
        ("Write to help@acme.test. [1]", "Write to `help@acme.test`. [1]"),
        ("Use Node.js, main.py, rules.md, and/or v1.2/3, e.g. 10:30. [1]",
         "Use Node.js, main.py, rules.md, and/or v1.2/3, e.g. 10:30. [1]"),
        ("GET /messages/{id} in <region>. [1]", "GET /messages/{id} in <region>. [1]"),
        ("```sh\ncurl https://api.acme.test/v1 \\\n  -H 'a: b'\n```\n\n[1]",
         "```sh\ncurl https://api.acme.test/v1 \\\n  -H 'a: b'\n```\n\n[1]"),
        ("1. One. [1]\n\n   ```\n   [x](y)\n   ```\n\n2. Two. [1]",
         "1. One. [1]\n\n   ```\n   [x](y)\n   ```\n\n2. Two. [1]"),
        ("Set [priority][1] and `a` \\* b. [2]", "Set [priority][1] and `a` \\* b. [2]"),
        ("打开“路由”。[1]\n\n- **甲**：乙 [1]", "打开“路由”。[1]\n\n- **甲**：乙 [1]"),
    ],
)  # fmt: skip
def test_honest_text_reads_on(text: str, kept: str) -> None:
    assert keep_links(text, ALLOWED).text == kept


def test_a_host_that_looks_alike_is_another() -> None:
    assert page_of("https://dосs.acme.test/rules") != page_of(PAGE)  # Cyrillic letters
    assert keep_links("[a](https://dосs.acme.test/rules)", ALLOWED).text == "a"


@pytest.mark.parametrize(
    "address",
    [
        "//docs.acme.test/rules", "https://a@docs.acme.test/rules", "https:docs.acme.test",
        "https://docs.acme.test\\@evil.test/", "https://docs.acme.test/ rules", "javascript:a",
        "https://docs.acme.test\t/rules", "https://%65vil.test/", "https://", "/rules", "",
    ],
)  # fmt: skip
def test_only_plain_web_addresses_name_a_page(address: str) -> None:
    assert page_of(address) is None


def test_titles_and_labels_are_plain_words() -> None:
    line = plain_line("a\n[b](//evil.test) \u202e\x1b]8;;x <img src=y> https://evil.test/ C&A")

    assert line == "a b ]8;;x [address removed] C&A"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Enter <Vorname Nachname> or <key=value>.", r"Enter \<Vorname Nachname> or \<key=value>."),
        ("5 < b and c > 3, if a < title and x > y", "5 < b and c > 3, if a < title and x > y"),
        (r"\\. and \&amp; and \\\<a href=x>", r"\\. and \&amp; and \\\<a href=x>"),
        ("<!-- not shown --> text", r"\<!-- not shown --> text"),
        ("<img src=x>text", "text"),
    ],
)
def test_what_is_no_element_that_loads_anything_stays_text(text: str, kept: str) -> None:
    safe = keep_links(text, Allowed())

    assert safe.text == kept
    assert keep_links(safe.text, Allowed()).text == kept


def test_a_title_keeps_its_placeholders() -> None:
    assert plain_line("Offer for <Vorname Nachname>") == "Offer for <Vorname Nachname>"


def test_nothing_is_allowed_by_default() -> None:
    assert keep_links(f"[a]({PAGE})", Allowed()).text == "a"
