"""The operations on sources in the console, and the settings that it shows."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from config.env_file import find_env_file, read_names
from config.settings import Settings
from deploy.assembly.gateways.document_catalog import OwnedCatalog
from deploy.assembly.runtime import Runtime
from deploy.assembly.source_refresh import refresh_source
from deploy.assembly.source_registry import RegisteredSource, SourceRegistry, SourceSpec
from deploy.assembly.uploads import Uploads
from deploy.logging_setup import secrets_of
from gateway.console.access import Assistant
from gateway.console.operation_pages import ShownSetting, SourceState
from knowledge.documents.formats import SUFFIXES

_LONGEST_NAME = 120
_LONGEST_VALUE = 300
HIDDEN = "[secret]"


class ConsoleOperations:
    """A `gateway.console.operation_pages.Operations`; sources are read in `tasks`, one at a time.

    The process that owns the index reads them; websites are crawled by this one.
    """

    def __init__(self, runtime: Runtime, catalog: OwnedCatalog, tasks: asyncio.TaskGroup) -> None:
        self._runtime = runtime
        self._catalog = catalog
        self._tasks = tasks
        self._settings = {
            (one.tenant, one.assistant): one for one in runtime.settings.of_assistants()
        }
        self._running: set[tuple[Assistant, str]] = set()
        self._reading: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()

    def list_sources(self, assistant: Assistant) -> Sequence[SourceState]:
        found = [
            SourceState(
                assistant,
                one.spec.root,
                one.read_at,
                one.failed,
                one.reasons,
                is_running=(assistant, one.spec.root) in self._running,
            )
            for one in SourceRegistry(self._settings[assistant]).read().sources
            if (one.tenant, one.assistant) == assistant
        ]
        return sorted(found, key=lambda one: one.place)

    def read_again(self, assistant: Assistant, place: str) -> bool:
        specs = SourceRegistry(self._settings[assistant]).list_specs()
        spec = next((one for one in specs if one.root == place), None)
        if spec is None or (assistant, place) in self._running:
            return False
        self._begin(assistant, spec)
        return True

    async def upload(self, assistant: Assistant, name: str, data: bytes) -> None:
        settings = self._settings[assistant]
        plain = Path(name.replace("\\", "/")).name
        kept = "".join(one if one.isalnum() or one in " ._-" else "_" for one in plain).lstrip(". ")
        if len(kept) > _LONGEST_NAME or Path(kept).suffix.lower() not in SUFFIXES:
            raise ValueError(f"Expected a document ({' '.join(sorted(SUFFIXES))}), found {name!r}.")
        uploads = Uploads(settings)
        await asyncio.to_thread(uploads.keep, kept, data)
        if (assistant, str(uploads.folder)) not in self._running:
            self._begin(assistant, SourceSpec(place=str(uploads.folder)))

    async def remove_source(self, assistant: Assistant, place: str) -> int:
        settings = self._settings[assistant]
        specs = SourceRegistry(settings).list_specs()
        if not any(one.root == place for one in specs):
            return 0
        count = await self._catalog.remove_source(*assistant, place)
        SourceRegistry(settings).forget(place)
        return count

    def list_settings(self) -> Sequence[ShownSetting]:
        return list_settings(self._runtime.settings)

    def _begin(self, assistant: Assistant, spec: SourceSpec) -> None:
        self._running.add((assistant, spec.root))
        task = self._tasks.create_task(self._read(assistant, spec))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    def stop(self) -> None:
        """Cancel running reads."""
        for task in self._reading:
            task.cancel()

    async def _read(self, assistant: Assistant, spec: SourceSpec) -> None:
        tenant, name = assistant
        source = RegisteredSource(tenant=tenant, assistant=name, spec=spec, read_at=time.time())
        try:
            async with self._turn:
                await refresh_source(self._runtime, self._settings[assistant], source)
        finally:
            self._running.discard((assistant, spec.root))


@asynccontextmanager
async def operating(runtime: Runtime, catalog: OwnedCatalog) -> AsyncIterator[ConsoleOperations]:
    """Provide the operations; what is being read when the process stops is read again later."""
    async with asyncio.TaskGroup() as tasks:
        operations = ConsoleOperations(runtime, catalog, tasks)
        try:
            yield operations
        finally:
            operations.stop()


def list_settings(settings: Settings) -> list[ShownSetting]:
    """Return every setting with its value in force and where it comes from, without secrets."""
    file = find_env_file()
    held = {} if file is None else read_names(Settings, file)
    environment = {name.upper() for name in os.environ}
    secrets = sorted(secrets_of(settings), key=len, reverse=True)
    shown = []
    for name, about in Settings.model_fields.items():
        upper = name.upper()
        origin = "default"
        if upper in environment:
            origin = "environment"
        elif file is not None and upper in held:
            origin = str(file.path)
        value = _describe_value(getattr(settings, name), secrets)
        shown.append(ShownSetting(upper, value, origin, about.description or ""))
    return sorted(shown, key=lambda one: one.name)


def _describe_value(value: object, secrets: Sequence[str]) -> str:
    if isinstance(value, SecretStr):
        return HIDDEN
    text = "–" if value in (None, "", {}, [], ()) else str(value)
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
