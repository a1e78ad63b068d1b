"""Lists the documents that a person can choose where a review lacks one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agents.named_documents import TitledDocument, list_offers, list_unknown_names
from envelope.conversation import ClarificationOption
from envelope.ways.specialists import Extracted

if TYPE_CHECKING:
    from knowledge.library.library import Library

_MOST_OFFERS = 4
_MOST_NAMES = 5
_LONGEST = 120


async def offer_documents(
    library: "Library",
    question: str,
    groups: Sequence[str],
    language: str,
    extracted: Extracted | None = None,
) -> dict[str, Sequence[object]]:
    """Return the names that no document has, and the documents that there are for their roles.

    `extracted` are those that were found. Only documents that the person may read are offered: a
    name of another one is as unknown as one that does not exist.
    """
    found = extracted if extracted is not None else Extracted()
    listed = [
        *await library.list_attached(groups),
        *await library.list_documents(groups),
    ]
    known = [TitledDocument(one.id, one.title, one.source, one.language) for one in listed]
    offers = list_offers(
        known,
        question,
        rules=not found.against,
        reviewed=not found.documents,
    )
    names = list_unknown_names(question, known, language)[:_MOST_NAMES]
    return {
        "unknown_documents": tuple(one[:_LONGEST] for one in names),
        "clarification_options": tuple(
            ClarificationOption(label=one[:_LONGEST]) for one in offers[:_MOST_OFFERS]
        ),
    }
