"""The routes with which programs add, list, remove, and sync document sources."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from gateway.api_keys import Scope
from gateway.http.access import Principal
from gateway.http.context import AssistantName, HttpChannel, require_scope
from gateway.http.errors import InvalidRequestError, unknown
from gateway.sources import Assistant, NewSource, SourceKeeper, SourceState

BASE = "/v1/sources"
SourceId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", description="id of the source")]


class SourceEntry(BaseModel):
    """A source and its state."""

    id: str
    source: str
    state: Literal["waiting", "reading", "failed", "read"] = Field(
        description="waiting: not read yet; failed: the last run could not read some or all of "
        "its documents, whose earlier versions are kept, or its schedule or entry is invalid"
    )
    progress: str = Field(
        "", description="while the source is being read: number of files read and remaining"
    )
    schedule: str = ""
    read_at: datetime | None = Field(None, description="time of the last run")
    next_at: datetime | None = Field(None, description="time of the next scheduled run")
    failed: int = Field(0, description="number of documents that the last run could not read")
    reasons: list[str] = Field([], description="some of the errors")
    left_out: list[str] = Field(
        [], description="content of the files that is not in the index, with count and reason"
    )


class SourceList(BaseModel):
    """The sources of an assistant."""

    sources: list[SourceEntry]


def sources_router(channel: HttpChannel, keeper: SourceKeeper) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["sources"])
    writer = Depends(require_scope(channel, Scope.WRITE))

    @router.get(BASE, summary="List sources")
    async def list_sources(
        caller: Annotated[Principal, writer], assistant: AssistantName = None
    ) -> SourceList:
        """Return the sources of an assistant with their states."""
        states = await run_in_threadpool(keeper.list_sources, _name(channel, caller, assistant))
        return SourceList(sources=[_show(source_state) for source_state in states])

    @router.post(BASE, status_code=201, summary="Add a source")
    async def add_source(
        caller: Annotated[Principal, writer], wanted: NewSource, assistant: AssistantName = None
    ) -> SourceEntry:
        """Add a source, or change its schedule. It is ingested on its schedule, or with `sync`."""
        own = _name(channel, caller, assistant)
        try:
            return _show(await keeper.add_source(own, wanted))
        except ValueError as error:
            raise InvalidRequestError(str(error), code="invalid_request", param="source") from error

    @router.delete(f"{BASE}/{{source_id}}", status_code=204, summary="Remove a source")
    async def remove_source(
        caller: Annotated[Principal, writer], source_id: SourceId, assistant: AssistantName = None
    ) -> Response:
        """Stop ingesting a source. Its documents are kept until they are removed."""
        own = _name(channel, caller, assistant)
        place = (await _find(keeper, own, source_id)).place
        await run_in_threadpool(keeper.forget_source, own, place)
        return Response(status_code=204)

    @router.post(f"{BASE}/{{source_id}}/sync", status_code=202, summary="Read a source now")
    async def sync_source(
        caller: Annotated[Principal, writer], source_id: SourceId, assistant: AssistantName = None
    ) -> SourceEntry:
        """Start ingesting a source, unless it is already being ingested. The list shows the
        progress.
        """
        own = _name(channel, caller, assistant)
        keeper.read_again(own, (await _find(keeper, own, source_id)).place)
        return _show(await _find(keeper, own, source_id))

    @router.post(f"{BASE}/{{source_id}}/stop", status_code=202, summary="Stop reading a source")
    async def stop_source(
        caller: Annotated[Principal, writer], source_id: SourceId, assistant: AssistantName = None
    ) -> SourceEntry:
        """Stop the current ingestion of a source, if any. The next ingestion continues where it
        stopped.
        """
        own = _name(channel, caller, assistant)
        keeper.stop_reading(own, (await _find(keeper, own, source_id)).place)
        return _show(await _find(keeper, own, source_id))

    return router


def _name(channel: HttpChannel, caller: Principal, assistant: str | None) -> Assistant:
    question = channel.desk(caller, assistant).name_question("-", "-")
    return question.tenant, question.assistant


async def _find(keeper: SourceKeeper, own: Assistant, identity: str) -> SourceState:
    for source_state in await run_in_threadpool(keeper.list_sources, own):
        if source_state.id == identity:
            return source_state
    raise unknown("source")


def _show(source_state: SourceState) -> SourceEntry:
    state: Literal["waiting", "reading", "failed", "read"] = "read"
    if source_state.is_running:
        state = "reading"
    elif source_state.has_fault:
        state = "failed"
    elif not source_state.read_at:
        state = "waiting"
    elif source_state.failed:
        state = "failed"
    return SourceEntry(
        id=source_state.id,
        source=source_state.place,
        state=state,
        progress=source_state.progress,
        schedule=source_state.schedule,
        read_at=_write_time(source_state.read_at),
        next_at=_write_time(source_state.next_at),
        failed=source_state.failed,
        reasons=list(source_state.reasons),
        left_out=list(source_state.left_out),
    )


def _write_time(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
