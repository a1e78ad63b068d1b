"""The routes of OpenAI's chat completions, and assistants as models."""

import json
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from starlette.responses import JSONResponse

from broker.values import Fields
from gateway.answer import Answer
from gateway.api_keys import Scope
from gateway.http.access import Principal
from gateway.http.context import HttpChannel, require_scope
from gateway.http.routes.completion_form import (
    Completion,
    CompletionRequest,
    CompletionUsage,
    ModelCard,
    ModelList,
    annotations_of,
    content_of,
    extensions_of,
    find_foreign_tools,
)
from gateway.http.routes.messages import IdempotencyKey
from gateway.http.routes.openai_questions import AdmittedRequest, OpenAiQuestions, WantedAnswer

ModelName = Annotated[str, Path(max_length=64)]
CHUNK = "chat.completion.chunk"


class Completions:
    """Answers in the format of OpenAI."""

    def __init__(self, channel: HttpChannel, questions: OpenAiQuestions) -> None:
        self._channel = channel
        self._questions = questions

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
            """Answer the last message. The history consists of the `messages` in the request."""
            asked = await self._questions.admit(caller, request, _read(wanted, idempotency_key))
            if wanted.stream:
                return await self._questions.stream(asked, ChunkForm(asked, wanted))
            return JSONResponse(_show(asked, *await self._questions.answer(asked)))

        @router.get("/v1/models", summary="List the assistants")
        async def list_models(caller: Annotated[Principal, ask]) -> ModelList:
            """Return the assistants that the key may use."""
            return ModelList(data=[ModelCard(id=name) for name in self._channel.assistants(caller)])

        @router.get("/v1/models/{model}", summary="Read an assistant")
        async def read_model(caller: Annotated[Principal, ask], model: ModelName) -> ModelCard:
            """Return one assistant."""
            self._questions.find_desk(caller, model)
            return ModelCard(id=model)

        return router


@dataclass(frozen=True, slots=True)
class ChunkForm:
    """The `StreamForm` of a completion: formats its chunks."""

    asked: AdmittedRequest
    request: CompletionRequest

    def begin(self) -> str:
        return self._write({"role": "assistant", "content": "", "refusal": None})

    def add(self, text: str) -> str:
        return self._write({"content": text})

    def end(self, answer: Answer, begins: int, usage: CompletionUsage) -> str:
        annotations: Fields = {"annotations": annotations_of(answer, offset=begins)}
        lines = [self._write(annotations, finish_reason="stop", **extensions_of(answer))]
        wanted = self.request.stream_options
        if wanted is not None and wanted.include_usage:
            shown: Fields = {"choices": [], "usage": usage.model_dump()}
            lines.append(_line({**_head(self.asked), "object": CHUNK, **shown}))
        return "".join([*lines, "data: [DONE]\n\n"])

    def _write(self, delta: Fields, *, finish_reason: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _line({**_head(self.asked), "object": CHUNK, "choices": [choice], **more})


def _read(wanted: CompletionRequest, idempotency_key: str | None) -> WantedAnswer:
    return WantedAnswer(
        "completion",
        wanted.model,
        wanted.messages,
        bool(wanted.stream),
        wanted.conversation_id,
        user=wanted.user,
        foreign_tool=find_foreign_tools(wanted),
        idempotency_key=idempotency_key,
    )


def _head(asked: AdmittedRequest) -> Fields:
    """Return the attributes at the beginning of every response and every chunk."""
    name = f"chatcmpl-{asked.question.message_id}"
    return {"id": name, "created": asked.created, "model": asked.model}


def _show(asked: AdmittedRequest, answer: Answer, usage: CompletionUsage) -> Fields:
    message: Fields = {
        "role": "assistant",
        "content": content_of(answer),
        "refusal": None,
        "annotations": annotations_of(answer),
    }
    choice: Fields = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        **_head(asked),
        "object": "chat.completion",
        "choices": [choice],
        "usage": usage.model_dump(),
        **extensions_of(answer),
    }


def _line(data: dict[str, object]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
