"""The documents of an index for other programs: searched and read here, or by their owner."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from config.settings import Settings
from deploy.assembly.indexed_documents import AFTER, DOCUMENTS, LIMIT
from deploy.assembly.ingestion import ask_owner
from deploy.assembly.library_actions import BROWSE, GROUPS, ID, QUERY, READ, SEARCH, act_on_library
from deploy.assembly.runtime import Runtime
from deploy.errors import CommandError
from gateway.port import FoundPassages, LibraryDocument
from knowledge.errors import IndexUnavailable

if TYPE_CHECKING:
    from broker.values import Fields

WAIT_SECONDS = 20.0
"""How long a request waits for the process that owns the index."""
log = structlog.get_logger("gateway")


class OwnedLibrary:
    """A `gateway.port.SearchableLibrary`: the index of this process, else that of its owner.

    Raises `KnowledgeError` when the index or its owner is unreachable.
    """

    def __init__(self, runtime: Runtime, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._settings: dict[tuple[str, str], Settings] = {
            (one.tenant, one.assistant): one for one in runtime.settings.of_assistants()
        }
        self._own = (runtime.settings.tenant, runtime.settings.assistant)
        self._runtime = runtime
        self._wait_seconds = wait_seconds

    async def search(
        self, tenant: str, assistant: str, query: str, *, groups: Sequence[str], limit: int
    ) -> FoundPassages:
        request: Fields = {DOCUMENTS: SEARCH, QUERY: query, GROUPS: [*groups], LIMIT: limit}
        found = await self._act((tenant, assistant), request)
        return FoundPassages.model_validate(found["found"])

    async def read(
        self, tenant: str, assistant: str, document_id: str, *, groups: Sequence[str]
    ) -> LibraryDocument | None:
        request: Fields = {DOCUMENTS: READ, ID: document_id, GROUPS: [*groups]}
        found = (await self._act((tenant, assistant), request)).get("document")
        return None if found is None else LibraryDocument.model_validate(found)

    async def browse(
        self, tenant: str, assistant: str, *, groups: Sequence[str], after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        request: Fields = {DOCUMENTS: BROWSE, AFTER: after, LIMIT: limit, GROUPS: [*groups]}
        listed = (await self._act((tenant, assistant), request)).get("documents")
        documents = listed if isinstance(listed, list) else []
        return [LibraryDocument.model_validate(one) for one in documents]

    async def _act(self, name: tuple[str, str], request: "Fields") -> "Fields":
        knowledge = self._runtime.knowledge
        own = None if knowledge is None else knowledge.of(*name, own=self._own)
        if own is not None:
            return await act_on_library(own, request)
        try:
            return await ask_owner(
                self._runtime.broker, self._settings[name], request, seconds=self._wait_seconds
            )
        except CommandError as error:
            log.warning("index_owner_failed", reason=str(error))
            raise IndexUnavailable(str(error)) from error
