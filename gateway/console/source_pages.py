"""The page of the sources: their state and schedules; sources are added, read and removed."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from gateway.console.access import Assistant, ConsoleRefusedError, ConsoleRole, ConsoleUser, require
from gateway.console.frame import ConsolePart, Frame, lead, receive
from gateway.console.operation_pages import Text
from gateway.sources import LONGEST_ADDRESS, NewSource, SourceKeeper
from records.checks import CheckStore

SCHEDULES = {
    "": "only when asked",
    "0 * * * *": "every hour",
    "0 5 * * *": "every day at 5:00",
    "0 5 * * 1": "every Monday at 5:00",
}
"""Available schedules (cron, UTC) with their readable names."""


class SourcePages(ConsolePart):
    """Shows and changes the sources of an assistant, for its editors."""

    def __init__(self, frame: Frame, sources: SourceKeeper) -> None:
        self._frame = frame
        self._sources = sources

    @require(ConsoleRole.EDITOR, get="sources")
    async def show(self, request: Request, assistant: Text = "", tenant: Text = "") -> Response:
        """Show the sources of an assistant."""

        async def read(user: ConsoleUser) -> Mapping[str, Any]:
            allowed = user.list_assistants(ConsoleRole.EDITOR)
            name = (tenant, assistant) if assistant else allowed[0]
            checks = {}
            if self._frame.store is not None:
                checks = await self._frame.query(lambda store: CheckStore(store).list_checks(name))
            return {
                "name": name,
                "checks": checks,
                "named": {"tenant": name[0], "assistant": name[1]},
                "assistants": allowed,
                "sources": await run_in_threadpool(self._sources.list_sources, name),
            }

        return await self._frame.show(request, "sources.html", read, schedules=SCHEDULES)

    @require(ConsoleRole.EDITOR, post="sources/add")
    async def add(self, request: Request) -> Response:
        """Add a source, or change its schedule, and read one without a schedule now."""
        form = await receive(request, ConsoleRole.EDITOR)
        fields = {"source": form.read("source", most=LONGEST_ADDRESS),
                  "schedule": form.read("schedule")}  # fmt: skip
        try:
            added = await self._sources.add_source(form.assistant, NewSource(**fields))
        except ValidationError as error:
            raise ConsoleRefusedError(400, "Not added", "Enter the address of a source.") from error
        except ValueError as error:
            raise ConsoleRefusedError(400, "Not added", str(error)) from error
        if added.schedule:
            return _lead_back(form.assistant, "added")
        self._sources.read_again(form.assistant, added.place)
        return _lead_back(form.assistant, "syncing")

    @require(ConsoleRole.EDITOR, post="sources/read")
    async def read_again(self, request: Request) -> Response:
        """Begin to read a source."""
        form = await receive(request, ConsoleRole.EDITOR)
        is_begun = self._sources.read_again(form.assistant, form.read("place", most=2_000))
        return _lead_back(form.assistant, "syncing" if is_begun else "missing")

    @require(ConsoleRole.EDITOR, post="sources/stop")
    async def stop(self, request: Request) -> Response:
        """Stop reading a source."""
        form = await receive(request, ConsoleRole.EDITOR)
        is_stopped = self._sources.stop_reading(form.assistant, form.read("place", most=2_000))
        return _lead_back(form.assistant, "stopped" if is_stopped else "missing")

    @require(ConsoleRole.EDITOR, post="sources/remove")
    async def remove(self, request: Request) -> Response:
        """Remove a source and its documents from the index; its files stay."""
        form = await receive(request, ConsoleRole.EDITOR)
        await self._sources.remove_source(form.assistant, form.read("place", most=2_000))
        return _lead_back(form.assistant, "removed")


def _lead_back(assistant: Assistant, said: str) -> Response:
    return lead("sources", tenant=assistant[0], assistant=assistant[1], said=said)
