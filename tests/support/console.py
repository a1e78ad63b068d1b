"""Sessions of the console in memory, and an application that has only the console."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import APIRouter, FastAPI

from broker.values import Erased
from envelope.conversation import Preferences
from envelope.question import Question
from gateway.api_keys import Key
from gateway.connections.server import listening, serving
from gateway.console.access import COOKIE, Assistant, ConsoleRole, Gate, SignedInIdentity
from gateway.console.attention import FindConcerns, FindSetup
from gateway.console.frame import ConsolePart, Frame
from gateway.console.oidc import OidcProvider
from gateway.console.routes import Console, console_router
from gateway.people import PersonalData
from gateway.port import HandOver
from records.record import Record
from records.store import RecordStore, connect_store
from tests.support.browser import chromium, open_context, violations

DESK, OTHER = ("acme", "desk"), ("acme", "hr")
ORIGIN = "http://desk"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1))"


@dataclass
class FakeSessions:
    codes: set[str] = field(default_factory=lambda: {"code"})
    people: dict[str, tuple[str, str]] = field(default_factory=dict)
    opened: int = 0

    async def redeem(self, code: str) -> bool:
        is_valid = code in self.codes
        self.codes.discard(code)
        return is_valid

    async def open(self, subject: str, person: str) -> str:
        self.opened += 1
        token = f"token-{self.opened}"
        self.people[token] = (subject, person)
        return token

    async def read(self, token: str) -> str | None:
        return self.people[token][1] if token in self.people else None

    async def end(self, token: str) -> None:
        self.people.pop(token, None)

    async def end_all(self, subject: str) -> None:
        self.people = {one: kept for one, kept in self.people.items() if kept[0] != subject}


@dataclass
class FakeKeys:
    keys: list[Key] = field(default_factory=list)
    used: dict[str, float] = field(default_factory=dict)

    async def get(self, key_id: str) -> Key | None:
        return next((key for key in self.keys if key.id == key_id), None)

    async def all(self) -> Sequence[Key]:
        return self.keys

    async def put(self, key: Key) -> None:
        self.keys = [item for item in self.keys if item.id != key.id] + [key]

    async def uses(self) -> Mapping[str, float]:
        return self.used


@dataclass
class FakeChoices:
    """What people chose, by assistant and person."""

    kept: dict[tuple[str, str], Preferences] = field(default_factory=dict)

    async def read(self, question: Question, person: str) -> Preferences:
        return self.kept.get((question.assistant, person), Preferences())

    async def forget(self, question: Question, person: str) -> bool:
        return self.kept.pop((question.assistant, person), None) is not None


def make_personal_data(
    store: RecordStore | None,
    choices: FakeChoices | None = None,
    forgotten: list[Question] | None = None,
) -> PersonalData:
    """Return the data of people, of whose conversations only the records are erased."""

    async def forget(question: Question) -> Erased:
        if forgotten is not None:
            forgotten.append(question)
        return Erased(records=0 if store is None else store.forget(question))

    return PersonalData(store, choices or FakeChoices(), forget)


@contextmanager
def open_records(folder: Path, *records: Record) -> Iterator[RecordStore]:
    """Provide a store of records in a folder, with these."""
    store = connect_store(f"sqlite:///{folder / 'records.sqlite3'}")
    store.prepare()
    store.write(records)
    yield store
    store.close()


def make_router(
    store: RecordStore | None,
    sessions: FakeSessions | None = None,
    *,
    roles: Mapping[Assistant, Mapping[str, ConsoleRole]] | None = None,
    assistants: tuple[Assistant, ...] = (DESK,),
    provider: OidcProvider | None = None,
    parts: Sequence[ConsolePart] = (),
    concerns: Sequence[FindConcerns] = (),
    find_setup: FindSetup | None = None,
    handover: HandOver | None = None,
) -> APIRouter:
    """Return the routes of a console."""
    gate = Gate(sessions or FakeSessions(), assistants, roles or {})
    return console_router(
        Console(
            gate,
            Frame(store, 90.0),
            provider=provider,
            parts=parts,
            concerns=concerns,
            find_setup=find_setup,
            handover=handover,
        )
    )


def make_console(
    store: RecordStore | None, sessions: FakeSessions | None = None, **options: Any
) -> FastAPI:
    """Return an application with the console alone; see `make_router`."""
    app = FastAPI()
    app.include_router(make_router(store, sessions, **options))
    return app


@asynccontextmanager
async def browser_of(app: FastAPI, address: str = ORIGIN) -> AsyncIterator[httpx.AsyncClient]:
    """Provide a client with cookies of its own."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=address) as client:
        yield client


async def sign_in(
    client: httpx.AsyncClient, sessions: FakeSessions, *names: str, subject: str = "ada"
) -> None:
    """Give a client the session of a person with these names."""
    identity = SignedInIdentity(subject=subject, shown=subject, names=names)
    token = await sessions.open(subject, identity.model_dump_json())
    client.cookies.set(COOKIE, token, path="/console", domain="desk.local")


def read_forgery_token(page: str) -> str:
    """Return the token in the forms of a page."""
    results = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert results is not None
    return results[1]


async def post(
    client: httpx.AsyncClient, path: str, fields: Mapping[str, str], *, origin: str = ORIGIN
) -> httpx.Response:
    """Send a form as a browser does that shows a page of `origin`."""
    return await client.post(path, data=dict(fields), headers={"origin": origin})


@asynccontextmanager
async def owner_of(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Provide the browser of an owner, who came by a link."""
    async with browser_of(app) as client:
        assert (await client.get("/console/login?code=code")).status_code == 303
        yield client


async def send_form(
    owner: httpx.AsyncClient, page: str, path: str, **fields: str
) -> httpx.Response:
    """Send a form with the token that `page` shows, and the names of the assistant."""
    token = read_forgery_token((await owner.get(page)).text)
    named = {"tenant": DESK[0], "assistant": DESK[1], "csrf": token}
    return await post(owner, path, {**named, **fields})


async def find_faults(
    app: FastAPI, owner: httpx.AsyncClient, paths: Sequence[str], *, scheme: str, width: int = 320
) -> list[str]:
    """Return what keeps the owner's pages from being readable for everybody, in a real browser."""
    listener = listening("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    found: list[str] = []
    async with serving(app, listener, asyncio.Event()), chromium() as browser:
        context = await open_context(
            browser, viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        await context.add_cookies([{"name": COOKIE, "value": owner.cookies[COOKIE], "url": url}])
        page = await context.new_page()
        for path in paths:
            await page.goto(f"{url}{path}")
            found += [f"{path}: {fault}" for fault in await violations(page)]
            wide = await page.evaluate("document.documentElement.scrollWidth")
            found += [f"{path}: {wide} pixels wide"] if wide > width else []
    return found
