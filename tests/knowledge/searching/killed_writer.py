"""A process that replaces a document of an index and is killed at one of its changes."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from knowledge.index.embedded import EdgeEngine
from knowledge.index.points import layout
from knowledge.index.points.layout import Point
from knowledge.index.qdrant import QdrantIndex
from knowledge.index.queries import PointId
from tests.knowledge.searching.conftest import document, identity, put

OLD = ("one old part",)
NEW = ("a new part", "another new part")
PARTS_OF_OTHERS = 50
OTHERS = 40
"""Other documents, which have more points than are changed between two flushes."""


class KilledEngine(EdgeEngine):
    """Kills its process before the change of this number; 0 is the first one."""

    changes_left: int | None = None

    async def upsert(self, points: Sequence[Point]) -> None:
        self._count_down()
        await super().upsert(points)

    async def delete(self, points: Sequence[PointId]) -> None:
        self._count_down()
        await super().delete(points)

    async def delete_matching(self, match: Mapping[str, str | Sequence[str]]) -> None:
        self._count_down()
        await super().delete_matching(match)

    def _count_down(self) -> None:
        if self.changes_left is not None:
            self.changes_left -= 1
            if self.changes_left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


async def write(folder: Path, action: str, changes: int) -> None:
    """Write the old version, then replace or remove it, and be killed after some changes.

    With the action `grow`, many other documents are written first, and the page is replaced.
    """
    own = identity()
    engine = KilledEngine(folder / layout.namespace(own.tenant, own.assistant), own.dimensions)
    index = QdrantIndex(engine, own)
    await index.open()
    await put(index, document("page", *OLD))
    if action == "grow":
        for number in range(OTHERS):
            await put(index, document(f"other{number}", *["a part"] * PARTS_OF_OTHERS))
    engine.changes_left = changes
    if action in ("replace", "grow"):
        await put(index, document("page", *NEW, content_hash="2"))
    else:
        await index.remove(["page"])
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
