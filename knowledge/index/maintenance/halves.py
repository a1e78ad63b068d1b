"""Removes what a killed process has left of documents; they are ingested again."""

from collections.abc import Collection, Mapping, Sequence

from knowledge.index.engine import Engine
from knowledge.index.points import layout

_AT_ONCE = 50


async def remove_halves(engine: Engine, documents: Collection[str] | None) -> None:
    """Remove chunks without their document, and documents of which chunks are missing.

    Reads the points of these documents only; of all of them, page by page, if they are not known.
    """
    if documents is None:
        await _check(engine, {})
        return
    names = sorted(documents)
    for start in range(0, len(names), _AT_ONCE):
        await _check(engine, {"document": names[start : start + _AT_ONCE]})


async def _check(engine: Engine, match: Mapping[str, Sequence[str]]) -> None:
    missing: dict[str, int] = {}
    names: dict[str, str] = {}
    fields = ["document", "version", "chunks"]
    async for page in engine.pages({"kind": "document", **match}, fields=fields):
        for point in page:
            missing[point.payload["version"]] = point.payload["chunks"]
            names[point.payload["version"]] = point.payload["document"]
    async for page in engine.pages({"kind": "chunk", **match}, fields=["version"]):
        for point in page:
            if point.payload["version"] in missing:
                missing[point.payload["version"]] -= 1
        orphans = [point.id for point in page if point.payload["version"] not in missing]
        if orphans:
            await engine.delete(orphans)
    halves = [names[version] for version, left in missing.items() if left]
    for start in range(0, len(halves), _AT_ONCE):
        part = halves[start : start + _AT_ONCE]
        await engine.delete([layout.document_identity(name) for name in part])
        await engine.delete_chunks(part)
