"""Assembles the HTTP application, its probes and its metrics.

| metric                       | labels        | meaning                             |
|------------------------------|---------------|-------------------------------------|
| refdesk_http_requests_total  | route, status | requests that were answered         |
| refdesk_http_seconds         | route         | until the answer's last byte        |
| refdesk_http_streams         |               | event streams that are open         |
| refdesk_http_outcomes_total  | outcome       | answers that were shown             |
| refdesk_feedback_total       | rating        | ratings of answers: `up`, `down`    |
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from broker.errors import BrokerUnavailableError
from envelope.question import Question
from gateway.api_keys import Scope
from gateway.connections.bodies import BufferBudget
from gateway.http.access import Principal
from gateway.http.admission_queue import AdmissionQueue, QuestionSender
from gateway.http.context import HttpChannel, require_scope
from gateway.http.errors import Failure, add_error_handlers
from gateway.http.library import CallersLibrary, SearchRoutes
from gateway.http.middleware import Authentication, BodyLimit, HasSession, Origins, RequestLog
from gateway.http.routes.api_page import api_page_router
from gateway.http.routes.attachments import AttachmentRoutes
from gateway.http.routes.completions import Completions
from gateway.http.routes.conversations import Reading, opening_router
from gateway.http.routes.handover import handover_router, is_reply_path
from gateway.http.routes.messages import Messages
from gateway.http.routes.openai_questions import OpenAiQuestions
from gateway.http.routes.responses import Responses
from gateway.http.routes.reviews import ReviewParts, ReviewRoutes
from gateway.port import SearchableLibrary
from gateway.public_path import PublicPath

PROBE_SECONDS = 2.0
NOBODY = Question(tenant="probe", assistant="probe", conversation_id="-", message_id="-")
BODY_BYTES = 512 * 1024
DESCRIPTION = """\
Ask questions, and receive answers that say only what the documents say and cite the source of every
claim. docs/http.md describes events, keys and limits.

Ask with curl, where `REFDESK_KEY` is a key of `refdesk keys create`:

```bash
curl http://127.0.0.1:8000/v1/conversations/c-1/messages \\
  -H "Authorization: Bearer $REFDESK_KEY" -H "Content-Type: application/json" \\
  -d '{"text": "How do I configure routing rules?"}'
```

Ask with Python, and print the answer with its sources:

```python
import json
import os
from urllib.request import Request, urlopen

request = Request(
    "http://127.0.0.1:8000/v1/conversations/c-1/messages",
    json.dumps({"text": "How do I configure routing rules?"}).encode(),
    {"Authorization": f"Bearer {os.environ['REFDESK_KEY']}", "Content-Type": "application/json"},
)
with urlopen(request) as response:
    answer = json.load(response)
print(answer["text"])
for source in answer["sources"]:
    print(f"[{source['number']}] {source['title']}")
```
"""


@dataclass(frozen=True, slots=True)
class MountedEndpoint:
    """An application at one path, which answers POST requests while `running`."""

    path: str
    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[None]]


MakeEndpoint = Callable[[QuestionSender], MountedEndpoint]
REFUSALS = ("400", "401", "403", "404", "408", "409", "410", "413", "414", "415", "429", "503")
"""Error statuses that every route can return."""


class Health(BaseModel):
    """The state of the process."""

    status: str = Field(examples=["ready"])


class Readiness(Health):
    """Whether the process serves requests, and whether it can accept questions."""

    accepting: bool = Field(
        description="false: requests are answered, but Redis stores no new question"
    )
    reason: str = Field(default="", description="why no question can be accepted")


@dataclass(frozen=True, slots=True)
class HttpApplication:
    """The application and its routes; it handles requests while `running`."""

    app: ASGIApp
    routes: Sequence[BaseRoute]
    running: Callable[[], AbstractAsyncContextManager[None]] = field(default=nullcontext)


def health_router(
    channel: HttpChannel, registry: CollectorRegistry, stopping: asyncio.Event
) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["operation"])

    @router.get("/healthz", summary="Check whether the process is alive")
    async def healthz() -> Health:
        """Respond, which shows that the process is alive."""
        return Health(status="alive")

    @router.get(
        "/readyz",
        summary="Check whether the process can accept messages",
        responses={200: {"model": Readiness}, 503: {"model": Readiness}},
    )
    async def readyz() -> Response:
        """Return status 200 while Redis responds and the process is not stopping.

        `accepting` is false while questions cannot be accepted, for example because the memory of
        Redis is full. Earlier answers can still be read.
        """
        shown = await _readiness(channel, stopping)
        return JSONResponse(shown.model_dump(), 200 if shown.status == "ready" else 503)

    @router.get("/metrics", summary="Metrics in the format of Prometheus", response_class=Response)
    async def metrics(
        _caller: Annotated[Principal, Depends(require_scope(channel, Scope.METRICS))],
    ) -> Response:
        """Return counters in the Prometheus format."""
        # In a thread, because the figures of Redis are read by this event loop meanwhile.
        page = await asyncio.to_thread(generate_latest, registry)
        return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})

    return router


def make_app(
    channel: HttpChannel,
    *,
    stopping: asyncio.Event,
    registry: CollectorRegistry,
    patience_seconds: float = 20.0,
    turns: int = 6,
    unavailable: Sequence[type[Exception]] = (),
    others: Sequence[APIRouter] = (),
    reviews: ReviewParts | None = None,
    has_session: HasSession | None = None,
    library: SearchableLibrary | None = None,
    mcp: MakeEndpoint | None = None,
    path: str = "",
) -> HttpApplication:
    """Return the application; `others` contains additional routes.

    At most `turns` turns of a request's own history are read; `unavailable` are the errors of
    stores that do not respond. When `stopping` is set, waiting requests end, so that clients
    continue at another process. `reviews` contains the dependencies of reviews and conversation
    documents, or is None to disable them. `library` is searched on behalf of other programs, and
    `mcp` returns the MCP endpoint. Callers are checked before a body is read; `has_session` checks
    users of the console. `path` is the path of the public URL, such as `/desk`.
    """
    app = FastAPI(
        title="Refdesk",
        version="1",
        servers=[{"url": path}] if path else None,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        # A redirect would lead to any host that the request names.
        redirect_slashes=False,
        responses={"default": {"model": Failure, "description": "an error"}},
    )
    add_error_handlers(app, unavailable=unavailable)
    patience = AdmissionQueue(stopping, seconds=patience_seconds)
    sender = QuestionSender(channel, stopping, patience)
    questions = OpenAiQuestions(channel, stopping, sender, turns=turns)
    routers = (
        opening_router(channel),
        Messages(channel, stopping, sender).router(),
        Reading(channel).router(),
        Completions(channel, questions).router(),
        Responses(channel, questions).router(),
        handover_router(channel, sender),
        health_router(channel, registry, stopping),
        api_page_router(),
        *others,
        *_make_review_routers(channel, stopping, sender, reviews),
        *_make_library_routers(channel, library),
    )
    for router in routers:
        app.include_router(router)
    app.openapi = lambda: describe_api(app)  # type: ignore[method-assign] # as FastAPI wants it
    endpoint = None if mcp is None else mcp(sender)
    if endpoint is not None:
        app.routes.append(
            Route(endpoint.path, endpoint.app, methods=["POST"], include_in_schema=False)
        )
    routes = [route for router in routers for route in router.routes]
    limited = BodyLimit(app, longest_bytes=BODY_BYTES, budget=BufferBudget())
    known = Authentication(
        limited,
        channel.guard,
        unavailable=unavailable,
        has_session=has_session,
        is_signed=partial(is_reply_path, channel.handover),
    )
    logged = RequestLog(Origins(known), meter=channel.meter)
    return HttpApplication(
        PublicPath(logged, path) if path else logged,
        routes,
        nullcontext if endpoint is None else endpoint.running,
    )


def describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, in which all errors have the same format.

    The framework's description of an invalid request (422, in a different format) is removed.
    """
    schema: dict[str, Any] = FastAPI.openapi(app)
    for path in schema["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            responses.pop("422", None)
            general = responses.pop("default", None)
            for status in REFUSALS if general else ():
                responses.setdefault(status, general)
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)
    return schema


async def _readiness(channel: HttpChannel, stopping: asyncio.Event) -> Readiness:
    if stopping.is_set():
        return Readiness(status="shutting_down", accepting=False)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await channel.replies.read_reply(NOBODY)
            fault = await channel.find_write_fault()
    except (BrokerUnavailableError, TimeoutError):
        return Readiness(status="redis_unavailable", accepting=False)
    reason = f"Redis refuses writes: {fault}" if fault else ""
    return Readiness(status="ready", accepting=not fault, reason=reason)


def _make_review_routers(
    channel: HttpChannel,
    stopping: asyncio.Event,
    sender: QuestionSender,
    parts: ReviewParts | None,
) -> Sequence[APIRouter]:
    if parts is None:
        return ()
    return (
        AttachmentRoutes(channel, parts.attachments).router(),
        ReviewRoutes(channel, stopping, sender, parts).router(),
    )


def _make_library_routers(
    channel: HttpChannel, library: SearchableLibrary | None
) -> Sequence[APIRouter]:
    if library is None:
        return ()
    return (SearchRoutes(channel, CallersLibrary(channel, library)).router(),)
