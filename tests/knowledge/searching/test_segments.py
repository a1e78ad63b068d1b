"""An index that grows is built in segments of a limited size, so that its memory is limited too."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from knowledge.index.embedded import EdgeEngine, open_embedded
from knowledge.index.maintenance.shard_files import POINTS_PER_SEGMENT
from knowledge.index.points.layout import Point, chunk_identity
from knowledge.index.qdrant import Identity

DIMENSIONS = 1536
POINTS = 4096
"""Enough of such vectors for a graph."""

pytestmark = pytest.mark.slow


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EdgeEngine]:
    opened = EdgeEngine(tmp_path / "index", DIMENSIONS)
    yield opened
    await opened.close()


async def write_points(engine: EdgeEngine) -> None:
    random = np.random.default_rng(1)
    for start in range(0, POINTS, 256):
        await engine.upsert(
            [
                Point(
                    chunk_identity("page", "1", start + at),
                    {"tags": ["kind=chunk"]},
                    random.standard_normal(DIMENSIONS).tolist(),
                )
                for at in range(256)
            ]
        )


def has_graph(folder: Path) -> bool:
    return any(folder.rglob("graph*.bin"))


def find_configuration(folder: Path) -> Path:
    (path,) = folder.rglob("edge_config.json")
    return path


async def test_a_process_in_which_nobody_searches_builds_graphs_while_it_writes(
    engine: EdgeEngine, tmp_path: Path
) -> None:
    engine.optimize_regularly(POINTS)

    await write_points(engine)

    assert has_graph(tmp_path)
    assert await engine.count({"kind": "chunk"}) == POINTS


async def test_a_process_that_answers_builds_no_graph(engine: EdgeEngine, tmp_path: Path) -> None:
    await write_points(engine)

    assert not has_graph(tmp_path)


async def test_an_index_of_an_earlier_version_gets_the_limit_of_segments(tmp_path: Path) -> None:
    identity = Identity("tenant", "desk", "words", DIMENSIONS)
    await (await open_embedded(tmp_path, identity)).close()
    path = find_configuration(tmp_path)
    configuration = json.loads(path.read_text("utf-8"))
    limit = configuration["optimizers"]["max_segment_size"]
    configuration["optimizers"]["max_segment_size"] = None
    path.write_text(json.dumps(configuration), "utf-8")

    await (await open_embedded(tmp_path, identity)).close()

    assert json.loads(path.read_text("utf-8"))["optimizers"]["max_segment_size"] == limit
    assert POINTS_PER_SEGMENT < limit * 1024 / DIMENSIONS / 4 < 1.2 * POINTS_PER_SEGMENT
