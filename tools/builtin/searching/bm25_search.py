"""The tool `bm25_search`."""

from typing import Self

from tools.passage_search.passage_tool import PassageTool
from tools.tool import ToolParts


class Bm25Search(PassageTool):
    """Searches by words, without a vector."""

    name = "bm25_search"
    aliases = ("keyword_search", "search_keywords")
    description = (
        "Search the documents by words: best for names, codes, numbers and quoted phrases."
    )
    by_words = True

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.searcher)
