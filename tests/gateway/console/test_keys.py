"""Owners create keys in the console, with no more rights than their own."""

import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from gateway.api_keys import Scope, digest_of, make_key
from gateway.console.access import COOKIE, ConsoleRole, SignedInIdentity
from gateway.console.frame import Frame
from gateway.console.people import RECENT_SECONDS, PeoplePages
from tests.support.console import (
    DESK,
    OTHER,
    FakeKeys,
    FakeSessions,
    browser_of,
    make_console,
    make_personal_data,
    post,
    read_forgery_token,
)

ROLES = {
    DESK: {"it": ConsoleRole.OWNER, "desk": ConsoleRole.OWNER},
    OTHER: {"it": ConsoleRole.OWNER},
}
WEBSITE = {
    "tenant": "acme", "assistant": "desk", "kind": "public", "origins": "https://www.acme.com",
    "note": "help centre", "days": "30",
}  # fmt: skip


@dataclass
class Owner:
    client: httpx.AsyncClient
    sessions: FakeSessions
    keys: FakeKeys

    async def comes(self, name: str = "it", *, seconds_ago: float = 0.0) -> None:
        """Sign in, some time ago."""
        identity = SignedInIdentity(
            subject=name, shown=name, names=(name,), signed_in_at=time.time() - seconds_ago
        )
        token = await self.sessions.open(name, identity.model_dump_json())
        self.client.cookies.set(COOKIE, token, path="/console", domain="desk.local")

    async def creates(self, **fields: str) -> httpx.Response:
        page = (await self.client.get("/console")).text
        form = {**WEBSITE, "csrf": read_forgery_token(page), **fields}
        return await post(self.client, "/console/keys/create", form)


@pytest.fixture
async def owner() -> AsyncIterator[Owner]:
    sessions, keys = FakeSessions(), FakeKeys()
    parts = [PeoplePages(Frame(None, 90.0), make_personal_data(None), keys)]
    app = make_console(None, sessions, parts=parts, roles=ROLES, assistants=(DESK, OTHER))
    async with browser_of(app) as client:
        made = Owner(client, sessions, keys)
        await made.comes()
        yield made


async def test_a_key_is_shown_once_in_a_response_that_nobody_stores(owner: Owner) -> None:
    shown = await owner.creates()

    [token] = re.findall(r"refdesk_public_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", shown.text)
    [key] = owner.keys.keys
    assert shown.headers["cache-control"] == "no-store"
    assert key.digest == digest_of(token)
    assert (key.created_by, key.note, key.origins) == ("it", "help centre", (WEBSITE["origins"],))
    assert token not in (await owner.client.get("/console/people")).text


async def test_a_key_gets_no_permission_that_the_form_does_not_offer(owner: Owner) -> None:
    await owner.creates(**{"scope-metrics": "true", "scope-write": "true", "kind": "secret"})
    await owner.creates(**{"scope-write": "true", "groups": "board"})

    program, website = owner.keys.keys
    assert Scope.WRITE in program.scopes
    assert Scope.METRICS not in program.scopes
    assert Scope.WRITE not in website.scopes
    assert (website.groups, website.person_groups) == ((), ())


@pytest.mark.parametrize(
    ("chosen", "assistants"),
    [({}, ("desk", "hr")), ({"assistant-hr": "true"}, ("hr",)),
     ({"assistant-board": "true"}, ("desk", "hr"))],
)  # fmt: skip
async def test_a_key_is_for_assistants_that_its_owner_has(
    owner: Owner, chosen: dict[str, str], assistants: tuple[str, ...]
) -> None:
    await owner.creates(**chosen)

    assert owner.keys.keys[0].assistants == assistants


@pytest.mark.parametrize(
    ("name", "seconds_ago", "fields"),
    [
        ("it", RECENT_SECONDS + 1, {}),
        ("desk", 0, {}),
        ("it", 0, {"tenant": "other"}),
        ("it", 0, {"assistant": "board"}),
        ("it", 0, {"csrf": "0" * 64}),
    ],
)
async def test_nobody_else_creates_a_key(
    owner: Owner, name: str, seconds_ago: float, fields: dict[str, str]
) -> None:
    await owner.comes(name, seconds_ago=seconds_ago)

    refused = await owner.creates(**fields)

    assert refused.status_code in (403, 404)
    assert owner.keys.keys == []


async def test_after_an_error_the_form_is_shown_with_what_was_entered(owner: Owner) -> None:
    refused = await owner.creates(origins="ftp://acme")

    assert refused.status_code == 400
    assert 'value="ftp://acme"' in refused.text
    assert 'value="help centre"' in refused.text
    assert owner.keys.keys == []


@pytest.mark.parametrize("odd", [{"days": "31"}, {"kind": "master"}])
async def test_a_choice_that_the_form_does_not_offer_creates_no_key(
    owner: Owner, odd: dict[str, str]
) -> None:
    refused = await owner.creates(**odd)

    assert refused.status_code == 400
    assert owner.keys.keys == []


async def test_a_key_is_withdrawn_but_none_of_another_tenant(owner: Owner) -> None:
    own, foreign = (make_key("secret", tenant=tenant)[0] for tenant in ("acme", "other"))
    owner.keys.keys = [own, foreign]
    token = read_forgery_token((await owner.client.get("/console/people")).text)
    form = {"tenant": "acme", "assistant": "desk", "csrf": token}

    done = await post(owner.client, "/console/keys/revoke", {**form, "id": own.id})
    refused = await post(owner.client, "/console/keys/revoke", {**form, "id": foreign.id})

    assert (done.status_code, refused.status_code) == (303, 404)
    assert [key.id for key in owner.keys.keys if key.revoked_at is not None] == [own.id]
