"""The tool `hybrid_search`."""

from typing import Self

from tools.passage_search.passage_tool import PassageTool
from tools.tool import ToolParts


class HybridSearch(PassageTool):
    """Searches on all levels."""

    name = "hybrid_search"
    aliases = ("search_hybrid", "hybrid")
    description = (
        "Search the documents by meaning, words, headings and summaries together. The usual search."
    )

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.searcher)
