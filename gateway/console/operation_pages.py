"""The pages on which an owner operates the desk: documents, dead letters, settings, cost."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Protocol
from urllib.parse import urlencode

import structlog
from fastapi import Query, Request, Response
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from broker.ports import Admin
from broker.values import DeadLetter
from envelope.question import parse_groups
from gateway.console.access import (
    Assistant,
    ConsoleRefusedError,
    ConsoleRole,
    ConsoleUser,
    NotSavedError,
    fields_of,
    require,
    user_of,
)
from gateway.console.attention import Concern, ListJobReports
from gateway.console.charts import draw_amounts
from gateway.console.figures import compute_figures, day_of, sum_by_day
from gateway.console.frame import ConsolePart, Frame, lead, receive
from gateway.port import CatalogSelection, DocumentCatalog
from gateway.sources import SourceState
from records.store import Selection

log = structlog.get_logger("gateway")

DAY_SECONDS = 86_400
MONTH_DAYS = 30
SOURCE = "source"
"""The form value that leaves the choice of groups to the source of a document."""
MOST_DOCUMENTS = 100
MOST_LETTERS = 200
PERIODS = (7, 30, 90)
MOST_FIELDS = 20
"""Maximum number of form fields in an upload besides the file."""
Text = Annotated[str, Query(max_length=500)]
Days = Annotated[int, Query(ge=1, le=3660)]
RetryLetter = Callable[[DeadLetter], Awaitable[str]]
"""Asks the question of a dead letter again; returns the new message, raises `ValueError`."""


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A current setting; `origin` states where it is defined. `value` contains no secrets."""

    name: str
    value: str
    origin: str
    description: str


@dataclass(frozen=True, slots=True)
class Budgets:
    """The limits on model costs in US dollars; 0: no limit."""

    question_usd: float
    tenant_usd_per_day: float


class Operations(Protocol):
    """The owner's operations on the sources of this machine, and the current settings."""

    def list_sources(self, assistant: Assistant) -> Sequence[SourceState]:
        """Return the sources of an assistant, by location."""
        ...

    async def upload(self, assistant: Assistant, name: str, data: bytes) -> None:
        """Store a file as a separate source and start reading it; raises `ValueError`."""
        ...

    def list_settings(self) -> Sequence[ShownSetting]:
        """Return the current settings, by name."""
        ...


class OwnerCatalog(DocumentCatalog, Protocol):
    """A catalog in which the groups that can read a document can be changed."""

    async def choose_groups(
        self, tenant: str, assistant: str, document_id: str, groups: Sequence[str] | None
    ) -> bool:
        """Set the groups that can read a document immediately; empty: everybody; None: as stated by
        its source, from the next ingestion on. Return whether the document exists.
        """
        ...


class OperationPages(ConsolePart):
    """Shows and changes the state of the desk; every change requires an owner."""

    def __init__(
        self,
        frame: Frame,
        operations: Operations,
        catalog: OwnerCatalog,
        admin: Admin,
        retry: RetryLetter,
        budgets: Budgets,
        clock: Callable[[], float],
        list_jobs: ListJobReports | None = None,
    ) -> None:
        self._frame = frame
        self._operations = operations
        self._catalog = catalog
        self._admin = admin
        self._retry = retry
        self._budgets = budgets
        self._clock = clock
        self._list_jobs = list_jobs

    @require(ConsoleRole.EDITOR, get="documents")
    async def documents(
        self, request: Request, assistant: Text = "", tenant: Text = "", find: Text = "",
        after: Text = "",
    ) -> Response:  # fmt: skip
        """Show the documents of an assistant."""
        user = user_of(request)
        name = user.choose(tenant, assistant)
        selection = CatalogSelection(text=find)
        documents, total = await self._catalog.find(
            *name, selection, after=after, limit=MOST_DOCUMENTS
        )
        return self._frame.show(
            request,
            "documents.html",
            named=fields_of(name),
            assistants=user.list_assistants(ConsoleRole.EDITOR),
            cited=await self._count_cited(name),
            documents=documents,
            total=total,
            may_own=user.may(ConsoleRole.OWNER, name),
            find=find,
            most=MOST_DOCUMENTS,
        )

    async def _count_cited(self, name: Assistant) -> Mapping[str, int] | None:
        """Return how many answers cited each document in the last month; None without records."""
        if self._frame.store is None:
            return None
        selection = Selection(
            assistants=(name,), since=self._clock() - MONTH_DAYS * DAY_SECONDS, outcome="answered"
        )
        return await self._frame.query(lambda store: store.count_cited(selection))

    @require(ConsoleRole.OWNER, post="documents/upload")
    async def upload(self, request: Request, tenant: Text, assistant: Text) -> Response:
        """Store the file in a form, and ingest it."""
        try:
            name, data = await read_file(request)
            await self._operations.upload((tenant, assistant), name, data)
        except ValueError as error:
            raise ConsoleRefusedError(400, "Not stored", str(error)) from error
        return lead("documents", (tenant, assistant), said="reading")

    @require(ConsoleRole.OWNER, post="documents/remove")
    async def remove_document(self, request: Request) -> Response:
        """Remove a document from the index; its file is kept."""
        form = await receive(request, ConsoleRole.OWNER)
        selection = CatalogSelection(ids=(form.read("id", most=2_000),))
        count = await self._catalog.remove(*form.assistant, selection)
        return lead("documents", form.assistant, said="removed" if count else "missing")

    @require(ConsoleRole.EDITOR, post="documents/groups")
    async def choose_groups(self, request: Request) -> Response:
        """Set who can read a document: groups, everybody, or as stated by its source."""
        form = await receive(request, ConsoleRole.EDITOR)
        document = form.read("id", most=2_000)
        groups: tuple[str, ...] | None = None
        if form.read("by") != SOURCE:
            named = form.read("groups", most=4_000)
            try:
                groups = parse_groups(part for part in named.split(",") if part.strip())
            except ValueError as error:
                raise NotSavedError(str(error)) from error
        is_known = await self._catalog.choose_groups(*form.assistant, document, groups)
        if not is_known:
            return lead("documents", form.assistant, said="missing")
        log.warning(
            "document_access_changed",
            document=document,
            groups=None if groups is None else list(groups),
            person=user_of(request).identity.shown,
        )
        said = "as_stated" if groups is None else "restricted"
        return lead("documents", form.assistant, said=said)

    @require(ConsoleRole.OWNER, get="health")
    async def health(self, request: Request) -> Response:
        """Show the dead letters and, to owners of the whole desk, the background jobs."""
        user = user_of(request)
        jobs = await self._list_jobs() if self._list_jobs and user.owns_all else None
        letters = await self.find_letters(user)
        return self._frame.show(request, "health.html", letters=letters, jobs=jobs)

    async def find_letters(self, user: ConsoleUser) -> list[DeadLetter]:
        """Return the newest dead letters of the assistants that a person owns."""
        own = set(user.list_assistants(ConsoleRole.OWNER))
        letters = await self._admin.list_dead_letters(limit=MOST_LETTERS)
        return [letter for letter in letters if _assistant_of(letter) in own]

    async def find_concerns(self, user: ConsoleUser) -> list[Concern]:
        """Return the sources and messages that failed."""
        concerns = []
        for assistant in user.list_assistants(ConsoleRole.EDITOR):
            for source in self._operations.list_sources(assistant):
                if (source.failed or source.has_fault) and not source.is_running:
                    place = f"sources?{urlencode(fields_of(assistant))}"
                    reason = next(iter(source.reasons), "")
                    count = f"{source.failed} failed. " if source.failed else ""
                    text = f"{source.name}: {count}{reason}"
                    title = "Some documents of a source could not be read"
                    concerns.append(Concern(title, text, place, "See the reason"))
        if letters := await self.find_letters(user):
            text = f"{len(letters)} messages could not be answered; the users received an apology."
            concerns.append(Concern("Messages failed", text, "health", "Send again or drop"))
        return concerns

    @require(ConsoleRole.OWNER, post="dead/retry")
    async def retry_letter(self, request: Request) -> Response:
        """Ask the question of a dead letter again, from the start."""
        letter = await self._read_letter(request)
        try:
            await self._retry(letter)
        except ValueError as error:
            raise ConsoleRefusedError(400, "Not sent again", str(error)) from error
        return lead("health", said="sent")

    @require(ConsoleRole.OWNER, post="dead/drop")
    async def drop_letter(self, request: Request) -> Response:
        """Delete a dead letter."""
        letter = await self._read_letter(request)
        await self._admin.drop_dead_letter(letter.id)
        return lead("health", said="removed")

    async def _read_letter(self, request: Request) -> DeadLetter:
        form = await receive(request, ConsoleRole.OWNER)
        letter = await self._admin.read_dead_letter(form.read("id"))
        if letter is None or _assistant_of(letter) != form.assistant:
            raise ConsoleRefusedError(
                404,
                "This dead letter does not exist",
                "The dead letter was retried or deleted in the meantime.",
            )
        return letter

    @require(ConsoleRole.OWNER, get="settings", everywhere=True)
    async def settings(self, request: Request) -> Response:
        """Show the current settings, without secrets."""
        settings = self._operations.list_settings()
        return self._frame.show(request, "settings.html", settings=settings)

    @require(ConsoleRole.VIEWER, get="cost")
    async def cost(self, request: Request, days: Days = 30) -> Response:
        """Show model costs by day and group, next to the budgets."""
        until, zone, own = self._clock(), self._frame.zone, user_of(request).list_assistants()
        since, earlier = until - days * DAY_SECONDS, until - 2 * days * DAY_SECONDS
        selection = Selection(assistants=own, since=earlier)
        rows = await self._frame.query(lambda store: store.read_figures(selection))
        figures = compute_figures(rows, since=since, until=until, zone=zone)
        by_day = sum_by_day(rows, [day.day for day in figures.days], zone)
        return self._frame.show(
            request,
            "cost.html",
            figures=figures,
            before=compute_figures(rows, since=earlier, until=since, zone=zone),
            chart=draw_amounts(list(by_day.items()), "Cost of models, in US dollars"),
            today=by_day.get(day_of(until, zone), Decimal(0)),
            tenants=len({tenant for tenant, _ in own}),
            days=days,
            periods=PERIODS,
            budgets=self._budgets,
        )


async def read_file(request: Request) -> tuple[str, bytes]:
    """Return the name and bytes of the file in a form; raise `ValueError` if there is none."""
    try:
        async with request.form(max_files=1, max_fields=MOST_FIELDS) as form:
            for value in form.values():
                if isinstance(value, UploadFile) and value.filename:
                    return value.filename, await value.read()
    except HTTPException as error:
        raise ValueError("The form cannot be read. Choose the file again.") from error
    raise ValueError("Choose a file first.")


def _assistant_of(letter: DeadLetter) -> Assistant | None:
    question = letter.question
    return None if question is None else (question.tenant, question.assistant)
