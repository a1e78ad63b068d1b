"""Divides a comparison of named documents: each is read whole for each topic."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from llm.offline.planning.compared_topics import find_compared_topics, is_comparison_request
from swarm.planning.plan import DocumentReference, WorkerPlan, name_worker

LEAST_DOCUMENTS = 2
_MOST_DOCUMENTS = 20_000
_WORD = re.compile(r"\w{2,}")


class DocumentComparison(BaseModel, frozen=True, extra="forbid"):
    """The documents that a question compares, and the topics on which it does."""

    documents: tuple[DocumentReference, ...]
    topics: tuple[str, ...]


def read_comparison(
    question: str, documents: Sequence[DocumentReference]
) -> DocumentComparison | None:
    """Return what a question compares; None if it names fewer than two documents, or no topic.

    A document is named by words that are in its title and in no other title: by one that is
    written like a name, or by half of the title.
    """
    if not is_comparison_request(question):
        return None
    titles = [frozenset(_list_words(one.title)) for one in documents[:_MOST_DOCUMENTS]]
    shared = Counter(word for title in titles for word in title)
    asked = {found[0].casefold(): found for found in _WORD.finditer(question)}
    named: dict[int, DocumentReference] = {}
    places: list[re.Match[str]] = []
    for document, title in zip(documents, titles, strict=False):
        own = [asked[word] for word in title if shared[word] == 1 and word in asked]
        if any(_is_like_name(one) for one in own) or len(own) > len(title) / 2:
            named[min(found.start() for found in own)] = document
            places += own
    if len(named) < LEAST_DOCUMENTS:
        return None
    first, last = min(one.start() for one in places), max(one.end() for one in places)
    topics = find_compared_topics(question, first, last)
    if not topics:
        return None
    return DocumentComparison(documents=tuple(named[at] for at in sorted(named)), topics=topics)


def _is_like_name(word: re.Match[str]) -> bool:
    """Return whether a word after the first one has a capital or a digit."""
    return (word.start() > 0 and word[0] != word[0].lower()) or any(map(str.isdigit, word[0]))


def make_comparison_workers(
    comparison: DocumentComparison, most_workers: int
) -> Iterator[WorkerPlan]:
    """Yield workers that look for the topics: one for each document, or for several if too many."""
    size = -(-len(comparison.documents) // most_workers)
    for number, start in enumerate(range(0, len(comparison.documents), size)):
        own = comparison.documents[start : start + size]
        titles = "; ".join(one.title for one in own)
        yield WorkerPlan(
            id=name_worker(number, "data"),
            role="data",
            specialization=titles[:300],
            objective=f"Find in {titles}: {' / '.join(comparison.topics)}"[:4_000],
            output="for each topic the sentence that states it",
            tools=("check_criteria",),
            documents=tuple(one.document_id for one in own),
            criteria=comparison.topics,
            passages=min(30, len(own) * len(comparison.topics)),
        )


def _list_words(title: str) -> Iterator[str]:
    return (found[0].casefold() for found in _WORD.finditer(title))
