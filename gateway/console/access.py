"""Access control of the console: the signed-in users and their permissions.

Each route of the console declares who may use it, with `require` or `admit_visitors`. A route
without a declaration cannot be added. Access is checked before the body of a request is read.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl

import structlog
from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from gateway.errors import GatewayError
from records.store import RecordRefusedError, RecordsUnavailableError

log = structlog.get_logger("gateway")

COOKIE = "refdesk_console"
FORGERY_FIELD = "csrf"
FORGERY_HEADER = "x-csrf-token"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 200

Assistant = tuple[str, str]
"""A tenant and the name of one of its assistants."""


class SignedInIdentity(BaseModel, frozen=True):
    """A signed-in person, as stored in a session.

    `subject` is unique. `names` are the names to which settings can assign a role: the verified
    e-mail address, `group:NAME`, `subject:ID`. `is_operator` is true for a person who signed in
    with a one-time link created on this machine. `signed_in_at` (Unix seconds) is the time of the
    last authentication.
    """

    subject: str
    shown: str
    names: tuple[str, ...] = ()
    is_operator: bool = False
    signed_in_at: float = 0.0


OPERATOR = SignedInIdentity(subject="operator", shown="operator of this machine", is_operator=True)
Handler = TypeVar("Handler", bound=Callable[..., Any])


class ConsoleRole(IntEnum):
    """The permissions of a person for an assistant; each role includes the preceding ones."""

    VIEWER = 1
    """View questions, answers and figures."""
    EDITOR = 2
    """Change what determines answers: documents, gaps, verified answers."""
    OWNER = 3
    """Full access: people, keys, dead letters, settings, erasure."""


class ConsoleSessions(Protocol):
    """Stores the sessions of the console, and the codes of one-time links."""

    async def redeem(self, code: str) -> bool:
        """Return whether the code of a one-time link is valid; a code is valid only once."""
        ...

    async def open(self, subject: str, person: str) -> str:
        """Create a session for a person, whose `subject` is unique, and return its token."""
        ...

    async def read(self, token: str) -> str | None:
        """Return the person of an open session, and record that the session was used."""
        ...

    async def end(self, token: str) -> None:
        """End a session; ending it twice is not an error."""
        ...

    async def end_all(self, subject: str) -> None:
        """End every session of a person."""
        ...


class ConsoleRefusedError(GatewayError):
    """The console rejects a request."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(title)
        self.status, self.title, self.text = status, title, text


class NotSavedError(ConsoleRefusedError):
    """The content of a form cannot be stored; the message states what to change."""

    def __init__(self, text: str) -> None:
        super().__init__(400, "Not saved", text)


@dataclass(frozen=True, slots=True)
class ConsoleUser:
    """A user of the console with a role for each visible assistant.

    `forgery_token` is the CSRF token of the session, which each form contains in the field `csrf`.
    Owners of all assistants also see the pages about the whole desk.
    """

    identity: SignedInIdentity
    roles: Mapping[Assistant, ConsoleRole]
    forgery_token: str
    owns_all: bool = False

    def list_assistants(self, role: ConsoleRole = ConsoleRole.VIEWER) -> tuple[Assistant, ...]:
        """Return the assistants for which the person has at least this role."""
        return tuple(assistant for assistant, own in self.roles.items() if own >= role)

    def may(self, role: ConsoleRole, assistant: Assistant | None = None) -> bool:
        """Return whether the person has at least this role for the assistant or, if it is None, for
        any assistant.
        """
        if assistant is None:
            return bool(self.list_assistants(role))
        return self.roles.get(assistant, 0) >= role

    def choose(self, tenant: str, assistant: str) -> Assistant:
        """Return the named assistant or, if none is named, the first one that the person may
        edit.
        """
        return (tenant, assistant) if assistant else self.list_assistants(ConsoleRole.EDITOR)[0]

    def require(self, role: ConsoleRole, assistant: Assistant) -> None:
        """Raise `ConsoleRefusedError` if the person lacks the role; assistants that the person
        cannot see are treated as nonexistent.
        """
        if assistant not in self.roles:
            raise ConsoleRefusedError(
                404, "Not found", "This page does not exist, or it was deleted."
            )
        if not self.may(role, assistant):
            raise _missing_role(role)


@dataclass(frozen=True, slots=True)
class RoleDemand:
    """The role that a route requires, with its method and its path below the console.

    Without a `role`, everybody can use the route.
    """

    role: ConsoleRole | None
    everywhere: bool = False
    method: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """Checks sessions, roles and the origin of changes.

    `roles` maps each served assistant to the roles of identity names. `origin` is that of the
    public URL of the server, if it has one.
    """

    sessions: ConsoleSessions
    assistants: Sequence[Assistant]
    roles: Mapping[Assistant, Mapping[str, ConsoleRole]] = field(default_factory=dict)
    origin: str = ""

    def is_own_origin(self, request: Request) -> bool:
        """Return whether a request was sent by a page of this console."""
        host = request.headers.get("host", "")
        own = {f"http://{host}", f"https://{host}", self.origin or None}
        return bool(host) and request.headers.get("origin") in own - {None}

    def is_secure(self, request: Request) -> bool:
        """Return whether browsers reach the console over TLS."""
        return request.url.scheme == "https" or self.origin.startswith("https://")

    async def sign_in(
        self, request: Request, response: Response, identity: SignedInIdentity
    ) -> None:
        """Open a new session, and end the previous one of the browser."""
        await self.sessions.end(request.cookies.get(COOKIE, ""))
        token = await self.sessions.open(identity.subject, identity.model_dump_json())
        response.set_cookie(
            COOKIE,
            token,
            path="/console",
            httponly=True,
            samesite="strict",
            secure=self.is_secure(request),
        )

    async def find_user(self, request: Request) -> ConsoleUser | None:
        """Return the user of the session of a request; None without an open session."""
        token = request.cookies.get(COOKIE, "")
        kept = await self.sessions.read(token) if token else None
        if kept is None:
            return None
        identity = SignedInIdentity.model_validate_json(kept)
        forgery_token = hmac.new(token.encode(), b"console form", hashlib.sha256).hexdigest()
        roles = self.roles_of(identity)
        owns_all = all(roles.get(assistant) == ConsoleRole.OWNER for assistant in self.assistants)
        return ConsoleUser(identity, roles, forgery_token, owns_all)

    async def has_session(self, request: Request) -> bool:
        """Return whether a request belongs to an open session, before its body is read."""
        return await self.find_user(request) is not None

    def roles_of(self, identity: SignedInIdentity) -> dict[Assistant, ConsoleRole]:
        """Return the roles of a person according to the current settings."""
        if identity.is_operator:
            return dict.fromkeys(self.assistants, ConsoleRole.OWNER)
        roles = {}
        for assistant in self.assistants:
            given = self.roles.get(assistant, {})
            own = [given[name] for name in identity.names if name in given]
            if own:
                roles[assistant] = max(own)
        return roles

    async def admit(self, request: Request, demand: RoleDemand) -> None:
        """Check the access of a request and record its user; raises `ConsoleRefusedError`."""
        if demand.role is None:
            return
        user = await self.find_user(request)
        if user is None:
            raise ConsoleRefusedError(401, "Sign in", "")
        self._check_role(user, demand, _find_assistant(request.query_params.multi_items()))
        if request.method not in _SAFE:
            self._check_origin(request)
            form = await read_form(request)
            _check_forgery_token(request, user, form)
            self._check_role(user, demand, _find_assistant(form.items()))
        request.state.console_user = user

    def _check_role(self, user: ConsoleUser, demand: RoleDemand, named: Assistant | None) -> None:
        if demand.role is None:
            return
        if named is not None:
            user.require(demand.role, named)
        wanted = self.assistants if demand.everywhere else (None,)
        if not all(user.may(demand.role, assistant) for assistant in wanted):
            raise _missing_role(demand.role, everywhere=demand.everywhere)

    def _check_origin(self, request: Request) -> None:
        """Reject a change that is requested by a page of another website."""
        if not self.is_own_origin(request):
            raise ConsoleRefusedError(
                403, "Not changed", "The request did not come from a page of this console."
            )


def require(
    role: ConsoleRole, *, get: str = "", post: str = "", everywhere: bool = False
) -> Callable[[Handler], Handler]:
    """Require a role for a console route with the path `get` or `post`.

    A request that names `tenant` and `assistant`, in its query or form, requires the role for this
    assistant. Any other request requires it for at least one assistant or, if `everywhere` is true,
    for all assistants, and the handler must restrict what it shows to
    `user_of(request).list_assistants(role)`. Requests that change something also require the CSRF
    token of their session.
    """
    return _state(RoleDemand(role, everywhere, "POST" if post else "GET", get or post))


def admit_visitors(handler: Handler) -> Handler:
    """Allow everybody to use a console route, such as the sign-in."""
    return _state(RoleDemand(None))(handler)


def demand_of(handler: Callable[..., Any]) -> RoleDemand:
    """Return the access rule of a handler; raises `TypeError` if it declares none."""
    demand = getattr(handler, "console_demand", None)
    if not isinstance(demand, RoleDemand):
        raise TypeError(f"expected `require` or `admit_visitors` on {handler!r}")
    return demand


def user_of(request: Request) -> ConsoleUser:
    """Return the user of a request to a route that requires a role."""
    user = request.state.console_user
    if not isinstance(user, ConsoleUser):
        raise TypeError("expected a route that demands a role")
    return user


def fields_of(assistant: Assistant) -> dict[str, str]:
    """Return the fields that identify an assistant in URLs and forms."""
    return {"tenant": assistant[0], "assistant": assistant[1]}


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; raises `ConsoleRefusedError` if a field is repeated."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return {}
    body = (await request.body()).decode(errors="replace")
    try:
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise _unclear_request() from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _unclear_request()
    return fields


def make_route_class(
    gate: Gate,
    refuse: Callable[[Request, ConsoleRefusedError], Awaitable[Response]],
    unavailable: tuple[type[Exception], ...],
) -> type[APIRoute]:
    """Return the class of the routes of a console; `refuse` returns the page for a rejected
    request.
    """

    class ConsoleRoute(APIRoute):
        def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
            demand_of(endpoint)
            super().__init__(path, endpoint, **options)

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle: Callable[[Request], Awaitable[Response]] = super().get_route_handler()
            demand = demand_of(self.endpoint)

            async def admit_and_handle(request: Request) -> Response:
                try:
                    await gate.admit(request, demand)
                    return await handle(request)
                except ConsoleRefusedError as refusal:
                    return await refuse(request, refusal)
                except RecordRefusedError:
                    # PostgreSQL keeps no text with a NUL character.
                    text = "The request contains a character that the database does not accept."
                    return await refuse(
                        request, ConsoleRefusedError(400, "Invalid character", text)
                    )
                except RecordsUnavailableError as error:
                    title = "The database of the records does not respond"
                    text = (
                        "Questions are answered as usual, and recorded when the database is "
                        "available again."
                    )
                    return await refuse(request, _note_outage(error, title, f"{text} ({error})"))
                except unavailable as error:
                    title = "The store of questions or documents does not respond"
                    return await refuse(
                        request, _note_outage(error, title, "Try again in a moment.")
                    )

            return admit_and_handle

    return ConsoleRoute


def _state(demand: RoleDemand) -> Callable[[Handler], Handler]:
    def mark(handler: Handler) -> Handler:
        handler.console_demand = demand  # type: ignore[attr-defined] # read by the route
        return handler

    return mark


def _check_forgery_token(request: Request, user: ConsoleUser, form: Mapping[str, str]) -> None:
    # A form that uploads a file is not read here: its address has the token.
    given = (
        request.headers.get(FORGERY_HEADER)
        or form.get(FORGERY_FIELD)
        or request.query_params.get(FORGERY_FIELD, "")
    )
    if not hmac.compare_digest(given.encode(), user.forgery_token.encode()):
        raise ConsoleRefusedError(
            403,
            "Not changed",
            "Nothing was changed, because the session of this form has ended. Open the page again "
            "and repeat the change.",
        )


def _find_assistant(fields: "Sequence[tuple[str, str]] | Any") -> Assistant | None:
    """Return the assistant that a request names, or None if it names none.

    Raises `ConsoleRefusedError` if the request names several.
    """
    named = [(name, value) for name, value in fields if name in ("tenant", "assistant")]
    assistant = dict(named)
    if len(assistant) != len(named):
        raise _unclear_request()
    if not assistant:
        return None
    return assistant.get("tenant", ""), assistant.get("assistant", "")


def _note_outage(error: Exception, title: str, text: str) -> ConsoleRefusedError:
    log.warning("console_unavailable", error=str(error))
    return ConsoleRefusedError(503, title, text)


def _missing_role(role: ConsoleRole, *, everywhere: bool = False) -> ConsoleRefusedError:
    whose = "every assistant" if everywhere else "this assistant"
    return ConsoleRefusedError(
        403,
        "Not permitted",
        f"This requires the role {role.name.lower()} for {whose}. An owner of this desk can "
        "give it "
        "to you with the setting CONSOLE_ROLES.",
    )


def _unclear_request() -> ConsoleRefusedError:
    return ConsoleRefusedError(400, "Not understood", "The request contains a field twice.")
