"""What all pages of the console share: the session, roles, forms, and errors as pages.

Every POST passes `Frame.act`, which demands a role and the token of the form: there is no other
place where a page changes anything.
"""

import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, urlencode

import structlog
from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from gateway.console.figures import OUTCOMES
from gateway.console.pages import fill
from records.store import RecordRefusedError, RecordStore, RecordsUnavailableError

log = structlog.get_logger("gateway")

PATH = "/console"
COOKIE = "refdesk_console"
VIEWER, EDITOR, OWNER = 1, 2, 3
"""The roles: who reads, who also writes answers and states, who also operates the desk."""
MOST_FIELDS = 200
NOTICES = {
    "asked": "The questions are being asked again. Reload this page to see how they end.",
}
"""What a page says after a form was sent, by the value of `said` in its address."""
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}
Name = tuple[str, str]
"""Tenant and assistant."""
Found = TypeVar("Found")


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
class Visitor:
    """The holder of a session, with a role for each assistant that is shown to them."""

    token: str
    roles: Mapping[Name, int]

    def list_assistants(self, least: int = VIEWER) -> tuple[Name, ...]:
        """Return the assistants at which the visitor has at least this role."""
        return tuple(name for name, role in self.roles.items() if role >= least)

    @property
    def role(self) -> int:
        """The greatest role of the visitor."""
        return max(self.roles.values(), default=0)

    @property
    def form_token(self) -> str:
        """What every form of this session carries, and no other website knows."""
        return hashlib.sha256(f"form {self.token}".encode()).hexdigest()


class NoticeError(Exception):
    """A page cannot be shown or an action not be done; the visitor is told why."""

    def __init__(self, title: str, text: str, status: int = 400) -> None:
        super().__init__(title)
        self.title, self.text, self.status = title, text, status


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form that was sent, with who sent it."""

    visitor: Visitor
    fields: Mapping[str, str]

    def read(self, name: str, *, most: int = 200) -> str:
        """Return a field without spaces around it; empty if it is missing."""
        value = self.fields.get(name, "").strip()
        if len(value) > most:
            raise NoticeError("This is too long", f"{name}: at most {most} characters are stored.")
        return value

    def read_assistant(self, least: int) -> Name:
        """Return the assistant that the form names; raise `NoticeError` without that role."""
        name = (self.read("tenant"), self.read("assistant"))
        if name not in self.visitor.list_assistants(least):
            raise NoticeError("Not allowed", "Your role at this assistant does not allow it.", 403)
        return name


@dataclass(frozen=True, slots=True)
class Frame:
    """The parts of every page; `store` is None where no records are kept."""

    sessions: ConsoleSessions
    store: RecordStore | None
    assistants: Sequence[Name]
    records_days: float
    unavailable: tuple[type[Exception], ...] = ()
    clock: Callable[[], float] = field(default=time.time)

    async def has_session(self, request: Request) -> bool:
        """Return whether a request comes with an open session."""
        return await self.sessions.is_open(request.cookies.get(COOKIE, ""))

    async def identify(self, request: Request) -> Visitor:
        """Return the visitor of a request; raise `NoticeError` without a session.

        A one-time link makes an owner of every assistant.
        """
        token = request.cookies.get(COOKIE, "")
        if not await self.has_session(request):
            raise NoticeError(
                "Sign in",
                "The console is for the owner of this desk. Get a link with: refdesk console",
                401,
            )
        return Visitor(token, dict.fromkeys(self.assistants, OWNER))

    async def query(self, read: Callable[[RecordStore], Found]) -> Found:
        """Return what `read`, in a thread, takes from the records."""
        if self.store is None:
            raise NoticeError(
                "No records are kept", "Set RECORDS_DAYS to more than 0 to keep them.", 200
            )
        return await run_in_threadpool(read, self.store)

    async def show(
        self,
        request: Request,
        template: str,
        read: Callable[[Visitor], Awaitable[Mapping[str, Any] | None]],
        *,
        least: int = VIEWER,
        **values: Any,
    ) -> Response:
        """Return a page for a visitor with a role; the page of what is missing for None."""

        async def fill_page() -> Response:
            visitor = await self._demand(request, least)
            found, status = await read(visitor), 200
            shown = template
            if found is None:
                shown, found, status = "missing.html", {}, 404
            page = fill(
                shown,
                **{**values, **found},
                path=PATH,
                all_outcomes=OUTCOMES,
                records_days=self.records_days,
                visitor=visitor,
                can_edit=visitor.role >= EDITOR,
                can_operate=visitor.role >= OWNER,
                said=request.query_params.get("said", ""),
                notices=NOTICES,
            )
            return Response(page, status_code=status, media_type="text/html", headers=HEADERS)

        return await self.respond(fill_page)

    async def act(
        self, request: Request, least: int, change: Callable[[Form], Awaitable[str]]
    ) -> Response:
        """Do what a form asks for, and lead to the address that `change` returns.

        The session must have at least the role `least` at some assistant; `Form.read_assistant`
        demands it at the one that the form names.
        """

        async def change_and_lead() -> Response:
            visitor = await self._demand(request, least)
            fields = await read_fields(request)
            if not hmac.compare_digest(fields.get("token", "").encode(),
                                       visitor.form_token.encode()):  # fmt: skip
                raise NoticeError(
                    "This form is not from your session",
                    "Go back, reload the page, try again.",
                    403,
                )
            place = await change(Form(visitor, fields))
            return RedirectResponse(place, status_code=303, headers=HEADERS)

        return await self.respond(change_and_lead)

    async def respond(self, answer: Callable[[], Awaitable[Response]]) -> Response:
        """Return an answer, or a page with what went wrong."""
        try:
            return await answer()
        except NoticeError as notice:
            return show_notice(notice.title, notice.text, notice.status)
        except (RecordsUnavailableError, RecordRefusedError) as error:
            log.warning("console_unavailable", error=str(error))
            return show_notice(
                "The database of the records does not answer",
                f"Questions are answered as usual, and recorded when it is back. ({error})",
                503,
            )
        except self.unavailable as error:
            log.warning("console_unavailable", error=str(error))
            return show_notice("Redis or the index does not answer", "Try again in a moment.", 503)

    async def _demand(self, request: Request, least: int) -> Visitor:
        visitor = await self.identify(request)
        if visitor.role < least:
            raise NoticeError("Not allowed", "Your role does not allow this.", 403)
        return visitor


async def read_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; raise `NoticeError` for another body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise NoticeError("This is no form", "Send the form from its page.", 415)
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise NoticeError("This form cannot be read", "Reload the page, and try again.") from None


def link(page: str, **query: object) -> str:
    """Return the address of a page of the console."""
    return f"{PATH}/{page}?{urlencode(query)}" if query else f"{PATH}/{page}"


def show_notice(title: str, text: str, status: int = 200) -> Response:
    """Return a page that says one thing."""
    page = fill("notice.html", title=title, text=text, path=PATH)
    return Response(page, status_code=status, media_type="text/html", headers=HEADERS)
