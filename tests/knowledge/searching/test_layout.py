"""An index of an earlier format is refused, with what to do about it."""

from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from knowledge.errors import IndexMismatch
from knowledge.index.embedded import EdgeEngine, open_embedded
from knowledge.index.engine import Engine
from knowledge.index.points import layout
from knowledge.index.points.layout import Point
from knowledge.index.server.server_engine import ServerEngine, open_client
from tests.knowledge.searching.conftest import identity


async def write_earlier_manifest(engine: Engine) -> None:
    payload = {"kind": "manifest", "format": layout.FORMAT - 1}
    await engine.upsert([Point(layout.manifest_identity(layout.FORMAT - 1), payload)])


async def test_a_folder_of_an_earlier_format_is_named_for_removal(tmp_path: Path) -> None:
    own = identity()
    folder = tmp_path / layout.namespace(own.tenant, own.assistant)
    engine = EdgeEngine(folder, own.dimensions)
    await write_earlier_manifest(engine)
    await engine.close()

    with pytest.raises(IndexMismatch, match=f"format 1.*format 2: remove the folder {folder}, "):
        await open_embedded(tmp_path, own)


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_collection_of_an_earlier_format_is_named_for_removal() -> None:
    client = AsyncQdrantClient(":memory:")
    engine = ServerEngine(client, identity(), "memory")
    await engine.prepare()
    await write_earlier_manifest(engine)

    with pytest.raises(IndexMismatch, match=r"remove the collection refdesk-tenant-desk-\w+, then"):
        await open_client(client, identity(), location="memory")
