"""Answers questions sent through OpenAI's API, both chat completions and responses. A request is
admitted and answered, with or without streaming. A history whose last answer offered options is
recognized when the client sends it again. The route determines the format of the answer.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from fastapi import Request, Response
from starlette.responses import StreamingResponse

from broker.values import Fields
from envelope.conversation import Pause
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.answer import Answer, Shows
from gateway.desk import Desk, Message
from gateway.events import Event, EventCursor
from gateway.http.access import Principal, choose_language, list_people, name_person
from gateway.http.admission_queue import QuestionSender
from gateway.http.context import CHECKED, HttpChannel, check_no_chat
from gateway.http.errors import InvalidRequestError
from gateway.http.library import refuse_public
from gateway.http.routes.completion_form import (
    ChatMessage,
    CompletionUsage,
    RequestHistory,
    clean_turn,
    content_of,
    history_of,
    usage_of,
)
from gateway.http.sse import HEADERS, Admission, EventStream
from gateway.text import clean_text

OPENAI = "openai"
"""The client name recorded for requests in the format of OpenAI."""


@dataclass(frozen=True, slots=True)
class WantedAnswer:
    """The content of a request, independent of its route.

    `kind` identifies the route in IDs. `messages` ends with the question; the messages before it
    are the history, unless the desk stores the conversation. A stored conversation is the one with
    the id `conversation_id` or, if `is_kept` is true and `messages` contains no answer, a new one.
    `foreign_tool` is the parameter with which a caller offers tools.
    """

    kind: str
    model: str
    messages: Sequence[ChatMessage]
    is_streamed: bool
    conversation_id: str | None = None
    is_kept: bool = False
    user: str | None = None
    foreign_tool: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A request that was counted against its limits; `is_kept` is true if the desk stores its
    conversation.
    """

    model: str
    desk: Desk
    message: Message
    question: Question
    history: RequestHistory
    caller: Principal
    created: int
    shows: Shows
    is_kept: bool

    @property
    def language(self) -> str:
        """The language of error replies."""
        return self.message.language


class StreamForm(Protocol):
    """Writes the lines of a stream."""

    def begin(self) -> str:
        """Return the lines before the first text."""
        ...

    def add(self, text: str) -> str:
        """Return the lines that add text to the answer."""
        ...

    def end(self, answer: Answer, begins: int, usage: CompletionUsage) -> str:
        """Return the last lines; the text of `answer` begins after `begins` characters."""
        ...


@dataclass(slots=True)
class ShownText:
    """The text of a draft that was sent to a client. No part of it can be replaced."""

    text: str = ""
    _draft: str = ""

    def extend(self, draft: Fields) -> str:
        """Return the text that a draft adds, or an empty string if it does not continue the
        text.
        """
        offset = draft.get("offset")
        kept = self._draft[: offset if isinstance(offset, int) else 0]
        self._draft = f"{kept}{draft.get('text')}"
        if not self._draft.startswith(self.text):
            return ""
        further = self._draft[len(self.text) :]
        self.text = self._draft
        return further


class OpenAiQuestions:
    """Admits and answers requests; at most `turns` turns of a request's history are read."""

    def __init__(
        self, channel: HttpChannel, stopping: asyncio.Event, sender: QuestionSender, *, turns: int
    ) -> None:
        self._channel = channel
        self._stopping = stopping
        self._sender = sender
        self._turns = turns

    async def admit(
        self, caller: Principal, request: Request, wanted: WantedAnswer
    ) -> AdmittedRequest:
        """Return the admitted request; raises `HttpError`."""
        refuse_public(caller)
        if wanted.foreign_tool is not None:
            raise InvalidRequestError(
                f"{wanted.foreign_tool}: this model does not call tools "
                f"of the client: omit the parameter",
                code="unsupported_parameter",
                param=wanted.foreign_tool,
            )
        desk = self.find_desk(caller, wanted.model)
        history = history_of(wanted.messages, turns=self._turns)
        key_id = caller.key_id
        name = _name(key_id, wanted.idempotency_key)
        is_kept = wanted.conversation_id is not None or (wanted.is_kept and not history.shown)
        message = Message(
            text=clean_text(history.text),
            conversation_id=wanted.conversation_id or f"{wanted.kind}-{name}",
            message_id=name,
            language=choose_language(request),
            request_id=str(request.state.request_id),
            key_id=key_id,
            groups=caller.groups,
            history=None if is_kept else history.turns,
            pause=None if is_kept else await self._find_pause(desk, history, key_id),
            shows_drafts=wanted.is_streamed and self._channel.release == CHECKED,
            people=list_people(caller, wanted.user, "user"),
            person_name=name_person(caller, wanted.user),
            client=OPENAI,
        )
        question = desk.question(message)
        await check_no_chat(self._channel, question)
        await self._sender.admit(caller, question)
        shows = self._channel.shows(caller, question)
        created = int(time.time())
        return AdmittedRequest(
            wanted.model, desk, message, question, history, caller, created, shows, is_kept
        )

    def find_desk(self, caller: Principal, model: str) -> Desk:
        """Return the desk of an assistant; raises `InvalidRequestError`."""
        if model not in self._channel.assistants(caller):
            raise InvalidRequestError(
                f"there is no such model: expected one of {self._channel.assistants(caller)}",
                code="model_not_found",
                param="model",
                status=404,
            )
        return self._channel.desk(caller, model)

    async def find_conversation(self, caller: Principal, desk: Desk, response_id: str) -> str:
        """Return the id of the stored conversation of a response; raises `InvalidRequestError`."""
        here = desk.name_question("-", "-")
        digest = _digest_response(caller.key_id, response_id)
        conversation = await self._channel.conversations.thread(here, digest)
        if conversation is None:
            raise InvalidRequestError(
                "this response does not exist, or its conversation is no longer stored; send "
                "the whole history",
                code="previous_response_not_found",
                param="previous_response_id",
                status=400,
            )
        return conversation

    async def answer(
        self, asked: AdmittedRequest, response_id: str = ""
    ) -> tuple[Answer, CompletionUsage]:
        """Return the answer, and the tokens that it used."""
        reply = await self._sender.ask(asked.caller, asked.desk, asked.message)
        answer = asked.shows(reply, asked.language)
        self._channel.meter.count_outcome(answer.outcome.value)
        await self._keep(asked, answer, response_id)
        return answer, await self._count_usage(asked)

    async def stream(
        self, asked: AdmittedRequest, form: StreamForm, response_id: str = ""
    ) -> Response:
        """Return the response that streams the answer."""
        admission = await self._sender.start_stream(asked.caller, asked.desk, asked.message)
        lines = self._write(asked, form, response_id, admission)
        return StreamingResponse(lines, headers=HEADERS, media_type="text/event-stream")

    async def _write(
        self,
        asked: AdmittedRequest,
        form: StreamForm,
        response_id: str,
        admission: Admission | None,
    ) -> AsyncIterator[str]:
        stream = EventStream(
            asked.desk,
            asked.question,
            shows=asked.shows,
            stopping=self._stopping,
            meter=self._channel.meter,
            after=EventCursor(),
            admission=admission,
            language=asked.language,
            with_drafts=self._channel.release == CHECKED,
        )
        shown = ShownText()
        yield form.begin()
        sent_at = time.monotonic()
        async for events in stream.events():
            lines = [await self._show(asked, form, response_id, event, shown) for event in events]
            if any(lines) or time.monotonic() - sent_at >= self._channel.heartbeat_seconds:
                yield "".join(lines) or ": still here\n\n"
                sent_at = time.monotonic()

    async def _show(
        self,
        asked: AdmittedRequest,
        form: StreamForm,
        response_id: str,
        event: Event,
        shown: ShownText,
    ) -> str:
        if event.name == "draft":
            further = shown.extend(event.data)
            return form.add(further) if further else ""
        if event.name == "text" and not shown.text:
            return form.add(str(event.data["text"]))
        if event.name != "done":
            return ""
        answer = Answer.model_validate(event.data)
        await self._keep(asked, answer, response_id)
        correction = self._correct(answer, shown)
        rest = f"{correction}{answer.text}" if correction else answer.text[len(shown.text) :]
        options = content_of(answer).removeprefix(answer.text)
        lines = [form.add(text) for text in (rest if shown.text else "", options) if text]
        begins = len(shown.text) + len(correction) if correction else 0
        return "".join([*lines, form.end(answer, begins, await self._count_usage(asked))])

    def _correct(self, answer: Answer, shown: ShownText) -> str:
        """Return the lines above an answer that does not continue the draft, or an empty string."""
        if answer.text.startswith(shown.text):
            return ""
        return f"\n\n{self._channel.words('retracted', answer.language)}\n\n"

    async def _find_pause(self, desk: Desk, history: RequestHistory, key_id: str) -> Pause | None:
        """Return the clarification at the end of this history, if there is one."""
        if not history.shown:
            return None
        here = desk.name_question("-", "-")
        conversation_id = await self._channel.conversations.thread(here, history.digest(key_id))
        if conversation_id is None:
            return None
        return await self._channel.conversations.pause(desk.name_question(conversation_id, "-"))

    async def _count_usage(self, asked: AdmittedRequest) -> CompletionUsage:
        return usage_of(await self._channel.replies.read_journal(asked.question))

    async def _keep(self, asked: AdmittedRequest, answer: Answer, response_id: str) -> None:
        """Store a digest that identifies the client's next request as part of the conversation."""
        threads = self._channel.conversations
        if asked.is_kept and response_id:
            digest = _digest_response(asked.caller.key_id, response_id)
            await threads.put_thread(asked.question, digest)
        offers = any(action.kind == "option" for action in answer.suggested_actions)
        if answer.outcome is not Outcome.CLARIFICATION and not offers:
            return
        turns = (("user", asked.history.text), ("assistant", clean_turn(content_of(answer))))
        digest = asked.history.digest(asked.caller.key_id, *turns)
        await threads.put_thread(asked.question, digest)


def _name(key_id: str, idempotency_key: str | None) -> str:
    """Return the id of a message; idempotency keys are separate for each API key."""
    if idempotency_key is None:
        return uuid4().hex
    named = f"{key_id}\x1f{idempotency_key}"
    return f"i-{hashlib.sha256(named.encode()).hexdigest()[:32]}"


def _digest_response(key_id: str, response_id: str) -> str:
    return hashlib.sha256(f"response\x1f{key_id}\x1f{response_id}".encode()).hexdigest()
