"""The routes of the console, and its pages of recorded questions."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Annotated, Any, Protocol

import structlog
from fastapi import APIRouter, Query, Request, Response

from envelope.question import Question
from gateway.console.access import (
    ConsoleRefusedError,
    ConsoleRole,
    ConsoleUser,
    Gate,
    admit_visitors,
    make_route_class,
    require,
    user_of,
)
from gateway.console.again import find_repeated
from gateway.console.attention import Concern, FindConcerns, find_in_figures
from gateway.console.charts import draw_days, draw_lanes, list_lanes
from gateway.console.figures import OUTCOMES, compute_figures
from gateway.console.frame import Frame, add_pages
from gateway.console.oidc import OidcProvider
from gateway.console.pages import HEADERS, PATH, render_answer
from gateway.console.sign_in import SignIn
from records.record import Record
from records.store import PAGE, RecordStore, Selection

log = structlog.get_logger("gateway")

DAY_SECONDS = 86_400
PERIODS = (1, 7, 30, 90)
LONGEST_SEARCH = 200
Text = Annotated[str, Query(max_length=LONGEST_SEARCH)]
Document = Annotated[str, Query(max_length=2_000)]
Days = Annotated[int, Query(ge=1, le=3660)]
Page = Annotated[int, Query(ge=1, le=10_000)]


class ConsolePart(Protocol):
    """Pages of the console; each route declares the role that it requires."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        ...


@dataclass(frozen=True, slots=True)
class Console:
    """The dependencies of the console's routes."""

    gate: Gate
    frame: Frame
    provider: OidcProvider | None = None
    parts: Sequence[ConsolePart] = ()
    concerns: Sequence[FindConcerns] = ()
    unavailable: tuple[type[Exception], ...] = ()
    clock: Callable[[], float] = time.time


class _Pages:
    def __init__(self, console: Console) -> None:
        self._console = console

    @admit_visitors
    async def style(self) -> Response:
        """Return the style sheet."""
        text = (files("gateway.console") / "console.css").read_bytes()
        headers = {**HEADERS, "Cache-Control": "max-age=3600"}
        return Response(text, media_type="text/css", headers=headers)

    @require(ConsoleRole.VIEWER)
    async def today(self, request: Request, days: Days = 7) -> Response:
        """Show the figures of a period, and what needs attention."""
        until, user = self._console.clock(), user_of(request)
        selection = Selection(assistants=user.list_assistants(), since=until - days * DAY_SECONDS)
        concerns = [one for find in self._console.concerns for one in await self._look(find, user)]

        def read(store: RecordStore) -> Mapping[str, Any]:
            rows = store.read_figures(selection)
            figures = compute_figures(rows, since=selection.since, until=until)
            down = store.find(replace(selection, rating="down"), limit=5)
            return {"figures": figures, "chart": draw_days(figures.days), "down": down,
                    "concerns": [*find_in_figures(figures, days), *concerns]}  # fmt: skip

        return await self._show(
            request, "today.html", read, days=days, periods=PERIODS, all_outcomes=OUTCOMES
        )

    async def _look(self, find: FindConcerns, user: ConsoleUser) -> Sequence[Concern]:
        """Return concerns. A check that fails is reported as a concern; the others still run."""
        away: tuple[type[Exception], ...] = (ConsoleRefusedError, *self._console.unavailable)
        try:
            return await find(user)
        except away as error:
            log.warning("console_unavailable", error=str(error))
            return [Concern("A part of the installation could not be checked", str(error), "")]

    @require(ConsoleRole.VIEWER)
    async def questions(
        self,
        request: Request,
        days: Days = 30,
        page: Page = 1,
        text: Text = "",
        outcome: Text = "",
        reason: Text = "",
        channel: Text = "",
        way: Text = "",
        rating: Text = "",
        document: Document = "",
    ) -> Response:
        """Show the questions that match a search and filters."""
        chosen = {
            "text": text, "outcome": outcome, "reason": reason, "channel": channel, "way": way,
            "rating": rating, "document": document,
        }  # fmt: skip
        selection = Selection(
            assistants=user_of(request).list_assistants(),
            since=self._console.clock() - days * DAY_SECONDS,
            outcome=outcome,
            reason=reason,
            channel=channel,
            way=way,
            rating=rating,
            text=text,
            document=document,
        )

        def read(store: RecordStore) -> Mapping[str, Any]:
            found = store.find(selection, offset=(page - 1) * PAGE, limit=PAGE + 1)
            return {"records": found[:PAGE], "has_more": len(found) > PAGE}

        return await self._show(
            request,
            "questions.html",
            read,
            days=days,
            page=page,
            chosen=chosen,
            periods=PERIODS,
            outcomes=("answered", "clarification", "refused", "failed", "superseded"),
        )

    @require(ConsoleRole.VIEWER)
    async def question(
        self,
        request: Request,
        tenant: Text,
        assistant: Text,
        conversation: Text,
        message: Text,
    ) -> Response:
        """Show a question: answer, sources, trace, and the rest of its conversation."""

        def read(store: RecordStore) -> Mapping[str, Any] | None:
            try:
                asked = Question(
                    tenant=tenant,
                    assistant=assistant,
                    conversation_id=conversation,
                    message_id=message,
                )
            except ValueError:
                return None
            record = store.get(asked)
            if record is None:
                return None
            lanes = list_lanes(record.steps)
            return {
                "record": record,
                "answer": render_answer(record.answer),
                "lanes": lanes,
                "trace": draw_lanes(lanes, record.seconds),
                "others": _list_conversation(store, record),
                "repeated": find_repeated(store, record),
            }

        return await self._show(request, "question.html", read)

    async def _show(
        self,
        request: Request,
        template: str,
        read: Callable[[RecordStore], Mapping[str, Any] | None],
        **values: Any,
    ) -> Response:
        """Return a page with the values that `read` returns from the records."""
        frame = self._console.frame
        return await frame.show(request, template, lambda _: frame.query(read), **values)


def console_router(console: Console) -> APIRouter:
    """Return the routes of the console."""
    sign_in, pages = SignIn(console.gate, console.provider), _Pages(console)
    routes = make_route_class(console.gate, sign_in.refuse, console.unavailable)
    router = APIRouter(include_in_schema=False, route_class=routes)
    sign_in.add_to(router)
    for part in console.parts:
        part.add_to(router)
    router.add_api_route(PATH, pages.today, methods=["GET"])
    add_pages(router, "GET", {
        "console.css": pages.style, "questions": pages.questions, "question": pages.question,
    })  # fmt: skip
    return router


def _list_conversation(store: RecordStore, record: Record) -> Sequence[Record]:
    found = store.find_conversation(record.id, limit=PAGE)
    return [one for one in found if one.message_id != record.message_id]
