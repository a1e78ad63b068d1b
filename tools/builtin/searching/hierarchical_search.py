"""The tool `hierarchical_search`."""

from typing import Self

from knowledge.search.levels import HIERARCHICAL
from tools.passage_search.passage_tool import PassageTool
from tools.tool import ToolParts


class HierarchicalSearch(PassageTool):
    """Searches by titles and headings alone."""

    name = "hierarchical_search"
    aliases = ("heading_search",)
    description = (
        "Search the documents by titles and headings: finds the place that is named like the query."
    )

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.search_level(HIERARCHICAL))
