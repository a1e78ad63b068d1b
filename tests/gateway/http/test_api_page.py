"""`/docs`: the API in a browser that reaches no other server, and examples that work."""

import asyncio
import hashlib
import json
import os
import re
import sys
from importlib.resources import files

import pytest
from playwright.async_api import Route

from tests.support.browser import chromium, open_context
from tests.support.http_server import HttpServerFixture

EXAMPLE = re.compile(r"```(bash|python)\n(.*?)```", re.DOTALL)
PRINTED_ADDRESS = "http://127.0.0.1:8000"


@pytest.mark.slow
async def test_the_page_shows_every_operation_without_another_server(
    http_server: HttpServerFixture,
) -> None:
    foreign: list[str] = []

    async def refuse(route: Route) -> None:
        foreign.append(route.request.url)
        await route.abort()

    async with chromium() as browser:
        page = await (await open_context(browser)).new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        await page.route(re.compile(rf"^(?!{re.escape(http_server.url)}/|data:)"), refuse)
        await page.goto(f"{http_server.url}/docs")
        await page.locator(".opblock").first.wait_for()
        shown = await page.locator(".opblock-summary-path").all_inner_texts()
        await page.locator(".opblock-post").first.click()
        await page.locator(".try-out__btn").first.click()
        await page.locator("button.execute").first.wait_for()

    document = (await http_server.client().get("/openapi.json")).json()
    described = [path for path, operations in document["paths"].items() for _ in operations]
    assert sorted(text.replace("\u200b", "") for text in shown) == sorted(described)
    assert foreign == []
    # The widget, which has the icon of the page, is not part of this server.
    assert [fault for fault in faults if "404" not in fault] == []


async def test_the_page_may_run_only_scripts_of_its_own_server(
    http_server: HttpServerFixture,
) -> None:
    page = await http_server.client().get("/docs")

    policy = page.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "connect-src 'self'"} <= set(policy)
    assert (await http_server.client().get("/docs/index.html")).status_code == 404


def test_the_renderer_is_the_release_that_its_record_names() -> None:
    folder = files("gateway.http").joinpath("swagger_ui")
    record = json.loads(folder.joinpath("component.json").read_text())

    shipped = {name: folder.joinpath(name).read_bytes() for name in record["sha256"]}

    assert record["purl"] == f"pkg:npm/{record['name']}@{record['version']}"
    assert record["sha256"] == {
        name: hashlib.sha256(content).hexdigest() for name, content in shipped.items()
    }
    assert record["license"] == "Apache-2.0"
    assert "Apache License" in folder.joinpath("LICENSE").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("language", ["bash", "python"])
async def test_an_example_of_the_page_prints_an_answer(
    http_server: HttpServerFixture, language: str
) -> None:
    document = (await http_server.client().get("/openapi.json")).json()
    examples = dict(EXAMPLE.findall(document["info"]["description"]))
    program = {"bash": ["bash"], "python": [sys.executable]}[language]
    process = await asyncio.create_subprocess_exec(
        *program,
        "-c",
        examples[language].replace(PRINTED_ADDRESS, http_server.url),
        env={**os.environ, "REFDESK_KEY": await http_server.key()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )

    out, err = await process.communicate()

    assert process.returncode == 0, err.decode()
    printed = out.decode()
    answer = json.loads(printed)["text"] if language == "bash" else printed
    assert "Open Routing" in answer
