"""The routes that hand a conversation over to a person, and on which the person answers.

The person does not need a key, because the URL of the page is signed and identifies the
conversation. Everybody who has the URL can answer until it expires, or until the conversation is
erased.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Path, Request, Response
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from pydantic import BaseModel, Field

from envelope.conversation import HANDED_OVER
from envelope.question import Question
from gateway.api_keys import Scope, digest_of
from gateway.desk import Message
from gateway.errors import HandOverLimitedError, MessageError
from gateway.http.access import Principal, choose_language, list_people, name_person
from gateway.http.admission_queue import QuestionSender
from gateway.http.context import (
    ID,
    ConversationAccess,
    HttpChannel,
    may_follow,
    require_conversation,
)
from gateway.http.errors import InvalidRequestError, LimitedError, unknown
from gateway.http.routes.documents import (
    HTML,
    RIGHT_TO_LEFT,
    document_policy,
    document_style,
)
from gateway.http.routes.messages import WIDGET
from gateway.port import HandOver, OpenCase
from gateway.text import LONGEST_CHARACTERS, clean_text

PATH = "/v1/handover/"
LONGEST_NOTE = 2_000
ADDRESS = r"^([A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,253})?$"
MOST_FIELDS = 5
"""Maximum number of fields in the form for an answer."""
Ticket = Annotated[
    str, Path(max_length=2_000, description="token in the link that was sent to the person")
]
GONE = "This address is no longer valid: it has expired, or the conversation was erased."
UNSENT = (
    "Your answer was not sent: the server is busy, or the chat in which the question was "
    "asked is no longer stored. Send it again in a moment, or contact the visitor in "
    "another way."
)


class HandOverRequest(BaseModel, frozen=True, extra="forbid"):
    """A visitor's request to talk to a person."""

    message_id: str = Field(
        pattern=ID, description="id of the last message with an answer", examples=["m-1"]
    )
    note: str = Field(
        "", max_length=LONGEST_NOTE, description="message of the visitor to the person"
    )
    address: str = Field(
        "",
        pattern=ADDRESS,
        description="e-mail address of the visitor; the answer is also sent to it after the "
        "visitor has opened a confirmation link",
        examples=["ada@example.com"],
    )


class HandedOver(BaseModel):
    """Whether the conversation was sent."""

    sent: bool = Field(description="whether a mailbox, channel or webhook accepted the request")
    message_id: str = Field(description="the request as a message of the conversation")
    text: str = Field(description="result as a sentence for the visitor")


def is_reply_path(handover: HandOver | None, path: str) -> bool:
    """Return whether this is the path, with a valid signature, of a page on which a person
    answers.
    """
    if handover is None or not path.startswith(PATH):
        return False
    return handover.is_ticket(path.removeprefix(PATH))


def handover_router(channel: HttpChannel, sender: QuestionSender) -> APIRouter:
    """Return the routes; without receivers, conversations cannot be handed over."""
    router = APIRouter(tags=["conversations"])
    _add_request(router, channel, sender)
    _add_reply(router, channel)
    return router


def _add_request(router: APIRouter, channel: HttpChannel, sender: QuestionSender) -> None:
    @router.post("/v1/conversations/{conversation_id}/handover", summary="Ask for a person")
    async def hand_over(
        access: Annotated[ConversationAccess, Depends(require_conversation(channel, Scope.ASK))],
        request: Request,
        wanted: HandOverRequest,
    ) -> HandedOver:
        """Send the conversation to a person, whose answer will appear in it. Counts as a
        question.
        """
        question = access.question(wanted.message_id)
        handover = channel.handover
        if handover is None or not handover.hands_over(question.tenant, question.assistant):
            raise InvalidRequestError(
                "this assistant does not hand conversations over to people",
                code="handover_unavailable",
                status=404,
            )
        journal = await channel.replies.read_journal(question)
        if not journal or not may_follow(access.caller, journal[0]):
            raise unknown("message")
        language = _find_language(request, journal[-1].fields.get("language"))
        if wanted.address and not handover.mails_visitors:
            raise InvalidRequestError(
                "`address` is not supported: this desk does not send e-mail to visitors",
                code="address_unavailable",
                param="address",
            )
        note = clean_text(wanted.note) if wanted.note.strip() else ""
        visitor = _name_visitor(access.caller, question)
        once = question.model_copy(update={"message_id": f"{wanted.message_id}\x1fhandover"})
        await sender.admit(access.caller, once)
        try:
            sent = await handover.request(
                question,
                note=note,
                language=language,
                visitor=visitor,
                address=wanted.address,
            )
        except HandOverLimitedError as error:
            raise LimitedError(
                str(error),
                code="handover_limited",
                retry_after_seconds=error.retry_after_seconds,
            ) from error
        result = "sent" if sent else "failed"
        results = [result]
        if wanted.address:
            mail = await handover.ask_to_confirm(question, language=language, visitor=visitor)
            results.append(f"mail_{mail}")
        noted = Message(
            text=note or channel.words("handover_asked", language),
            conversation_id=access.conversation_id,
            message_id=_name_request(wanted.message_id, *results),
            command=HANDED_OVER,
            arguments=(language, *results),
            language=language,
            request_id=str(request.state.request_id),
            key_id=access.caller.key_id,
            groups=access.caller.groups,
            people=list_people(access.caller, None, "user_id"),
            person_name=name_person(access.caller, None),
            client=WIDGET if access.caller.public else "",
        )
        await access.desk.submit(noted)
        return HandedOver(
            sent=sent,
            message_id=noted.message_id,
            text=channel.words(f"handover_{result}", language),
        )


def _name_request(message_id: str, *results: str) -> str:
    """Return the message id of a request; requests with the same result have the same id."""
    return f"person-{digest_of(' '.join((message_id, *results)))[:32]}"


def _name_visitor(caller: Principal, question: Question) -> str:
    """Return the owner of the limit, which is a person, the network of a public key, or a
    conversation.
    """
    if caller.person_id:
        return f"person/{caller.person_id}"
    return caller.visitor.owner if caller.public else f"conversation/{question.conversation_id}"


def _add_reply(router: APIRouter, channel: HttpChannel) -> None:
    @router.get(f"{PATH}{{ticket}}", include_in_schema=False)
    async def read_case(request: Request, ticket: Ticket) -> Response:
        """Show the conversation, and a form for the answer."""
        channel.guard.check_host(request)
        if language := _read_confirmation(channel, ticket):
            return _page_of_visitor(channel, language, "visitor_confirm_title", button=True)
        case = await _read_case(channel, ticket)
        return _page(status=404, notice=GONE) if case is None else _page(turns=case.turns)

    @router.post(f"{PATH}{{ticket}}", include_in_schema=False)
    async def answer_case(request: Request, ticket: Ticket) -> Response:
        """Show the submitted answer in the conversation."""
        channel.guard.check_host(request)
        if language := _read_confirmation(channel, ticket):
            return await _confirm(channel, ticket, language)
        case = await _read_case(channel, ticket)
        if channel.handover is None or case is None:
            return _page(status=404, notice=GONE)
        written = ""
        try:
            written = _read_text(await request.body())
            text = clean_text(written, longest=LONGEST_CHARACTERS)
        except MessageError as error:
            notice = f"Nothing was sent: {error}."
            return _page(turns=case.turns, written=written, status=400, notice=notice)
        if not await channel.handover.reply(ticket, text):
            return _page(turns=case.turns, written=written, status=503, notice=UNSENT)
        return _page(notice="Your answer was sent. You may close this page.")


async def _read_case(channel: HttpChannel, ticket: str) -> OpenCase | None:
    return None if channel.handover is None else await channel.handover.read(ticket)


def _read_confirmation(channel: HttpChannel, ticket: str) -> str | None:
    return None if channel.handover is None else channel.handover.read_confirmation(ticket)


async def _confirm(channel: HttpChannel, ticket: str, language: str) -> Response:
    if channel.handover is not None and await channel.handover.confirm(ticket):
        return _page_of_visitor(channel, language, "visitor_confirmed")
    return _page_of_visitor(channel, language, "visitor_link_ended", status=404)


def _page_of_visitor(
    channel: HttpChannel, language: str, key: str, *, status: int = 200, button: bool = False
) -> Response:
    """Return the page on which a visitor confirms an address with a button, because links may be
    prefetched.
    """
    title = channel.words("visitor_confirm_title", language)
    return _page(
        title=title,
        language=language,
        notice="" if button else channel.words(key, language),
        button=title if button else "",
        status=status,
    )


def _find_language(request: Request, known: object) -> str:
    return known if isinstance(known, str) and known else choose_language(request)


def _read_text(body: bytes) -> str:
    """Return the text submitted in a form; raises `MessageError`."""
    try:
        fields = parse_qs(body.decode(errors="replace"), max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise MessageError("the form cannot be read") from error
    return (fields.get("text") or [""])[0]


def _page(
    *,
    turns: Sequence[tuple[str, str]] = (),
    written: str = "",
    notice: str = "",
    status: int = 200,
    title: str = "Answer a visitor",
    language: str = "en",
    button: str = "",
) -> Response:
    policy = document_policy().replace("form-action 'none'", "form-action 'self'")
    headers = {
        "Content-Security-Policy": policy.replace("; sandbox", ""),
        "X-Robots-Tag": "noindex",
    }
    style = Markup(document_style())  # noqa: S704 # our own file
    page = _template().render(
        turns=turns,
        written=written,
        notice=notice,
        style=style,
        title=title,
        language=language,
        direction="rtl" if language in RIGHT_TO_LEFT else "ltr",
        button=button,
    )
    return Response(page.encode(errors="replace"), status, headers, f"{HTML}; charset=utf-8")


@cache
def _template() -> Template:
    source = files(__package__).joinpath("handover.html").read_text()
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(source)
