"""The routes of the console, and its pages of what was asked."""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from envelope.question import Question
from gateway.console.again import find_repeated
from gateway.console.charts import draw_days, draw_lanes, list_lanes
from gateway.console.figures import compute_figures
from gateway.console.frame import COOKIE, HEADERS, PATH, Frame, Visitor, show_notice
from gateway.console.pages import render_answer
from records.record import Record
from records.store import PAGE, RecordStore, Selection

DAY_SECONDS = 86_400
PERIODS = (1, 7, 30, 90)
LONGEST_SEARCH = 200

Text = Annotated[str, Query(max_length=LONGEST_SEARCH)]
Days = Annotated[int, Query(ge=1, le=3660)]
Page = Annotated[int, Query(ge=1, le=10_000)]


def console_router(frame: Frame) -> APIRouter:
    """Return the routes of the console."""
    router = APIRouter(include_in_schema=False)
    pages = _Pages(frame)
    router.add_api_route(f"{PATH}/login", pages.login, methods=["GET"])
    router.add_api_route(f"{PATH}/logout", pages.logout, methods=["GET"])
    router.add_api_route(f"{PATH}/console.css", pages.style, methods=["GET"])
    router.add_api_route(PATH, pages.today, methods=["GET"])
    router.add_api_route(f"{PATH}/questions", pages.questions, methods=["GET"])
    router.add_api_route(f"{PATH}/question", pages.question, methods=["GET"])
    return router


class _Pages:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    async def login(
        self, request: Request, code: Annotated[str, Query(max_length=100)]
    ) -> Response:
        """Open a session for the code of a one-time link."""
        try:
            token = await self._frame.sessions.open(code)
        except self._frame.unavailable:
            return show_notice("Redis does not answer", "Try the same link again in a moment.", 503)
        if token is None:
            return show_notice(
                "This link is no longer valid",
                "Each link opens the console once, within ten minutes. Make a new one with: "
                "refdesk console",
                403,
            )
        answer = RedirectResponse(PATH, status_code=303, headers=HEADERS)
        answer.set_cookie(
            COOKIE,
            token,
            path=PATH,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def logout(self, request: Request) -> Response:
        """End the session."""
        try:
            await self._frame.sessions.end(request.cookies.get(COOKIE, ""))
        except self._frame.unavailable:
            return show_notice("Redis does not answer", "You are still signed in; try again.", 503)
        answer = show_notice("You are signed out", "Open the console again with: refdesk console")
        answer.delete_cookie(COOKIE, path=PATH)
        return answer

    async def style(self) -> Response:
        """Return the style sheet."""
        text = (files("gateway.console") / "console.css").read_bytes()
        headers = {**HEADERS, "Cache-Control": "max-age=3600"}
        return Response(text, media_type="text/css", headers=headers)

    async def today(self, request: Request, days: Days = 7) -> Response:
        """Show what happened in a period."""
        until = self._frame.clock()

        async def read(visitor: Visitor) -> Mapping[str, Any]:
            selection = Selection(
                assistants=visitor.list_assistants(), since=until - days * DAY_SECONDS
            )

            def read_period(store: RecordStore) -> Mapping[str, Any]:
                rows = store.read_figures(selection)
                figures = compute_figures(rows, since=selection.since, until=until)
                down = store.find(_narrow(selection, rating="down"), limit=5)
                failed = store.find(_narrow(selection, outcome="failed"), limit=5)
                return {"figures": figures, "chart": draw_days(figures.days), "down": down,
                        "failed": failed}  # fmt: skip

            return await self._frame.query(read_period)

        return await self._frame.show(request, "today.html", read, days=days, periods=PERIODS)

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
    ) -> Response:
        """Show a list of questions, by a search and filters."""
        chosen: dict[str, Any] = {
            "text": text, "outcome": outcome, "reason": reason, "channel": channel, "way": way,
            "rating": rating,
        }  # fmt: skip
        since = self._frame.clock() - days * DAY_SECONDS

        async def read(visitor: Visitor) -> Mapping[str, Any]:
            selection = Selection(assistants=visitor.list_assistants(), since=since, **chosen)
            found = await self._frame.query(
                lambda store: store.find(selection, offset=(page - 1) * PAGE, limit=PAGE + 1)
            )
            return {"records": found[:PAGE], "has_more": len(found) > PAGE}

        return await self._frame.show(
            request,
            "questions.html",
            read,
            days=days,
            page=page,
            chosen=chosen,
            periods=PERIODS,
            outcomes=("answered", "clarification", "refused", "failed", "superseded"),
        )

    async def question(
        self,
        request: Request,
        tenant: Text,
        assistant: Text,
        conversation: Text,
        message: Text,
    ) -> Response:
        """Show one question whole: answer, sources, trace, and the rest of its conversation."""

        async def read(visitor: Visitor) -> Mapping[str, Any] | None:
            if (tenant, assistant) not in visitor.list_assistants():
                return None
            asked = name_question(tenant, assistant, conversation, message)
            return None if asked is None else await self._frame.query(partial(_read_whole, asked))

        return await self._frame.show(request, "question.html", read)


def name_question(tenant: str, assistant: str, conversation: str, message: str) -> Question | None:
    """Return the question of these ids; None if there can be none."""
    try:
        return Question(
            tenant=tenant, assistant=assistant, conversation_id=conversation, message_id=message
        )
    except ValueError:
        return None


def _read_whole(asked: Question, store: RecordStore) -> Mapping[str, Any] | None:
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


def _list_conversation(store: RecordStore, record: Record) -> Sequence[Record]:
    found = store.find_conversation(record.id, limit=PAGE)
    return [one for one in found if one.message_id != record.message_id]


def _narrow(selection: Selection, **more: str) -> Selection:
    return Selection(selection.assistants, selection.since, selection.until, **more)
