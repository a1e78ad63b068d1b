"""Somebody in a browser: Debian's Chromium, a page with the widget, and what happens on it."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Route,
    async_playwright,
)

from gateway.widget.routes import part

CHROMIUM = "chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDGET = "refdesk-widget"
POLICY = (
    "default-src 'none'; script-src {url}; connect-src {url}; img-src {url}; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
PAGE = """\
<!doctype html>
<html {html}>
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="{scheme}"><title>A shop</title>
<script src="{url}/widget/refdesk.js" defer {script}></script></head>
<body><main><h1>A shop</h1><button>Before</button>{widget}</main></body></html>
"""
LISTENING = """\
window.said = [];
const observe = (status) => new MutationObserver(() => {
  if (status.textContent) window.said.push(status.textContent);
}).observe(status, { childList: true, characterData: true, subtree: true });
const sought = setInterval(() => {
  const status = document.querySelector("refdesk-widget")?.shadowRoot
    ?.querySelector("[role=status]");
  if (!status) return;
  clearInterval(sought);
  observe(status);
}, 5);
"""
AXE = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
"""What WCAG 2.2 added at level AA, and a machine can see, axe-core leaves out unless asked."""
BROKEN_NETWORK = ("Failed to load resource", "net::ERR_")
WHOLE = "root => [...root.shadowRoot.querySelectorAll('.answer')].map(it => it.ariaBusy)"


def find_chromium() -> str:
    """Return where the browser is; missing: skip at home, fail in CI."""
    result = shutil.which(CHROMIUM)
    if result is not None:
        return result
    if os.environ.get("CI"):
        pytest.fail("no chromium was found, and CI must not skip what needs it")
    pytest.skip("no chromium was found")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Have a browser while inside; it gets a new folder."""
    path = find_chromium()
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=FLAGS, timeout=0)
        yield browser
        await browser.close()


async def open_context(browser: Browser, **options: Any) -> BrowserContext:
    """Return a new person's context, in which waiting has no limit but that of the test."""
    context = await browser.new_context(**options)
    context.set_default_timeout(0)
    return context


@dataclass
class BrowserVisitor:
    """A person with a separate browser before a server."""

    context: BrowserContext
    url: str
    errors: list[str] = field(default_factory=list)

    async def opens(
        self,
        *,
        site: str | None = None,
        html: str = 'lang="en"',
        scheme: str = "light dark",
        script: Mapping[str, str] | None = None,
        **attributes: str,
    ) -> "DisplayedMessage":
        """Open a page with the widget; with `script`, the script tag makes the launcher."""
        given = {"mode": "inline", **attributes}
        names = " ".join(
            f'{name.replace("_", "-")}="{escape(value)}"' for name, value in given.items()
        )
        page = PAGE.format(
            url=self.url,
            html=html,
            scheme=scheme,
            script=" ".join(f'data-{name}="{value}"' for name, value in (script or {}).items()),
            widget="" if script is not None else f"<{WIDGET} {names}></{WIDGET}>",
        )
        address = f"{site or self.url}/shop"
        policy = {"Content-Security-Policy": POLICY.format(url=self.url)}
        await self.context.unroute("**/shop")
        await self.context.route("**/shop", _fulfilling(page, policy))
        return await self.goes(address)

    async def goes(self, address: str) -> "DisplayedMessage":
        """Open any page."""
        page = await self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)
        await page.add_init_script(LISTENING)
        await page.goto(address)
        return DisplayedMessage(page)

    def take_console_errors(self) -> list[str]:
        """Return the errors of the console, and expect them."""
        messages, self.errors[:] = list(self.errors), []
        return messages

    def _note(self, message: ConsoleMessage) -> None:
        expected = any(words in message.text for words in BROKEN_NETWORK)
        if message.type in {"error", "warning"} and not expected:
            self.errors.append(message.text)


@dataclass
class DisplayedMessage:
    """A page with the widget on it."""

    page: Page

    def part(self, selector: str, **filters: Any) -> Locator:
        """What the widget shows."""
        return self.page.locator(WIDGET).locator(selector, **filters)

    @property
    def field(self) -> Locator:
        """Where a question is written."""
        return self.part("form.composer textarea")

    async def asks(self, text: str) -> None:
        """Write a question and send it."""
        await self.field.fill(text)
        await self.field.press("Enter")

    async def has_answers(self, number: int) -> list[str]:
        """Return the answers once there are that many, and none is pending."""
        await self.until(
            f"""number => {{
              const busy = ({WHOLE})(document.querySelector("{WIDGET}"));
              return busy.length === number && busy.every((it) => it === "false");
            }}""",
            number,
        )
        return await self.part(".answer .prose").all_inner_texts()

    async def until(self, condition: str, argument: Any = None) -> None:
        """Wait for a condition in the page."""
        await self.page.wait_for_function(condition, arg=argument)

    async def said(self) -> list[str]:
        """What a screen reader announced."""
        announcements: list[str] = await self.page.evaluate("window.said")
        return announcements

    async def focused(self) -> str:
        """Return the class, or the tag, of what has focus within the widget."""
        element: str = await self.page.evaluate(
            """() => {
              let at = document.activeElement;
              while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
              return at.className || at.localName;
            }"""
        )
        return element


async def violations(page: Page) -> list[str]:
    """Return what axe-core finds on the whole page, one line each."""
    await page.evaluate("Promise.all(document.getAnimations().map((it) => it.finished))")
    result = (await Axe().run(page, options=AXE)).response["violations"]
    return [f"{item['id']}: {node['html']}" for item in result for node in item["nodes"]]


def _fulfilling(page: str, headers: dict[str, str]) -> Any:
    async def answer(route: Route) -> None:
        await route.fulfill(body=page, content_type="text/html", headers=headers)

    return answer


async def serve_parts(context: BrowserContext) -> None:
    """Serve the widget's parts as the modules they are, under `/parts/`."""

    async def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        await route.fulfill(body=part(f"parts/{name}"), content_type="text/javascript")

    await context.route("**/parts/*.js", answer)
