"""The API describes itself: as a document, and as a page without scripts."""

import re

from fastapi.routing import APIRoute

from tests.support.http_server import FakeLibrary, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness


async def test_the_document_has_every_route_that_is_served_and_no_other(
    harness: WorkerHarness,
) -> None:
    async with open_http_server(harness, library=FakeLibrary()) as server:
        document = (await server.client().get("/openapi.json")).json()

    served = {
        (route.path_format, method.lower())
        for route in server.routes
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }
    described = {
        (path, method) for path, operations in document["paths"].items() for method in operations
    }
    assert described == served
    assert ("/v1/responses", "post") in described
    assert ("/v1/search", "post") in described


async def test_the_page_shows_every_operation_and_schema_and_loads_nothing(
    http_server: HttpServerFixture,
) -> None:
    client = http_server.client()

    page = await client.get("/docs")
    document = (await client.get("/openapi.json")).json()

    assert page.status_code == 200
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"<code>{method.upper()} {path}</code>" in page.text
    targets = set(re.findall(r'href="#([^"]+)"', page.text))
    assert targets <= set(re.findall(r'id="([^"]+)"', page.text))
    assert not re.search(r"<script|<link|src=|https?://", page.text)
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "; style-src 'sha256-" in policy
    assert "script-src" not in policy
