"""Measures an index in a process that does nothing else; prints the figures as one line of JSON.

`python -m benchmarks.speed.knowledge.measurement FOLDER` is started by `python -m
benchmarks.speed.knowledge`.
"""

import asyncio
import json
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.speed.knowledge.corpus import (
    IDENTITY,
    SyntheticEmbedder,
    draw_words,
    make_document,
    put_document,
)
from knowledge.index.embedded import open_embedded
from knowledge.index.port import Index
from knowledge.port import SearchRequest
from knowledge.search.searcher import LevelSearcher

SEARCHES = 200
AT_ONCE = 16
ROUNDS = 8
CHANGES = 5


async def measure(folder: Path) -> dict[str, float]:
    """Return the figures of the index in a folder."""
    empty = read_memory()
    began = time.perf_counter()
    index = await open_embedded(folder, IDENTITY)
    try:
        searcher = LevelSearcher(index, SyntheticEmbedder())
        await searcher.warm()
        start = time.perf_counter() - began
        questions = make_questions(SEARCHES + AT_ONCE * ROUNDS)
        alone, processor = await time_each(searcher, questions[:SEARCHES])
        together = await time_together(searcher, questions[SEARCHES:])
        after, others = await time_after_changes(index, searcher, questions)
        memory = read_memory()
        counts = await index.counts()
    finally:
        await index.close()
    return {
        "chunks": counts.chunks,
        "start_s": start,
        "disk_mb": measure_disk(folder),
        "resident_mb": memory["VmRSS"] - empty["VmRSS"],
        "private_mb": memory["RssAnon"] - empty["RssAnon"],
        "p50_ms": statistics.median(alone),
        "p95_ms": sorted(alone)[int(len(alone) * 0.95)],
        "processor_ms": processor,
        "together_p50_ms": statistics.median(together),
        "after_change_ms": statistics.median(after),
        "others_p50_ms": statistics.median(others),
    }


def make_questions(count: int) -> list[SearchRequest]:
    """Return questions of three to nine words."""
    random = np.random.default_rng(17)
    return [
        SearchRequest(" ".join(draw_words(random, int(random.integers(3, 10)))), language="en")
        for _ in range(count)
    ]


async def time_each(
    searcher: LevelSearcher, questions: Sequence[SearchRequest]
) -> tuple[list[float], float]:
    """Return the milliseconds of searches one after the other, and the processor's of each."""
    before = _processor_seconds()
    taken = [await _time(searcher, question) for question in questions]
    return taken, (_processor_seconds() - before) * 1000 / len(questions)


async def time_together(searcher: LevelSearcher, questions: Sequence[SearchRequest]) -> list[float]:
    """Return the milliseconds of searches of which `AT_ONCE` run at a time."""
    taken: list[float] = []
    for start in range(0, len(questions), AT_ONCE):
        batch = questions[start : start + AT_ONCE]
        taken += await asyncio.gather(*(_time(searcher, question) for question in batch))
    return taken


async def time_after_changes(
    index: Index, searcher: LevelSearcher, questions: Sequence[SearchRequest]
) -> tuple[list[float], list[float]]:
    """Return the milliseconds of the first searches after a change, and of those during changes.

    Raises `AssertionError` when a search does not find the change before it.
    """
    after: list[float] = []
    others: list[float] = []
    for change in range(CHANGES):
        word = f"quetzal{'abcdefghij'[change] * 3}"
        random = np.random.default_rng(1_000_000 + change)
        document = make_document(random, change, more=word)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(put_document(index, document, random))
            others += [await _time(searcher, question) for question in questions[:5]]
        asked = SearchRequest(document.title, language="en")
        began = time.perf_counter()
        findings = await searcher.search(asked)
        after.append((time.perf_counter() - began) * 1000)
        if (
            findings.features["match"] < 0.999
        ):  # the vector of a question is not like its words here
            raise AssertionError(f"expected a heading {document.title!r}, found none")
    return after, others


def read_memory() -> dict[str, float]:
    """Return the megabytes of this process: `VmRSS` all, `RssAnon` without pages of files."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    pairs = (line.partition(":") for line in lines)
    return {
        name: int(value.split()[0]) / 1024
        for name, _, value in pairs
        if name in ("VmRSS", "RssAnon")
    }


def measure_disk(folder: Path) -> float:
    """Return the megabytes that the files of a folder take; the engine reserves more than that."""
    return sum(path.stat().st_blocks for path in folder.rglob("*")) * 512 / 1_000_000


async def _time(searcher: LevelSearcher, question: SearchRequest) -> float:
    began = time.perf_counter()
    await searcher.search(question)
    return (time.perf_counter() - began) * 1000


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1])))))
