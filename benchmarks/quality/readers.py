"""Compares document readers on files with expected texts: the suite `readers`.

The folder contains documents and, next to each of them, its expected text in Markdown: `NAME.md`
for a document `NAME`, such as `contract.pdf.md`. `NAME.tables.md` instead contains only the tables
of a document; its other words and headings are not measured. The readers are those of Refdesk and,
with `--python`, also markitdown and kreuzberg, if that Python interpreter has them.

For each format and reader, the suite measures the share of the expected words that were read
(`words`), the share of words read that are expected (`precision`), headings and table rows, files
that could not be read, and the processor time and peak memory of a file. A row counts if its cells
are in one row or on one line, in the expected order and without the cells of another row.
"""

import re
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

_SECONDS = 120
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_RULE = re.compile(r"\|?(?:[ ]?:?-+:?[ ]?\|)+(?:[ ]?:?-+:?[ ]?)?\Z")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_SIGNS = str.maketrans("", "", "*`~_\\")
_LONGER = 1.2
"""How much longer than the expected row a line without cells may be."""

_START = """
import resource, sys, time
def finish(text):
    used = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.buffer.write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss}\\n".encode())
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
path = sys.argv[1]
"""
_READERS = {
    "refdesk": """
from pathlib import Path, PurePosixPath
from knowledge.documents import formats
from knowledge.documents.location import locate
data, name = Path(path).read_bytes(), PurePosixPath(Path(path).name)
split = formats.needs_splitting(name)
items = formats.split(name, data) if split else formats.items_of(name, data)
finish("\\n\\n".join(formats.read(item, name, locate(name, ())).content for item in items))
""",
    "markitdown": """
from markitdown import MarkItDown
finish(MarkItDown().convert(path).text_content)
""",
    "kreuzberg": """
import inspect, asyncio, kreuzberg
found = kreuzberg.extract_file_sync(path)
finish(getattr(found, "content", str(found)))
""",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The output of a reader for a file; `text` is None if it failed."""

    text: str | None
    seconds: float = 0.0
    megabytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of expected, read and matching content of a file."""

    words: tuple[int, int] = (0, 0)
    precision: tuple[int, int] = (0, 0)
    headings: tuple[int, int] = (0, 0)
    rows: tuple[int, int] = (0, 0)


def evaluate(data: Path, python: str | None = None, *, by_file: bool = False) -> dict[str, Any]:
    """Return the figures of each reader by format; with `by_file`, also those of each file."""
    readers = {"refdesk": sys.executable}
    if python is not None:
        readers |= {name: python for name in _READERS if name != "refdesk" and _has(python, name)}
    return {
        reader: _evaluate_reader(reader, interpreter, data, by_file=by_file)
        for reader, interpreter in readers.items()
    }


def _has(python: str, module: str) -> bool:
    probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", probe], check=False).returncode == 0


def _evaluate_reader(reader: str, python: str, data: Path, *, by_file: bool) -> dict[str, Any]:
    formats: dict[str, list[tuple[Reading, Counts]]] = defaultdict(list)
    files: dict[str, object] = {}
    for path, expected, is_whole in _list_files(data):
        reading = read(reader, python, path)
        counts = compare(expected, reading.text or "", is_whole=is_whole)
        formats[path.suffix.lower()].append((reading, counts))
        files[path.name] = _sum_up([(reading, counts)])
    figures: dict[str, Any] = {
        name: _sum_up(evaluated) for name, evaluated in sorted(formats.items())
    }
    return {**figures, **({"files": files} if by_file else {})}


def _list_files(data: Path) -> Iterator[tuple[Path, str, bool]]:
    for path in sorted(data.rglob("*")):
        for suffix in (".md", ".tables.md"):
            expected = path.with_name(path.name + suffix)
            if path.is_file() and expected.is_file():
                yield path, expected.read_text("utf-8"), suffix == ".md"


def read(reader: str, python: str, path: Path) -> Reading:
    """Read a file in a separate process."""
    command = [python, "-c", _START + _READERS[reader], str(path)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Reading(None, _SECONDS)
    if done.returncode:
        return Reading(None)
    measured, _, text = done.stdout.partition(b"\n")
    seconds, kilobytes = measured.split()
    return Reading(text.decode("utf-8"), float(seconds), int(kilobytes) / 1024)


def compare(expected: str, text: str, *, is_whole: bool = True) -> Counts:
    """Return how much of an expected text was read; with `is_whole` false, only of its tables."""
    rows = list(_list_rows(expected))
    indexed_rows = _IndexedRows(text)
    kept = sum(indexed_rows.has(row) for row in rows)
    if not is_whole:
        return Counts(rows=(kept, len(rows)))
    wanted, had = Counter(_words(expected)), Counter(_words(text))
    common = (wanted & had).total()
    headings = [line.lstrip("# ") for line in expected.splitlines() if line.startswith("#")]
    own = {_bare(line) for line in text.splitlines() if line.startswith("#")}
    return Counts(
        words=(common, wanted.total()),
        precision=(common, had.total()),
        headings=(sum(_bare(heading) in own for heading in headings), len(headings)),
        rows=(kept, len(rows)),
    )


def _words(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not _RULE.match(line.strip()))
    return _WORD.findall(unicodedata.normalize("NFKC", "\n".join(lines)).lower())


def _bare(text: str) -> str:
    return "".join(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def _cells(line: str) -> list[str]:
    cells = _CELL_BORDER.split(line.strip().strip("|").translate(_SIGNS))
    return [bare for bare in map(_bare, cells) if bare]


def _list_rows(text: str) -> Iterator[list[str]]:
    """Yield the rows with at least two non-empty cells."""
    for line in text.splitlines():
        if line.startswith("|") and not _RULE.match(line.strip()):
            cells = _cells(line)
            if len(cells) > 1:
                yield cells


class _IndexedRows:
    """The lines of a text, indexed for looking up rows."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        self._rows = [_cells(line) for line in lines if line.startswith("|")]
        self._headers = [
            _bare(line) for line, below in pairwise(lines)
            if line.startswith("|") and _RULE.match(below)
        ]  # fmt: skip
        self._lines = [_bare(line) for line in lines if not line.startswith("|")]

    def has(self, row: Sequence[str]) -> bool:
        """Return whether a row is intact; the header may be joined from several rows."""
        length = len("".join(row))
        return (
            any(_is_within(row, other) for other in self._rows)
            or any(_are_in_order(row, line) for line in self._headers)
            or any(
                len(line) <= _LONGER * length + 5 and _are_in_order(row, line)
                for line in self._lines
            )
        )


def _is_within(row: Sequence[str], other: Iterable[str]) -> bool:
    """Return whether all cells of a row are cells of the other row, in this order."""
    rest = iter(other)
    return all(cell in rest for cell in row)


def _are_in_order(row: Sequence[str], line: str) -> bool:
    at = 0
    for cell in row:
        at = line.find(cell, at)
        if at < 0:
            return False
        at += len(cell)
    return True


def _sum_up(evaluated: Sequence[tuple[Reading, Counts]]) -> dict[str, object]:
    readings = [reading for reading, _ in evaluated]
    return {
        "files": len(evaluated),
        "failed": sum(reading.text is None for reading in readings),
        **{name: _sum(evaluated, name) for name in ("words", "precision", "headings", "rows")},
        "seconds_a_file": round(sum(reading.seconds for reading in readings) / len(evaluated), 2),
        "peak_megabytes": round(max(reading.megabytes for reading in readings)),
    }


def _sum(evaluated: Sequence[tuple[Reading, Counts]], name: str) -> object:
    parts = [getattr(counts, name) for _, counts in evaluated]
    kept, wanted = sum(one for one, _ in parts), sum(other for _, other in parts)
    if name in ("words", "precision"):
        return round(kept / wanted, 3) if wanted else None
    return f"{kept}/{wanted}"
