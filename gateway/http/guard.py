"""Says who calls, and whether they may: keys, scopes, origins, rates.

Where no key was ever made, and the door stands open to its own machine alone, callers need none. A
page of some website that a person there looks at is kept out all the same: its requests name a
foreign host, or a foreign origin.
"""

import asyncio
import hashlib
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from gateway.http.errors import ForbiddenError, LimitedError, UnauthorizedError
from gateway.keys import Key, Scope, id_of
from gateway.port import Demand, KeyStore, Rates

LOCAL_HOST = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?", re.ASCII)
NAMED_HOST = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)
AT_ONCE = 16
BAD_KEY = "invalid_api_key"
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What proxies add: whoever stands behind one is elsewhere."""
NO_KEY = "expected a key in the header 'Authorization: Bearer KEY'"
MAKE_ONE = "make one with: refdesk keys create"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. Without a `key` it is somebody on the door's own machine."""

    tenant: str
    scopes: frozenset[Scope]
    assistants: tuple[str, ...] = ()
    key: Key | None = None
    address: str = ""
    door_address: str = ""
    """Of the door, as the caller names it; empty where it is named in no usable way."""

    @property
    def public(self) -> bool:
        """Whether everybody can have this key: each conversation needs its own token."""
        return self.key is not None and self.key.kind == "public"

    def need(self, scope: Scope) -> None:
        """Raise `ForbiddenError` without this scope."""
        if scope not in self.scopes:
            raise ForbiddenError(
                f"this key may not {scope.value}: it has {', '.join(sorted(self.scopes))}",
                code="missing_scope",
            )


class Guard:
    """Knows the keys. `open_tenant` is whose desk it is without a key; None: a key is needed."""

    def __init__(self, keys: KeyStore, rates: Rates, *, open_tenant: str | None) -> None:
        self._keys = keys
        self._rates = rates
        self._open_tenant = open_tenant
        # A crowd that comes at once is looked up over so many connections, not over one each.
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def caller(self, request: Request) -> Caller:
        """Return who calls, found out once a request; raises `UnauthorizedError` or
        `ForbiddenError`."""
        caller = getattr(request.state, "caller", None)
        if not isinstance(caller, Caller):
            caller = request.state.caller = await self._find_out(request)
        return caller

    async def _find_out(self, request: Request) -> Caller:
        async with self._turn:
            if self._open_tenant is not None and not await self._keys.any():
                return _local(request, self._open_tenant)
            key = await self._known(_token(request))
        if key.kind == "public":
            _check_origin(request, key)
        return _holder(request, key)

    async def link_holder(self, request: Request, key_id: str) -> Caller:
        """Return for whom a link was made, if it still may be used; else raises as `caller`."""
        if not key_id:
            if self._open_tenant is None or await self._keys.any():
                raise UnauthorizedError("made while no key was needed", code=BAD_KEY)
            return _local(request, self._open_tenant)
        key = await self._keys.get(key_id)
        if key is None or not key.is_good(now=time.time()):
            raise UnauthorizedError("made for a key that is not good any more", code=BAD_KEY)
        return _holder(request, key)

    async def admit(self, caller: Caller) -> None:
        """Count one request; raises `LimitedError`."""
        if caller.key is not None and caller.key.requests_per_minute is not None:
            demand = Demand("requests", per_minute=caller.key.requests_per_minute)
            await self._take(caller.key, [demand], "requests a minute")

    async def admit_question(self, caller: Caller) -> None:
        """Count one question; raises `LimitedError`."""
        key = caller.key
        if key is None:
            return
        demands = [Demand("questions", per_day=key.questions_per_day)]
        if caller.public:
            visitor = hashlib.sha256(f"{key.id}/{caller.address}".encode()).hexdigest()[:16]
            demands.append(Demand(visitor, per_day=key.visitor_questions_per_day))
        limited = [demand for demand in demands if demand.per_day is not None]
        if limited:
            await self._take(key, limited, "questions a day")

    async def origins(self) -> frozenset[str]:
        """Return the origins from which any public key may be used."""
        now = time.time()
        return frozenset(
            origin
            for key in await self._keys.all()
            if key.revoked_at is None and (key.expires_at is None or key.expires_at > now)
            for origin in key.origins
        )

    async def _take(self, key: Key, demands: Sequence[Demand], what: str) -> None:
        seconds = await self._rates.admit(key.id, demands)
        if seconds > 0:
            raise LimitedError(
                f"this key has used up its {what}: try again in {math.ceil(seconds)} seconds",
                code="rate_limit_exceeded",
                retry_after_seconds=seconds,
            )

    async def _known(self, token: str) -> Key:
        key_id = id_of(token)
        key = await self._keys.get(key_id) if key_id is not None else None
        if key is None or not key.opens(token, now=time.time()):
            raise UnauthorizedError("this key is not known, or not good any more", code=BAD_KEY)
        return key


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise UnauthorizedError(f"{NO_KEY}; {MAKE_ONE}", code=BAD_KEY)
    return token.strip()


def _local(request: Request, tenant: str) -> Caller:
    """Let in whoever is on this machine, and no website that somebody there looks at."""
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    foreign = origin is not None and origin != f"{request.url.scheme}://{host}"
    forwarded = any(name in request.headers for name in FORWARDED)
    if LOCAL_HOST.fullmatch(host) is None or foreign or forwarded:
        raise ForbiddenError(
            f"without keys the desk answers its own machine alone; {MAKE_ONE}", code="not_local"
        )
    return Caller(
        tenant,
        frozenset(Scope),
        address=_address(request),
        door_address=_door_address(request),
    )


def _holder(request: Request, key: Key) -> Caller:
    return Caller(
        key.tenant, key.scopes, key.assistants, key, _address(request), _door_address(request)
    )


def _check_origin(request: Request, key: Key) -> None:
    """Accept a public key only in a browser that shows one of its websites."""
    origin = request.headers.get("origin")
    if origin is None and request.headers.get("sec-fetch-site") == "same-origin":
        # Browsers name no origin when a page reads from where it came from.
        origin = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if origin not in key.origins:
        raise ForbiddenError(
            "this public key may not be used from here: its websites are named when it is made",
            code="origin_not_allowed",
        )
    request.state.allowed_origin = origin


def _door_address(request: Request) -> str:
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}" if NAMED_HOST.fullmatch(host) else ""


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""
