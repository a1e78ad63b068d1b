"""Lists and removes the documents of an index, for this process or for another one."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from deploy.assembly.calibration import find_notes
from knowledge.index.listing import select_documents
from knowledge.index.port import Index

if TYPE_CHECKING:
    from pydantic import JsonValue

    from broker.values import Fields

DOCUMENTS = "documents"
"""The attribute of a request that names the action: `list`, `remove` or `check`."""
CHECK = "check"
"""The action that returns notes about the index in `notes`."""
PATTERNS = "patterns"
FOLDER = "folder"
"""The folder at which relative paths start."""
MOST_LISTED = 10_000


async def act_on_documents(index: Index, request: "Mapping[str, JsonValue]") -> "Fields":
    """List or remove the documents that the patterns of a request select.

    The result has `documents`, at most `MOST_LISTED` of them, and their number, `total`; that of
    `CHECK` has `notes` alone.
    """
    if request.get(DOCUMENTS) == CHECK:
        notes: list[JsonValue] = [[*note] for note in await find_notes(index)]
        return {"notes": notes}
    named = request.get(PATTERNS)
    patterns = [str(pattern) for pattern in named] if isinstance(named, list) else []
    found = select_documents(
        await index.list_documents(), patterns, folder=str(request.get(FOLDER) or "")
    )
    if request.get(DOCUMENTS) == "remove":
        await index.remove([document.id for document in found] if patterns else [])
    listed: list[JsonValue] = [
        {**asdict(document), "file": document.file} for document in found[:MOST_LISTED]
    ]
    return {"documents": listed, "total": len(found)}
