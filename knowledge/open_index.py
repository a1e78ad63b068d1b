"""An open index with its searcher and library."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from knowledge.embedding import Embedder, LocalEmbedder
from knowledge.errors import EmbeddingFailed, RerankingFailed
from knowledge.index.port import Index
from knowledge.library.attached_documents import AttachmentSource
from knowledge.library.library import Library
from knowledge.port import Findings, SearchRequest
from knowledge.search.ranking import weigh_levels_alone
from knowledge.search.reranking import Reranker
from knowledge.search.searcher import LevelSearcher

if TYPE_CHECKING:
    from knowledge.index.server.server_following import ServerFollower

log = structlog.get_logger("knowledge")


@dataclass(slots=True, eq=False)
class OpenIndex:
    """An open index with its embedder and its searcher.

    On a Qdrant server, another index may replace it while the process is running; see `search`.
    """

    index: Index
    embedder: Embedder
    searcher: LevelSearcher
    reranker: Reranker | None = None
    others: Mapping[tuple[str, str], "OpenIndex"] = field(default_factory=dict)
    """The indexes of the other assistants, by tenant and assistant."""
    is_replaced: Callable[[], bool] = bool
    """Returns whether this index has been replaced since it was opened."""
    follow_server: "ServerFollower[OpenIndex] | None" = None
    """Adopts the serving index on the server, if it has changed."""
    library: Library = field(init=False)
    """The documents in the index, and the names in them once they were read."""

    def __post_init__(self) -> None:
        """Create the library, which caches documents."""
        self.library = Library(self.index)

    def of(self, tenant: str, assistant: str, *, own: tuple[str, str]) -> "OpenIndex | None":
        """Return the index of an assistant, or None; `own` is the assistant of this one."""
        return self if (tenant, assistant) == own else self.others.get((tenant, assistant))

    async def follow(self) -> None:
        """Switch to the serving index, if it has changed; raises `KnowledgeError`."""
        if self.follow_server is not None:
            await self.follow_server.follow(self.adopt)

    def adopt(self, opened: "OpenIndex") -> None:
        """Use a different index from now on."""
        self.index, self.embedder, self.searcher = opened.index, opened.embedder, opened.searcher
        self.library.adopt(opened.index)

    async def search(self, request: SearchRequest) -> Findings:
        """Search the serving index; see `knowledge.port.Searcher`."""
        await self.follow()
        return await self.searcher.search(request)

    async def read_revision(self) -> str:
        """Return the revision of the serving index."""
        await self.follow()
        return await self.index.revision()

    async def has_documents(self) -> bool:
        """Return whether the index contains documents."""
        return (await self.index.info()).documents > 0

    def attach(self, attachments: AttachmentSource) -> None:
        """From now on, also find the documents of the current conversation by their ids."""
        for other in (self, *self.others.values()):
            other.library.attach(attachments)

    async def warm(self) -> None:
        """Load everything that is needed for the first question."""
        # Warming the model of a vendor would cost a call.
        try:
            if isinstance(self.embedder, LocalEmbedder):
                await self.searcher.warm()
        except EmbeddingFailed as error:
            # Each search records the failure in the journal of its question, and continues with
            # keywords.
            log.warning("embedding_model_not_loaded", error=str(error))
        try:
            if self.reranker is not None:
                await self.reranker.warm()
        except RerankingFailed as error:
            # As above; a search continues in its own order.
            log.warning("reranker_not_loaded", error=str(error))


class LevelSearch:
    """Searches on one level of the serving index."""

    def __init__(self, knowledge: OpenIndex, level: str) -> None:
        self._knowledge = knowledge
        self._level = level
        self._made: tuple[Index, LevelSearcher] | None = None

    async def search(self, request: SearchRequest) -> Findings:
        """Search the index; see `knowledge.port.Searcher`."""
        await self._knowledge.follow()
        index = self._knowledge.index
        if self._made is None or self._made[0] is not index:
            weights = weigh_levels_alone()[self._level]
            searcher = LevelSearcher(index, self._knowledge.embedder, weights=weights)
            self._made = index, searcher
        return await self._made[1].search(request)
