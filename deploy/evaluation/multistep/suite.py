"""The suite `multistep`: what one search, the tool loop and the swarm find for several steps.

The corpus is ingested into a temporary index. The passages that a way shows are bounded in total,
over all of its steps, so that both ways are compared at the same number.
"""

import tempfile
import time
from pathlib import Path
from typing import Literal

from deploy.evaluation.multistep.measures import (
    Figures,
    Measured,
    compute_auc,
    compute_changes,
    compute_retrieval,
    compute_tools,
    measure_parts,
)
from deploy.evaluation.multistep.set_measures import MeasuredSet, compute_sets
from deploy.evaluation.multistep.swarm_way import SwarmWay, list_references
from deploy.evaluation.multistep.task_files import MultistepData, MultistepTask, load_multistep
from deploy.evaluation.multistep.tools_way import ToolsWay
from deploy.evaluation.multistep.ways import (
    EvaluationParts,
    FoundPages,
    SearchWay,
    Way,
    make_parts,
)
from deploy.evaluation.retrieval import ingest_corpus
from knowledge.embedding import Embedder, local_embedder
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity

WayName = Literal["search", "tools", "swarm"]
DEFAULT_K = {"multihop": 10, "desk": 20, "versions": 5, "fanout": 10, "portfolio": 20}
_CHANGES = ("added", "removed")


async def evaluate_multistep(
    data: Path, way: WayName, *, k: int | None = None, embedder: Embedder | None = None
) -> Figures:
    """Return the figures of a way; raises `UnknownFormatError` for another kind of folder."""
    loaded = load_multistep(data)
    model = local_embedder() if embedder is None else embedder
    most = DEFAULT_K[loaded.kind] if k is None else k
    with tempfile.TemporaryDirectory(prefix="refdesk-evaluate-") as folder:
        identity = Identity("evaluate", "multistep", model.name, model.dimensions)
        index = await open_embedded(Path(folder) / "index", identity)
        try:
            await ingest_corpus([loaded.write_corpus(Path(folder))], index, model)
            parts = make_parts(index, model)
            chosen: Way = SearchWay(parts.searcher)
            if way == "tools":
                chosen = ToolsWay(parts, loaded.tools, loaded.tool_inputs)
            if way == "swarm":
                documents = await list_references(parts) if loaded.kind == "portfolio" else ()
                chosen = SwarmWay(parts, documents)
            figures = await measure_way(loaded, chosen, parts, most)
            return {"suite": "multistep", "data": data.name, "way": way, "k": most, **figures}
        finally:
            await index.close()


async def measure_way(data: MultistepData, way: Way, parts: EvaluationParts, k: int) -> Figures:
    """Return the figures of the kind of data."""
    pages = await _read_pages(parts)
    started = time.perf_counter()
    measured: list[Measured] = []
    changes: dict[str, list[float]] = {}
    sets: list[MeasuredSet] = []
    calls, rounds, shown, unknown = 0, 0, 0, 0
    for task in data.tasks:
        found = await way.find(task.text, k)
        calls, rounds = calls + found.calls, rounds + found.rounds
        shown, unknown = max(shown, len(found.document_ids)), unknown + found.unknown_tools
        if data.kind == "portfolio":
            sets.append(_measure_set(task, found, pages))
            continue
        if task.part in _CHANGES:
            changes.setdefault(task.part, []).append(_measure_changes(task, found, pages))
            continue
        measured.append(_measure(task, found, pages, data))
    seconds = time.perf_counter() - started
    figures = (
        compute_sets(sets)
        if data.kind == "portfolio"
        else measure_parts(measured, lambda some: compute_retrieval(some, k=k))
    )
    if data.kind == "multihop":
        figures["refusal AUC"] = _compute_refusal(measured)
    if data.kind == "desk":
        figures["tools"] = measure_parts(measured, lambda some: compute_tools(some, data.tools))
    if changes:
        figures["F1 of changes"] = {
            kind: round(sum(values) / len(values), 4) for kind, values in changes.items()
        }
    count = len(data.tasks)
    figures["cost"] = {
        "calls": round(calls / count, 2),
        "rounds": round(rounds / count, 2),
        "most documents shown": shown,
        "unknown tools called": unknown,
        "milliseconds": round(1000 * seconds / count, 1),
    }
    return figures


async def _read_pages(parts: EvaluationParts) -> dict[str, tuple[str, str]]:
    """Return the page and the version of each document, by id."""
    listed = await parts.library.list_documents()
    read = await parts.library.read([one.id for one in listed])
    return {one.listed.id: (one.page, one.listed.stated_version) for one in read}


def _measure(
    task: MultistepTask,
    found: FoundPages,
    pages: dict[str, tuple[str, str]],
    data: MultistepData,
) -> Measured:
    newest = data.versions[-1] if data.versions else ""
    shown = [pages[one] for one in found.document_ids if one in pages]
    return Measured(
        part=task.part,
        gold=task.gold,
        pages=tuple(page for page, version in shown if version in {"", newest}),
        answerable=task.answerable,
        confidence=found.confidence,
        gold_tools=task.tools,
        named_tools=frozenset(found.needed_tools),
    )


def _measure_set(
    task: MultistepTask, found: FoundPages, pages: dict[str, tuple[str, str]]
) -> MeasuredSet:
    chosen = found.document_ids if found.selected is None else found.selected
    return MeasuredSet(
        kind=task.part,
        portfolio=task.portfolio,
        gold=task.gold,
        found=frozenset(pages[one][0] for one in chosen if one in pages),
    )


def _measure_changes(
    task: MultistepTask, found: FoundPages, pages: dict[str, tuple[str, str]]
) -> float:
    if found.changes is None:
        return compute_changes(task.gold, frozenset(pages[one][0] for one in found.document_ids))
    return compute_changes(task.gold, frozenset(pages[one][0] for one in found.changes[task.part]))


def _compute_refusal(measured: list[Measured]) -> Figures:
    sets = sorted({one.part for one in measured if one.answerable is False})
    figures: Figures = {}
    for name in sets:
        own = [one for one in measured if one.part == name]
        figures[name] = compute_auc(own)
        figures[f"{name}, odd positions"] = compute_auc(own[1::2])
    return figures
