"""The search port: what a search is asked, and what it finds."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

Quality = Literal["excellent", "good", "poor"]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question with what its conversation adds to it.

    `question` is the canonical question; `text` is what the user typed, in `language`; `related`
    are earlier user turns it leans on, newest first; `exclude` names chunks that an earlier
    attempt has already tried in vain; `turns` counts the user's turns before this one.
    """

    question: str
    text: str = ""
    text_eng: str = ""
    language: str | None = None
    related: tuple[str, ...] = ()
    previous_answer: str = ""
    turns: int = 0
    limit: int = 10
    attempt: int = 0
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found, with its place and the levels that found it."""

    chunk_id: str
    document_id: str
    page: str
    title: str
    text: str
    crumbs: tuple[str, ...]
    heading_path: tuple[str, ...]
    anchor: str | None
    url: str | None
    path: str
    language: str
    score: float
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CandidatePlace:
    """A part of the documents that competes to be what was meant."""

    label: str
    crumbs: tuple[str, ...]
    document_id: str
    url: str | None
    score: float


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search found, best first.

    `answerability`, `coverage` and `ambiguity` are calibrated probabilities, 0 to 1: that the
    documents hold an answer, that the question is about what they cover at all, and that it
    leaves open what is meant. `fallbacks` names levels that failed and were done without.
    `documents` is how many documents the index holds, `languages` are theirs; None and empty where
    nobody counted.
    """

    hits: tuple[Hit, ...]
    quality: Quality
    answerability: float
    coverage: float
    ambiguity: float
    places: tuple[CandidatePlace, ...] = ()
    corrected: str | None = None
    fallbacks: tuple[str, ...] = ()
    documents: int | None = None
    languages: tuple[str, ...] = ()
    features: dict[str, float] = field(default_factory=dict)


class Searcher(Protocol):
    """Looks a question up; raises `knowledge.errors.IndexUnavailable` when there is no index."""

    async def search(self, request: SearchRequest) -> Findings: ...
