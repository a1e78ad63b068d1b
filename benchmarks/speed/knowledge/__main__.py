"""Measures the search at several sizes of the index, and prints a table.

`python -m benchmarks.speed.knowledge` makes indexes of 10,000 and 100,000 chunks with synthetic
texts and vectors in a temporary folder, and measures each in a new process: the disk, the start,
the memory above the empty process, searches without embedding, alone and 16 at once, and after a
change. `--million` adds 1,000,000 chunks, `--sizes` chooses others, `--folder` keeps the indexes
for the next run.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.speed.knowledge.measurement import fill_index

SIZES = (10_000, 100_000)
MILLION = 1_000_000
COLUMNS = (
    ("disk MB", "disk_mb", ".0f"),
    ("start s", "start_s", ".2f"),
    ("resident MB", "resident_mb", ".0f"),
    ("private MB", "private_mb", ".0f"),
    ("p50 ms", "p50_ms", ".1f"),
    ("p95 ms", "p95_ms", ".1f"),
    ("processor ms", "processor_ms", ".1f"),
    ("16 at once p50 ms", "together_p50_ms", ".0f"),
    ("after a change ms", "after_change_ms", ".0f"),
    ("during changes p50 ms", "others_p50_ms", ".1f"),
)


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.knowledge")
    parser.add_argument("--million", action="store_true", help="measure 1,000,000 chunks too")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="CHUNKS")
    parser.add_argument("--folder", type=Path, help="keep the indexes here")
    chosen = parser.parse_args()
    sizes = [*chosen.sizes, *([MILLION] if chosen.million else [])]
    with tempfile.TemporaryDirectory(prefix="refdesk-knowledge-") as temporary:
        folder = Path(temporary) if chosen.folder is None else chosen.folder
        rows = [measure_size(folder / str(size), size) for size in sorted(sizes)]
    print(format_table(rows))


def measure_size(folder: Path, size: int) -> dict[str, float]:
    """Return the figures of an index of this size, which is made if it is missing."""
    began = time.monotonic()
    asyncio.run(fill_index(folder, size))
    print(f"{size:,} chunks were there after {time.monotonic() - began:.0f} s", file=sys.stderr)
    command = [sys.executable, "-m", "benchmarks.speed.knowledge.measurement", str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(printed)
    return figures


def format_table(rows: Sequence[Mapping[str, float]]) -> str:
    """Return a Markdown table; the last column is the processor's time relative to the first row.

    A search whose cost grows with the index would show the ratio of the sizes there.
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
