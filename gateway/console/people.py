"""The page of people and keys: usage by person, the keys, and the erasure of a person."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Protocol

import structlog
from fastapi import APIRouter, Query, Request, Response

from gateway.api_keys import Key
from gateway.console.access import ConsoleRefusedError, ConsoleRole, read_form, require, user_of
from gateway.console.pages import PATH, show_page
from gateway.people import PersonalData
from records.store import PAGE

log = structlog.get_logger("gateway")

_LONGEST_PERSON = 128
Person = Annotated[str, Query(min_length=1, max_length=_LONGEST_PERSON)]


class KeyReader(Protocol):
    """Reads the keys of the HTTP API."""

    async def all(self) -> Sequence[Key]: ...

    async def uses(self) -> Mapping[str, float]: ...


class PeoplePages:
    """The routes, for owners of every assistant.

    Keys are only shown: no process that the network reaches may create one.
    """

    def __init__(self, people: PersonalData, keys: KeyReader) -> None:
        self._people = people
        self._keys = keys

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        router.add_api_route(f"{PATH}/people", self.show, methods=["GET"])
        router.add_api_route(f"{PATH}/people/forget", self.ask, methods=["GET"])
        router.add_api_route(f"{PATH}/people/forget", self.forget, methods=["POST"])

    @require(ConsoleRole.OWNER, everywhere=True)
    async def show(
        self, request: Request, page: Annotated[int, Query(ge=1, le=10_000)] = 1
    ) -> Response:
        """Show people and keys."""
        tenants = {tenant for tenant, _ in user_of(request).list_assistants()}
        found = [key for key in await self._keys.all() if key.tenant in tenants]
        people = await self._people.list_figures(
            user_of(request).list_assistants(), offset=(page - 1) * PAGE, limit=PAGE + 1
        )
        return show_page(
            request,
            "people.html",
            user=user_of(request),
            keys=found,
            uses=await self._keys.uses(),
            now=time.time(),
            keeps_records=self._people.store is not None,
            people=people[:PAGE],
            has_more=len(people) > PAGE,
            page=page,
        )

    @require(ConsoleRole.OWNER, everywhere=True)
    async def ask(self, request: Request, person: Person) -> Response:
        """Ask for confirmation before a person is erased, and list what will be erased."""
        assistants = user_of(request).list_assistants()
        found = await self._people.list_figures(assistants, person=person, limit=1)
        if not found:
            raise _unknown_person()
        return show_page(request, "forget.html", user=user_of(request), figures=found[0])

    @require(ConsoleRole.OWNER, everywhere=True)
    async def forget(self, request: Request) -> Response:
        """Erase what a person chose, and their conversations."""
        person = (await read_form(request)).get("person", "")
        assistants = user_of(request).list_assistants()
        if not person or not await self._people.list_figures(assistants, person=person, limit=1):
            raise _unknown_person()
        done = await self._people.forget(assistants, person)
        log.warning("person_forgotten", conversations=done.conversations)
        return show_page(
            request,
            "forgotten.html",
            user=user_of(request),
            count=done.conversations,
            person=person,
            has_more=done.has_more,
        )


def _unknown_person() -> ConsoleRefusedError:
    return ConsoleRefusedError(
        404,
        "No such person",
        "There is no record of this person: it has expired, was erased, or never existed.",
    )
