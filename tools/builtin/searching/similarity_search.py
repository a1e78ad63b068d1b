"""The tool `similarity_search`."""

from typing import Self

from knowledge.search.levels import SEMANTIC
from tools.passage_search.passage_tool import PassageTool
from tools.tool import ToolParts


class SimilaritySearch(PassageTool):
    """Searches by meaning alone."""

    name = "similarity_search"
    aliases = ("semantic_search", "vector_search")
    description = (
        "Search the documents by meaning alone: finds passages that use other words than the query."
    )

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.search_level(SEMANTIC))
