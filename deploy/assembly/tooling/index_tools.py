"""Makes the tools of an assistant: the built-in ones over its documents, and its tool set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from knowledge.library.library import Library
from knowledge.port import Searcher
from knowledge.search.searcher import LevelSearcher
from knowledge.search.weights import weigh_levels_alone

if TYPE_CHECKING:
    from config.settings import Settings
    from deploy.assembly.knowledge import Knowledge
    from tools.catalog import ToolCatalog
    from tools.tool import Tool


@dataclass(frozen=True, slots=True)
class IndexTools:
    """The parts of tools over an open index; see `tools.tool.ToolParts`."""

    knowledge: "Knowledge"
    _levels: dict[str, Searcher] = field(default_factory=dict)

    @property
    def searcher(self) -> Searcher:
        """The search on all levels."""
        return self.knowledge.searcher

    @property
    def library(self) -> Library:
        """The documents themselves."""
        return self.knowledge.library

    @property
    def search_level(self) -> Callable[[str], Searcher]:
        """Returns the search on one level."""
        return self._make_level

    def _make_level(self, level: str) -> Searcher:
        if level not in self._levels:
            weights = weigh_levels_alone()[level]
            known = self.knowledge
            self._levels[level] = LevelSearcher(known.index, known.embedder, weights=weights)
        return self._levels[level]


def make_tools(
    settings: "Settings", knowledge: "Knowledge", outside: "Sequence[Tool[Any, Any]]" = ()
) -> "ToolCatalog":
    """Return the tools of an assistant, with those that run elsewhere.

    Raises `InvalidToolSet` for a tool set that is wrong.
    """
    # Imported here: they are needed only where tools are planned or run.
    from tools.catalog import make_builtin
    from tools.tool_sets import load_tool_set

    catalog = make_builtin(IndexTools(knowledge)).extend(outside)
    if settings.tool_set is None:
        return catalog
    return catalog.extend(load_tool_set(settings.tool_set, catalog))
