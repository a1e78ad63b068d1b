"""The routes of the console, and the pages about recorded questions."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from envelope.conversation import BY_PERSON
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
from gateway.console.attention import Concern, FindConcerns, FindSetup, SetupStep, find_in_figures
from gateway.console.charts import draw_days, draw_lanes, list_lanes
from gateway.console.figures import OUTCOMES, compute_figures
from gateway.console.frame import ConsolePart, Frame, identify_message, lead, receive
from gateway.console.oidc import OidcProvider
from gateway.console.pages import HEADERS, PATH, message_fields_of
from gateway.console.sign_in import SignIn
from gateway.errors import MessageError
from gateway.port import HandOver
from gateway.static_files import read_design
from gateway.text import clean_text
from records.record import PERSON, PERSON_DONE, Record
from records.store import PAGE, RecordStore, Selection

log = structlog.get_logger("gateway")

DAY_SECONDS = 86_400
PERIODS = (1, 7, 30, 90)
LONGEST_SEARCH = 200
MOST_REQUESTS = 20
REQUESTS = (PERSON, PERSON_DONE)
UNSENT = (
    "The server is busy, the conversation was erased or has expired, or the post in the "
    "chat is no longer known. Send the answer again in a moment, or reach the person in "
    "another way."
)
Text = Annotated[str, Query(max_length=LONGEST_SEARCH)]
Days = Annotated[int, Query(ge=1, le=3660)]


class QuestionFilters(BaseModel):
    """The filters in the URL of the question list; empty: no filter."""

    text: str = Field("", max_length=LONGEST_SEARCH)
    outcome: str = Field("", max_length=LONGEST_SEARCH)
    reason: str = Field("", max_length=LONGEST_SEARCH)
    channel: str = Field("", max_length=LONGEST_SEARCH)
    way: str = Field("", max_length=LONGEST_SEARCH)
    rating: str = Field("", max_length=LONGEST_SEARCH)
    document: str = Field("", max_length=2_000)
    days: int = Field(30, ge=1, le=3660)
    page: int = Field(1, ge=1, le=10_000)
    all: bool = False


@dataclass(frozen=True, slots=True)
class Console:
    """The dependencies of the console's routes."""

    gate: Gate
    frame: Frame
    provider: OidcProvider | None = None
    parts: Sequence[ConsolePart] = ()
    concerns: Sequence[FindConcerns] = ()
    find_setup: FindSetup | None = None
    handover: HandOver | None = None
    unavailable: tuple[type[Exception], ...] = ()
    clock: Callable[[], float] = time.time


class _Pages(ConsolePart):
    def __init__(self, console: Console) -> None:
        self._console = console

    @require(ConsoleRole.VIEWER)
    async def today(self, request: Request, days: Days = 7) -> Response:
        """Show the figures of a period next to those of the previous one, and what needs
        attention.
        """
        until, user, zone = self._console.clock(), user_of(request), self._console.frame.zone
        since, earlier = until - days * DAY_SECONDS, until - 2 * days * DAY_SECONDS
        selection = Selection(assistants=user.list_assistants(), since=earlier, asks=True)
        concerns = [
            concern for find in self._console.concerns for concern in await self._look(find, user)
        ]
        steps = await self._find_setup(user)

        def read(store: RecordStore) -> Mapping[str, Any]:
            rows = store.read_figures(selection)
            figures = compute_figures(rows, since=since, until=until, zone=zone)
            down = store.find(replace(selection, since=since, rating="down"), limit=3)
            return {
                "figures": figures,
                "before": compute_figures(rows, since=earlier, until=since, zone=zone),
                "chart": draw_days(figures.days),
                "requests": find_requests(store, replace(selection, since=since, asks=False)),
                "concerns": [*find_in_figures(figures, days, down), *concerns],
            }

        return self._console.frame.show(
            request,
            "today.html",
            **await self._console.frame.query(read),
            days=days,
            periods=PERIODS,
            all_outcomes=OUTCOMES,
            setup=steps,
            next_step=next((step for step in steps if not step.is_done), None),
        )

    async def _find_setup(self, user: ConsoleUser) -> Sequence[SetupStep]:
        """Return the setup steps; none if all are done, or if a store does not respond."""
        if self._console.find_setup is None:
            return ()
        try:
            steps = await self._console.find_setup(user)
        except self._console.unavailable as error:
            log.warning("console_unavailable", error=str(error))
            return ()
        return () if all(step.is_done for step in steps) else steps

    @require(ConsoleRole.EDITOR, post="question/done")
    async def close_request(self, request: Request) -> Response:
        """Mark a hand-over request as done."""
        asked = (await receive(request, ConsoleRole.EDITOR)).read_message()
        await self._console.frame.query(lambda store: store.close_request(asked))
        return lead("", said="saved")

    @require(ConsoleRole.EDITOR, post="question/answer")
    async def answer_request(self, request: Request) -> Response:
        """Send an answer to a visitor who asked for a person, in their conversation."""
        form = await receive(request, ConsoleRole.EDITOR)
        asked, handover = form.read_message(), self._console.handover
        record = await self._console.frame.query(lambda store: store.get(asked))
        written = form.fields.get("text", "")
        try:
            text = clean_text(written)
        except MessageError as error:
            refusal = ConsoleRefusedError(400, "Not sent", f"Nothing was sent: {error}.")
            return await self._show_question(request, asked, written, refusal)
        is_sent = (
            handover is not None
            and record is not None
            and await handover.answer(asked, text, record.language or "en")
        )
        if not is_sent:
            refusal = ConsoleRefusedError(409, "Not sent", UNSENT)
            return await self._show_question(request, asked, written, refusal)
        log.warning(
            "request_answered",
            message_id=asked.message_id,
            person=user_of(request).identity.shown,
        )
        return lead("question", **message_fields_of(asked), said="answered")

    async def _look(self, find: FindConcerns, user: ConsoleUser) -> Sequence[Concern]:
        """Return the concerns that a check finds. If the check fails, return a single concern that
        reports this.
        """
        away: tuple[type[Exception], ...] = (ConsoleRefusedError, *self._console.unavailable)
        try:
            return await find(user)
        except away as error:
            log.warning("console_unavailable", error=str(error))
            return [Concern("Part of the installation could not be checked", str(error), "")]

    @require(ConsoleRole.VIEWER, get="questions")
    async def questions(
        self, request: Request, wanted: Annotated[QuestionFilters, Query()]
    ) -> Response:
        """Show the questions that match a search and filters."""
        days, page = wanted.days, wanted.page
        filters = wanted.model_dump(exclude={"days", "page", "all"})
        selection = Selection(
            assistants=user_of(request).list_assistants(),
            since=self._console.clock() - days * DAY_SECONDS,
            asks=not wanted.all and wanted.reason != PERSON,
            **filters,
        )

        def read(store: RecordStore) -> tuple[Sequence[Record], int]:
            records = store.find(selection, offset=(page - 1) * PAGE, limit=PAGE + 1)
            return records, store.count(selection)

        records, total = await self._console.frame.query(read)
        return self._console.frame.show(
            request,
            "questions.html",
            records=records[:PAGE],
            total=total,
            has_more=len(records) > PAGE,
            days=days,
            page=page,
            chosen={**filters, **({"all": "true"} if wanted.all else {})},
            periods=PERIODS,
            outcomes=("unresolved", "written", *OUTCOMES[1:]),
        )

    @require(ConsoleRole.VIEWER, get="question")
    async def question(
        self,
        request: Request,
        tenant: Text,
        assistant: Text,
        conversation: Text,
        message: Text,
    ) -> Response:
        """Show a question: answer, sources, trace, and the rest of its conversation."""
        asked = identify_message(tenant, assistant, conversation, message)
        return await self._show_question(request, asked)

    async def _show_question(
        self,
        request: Request,
        asked: Question | None,
        written: str = "",
        refusal: ConsoleRefusedError | None = None,
    ) -> Response:
        frame, handover = self._console.frame, self._console.handover

        def read(store: RecordStore) -> dict[str, Any]:
            record = None if asked is None else store.get(asked)
            if record is None:
                raise frame.missing()
            lanes = list_lanes(record.steps)
            others = _list_conversation(store, record)
            return {
                "record": record,
                "lanes": lanes,
                "trace": draw_lanes(lanes, record.seconds),
                "others": others,
                "repeated": find_repeated(store, record),
                "awaits_person": any(turn.reason in REQUESTS for turn in (record, *others)),
            }

        content = await frame.query(read)
        return frame.show(
            request,
            "question.html",
            refusal=refusal,
            **content,
            can_answer=handover is not None,
            visitor=await handover.find_address(asked) if handover and asked else None,
            written=written,
        )


def console_router(console: Console) -> APIRouter:
    """Return the routes of the console."""
    sign_in = SignIn(console.gate, console.provider)
    routes = make_route_class(console.gate, sign_in.refuse, console.unavailable)
    router = APIRouter(include_in_schema=False, route_class=routes)
    sign_in.add_to(router)
    router.add_api_route(f"{PATH}/console.css", show_style, methods=["GET"])
    for part in (*console.parts, _Pages(console)):
        part.add_to(router)
    return router


@admit_visitors
async def show_style() -> Response:
    """Return the style sheet."""
    own = (files("gateway.console") / "console.css").read_bytes()
    headers = {**HEADERS, "Cache-Control": "max-age=3600"}
    return Response(read_design().encode() + own, media_type="text/css", headers=headers)


def find_requests(store: RecordStore, selection: Selection) -> Sequence[Record]:
    """Return the latest unanswered hand-over request of each conversation."""
    latest: dict[tuple[str, str, str], Record] = {}
    for record in store.find(replace(selection, reason=PERSON), limit=MOST_REQUESTS):
        latest.setdefault(record.id.conversation, record)
    return [
        latest_record for latest_record in latest.values() if not _is_answered(store, latest_record)
    ]


def _is_answered(store: RecordStore, request: Record) -> bool:
    """Return whether a person replied in the conversation after a request."""
    return any(
        record.answered_by == BY_PERSON and record.ended_at >= request.ended_at
        for record in store.find_conversation(request.id, limit=LONGEST_SEARCH)
    )


def _list_conversation(store: RecordStore, record: Record) -> Sequence[Record]:
    records = store.find_conversation(record.id, limit=PAGE)
    return [other for other in records if other.message_id != record.message_id]
