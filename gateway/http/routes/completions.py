"""The routes of OpenAI's API: chat completions, and assistants as models."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Request, Response
from starlette.responses import JSONResponse, StreamingResponse

from broker.values import Fields
from envelope.conversation import Pause
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.answer import Answer, Shows
from gateway.api_keys import Scope
from gateway.desk import Desk, Message
from gateway.events import Event, EventCursor
from gateway.http.access import Principal, choose_language, list_people, name_person
from gateway.http.context import CHECKED, HttpChannel, check_no_chat, require_scope
from gateway.http.errors import ForbiddenError, InvalidRequestError
from gateway.http.question_sender import QuestionSender
from gateway.http.routes.completion_form import (
    Completion,
    CompletionRequest,
    ModelCard,
    ModelList,
    RequestHistory,
    annotations_of,
    clean_turn,
    content_of,
    extensions_of,
    find_foreign_tools,
    history_of,
    usage_of,
)
from gateway.http.routes.messages import IdempotencyKey
from gateway.http.sse import HEADERS, Admission, EventStream
from gateway.text import clean_text

ModelName = Annotated[str, Path(max_length=64)]


@dataclass(frozen=True, slots=True)
class AdmittedCompletion:
    """One request for a completion, counted against its limits."""

    request: CompletionRequest
    desk: Desk
    message: Message
    question: Question
    history: RequestHistory
    caller: Principal
    created: int
    shows: Shows

    @property
    def language(self) -> str:
        """The language of an apology."""
        return self.message.language

    @property
    def head(self) -> Fields:
        """The attributes that every answer and every chunk begins with."""
        return {
            "id": f"chatcmpl-{self.question.message_id}",
            "created": self.created,
            "model": self.request.model,
        }


@dataclass(slots=True)
class ShownText:
    """The text of a draft that a client was sent; nothing of it can be replaced."""

    text: str = ""
    _draft: str = ""

    def extend(self, draft: Fields) -> str:
        """Return what a draft adds to the text; nothing where it does not continue it."""
        offset = draft.get("offset")
        kept = self._draft[: offset if isinstance(offset, int) else 0]
        self._draft = f"{kept}{draft.get('text')}"
        if not self._draft.startswith(self.text):
            return ""
        further = self._draft[len(self.text) :]
        self.text = self._draft
        return further


class Completions:
    """Answers in OpenAI's form; `turns` of a request's history are read."""

    def __init__(
        self, channel: HttpChannel, stopping: asyncio.Event, sender: QuestionSender, *, turns: int
    ) -> None:
        self._channel = channel
        self._stopping = stopping
        self._sender = sender
        self._turns = turns

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["OpenAI-compatible"])
        ask = Depends(require_scope(self._channel, Scope.ASK))

        @router.post("/v1/chat/completions", response_model=Completion, summary="Complete a chat")
        async def complete(
            caller: Annotated[Principal, ask],
            request: Request,
            wanted: CompletionRequest,
            idempotency_key: IdempotencyKey = None,
        ) -> Response:
            """Answer the last message; the history is the request's `messages`."""
            asked = await self._admit(caller, request, wanted, idempotency_key)
            return await (self._stream(asked) if wanted.stream else self._whole(asked))

        @router.get("/v1/models", summary="List the assistants")
        async def list_models(caller: Annotated[Principal, ask]) -> ModelList:
            """Return the assistants that the key may ask."""
            return ModelList(data=[ModelCard(id=name) for name in self._channel.assistants(caller)])

        @router.get("/v1/models/{model}", summary="Read an assistant")
        async def read_model(caller: Annotated[Principal, ask], model: ModelName) -> ModelCard:
            """Return one assistant."""
            self._desk(caller, model)
            return ModelCard(id=model)

        return router

    async def _admit(
        self,
        caller: Principal,
        request: Request,
        wanted: CompletionRequest,
        idempotency_key: str | None,
    ) -> AdmittedCompletion:
        if caller.public:
            raise ForbiddenError("completions need a secret key", code="secret_key_required")
        if (param := find_foreign_tools(wanted)) is not None:
            raise InvalidRequestError(
                f"{param}: this model calls no tools of its callers: leave the parameter out",
                code="unsupported_parameter",
                param=param,
            )
        desk = self._desk(caller, wanted.model)
        history = history_of(wanted.messages, turns=self._turns)
        key_id = caller.key_id
        name = _name(key_id, idempotency_key)
        conversation_id = wanted.conversation_id
        own = conversation_id is None
        message = Message(
            text=clean_text(history.text),
            conversation_id=f"completion-{name}" if conversation_id is None else conversation_id,
            message_id=name,
            language=choose_language(request),
            request_id=str(request.state.request_id),
            key_id=key_id,
            groups=caller.groups,
            history=history.turns if own else None,
            pause=await self._pause(desk, history, key_id) if own else None,
            shows_drafts=bool(wanted.stream) and self._channel.release == CHECKED,
            people=list_people(caller, wanted.user, "user"),
            person_name=name_person(caller, wanted.user),
        )
        question = desk.question(message)
        await check_no_chat(self._channel, question)
        await self._sender.admit(caller, question)
        shows = self._channel.shows(caller, question)
        created = int(time.time())
        return AdmittedCompletion(wanted, desk, message, question, history, caller, created, shows)

    def _desk(self, caller: Principal, model: str) -> Desk:
        if model not in self._channel.assistants(caller):
            raise InvalidRequestError(
                f"there is no such model: expected one of {self._channel.assistants(caller)}",
                code="model_not_found",
                param="model",
                status=404,
            )
        return self._channel.desk(caller, model)

    async def _pause(self, desk: Desk, history: RequestHistory, key_id: str) -> Pause | None:
        """Return the clarification that this history ends with, if it does."""
        if not history.shown:
            return None
        here = desk.name_question("-", "-")
        conversation_id = await self._channel.conversations.thread(here, history.digest(key_id))
        if conversation_id is None:
            return None
        return await self._channel.conversations.pause(desk.name_question(conversation_id, "-"))

    async def _whole(self, asked: AdmittedCompletion) -> Response:
        reply = await self._sender.ask(asked.caller, asked.desk, asked.message)
        answer = asked.shows(reply, asked.language)
        self._channel.meter.count_outcome(answer.outcome.value)
        await self._keep_thread(asked, answer)
        message = {
            "role": "assistant",
            "content": content_of(answer),
            "refusal": None,
            "annotations": annotations_of(answer),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        usage = usage_of(await self._channel.replies.read_journal(asked.question))
        return JSONResponse(
            {
                **asked.head,
                "object": "chat.completion",
                "choices": [choice],
                "usage": usage.model_dump(),
                **extensions_of(answer),
            }
        )

    async def _stream(self, asked: AdmittedCompletion) -> Response:
        admission = await self._sender.start_stream(asked.caller, asked.desk, asked.message)
        return StreamingResponse(
            self._lines(asked, admission), headers=HEADERS, media_type="text/event-stream"
        )

    async def _lines(
        self, asked: AdmittedCompletion, admission: Admission | None
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
        yield _chunk(asked, {"role": "assistant", "content": "", "refusal": None})
        sent_at = time.monotonic()
        async for events in stream.events():
            lines = [line for event in events for line in await self._chunks(asked, event, shown)]
            if lines or time.monotonic() - sent_at >= self._channel.heartbeat_seconds:
                yield "".join(lines) or ": still here\n\n"
                sent_at = time.monotonic()

    async def _chunks(
        self, asked: AdmittedCompletion, event: Event, shown: ShownText
    ) -> Sequence[str]:
        if event.name == "draft":
            further = shown.extend(event.data)
            return [_chunk(asked, {"content": further})] if further else []
        if event.name == "text" and not shown.text:
            return [_chunk(asked, {"content": event.data["text"]})]
        if event.name != "done":
            return []
        answer = Answer.model_validate(event.data)
        await self._keep_thread(asked, answer)
        correction = self._correct(answer, shown)
        begins = len(shown.text) + len(correction) if correction else 0
        rest = f"{correction}{answer.text}" if correction else answer.text[len(shown.text) :]
        lines = [_chunk(asked, {"content": rest})] if shown.text and rest else []
        return [*lines, *await self._end(asked, answer, begins)]

    def _correct(self, answer: Answer, shown: ShownText) -> str:
        """Return the lines above an answer that does not continue the draft; empty otherwise."""
        if answer.text.startswith(shown.text):
            return ""
        return f"\n\n{self._channel.words('retracted', answer.language)}\n\n"

    async def _end(self, asked: AdmittedCompletion, answer: Answer, begins: int) -> Sequence[str]:
        """Return the last chunks; the answer's text begins behind `begins` characters."""
        options = content_of(answer).removeprefix(answer.text)
        lines = [_chunk(asked, {"content": options})] if options else []
        last: Fields = {"annotations": annotations_of(answer, offset=begins)}
        lines.append(_chunk(asked, last, finish_reason="stop", **extensions_of(answer)))
        wanted = asked.request.stream_options
        if wanted is not None and wanted.include_usage:
            usage = usage_of(await self._channel.replies.read_journal(asked.question)).model_dump()
            lines.append(_line({**asked.head, "object": CHUNK, "choices": [], "usage": usage}))
        return [*lines, "data: [DONE]\n\n"]

    async def _keep_thread(self, asked: AdmittedCompletion, answer: Answer) -> None:
        """Store the digest of a history with a choice, so that its reply is recognised."""
        offers = any(action.kind == "option" for action in answer.suggested_actions)
        if answer.outcome is not Outcome.CLARIFICATION and not offers:
            return
        turns = (("user", asked.history.text), ("assistant", clean_turn(content_of(answer))))
        digest = asked.history.digest(asked.caller.key_id, *turns)
        await self._channel.conversations.put_thread(asked.question, digest)


CHUNK = "chat.completion.chunk"


def _chunk(
    asked: AdmittedCompletion,
    delta: Fields,
    *,
    finish_reason: str | None = None,
    **extensions: object,
) -> str:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _line({**asked.head, "object": CHUNK, "choices": [choice], **extensions})


def _line(data: dict[str, object]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"


def _name(key_id: str, idempotency_key: str | None) -> str:
    """Return the id of a completion; idempotency keys are separate for each API key."""
    if idempotency_key is None:
        return uuid4().hex
    named = f"{key_id}\x1f{idempotency_key}"
    return f"i-{hashlib.sha256(named.encode()).hexdigest()[:32]}"
