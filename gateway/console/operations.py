"""Adds, reads and removes the sources of assistants, for the console and the API."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from broker.background_jobs import BackgroundJobs, cancel_until_done
from gateway.console.access import Assistant
from gateway.console.operation_pages import ShownSetting
from gateway.documents.catalog import OwnedCatalog
from gateway.documents.uploads import Uploads
from gateway.sources import NewSource, SourceState
from knowledge.documents.formats import SUFFIXES
from knowledge.errors import SourceError
from knowledge.ingestion_report import ProgressReport
from knowledge.source_registry import (
    RegisteredSource,
    SourceRegistry,
    SourceSpec,
    admit_over_http,
    check_schedule,
    check_website,
    parse_source,
)

_LONGEST_NAME = 120

Refresh = Callable[[Assistant, RegisteredSource, ProgressReport], Awaitable[None]]
"""Reads a source of an assistant again, and records the result."""


@dataclass(frozen=True, slots=True)
class AssistantSources:
    """The sources of one assistant; `admitted` are the locations that can be added over HTTP."""

    registry: SourceRegistry
    uploads: Uploads
    admitted: Sequence[str]


class ConsoleOperations:
    """A `gateway.console.operation_pages.Operations` that reads sources one at a time, in `tasks`.

    Documents are ingested by the process that owns the index; websites are crawled by this process.
    """

    def __init__(
        self,
        sources: Mapping[Assistant, AssistantSources],
        catalog: OwnedCatalog,
        refresh: Refresh,
        read_settings: Callable[[], Sequence[ShownSetting]],
        jobs: BackgroundJobs,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._sources = sources
        self._catalog = catalog
        self._refresh = refresh
        self._read_settings = read_settings
        self._jobs = jobs
        self._tasks = tasks
        self._running: dict[tuple[Assistant, str], tuple[ProgressReport, asyncio.Task[bool]]] = {}
        self._turn = asyncio.Lock()

    def list_sources(self, assistant: Assistant) -> Sequence[SourceState]:
        states = [
            SourceState(
                assistant,
                source.spec.root,
                source.read_at,
                source.failed,
                (source.fault, *source.reasons) if source.fault else source.reasons,
                [str(part) for part in source.left_out],
                has_fault=bool(source.fault),
                is_own=source.spec.root == str(self._sources[assistant].uploads.folder),
                is_running=(assistant, source.spec.root) in self._running,
                progress=self._show_progress(assistant, source.spec.root),
                id=source.id,
                schedule=source.schedule,
                next_at=source.next_at(),
            )
            for source in self._sources[assistant].registry.read().sources
            if (source.tenant, source.assistant) == assistant
        ]
        return sorted(states, key=lambda item: item.place)

    def read_again(self, assistant: Assistant, place: str) -> bool:
        specs = self._sources[assistant].registry.list_specs()
        spec = next((source_spec for source_spec in specs if source_spec.root == place), None)
        if spec is None or (assistant, place) in self._running:
            return False
        self._begin(assistant, spec)
        return True

    def stop_reading(self, assistant: Assistant, place: str) -> bool:
        """Stop reading a source; documents that were read are kept. False if it is not being
        read.
        """
        running = self._running.get((assistant, place))
        return running is not None and running[1].cancel()

    async def add_source(self, assistant: Assistant, wanted: NewSource) -> SourceState:
        """Add a source, or change its schedule; raises `ValueError` if it is not valid."""
        own = self._sources[assistant]
        options = wanted.model_dump(exclude={"source", "schedule"})
        try:
            spec = parse_source(wanted.source, **options)
            spec = admit_over_http(spec, own.admitted)
            schedule = check_schedule(wanted.schedule)
            await check_website(spec)
            await asyncio.to_thread(own.registry.add, spec, schedule)
        except SourceError as error:
            raise ValueError(str(error)) from error
        return next(source for source in self.list_sources(assistant) if source.place == spec.root)

    def forget_source(self, assistant: Assistant, place: str) -> bool:
        """Remove a source from the list, and return whether it was in the list; its documents are
        kept.
        """
        return self._sources[assistant].registry.forget(place)

    async def upload(self, assistant: Assistant, name: str, data: bytes) -> None:
        plain = Path(name.replace("\\", "/")).name
        kept = "".join(sign if sign.isalnum() or sign in " ._-" else "_" for sign in plain).lstrip(
            ". "
        )
        if len(kept) > _LONGEST_NAME or Path(kept).suffix.lower() not in SUFFIXES:
            raise ValueError(f"Expected a document ({' '.join(sorted(SUFFIXES))}), found {name!r}.")
        uploads = self._sources[assistant].uploads
        if fault := uploads.find_fault(kept):
            raise ValueError(fault)
        await asyncio.to_thread(uploads.keep, kept, data)
        if (assistant, str(uploads.folder)) not in self._running:
            self._begin(assistant, SourceSpec(place=str(uploads.folder)))

    def read_file(self, assistant: Assistant, name: str) -> str | None:
        """Return the text of a file that was written for an assistant; None if there is none."""
        return self._sources[assistant].uploads.read(name)

    async def remove_source(self, assistant: Assistant, place: str) -> int:
        registry = self._sources[assistant].registry
        known = registry.list_own()
        if not any(source.spec.root == place for source in known):
            return 0
        count = await self._catalog.remove_source(*assistant, place)
        registry.forget(place)
        return count

    def list_settings(self) -> Sequence[ShownSetting]:
        return self._read_settings()

    def _show_progress(self, assistant: Assistant, place: str) -> str:
        running = self._running.get((assistant, place))
        return "" if running is None else running[0].format()

    def _begin(self, assistant: Assistant, spec: SourceSpec) -> None:
        report, key = ProgressReport(), (assistant, spec.root)
        read = partial(self._read, assistant, spec, report)
        task = self._tasks.create_task(self._jobs.attempt("source_reading", read))
        self._running[key] = report, task
        task.add_done_callback(lambda _: self._running.pop(key))

    async def stop(self) -> None:
        """Cancel running reads."""
        await cancel_until_done([task for _, task in self._running.values()])

    async def _read(self, assistant: Assistant, spec: SourceSpec, report: ProgressReport) -> None:
        tenant, name = assistant
        source = RegisteredSource(tenant=tenant, assistant=name, spec=spec, read_at=time.time())
        async with self._turn:
            await self._refresh(assistant, source, report)
