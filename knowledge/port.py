"""The search port, with the request and the result of a search."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from envelope.conversation import ClarificationReason
from envelope.place import Place
from envelope.run import OUTSIDE, Run

Quality = Literal["excellent", "good", "poor"]
ANSWER_CHARACTERS = 500
"""How much of the last answer is taken into account in the search for a follow-up question."""
CALIBRATION = "calibration"
"""The fallback of a search whose embedding model is not calibrated."""
MATCHES_NOTHING = "The search found nothing in the documents that clearly matches the question."
"""The reasons that a rule can state for a question without matches, which do not concern its
topic.
"""
RERANKING = "reranking"
"""The fallback of a search whose reranker failed, so that the order is that of the levels."""
_MATCHES_NOTHING = 0.05
"""If the coverage is below this value, none of the results are considered relevant to the
question.
"""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question with the relevant parts of its conversation.

    `question` is the canonical question; `text` is the user's text, in `language`; `related`
    contains the earlier user turns that it refers to, newest first; `exclude` contains the IDs of
    chunks that an earlier attempt used. `context_tokens` is the size of the context in the
    findings, or 0 for none. `groups` are the groups of the person who asks; only documents that
    they may read take part in the search. `limit` applies to the hits, and to the sections of the
    context. `run` is the run for which a vendor creates embeddings; it does not affect the results.
    `by_words` requests a search without a vector. `reranked` lets a reranker, if there is one,
    order the best chunks; it is set for searches from which a question is answered.
    """

    question: str
    text: str = ""
    text_eng: str = ""
    language: str | None = None
    related: tuple[str, ...] = ()
    previous_answer: str = ""
    limit: int = 10
    attempt: int = 0
    exclude: tuple[str, ...] = ()
    context_tokens: int = 0
    groups: tuple[str, ...] = ()
    by_words: bool = False
    reranked: bool = False
    run: Run = field(default=OUTSIDE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search, with its location and the levels that found it.

    `pictures` contains the IDs and captions of its pictures.
    """

    chunk_id: str
    document_id: str
    page: str
    place: Place
    text: str
    score: float
    levels: tuple[str, ...]
    pictures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FoundSpan:
    """The position of a hit in the text of a section, in characters; `rank` counts hits from 0."""

    rank: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ContextSection:
    """The chunks of a section as one text, without their overlap; `is_cut` is true if some chunks
    are missing.

    `best` is the chunk because of which the section was selected; `found` contains the hits in the
    text; `pictures` contains the IDs and captions of its pictures. `is_release_notes` is true if it
    is part of a changelog.
    """

    best: Hit
    text: str
    chunk_ids: tuple[str, ...]
    found: tuple[FoundSpan, ...] = ()
    is_cut: bool = False
    pictures: tuple[tuple[str, str], ...] = ()
    is_release_notes: bool = False


@dataclass(frozen=True, slots=True)
class CandidatePlace:
    """A part of the documents that may be the subject of an ambiguous question.

    `word_fit` is the best BM25 score of its chunks, relative to the best one in the search.
    """

    label: str
    crumbs: tuple[str, ...]
    document_id: str
    url: str | None
    score: float
    word_fit: float = 0.0


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a search, best hits first.

    `context` contains the text for an answer; see `knowledge.search.composer`. `answerability` and
    `coverage` are calibrated probabilities, 0 to 1: that the documents contain an answer, and that
    they cover the topic of the question. `fallbacks` names failed levels, without which the search
    ran; `CALIBRATION` if the similarity of texts could not be judged, and `RERANKING`. `documents`
    is the number of documents in the index, `languages` their languages; None and empty if they
    were not counted. `total` counts the chunks found, of which `limit` are hits. `from_cache` is
    true if they come from an equal earlier search. `uncompared` contains the languages of documents
    that were compared with the question only by their words, not by their meaning. `common`
    contains the terms in the question that occur in many chunks and therefore do not distinguish
    them.
    """

    hits: tuple[Hit, ...]
    quality: Quality
    answerability: float
    coverage: float
    context: tuple[ContextSection, ...] = ()
    places: tuple[CandidatePlace, ...] = ()
    corrected: str | None = None
    fallbacks: tuple[str, ...] = ()
    documents: int | None = None
    languages: tuple[str, ...] = ()
    uncompared: tuple[str, ...] = ()
    common: tuple[str, ...] = ()
    features: dict[str, float] = field(default_factory=dict)
    from_cache: bool = False
    total: int = 0

    @property
    def match_nothing(self) -> bool:
        """Whether nothing in the documents resembles the question, in words or in meaning.

        This is not a statement about the topic: two of 251 answerable questions are below the
        limit. If the meaning was not compared, a single content word counts as a match.
        """
        if not self.are_calibrated and self.features.get("touches"):
            return not self.hits
        return not self.hits or self.coverage < _MATCHES_NOTHING

    @property
    def are_calibrated(self) -> bool:
        """Whether the similarity of texts was judged as well, because words alone are never
        certain.
        """
        return not set(self.fallbacks) - {RERANKING}


class Searcher(Protocol):
    """Searches for a question; raises `knowledge.errors.IndexUnavailable` if there is no index."""

    async def search(self, request: SearchRequest) -> Findings: ...


def find_refusal_reason(
    findings: Findings, *, language: str, text: str, text_eng: str, uses_model: bool
) -> ClarificationReason | None:
    """Return why nothing could be found, or None if the documents can be searched in this language.

    A text without a translation cannot be compared with documents in other languages. That no
    translation is configured is stated as the reason only if there is no model, because a model
    translates.
    """
    if findings.documents == 0:
        return ClarificationReason.NO_DOCUMENTS
    if uses_model:
        return None
    is_translated = text_eng not in ("", text)
    is_foreign = bool(language and findings.languages) and language not in findings.languages
    if is_foreign and not is_translated and set(findings.uncompared) >= set(findings.languages):
        return ClarificationReason.NO_TRANSLATION
    return None


def find_uncompared(findings: Findings, *, text: str, text_eng: str) -> tuple[str, ...]:
    """Return the languages of documents whose meaning was not compared with the question.

    English documents were compared if the question has a translation.
    """
    is_translated = text_eng not in ("", text)
    return tuple(
        language for language in findings.uncompared if not (is_translated and language == "en")
    )
