"""The page of people and keys: usage by person, the keys, and the erasure of a person."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Protocol

import structlog
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from broker.values import Erased
from envelope.question import Question
from gateway.api_keys import Key
from gateway.console.access import ConsoleRefusedError, Role, read_form, require, user_of
from gateway.console.pages import PATH, show_page
from records.store import PAGE, RecordStore, Selection

log = structlog.get_logger("gateway")

AT_ONCE = 100
"""Conversations that one request erases; whoever has more is forgotten in several."""
_LONGEST_PERSON = 128

Forget = Callable[[Question], Awaitable[Erased]]
"""Erases the conversation of a question from every store."""
ForgetChoice = Callable[[Question, str], Awaitable[bool]]
"""Deletes what a person chose for an assistant; of the question only that is read."""
Person = Annotated[str, Query(min_length=1, max_length=_LONGEST_PERSON)]


class KeyReader(Protocol):
    """Reads the keys of the HTTP API."""

    async def all(self) -> Sequence[Key]: ...

    async def uses(self) -> Mapping[str, float]: ...


class PeoplePages:
    """The routes, for owners of every assistant.

    Keys are only shown: no process that the network reaches may create one.
    """

    def __init__(
        self,
        store: RecordStore | None,
        keys: KeyReader,
        forget: Forget,
        forget_choice: ForgetChoice,
    ) -> None:
        self._store = store
        self._keys = keys
        self._forget = forget
        self._forget_choice = forget_choice

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        router.add_api_route(f"{PATH}/people", self.show, methods=["GET"])
        router.add_api_route(f"{PATH}/people/forget", self.ask, methods=["GET"])
        router.add_api_route(f"{PATH}/people/forget", self.forget, methods=["POST"])

    @require(Role.OWNER, everywhere=True)
    async def show(
        self, request: Request, page: Annotated[int, Query(ge=1, le=10_000)] = 1
    ) -> Response:
        """Show people and keys."""
        tenants = {tenant for tenant, _ in user_of(request).list_assistants()}
        found = [key for key in await self._keys.all() if key.tenant in tenants]
        people = []
        if self._store is not None:
            offset = (page - 1) * PAGE
            people = list(
                await run_in_threadpool(
                    self._store.list_people, _select(request), offset=offset, limit=PAGE + 1
                )
            )
        return show_page(
            "people.html",
            user=user_of(request),
            keys=found,
            uses=await self._keys.uses(),
            now=time.time(),
            keeps_records=self._store is not None,
            people=people[:PAGE],
            has_more=len(people) > PAGE,
            page=page,
        )

    @require(Role.OWNER, everywhere=True)
    async def ask(self, request: Request, person: Person) -> Response:
        """Ask for confirmation before a person is erased, and list what will be erased."""
        found = await run_in_threadpool(
            self._need_store().list_people, _select(request), person=person, limit=1
        )
        if not found:
            raise _unknown_person()
        return show_page("forget.html", user=user_of(request), figures=found[0])

    @require(Role.OWNER, everywhere=True)
    async def forget(self, request: Request) -> Response:
        """Erase the conversations of a person."""
        person = (await read_form(request)).get("person", "")
        find = self._need_store().find_conversations_of
        found = await run_in_threadpool(find, person, _select(request), limit=AT_ONCE + 1)
        if not person or not found:
            raise _unknown_person()
        for question in found[:AT_ONCE]:
            await self._forget_choice(question, person)
            await self._forget(question)
        count = min(len(found), AT_ONCE)
        log.warning("person_forgotten", conversations=count)
        return show_page(
            "forgotten.html",
            user=user_of(request),
            count=count,
            person=person,
            has_more=len(found) > AT_ONCE,
        )

    def _need_store(self) -> RecordStore:
        if self._store is None:
            raise _unknown_person()
        return self._store


def _select(request: Request) -> Selection:
    return Selection(assistants=user_of(request).list_assistants())


def _unknown_person() -> ConsoleRefusedError:
    return ConsoleRefusedError(
        404,
        "No such person",
        "There is no record of this person: it has expired, was erased, or never existed.",
    )
