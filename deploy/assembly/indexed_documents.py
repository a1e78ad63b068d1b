"""Lists and removes the documents of an index, for this process or for another one."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.assembly.calibration import find_notes
from knowledge.index.listing import ListedDocument, select_by_name, select_documents
from knowledge.index.port import Index

if TYPE_CHECKING:
    from pydantic import JsonValue

    from broker.values import Fields

DOCUMENTS = "documents"
"""The attribute of a request that names the action: `list`, `remove`, `move` or `check`."""
CHECK = "check"
"""The action that returns notes about the index in `notes`, and `VECTORS`."""
VECTORS = "vectors"
"""The identity of the vectors of the index: model, dimensions, forms."""
REMOVE = "remove"
MOVE = "move"
"""The action of `deploy.assembly.moving`."""
COPY = "copy"
"""The action that copies the files of the index below the folder `TO`; `COPIED` is in the result.
"""
COPIED = "copied"
"""Whether files were copied; False if a server has the index."""
FROM = "from"
TO = "to"
REFUSED = "refused"
"""The reason why no document was moved."""
PATTERNS = "patterns"
FOLDER = "folder"
"""The folder at which relative paths start."""
NAMES = "names"
"""Patterns of ids, sources and web addresses, without paths of this machine."""
IDS = "ids"
AFTER = "after"
"""The id after which a list begins."""
LIMIT = "limit"
MOST_LISTED = 10_000


async def act_on_documents(index: Index, request: "Mapping[str, JsonValue]") -> "Fields":
    """List or remove the documents that a request selects by `IDS`, `NAMES` or `PATTERNS`.

    The result has `documents`, at most `LIMIT` of them, and their number, `total`; that of
    `CHECK` has `notes` and `VECTORS` alone. A request that selects by nothing removes nothing.
    """
    if request.get(DOCUMENTS) == COPY:
        return {COPIED: await index.copy_to(Path(str(request[TO])))}
    if request.get(DOCUMENTS) == CHECK:
        notes: list[JsonValue] = [[*note] for note in await find_notes(index)]
        return {"notes": notes, VECTORS: [*(await index.info()).vectors]}
    found = await _select(index, request)
    if request.get(DOCUMENTS) == REMOVE:
        selects = any(_texts(request, name) for name in (IDS, NAMES, PATTERNS))
        await index.remove([document.id for document in found] if selects else [])
    after, limit = str(request.get(AFTER) or ""), request.get(LIMIT)
    most = limit if isinstance(limit, int) else MOST_LISTED
    page = [document for document in found if document.id > after][:most]
    listed: list[JsonValue] = [{**asdict(document), "file": document.file} for document in page]
    return {"documents": listed, "total": len(found)}


async def _select(index: Index, request: "Mapping[str, JsonValue]") -> list[ListedDocument]:
    ids, names = _texts(request, IDS), _texts(request, NAMES)
    if ids is not None:
        return sorted(await index.list_documents(ids), key=lambda document: document.id)
    documents = await index.list_documents()
    if names is not None:
        return await asyncio.to_thread(select_by_name, documents, names)
    patterns = _texts(request, PATTERNS) or []
    folder = str(request.get(FOLDER) or "")
    return await asyncio.to_thread(select_documents, documents, patterns, folder=folder)


def _texts(request: "Mapping[str, JsonValue]", name: str) -> Sequence[str] | None:
    """Return the texts of a list in a request, or None if the request has no such list."""
    found = request.get(name)
    return [str(text) for text in found] if isinstance(found, list) else None
