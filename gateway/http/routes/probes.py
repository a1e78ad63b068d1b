"""The routes for operators: health, readiness and metrics."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from broker.errors import BrokerUnavailableError
from envelope.question import Question
from gateway.api_keys import Scope
from gateway.http.access import Principal
from gateway.http.context import HttpChannel, require_scope

PROBE_SECONDS = 2.0
NOBODY = Question(tenant="probe", assistant="probe", conversation_id="-", message_id="-")


class Health(BaseModel):
    """The state of the process."""

    status: str = Field(examples=["ready"])


def health_router(
    channel: HttpChannel, registry: CollectorRegistry, stopping: asyncio.Event
) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["operation"])

    @router.get("/healthz", summary="Check whether the process is alive")
    async def healthz() -> Health:
        """Answer."""
        return Health(status="alive")

    @router.get(
        "/readyz",
        summary="Check whether the process can accept messages",
        responses={503: {"model": Health}},
    )
    async def readyz() -> Response:
        """Answer 200 when Redis does, and the process does not stop."""
        reason = "shutting_down" if stopping.is_set() else await _away(channel)
        shown = Health(status=reason or "ready")
        return JSONResponse(shown.model_dump(), 503 if reason else 200)

    @router.get("/metrics", summary="Metrics in the format of Prometheus", response_class=Response)
    async def metrics(
        _caller: Annotated[Principal, Depends(require_scope(channel, Scope.METRICS))],
    ) -> Response:
        """Return counters in Prometheus' form."""
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return router


async def _away(channel: HttpChannel) -> str:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await channel.replies.read_reply(NOBODY)
    except (BrokerUnavailableError, TimeoutError):
        return "redis_unavailable"
    return ""
