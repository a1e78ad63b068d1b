"""The script as it is served: small, exact, kept by browsers, and whole in every language."""

import base64
import gzip
import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator
from importlib.resources import files

import httpx
import pytest
from fastapi import FastAPI

from config.texts import load_texts
from gateway.widget.routes import part, widget_router, widget_script

MOST_BYTES = 42_000
BLOCK = re.compile(
    r"^(?:  \"?(\w\w(?:-\w+)?)\"?|const ENGLISH =):? \{\n(.*?)^ {0,2}\}", re.MULTILINE | re.DOTALL
)
WORDS = ("latin_words.js", "further_words.js")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(widget_router())
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://desk.test") as opened:
        yield opened


def languages() -> dict[str, dict[str, str]]:
    """The interface's words, by language and name."""
    found: dict[str, dict[str, str]] = {}
    for name in WORDS:
        for block in BLOCK.finditer(part(f"parts/{name}")):
            words = re.findall(r'^ +(\w+):\s+"(.*)",$', block[2], re.MULTILINE)
            found[block[1] or "en"] = dict(words)
    return found


def test_the_widget_is_small() -> None:
    assert len(gzip.compress(widget_script().text, mtime=0)) < MOST_BYTES


def test_the_interface_speaks_every_language_that_the_desk_asks_back_in() -> None:
    result = languages()

    assert set(result) == set(load_texts().languages)
    assert {code: set(words) ^ set(result["en"]) for code, words in result.items() if words} == {
        code: set() for code in result
    }
    assert all("{n}" in words["source"] for words in result.values())
    assert all("{n}" in words["long"] and "{most}" in words["long"] for words in result.values())


def test_no_two_parts_use_one_name_in_the_scope_that_they_share() -> None:
    named = re.findall(
        r"^(?:export )?(?:async )?(?:const|let|class|function\*?) (\w+)",
        "\n".join(read_parts().values()),
        re.MULTILINE,
    )

    assert {name for name, count in Counter(named).items() if count > 1} == set()
    assert len(named) > 50


def read_parts() -> dict[str, str]:
    """The source of the widget's parts, by name."""
    folder = files("gateway.widget").joinpath("parts")
    return {it.name: it.read_text() for it in folder.iterdir() if it.name.endswith(".js")}


def test_no_part_makes_markup_of_text() -> None:
    parts = read_parts()
    parts["demo.js"] = part("demo.js")
    makes = re.compile(
        r"(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc"
    )

    assert [name for name, text in parts.items() if makes.search(text)] == []


async def test_a_browser_may_keep_a_version_for_ever_and_asks_for_the_newest(
    client: httpx.AsyncClient,
) -> None:
    body = (await client.get("/widget")).json()
    exact, newest = await client.get(body["src"]), await client.get("/widget/refdesk.js")
    again = await client.get(
        "/widget/refdesk.js", headers={"If-None-Match": newest.headers["etag"]}
    )

    assert exact.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert newest.headers["cache-control"].startswith("public, max-age=3600")
    assert exact.content == newest.content
    assert exact.headers["content-encoding"] == "gzip"
    assert exact.headers["content-type"] == "text/javascript; charset=utf-8"
    assert (again.status_code, again.content) == (304, b"")


async def test_the_published_hash_is_that_of_what_is_served(client: httpx.AsyncClient) -> None:
    body = (await client.get("/widget")).json()
    exact = await client.get(body["src"])
    digest = base64.b64encode(hashlib.sha256(exact.content).digest()).decode()

    assert body["integrity"] == f"sha256-{digest}"
    assert f'integrity="{body["integrity"]}"' in (await client.get("/")).text
    assert exact.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("path", ["/widget/refdesk.0123456789abcdef.js", "/widget/..%2fscript.py"])
async def test_an_unknown_path_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404


async def test_the_page_allows_no_script_and_no_style_of_its_own(client: httpx.AsyncClient) -> None:
    page = await client.get("/")

    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.search(r"<style|style=|<script(?![^>]* src=)|\son\w+=", page.text) is None
