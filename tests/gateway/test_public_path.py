"""`PUBLIC_URL=https://host/desk`: a browser uses every page through nginx, which has TLS.

The location blocks are those of `docs/http.md`.
"""

import asyncio
import json
import re
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.async_api import BrowserContext, Response

from deploy.assembly.gateways.http_gateway import check_public_path
from deploy.errors import CommandError
from tests.cli.commands.test_serve_process import serving
from tests.support.app_harness import ROOT, refdesk
from tests.support.browser import BrowserVisitor, chromium, open_context
from tests.support.identity_provider import CLIENT_ID, FakeIdentityProvider
from tests.support.ports import free_port
from tests.support.waiting import block_until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]

SECRET = "whsec_bmV3IHNlY3JldCBvZiB0aGUgd2ViaG9va3Mh"  # noqa: S105 - of this test
PAGE = "# Reset a password\n\nChoose Forgotten in the portal, and wait for the letter.\n"
NGINX = """\
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    {location}
  }}
}}
"""
BLOCKS = re.findall(
    r"^```nginx\n(.*?)^```", (ROOT / "docs/http.md").read_text(), re.DOTALL | re.MULTILINE
)
"""The location blocks: one that strips the path, one that leaves it."""


@contextmanager
def proxying(folder: Path, port: int, location: str) -> Iterator[None]:
    """Run nginx with a certificate of its own."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX.format(folder=folder, port=port, location=location))
    process = subprocess.Popen(["nginx", "-c", configuration, "-e", folder / "nginx.log"])
    try:
        block_until(lambda: (folder / "nginx.pid").exists() or process.poll() is not None)
        yield
    finally:
        process.terminate()
        process.wait(20)


Answer = Callable[[str, bytes], tuple[int, dict[str, Any]]]
"""Returns the status and the body for a path and a request body; a status of 303 leads on."""


@contextmanager
def playing(answer: Answer) -> Iterator[str]:
    """Run a server of the operator on this machine; provide its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, value = answer(self.path, body)
            sent = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            if status == 303:
                self.send_header("Location", value["location"])
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_GET  # noqa: N815 - the name of the base class

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class ServedProvider:
    """The provider of identities as a server, whose page signs a person in at once."""

    def __init__(self) -> None:
        self.played = FakeIdentityProvider(claims={"email": "ada@acme.com", "email_verified": True})
        self.played.now = time.time()
        self.returned_to = ""

    def publish(self, address: str) -> None:
        """Move the provider to an address."""
        self.played.claims["iss"] = address
        self.played.metadata = {
            "issuer": address,
            "authorization_endpoint": f"{address}/authorize",
            "token_endpoint": f"{address}/token",
        }
        self.played.metadata["jwks_uri"] = f"{address}/keys"

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """See `Answer`."""
        if path.startswith("/authorize"):
            self.played.visit(path)
            self.returned_to = self.played.asked["redirect_uri"]
            state = self.played.asked["state"]
            return 303, {"location": f"{self.returned_to}?code=code&state={state}"}
        if path == "/keys":
            return 200, {"keys": self.played.keys}
        form = {name: value[0] for name, value in parse_qs(body.decode()).items()}
        return asyncio.run(self.played(path, form or None))


@dataclass(frozen=True)
class PublicDesk:
    """A desk behind a proxy: its address, its data folder, and the servers of its operator."""

    public: str
    data: Path
    provider: ServedProvider
    handed_over: list[dict[str, Any]]


@pytest.fixture(
    params=[BLOCKS[0], pytest.param(BLOCKS[1], marks=pytest.mark.long)], ids=["stripped", "left"]
)
def whole_desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PublicDesk]:
    """A desk with a page, behind nginx."""
    (tmp_path / "passwords.md").write_text(PAGE)
    data = tmp_path / "data"
    data.mkdir()
    public = f"https://127.0.0.1:{free_port()}/desk"
    desk = PublicDesk(public, data, ServedProvider(), [])
    assert refdesk(data, "ingest", str(tmp_path / "passwords.md")).returncode == 0

    def receive(_path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        desk.handed_over.append(json.loads(body))
        return 200, {}

    with playing(desk.provider.answer) as issuer, playing(receive) as hook:
        desk.provider.publish(issuer)
        settings = {
            "public_url": public,
            "trusted_proxies": '["127.0.0.1"]',
            "oidc_issuer": issuer,
            "oidc_client_id": CLIENT_ID,
            "console_roles": json.dumps({"*": {"owner": ["ada@acme.com"]}}),
            "handover_webhook": json.dumps({"url": hook, "secret": SECRET, "private": True}),
        }
        with serving(data, **settings) as (url, _):
            location = request.param.replace("http://127.0.0.1:8000", url)
            with proxying(tmp_path, urlsplit(public).port or 0, location):
                yield desk


@pytest.fixture
def desk(whole_desk: PublicDesk) -> tuple[str, Path]:
    """The public address of a desk behind nginx, and its data folder."""
    return whole_desk.public, whole_desk.data


def create_key(data: Path, *words: str) -> str:
    return str(json.loads(refdesk(data, "keys", "create", "--json", *words).stdout)["token"])


async def open_browser(context: BrowserContext, public: str) -> list[str]:
    """Return the list of the addresses outside the path, and of those that are not found."""
    wrong: list[str] = []

    def check(answer: Response) -> None:
        if not answer.url.startswith(public) or answer.status >= 400:
            wrong.append(f"{answer.status} {answer.url}")

    context.on("response", check)
    return wrong


async def test_the_start_page_answers_and_opens_the_cited_page(desk: tuple[str, Path]) -> None:
    public, data = desk
    key = create_key(data, "--public", "--origin", public.removesuffix("/desk"))
    async with chromium() as browser:
        context = await open_context(browser, ignore_https_errors=True)
        wrong = await open_browser(context, public)
        visitor = BrowserVisitor(context, public)

        page = await visitor.goes(f"{public}#key={key}")
        tag = await page.page.locator("#tag").inner_text()
        await page.asks("How do I reset a password?")
        answers = await page.has_answers(1)
        source = await page.part("a.place").first.get_attribute("href")
        reader = await context.new_page()
        await reader.goto(str(source))
        read = await reader.content()
        await context.close()

    assert (wrong, visitor.errors) == ([], [])
    assert any("Forgotten" in answer for answer in answers)
    assert str(source).startswith(f"{public}/v1/reader/")
    assert "Choose Forgotten in the portal" in read
    assert f'src="{public}/widget/refdesk.' in tag


async def test_every_page_of_the_console_opens_and_a_session_ends(desk: tuple[str, Path]) -> None:
    public, data = desk
    link = refdesk(data, "console", public_url=public).stdout.strip()
    async with chromium() as browser:
        context = await open_context(browser, ignore_https_errors=True)
        wrong = await open_browser(context, public)
        visitor = BrowserVisitor(context, public)

        page = (await visitor.goes(link)).page
        first = page.url
        places = await page.locator("nav a").evaluate_all("all => all.map((it) => it.href)")
        titles = [await page.title()]
        for place in places:
            await page.goto(place)
            titles.append(await page.title())
        cookies = {cookie["name"]: cookie["path"] for cookie in await context.cookies(first)}
        await page.get_by_role("button", name="Sign out", exact=True).click()
        signed_out = await page.locator("h1").inner_text()
        left = await context.cookies(first)
        await context.close()

    assert (wrong, visitor.errors) == ([], [])
    assert first == f"{public}/console"
    assert len(set(titles)) > 5
    assert cookies == {"refdesk_console": "/desk/console"}
    assert (signed_out, left) == ("You are signed out", [])


async def test_a_person_signs_in_at_the_provider_and_comes_back_to_the_page_they_wanted(
    whole_desk: PublicDesk,
) -> None:
    public = whole_desk.public
    async with chromium() as browser:
        context = await open_context(browser, ignore_https_errors=True)
        page = await context.new_page()
        await page.goto(f"{public}/console/questions?days=7")
        first = await page.title()
        await page.locator("a[href*='/login/start']").first.click()
        await page.wait_for_url(f"{public}/console/questions?days=7")
        second = await page.title()
        named = await page.locator("body").inner_text()
        cookies = {cookie["name"]: cookie["path"] for cookie in await context.cookies(page.url)}
        await context.close()

    assert whole_desk.provider.returned_to == f"{public}/console/login/return"
    assert first != second
    assert "ada@acme.com" in named
    assert cookies == {"refdesk_console": "/desk/console"}


async def test_a_person_answers_a_conversation_on_the_page_of_its_hand_over(
    whole_desk: PublicDesk,
) -> None:
    public = whole_desk.public
    headers = {"Authorization": f"Bearer {create_key(whole_desk.data)}"}
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    place = f"{public}/v1/conversations/c1"
    async with httpx.AsyncClient(verify=trusting, headers=headers, timeout=None) as client:
        question = {"text": "How do I reset a password?", "message_id": "m1"}
        assert (await client.post(f"{place}/messages", json=question)).status_code == 200
        sent = await client.post(f"{place}/handover", json={"message_id": "m1"})
        link = whole_desk.handed_over[0]["data"]["reply_url"]
        async with chromium() as browser:
            context = await open_context(browser, ignore_https_errors=True)
            wrong = await open_browser(context, public)
            page = await context.new_page()
            await page.goto(link)
            shown = await page.locator("body").inner_text()
            await page.locator("textarea").fill("The letter was sent yesterday.")
            async with page.expect_navigation():
                await page.locator("form button").first.click()
            await context.close()
        conversation = (await client.get(place)).json()

    assert sent.json()["sent"] is True
    assert link.startswith(f"{public}/v1/handover/")
    assert "How do I reset a password?" in shown
    assert wrong == []
    assert "The letter was sent yesterday." in json.dumps(conversation)


async def test_programs_use_the_api_its_description_and_mcp(desk: tuple[str, Path]) -> None:
    public, data = desk
    headers = {
        "Authorization": f"Bearer {create_key(data)}",
        "Accept": "application/json, text/event-stream",
    }
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with httpx.AsyncClient(verify=trusting, headers=headers, timeout=60) as client:
        opened = await client.post(f"{public}/v1/conversations")
        models = await client.get(f"{public}/v1/models")
        described = await client.get(f"{public}/openapi.json")
        docs = await client.get(f"{public}/docs")
        script = await client.get(f"{public}/widget")
        tools = await client.post(f"{public}/mcp", json=call)
        start = await client.get(public, follow_redirects=True)

    assert opened.headers["location"].startswith("/desk/v1/conversations/")
    assert models.status_code == 200
    assert described.json()["servers"] == [{"url": "/desk"}]
    assert 'href="openapi.json"' in docs.text
    assert script.json()["src"].startswith("/desk/widget/refdesk.")
    assert (tools.status_code, start.status_code) == (200, 200)


def test_a_path_that_refdesk_itself_uses_is_refused() -> None:
    from starlette.routing import Route

    routes = [Route("/v1/models", lambda _request: None)]

    check_public_path("/desk", routes)
    with pytest.raises(CommandError, match="PUBLIC_URL: the path /v1 conflicts"):
        check_public_path("/v1", routes)
