"""The suite `multistep`: measures what one search, the tool loop and the swarm find for multi-step
questions.

The corpus is ingested into a temporary index. The total number of passages that a way shows over
all of its steps is limited, so that the ways are compared at the same number.
"""

import json
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from agents.swarm.material import choose_shown
from agents.swarm.plan_making import arrange_workers, plan_listed
from agents.swarm.swarm_plan import SwarmPlan, WorkerPlan
from agents.swarm.work import plan_worker_searches
from agents.swarm.workers import (
    WorkerOutput,
    open_worker,
    write_output,
)
from cli.evaluation.questions import UnknownFormatError, rows
from cli.evaluation.retrieval import ingest_corpus
from knowledge.embedding import Embedder, local_embedder
from knowledge.errors import KnowledgeError
from knowledge.index.embedded import open_embedded
from knowledge.index.port import Index
from knowledge.index.qdrant import Identity
from knowledge.library.library import Library
from knowledge.port import Searcher, SearchRequest
from knowledge.search.ranking import weigh_levels_alone
from knowledge.search.searcher import LevelSearcher
from knowledge.sections import document_of
from llm.port import ModelMessage, ToolConversation
from tools.calls import ToolCall, ToolCaller
from tools.catalog import make_builtin
from tools.dialogue import Dialogue, list_passages, plan_searches
from tools.executor import ToolExecutor
from tools.tool import ToolParts

Kind = Literal["multihop", "fanout"]
_FILES: Mapping[Kind, tuple[str, ...]] = {
    "multihop": ("questions.jsonl", "passages.jsonl"),
    "fanout": ("questions.jsonl", "cards.jsonl"),
}


@dataclass(frozen=True, slots=True)
class MultistepTask:
    """One question with its correct pages; `part` is its set or kind.

    `answerable` is None if unknown.
    """

    name: str
    text: str
    part: str
    gold: frozenset[str]
    answerable: bool | None = None


@dataclass(frozen=True, slots=True)
class MultistepData:
    """The tasks of a folder with the lines of its corpus, in a format supported by ingestion."""

    kind: Kind
    tasks: tuple[MultistepTask, ...]
    corpus: tuple[Mapping[str, Any], ...]

    def write_corpus(self, folder: Path) -> Path:
        """Write the corpus as a file that can be ingested, and return its path."""
        path = folder / "pages.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in self.corpus), "utf-8")
        return path


def load_multistep(folder: Path) -> MultistepData:
    """Return the data of a folder; raises `UnknownFormatError`."""
    for kind, names in _FILES.items():
        if all((folder / name).is_file() for name in names):
            data = _READERS[kind](folder)
            if not data.tasks or not data.corpus:
                raise UnknownFormatError(f"expected tasks and a corpus in {folder}, found none")
            return data
    expected = "; or ".join(", ".join(names) for names in _FILES.values())
    raise UnknownFormatError(f"expected {expected} in {folder}")


def _read_multihop(folder: Path) -> MultistepData:
    tasks = tuple(
        MultistepTask(
            name=_need(row, "qid"),
            text=_need(row, "question"),
            part=str(row.get("set", "")),
            gold=frozenset(map(str, row.get("gold_passages") or ())),
            answerable=bool(row.get("answerable", True)),
        )
        for row in rows(folder / "questions.jsonl")
    )
    corpus = tuple(
        {"passage_id": _need(row, "pid"), "title": row.get("title", ""), "text": _need(row, "text")}
        for row in rows(folder / "passages.jsonl")
    )
    return MultistepData("multihop", tasks, corpus)


def _read_fanout(folder: Path) -> MultistepData:
    tasks = tuple(
        MultistepTask(
            name=_need(row, "qid"),
            text=_need(row, "question"),
            part="groups",
            gold=frozenset(map(str, row.get("gold_cards") or ())),
        )
        for row in rows(folder / "questions.jsonl")
    )
    corpus = tuple(
        {"passage_id": _need(row, "card_id"), "title": row.get("page", ""), "text": row["text"]}
        for row in rows(folder / "cards.jsonl")
    )
    return MultistepData("fanout", tasks, corpus)


_READERS = {
    "multihop": _read_multihop,
    "fanout": _read_fanout,
}


def _need(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise UnknownFormatError(f"expected a string under {key!r}, found {value!r:.60}")
    return value


async def run_worker(worker: WorkerPlan, executor: ToolExecutor) -> WorkerOutput:
    """Return what a worker finds with simple searches."""
    caller = ToolCaller(agent=worker.id, allowed=frozenset(worker.tools))
    dialogue = Dialogue(open_worker(worker, ()))
    while calls := plan_worker_searches(worker, dialogue):
        made = [
            ToolCall(call_id=call.call_id, tool=call.name, arguments=call.arguments)
            for call in calls
        ]
        results = [await executor.execute(tool_call, caller) for tool_call in made]
        dialogue = replace(
            dialogue,
            messages=(*dialogue.messages, ModelMessage(calls=calls)),
            results={
                **dialogue.results,
                **{tool_result.call_id: tool_result for tool_result in results},
            },
        )
    return write_output(worker, dialogue.ordered_results)


WayName = Literal["search", "tools", "swarm"]
DEFAULT_K = 10

Figures = dict[str, object]


async def evaluate_multistep(
    data: Path, way: WayName, *, k: int = DEFAULT_K, embedder: Embedder | None = None
) -> Figures:
    """Return the figures of a way.

    Raises `UnknownFormatError` for another kind of folder, and `KnowledgeError` if a part of the
    corpus could not be read.
    """
    loaded = load_multistep(data)
    model = local_embedder() if embedder is None else embedder
    with tempfile.TemporaryDirectory(prefix="refdesk-evaluate-") as folder:
        identity = Identity("evaluate", "multistep", model.name, model.dimensions)
        index = await open_embedded(Path(folder) / "index", identity)
        try:
            result = await ingest_corpus([loaded.write_corpus(Path(folder))], index, model)
            if result.failed:
                # A busy machine may run into a time limit: figures of a part compare with nothing.
                source, reason = result.failed[0]
                raise KnowledgeError(f"expected the whole corpus in the index: {source}: {reason}")
            parts = make_parts(index, model)
            chosen: Way = SearchWay(parts.searcher)
            if way == "tools":
                chosen = ToolsWay(parts)
            if way == "swarm":
                chosen = SwarmWay(parts)
            figures = await measure_way(loaded, chosen, parts, k)
            return {"suite": "multistep", "data": data.name, "way": way, "k": k, **figures}
        finally:
            await index.close()


@dataclass(frozen=True, slots=True)
class FoundPages:
    """The documents that a way shows, in order, at most k, and the costs of the way."""

    document_ids: tuple[str, ...]
    calls: int = 0
    rounds: int = 0


class Way(Protocol):
    """A way of finding the documents for a question."""

    async def find(self, text: str, k: int) -> FoundPages:
        """Return at most `k` documents, over all steps."""
        ...


async def measure_way(data: MultistepData, way: Way, parts: ToolParts, k: int) -> Figures:
    """Return the figures that apply to the kind of data."""
    pages = await _read_pages(parts)
    started = time.perf_counter()
    measured: list[Measured] = []
    calls, rounds, shown = 0, 0, 0
    for task in data.tasks:
        found_pages = await way.find(task.text, k)
        calls, rounds = calls + found_pages.calls, rounds + found_pages.rounds
        shown = max(shown, len(found_pages.document_ids))
        measured.append(_measure(task, found_pages, pages))
    seconds = time.perf_counter() - started
    figures = measure_parts(measured, lambda some: compute_retrieval(some, k=k))
    count = len(data.tasks)
    figures["cost"] = {
        "calls": round(calls / count, 2),
        "rounds": round(rounds / count, 2),
        "most documents shown": shown,
        "milliseconds": round(1000 * seconds / count, 1),
    }
    return figures


async def _read_pages(parts: ToolParts) -> dict[str, str]:
    """Return the page of each document, by id."""
    listed = await parts.library.list_documents()
    read = await parts.library.read([document.id for document in listed])
    return {document.listed.id: document.page for document in read}


@dataclass(frozen=True, slots=True)
class Measured:
    """One task with the pages that a way found, in their order."""

    part: str
    gold: frozenset[str]
    pages: tuple[str, ...]
    answerable: bool | None = None


def _measure(
    task: MultistepTask,
    found_pages: FoundPages,
    pages: Mapping[str, str],
) -> Measured:
    return Measured(
        part=task.part,
        gold=task.gold,
        pages=tuple(
            pages[identifier] for identifier in found_pages.document_ids if identifier in pages
        ),
        answerable=task.answerable,
    )


_FURTHER_HITS = 5
"""Maximum number of hits per page: a search for pages requests more hits than pages."""


class SearchWay:
    """A single search for the whole text."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    async def find(self, text: str, k: int) -> FoundPages:
        request = SearchRequest(question=text, text=text, language="en", limit=k * _FURTHER_HITS)
        findings = await self._searcher.search(request)
        ids = list(dict.fromkeys(hit.document_id for hit in findings.hits))[:k]
        return FoundPages(tuple(ids), calls=1, rounds=1)


def make_parts(index: Index, embedder: Embedder) -> ToolParts:
    """Return the parts; the search on a single level is created when a tool needs it."""
    known: dict[str, Searcher] = {}

    def search_level(level: str) -> Searcher:
        if level not in known:
            weights = replace(weigh_levels_alone()[level])
            known[level] = LevelSearcher(index, embedder, weights=weights)
        return known[level]

    return ToolParts(LevelSearcher(index, embedder), search_level, Library(index))


class ToolsWay:
    """A search for each part that a question lists; for a question with a single part, a search
    along links.
    """

    def __init__(self, parts: ToolParts) -> None:
        self._executor = ToolExecutor(make_builtin(parts))

    async def find(self, text: str, k: int) -> FoundPages:
        dialogue = Dialogue(ToolConversation(task="reason", messages=()))
        while calls := plan_searches(text, dialogue, most_passages=k):
            made = [
                ToolCall(call_id=call.call_id, tool=call.name, arguments=call.arguments)
                for call in calls
            ]
            caller = ToolCaller(agent="reason")
            results = [await self._executor.execute(tool_call, caller) for tool_call in made]
            dialogue = replace(
                dialogue,
                messages=(*dialogue.messages, ModelMessage(calls=calls)),
                results={
                    **dialogue.results,
                    **{tool_result.call_id: tool_result for tool_result in results},
                },
            )
        cited = list_passages(dialogue.ordered_results)
        return FoundPages(
            document_ids=tuple(dict.fromkeys(document_of(passage.chunk_id) for passage in cited))[
                :k
            ],
            calls=len(dialogue.results),
            rounds=len(dialogue.messages),
        )


class SwarmWay:
    """Plans the items that a question lists, runs all workers, and gathers their passages."""

    def __init__(self, parts: ToolParts) -> None:
        self._executor = ToolExecutor(make_builtin(parts))

    async def find(self, text: str, k: int) -> FoundPages:
        plan = plan_listed(text, most_passages=k)
        outputs: dict[str, WorkerOutput] = {}
        rounds = await self._run_waves(plan, outputs)
        usable = {name: output for name, output in outputs.items() if output.is_usable}
        shown = choose_shown(plan, usable, k)
        return FoundPages(
            document_ids=tuple(document_of(passage.citation.chunk_id) for passage in shown),
            calls=sum(output.calls for output in outputs.values()),
            rounds=rounds,
        )

    async def _run_waves(self, plan: SwarmPlan, outputs: dict[str, WorkerOutput]) -> int:
        """Run the workers; return the number of waves."""
        waves = arrange_workers(plan.workers)
        for wave in waves:
            for worker in wave:
                outputs[worker.id] = await run_worker(worker, self._executor)
        return len(waves)


def measure_parts(
    measured: Sequence[Measured], compute: Callable[[Sequence[Measured]], Figures]
) -> Figures:
    """Return figures of all tasks, of each part, and of the tasks at odd positions, counted from 0.

    The tasks at odd positions were not used for tuning.
    """
    parts = sorted({task_measure.part for task_measure in measured})
    figures: Figures = {"all": compute(measured)}
    if len(parts) > 1:
        figures |= {
            part: compute([task_measure for task_measure in measured if task_measure.part == part])
            for part in parts
        }
    odd = measured[1::2]
    figures["odd positions"] = {"all": compute(odd)} | {
        part: compute([task_measure for task_measure in odd if task_measure.part == part])
        for part in parts
        if len(parts) > 1
    }
    return figures


def compute_retrieval(measured: Sequence[Measured], *, k: int) -> Figures:
    """Return the number of tasks, the mean recall, and the share of tasks with every correct page
    among the first k.
    """
    asked = [
        task_measure
        for task_measure in measured
        if task_measure.gold and task_measure.answerable is not False
    ]
    return {
        "tasks": len(asked),
        f"recall@{k}": _mean(
            [count_recall(task_measure.gold, task_measure.pages[:k]) for task_measure in asked]
        ),
        f"all@{k}": _mean(
            [float(task_measure.gold <= set(task_measure.pages[:k])) for task_measure in asked]
        ),
    }


def count_recall(gold: Collection[str], retrieved: Collection[str]) -> float:
    """Return the share of `gold` in `retrieved`."""
    return len(set(gold) & set(retrieved)) / len(gold)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
