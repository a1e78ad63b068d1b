"""Reads tokens signed by an identity provider, using the public keys that it publishes.

URLs come from the configuration, or from the provider named in it, but never from a token. They are
fetched over TLS (which is optional for a provider on this machine), without redirects, and with a
size limit.
"""

import asyncio
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from gateway.errors import GatewayError

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS = ("RS256", "ES256")
"""The accepted algorithms. All of them use public keys, so that none of our own keys can verify a
token.
"""
LEEWAY_SECONDS = 60
LONGEST_TOKEN = 16_000
FRESH_SECONDS = 3600.0
STALE_SECONDS = 24 * 3600.0
"""How long keys are used while their provider does not respond."""
LEAST_SECONDS = 30.0
"""Minimum time between two fetches, so that invented key ids cannot cause a flood of them."""
_MOST_BYTES = 512 * 1024
_MOST_KEYS = 100
_TIMEOUT_SECONDS = 10.0
_KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}


class TokenError(GatewayError):
    """The token is invalid; the message states the reason, but not the content of the token."""


class ProviderUnavailableError(GatewayError):
    """An identity provider does not respond, or returns unusable data."""


class Fetch(Protocol):
    """Reads a JSON object from a URL of a provider."""

    async def __call__(
        self,
        address: str,
        form: Mapping[str, str] | None = None,
        credentials: tuple[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the object. If `form` is given, it is posted. Raises
        `ProviderUnavailableError`.
        """
        ...


def check_address(address: str) -> str:
    """Return the URL of a provider; raises `ValueError` if it must not be fetched."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.username or parts.fragment or not host:
        raise ValueError("expected an address such as https://login.acme.com")
    is_local = host == "localhost" or _has(host, "is_loopback")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise ValueError(
            "expected an address with https://; http:// is allowed for this machine only"
        )
    if _has(host, "is_link_local"):
        raise ValueError(
            "link-local addresses are not allowed, because cloud providers serve credentials there"
        )
    return address


async def fetch_json(
    address: str,
    form: Mapping[str, str] | None = None,
    credentials: tuple[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Read a JSON object from a URL of a provider, as described in `Fetch`."""
    import httpx2  # only where a provider is set up

    host = urlsplit(address).hostname
    try:
        check_address(address)
        async with (
            httpx2.AsyncClient(timeout=_TIMEOUT_SECONDS, follow_redirects=False) as client,
            client.stream(
                "GET" if form is None else "POST",
                address,
                data=None if form is None else dict(form),
                auth=credentials,
                headers={"accept": "application/json"},
            ) as answer,
        ):
            body = b""
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise ProviderUnavailableError(f"{host} sent more than {_MOST_BYTES} bytes")
        content = json.loads(body)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ProviderUnavailableError(f"{host}: {type(error).__name__}") from error
    except (ValueError, RecursionError) as error:
        raise ProviderUnavailableError(f"{host} did not return valid JSON") from error
    if not isinstance(content, dict) or answer.status_code >= 500:
        raise ProviderUnavailableError(f"{host} responded with status {answer.status_code}")
    return answer.status_code, content


def _has(host: str, property_name: str) -> bool:
    try:
        return bool(getattr(ipaddress.ip_address(host), property_name))
    except ValueError:
        return False


class SigningKeys:
    """The public keys at a URL, which `find_address` returns.

    They are cached for an hour, and fetched again if a token contains an unknown key id, so that
    key rotation does not require a restart. While the provider does not respond, known keys are
    used for a day.
    """

    def __init__(
        self,
        find_address: Callable[[], Awaitable[str]],
        fetch: Fetch = fetch_json,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find_address = find_address
        self._fetch = fetch
        self._clock = clock
        self._turn = asyncio.Lock()
        self._keys: list[PyJWK] = []
        self._fetched_at = self._tried_at = float("-inf")
        self._problem = ""

    async def find(self, key_id: str | None, algorithm: str) -> "PyJWK":
        """Return the key for an algorithm; raises `TokenError` or `ProviderUnavailableError`."""
        now = self._clock()
        jwk = self._choose(key_id, algorithm)
        if jwk is None or self._is_due(now):
            async with self._turn:
                # Another call may have fetched the keys while this one waited.
                is_old = now - self._fetched_at >= FRESH_SECONDS
                if is_old or self._choose(key_id, algorithm) is None:
                    await self._refresh(now)
                jwk = self._choose(key_id, algorithm)
        if self._problem and (jwk is None or now - self._fetched_at >= STALE_SECONDS):
            raise ProviderUnavailableError(self._problem)
        if jwk is None:
            raise TokenError("the token is signed with a key that the provider does not publish")
        return jwk

    def _is_due(self, now: float) -> bool:
        """Return whether known keys must be fetched again before they are used.

        While another call is fetching them, known keys are used, because a token with an invented
        key id must not make valid tokens wait for a provider.
        """
        age = now - self._fetched_at
        return age >= STALE_SECONDS or (age >= FRESH_SECONDS and not self._turn.locked())

    def _choose(self, key_id: str | None, algorithm: str) -> "PyJWK | None":
        fitting = [key for key in self._keys if key.algorithm_name == algorithm]
        if key_id is None:
            return fitting[0] if len(fitting) == 1 else None
        return next((key for key in fitting if key.key_id == key_id), None)

    async def _refresh(self, now: float) -> None:
        if now - self._tried_at < LEAST_SECONDS:
            return
        self._tried_at = now
        try:
            status, key_set = await self._fetch(await self._find_address())
            if status != 200:
                raise ProviderUnavailableError(
                    f"the server responded to the request for the keys with status {status}"
                )
            self._keys = _read_keys(key_set)
        except ProviderUnavailableError as error:
            self._problem = str(error)
            return
        self._fetched_at, self._problem = now, ""


async def read_token(
    token: str, keys: SigningKeys, *, issuer: str, audience: str, now: float
) -> dict[str, Any]:
    """Return the claims in a token that this issuer signed for this audience.

    `exp` is required; `iat` and `nbf` are checked if present, all with a leeway of one minute.
    Raises `TokenError` or `ProviderUnavailableError`.
    """
    import jwt

    if len(token) > LONGEST_TOKEN:
        raise TokenError(f"the token is longer than {LONGEST_TOKEN} characters")
    try:
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise TokenError(f"expected one of the algorithms {', '.join(ALGORITHMS)}")
        key = await keys.find(key_id if isinstance(key_id, str) else None, str(algorithm))
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[str(algorithm)],
            audience=audience,
            issuer=issuer,
            # The times are compared below, by the clock of the caller.
            options={"require": ["exp", "aud", "iss"], "verify_exp": False, "verify_iat": False,
                     "verify_nbf": False},
        )  # fmt: skip
    except (jwt.PyJWTError, RecursionError, OverflowError) as error:
        raise TokenError(f"the token is not valid: {type(error).__name__}") from error
    _check_times(claims, now)
    return claims


def _read_keys(key_set: Mapping[str, Any]) -> "list[PyJWK]":
    from jwt import PyJWK, PyJWTError

    listed = key_set.get("keys")
    if not isinstance(listed, list):
        raise ProviderUnavailableError("the provider does not publish a list of keys")
    keys = []
    for key in listed[:_MOST_KEYS]:
        algorithm = _find_algorithm(key) if isinstance(key, dict) else None
        if algorithm is None:
            continue
        try:
            keys.append(PyJWK(key, algorithm))
        except (PyJWTError, ValueError, TypeError):
            continue  # a key that cannot be read verifies nothing
    return keys


def _find_algorithm(key: Mapping[str, Any]) -> str | None:
    """Return the algorithm for which a published key may be used, or None if it is not accepted."""
    if key.get("use", "sig") != "sig":
        return None
    named = [name for name, kind in _KEY_TYPES.items() if key.get("kty") == kind]
    if not named or key.get("alg", named[0]) != named[0]:
        return None
    is_other_curve = named[0] == "ES256" and key.get("crv") != "P-256"
    return None if is_other_curve else named[0]


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    for name in ("exp", "iat", "nbf"):
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TokenError(f"{name} must be a number")
    if claims["exp"] <= now - LEEWAY_SECONDS:
        raise TokenError("the token has expired")
    if max(claims.get("iat", 0), claims.get("nbf", 0)) > now + LEEWAY_SECONDS:
        raise TokenError(
            "the token is not valid yet: check that the clocks of both machines are synchronised"
        )
