"""Makes the pictures of the README and of docs/: console, widget, chat and report of a review.

`python -m tests.pictures [FOLDER]` needs a Chromium, and writes into docs/ unless it is told
another folder. The model is played; the records of the console are made up, and end today.
"""

import asyncio
import html
import io
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.async_api import Browser, Page

from agents.review.report_layout import lay_out
from agents.review.report_rendering import render_html
from config.settings import Settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.gateways.http_gateway import open_http_app
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import make_embedder
from deploy.assembly.open_records import FILE
from deploy.assembly.recording import recording
from deploy.assembly.runtime import ROLES, connect_runtime, run_workers
from gateway.connections.server import listening, serving
from knowledge.embedding import Embedder
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.source_registry import parse_source
from memory.console_state import RedisConsoleSessions
from records.record import Record
from records.store import connect_store
from tests.desk.test_conversations import (
    VENDOR,
    asks_for_essence,
    make_draft,
    make_understanding,
)
from tests.desk.test_played_review import ENGLISH, review
from tests.support.app_harness import DOMAIN, TOPIC, open_knowledge_with, refdesk, settings_of
from tests.support.browser import chromium
from tests.support.empty_redis import play_redis
from tests.support.folder_copy import copy_folder
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.waiting import wait_until

ROOT = Path(__file__).parent.parent
DOCUMENTS = ROOT / "examples" / "sms_platform"
SMS_DOMAIN = {"domain_name": DOMAIN, "domain_scope": TOPIC}
QUESTION = "How do I configure SMS routing rules?"
ANSWER = (
    "1. Open **Routing > Rules** and choose **New rule**.\n2. Set the conditions, the routes and a "
    "priority.\n3. Test the rule, then activate it. [1]\n\nYou need the role Owner, Admin or "
    "Developer, and an active rule takes effect within 60 seconds. [1]"
)
APPROVAL = {
    "claims_read": 4, "analysis": "", "verdicts": [], "missing": [], "completeness": 1.0,
    "accuracy": 1.0, "language_matches": True, "decision": "approve",
}  # fmt: skip
EARLIER = "Open **Routing > Rules** and choose **New rule**. [1]"
"""What the question was answered with before it is asked again."""
REFUSAL = "Sorry, nothing in the passages I found answers this."
DAY = 86_400.0
COLOURS = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that people asked during the week: how often, and how it ended."""

    text: str
    count: int
    outcome: str = "answered"
    reason: str = ""
    page: str = ""
    language: str = "en"
    down: int = 0


WEEK = (
    Asked(QUESTION, 46, page="Configure SMS routing rules"),
    Asked("How do I create an API key?", 38, page="API keys"),
    Asked("What does error 4029 mean?", 29, page="Error codes"),
    Asked("Wie lade ich Guthaben auf?", 17, page="Top up your balance", language="de"),
    Asked("How do I verify a webhook signature?", 24, page="Webhook payload examples", down=2),
    Asked("Can I pay with cryptocurrency?", 14, "refused", "insufficient_context", "Invoices"),
    Asked("Do you accept Bitcoin for invoices?", 9, "refused", "insufficient_context", "Invoices"),
    Asked("Can I send messages over WhatsApp?", 11, "refused", "insufficient_context", "Channels"),
    Asked("Is there a status page for outages?", 8, "refused", "insufficient_context", "Support"),
    Asked("How do I create one?", 6, "clarification", "ambiguous_query"),
    Asked("What is the capital of Australia?", 5, "refused", "out_of_scope"),
    Asked("How do I export my reports to Excel?", 12, page="Export a report", down=4),
)
CHANNELS = ("widget",) * 5 + ("http",) * 2 + ("slack",) * 3 + ("openai", "telegram")


def make_records(now: float) -> Iterator[Record]:
    """Yield the records of a week, the same ones whenever it ends."""
    dice = random.Random(7)  # made-up figures
    number = 0
    for asked in WEEK:
        for at in range(asked.count):
            number += 1
            ended = now - dice.random() ** 1.3 * 6.9 * DAY
            seconds = round(dice.uniform(1.1, 4.2), 1)
            yield Record(
                "default", "default", f"c{number}", f"m{number}", ended - seconds, ended,
                channel=dice.choice(CHANNELS), person=f"{dice.randrange(40):02x}f3a91c",
                way="search", language=asked.language, question=asked.text,
                canonical=asked.text, outcome=asked.outcome, reason=asked.reason,
                answered_by="model" if asked.outcome == "answered" else "",
                answer=EARLIER if asked.outcome == "answered" else REFUSAL,
                quality=0.92 if asked.outcome == "answered" else None,
                models=("gpt-4o-mini",), model_calls=3, input_tokens=2_400, output_tokens=310,
                cost_usd=Decimal("0.0006"), seconds=seconds,
                rating="down" if at < asked.down else "up" if dice.random() < 0.2 else "",
                rating_reason="It does not say how for last year." if at < asked.down else "",
                nearest=({"title": asked.page, "document_id": asked.page},) if asked.page else (),
            )  # fmt: skip


@asynccontextmanager
async def serve(settings: Settings, embedder: Embedder) -> AsyncIterator[tuple[str, str]]:
    """Serve a whole desk; provide its address, and a link that opens the console once."""
    endpoint = play_redis()
    listener = listening("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with AsyncExitStack() as stack:
        knowledge = await stack.enter_async_context(open_knowledge_with(settings, embedder))
        runtime = await stack.enter_async_context(connect_runtime(settings, endpoint=endpoint))
        runtime = replace(runtime, knowledge=knowledge)
        await stack.enter_async_context(run_workers(runtime, ROLES, knowledge))
        await stack.enter_async_context(recording(runtime))
        client = endpoint.client()
        stack.push_async_callback(client.aclose)
        code = await RedisConsoleSessions(client).make_code()
        app = open_http_app(runtime, asyncio.Event(), keyless=True)
        serving_now = serving(await stack.enter_async_context(app), listener, asyncio.Event())
        await stack.enter_async_context(serving_now)
        yield url, f"{url}/console/login?code={code}"


async def open_page(browser: Browser, width: int, height: int, *, scheme: str = "light") -> Page:
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type] # one of its words
        reduced_motion="reduce",
    )
    return await context.new_page()


async def save(page: Page, file: Path, *, height: int | None = None) -> None:
    """Save a picture of a page, or of its beginning, with few colours."""
    taken = Image.open(io.BytesIO(await page.screenshot(full_page=True))).convert("RGB")
    taken = taken.crop((0, 0, taken.width, min(taken.height, height or taken.height)))
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


async def show_console(browser: Browser, url: str, link: str, folder: Path) -> None:
    page = await open_page(browser, 1200, 800)
    await page.goto(link)
    for name, path, height in (
        ("overview", "", 1150), ("gaps", "/gaps", 720), ("documents", "/documents", 760),
        ("sources", "/sources", 560),
    ):  # fmt: skip
        await page.goto(f"{url}/console{path}")
        await save(page, folder / f"console-{name}.png", height=height)
    kept = await page.context.storage_state()
    small = await browser.new_context(
        storage_state=kept, viewport={"width": 320, "height": 800}, color_scheme="dark"
    )
    narrow = await small.new_page()
    await narrow.goto(f"{url}/console/gaps")
    gap: Any = narrow.locator("main a[href^='/console/gap?']").first
    await narrow.goto(f"{url}{await gap.get_attribute('href')}")
    await save(narrow, folder / "console-gap-small.png", height=1000)
    await page.goto(f"{url}/console/questions?text=configure+SMS")
    asked: Any = page.locator("main a[href^='/console/question?']").first
    address = f"{url}{await asked.get_attribute('href')}"
    await page.goto(address)
    async with page.expect_navigation():
        await page.get_by_role("button", name="Ask again").click()
    again = page.locator("a[href^='/console/again?']").first

    async def is_recorded() -> bool:
        await page.goto(address)
        return bool(await again.count())

    await wait_until(is_recorded)
    await again.click()
    await save(page, folder / "console-again.png", height=720)


async def show_widget(browser: Browser, url: str, folder: Path) -> None:
    page = await open_page(browser, 560, 900)
    await page.goto(url)
    widget: Any = page.locator("refdesk-widget")
    await widget.evaluate("(it, text) => it.ask(text)", QUESTION)
    await page.get_by_text("within 60 seconds").first.wait_for()
    await page.get_by_text("Sources").first.wait_for()
    taken = Image.open(io.BytesIO(await widget.screenshot())).convert("RGB")
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(folder / "widget.png", optimize=True)


async def show_chat(browser: Browser, data: Path, folder: Path, **model: object) -> None:
    """Save the terminal of a chat, with the lines that the person types."""
    given = f"{QUESTION}\n/get_stats\n/quit\n".encode()
    settings = {name: str(value) for name, value in model.items()} | SMS_DOMAIN
    chat = await asyncio.to_thread(refdesk, data, "chat", given=given, **settings)
    greeting, _, rest = chat.stdout.partition("\n")
    answer, mark, statistics = rest.partition("\n\nThis conversation")
    whole = f"{greeting}\n> {QUESTION}\n{answer}\n\n> /get_stats{mark[1:]}{statistics}> "
    shown = re.sub(r"\*\*([^*\n]+)\*\*", r"<b>\1</b>", html.escape(whole))
    page = await open_page(browser, 720, 300)
    await page.set_content(
        "<style>body{margin:0;padding:1rem;background:#14181e;color:#e6eaf0}"
        f"pre{{font:14px/1.45 monospace;margin:0}}</style><pre>{shown}</pre>"
    )
    await save(page, folder / "chat.png", height=900)


async def show_review(browser: Browser, data: Path, embedder: Embedder, folder: Path) -> None:
    reviewed = await review(ENGLISH, data, embedder)
    page = await open_page(browser, 900, 900)
    await page.set_content(render_html(lay_out(reviewed.report)))
    await save(page, folder / "review-report.png", height=1000)


class PlayedModel(ModelServer):
    """Answers every question of the pictures in the same way."""

    def choose_response(self, received: Received) -> Response:
        asked = json.dumps(received.body)
        if "claims_read" in asked:
            return VENDOR.answer(json.dumps(APPROVAL))
        if "context_type" in asked:
            return make_understanding(QUESTION, context_type="new_topic")
        return make_draft(ANSWER)


async def make_pictures(folder: Path) -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as made:
        data = Path(made) / "data"
        plain = settings_of(data)
        await run_ingestion(plain, [DOCUMENTS], PlainReport(lambda _line: None))
        embedder = make_embedder(plain)
        registry = open_source_registry(plain.data_place)
        for source, schedule in (
            ("https://docs.acme.example/guide/", "0 5 * * *"), ("s3://acme-handbook", "0 * * * *"),
        ):  # fmt: skip
            spec = parse_source(source)
            registry.add(spec, schedule)
            registry.record([spec], IngestionResult(added=40, unchanged=3))
        failed = parse_source("confluence://acme.atlassian.net/HR")
        registry.add(failed, "0 5 * * 1")
        reason = "the service refused the token (401): set CONFLUENCE_TOKEN to a valid one"
        registry.record_error(failed, OSError(reason))
        terminal = copy_folder(data, Path(made) / "terminal")
        store = connect_store(f"sqlite:///{data / FILE}")
        store.prepare()
        store.write(make_records(time.time()))
        store.close()
        async with chromium() as browser, running_server(PlayedModel("")) as server:
            model = asks_for_essence(server) | {"quality_model": "gpt-4o-mini@openai"}
            settings = settings_of(data, **model, **SMS_DOMAIN)
            async with serve(settings, embedder) as (url, link):
                await show_console(browser, url, link, folder)
                await show_widget(browser, url, folder)
            await show_chat(browser, terminal, folder, **model)
            await show_review(browser, Path(made) / "review", embedder, folder)


def main() -> int:
    """Read the argument."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(make_pictures(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
