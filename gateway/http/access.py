"""Identifies callers and checks their permissions: keys, scopes, origins, rates.

If no key was ever created, and the server listens only on its own machine, callers do not need a
key. A website that somebody visits on that machine is still rejected, because its requests contain
a foreign host or a foreign origin.
"""

import asyncio
import ipaddress
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import structlog
from starlette.requests import Request

from envelope.texts import read_tag
from gateway.api_keys import Key, Scope, StoredKeys, digest_of, id_of
from gateway.chat.people import PersonDigests
from gateway.http.errors import (
    ForbiddenError,
    InvalidRequestError,
    LimitedError,
    UnauthorizedError,
    UnavailableError,
)
from gateway.http.visitors import FailureLimiter, Visitor, Visitors
from gateway.person_tokens import PersonTokenError, PersonTokens, StatedPerson
from gateway.signing_keys import ProviderUnavailableError
from memory.http_state import Demand, RedisRates, Shortage

log = structlog.get_logger("gateway")

LOCAL_HOST = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?", re.ASCII)
NAMED_HOST = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)
AT_ONCE = 16
BAD_KEY = "invalid_api_key"
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers that proxies add, which show that a caller is not on this machine."""
NO_KEY = "expected a key in the header 'Authorization: Bearer KEY'"
MAKE_ONE = "create one with: refdesk keys create"
LONGEST_ORIGIN = 300
PERSON_HEADER = "x-person-token"
PROVIDER_SECONDS = 30.0
WARN_SECONDS = 3600.0
"""Minimum time between two warnings about an untrusted proxy."""
WHOSE = {
    "key": "this key has used up its",
    "person": "this person has used up the",
    "visitor": "this visitor has used up the",
    "site": "this visitor's network has used up the",
}

NOBODY = Visitor("")
BELOW = "*."
"""The prefix of a name that includes all of its subdomains."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller. Without a `key`, it is a person on the server's own machine."""

    tenant: str
    scopes: frozenset[Scope]
    assistants: tuple[str, ...] = ()
    key: Key | None = None
    address: str = ""
    server_address: str = ""
    """The URL of the server as used in the request; empty if the request contains no usable one."""
    visitor: Visitor = NOBODY
    person_groups: tuple[str, ...] = ()
    """The groups that a signed token states for the person who asks."""
    person_until: float | None = None
    """The expiry time of the person token, in Unix seconds."""
    person_id: str = ""
    """The id of the person who asks, as stated in the token."""
    person_issuer: str = ""
    """The identity provider that issued this id; empty if the website that holds the key issued
    it.
    """
    digests: PersonDigests | None = None
    """Creates the pseudonyms of people, or None if this caller does not name anybody."""

    @property
    def public(self) -> bool:
        """Whether the key is public. Each conversation of a public key also requires a token."""
        return self.key is not None and self.key.kind == "public"

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the person who asks."""
        own = () if self.key is None else self.key.groups
        return tuple(sorted({*own, *self.person_groups}))

    @property
    def key_id(self) -> str:
        """The id of the caller's key, or empty without a key."""
        return "" if self.key is None else self.key.id

    def need(self, scope: Scope) -> None:
        """Raise `ForbiddenError` if the caller does not have this scope."""
        if scope not in self.scopes:
            raise ForbiddenError(
                f"this key lacks the scope {scope.value}; it has {', '.join(sorted(self.scopes))}",
                code="missing_scope",
            )


class AllowedHosts:
    """The host names of the server: `names` and the host of `public_url`.

    If there are no names, the server accepts every host name.
    """

    def __init__(self, names: Sequence[str] = (), *, public_url: str | None = None) -> None:
        allowed = [name.lower() for name in names]
        if allowed and public_url is not None:
            allowed.append(_name(urlsplit(public_url).netloc))
        self._names = frozenset(name for name in allowed if not name.startswith(BELOW))
        self._below = tuple(name[1:] for name in allowed if name.startswith(BELOW))

    def allows(self, host: str) -> bool:
        """Return whether a host, with or without a port, is allowed."""
        name = _name(host)
        is_any = not self._names and not self._below
        return is_any or name in self._names or name.endswith(self._below)

    def check(self, request: Request) -> None:
        """Raise `ForbiddenError` for a request to a host that is not allowed."""
        if not self.allows(request.headers.get("host", "")):
            raise ForbiddenError(
                "this server does not accept the host name of this request; an operator can allow "
                "it with the setting ALLOWED_HOSTS",
                code="host_not_allowed",
            )


class Guard:
    """Checks keys. `open_tenant` is the tenant for callers without a key; None requires a key.

    Requests for a host that is not in `hosts` are rejected for every caller.
    """

    def __init__(
        self,
        keys: StoredKeys,
        rates: RedisRates,
        *,
        visitors: Visitors,
        open_tenant: str | None,
        hosts: AllowedHosts | None = None,
        persons: PersonTokens | None = None,
        digests: PersonDigests | None = None,
    ) -> None:
        self._digests = digests
        self._keys = keys
        self._rates = rates
        self._visitors = visitors
        self._failures = FailureLimiter(rates, visitors)
        self._open_tenant = open_tenant
        self._hosts = AllowedHosts() if hosts is None else hosts
        self._persons = PersonTokens() if persons is None else persons
        self._quiet_until = float("-inf")
        # Concurrent requests share this many connections to Redis for their lookups.
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def caller(self, request: Request) -> Principal:
        """Return the caller of a request, which is determined once per request.

        Raises `UnauthorizedError`, `ForbiddenError` or `LimitedError`.
        """
        caller = getattr(request.state, "caller", None)
        if isinstance(caller, Principal):
            return caller
        self._hosts.check(request)
        try:
            known = await self._find_out(request)
            caller = request.state.caller = replace(known, digests=self._digests)
        except (UnauthorizedError, ForbiddenError, LimitedError):
            _let_page_read(request)
            raise
        return caller

    async def _find_out(self, request: Request) -> Principal:
        if self._open_tenant is not None:
            async with self._turn:
                if not await self._keys.any():
                    return _local(request, self._open_tenant)
        person = request.headers.get(PERSON_HEADER)
        token, visitor = _token(request), self._visitors.of(_address(request))
        credential = digest_of(f"{token} {request.headers.get('origin', '')}")
        _refuse(self._failures.find_block(visitor, credential))
        async with self._turn:
            key = await self._find_key(token, visitor, credential)
            if key.kind == "public":
                await self._check_origin(request, key, visitor, credential)
            await self._keys.note_use(key)
        self._failures.trust(credential)
        if key.kind == "public":
            self._warn_of_proxy(request)
        caller = _holder(request, key, visitor)
        return caller if person is None else await self._with_person(caller, person)

    async def _with_person(self, caller: Principal, token: str) -> Principal:
        """Return a caller with the groups in a token; an invalid token counts as an attempt to
        guess one.
        """
        key = caller.key
        credential = digest_of(f"{caller.key_id} {token}")
        self.check_token(caller, credential)
        try:
            person = StatedPerson() if key is None else await self._persons.read(token, key)
        except PersonTokenError as error:
            await self.judge_token(caller, credential, good=False)
            raise UnauthorizedError(str(error), code="invalid_person_token") from error
        except ProviderUnavailableError as error:
            log.warning("person_keys_unavailable", error=str(error))
            raise UnavailableError(
                "the identity provider does not answer, so that the token of the person cannot be "
                "verified; try again in a moment",
                code="identity_provider_unavailable",
                retry_after_seconds=PROVIDER_SECONDS,
            ) from error
        return replace(
            caller,
            person_groups=person.groups,
            person_until=person.expires_at,
            person_id=person.id,
            person_issuer=person.issuer,
        )

    def check_host(self, request: Request) -> None:
        """Raise `ForbiddenError` for a request to a host that is not allowed."""
        self._hosts.check(request)

    async def link_holder(
        self, request: Request, key_id: str, person_groups: Sequence[str] = ()
    ) -> Principal:
        """Return the caller for whom a link was created, if it is still valid; raises the same
        errors as `caller`. Groups of the person in the link apply only if the key may still state
        them.
        """
        self._hosts.check(request)
        if not key_id:
            if self._open_tenant is None or await self._keys.any():
                raise UnauthorizedError(
                    "this link was created when no key was required; a key is required now",
                    code=BAD_KEY,
                )
            return _local(request, self._open_tenant)
        key = await self._keys.get(key_id)
        if key is None or not key.is_good(now=time.time()):
            raise UnauthorizedError(
                "this link was created for a key that is no longer valid", code=BAD_KEY
            )
        caller = _holder(request, key, self._visitors.of(_address(request)))
        stated = tuple(group for group in person_groups if group in key.person_groups)
        return replace(caller, person_groups=stated)

    async def admit(self, caller: Principal, *, entered: bool = False) -> None:
        """Count one request; raises `LimitedError`.

        A request counts against the limit of a public key only after its caller has `entered` a
        conversation. Everybody can read the key, so a caller who has not opened a conversation can
        use up only their own limit.
        """
        key = caller.key
        if key is None:
            return
        demands = self._visitors.requests(caller.visitor, key) if caller.public else []
        if entered or not caller.public:
            demands.append(Demand("requests", per_minute=key.requests_per_minute))
        await self._take(key, demands, "requests")

    async def admit_opening(self, caller: Principal) -> None:
        """Count a conversation that is opened; raises `LimitedError`."""
        if caller.key is None or not caller.public:
            await self.admit(caller)
            return
        demands = self._visitors.openings(caller.visitor)
        await self._take(caller.key, demands, "conversations")

    async def admit_question(self, caller: Principal, *, once: str = "") -> None:
        """Count a question, unless it was already counted with the same `once`; raises
        `LimitedError`.
        """
        key = caller.key
        if key is None:
            return
        demands = self._visitors.questions(caller.visitor, key) if caller.public else []
        demands.append(Demand("questions", per_day=key.questions_per_day))
        await self._take(key, demands, "questions", once=once)

    def check_token(self, caller: Principal, credential: str) -> None:
        """Raise `LimitedError`, without checking the token, after too many invalid tokens."""
        _refuse(self._failures.find_block(caller.visitor, credential))

    async def judge_token(self, caller: Principal, credential: str, *, good: bool) -> None:
        """Remember a valid token, or count an invalid one; raises `LimitedError`."""
        if good:
            self._failures.trust(credential)
        else:
            _refuse(await self._failures.count_failure(caller.visitor, credential))

    async def _take(
        self, key: Key, demands: Sequence[Demand], what: str, *, once: str = ""
    ) -> None:
        limited = [
            demand
            for demand in demands
            if demand.per_minute is not None or demand.per_day is not None
        ]
        shortage = await self._rates.admit(key.id, limited, once=once) if limited else None
        if shortage is None:
            return
        own = shortage.demand.of == "key"
        whose, seconds = WHOSE[shortage.demand.of], math.ceil(shortage.seconds)
        raise LimitedError(
            f"{whose} {what} a {shortage.period}{'' if own else ' that are allowed'}: "
            f"try again in {seconds} seconds",
            code="rate_limit_exceeded" if own else "visitor_limit_exceeded",
            retry_after_seconds=shortage.seconds,
        )

    async def _find_key(self, token: str, visitor: Visitor, credential: str) -> Key:
        key_id = id_of(token)
        if key_id is None:
            raise _unknown_key()
        key = await self._keys.get(key_id)
        if key is None or not key.opens(token, now=time.time()):
            _refuse(await self._failures.count_failure(visitor, credential))
            raise _unknown_key()
        return key

    async def _check_origin(
        self, request: Request, key: Key, visitor: Visitor, credential: str
    ) -> None:
        """Accept a public key only from a browser on one of its websites."""
        origin = request.headers.get("origin")
        if origin is None and request.headers.get("sec-fetch-site") == "same-origin":
            # Browsers send no origin when a page reads from its own server.
            origin = f"{request.url.scheme}://{request.headers.get('host', '')}"
        if origin not in key.origins:
            _refuse(await self._failures.count_failure(visitor, credential))
            raise ForbiddenError(
                "this public key is not valid for this website. To list its websites, run: "
                "refdesk keys list. To create another key, run: refdesk keys create --public "
                "--origin WEBSITE",
                code="origin_not_allowed",
            )
        request.state.allowed_origin = origin

    def _warn_of_proxy(self, request: Request) -> None:
        """Log a warning, at intervals, that all visitors share one address because of an untrusted
        proxy.
        """
        is_forwarded = "x-forwarded-for" in request.headers
        if (
            is_forwarded
            and _is_private(_address(request))
            and time.monotonic() >= self._quiet_until
        ):
            self._quiet_until = time.monotonic() + WARN_SECONDS
            log.warning("proxy_not_trusted", address=_address(request))


def list_people(caller: Principal, user_id: str | None, param: str) -> tuple[str, ...]:
    """Return the digest of the person who asks, from their token or else from `user_id`, or nothing
    if unknown.

    Raises `InvalidRequestError` if the two differ, or if callers could state an arbitrary
    `user_id`.
    """
    stated = caller.person_id
    if user_id is not None and caller.public:
        raise InvalidRequestError(
            f"{param} requires a secret key; with a public key, a signed token in the header "
            "X-Person-Token identifies the person",
            code="secret_key_required",
            param=param,
        )
    if user_id is not None and stated not in ("", user_id):
        raise InvalidRequestError(
            f"{param} and the header X-Person-Token identify different persons",
            code="conflicting_persons",
            param=param,
        )
    person = name_person(caller, user_id)
    if not person:
        return ()
    if caller.digests is None:
        raise LookupError("the pseudonyms of this caller's users are not available")
    return (caller.digests.of(caller.tenant, person, caller.person_issuer),)


def name_person(caller: Principal, user_id: str | None) -> str:
    """Return the id of the person who asks, as stated by their token or the caller, or empty if
    unknown.
    """
    return caller.person_id or user_id or ""


def choose_language(request: Request, named: str | None = None) -> str:
    """Return the `named` language for texts or, if there is none, the first one that the browser
    accepts.
    """
    if named is None:
        named = request.headers.get("accept-language", "").split(",")[0].split(";")[0].strip()
    return read_tag(named) or "en"


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise UnauthorizedError(f"{NO_KEY}; {MAKE_ONE}", code=BAD_KEY)
    return token.strip()


def _local(request: Request, tenant: str) -> Principal:
    """Admit callers on this machine, but not websites that somebody visits on it."""
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    foreign = origin is not None and origin != f"{request.url.scheme}://{host}"
    forwarded = any(name in request.headers for name in FORWARDED)
    if LOCAL_HOST.fullmatch(host) is None or foreign or forwarded:
        raise ForbiddenError(
            f"without keys, only requests from the server's own machine are answered; {MAKE_ONE}",
            code="not_local",
        )
    return Principal(
        tenant,
        frozenset(Scope),
        address=_address(request),
        server_address=_server_address(request),
    )


def _holder(request: Request, key: Key, visitor: Visitor) -> Principal:
    return Principal(
        key.tenant,
        key.scopes,
        key.assistants,
        key,
        _address(request),
        _server_address(request),
        visitor,
    )


def _unknown_key() -> UnauthorizedError:
    return UnauthorizedError(
        "this key is unknown or no longer valid; see: refdesk keys list", code=BAD_KEY
    )


def _refuse(shortage: Shortage | None) -> None:
    """Raise `LimitedError` after too many invalid credentials."""
    if shortage is not None:
        seconds = math.ceil(shortage.seconds)
        raise LimitedError(
            f"too many invalid keys or tokens from your address: try again in {seconds} seconds",
            code="too_many_failures",
            retry_after_seconds=shortage.seconds,
        )


def _let_page_read(request: Request) -> None:
    """Allow any page to read the reason for a rejection, which contains no secret."""
    origin = request.headers.get("origin", "")
    if origin and len(origin) <= LONGEST_ORIGIN and origin.isascii():
        request.state.allowed_origin = origin


def _is_private(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_private
    except ValueError:
        return False


def _server_address(request: Request) -> str:
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}" if NAMED_HOST.fullmatch(host) else ""


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _name(host: str) -> str:
    """Return a host's name without its port, in lower case."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()
