"""The tool `search`."""

from typing import Self

from tools.passage_tool import PassageTool
from tools.tool import ToolParts


class Search(PassageTool):
    """Searches as the plain way does."""

    name = "search"
    aliases = ("general_search", "search_documents")
    description = (
        "Search the documents for passages that answer a question. Ask for one fact at a time."
    )

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.searcher)
