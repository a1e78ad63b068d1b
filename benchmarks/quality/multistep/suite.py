"""The suite `multistep`: what one search, the tool loop and the swarm find for several steps.

The corpus is ingested into a temporary index. The passages that a way shows are bounded in total,
over all of its steps, so that both ways are compared at the same number.
"""

import tempfile
import time
from pathlib import Path
from typing import Literal

from benchmarks.quality.multistep.measures import (
    Figures,
    Measured,
    compute_retrieval,
    measure_parts,
)
from benchmarks.quality.multistep.swarm_way import SwarmWay
from benchmarks.quality.multistep.task_files import MultistepData, MultistepTask, load_multistep
from benchmarks.quality.multistep.tools_way import ToolsWay
from benchmarks.quality.multistep.ways import (
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
DEFAULT_K = {"multihop": 10, "desk": 20, "versions": 5, "fanout": 10}


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
                chosen = ToolsWay(parts)
            if way == "swarm":
                chosen = SwarmWay(parts)
            figures = await measure_way(loaded, chosen, parts, most)
            return {"suite": "multistep", "data": data.name, "way": way, "k": most, **figures}
        finally:
            await index.close()


async def measure_way(data: MultistepData, way: Way, parts: EvaluationParts, k: int) -> Figures:
    """Return the figures of the kind of data."""
    pages = await _read_pages(parts)
    started = time.perf_counter()
    measured: list[Measured] = []
    calls, rounds, shown = 0, 0, 0
    for task in data.tasks:
        found = await way.find(task.text, k)
        calls, rounds = calls + found.calls, rounds + found.rounds
        shown = max(shown, len(found.document_ids))
        measured.append(_measure(task, found, pages, data))
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
    )
