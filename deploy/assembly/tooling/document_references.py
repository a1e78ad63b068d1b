"""Lists documents as a plan knows them."""

from collections.abc import Sequence

from knowledge.library.library import Library
from swarm.planning.plan import DocumentReference


async def list_references(
    library: Library, groups: Sequence[str] = ()
) -> tuple[DocumentReference, ...]:
    """Return the documents that a person of these groups may read, without their texts."""
    listed = await library.list_documents(groups)
    return tuple(
        DocumentReference(document_id=one.listed.id, title=one.listed.title, crumbs=one.crumbs)
        for one in await library.read([document.id for document in listed], groups)
    )
