"""The routes of the console. Each is a GET that changes nothing but the session."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Protocol

import structlog
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from envelope.question import Question
from gateway.console.charts import draw_days, draw_lanes, list_lanes
from gateway.console.figures import OUTCOMES, compute_figures
from gateway.console.pages import fill, render_answer
from records.record import Record
from records.store import PAGE, RecordStore, RecordsUnavailableError, Selection

log = structlog.get_logger("gateway")

PATH = "/console"
COOKIE = "refdesk_console"
DAY_SECONDS = 86_400
PERIODS = (1, 7, 30, 90)
LONGEST_SEARCH = 200
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}

Text = Annotated[str, Query(max_length=LONGEST_SEARCH)]
Days = Annotated[int, Query(ge=1, le=3660)]
Page = Annotated[int, Query(ge=1, le=10_000)]


class ConsoleSessions(Protocol):
    """Stores the sessions of the console, and the codes of one-time links."""

    async def open(self, code: str) -> str | None:
        """Return the token of a new session for a code, which is used up; None: no such code."""
        ...

    async def is_open(self, token: str) -> bool:
        """Return whether a session is open."""
        ...

    async def end(self, token: str) -> None:
        """End a session; to end it twice is no error."""
        ...


@dataclass(frozen=True, slots=True)
class Console:
    """What the pages read; `store` is None where no records are kept."""

    sessions: ConsoleSessions
    store: RecordStore | None
    assistants: Sequence[tuple[str, str]]
    records_days: float
    unavailable: tuple[type[Exception], ...] = ()
    clock: Callable[[], float] = time.time


def console_router(console: Console) -> APIRouter:
    """Return the routes of the console."""
    router = APIRouter(include_in_schema=False)
    pages = _Pages(console)
    router.add_api_route(f"{PATH}/login", pages.login, methods=["GET"])
    router.add_api_route(f"{PATH}/logout", pages.logout, methods=["GET"])
    router.add_api_route(f"{PATH}/console.css", pages.style, methods=["GET"])
    router.add_api_route(PATH, pages.today, methods=["GET"])
    router.add_api_route(f"{PATH}/questions", pages.questions, methods=["GET"])
    router.add_api_route(f"{PATH}/question", pages.question, methods=["GET"])
    return router


class _Pages:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def login(
        self, request: Request, code: Annotated[str, Query(max_length=100)]
    ) -> Response:
        """Open a session for the code of a one-time link."""
        try:
            token = await self._console.sessions.open(code)
        except self._console.unavailable:
            return _notice("Redis does not answer", "Try the same link again in a moment.", 503)
        if token is None:
            return _notice(
                "This link is no longer valid",
                "Each link opens the console once, within ten minutes. Make a new one with: "
                "refdesk console",
                403,
            )
        answer = RedirectResponse(PATH, status_code=303, headers=_HEADERS)
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
            await self._console.sessions.end(request.cookies.get(COOKIE, ""))
        except self._console.unavailable:
            return _notice("Redis does not answer", "You are still signed in; try again.", 503)
        answer = _notice("You are signed out", "Open the console again with: refdesk console")
        answer.delete_cookie(COOKIE, path=PATH)
        return answer

    async def style(self) -> Response:
        """Return the style sheet."""
        text = (files("gateway.console") / "console.css").read_bytes()
        headers = {**_HEADERS, "Cache-Control": "max-age=3600"}
        return Response(text, media_type="text/css", headers=headers)

    async def today(self, request: Request, days: Days = 7) -> Response:
        """Show what happened in a period."""
        until = self._console.clock()
        selection = Selection(
            assistants=tuple(self._console.assistants), since=until - days * DAY_SECONDS
        )

        def read(store: RecordStore) -> Mapping[str, Any]:
            rows = store.read_figures(selection)
            figures = compute_figures(rows, since=selection.since, until=until)
            down = store.find(_narrow(selection, rating="down"), limit=5)
            failed = store.find(_narrow(selection, outcome="failed"), limit=5)
            return {"figures": figures, "chart": draw_days(figures.days), "down": down,
                    "failed": failed}  # fmt: skip

        return await self._show(request, "today.html", read, days=days, periods=PERIODS)

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
        chosen = {
            "text": text, "outcome": outcome, "reason": reason, "channel": channel, "way": way,
            "rating": rating,
        }  # fmt: skip
        selection = Selection(
            assistants=tuple(self._console.assistants),
            since=self._console.clock() - days * DAY_SECONDS,
            outcome=outcome,
            reason=reason,
            channel=channel,
            way=way,
            rating=rating,
            text=text,
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

    async def question(
        self,
        request: Request,
        tenant: Text,
        assistant: Text,
        conversation: Text,
        message: Text,
    ) -> Response:
        """Show one question whole: answer, sources, trace, and the rest of its conversation."""
        if (tenant, assistant) not in self._console.assistants:
            return await self._show(request, "missing.html", lambda _: {}, status=404)

        def read(store: RecordStore) -> Mapping[str, Any] | None:
            asked = Question(
                tenant=tenant,
                assistant=assistant,
                conversation_id=conversation,
                message_id=message,
            )
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
            }

        return await self._show(request, "question.html", read)

    async def _show(
        self,
        request: Request,
        template: str,
        read: Callable[[RecordStore], Mapping[str, Any] | None],
        *,
        status: int = 200,
        **values: Any,
    ) -> Response:
        """Return a page for the holder of a session; `read` runs in a thread."""
        try:
            if not await self._console.sessions.is_open(request.cookies.get(COOKIE, "")):
                return _notice(
                    "Sign in",
                    "The console is for the owner of this desk. Get a link with: refdesk console",
                    401,
                )
        except self._console.unavailable:
            return _notice("Redis does not answer", "Try again in a moment.", 503)
        store = self._console.store
        if store is None:
            return _notice("No records are kept", "Set RECORDS_DAYS to more than 0 to keep them.")
        try:
            found = await run_in_threadpool(read, store)
        except RecordsUnavailableError as error:
            log.warning("console_unavailable", error=str(error))
            return _notice(
                "The database of the records does not answer",
                f"Questions are answered as usual, and recorded when it is back. ({error})",
                503,
            )
        except ValueError:
            found = None
        if found is None:
            template, status, found = "missing.html", 404, {}
        page = fill(template, **values, **found, path=PATH, all_outcomes=OUTCOMES,
                    records_days=self._console.records_days)  # fmt: skip
        return Response(page, status_code=status, media_type="text/html", headers=_HEADERS)


def _list_conversation(store: RecordStore, record: Record) -> Sequence[Record]:
    found = store.find_conversation(record.id, limit=PAGE)
    return [one for one in found if one.message_id != record.message_id]


def _narrow(selection: Selection, **more: str) -> Selection:
    return Selection(selection.assistants, selection.since, selection.until, **more)


def _notice(title: str, text: str, status: int = 200) -> Response:
    page = fill("notice.html", title=title, text=text, path=PATH)
    return Response(page, status_code=status, media_type="text/html", headers=_HEADERS)
