"""Records in the data folder which sources were ingested, and how the last time went."""

import fcntl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError

from config.settings import Settings
from deploy.assembly.data_folder import protect_data_folder
from deploy.assembly.sources.source_spec import SourceSpec
from deploy.errors import CommandError
from knowledge.ingestion_report import IngestionResult

_FILE = "sources.json"
_MOST_REASONS = 3


class RegisteredSource(BaseModel, frozen=True, extra="forbid"):
    """An ingested source; `read_at` are Unix seconds of the last time, `failures` its failures."""

    tenant: str
    assistant: str
    spec: SourceSpec
    read_at: float
    failed: int = 0
    reasons: tuple[str, ...] = ()


class SourceList(BaseModel, extra="forbid"):
    """The sources of a data folder; `id` names the list to other processes that share it."""

    id: str = Field(default_factory=lambda: uuid4().hex)
    sources: list[RegisteredSource] = []


class SourceRegistry:
    """The list of sources in a data folder; changes of several processes follow each other."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.refdesk_data
        self._owner = (settings.tenant, settings.assistant)

    def read(self) -> SourceList:
        """Return the list; raise `CommandError` if it is damaged."""
        path = self._folder / _FILE
        try:
            return SourceList.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return SourceList()
        except (OSError, ValidationError) as error:
            raise CommandError(
                f"expected a list of sources in {path}, found a damaged one: remove it and ingest "
                "the sources again"
            ) from error

    def record(self, specs: Sequence[SourceSpec], result: IngestionResult) -> None:
        """Record that sources were ingested now, with the result that they have together."""
        reasons = tuple(f"{place}: {reason}" for place, reason in result.failed[:_MOST_REASONS])
        self._record(specs, len(result.failed), reasons)

    def record_error(self, spec: SourceSpec, error: Exception) -> None:
        """Record that a source could not be ingested at all."""
        self._record([spec], 1, (str(error),))

    def forget(self, root: str) -> bool:
        """Remove a source from the list; return whether it was in it."""
        if not (self._folder / _FILE).exists():
            return False
        with self._changing() as listed:
            left = [one for one in listed.sources if not self._is_own(one, root)]
            is_known = len(left) < len(listed.sources)
            listed.sources = left
        return is_known

    def list_specs(self) -> list[SourceSpec]:
        """Return the sources of this assistant; raise `CommandError` if the list is damaged."""
        return [
            source.spec
            for source in self.read().sources
            if (source.tenant, source.assistant) == self._owner
        ]

    def _record(self, specs: Sequence[SourceSpec], failed: int, reasons: tuple[str, ...]) -> None:
        tenant, assistant = self._owner
        with self._changing() as listed:
            for spec in specs:
                source = RegisteredSource(
                    tenant=tenant,
                    assistant=assistant,
                    spec=spec,
                    read_at=time.time(),
                    failed=failed,
                    reasons=reasons,
                )
                others = [one for one in listed.sources if not self._is_own(one, spec.root)]
                listed.sources = [*others, source]

    def _is_own(self, source: RegisteredSource, root: str) -> bool:
        return (source.tenant, source.assistant) == self._owner and source.spec.root == root

    @contextmanager
    def _changing(self) -> Iterator[SourceList]:
        protect_data_folder(self._folder)
        with (self._folder / f"{_FILE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            listed = self.read()
            yield listed
            _replace(self._folder / _FILE, listed.model_dump_json(indent=1))


def _replace(path: Path, text: str) -> None:
    waiting = path.with_name(f"{path.name}.new")
    waiting.write_text(text, "utf-8")
    waiting.replace(path)
