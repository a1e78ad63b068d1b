"""Has a desk live through a day: five channels, several people and languages, and two outages.

`python -m tests.faults.day_of_a_desk FOLDER` needs about five minutes. The desk is the installed
program in processes of its own; Slack, Telegram and the vendor of the model are servers of this
machine. The console is then open at the address that is printed, until the process is ended; with
`--pictures`, a picture of each page is in the folder instead.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from openai import APIError, AsyncOpenAI

from tests.faults.servers import Server
from tests.support.browser import chromium
from tests.support.fake_slack import TOKEN as SLACK_TOKEN
from tests.support.fake_slack import slack_api
from tests.support.fake_telegram import TOKEN as TELEGRAM_TOKEN
from tests.support.fake_telegram import BotApi, bot_api
from tests.support.slack_harness import SIGNING_SECRET, People
from tests.support.waiting import within

PROGRAM = Path(sys.executable).with_name("refdesk")
EXAMPLES = Path("examples")
MISSING = (
    "Can I pay my invoice with cryptocurrency?",
    "Do you accept Bitcoin for invoices?",
    "Is it possible to pay in cryptocurrency?",
    "Kann ich meine Rechnung mit Bitcoin bezahlen?",
)
"""Questions that the documents do not answer; they are rated down."""
PAGES = (
    "", "questions", "gaps", "verified", "documents", "sources", "cost", "dead", "settings",
    "people",
)  # fmt: skip
AT_ONCE = 6
REDIS_AWAY_SECONDS = 15.0
PORT = 8133
ADDRESS = f"http://127.0.0.1:{PORT}"
SERVE = ("serve", "--port", str(PORT))
Ask = Callable[[str, str], Awaitable[str]]
"""Asks a question as a person, and returns how it ended."""


class Day:
    """A desk and who asks it."""

    def __init__(self, folder: Path, redis: Server, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.redis = redis
        self.environment = {**os.environ, **environment, "REDIS_URL": redis.url}
        self.ends: Counter[tuple[str, str]] = Counter()
        self.drawn = random.Random(33)
        asked = (EXAMPLES / "sms_platform_questions.jsonl").read_text(encoding="utf-8")
        self.questions = [json.loads(line)["question"] for line in asked.splitlines()]
        self.numbers = itertools.count(1)

    async def run(self, *arguments: str) -> str:
        """Run a command of the desk; return what it printed."""
        process = await asyncio.create_subprocess_exec(
            PROGRAM, *arguments, env=self.environment, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        return printed.decode()

    @asynccontextmanager
    async def running(self, *arguments: str, **more: str) -> AsyncIterator[str]:
        """Run a server of the desk while inside; provide its first line."""
        log = (self.folder / f"{arguments[0]}-{next(self.numbers)}.log").open("wb")
        process = await asyncio.create_subprocess_exec(
            PROGRAM, *arguments, env={**self.environment, **more},
            stdout=asyncio.subprocess.PIPE, stderr=log,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            async with within():
                first = await process.stdout.readline()
            yield first.decode()
        finally:
            if process.returncode is None:  # an interrupt of the terminal reaches it, too
                process.send_signal(signal.SIGTERM)
            async with within():
                await process.wait()
            log.close()

    async def ask(self, channels: Mapping[str, Ask], count: int) -> None:
        """Have people ask `count` questions over all channels."""
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(at: int) -> None:
            name = [*channels][at % len(channels)]
            text = self.drawn.choice(MISSING if at % 6 == 0 else self.questions)
            async with turn:
                try:
                    end = await channels[name](f"person-{at % 7}", text)
                except (httpx.HTTPError, APIError) as error:
                    end = type(error).__name__
                self.ends[name, end] += 1

        await asyncio.gather(*(one(at) for at in range(count)))


class Channels:
    """What asks over each of the five channels."""

    def __init__(
        self, day: Day, client: httpx.AsyncClient, keys: Mapping[str, str], slack: People,
        telegram: BotApi,
    ) -> None:  # fmt: skip
        self._day, self._client, self._slack, self._telegram = day, client, slack, telegram
        self._secret = {"Authorization": f"Bearer {keys['secret']}"}
        self._public = {
            "Authorization": f"Bearer {keys['public']}", "Origin": "https://www.acme.test",
        }  # fmt: skip
        address = str(client.base_url.join("/v1"))
        self._openai = AsyncOpenAI(api_key=keys["secret"], base_url=address, max_retries=0)
        self.all: dict[str, Ask] = {
            "http": self._over_http, "widget": self._in_widget, "openai": self._by_openai,
            "slack": self._in_slack, "telegram": self._in_telegram,
        }  # fmt: skip

    async def _over_http(self, person: str, text: str) -> str:
        return await self._send(f"/v1/conversations/{person}", text, self._secret, user_id=person)

    async def _in_widget(self, _person: str, text: str) -> str:
        opened = await self._client.post("/v1/conversations", headers=self._public)
        if opened.status_code >= 300:
            return str(opened.status_code)
        visit = opened.json()
        headers = {**self._public, "X-Conversation-Token": visit["token"]}
        return await self._send(f"/v1/conversations/{visit['conversation_id']}", text, headers)

    async def _by_openai(self, person: str, text: str) -> str:
        made = await self._openai.chat.completions.create(
            model="docs", messages=[{"role": "user", "content": text}], user=person
        )
        return made.choices[0].finish_reason

    async def _in_slack(self, person: str, text: str) -> str:
        number = int(person[-1])
        event = self._slack.message(f"<@UBOT> {text}", channel=f"C{number}", user=f"U{number}")
        return str((await self._slack.send({**event, "type": "app_mention"})).status_code)

    async def _in_telegram(self, person: str, text: str) -> str:
        number, at = int(person[-1]), next(self._day.numbers)
        self._telegram.queue_update(
            {
                "update_id": at,
                "message": {
                    "message_id": at,
                    "date": 1,
                    "text": text,
                    "chat": {"id": number, "type": "private"},
                    "from": {"id": number, "is_bot": False, "first_name": person},
                },
            }
        )
        return "queued"

    async def _send(self, path: str, text: str, headers: dict[str, str], **fields: str) -> str:
        body = {"text": text, **fields}
        answer = await self._client.post(f"{path}/messages", json=body, headers=headers)
        if answer.status_code != 200:
            return str(answer.status_code)
        result = answer.json()
        rating = "down" if text in MISSING else self._day.drawn.choice(["up", "up", ""])
        if rating:
            place = f"{path}/messages/{result['message_id']}/feedback"
            await self._client.post(place, json={"rating": rating}, headers=headers)
        return str(result["outcome"])


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take a request of a model, and never answer it."""
    del writer
    while await reader.read(65_536):
        pass


async def make_keys(day: Day) -> dict[str, str]:
    """Create the keys of the programs and of the website."""
    secret = await day.run("keys", "create", "--json", "--note", "shop", "--per-minute", "6000")
    public = await day.run(
        "keys", "create", "--json", "--public", "--origin", "https://www.acme.test",
        "--note", "website", "--per-minute", "6000",
    )  # fmt: skip
    return {"secret": json.loads(secret)["token"], "public": json.loads(public)["token"]}


async def take_pictures(address: str, link: str, folder: Path) -> None:
    """Save each page of the console, narrow and wide, light and dark."""
    async with chromium() as browser:
        context = await browser.new_context()
        await (await context.new_page()).goto(link)
        kept = await context.storage_state()
        for scheme, width in itertools.product(("light", "dark"), (320, 1280)):
            context = await browser.new_context(
                storage_state=kept,
                color_scheme=scheme,  # type: ignore[arg-type] # one of its words
                viewport={"width": width, "height": 900},
            )
            page = await context.new_page()
            for name in PAGES:
                await page.goto(f"{address}/console/{name}".rstrip("/"))
                file = folder / f"{name or 'overview'}-{width}-{scheme}.png"
                await page.screenshot(path=file, full_page=True)
            for name, listing, prefix in (
                ("question", "questions", "/console/question?"), ("gap", "gaps", "/console/gap?"),
            ):  # fmt: skip
                await page.goto(f"{address}/console/{listing}")
                found: Any = page.locator(f"main a[href^='{prefix}']").first
                if await found.count():
                    await page.goto(f"{address}{await found.get_attribute('href')}")
                    file = folder / f"{name}-{width}-{scheme}.png"
                    await page.screenshot(path=file, full_page=True)


async def live(folder: Path, count: int, *, pictures: bool) -> None:
    """Live through the day."""
    vendor = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with (
        slack_api() as slack, bot_api() as telegram, httpx.AsyncClient(timeout=60) as anybody,
        httpx.AsyncClient(base_url=ADDRESS, timeout=60) as client,
    ):  # fmt: skip
        slack.speed = telegram.speed = 200.0
        environment = {
            "REFDESK_DATA": str(folder / "data"), "TENANT": "acme", "ASSISTANT": "docs",
            "TOPIC": "the SMS platform", "SLACK_BOT_TOKEN": SLACK_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET, "SLACK_API_URL": slack.url,
            "TELEGRAM_BOT_TOKEN": TELEGRAM_TOKEN, "TELEGRAM_API_URL": telegram.url,
            "CHAT_QUESTIONS_PER_MINUTE": "0", "BURST_SECONDS": "0",
            "VISITOR_QUESTIONS_PER_MINUTE": "6000",
        }  # fmt: skip
        with Server(folder) as redis:
            day = Day(folder, redis, environment)
            say(await day.run("ingest", str(EXAMPLES / "sms_platform")))
            people = People(slack, f"http://127.0.0.1:{PORT + 1}/slack/events", anybody)
            channels = Channels(day, client, await make_keys(day), people, telegram)
            async with (
                day.running("slack", "--gateway-only", "--port", str(PORT + 1)),
                day.running("telegram", "--gateway-only"),
            ):
                await ask_all_day(day, channels.all, count, vendor.sockets[0].getsockname()[1])
                async with day.running(*SERVE):
                    await day.ask(channels.all, count // 10)
                    for (name, end), number in sorted(day.ends.items()):
                        say(f"{name:10} {end:20} {number}")
                    say(f"posts: {len(slack.posts)} {len(telegram.called('sendMessage'))}")
                    await show(day, folder, pictures=pictures)


async def ask_all_day(day: Day, channels: Mapping[str, Ask], count: int, vendor: int) -> None:
    """Ask nine tenths of the questions, while Redis stands still and then a model hangs."""
    async with day.running(*SERVE):
        await day.ask(channels, count * 6 // 10)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(day.ask(channels, count * 2 // 10))
            day.redis.stop()
            await asyncio.sleep(REDIS_AWAY_SECONDS)  # noqa: TID251 - Redis is stopped for this long
            day.redis.go_on()
    away = {
        "GEN_MODEL": "gpt-4.1-mini@openai", "OPENAI_API_KEY": "sk-none",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{vendor}/v1", "MODEL_TIMEOUT_SECONDS": "2",
        "DEADLINE_SECONDS": "20", "AGENT_TIMEOUT_SECONDS": "10",
    }  # fmt: skip
    async with day.running(*SERVE, **away):
        await day.ask(channels, count // 10)


async def show(day: Day, folder: Path, *, pictures: bool) -> None:
    """Save pictures of the console, or print where it is and wait."""
    printed = await day.run("console", "--port", str(PORT))
    link = next(word for word in printed.split() if word.startswith("http"))
    if pictures:
        await take_pictures(ADDRESS, link, folder)
        return
    say(link)
    await asyncio.Event().wait()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--pictures", action="store_true")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(live(chosen.folder, chosen.questions, pictures=chosen.pictures))


if __name__ == "__main__":
    main()
