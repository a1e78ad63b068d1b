"""Lists the documents that a person can choose where a review lacks one."""

from collections.abc import Sequence
from typing import Protocol

from compliance.team.review_scope import TitledDocument, list_offers, list_unknown_names
from envelope.conversation import ClarificationOption
from envelope.ways.specialists import Extracted
from knowledge.library.library import Library

_MOST_OFFERS = 4
_MOST_NAMES = 5
_LONGEST = 120


class ScopeReads(Protocol):
    """The question, and the documents of the review that were found."""

    @property
    def canonical_question(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def extracted(self) -> Extracted | None: ...


async def offer_documents(library: Library, reads: ScopeReads) -> dict[str, Sequence[object]]:
    """Return the names that no document has, and the documents that there are for their roles.

    Only documents that the person may read are offered: a name of another one is as unknown as one
    that does not exist.
    """
    found = reads.extracted if reads.extracted is not None else Extracted()
    listed = [
        *await library.list_attached(reads.groups),
        *await library.list_documents(reads.groups),
    ]
    known = [TitledDocument(one.id, one.title, one.source, one.language) for one in listed]
    offers = list_offers(
        known,
        reads.canonical_question,
        rules=not found.against,
        reviewed=not found.documents,
    )
    names = list_unknown_names(reads.canonical_question, known)[:_MOST_NAMES]
    return {
        "unknown_documents": tuple(one[:_LONGEST] for one in names),
        "clarification_options": tuple(
            ClarificationOption(label=one[:_LONGEST]) for one in offers[:_MOST_OFFERS]
        ),
    }
