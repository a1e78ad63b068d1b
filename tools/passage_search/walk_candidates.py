"""The passages that a walk may return, with the values of the edges that lead to them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from knowledge.index.terms import terms
from knowledge.library.passage_graph import ConnectedPassage
from knowledge.port import Hit
from knowledge.sections import document_of
from tools.passage_search.passages import FoundPassage, cite_hit, cite_place


@dataclass(slots=True)
class WalkCandidate:
    """A passage, the best one of its document unless a start is in the same document."""

    passage: FoundPassage
    search: float
    words: frozenset[str]
    named: float = 0.0
    linked: float = 0.0
    shared: float = 0.0
    above: float = 0.0
    relation: str = ""


@dataclass(slots=True)
class CandidatePool:
    """The candidates of one walk by document; those of the starts' documents by passage."""

    excluded_documents: frozenset[str]
    excluded_passages: frozenset[str]
    least: float = 0.0
    by_key: dict[str, WalkCandidate] = field(default_factory=dict)

    @classmethod
    def leave_out(cls, chunk_ids: Iterable[str]) -> "CandidatePool":
        """Return a pool without candidates of the documents of these passages."""
        passages = frozenset(chunk_ids)
        return cls(frozenset(document_of(one) for one in passages), passages)

    def is_open(self, document_id: str) -> bool:
        """Return whether a passage of a document may be added, and none is there yet."""
        return document_id not in self.excluded_documents and document_id not in self.by_key

    def add_hit(self, hit: Hit) -> None:
        """Add a hit of the search."""
        if self.is_open(hit.document_id):
            found = FoundPassage(citation=cite_hit(hit), text=hit.text)
            words = list_terms(f"{hit.title} {hit.text}", hit.language)
            self.by_key[hit.document_id] = WalkCandidate(found, hit.score, words)

    def add_passage(self, passage: ConnectedPassage, *, is_of_start: bool = False) -> None:
        """Add a passage to which an edge leads."""
        listed, chunk = passage.document.listed, passage.chunk
        if is_of_start:
            key, is_new = chunk.chunk_id, chunk.chunk_id not in self.excluded_passages
        else:
            key, is_new = listed.id, self.is_open(listed.id)
        if is_new and key not in self.by_key:
            citation = cite_place(listed, passage.document.crumbs, chunk)
            words = list_terms(f"{listed.title} {chunk.text}", listed.language)
            found = FoundPassage(citation=citation, text=chunk.text)
            self.by_key[key] = WalkCandidate(found, self.least, words)


def list_terms(text: str, language: str) -> frozenset[str]:
    """Return the terms of a text."""
    return frozenset(terms(text, language or "en"))
