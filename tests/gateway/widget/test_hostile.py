"""Answers that mean harm, or are merely monstrous: they are shown as text, and nothing happens."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from citations.verbatim import as_markdown
from envelope.role import Role
from tests.gateway.widget.conftest import Come
from tests.support.browser import open_context, serve_parts
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

HOSTILE = [
    "<script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 1'>",
    "<svg/onload=window.harmed=1><iframe srcdoc='<script>top.harmed=1</script>'></iframe>",
    "[press](javascript:window.harmed=1) [me](JaVaScRiPt:window.harmed=1)",
    "[tab](java\tscript:window.harmed=1) [line](java&#10;script:window.harmed=1)",
    "[data](data:text/html,<script>top.harmed=1</script>) <javascript:window.harmed=1>",
    "![image](javascript:window.harmed=1) ![track](https://evil.test/pixel.png)",
    "[vb](vbscript:x) [file](file:///etc/passwd) [blob](blob:https://evil.test/x)",
    '[quote](https://good.test/"onmouseover="window.harmed=1)',
    "[bank](https://bank.test@evil.test/)",
    "| <script>window.harmed=1</script> | b |\n|---|---|\n| <b onclick=alert(1)>x</b> | y |",
    "```html\n<script>window.harmed = 1</script>\n```\n`<script>window.harmed=1</script>`",
    "# <style>*{display:none}</style>\n> <base href=//evil.test>\n- <form action=//evil.test>",
    "a \u202egnp.exe b",
    "[1](javascript:window.harmed=1)[1][99999][0]",
]
SOURCES = [
    {"number": 1, "chunk_id": "", "title": "<b>T</b>", "url": "javascript:window.harmed=1"},
    {"number": 2, "chunk_id": "", "title": "<img src=x onerror=window.harmed=1>", "url": "//x"},
]
MONSTERS = {
    "a mile of text": "mile " * 200_000,
    "a word without end": "x" * 1_000_000,
    "brackets": "[" * 50_000,
    "links that never end": "[a](" * 20_000,
    "stars": "*a **b " * 20_000,
    "runs of stars": "*" * 50_000,
    "underscores": "_a" * 50_000,
    "ticks of every length": "".join("`" * (n % 300) + "a" for n in range(400)),
    "quotes in quotes": ">" * 50_000,
    "lists in lists": "\n".join(" " * (2 * n) + "- a" for n in range(300)),
    "a table of bars": "|" * 25_000 + "\n" + "|-" * 12_500,
    "headings": "#" * 50_000,
    "blanks": "# a" + " " * 49_000 + "#",
    "addresses": "https://" * 12_000,
    "escapes": "\\" * 50_000,
    "lines": "\n" * 50_000,
    "angles": "<https:" * 10_000,
    "rules": "- " * 25_000,
}
RENDER = """async (text) => {
  const { readMarkdown } = await import("/parts/markdown.js");
  const cite = (number) => null;
  const follows = (address) => (address.startsWith("https://a.test/") ? address : null);
  const box = document.createElement("div");
  const began = performance.now();
  box.append(readMarkdown(text, { cite, follows, words: { table: "Table" } }));
  document.body.append(box);
  box.getBoundingClientRect();
  const took = performance.now() - began;
  box.remove();
  return { html: box.innerHTML, text: box.textContent, took };
}"""
SECONDS_MS = 4_000
"""A reader who waits so long believes that the page hangs; what is quadratic takes far longer."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def workbench(browser: Browser) -> AsyncIterator[Page]:
    """A page in which Markdown is read as the widget reads it."""
    context = await open_context(browser)
    await serve_parts(context)
    await context.route(
        "http://bench.localhost/", lambda route: route.fulfill(body="<!doctype html>")
    )
    page = await context.new_page()
    await page.goto("http://bench.localhost/")
    yield page
    await context.close()


async def test_hostile_answers_do_no_harm(http_server: HttpServerFixture, come: Come) -> None:
    text = "\n\n".join(HOSTILE)
    http_server.harness.script.next(Role.RESPONSE, {"response": text, "sources_used": SOURCES})
    visitor = await come()
    asked: list[str] = []
    visitor.context.on("request", lambda request: asked.append(request.url))
    shown = await visitor.opens()

    await shown.asks("<script>window.harmed = 1</script>")
    [answer] = await shown.has_answers(1)
    for button in await shown.part(".answer button, .answer li").all():
        await button.focus()

    assert await shown.page.evaluate("window.harmed") is None
    tags = "script, iframe, img, style, base, form, object, embed, [onerror], [onclick], [style]"
    assert await shown.part(f".turn :is({tags})").count() == 0
    assert await shown.part(".turn a").count() == 0
    assert all(url.startswith(visitor.url) for url in asked)
    assert "<script>window.harmed = 1</script>" in answer
    assert "\u202e" not in answer
    assert await shown.part("button.cite").count() == 2


async def test_hostile_options_are_only_words(http_server: HttpServerFixture, come: Come) -> None:
    harm = "javascript:window.harmed=1"
    actions = [
        {"label": "a <b> & <img src=x onerror=window.harmed=1>c", "value": "a"},
        {"label": "page", "value": "page", "kind": "source", "url": harm},
    ]
    http_server.harness.script.ask_back(response="Which?", suggested_actions=actions)
    shown = await (await come()).opens()

    await shown.asks("Which?")
    await shown.has_answers(1)

    assert await shown.part(".options a, .options img").count() == 0
    assert await shown.part(".options button").all_inner_texts() == ["a <b> & c", "page"]


async def test_a_mile_of_text_leaves_the_widget_usable(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.RESPONSE, {"response": "mile " * 40_000 + "x" * 20_000})
    shown = await (await come()).opens()

    await shown.asks("How far?")
    await shown.has_answers(1)
    await shown.asks("And now?")

    assert (await shown.has_answers(2))[1] == "Open Routing [1]."
    assert await shown.part(".note", has_text="not shown").count() == 1
    wide = "it => it.scrollWidth > it.clientWidth"
    assert not await shown.part(".log").evaluate(wide)


@pytest.mark.parametrize("name", MONSTERS)
async def test_monstrous_markdown_is_read_in_no_time(workbench: Page, name: str) -> None:
    read = await workbench.evaluate(RENDER, MONSTERS[name])

    assert read["took"] < SECONDS_MS
    assert len(read["text"]) <= 50_000


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**bold** and *lean* and ***both***", "<strong>bold</strong> and <em>lean</em>"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("`a *b* <c>`", '<code dir="ltr">a *b* &lt;c&gt;</code>'),
        ("one\ntwo", '<p dir="auto">one<br>two</p>'),
        ("1. a\n2. b\n   - c\n\n3. d", '<ol dir="auto"><li>a</li>'),
        ("3. a\n4. b", '<ol dir="auto"><li value="3">a</li><li>b</li></ol>'),
        ("1. a\n1. b\n4. c", '<li>a</li><li>b</li><li value="4">c</li>'),
        ("- a\n\n  more", '<li>a<p dir="auto">more</p></li>'),
        ("### deep", '<h3 dir="auto">deep</h3>'),
        ("> said\n> so", '<blockquote dir="auto"><p dir="auto">said<br>so</p></blockquote>'),
        ("~~~\na < b\n~~~\nend", '<code>a &lt; b</code></pre><p dir="auto">end</p>'),
        ("| a | b |\n|---|:-:|\n| 1 \\| 2 | 3 |", "<td>1 | 2</td>"),
        (
            "| a | b |\n|---|---|\n| 1 | 2 | `3\\|4` |",
            '<td>2</td><td><code dir="ltr">3|4</code></td>',
        ),
        ("a \\*b\\* c", "a *b* c"),
        ("see https://a.test/b_(c), yes", 'href="https://a.test/b_(c)"'),
        ("[a [b]](https://a.test/x)", ">a [b]</a>"),
        ("Text\n---\nend", "<hr>"),
        ("see [Conditions](conditions.md).", "see <span>Conditions</span>."),
        ("see https://b.test/, yes", "see https://b.test/, yes"),
        ("see [b](https://b.test/)", "see <span>b</span>"),
        ("![a](https://a.test/x)", "<span>a</span>"),
    ],
)
async def test_markdown_is_read_as_it_is_meant(workbench: Page, markdown: str, html: str) -> None:
    read: dict[str, Any] = await workbench.evaluate(RENDER, markdown)

    assert html in read["html"]


@pytest.mark.parametrize(
    "text",
    [
        r"2*3*4 **/*.py _private_ __init__.py 5 * 3 *** a~~b ~5 ~/x",
        r"\\server\share C:\temp\new ^\d\.\d$ <serial> <a href=x> &nbsp; $5 and $6 1 | 2",
        "> 3 kW",
        "+ 5 V",
        "# 12",
        "01. a",
        "m[2] [1] [x](y) ![a_*b*]",
        "1`000 and 2`000",
    ],
)
async def test_text_of_documents_is_read_as_it_stands_there(workbench: Page, text: str) -> None:
    read: dict[str, Any] = await workbench.evaluate(RENDER, as_markdown(text))

    assert read["text"] == text
