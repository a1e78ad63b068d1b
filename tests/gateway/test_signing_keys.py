"""Tokens of a provider are believed only with a key that it publishes."""

import asyncio
import json
from base64 import urlsafe_b64encode
from typing import Any

import jwt
import pytest

from gateway.connections.server import listening, serving
from gateway.signing_keys import (
    FRESH_SECONDS,
    LEAST_SECONDS,
    LEEWAY_SECONDS,
    STALE_SECONDS,
    ProviderUnavailableError,
    SigningKeys,
    TokenError,
    check_address,
    fetch_json,
    read_token,
)
from tests.support.identity_provider import (
    CLIENT_ID,
    ISSUER,
    KEYS_ADDRESS,
    FakeIdentityProvider,
    make_ec_key,
    make_rsa_key,
    publish,
)


def keys_of(provider: FakeIdentityProvider) -> SigningKeys:
    async def find_address() -> str:
        return KEYS_ADDRESS

    return SigningKeys(find_address, provider, provider.clock)


async def read(token: str, provider: FakeIdentityProvider, keys: SigningKeys | None = None) -> Any:
    chosen = keys_of(provider) if keys is None else keys
    return await read_token(token, chosen, issuer=ISSUER, audience=CLIENT_ID, now=provider.now)


async def test_tokens_of_both_algorithms_are_read() -> None:
    provider = FakeIdentityProvider(keys=[publish("first"), publish("curve", curve=True)])
    claims = {"iss": ISSUER, "aud": CLIENT_ID, "sub": "bob", "exp": provider.now + 60}
    signed = jwt.encode(claims, make_ec_key("curve"), "ES256", {"kid": "curve"})

    assert (await read(provider.token(), provider))["sub"] == "ada"
    assert (await read(signed, provider))["sub"] == "bob"


def forge(header: dict[str, Any], claims: dict[str, Any]) -> str:
    parts = [urlsafe_b64encode(json.dumps(item).encode()).rstrip(b"=").decode()
             for item in (header, claims)]  # fmt: skip
    return ".".join([*parts, ""])


def list_forged(provider: FakeIdentityProvider) -> dict[str, str]:
    claims = jwt.decode(provider.token(), options={"verify_signature": False})
    public = make_rsa_key("first").public_key()
    own = publish("attacker")
    curve = make_ec_key("attacker")
    header, body, signature = provider.token().split(".")
    changed = forge({}, {**claims, "sub": "owner"}).split(".")[1]
    numbers = str(public.public_numbers().n)
    return {
        "no signature": forge({"alg": "none"}, claims),
        "no signature, a name in capitals": forge({"alg": "None", "kid": "first"}, claims),
        "the public key as a secret": jwt.encode(claims, numbers, "HS256", {"kid": "first"}),
        "a secret": jwt.encode(claims, "secret" * 8, "HS256", {"kid": "first"}),
        "another key under the same id": jwt.encode(
            claims, make_rsa_key("attacker"), "RS256", {"kid": "first"}
        ),
        "a key that the token brings": jwt.encode(
            claims, make_rsa_key("attacker"), "RS256", {"kid": "attacker", "jwk": own}
        ),
        "a key at an address of the token": jwt.encode(
            claims, make_rsa_key("attacker"), "RS256", {"jku": "https://evil.com/keys"}
        ),
        "another algorithm": jwt.encode(claims, make_rsa_key("first"), "RS512", {"kid": "first"}),
        "a curve under the id of an RSA key": jwt.encode(claims, curve, "ES256", {"kid": "first"}),
        "changed claims": f"{header}.{changed}.{signature}",
        "an empty signature": f"{header}.{body}.",
        "no token": "no token",
        "nested lists": forge({"alg": "RS256", "kid": "first"}, {"a": [[[[]]]]}),
        "endless": "a" * 20_000,
    }


@pytest.mark.parametrize("name", list(list_forged(FakeIdentityProvider())))
async def test_a_forged_token_is_refused(name: str) -> None:
    provider = FakeIdentityProvider()

    with pytest.raises(TokenError):
        await read(list_forged(provider)[name], provider)

    assert all(address == KEYS_ADDRESS for address in provider.fetched)


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.com"}, {"iss": None}, {"aud": "another"}, {"aud": None},
        {"exp": None}, {"exp": 1_000_000 - LEEWAY_SECONDS}, {"iat": 1_000_000 + 61},
        {"nbf": 1_000_000 + 61}, {"exp": "tomorrow"}, {"exp": True}, {"nbf": [1]},
    ],
)  # fmt: skip
async def test_a_token_for_others_or_another_time_is_refused(changes: dict[str, Any]) -> None:
    provider = FakeIdentityProvider()

    with pytest.raises(TokenError):
        await read(provider.token(**changes), provider)


async def test_clocks_may_differ_by_a_minute() -> None:
    provider = FakeIdentityProvider()
    late = provider.token(exp=provider.now - LEEWAY_SECONDS + 1)
    early = provider.token(iat=provider.now + LEEWAY_SECONDS, nbf=provider.now + LEEWAY_SECONDS)

    assert (await read(late, provider))["sub"] == (await read(early, provider))["sub"] == "ada"


async def test_a_new_key_is_found_without_a_restart_and_an_old_one_ends() -> None:
    provider = FakeIdentityProvider()
    keys, before = keys_of(provider), provider.token()
    await read(before, provider, keys)

    provider.signing, provider.keys = "second", [publish("second")]
    provider.now += LEAST_SECONDS

    assert (await read(provider.token(), provider, keys))["sub"] == "ada"
    with pytest.raises(TokenError):
        await read(before, provider, keys)


async def test_keys_are_fetched_once_and_not_for_every_invented_id() -> None:
    provider = FakeIdentityProvider()
    keys = keys_of(provider)
    await asyncio.gather(*(read(provider.token(), provider, keys) for _ in range(5)))
    invented = jwt.encode({"sub": "x"}, make_rsa_key("attacker"), "RS256", {"kid": "invented"})

    for _ in range(5):
        with pytest.raises(TokenError):
            await read(invented, provider, keys)

    assert provider.fetched == [KEYS_ADDRESS]
    provider.now += FRESH_SECONDS
    await read(provider.token(), provider, keys)
    assert len(provider.fetched) == 2


async def test_a_token_with_an_invented_key_makes_no_valid_one_wait() -> None:
    provider, asked, answers = FakeIdentityProvider(), asyncio.Event(), asyncio.Event()

    async def fetch_slowly(
        address: str, form: Any = None, credentials: Any = None
    ) -> tuple[int, dict[str, Any]]:
        asked.set()
        await answers.wait()
        return await provider(address, form, credentials)

    async def find_address() -> str:
        return KEYS_ADDRESS

    keys = SigningKeys(find_address, fetch_slowly, provider.clock)
    answers.set()
    await read(provider.token(), provider, keys)
    for later in (LEAST_SECONDS, FRESH_SECONDS):
        provider.now += later
        asked.clear()
        answers.clear()
        async with asyncio.TaskGroup() as tasks:
            invented = tasks.create_task(find_invented(keys))
            await asked.wait()

            await read(provider.token(), provider, keys)

            assert not invented.done()
            answers.set()


async def find_invented(keys: SigningKeys) -> None:
    with pytest.raises(TokenError):
        await keys.find("invented", "RS256")


async def test_an_outage_is_called_an_outage_and_known_keys_bridge_it_for_a_day() -> None:
    provider = FakeIdentityProvider(is_away=True)
    keys = keys_of(provider)
    for _ in range(2):
        with pytest.raises(ProviderUnavailableError, match="ConnectTimeout"):
            await read(provider.token(), provider, keys)

    provider.is_away = False
    provider.now += LEAST_SECONDS
    await read(provider.token(), provider, keys)
    provider.is_away = True
    provider.now += FRESH_SECONDS

    assert (await read(provider.token(), provider, keys))["sub"] == "ada"
    provider.now += STALE_SECONDS
    with pytest.raises(ProviderUnavailableError):
        await read(provider.token(), provider, keys)


@pytest.mark.parametrize(
    "listed",
    [None, "keys", [7], [{}], [{"kty": "oct", "k": "c2VjcmV0", "kid": "first"}],
     [publish("first", use="enc")], [publish("first", alg="RS512")], [{"kty": "RSA", "n": "?"}]],
)  # fmt: skip
async def test_a_key_that_is_not_a_public_signing_key_verifies_nothing(listed: Any) -> None:
    provider = FakeIdentityProvider(keys=listed)

    with pytest.raises((TokenError, ProviderUnavailableError)):
        await read(provider.token(), provider)


@pytest.mark.parametrize(
    "address",
    ["http://login.acme.com", "ftp://login.acme.com", "file:///etc/passwd", "login.acme.com", "",
     "https://user:password@login.acme.com", "https://169.254.169.254/keys", "https://[fe80::1]/",
     "http://10.0.0.1/", "http://localhost.evil.com/"],
)  # fmt: skip
def test_an_address_that_must_not_be_fetched_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"not allowed|expected"):
        check_address(address)


def test_a_provider_on_this_machine_needs_no_tls() -> None:
    for address in ("http://localhost:9400", "http://127.0.0.1:9400/a", "http://[::1]:1/"):
        assert check_address(address) == address


async def answer_badly(scope: Any, receive: Any, send: Any) -> None:
    bodies = {"/redirect": b"{}", "/large": b"[" * 600_000, "/text": b"<html>", "/broken": b"{}"}
    statuses = {"/redirect": 302, "/broken": 500}
    headers = [(b"location", b"/large")] if scope["path"] == "/redirect" else []
    status = statuses.get(scope["path"], 200)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": bodies.get(scope["path"], b'{"a": 1}')})


async def test_the_response_of_a_provider_is_limited_and_redirects_are_not_followed() -> None:
    listener = listening("127.0.0.1", 0)
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with serving(answer_badly, listener, asyncio.Event()):
        assert await fetch_json(f"{base}/good") == (200, {"a": 1})
        assert await fetch_json(f"{base}/redirect") == (302, {})
        for path in ("/large", "/text", "/broken"):
            with pytest.raises(ProviderUnavailableError):
                await fetch_json(base + path)
    with pytest.raises(ProviderUnavailableError, match="ConnectError"):
        await fetch_json(f"{base}/good")
