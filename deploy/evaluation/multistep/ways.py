"""The ways that are compared: one search, and the tool loop with the offline planner."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from knowledge.embedding import Embedder
from knowledge.index.port import Index
from knowledge.library.library import Library
from knowledge.port import Searcher, SearchRequest
from knowledge.search.searcher import LevelSearcher
from knowledge.search.weights import weigh_levels_alone
from knowledge.sections import document_of
from llm.offline.model import OfflineModel
from llm.offline.planning.assessment import Evidence, measure_completeness
from llm.offline.planning.planner import MOST_PASSAGES, MOST_ROUNDS, VERSIONS
from tools.calls import ToolCaller, ToolErrorType, ToolResult
from tools.catalog import make_builtin
from tools.executor import ToolExecutor
from tools.loop import open_conversation, run_loop
from tools.passage_search.passages import LINKED
from tools.schemas import describe_tools

_ROUNDS = 3
_FURTHER_HITS = 5
"""A page gives up to this number of hits: a search for pages asks for more hits than pages."""


@dataclass(frozen=True, slots=True)
class FoundPages:
    """The result of a way: documents in the order in which they were shown, at most k.

    `texts` are those of the shown passages; `confidence` says how likely they answer, 0 to 1;
    `changes` are the documents of a comparison, by the kind of the change; `selected` those of a
    collection that meet the criteria, None: no collection was asked about.
    """

    document_ids: tuple[str, ...]
    texts: tuple[str, ...]
    confidence: float
    calls: int = 0
    rounds: int = 0
    unknown_tools: int = 0
    changes: Mapping[str, tuple[str, ...]] | None = None
    selected: tuple[str, ...] | None = None


class Way(Protocol):
    """One way of finding what a question needs."""

    async def find(self, text: str, k: int) -> FoundPages:
        """Return at most `k` documents, over all steps."""
        ...


class SearchWay:
    """One search for the whole text."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    async def find(self, text: str, k: int) -> FoundPages:
        request = SearchRequest(question=text, text=text, language="en", limit=k * _FURTHER_HITS)
        found = await self._searcher.search(request)
        best = {hit.document_id: hit for hit in reversed(found.hits)}
        ids = list(dict.fromkeys(hit.document_id for hit in found.hits))[:k]
        texts = tuple(f"{best[one].title}\n{best[one].text}" for one in ids)
        return FoundPages(tuple(ids), texts, found.answerability, calls=1, rounds=1)


class ToolsWay:
    """The tool loop with the offline planner, over the built-in tools."""

    def __init__(self, parts: "EvaluationParts", versions: Sequence[str]) -> None:
        catalog = make_builtin(parts)
        self._executor = ToolExecutor(catalog)
        self._tools = describe_tools(catalog.select())
        self._versions = list(versions)
        self._model = OfflineModel()

    async def find(self, text: str, k: int) -> FoundPages:
        facts: dict[str, Any] = {
            MOST_PASSAGES: k,
            MOST_ROUNDS: _ROUNDS,
            VERSIONS: self._versions,
        }
        result = await run_loop(
            self._model,
            self._executor,
            open_conversation(text, self._tools, facts=facts),
            ToolCaller(agent="reason"),
        )
        searches = [one for one in result.results if one.tool != "compare_documents"]
        evidence = [one for found in searches for one in _read_evidence(found)]
        ids = dict.fromkeys(document_of(one.chunk_id) for one in result.passages)
        return FoundPages(
            document_ids=tuple(ids)[:k],
            texts=tuple(one.text for one in evidence),
            confidence=measure_completeness(text, evidence),
            calls=len(result.results),
            rounds=len(result.steps) - 1,
            unknown_tools=sum(
                one.error_type is ToolErrorType.HALLUCINATION for one in result.results
            ),
            changes=_read_changes(result.results),
        )


@dataclass(frozen=True, slots=True)
class EvaluationParts:
    """The parts of tools over an index that an evaluation has made."""

    searcher: Searcher
    search_level: Callable[[str], Searcher]
    library: Library


def make_parts(index: Index, embedder: Embedder) -> EvaluationParts:
    """Return the parts; a search on one level is made when a tool needs it."""
    known: dict[str, Searcher] = {}

    def search_level(level: str) -> Searcher:
        if level not in known:
            weights = replace(weigh_levels_alone()[level])
            known[level] = LevelSearcher(index, embedder, weights=weights)
        return known[level]

    return EvaluationParts(LevelSearcher(index, embedder), search_level, Library(index))


def _read_evidence(result: ToolResult) -> list[Evidence]:
    data = result.data
    passages = data.get("passages") if isinstance(data, dict) else None
    found = []
    for passage in passages if isinstance(passages, list) else ():
        if isinstance(passage, dict) and isinstance(passage.get("citation"), dict):
            citation: Any = passage["citation"]
            found.append(
                Evidence(
                    text=f"{citation['title']}\n{passage['text']}",
                    score=float(citation["score"]),
                    is_linked=LINKED in str(passage.get("relation")),
                )
            )
    return found


def _read_changes(results: Sequence[ToolResult]) -> Mapping[str, tuple[str, ...]] | None:
    for result in results:
        if result.tool == "compare_documents" and isinstance(result.data, dict):
            changes: Any = result.data["changes"]
            return {
                kind: tuple(one["document_id"] for one in changes if one["change"] == kind)
                for kind in ("added", "removed", "changed")
            }
    return None
