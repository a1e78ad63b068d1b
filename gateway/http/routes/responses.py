"""The route for OpenAI's responses, with answers as items that are streamed as events.

The desk stores a conversation, unless `store` is false in its first request, so that a request can
refer to an earlier response as `previous_response_id`. A client that sends its history stores the
conversation itself.
"""

import json
from dataclasses import dataclass, field
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field, JsonValue, StringConstraints
from starlette.responses import JSONResponse

from broker.values import Fields
from gateway.answer import Answer
from gateway.api_keys import Scope
from gateway.http.access import Principal
from gateway.http.context import ID, HttpChannel, require_scope
from gateway.http.errors import InvalidRequestError
from gateway.http.routes.completion_form import (
    ChatMessage,
    CompletionUsage,
    ContentPart,
    annotations_of,
    content_of,
    extensions_of,
)
from gateway.http.routes.messages import IdempotencyKey
from gateway.http.routes.openai_questions import AdmittedRequest, OpenAiQuestions, WantedAnswer
from gateway.person_tokens import LONGEST_PERSON

TEXTS = {"input_text": "text", "output_text": "text"}
"""Content types, mapped to their names in chat completions."""


class InputMessage(BaseModel, frozen=True, extra="ignore"):
    """A message in the input; items with any other `type` are rejected."""

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: str | Annotated[list[ContentPart], Field(max_length=100)] = ""


class NamedConversation(BaseModel, frozen=True, extra="ignore"):
    """A conversation that the desk stores."""

    id: str = Field(pattern=ID)


class ResponseRequest(BaseModel, frozen=True, extra="ignore"):
    """A request. Model parameters (temperature, instructions) have no effect."""

    model: str = Field(max_length=64, examples=["default"])
    input: str | Annotated[list[InputMessage], Field(min_length=1, max_length=500)] = Field(
        examples=["How do I configure routing rules?"]
    )
    stream: bool | None = False
    store: bool | None = True
    previous_response_id: str | None = Field(None, max_length=200)
    conversation: NamedConversation | Annotated[str, StringConstraints(pattern=ID)] | None = None
    tools: JsonValue = Field(None, description="not supported: Refdesk only calls its own tools")
    background: Literal[False] | None = None
    user: str | None = Field(None, max_length=LONGEST_PERSON, description="id of the user")
    safety_identifier: str | None = Field(
        None, max_length=LONGEST_PERSON, description="newer name of `user`"
    )


class ResponseObject(BaseModel, extra="allow"):
    """An answer; `sources` and `refdesk` are extensions."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: str
    model: str
    output: list[dict[str, JsonValue]]


class Responses:
    """Answers in the format of OpenAI's responses."""

    def __init__(self, channel: HttpChannel, questions: OpenAiQuestions) -> None:
        self._channel = channel
        self._questions = questions

    def router(self) -> APIRouter:
        """Return the route."""
        router = APIRouter(tags=["OpenAI-compatible"])
        ask = Depends(require_scope(self._channel, Scope.ASK))

        @router.post("/v1/responses", response_model=ResponseObject, summary="Create a response")
        async def create_response(
            caller: Annotated[Principal, ask],
            request: Request,
            wanted: ResponseRequest,
            idempotency_key: IdempotencyKey = None,
        ) -> Response:
            """Answer the last message of the input, or continue an earlier response."""
            read = await self._read(caller, wanted, idempotency_key)
            asked = await self._questions.admit(caller, request, read)
            form = EventForm(asked, wanted)
            if wanted.stream:
                return await self._questions.stream(asked, form, form.id)
            answer, usage = await self._questions.answer(asked, form.id)
            return JSONResponse(form.show(answer, usage))

        return router

    async def _read(
        self, caller: Principal, wanted: ResponseRequest, idempotency_key: str | None
    ) -> WantedAnswer:
        named = wanted.conversation
        conversation_id = named.id if isinstance(named, NamedConversation) else named
        if wanted.previous_response_id is not None:
            if conversation_id is not None:
                raise InvalidRequestError(
                    "`previous_response_id` and `conversation` cannot be used together",
                    code="mutually_exclusive_parameters",
                    param="conversation",
                )
            desk = self._questions.find_desk(caller, wanted.model)
            conversation_id = await self._questions.find_conversation(
                caller, desk, wanted.previous_response_id
            )
        return WantedAnswer(
            "response",
            wanted.model,
            _list_messages(wanted),
            bool(wanted.stream),
            conversation_id,
            is_kept=wanted.store is not False,
            user=wanted.user if wanted.user is not None else wanted.safety_identifier,
            foreign_tool=None if wanted.tools in (None, []) else "tools",
            idempotency_key=idempotency_key,
        )


@dataclass(slots=True)
class EventForm:
    """The `StreamForm` of a response: formats its events and the response itself."""

    asked: AdmittedRequest
    request: ResponseRequest
    _text: str = ""
    _number: int = 0
    _place: Fields = field(init=False)

    def __post_init__(self) -> None:
        """Set the id of the single output item and of its single content part."""
        item_id = f"msg_{self.asked.question.message_id}"
        self._place = {"item_id": item_id, "output_index": 0, "content_index": 0}

    @property
    def id(self) -> str:
        """The id of the response."""
        return f"resp_{self.asked.question.message_id}"

    def show(self, answer: Answer, usage: CompletionUsage) -> Fields:
        """Return the response with its answer."""
        part = _content(content_of(answer), _list_annotations(answer, 0))
        return self._complete(answer, usage, part)

    def begin(self) -> str:
        response = self._response("in_progress", [])
        item = self._item("in_progress", [])
        return "".join(
            [
                self._write("created", response=response),
                self._write("in_progress", response=response),
                self._write("output_item.added", output_index=0, item=item),
                self._write("content_part.added", **self._place, part=_content("", [])),
            ]
        )

    def add(self, text: str) -> str:
        self._text += text
        return self._write("output_text.delta", **self._place, delta=text, logprobs=[])

    def end(self, answer: Answer, begins: int, usage: CompletionUsage) -> str:
        annotations = _list_annotations(answer, begins)
        part = _content(self._text, annotations)
        cited = [
            self._write(
                "output_text.annotation.added",
                **self._place,
                annotation_index=at,
                annotation=annotation,
            )
            for at, annotation in enumerate(annotations)
        ]
        item = self._item("completed", [part])
        return "".join(
            [
                *cited,
                self._write("output_text.done", **self._place, text=self._text, logprobs=[]),
                self._write("content_part.done", **self._place, part=part),
                self._write("output_item.done", output_index=0, item=item),
                self._write("completed", response=self._complete(answer, usage, part)),
            ]
        )

    def _complete(self, answer: Answer, usage: CompletionUsage, part: Fields) -> Fields:
        counted: Fields = {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.total_tokens,
        }
        response = self._response("completed", [self._item("completed", [part])])
        return {**response, "usage": counted, **extensions_of(answer)}

    def _response(self, status: str, output: list[JsonValue]) -> Fields:
        kept = self.asked.message.conversation_id
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.asked.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": self.asked.model,
            "output": output,
            "parallel_tool_calls": False,
            "temperature": None,
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "text": {"format": {"type": "text"}},
            "previous_response_id": self.request.previous_response_id,
            "conversation": {"id": kept} if self.asked.is_kept else None,
            "store": self.asked.is_kept,
            "usage": None,
        }

    def _item(self, status: str, content: list[JsonValue]) -> Fields:
        return {
            "id": self._place["item_id"],
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _write(self, name: str, **data: JsonValue) -> str:
        event = {"type": f"response.{name}", "sequence_number": self._number, **data}
        self._number += 1
        written = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        return f"event: response.{name}\ndata: {written}\n\n"


def _list_messages(wanted: ResponseRequest) -> list[ChatMessage]:
    if isinstance(wanted.input, str):
        return [ChatMessage(role="user", content=wanted.input)]
    messages = []
    for message in wanted.input:
        if message.type != "message":
            raise InvalidRequestError(
                f"expected items of the type 'message', found {message.type!r:.80}",
                code="unsupported_content",
                param="input",
            )
        content = message.content
        if not isinstance(content, str):
            content = [
                ContentPart(type=TEXTS.get(part.type, part.type), text=part.text)
                for part in content
            ]
        messages.append(ChatMessage(role=message.role, content=content))
    return messages


def _content(text: str, annotations: list[JsonValue]) -> Fields:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _list_annotations(answer: Answer, begins: int) -> list[JsonValue]:
    """Return the citations in the format of responses, without the nesting of chat completions."""
    listed = annotations_of(answer, offset=begins)
    annotations = [citation["url_citation"] for citation in listed if isinstance(citation, dict)]
    return [
        {"type": "url_citation", **citation}
        for citation in annotations
        if isinstance(citation, dict)
    ]
