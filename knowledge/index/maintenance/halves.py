"""Removes documents that a killed process left incomplete; they are ingested again."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from knowledge.index.engine import Engine
from knowledge.index.points import layout

LONGEST_WRITE_SECONDS = 3600.0
"""Longer than writing a single document takes."""
_AT_ONCE = 50


async def remove_halves(engine: Engine, documents: Collection[str] | None) -> None:
    """Remove chunks without their document, and documents with missing chunks.

    Reads only the points of these documents or, if they are unknown, the points of all documents,
    page by page.
    """
    if documents is None:
        await _check(engine, {})
        return
    names = sorted(documents)
    for start in range(0, len(names), _AT_ONCE):
        await _check(engine, {"document": names[start : start + _AT_ONCE]})


async def remove_orphans(engine: Engine, before: float) -> None:
    """Remove chunks that do not belong to a document and that a killed writer left before a given
    time.

    Newer ones may come from a writer that is about to write their document.
    """
    documents = await engine.scroll({"kind": "document"}, fields=["version", "chunks"])
    named = {document.payload["version"] for document in documents}
    if await engine.count({"kind": "chunk"}) == sum(
        document.payload["chunks"] for document in documents
    ):
        return
    async for page in engine.pages({"kind": "chunk"}, fields=["version"]):
        versions = {point.payload["version"] for point in page} - named
        orphans = sorted(version for version in versions if layout.is_older(version, before))
        if orphans:
            await engine.delete_matching({"kind": layout.KINDS_OF_CHUNKS, "version": orphans})


async def _check(engine: Engine, match: Mapping[str, Sequence[str]]) -> None:
    wanted: dict[str, int] = {}
    names: dict[str, str] = {}
    fields = ["document", "version", "chunks"]
    async for page in engine.pages({"kind": "document", **match}, fields=fields):
        for point in page:
            wanted[point.payload["version"]] = point.payload["chunks"]
            names[point.payload["version"]] = point.payload["document"]
    present: Counter[str] = Counter()
    for kind in layout.KINDS_OF_CHUNKS:
        async for page in engine.pages({"kind": kind, **match}, fields=["version"]):
            versions = [point.payload["version"] for point in page]
            present.update(versions if kind == "chunk" else ())
            pairs = zip(page, versions, strict=True)
            orphans = [point.id for point, version in pairs if version not in wanted]
            if orphans:
                await engine.delete(orphans)
    halves = [names[version] for version, count in wanted.items() if count != present[version]]
    for start in range(0, len(halves), _AT_ONCE):
        part = halves[start : start + _AT_ONCE]
        await engine.delete([layout.document_identity(name) for name in part])
        await engine.delete_matching({"kind": layout.KINDS_OF_CHUNKS, "document": part})
