"""Documents made to cost much: each is read within its limits, or reported; none is a surprise."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePosixPath

import pytest

from knowledge.documents.errors import (
    NoTextError,
    NotTextError,
    WrongFormatError,
)
from knowledge.documents.formats import Item
from knowledge.documents.location import locate
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from tests.knowledge.documents.printing import print_pdf

SIZE = 100_000


def _repeat(piece: str) -> Callable[[], str]:
    return lambda: piece * (SIZE // len(piece))


ROW = (
    '<t:table-row t:number-rows-repeated="9999999"><t:table-cell '
    't:number-columns-repeated="9999999"><p>7</p></t:table-cell></t:table-row>'
)
SHAPE = '<d:frame d:presentation="a" d:style-name="a"><d:text-box><p>7</p></d:text-box></d:frame>'


def _write_flat(kind: str, body: str, master: str = "") -> str:
    """Return a flat OpenDocument file whose only namespaces are `t` and `d`."""
    masters = f"<master-styles><master-page d:name='m'>{master}</master-page></master-styles>"
    return f"<x xmlns:t='t' xmlns:d='d'>{masters}<body><{kind}>{body}</{kind}></body></x>"


COSTLY: dict[str, dict[str, Callable[[], str]]] = {
    "a.md": {
        "items": _repeat("- a\n"),
        "items in items": lambda: "\n".join("  " * (n % 200) + "- a" for n in range(2000)),
        "quotations in quotations": _repeat(">"),
        "open brackets": _repeat("["),
        "open links": _repeat("[a]("),
        "open pictures": _repeat("!["),
        "open comments": _repeat("a <!-- "),
        "open tags": _repeat("<a b='"),
        "hidden spans": _repeat("<span hidden>"),
        "ends of nothing": _repeat("</b></i>"),
        "backticks": lambda: "".join("`" * (n % 60) + "a" for n in range(6000)),
        "stars": _repeat("*a **b "),
        "definitions": lambda: "".join(f"[a{n}]: /x\n" for n in range(9000)),
        "a heading of spaces": lambda: "# a" + " " * SIZE + "b",
        "anchors": _repeat("# a {#b "),
        "a wide table": lambda: "|a" * 9000 + "|\n" + "|-" * 9000 + "|\n" + "|x|\n" * 9000,
        "a table with a long header": lambda: f"|{'a ' * 20000}|\n|-|\n" + "|x y z|\n" * 3000,
        "style sheets": lambda: "<style>" + ".a{display:none}" * 9000 + "</style>\n\n<b class=a>x",
        "an open style sheet": _repeat("<style>\n\n"),
        "front matter": lambda: "---\na: " + "[" * 16_000 + "\n---\nx",
        "a line of 200 kB": _repeat("word "),
    },
    "a.mdx": {
        "imports": _repeat("import {\n"),
        "components": _repeat("<A title="),
        "open comments": _repeat("{/*"),
        "braces": _repeat("<a b={{"),
    },
    "a.fods": {
        "repeated rows": lambda: _write_flat("spreadsheet", f"<table>{ROW * 90}</table>"),
        "merged cells": lambda: _write_flat(
            "spreadsheet",
            f"<table>{ROW.replace('repeated', 'spanned') * 700}</table>",
        ),
        "sheets with a long header": lambda: _write_flat(
            "spreadsheet", "<table/>" * 9000, f"<header>{'<p>a</p>' * 9000}</header>"
        ),
    },
    "a.fodp": {
        "shapes": lambda: _write_flat("presentation", f"<page>{SHAPE * 9000}</page>"),
        "slides of a full master": lambda: _write_flat(
            "presentation", f"<page d:master-page-name='m'>{SHAPE}</page>" * 9000, SHAPE * 900
        ),
    },
    "a.fodt": {
        "paragraphs in frames": lambda: _write_flat(
            "text", "<p><d:frame><d:text-box>" * 900 + "</d:text-box></d:frame></p>" * 900
        ),
        "lists": lambda: _write_flat("text", "<list><item>" * 900 + "</item></list>" * 900),
    },
    "a.html": {
        "elements in elements": _repeat("<b>"),
        "blocks in blocks": _repeat("<div>"),
        "options": _repeat("<option>x"),
        "open tags": _repeat("<a "),
        "cells": lambda: "<table><tr>" + "<td>x" * 30_000,
        "styles": _repeat("<b style='color:red;a:b;c:d'>x</b>"),
        "a style without an end": lambda: f"<b style='{'a:b;' * 50_000}'>x",
        "comments of style sheets": lambda: "<style>" + "/*" * 90_000 + "</style>x",
        "rules of style sheets": lambda: "<style>" + "a b c d{color:#fff}" * 9000 + "</style>"
        + "<a><b><c><d>x" * 400,
        "panels": lambda: "<div><b role=tab>x</b>" + "<p role=tabpanel hidden>x" * 7000,
        "items deep in lists": lambda: "<ul><li>" * 900 + "<li>x" * 30_000,
    },
    "a.txt": {"blank lines": _repeat(" \n"), "dots": _repeat(" . . . . a"), "spaces": _repeat(" ")},
    "a.jsonl": {
        "brackets": lambda: '{"passage_id":"a","text":"x","z":' + "[" * SIZE,
        "digits": lambda: '{"passage_id":"a","text":"x","z":' + "1" * SIZE + "}",
        "headings": lambda: json.dumps(
            {
                "page_id": "a",
                "markdown": "# a\n" * 9000,
                "headings": [{"text": "a", "anchor": "b"}] * 9000,
            }
        ),
    },
    "a.rst": {
        "items": _repeat("- a\n"),
        "open roles": _repeat(":a:`"),
        "sections": _repeat("a\n=\n\n"),
    },
}  # fmt: skip

GOOD: dict[str, bytes] = {
    "a.md": b"---\ntitle: A\nkeywords: [b, c]\n---\n# A {#b}\n\nText *b* `c` [d](e) <b>x</b>.\n\n"
    b"- one\n  1. two\n\n> quoted\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n"
    b"<div style='display:none'>\n\nhidden\n\n</div>\n\n!!! note\n    Inside.\n",
    "a.mdx": b"import A from 'a'\n\n# A\n\n<Tabs>\n<Tab title=\"One\">\n\nText {/* c */}.\n\n"
    b"</Tab>\n",
    "a.html": b"<html lang=en><title>A</title><style>.x{display:none}</style><main><h1 id=a>A</h1>"
    b"<p class=x style='color:#fff;opacity:.5'>b<ul><li>c<li>d</ul><table><tr><td>e</table>"
    b"<pre><code class='language-py'>f</code></pre><details><summary>g</summary>h</details>",
    "a.rst": b"A\n=\n\nText ``b`` :ref:`c <d>` |e|.\n\n.. note:: f\n\n   g\n\n- h\n\n"
    b"=== ===\na   b\n"
    b"=== ===\nc   d\n=== ===\n\n.. code-block:: py\n\n   x = 1\n",
    "a.txt": b"One.\nTwo ..... 3\n\nThree.\n",
    "a.jsonl": json.dumps(
        {"id": "a", "content": "# A\n\nText.", "chunks": ["b", {"text": "c"}], "crumbs": ["d"]}
    ).encode(),
    "a.pdf": print_pdf([["Rates are low."], ["Calls are", "free."]]),
}
_JOINTS = (
    b"<",
    b">",
    b"[",
    b"]",
    b"`",
    b"\n",
    b"\x00",
    b"\xff",
    b"{",
    b'"',
    b"/",
    b"\\",
    b"&#",
    b"0",
)


def _read(reader: ReaderProcess, name: str, data: bytes) -> str:
    path = PurePosixPath(name)
    return reader.prepare(Item(name, data, name), path, locate(path, ())).page.content


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in COSTLY for kind in COSTLY[name]]
)
def test_a_document_made_to_cost_much_is_read_in_its_time(
    reader: ReaderProcess, name: str, kind: str
) -> None:
    with suppress(WrongFormatError, NoTextError):
        _read(reader, name, COSTLY[name][kind]().encode())


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_a_damaged_document_is_read_or_reported(name: str) -> None:
    chance = random.Random(f"damage to {name}")

    with ReaderProcess(ReadingLimits(seconds=10)) as reader:
        assert _read(reader, name, GOOD[name])
        for _ in range(120):
            with suppress(NotTextError, NoTextError, WrongFormatError):
                _read(reader, name, damage(GOOD[name], chance))


def damage(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice((0, 1, 1, 2, 8, 40)))
        piece = chance.choice(
            (b"", chance.choice(_JOINTS) * chance.randint(1, 9), data[end : end + 30])
        )
        data = data[:start] + piece + data[end:]
    return data
