"""Makes the tools of an assistant: the built-in ones over its documents, and its tool set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from knowledge.index.port import Index
from knowledge.library.library import Library
from knowledge.port import Findings, Searcher, SearchRequest
from knowledge.search.ranking import weigh_levels_alone
from knowledge.search.searcher import LevelSearcher

if TYPE_CHECKING:
    from config.settings import Settings
    from deploy.assembly.knowledge import Knowledge
    from tools.catalog import ToolCatalog
    from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class IndexTools:
    """The parts of tools over an open index; see `tools.tool.ToolParts`."""

    knowledge: "Knowledge"

    @property
    def searcher(self) -> Searcher:
        """The search on all levels."""
        return self.knowledge

    @property
    def library(self) -> Library:
        """The documents themselves."""
        return self.knowledge.library

    @property
    def search_level(self) -> Callable[[str], Searcher]:
        """Returns the search on one level."""
        return self._make_level

    def _make_level(self, level: str) -> Searcher:
        return LevelSearch(self.knowledge, level)


class LevelSearch:
    """Searches on one level of the index that answers now."""

    def __init__(self, knowledge: "Knowledge", level: str) -> None:
        self._knowledge = knowledge
        self._weights = weigh_levels_alone()[level]
        self._made: tuple[Index, LevelSearcher] | None = None

    async def search(self, request: SearchRequest) -> Findings:
        """Search the index; see `knowledge.port.Searcher`."""
        await self._knowledge.follow()
        index = self._knowledge.index
        if self._made is None or self._made[0] is not index:
            searcher = LevelSearcher(index, self._knowledge.embedder, weights=self._weights)
            self._made = index, searcher
        return await self._made[1].search(request)


def make_tools(
    settings: "Settings", knowledge: "Knowledge", outside: "Sequence[Tool[Any, Any]]" = ()
) -> "ToolCatalog":
    """Return the tools of an assistant, with those that run elsewhere.

    Raises `InvalidToolSet` for a tool set, and for combinations, that are wrong.
    """
    # Imported here: they are needed only where tools are planned or run.
    from tools.catalog import make_builtin
    from tools.tool_sets import combine_tools, load_tool_set

    catalog = make_builtin(IndexTools(knowledge)).extend(outside)
    if settings.tool_set is not None:
        catalog = load_tool_set(settings.tool_set, catalog)
    return combine_tools(catalog, settings.tool_combinations, "TOOL_COMBINATIONS")
