"""People sign in with their organisation's account, and nobody does with a forged one."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from fastapi import FastAPI

from gateway.connections.server import listening
from gateway.console.access import ConsoleRole
from gateway.console.oidc import OidcClient, OidcProvider
from gateway.console.sign_in import keep_inside
from tests.support.console import DESK, FakeSessions, browser_of, make_console
from tests.support.identity_provider import CLIENT_ID, ISSUER, FakeIdentityProvider, publish
from tests.support.waiting import wait_until

BASE = "https://desk.local"
ROLES = {DESK: {"ada@acme.com": ConsoleRole.OWNER, "group:staff": ConsoleRole.VIEWER}}
NAMES = frozenset(ROLES[DESK])
ADA = {"email": "ada@acme.com", "email_verified": True}


def client_at(issuer: str) -> OidcClient:
    return OidcClient(issuer, CLIENT_ID, "a secret", f"{BASE}/console/login/return", names=NAMES)


def desk_of(provider: FakeIdentityProvider, sessions: FakeSessions | None = None) -> FastAPI:
    confirming = OidcProvider(client_at(ISSUER), provider, provider.clock)
    return make_console(None, sessions, roles=ROLES, provider=confirming)


async def begin(client: httpx.AsyncClient, provider: FakeIdentityProvider, target: str = "") -> str:
    """Go to the provider; return the state with which it sends the browser back."""
    sent = await client.get(f"/console/login/start?next={quote(target)}")
    assert sent.status_code == 303
    provider.visit(sent.headers["location"])
    return provider.asked["state"]


async def come_back(client: httpx.AsyncClient, state: str, code: str = "code") -> httpx.Response:
    return await client.get(f"/console/login/return?code={code}&state={state}")


async def test_a_person_with_a_role_signs_in_and_comes_to_the_page_that_they_wanted() -> None:
    provider = FakeIdentityProvider(claims=ADA)
    async with browser_of(desk_of(provider), BASE) as client:
        page = await client.get("/console/questions?days=7")
        state = await begin(client, provider, "/console/questions?days=7")
        back = await come_back(client, state)

        assert page.status_code == 401
        assert "next=%2Fconsole%2Fquestions%3Fdays%3D7" in page.text
        assert back.status_code == 200
        assert 'content="0;url=/console/questions?days=7"' in back.text
        assert (await client.get("/console")).status_code == 200


async def test_the_cookies_are_out_of_reach_of_scripts_and_of_other_websites() -> None:
    provider = FakeIdentityProvider(claims=ADA)
    async with browser_of(desk_of(provider), BASE) as client:
        sent = await client.get("/console/login/start")
        provider.visit(sent.headers["location"])
        back = await come_back(client, provider.asked["state"])

    begun = sent.headers["set-cookie"].lower()
    assert all(part in begun for part in ("httponly", "samesite=lax", "secure", "max-age=600"))
    session = back.headers.get_list("set-cookie")[0].lower()
    assert all(part in session for part in ("httponly", "samesite=strict", "secure"))


async def test_the_provider_is_asked_with_state_nonce_and_the_digest_of_a_secret() -> None:
    provider = FakeIdentityProvider(claims=ADA)
    async with browser_of(desk_of(provider), BASE) as client:
        first = await begin(client, provider)
        asked = provider.asked
        await begin(client, provider)

    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == f"{BASE}/console/login/return"
    names = ("state", "nonce", "code_challenge")
    assert all(len(asked[name]) >= 43 and asked[name] != provider.asked[name] for name in names)
    assert first == asked["state"]


@pytest.mark.parametrize(
    ("supported", "sent"), [(["client_secret_post"], False), (["client_secret_basic"], True)]
)
async def test_the_secret_is_sent_as_the_provider_wants_it(
    supported: list[str], sent: bool
) -> None:
    metadata = {"token_endpoint_auth_methods_supported": supported}
    provider = FakeIdentityProvider(claims=ADA, metadata=metadata)
    async with browser_of(desk_of(provider), BASE) as client:
        await come_back(client, await begin(client, provider))

    assert provider.credentials == ((CLIENT_ID, "a%20secret") if sent else None)


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "ada@acme.com"},
        {"email": "ada@acme.com", "email_verified": False},
        {"email": "ada@acme.com", "email_verified": "true"},
        {"email": "bob@acme.com", "email_verified": True},
        {"email": ["ada@acme.com"], "email_verified": True},
        {"groups": ["ada@acme.com"]},
        {"groups": "ada@acme.com", "preferred_username": "ada@acme.com"},
        {"groups": {"staff": True}, "roles": ["staff"]},
        {"sub": "ada@acme.com"},
        {"groups": ["Staff", "staff "]},
    ],
)
async def test_a_user_without_a_role_gets_no_session(claims: dict[str, object]) -> None:
    provider, sessions = FakeIdentityProvider(claims=claims), FakeSessions()
    async with browser_of(desk_of(provider, sessions), BASE) as client:
        back = await come_back(client, await begin(client, provider))

        assert back.status_code == 403
        assert "no role" in back.text
        assert not sessions.people


async def test_groups_give_roles_and_addresses_do_in_any_case() -> None:
    for claims in ({"groups": ["staff", "x"]}, {**ADA, "email": "Ada@ACME.com"}):
        provider = FakeIdentityProvider(claims=claims)
        async with browser_of(desk_of(provider), BASE) as client:
            assert (await come_back(client, await begin(client, provider))).status_code == 200


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"}, {"nonce": None}, {"aud": "another"}, {"iss": "https://evil.com"},
        {"exp": 1}, {"azp": "another"}, {"aud": [CLIENT_ID, "another"]}, {"sub": None},
        {"sub": ""}, {"whole": "eyJhbGciOiJub25lIn0.e30."}, {"whole": "nothing"},
    ],
)  # fmt: skip
async def test_a_forged_or_foreign_token_opens_nothing(claims: dict[str, object]) -> None:
    provider, sessions = FakeIdentityProvider(claims={**ADA, **claims}), FakeSessions()
    async with browser_of(desk_of(provider, sessions), BASE) as client:
        back = await come_back(client, await begin(client, provider))

        assert back.status_code == 403
        assert "could not be verified" in back.text
        assert not sessions.people


async def test_a_sign_in_of_another_browser_is_not_taken_over() -> None:
    provider, sessions = FakeIdentityProvider(claims=ADA), FakeSessions()
    app = desk_of(provider, sessions)
    async with browser_of(app, BASE) as attacker, browser_of(app, BASE) as victim:
        state = await begin(attacker, provider)
        without = await come_back(victim, state)
        await begin(victim, provider)
        with_own = await come_back(victim, state)

    assert without.status_code == with_own.status_code == 403
    assert not sessions.people


@pytest.mark.parametrize("query", ["", "code=code", "state=x", "error=access_denied&state=x"])
async def test_a_return_that_lacks_something_opens_nothing(query: str) -> None:
    provider, sessions = FakeIdentityProvider(claims=ADA), FakeSessions()
    async with browser_of(desk_of(provider, sessions), BASE) as client:
        await begin(client, provider)

        assert (await client.get(f"/console/login/return?{query}")).status_code == 403
        for cookie in ("", "x", "e30=", "bnVsbA==", "W10="):
            client.cookies.set("refdesk_console_login", cookie, domain="desk.local", path="/")
            assert (await client.get(f"/console/login/return?{query}")).status_code == 403
        assert not sessions.people


async def test_a_code_without_the_secret_of_its_browser_is_worth_nothing() -> None:
    provider, sessions = FakeIdentityProvider(claims=ADA), FakeSessions()
    async with browser_of(desk_of(provider, sessions), BASE) as client:
        state = await begin(client, provider)
        provider.asked["code_challenge"] = "of-another-browser"

        assert (await come_back(client, state)).status_code == 403
        assert not sessions.people


async def test_the_session_before_a_sign_in_ends_with_it() -> None:
    provider, sessions = FakeIdentityProvider(claims=ADA), FakeSessions()
    async with browser_of(desk_of(provider, sessions), BASE) as client:
        await come_back(client, await begin(client, provider))
        [before] = sessions.people
        await come_back(client, await begin(client, provider))

    assert list(sessions.people) != [before]
    assert len(sessions.people) == 1


async def test_a_change_of_the_providers_keys_needs_no_restart() -> None:
    provider = FakeIdentityProvider(claims=ADA)
    app = desk_of(provider)
    async with browser_of(app, BASE) as client:
        await come_back(client, await begin(client, provider))
        provider.signing, provider.keys = "second", [publish("second")]
        provider.now += 60

        assert (await come_back(client, await begin(client, provider))).status_code == 200


async def test_a_provider_that_is_away_is_named_as_such() -> None:
    provider = FakeIdentityProvider(claims=ADA, is_away=True)
    async with browser_of(desk_of(provider), BASE) as client:
        sent = await client.get("/console/login/start")
        provider.is_away = False
        state = await begin(client, provider)
        provider.is_away = True
        back = await come_back(client, state)

    for page in (sent, back):
        assert page.status_code == 503
        assert "The provider does not respond" in page.text


@pytest.mark.parametrize(
    "metadata",
    [{"issuer": "https://evil.com"}, {"token_endpoint": "http://login.acme.com/token"},
     {"jwks_uri": "https://169.254.169.254/"}, {"authorization_endpoint": "javascript:alert(1)"}],
)  # fmt: skip
async def test_a_provider_that_leads_elsewhere_is_not_used(metadata: dict[str, str]) -> None:
    provider = FakeIdentityProvider(metadata=metadata)
    async with browser_of(desk_of(provider), BASE) as client:
        assert (await client.get("/console/login/start")).status_code == 503


OUTSIDE = (
    "https://evil.com", "//evil.com/console", "/\\evil.com", "/console\\@evil.com", "console",
    "javascript:alert(1)", "https:/console", "/consolevil", "/console/logout", "", "/",
    "/console/login?code=x", "\t//evil.com", "/console\r\nset-cookie: a=b", "http://[", "/CONSOLE",
)  # fmt: skip


@pytest.mark.parametrize("target", OUTSIDE)
async def test_a_sign_in_leads_to_no_other_website(target: str) -> None:
    provider = FakeIdentityProvider(claims=ADA)
    async with browser_of(desk_of(provider), BASE) as client:
        back = await come_back(client, await begin(client, provider, target))

    assert keep_inside(target) == "/console"
    assert 'content="0;url=/console"' in back.text


async def test_without_a_provider_only_links_open_the_console() -> None:
    async with browser_of(make_console(None), BASE) as client:
        page = await client.get("/console")

        assert "login/start" not in page.text
        assert "refdesk console" in page.text
        for path in ("start", "return"):
            assert (await client.get(f"/console/login/{path}")).status_code == 404


@asynccontextmanager
async def running_provider() -> AsyncIterator[str]:
    """Provide the address of a real provider, of the package oidc-provider-mock."""
    listener = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    listener.close()
    user = json.dumps({"sub": "ada", **ADA, "groups": ["staff"]})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port),
        "--require-nonce", "true", "--user-claims", user,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"

    async def answers() -> bool:
        async with httpx.AsyncClient(timeout=None) as client:
            try:
                return (await client.get(f"{address}/jwks")).status_code == 200
            except httpx.HTTPError:
                return False

    try:
        await wait_until(answers)
        yield address
    finally:
        process.kill()
        await process.wait()


@pytest.mark.slow
async def test_a_person_signs_in_at_a_real_provider() -> None:
    sessions = FakeSessions()
    async with running_provider() as issuer:
        provider = OidcProvider(client_at(issuer))
        app = make_console(None, sessions, roles=ROLES, provider=provider)
        async with browser_of(app, BASE) as client, httpx.AsyncClient(timeout=None) as outside:
            sent = await client.get("/console/login/start")
            confirmed = await outside.post(sent.headers["location"], data={"sub": "ada"})
            place = confirmed.headers["location"]
            assert place.startswith(f"{BASE}/console/login/return?")
            query = {name: value[0] for name, value in parse_qs(urlsplit(place).query).items()}
            back = await come_back(client, query["state"], query["code"])
            page = await client.get("/console")
            again = await come_back(client, query["state"], query["code"])

    assert back.status_code == page.status_code == 200
    assert re.search(r'name="csrf" value="[0-9a-f]{64}"', page.text)
    assert again.status_code == 403
    [(subject, person)] = sessions.people.values()
    assert subject == f"{issuer} ada"
    assert json.loads(person)["names"] == ["ada@acme.com", "group:staff"]
