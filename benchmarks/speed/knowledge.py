"""Measures the search for several index sizes, and prints a table.

`python -m benchmarks.speed.knowledge` creates indexes of 10,000 and 100,000 chunks in a temporary
folder, with synthetic texts, and vectors with the distribution of real ones. It measures each index
in a new process: the disk space, the start time, the memory above that of an empty process, the
time of searches without embedding (alone, 4 and 16 at once, and after a change), of an update and a
removal of a document, and of a copy for a backup. `--million` adds 1,000,000 chunks, `--sizes`
chooses other sizes, and `--folder` keeps the indexes for the next run. `--measure FOLDER` is used
internally to start the process that measures one index.
"""

import argparse
import asyncio
import itertools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from envelope.run import OUTSIDE, Run
from knowledge.document import Chunk, Document
from knowledge.embedding import local_embedder
from knowledge.index.embedded import open_embedded
from knowledge.index.port import Index
from knowledge.index.qdrant import Identity
from knowledge.port import SearchRequest
from knowledge.search.searcher import LevelSearcher

DIMENSIONS = 384
IDENTITY = Identity("benchmark", "knowledge", "synthetic", DIMENSIONS)
CHUNKS_OF_DOCUMENT = 10
_WORDS_OF_CHUNK = 60
_WORDS = 120_000
_PAGES = Path(__file__).parents[2] / "docs"
_REAL = 500
"""Number of passages that are embedded; each synthetic vector is near one of them."""
_NOISE = 0.5
_SHARES = np.cumsum(1 / np.arange(10, _WORDS + 10))
_CONSONANTS = "bcdfghjklmnpqrstvwxz"

Vectors = npt.NDArray[np.float32]


class SyntheticEmbedder:
    """Embeds text according to the subject that its first word represents."""

    name = IDENTITY.embedding
    dimensions = DIMENSIONS
    forms = IDENTITY.forms

    def __init__(self, meanings: "Meanings") -> None:
        self._meanings = meanings
        self._random = np.random.default_rng(11)

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return await self.embed_questions(texts)

    async def embed_questions(self, texts: Sequence[str], run: Run = OUTSIDE) -> list[list[float]]:
        vectors: list[list[float]] = self._meanings.draw(self._random, len(texts)).tolist()
        return vectors


class Meanings:
    """Draws vectors with the distribution of real ones, around them and along their axes."""

    def __init__(self, real: Vectors) -> None:
        self._mean = real.mean(axis=0)
        self._real = real - self._mean
        _, lengths, axes = np.linalg.svd(self._real, full_matrices=False)
        self._axes = lengths[:, None] / np.sqrt(len(real)) * axes

    def draw(self, random: np.random.Generator, count: int) -> Vectors:
        """Return normalised vectors."""
        chosen = self._real[random.integers(len(self._real), size=count)]
        noise = random.standard_normal((count, len(self._axes))) @ self._axes
        vectors = self._mean + np.sqrt(1 - _NOISE**2) * chosen + _NOISE * noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors, dtype=np.float32)


async def embed_pages() -> Vectors:
    """Return the vectors of passages from this project's pages, computed by the default model."""
    pages = (page.read_text("utf-8") for page in sorted(_PAGES.rglob("*.md")))
    passages = [
        part for page in pages for part in page.split("\n\n") if len(part) > _WORDS_OF_CHUNK
    ]
    chosen = passages[:: max(1, len(passages) // _REAL)]
    return np.array(await local_embedder().embed_documents(chosen), dtype=np.float32)


def draw_words(random: np.random.Generator, count: int) -> list[str]:
    """Return random words, frequent ones more often."""
    ranks = np.searchsorted(_SHARES, random.random(count) * _SHARES[-1])
    return [spell_word(int(rank)) for rank in ranks]


def spell_word(rank: int) -> str:
    """Return the word with a frequency rank, made of consonants and vowels; it is not a real
    word.
    """
    letters = ""
    while True:
        rank, digit = divmod(rank, len(_CONSONANTS))
        letters += _CONSONANTS[digit] + "aeiou"[digit % 5]
        if not rank:
            return letters + "k"


def make_document(random: np.random.Generator, number: int, more: str = "") -> Document:
    """Return a document of `CHUNKS_OF_DOCUMENT` chunks; `more` is added to title and texts."""
    name = f"page{number}"
    title = " ".join((*draw_words(random, 3), *more.split()))
    chunks = tuple(
        Chunk(
            chunk_id=f"{name}#{at}",
            ordinal=at,
            text=" ".join((*draw_words(random, _WORDS_OF_CHUNK), more)),
            heading_path=(title, " ".join(draw_words(random, 2))) if at // 3 else (title,),
        )
        for at in range(CHUNKS_OF_DOCUMENT)
    )
    return Document(
        id=name,
        source=f"{name}.md",
        title=title,
        page=name,
        crumbs=("manual", f"part {number % 50}", title),
        content="",
        summary=" ".join(draw_words(random, 30)),
        chunks=chunks,
        content_hash=name,
    )


async def fill_index(folder: Path, chunks: int) -> None:
    """Create an index of this size in a folder, or complete an existing one."""
    meanings = Meanings(await embed_pages())
    index = await open_embedded(folder, IDENTITY)
    index.optimize_regularly()
    try:
        present = await index.versions()
        for number in _list_missing(chunks, set(present)):
            random = np.random.default_rng(number)
            document = make_document(random, number)
            await put_document(index, document, meanings.draw(random, CHUNKS_OF_DOCUMENT))
        await index.optimize()
    finally:
        await index.close()


async def put_document(index: Index, document: Document, vectors: Vectors) -> None:
    """Write a document with vectors."""
    await index.put(document, vectors.tolist(), "synthetic")


def _list_missing(chunks: int, present: set[str]) -> Iterator[int]:
    numbers = range(chunks // CHUNKS_OF_DOCUMENT)
    return itertools.filterfalse(lambda number: f"page{number}" in present, numbers)


SEARCHES = 200
FEW_AT_ONCE = 4
MANY_AT_ONCE = 16
TOGETHER = 128
CHANGES = 5


async def measure(folder: Path) -> dict[str, float]:
    """Return the figures of the index in a folder."""
    meanings = Meanings(await embed_pages())
    empty = read_memory()
    began = time.perf_counter()
    index = await open_embedded(folder, IDENTITY)
    try:
        searcher = LevelSearcher(index, SyntheticEmbedder(meanings))
        await searcher.warm()
        start = time.perf_counter() - began
        questions = make_questions(SEARCHES + 2 * TOGETHER)
        alone, processor = await time_each(searcher, questions[:SEARCHES])
        few = await time_together(searcher, questions[SEARCHES:][:TOGETHER], FEW_AT_ONCE)
        many = await time_together(searcher, questions[-TOGETHER:], MANY_AT_ONCE)
        counts = await index.counts()
        after, others = await time_after_changes(index, searcher, questions, meanings)
        updates, removals = await time_writing(index, meanings)
        memory = read_memory()
        copy = await time_copy(index, folder.parent)
    finally:
        await index.close()
    return {
        "chunks": counts.chunks,
        "start_s": start,
        "disk_mb": measure_disk(folder),
        "private_mb": memory["RssAnon"] - empty["RssAnon"],
        "mapped_mb": memory["RssFile"] - empty["RssFile"],
        "p50_ms": statistics.median(alone),
        "p95_ms": _take_95(alone),
        "processor_ms": processor,
        "few_p50_ms": statistics.median(few),
        "few_p95_ms": _take_95(few),
        "many_p50_ms": statistics.median(many),
        "after_change_ms": statistics.median(after),
        "others_p50_ms": statistics.median(others),
        "update_ms": statistics.median(updates),
        "removal_ms": statistics.median(removals),
        "copy_s": copy,
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
    """Return the milliseconds of consecutive searches, and the processor milliseconds of each."""
    before = _processor_seconds()
    taken = [await _time(searcher, question) for question in questions]
    return taken, (_processor_seconds() - before) * 1000 / len(questions)


async def time_together(
    searcher: LevelSearcher, questions: Sequence[SearchRequest], at_once: int
) -> list[float]:
    """Return the milliseconds of searches, of which a number run concurrently."""
    taken: list[float] = []
    for start in range(0, len(questions), at_once):
        batch = questions[start : start + at_once]
        taken += await asyncio.gather(*(_time(searcher, question) for question in batch))
    return taken


async def time_after_changes(
    index: Index,
    searcher: LevelSearcher,
    questions: Sequence[SearchRequest],
    meanings: Meanings,
) -> tuple[list[float], list[float]]:
    """Return the milliseconds of the first searches after a change, and of those during changes.

    Raises `AssertionError` if a search does not find the preceding change.
    """
    after: list[float] = []
    others: list[float] = []
    for change in range(CHANGES):
        word = f"quetzal{'abcdefghij'[change] * 3}"
        random = np.random.default_rng(1_000_000 + change)
        document = make_document(random, change, more=word)
        async with asyncio.TaskGroup() as tasks:
            vectors = meanings.draw(random, CHUNKS_OF_DOCUMENT)
            tasks.create_task(put_document(index, document, vectors))
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


async def time_writing(index: Index, meanings: Meanings) -> tuple[list[float], list[float]]:
    """Return the milliseconds of updates of existing documents, and of their removals; the
    documents are written again by the next `fill_index`.
    """
    updates: list[float] = []
    removals: list[float] = []
    for number in range(CHANGES, 4 * CHANGES):
        random = np.random.default_rng(number)
        document = make_document(random, number)
        vectors = meanings.draw(random, CHUNKS_OF_DOCUMENT)
        began = time.perf_counter()
        await put_document(index, document, vectors)
        written = time.perf_counter()
        await index.remove([document.id])
        updates.append((written - began) * 1000)
        removals.append((time.perf_counter() - written) * 1000)
    return updates, removals


async def time_copy(index: Index, folder: Path) -> float:
    """Return the seconds of the copy that a backup makes while the index is open."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="copy-") as target:
        began = time.perf_counter()
        await index.copy_to(Path(target))
        return time.perf_counter() - began


def read_memory() -> dict[str, float]:
    """Return the memory of this process in megabytes: `RssAnon` is private, `RssFile` are pages
    of mapped files.
    """
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    pairs = (line.partition(":") for line in lines)
    return {
        name: int(value.split()[0]) / 1024
        for name, _, value in pairs
        if name in ("RssAnon", "RssFile")
    }


def measure_disk(folder: Path) -> float:
    """Return the megabytes used by the files of a folder; the engine reserves more than that."""
    return sum(path.stat().st_blocks for path in folder.rglob("*")) * 512 / 1_000_000


async def _time(searcher: LevelSearcher, question: SearchRequest) -> float:
    began = time.perf_counter()
    await searcher.search(question)
    return (time.perf_counter() - began) * 1000


def _take_95(milliseconds: Sequence[float]) -> float:
    return sorted(milliseconds)[int(len(milliseconds) * 0.95)]


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


SIZES = (10_000, 100_000)
MILLION = 1_000_000
COLUMNS = (
    ("disk MB", "disk_mb", ".0f"),
    ("start s", "start_s", ".2f"),
    ("private MB", "private_mb", ".0f"),
    ("mapped MB", "mapped_mb", ".0f"),
    ("p50 ms", "p50_ms", ".1f"),
    ("p95 ms", "p95_ms", ".1f"),
    ("processor ms", "processor_ms", ".1f"),
    ("4 at once p50 ms", "few_p50_ms", ".0f"),
    ("p95 ms", "few_p95_ms", ".0f"),
    ("16 at once p50 ms", "many_p50_ms", ".0f"),
    ("after a change ms", "after_change_ms", ".0f"),
    ("during changes p50 ms", "others_p50_ms", ".1f"),
    ("update ms", "update_ms", ".0f"),
    ("removal ms", "removal_ms", ".0f"),
    ("copy s", "copy_s", ".1f"),
)


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.knowledge")
    parser.add_argument("--million", action="store_true", help="measure 1,000,000 chunks too")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="CHUNKS")
    parser.add_argument("--folder", type=Path, help="keep the indexes here")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure is not None:
        print(json.dumps(asyncio.run(measure(chosen.measure))))
        return
    sizes = [*chosen.sizes, *([MILLION] if chosen.million else [])]
    with tempfile.TemporaryDirectory(prefix="refdesk-knowledge-") as temporary:
        folder = Path(temporary) if chosen.folder is None else chosen.folder
        rows = [measure_size(folder / str(size), size) for size in sorted(sizes)]
    print(format_table(rows))


def measure_size(folder: Path, size: int) -> dict[str, float]:
    """Return the figures of an index of this size, which is created if it is missing."""
    began = time.monotonic()
    asyncio.run(fill_index(folder, size))
    print(f"{size:,} chunks were there after {time.monotonic() - began:.0f} s", file=sys.stderr)
    command = [sys.executable, "-m", "benchmarks.speed.knowledge", "--measure", str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(printed)
    return figures


def format_table(rows: Sequence[Mapping[str, float]]) -> str:
    """Return a Markdown table; the last column is processor time relative to the first row.

    If the cost of a search were proportional to the size of the index, this column would show the
    ratio of the sizes.
    """
    titles = ["chunks", *(title for title, _, _ in COLUMNS), "cost against size"]
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for row in rows:
        ratio = row["processor_ms"] / rows[0]["processor_ms"]
        size = row["chunks"] / rows[0]["chunks"]
        cells = [f"{row['chunks']:,.0f}", *(f"{row[name]:{form}}" for _, name, form in COLUMNS)]
        lines.append("| " + " | ".join([*cells, f"{ratio:.1f} x for {size:.0f} x"]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
