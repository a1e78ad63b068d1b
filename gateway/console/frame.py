"""The common parts of the pages that show records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from envelope.question import Question
from gateway.console.access import (
    Assistant,
    ConsoleRefusedError,
    ConsoleRole,
    NotSavedError,
    demand_of,
    fields_of,
    read_form,
    user_of,
)
from gateway.console.pages import HEADERS, PATH, show_page
from records.store import RecordStore

Found = TypeVar("Found")
NOTICES = {
    "asked": "The questions are being asked again. Reload this page to see the results.",
    "saved": "Saved.",
    "removed": "Removed.",
    "missing": "Nothing was changed: the document or source does not exist, or it is being read.",
    "restricted": "Saved. The change applies to searches and answers from now on.",
    "as_stated": "Saved. From the next sync on, the source determines who may read the document.",
    "added": "Added. The source is read on its schedule.",
    "syncing": "The source is being read. Reload this page to see the result.",
    "stopped": "Reading was stopped. The documents read so far are kept; the next run "
    "continues from there.",
    "reading": "The document is being read. Reload this page to see the result.",
    "written": "The page was read, and is used in answers from now on.",
    "ask": "The page was read. Ask the questions again to see the new answers.",
    "revoked": "The key was revoked. Requests with this key are rejected from now on.",
    "answered": "Your answer is in the conversation, and is sent to a confirmed address.",
    "sent": "The question was sent again, from its start, as a new message.",
}
"""Notices shown after a form was sent, by the value of `said` in the URL."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Reads records and renders pages; `store` is None if no records are kept.

    Times and the beginning of days are in the time zone `zone`.
    """

    store: RecordStore | None
    records_days: float
    zone: tzinfo = UTC

    async def query(self, read: Callable[[RecordStore], Found]) -> Found:
        """Run `read` on the records in a thread and return its result."""
        if self.store is None:
            raise ConsoleRefusedError(
                200, "No records are kept", "Set RECORDS_DAYS to more than 0 to keep them."
            )
        return await run_in_threadpool(read, self.store)

    def show(
        self,
        request: Request,
        template: str,
        *,
        refusal: ConsoleRefusedError | None = None,
        **values: Any,
    ) -> Response:
        """Return a page, with the status of `refusal` if it shows one."""
        user = user_of(request)
        return show_page(
            request,
            template,
            200 if refusal is None else refusal.status,
            user=user,
            zone=self.zone,
            can_edit=user.may(ConsoleRole.EDITOR),
            said=NOTICES.get(request.query_params.get("said", ""), ""),
            refusal=refusal,
            **values,
        )

    def missing(self) -> ConsoleRefusedError:
        """Return the error for a page about something that does not exist."""
        return ConsoleRefusedError(
            404,
            "Not here",
            "The record does not exist, or it was erased. Records of questions are kept for "
            f"{self.records_days:.0f} days.",
        )


class ConsolePart:
    """A group of console pages, whose handlers declare their paths and the required roles."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        for name in vars(type(self)):
            handler = getattr(self, name)
            if hasattr(handler, "console_demand"):
                demand = demand_of(handler)
                path = f"{PATH}/{demand.path}".rstrip("/")
                router.add_api_route(path, handler, methods=[demand.method])


@dataclass(frozen=True, slots=True)
class SentForm:
    """The fields of a form, and the assistant that it names."""

    fields: Mapping[str, str]
    assistant: Assistant

    def read(self, name: str, *, most: int = 200) -> str:
        """Return a field without surrounding whitespace; empty if it is missing."""
        value = self.fields.get(name, "").strip()
        if len(value) > most:
            raise NotSavedError(f"{name.capitalize()}: at most {most} characters are stored.")
        return value

    def read_message(self) -> Question:
        """Return the message that the form names; raises `ConsoleRefusedError`."""
        asked = identify_message(*self.assistant, self.read("conversation"), self.read("message"))
        if asked is None:
            raise no_question()
        return asked


def no_question() -> ConsoleRefusedError:
    """Return the error for a form about a message that has no record."""
    return ConsoleRefusedError(
        404, "This question does not exist", "Its record has expired or was erased."
    )


def identify_message(
    tenant: str, assistant: str, conversation: str, message: str
) -> Question | None:
    """Return the identity of a message, or None if one of its ids is not valid."""
    try:
        return Question(
            tenant=tenant, assistant=assistant, conversation_id=conversation, message_id=message
        )
    except ValueError:
        return None


async def receive(request: Request, role: ConsoleRole) -> SentForm:
    """Return the form of a request, which must name an assistant for which the user has the
    role.
    """
    fields = await read_form(request)
    assistant = (fields.get("tenant", ""), fields.get("assistant", ""))
    user_of(request).require(role, assistant)
    return SentForm(fields, assistant)


def lead(page: str, assistant: Assistant | None = None, /, **query: object) -> Response:
    """Redirect the browser to a console page, optionally of an assistant, after a form."""
    named = {} if assistant is None else fields_of(assistant)
    place = f"{PATH}/{page}".rstrip("/") + f"?{urlencode({**named, **query})}"
    return RedirectResponse(place, status_code=303, headers=HEADERS)
