"""Derives the weighted terms and the vector to search for from the question and its
conversation.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from knowledge.index.bm25 import TermNumbers, sort_terms
from knowledge.index.queries import Floats, Terms
from knowledge.index.terms import leave_out_unknown, terms
from knowledge.index.word_parts import ContentWord, list_content_words
from knowledge.port import SearchRequest
from knowledge.search.spelling import replace_words

ENGLISH = "en"
# Longer parts of an earlier turn or answer add nothing and cost time.
_CHARACTERS = 4000
_ANSWER_CHARACTERS = 600
_RELATED = 2
# The weights of earlier turns and the last answer relative to the question: their terms, their
# vectors.
_RELATED_TERMS, _PREVIOUS_TERMS = 0.2, 0.05
_PARTS_OF_WORD = 0.6
"""The total weight of all parts of a word, relative to the word."""
_RELATED_VECTOR, _PREVIOUS_VECTOR = 0.3, 0.2


@dataclass(frozen=True, slots=True)
class Query:
    """The terms with their weights; `phrases` contains each wording of the question.

    `subject` contains the content words of the question. `vector` is the vector of the question,
    moved slightly towards the vectors of the turns it refers to and of the last answer; it is None
    if the question was not embedded.
    """

    terms: Terms
    weights: Floats
    phrases: tuple[Terms, ...]
    own: Terms
    language: str = ENGLISH
    subject: tuple[ContentWord, ...] = ()
    vector: Floats | None = None

    def embed(self, wordings: "Wordings", vectors: Sequence[Sequence[float]]) -> "Query":
        """Return the query with the vectors of `Wordings.embedded`."""
        factors = [1.0]
        if wordings.related:
            factors.append(_RELATED_VECTOR)
        if wordings.previous:
            factors.append(_PREVIOUS_VECTOR)
        mixed: Floats = np.asarray(factors, np.float32) @ np.asarray(vectors, np.float32)
        mixed /= max(float(np.linalg.norm(mixed)), 1e-12)
        return replace(self, vector=mixed)


@dataclass(frozen=True, slots=True)
class Wordings:
    """The question in each known language, and the turns that it refers to.

    `divided` contains words that are searched for by their parts.
    """

    question: tuple[tuple[str, str], ...]
    related: tuple[str, ...]
    previous: str
    language: str
    divided: Mapping[str, str] = field(default_factory=dict)

    @property
    def searched(self) -> tuple[tuple[str, str], ...]:
        """Return the texts whose terms are searched for, each with its language."""
        return tuple((replace_words(text, self.divided), spoken) for text, spoken in self.question)

    @property
    def embedded(self) -> list[str]:
        """Return the texts to embed: the question, then the related turns, then the answer."""
        earlier = " ".join(reversed(self.related))
        return [self.question[0][0], *(text for text in (earlier, self.previous) if text)]


def wordings(request: SearchRequest) -> Wordings:
    """Return the question and its translation, without duplicates, with the language of their
    analysis.
    """
    language = request.language or ENGLISH
    question = request.question[:_CHARACTERS]
    known = [(question, language)]
    for text, spoken in ((request.text, language), (request.text_eng, ENGLISH)):
        if text.strip():
            known.append((text[:_CHARACTERS], spoken))
    if language != ENGLISH:
        known.append((question, ENGLISH))
    return Wordings(
        question=tuple(dict.fromkeys(known)),
        related=tuple(turn[:_CHARACTERS] for turn in request.related[:_RELATED] if turn.strip()),
        previous=request.previous_answer[:_ANSWER_CHARACTERS].strip(),
        language=language,
    )


def make_query(wordings: Wordings, numbers: TermNumbers, is_known: Callable[[str], bool]) -> Query:
    """Return the query without its vector; `is_known` returns whether a document contains a
    term.
    """
    phrases = [
        numbers.of_all(leave_out_unknown(terms(text, spoken), is_known))
        for text, spoken in wordings.searched
    ]
    own = sort_terms(np.concatenate(phrases))
    weight: dict[int, float] = dict.fromkeys(own.tolist(), 1.0)
    related = (terms(turn, wordings.language) for turn in wordings.related)
    _add(weight, (numbers.of_all(related_terms) for related_terms in related), _RELATED_TERMS)
    previous = numbers.of_all(terms(wordings.previous, wordings.language))
    _add(weight, [previous], _PREVIOUS_TERMS)
    subject = [
        word
        for text, spoken in wordings.searched
        if spoken == wordings.language
        for word in list_content_words(text, spoken)
    ]
    for word in subject:
        _add(weight, [numbers.of_all(word.parts)], _PARTS_OF_WORD / max(len(word.parts), 1))
    return Query(
        terms=np.fromiter(weight.keys(), dtype=np.uint32, count=len(weight)),
        weights=np.fromiter(weight.values(), dtype=np.float32, count=len(weight)),
        phrases=tuple(sort_terms(phrase) for phrase in phrases if len(phrase)),
        own=own,
        language=wordings.language,
        subject=tuple(subject),
    )


def _add(weight: dict[int, float], related_numbers: Iterable[Terms], factor: float) -> None:
    for numbers in related_numbers:
        for number in numbers.tolist():
            weight.setdefault(number, factor)
