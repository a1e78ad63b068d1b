"""The search port: the query of a search and its result."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from envelope.conversation import ClarificationReason
from envelope.place import Place
from envelope.run import OUTSIDE, Run

Quality = Literal["excellent", "good", "poor"]
ANSWER_CHARACTERS = 500
"""How much of the last answer a search of a follow-up takes into account."""
CALIBRATION = "calibration"
"""The fallback of a search whose embedding model is not calibrated."""
MATCHES_NOTHING = "The search found nothing in the documents that clearly matches the question."
"""The reasons that a rule can give for a question without matches; they do not concern its
topic."""
RERANKING = "reranking"
"""The fallback of a search whose reranker failed: the order is that of the levels."""
_MATCHES_NOTHING = 0.05
"""The coverage below which nothing that was found is about the question."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question with the relevant parts of its conversation.

    `question` is the canonical question; `text` is the user's text, in `language`; `related` are
    the earlier user turns that it refers to, newest first; `exclude` are the ids of chunks that an
    earlier attempt used. `context_tokens` is the size of the context in the findings; 0 for none.
    `groups` are those of the person who asks: only documents that they may read take part in the
    search. `limit` applies to the hits, and to the sections of the context. `run` is the run for
    which a vendor embeds; it does not affect the results. `by_words` searches without a vector.
    `reranked` has the reranker order the best chunks, if there is one: for a search from which a
    question is answered.
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
    """A found chunk with its location and the levels that found it.

    `pictures` are the ids and captions of its pictures.
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
    """The place of a hit in the text of a section, in characters; `rank` counts hits from 0."""

    rank: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ContextSection:
    """Chunks of one section as one text, without their overlap; `is_cut`: some chunks are missing.

    `best` is the chunk for which the section is given; `found` are the hits in the text; `pictures`
    are the ids and captions of its pictures. `is_release_notes`: it is part of a changelog.
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

    `word_fit` is the best BM25 score of its chunks, as a share of the best one of the search.
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

    `context` contains the text for an answer: see `knowledge.search.composer`. `answerability` and
    `coverage` are calibrated probabilities, 0 to 1: that the documents contain an answer, and that
    they cover the topic of the question. `fallbacks` names failed levels, without which the search
    ran; `CALIBRATION` if the similarity of texts could not be judged, and `RERANKING`. `documents`
    is the number of documents in the index, `languages` their languages; None and empty if they
    were not counted. `total` counts the chunks found, of which `limit` are hits. `from_cache`: an
    equal search found them before. `uncompared` are the languages of documents whose meaning was
    not compared with the question, only their words. `common` are the terms of the question that
    occur in many chunks and therefore do not distinguish them.
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
        """Whether nothing in the documents resembles the question, by its words or its meaning.

        This is not a statement about the topic: two of 251 answerable questions are below the
        limit. If meaning was not compared, a single content word is a match.
        """
        if not self.are_calibrated and self.features.get("touches"):
            return not self.hits
        return not self.hits or self.coverage < _MATCHES_NOTHING

    @property
    def are_calibrated(self) -> bool:
        """Whether the similarity of texts was judged too, because words alone are never certain."""
        return not set(self.fallbacks) - {RERANKING}


class Searcher(Protocol):
    """Searches for a question; raises `knowledge.errors.IndexUnavailable` if there is no index."""

    async def search(self, request: SearchRequest) -> Findings: ...


def find_refusal_reason(
    findings: Findings, *, language: str, text: str, text_eng: str, uses_model: bool
) -> ClarificationReason | None:
    """Return why nothing could be found; None where the documents can be asked in this language.

    A text without a translation cannot be compared with documents in other languages. The reason is
    that no translation is set up only where no model is configured: a model translates.
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
