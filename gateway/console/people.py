"""The page of people and keys: usage by person, their erasure, and the keys of the HTTP API."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, Protocol

import structlog
from fastapi import Query, Request, Response
from pydantic import ValidationError

from gateway.api_keys import DEFAULT_SCOPES, PUBLIC_PER_MINUTE, Key, Scope, make_key, origin_in
from gateway.console.access import (
    ConsoleRefusedError,
    ConsoleRole,
    ConsoleUser,
    read_form,
    require,
    user_of,
)
from gateway.console.frame import ConsolePart, Frame, SentForm, lead, receive
from gateway.console.pages import find_back, show_notice
from gateway.people import PersonalData
from records.store import PAGE

log = structlog.get_logger("gateway")

DAY_SECONDS = 86_400
RECENT_SECONDS = 900
"""How many seconds after a sign-in an owner can create a key."""
EXPIRIES = {"30": "in 30 days", "90": "in 90 days", "365": "in a year", "": "never"}
SCOPES = {
    Scope.DOCUMENTS: "list and remove documents",
    Scope.WRITE: "write documents and sources",
}
"""Permissions that a program's key can have in addition to asking. `metrics` shows the whole
installation, so only `refdesk keys create` grants it."""
_LONGEST_PERSON = 128
Person = Annotated[str, Query(min_length=1, max_length=_LONGEST_PERSON)]


class KeyKeeper(Protocol):
    """Stores the keys of the HTTP API."""

    async def get(self, key_id: str) -> Key | None: ...

    async def all(self) -> Sequence[Key]: ...

    async def put(self, key: Key) -> None: ...

    async def uses(self) -> Mapping[str, float]: ...


class PeoplePages(ConsolePart):
    """The routes for owners of every assistant.

    A key is created after a recent sign-in, for assistants visible to the owner, and only with
    permissions that the owner has. Its token is shown only in that response.
    """

    def __init__(
        self,
        frame: Frame,
        people: PersonalData,
        keys: KeyKeeper,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._frame = frame
        self._people = people
        self._keys = keys
        self._clock = clock

    @require(ConsoleRole.OWNER, get="people", everywhere=True)
    async def show(
        self, request: Request, page: Annotated[int, Query(ge=1, le=10_000)] = 1
    ) -> Response:
        """Show people and keys."""
        user = user_of(request)
        own = user.list_assistants()
        people = await self._people.list_figures(own, offset=(page - 1) * PAGE, limit=PAGE + 1)
        tenants = {tenant for tenant, _ in own}
        return self._frame.show(
            request,
            "people.html",
            keys=[key for key in await self._keys.all() if key.tenant in tenants],
            uses=await self._keys.uses(),
            assistants=own,
            may_create=self._is_recent(user),
            people=people[:PAGE],
            has_more=len(people) > PAGE,
            now=self._clock(),
            keeps_records=self._people.store is not None,
            page=page,
            expiries=EXPIRIES,
            scopes=SCOPES,
        )

    def _is_recent(self, user: ConsoleUser) -> bool:
        return self._clock() - user.identity.signed_in_at < RECENT_SECONDS

    @require(ConsoleRole.OWNER, post="keys/create", everywhere=True)
    async def create_key(self, request: Request) -> Response:
        """Create a key; its token is shown only in this response."""
        user, form = user_of(request), await receive(request, ConsoleRole.OWNER)
        if not self._is_recent(user):
            raise ConsoleRefusedError(
                403,
                "Sign in again",
                "A key can be created within 15 minutes after a sign-in. Sign in again, or open "
                "the console with a new link from: refdesk console",
            )
        key, token = self._make_key(form, user)
        await self._keys.put(key)
        log.warning("key_created", key=key.id, kind=key.kind, person=user.identity.shown)
        return self._frame.show(request, "key.html", key=key, token=token)

    def _make_key(self, form: SentForm, user: ConsoleUser) -> tuple[Key, str]:
        days, chosen = form.read("days"), form.read("kind")
        if days not in EXPIRIES or chosen not in ("public", "secret"):
            raise ConsoleRefusedError(
                400, "Not created", "Choose in the form who uses the key and when it expires."
            )
        kind: Literal["public", "secret"] = "public" if chosen == "public" else "secret"
        tenant = form.assistant[0]
        own = [name for of, name in user.list_assistants(ConsoleRole.OWNER) if of == tenant]
        wanted = [name for name in own if form.read(f"assistant-{name}")] or own
        scopes = {scope for scope in SCOPES if form.read(f"scope-{scope}")}
        try:
            return make_key(
                kind,
                tenant=tenant,
                assistants=tuple(wanted),
                scopes=DEFAULT_SCOPES | (scopes if kind == "secret" else set()),
                origins=_read_origins(form.read("origins", most=2_000)) if kind == "public" else (),
                note=form.read("note"),
                created_by=user.identity.shown,
                requests_per_minute=PUBLIC_PER_MINUTE if kind == "public" else None,
                expires_at=self._clock() + float(days) * DAY_SECONDS if days else None,
            )
        except ValidationError as error:
            problem = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise ConsoleRefusedError(400, "Not created", f"{problem.capitalize()}.") from error

    @require(ConsoleRole.OWNER, post="keys/revoke", everywhere=True)
    async def revoke_key(self, request: Request) -> Response:
        """Revoke a key immediately."""
        user, form = user_of(request), await receive(request, ConsoleRole.OWNER)
        key = await self._keys.get(form.read("id"))
        if key is None or key.tenant not in {tenant for tenant, _ in user.list_assistants()}:
            raise ConsoleRefusedError(
                404, "This key does not exist", "The key was deleted, or the link is wrong."
            )
        if key.revoked_at is None:
            await self._keys.put(key.model_copy(update={"revoked_at": self._clock()}))
            log.warning("key_revoked", key=key.id, person=user.identity.shown)
        return lead("people", said="revoked")

    @require(ConsoleRole.OWNER, get="people/forget", everywhere=True)
    async def ask(self, request: Request, person: Person) -> Response:
        """Ask for confirmation before a person is erased, and list the data that will be erased."""
        assistants = user_of(request).list_assistants()
        person_figures = await self._people.list_figures(assistants, person=person, limit=1)
        if not person_figures:
            raise _unknown_person()
        return self._frame.show(request, "forget.html", figures=person_figures[0])

    @require(ConsoleRole.OWNER, post="people/forget", everywhere=True)
    async def forget(self, request: Request) -> Response:
        """Erase the preferences and conversations of a person."""
        person = (await read_form(request)).get("person", "")
        assistants = user_of(request).list_assistants()
        if not person or not await self._people.list_figures(assistants, person=person, limit=1):
            raise _unknown_person()
        done = await self._people.forget(assistants, person)
        log.warning("person_forgotten", conversations=done.conversations)
        count = f"{done.conversations} conversation{'' if done.conversations == 1 else 's'} erased"
        text = "The records no longer contain data of this person."
        if done.has_more:
            text = (
                "This person has further conversations. Open the list of people, and forget "
                "this person again."
            )
        return show_notice(
            request, count, text, user=user_of(request), back=find_back(request, "people")
        )


def _read_origins(text: str) -> tuple[str, ...]:
    """Return the websites in a form field, separated by whitespace or commas; raises
    `ConsoleRefusedError`.
    """
    origins = []
    for address in text.replace(",", " ").split():
        origin = origin_in(address)
        if origin is None:
            raise ConsoleRefusedError(
                400,
                "Not created",
                f"Expected a website such as https://www.acme.com, found {address!r}.",
            )
        origins.append(origin)
    return tuple(dict.fromkeys(origins))


def _unknown_person() -> ConsoleRefusedError:
    return ConsoleRefusedError(
        404,
        "This person does not exist",
        "There is no record of this person. It has expired, was erased, or never existed.",
    )
