"""The page of sources: their state and schedules, and forms to add, read and remove them."""

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from gateway.console.access import (
    ConsoleRefusedError,
    ConsoleRole,
    fields_of,
    require,
    user_of,
)
from gateway.console.frame import ConsolePart, Frame, lead, receive
from gateway.console.operation_pages import Text
from gateway.sources import LONGEST_ADDRESS, NewSource, SourceKeeper
from records.checks import CheckStore

SCHEDULES = {
    "": "only on request",
    "0 * * * *": "every hour",
    "0 5 * * *": "every day at 5:00",
    "0 5 * * 1": "every Monday at 5:00",
}
"""Available schedules (cron, UTC) with readable names."""


class SourcePages(ConsolePart):
    """Shows and changes the sources of an assistant, for its editors."""

    def __init__(self, frame: Frame, sources: SourceKeeper) -> None:
        self._frame = frame
        self._sources = sources

    @require(ConsoleRole.EDITOR, get="sources")
    async def show(self, request: Request, assistant: Text = "", tenant: Text = "") -> Response:
        """Show the sources of an assistant."""
        user = user_of(request)
        name = user.choose(tenant, assistant)
        checks = {}
        if self._frame.store is not None:
            checks = await self._frame.query(lambda store: CheckStore(store).list_checks(name))
        return self._frame.show(
            request,
            "sources.html",
            named=fields_of(name),
            assistants=user.list_assistants(ConsoleRole.EDITOR),
            sources=await run_in_threadpool(self._sources.list_sources, name),
            checks=checks,
            schedules=SCHEDULES,
        )

    @require(ConsoleRole.EDITOR, post="sources/add")
    async def add(self, request: Request) -> Response:
        """Add a source, or change its schedule; a source without a schedule is read immediately."""
        form = await receive(request, ConsoleRole.EDITOR)
        fields = {"source": form.read("source", most=LONGEST_ADDRESS),
                  "schedule": form.read("schedule")}  # fmt: skip
        try:
            added = await self._sources.add_source(form.assistant, NewSource(**fields))
        except ValidationError as error:
            raise ConsoleRefusedError(400, "Not added", "Enter the address of a source.") from error
        except ValueError as error:
            raise ConsoleRefusedError(400, "Not added", str(error)) from error
        if not added.schedule:
            self._sources.read_again(form.assistant, added.place)
        return lead("sources", form.assistant, said="added" if added.schedule else "syncing")

    @require(ConsoleRole.EDITOR, post="sources/read")
    async def read_again(self, request: Request) -> Response:
        """Start reading a source."""
        form = await receive(request, ConsoleRole.EDITOR)
        is_begun = self._sources.read_again(form.assistant, form.read("place", most=2_000))
        return lead("sources", form.assistant, said="syncing" if is_begun else "missing")

    @require(ConsoleRole.EDITOR, post="sources/stop")
    async def stop(self, request: Request) -> Response:
        """Stop reading a source."""
        form = await receive(request, ConsoleRole.EDITOR)
        is_stopped = self._sources.stop_reading(form.assistant, form.read("place", most=2_000))
        return lead("sources", form.assistant, said="stopped" if is_stopped else "missing")

    @require(ConsoleRole.EDITOR, post="sources/remove")
    async def remove(self, request: Request) -> Response:
        """Remove a source, and its documents from the index; its files are kept."""
        form = await receive(request, ConsoleRole.EDITOR)
        await self._sources.remove_source(form.assistant, form.read("place", most=2_000))
        return lead("sources", form.assistant, said="removed")
