"""The features of a search, from which `knowledge.answerability` estimates whether it answers.

dense1         best cosine; missing without vectors
bm, bmabs      best BM25 score, over its upper bound; as a logarithm
match          highest likeness of the question and a name
n              log(1 + number of terms)
chunks         the number of chunks
touches        1 if one of the best chunks by keywords has a content word of the question, also in
               another form or in a compound

In a small collection, features of the subject, which is the question without words that only ask
("much", "cost"):

subject_best   highest share of its terms, by IDF, in one of the best chunks by keywords
subject_placed the same, where the title and the headings of a chunk count as its words
surprise       how unlikely that is by chance: the sum of log(N / n) over the terms in that chunk,
               less log N, for N chunks of which n hold a term. At 0 one chunk of the documents
               would be expected to hold these words together if words were spread by chance.
"""

from collections.abc import Iterator
from functools import cache, lru_cache, partial

import numpy as np
import numpy.typing as npt

from knowledge.answerability import FEW_CHUNKS
from knowledge.index.bm25 import B, K, are_terms
from knowledge.index.points import layout
from knowledge.index.queries import Terms
from knowledge.index.terms import terms
from knowledge.port import SearchRequest
from knowledge.search.corpus import CorpusView
from knowledge.search.query import ENGLISH, Query
from knowledge.search.ranking import Found
from knowledge.stop_words import ASKING_WORDS

_BEST = 10
_BOUND = K + 1 if B else K
_MOST_PLACES = 4096

Present = npt.NDArray[np.bool_]


async def measure(
    view: CorpusView, query: Query, ranked: Found, request: SearchRequest, language: str
) -> dict[str, float]:
    """Return the features of a search for a question in `language`, or none if it found nothing."""
    if not ranked.pages:
        return {}
    own, lists = _find_best_known(view, query), ranked.lists
    bm25 = lists.keywords[0].score if lists.keywords else 0.0
    features = {
        "bm": bm25 / (max(float(view.idf(own).sum()), 1e-9) * _BOUND),
        "bmabs": float(np.log1p(bm25)),
        "match": lists.named[0].score if lists.named else 0.0,
        "n": float(np.log1p(len(own))),
        "chunks": float(view.counts.chunks),
    }
    if await _touches(view, query, ranked):
        features["touches"] = 1.0
    if lists.semantic:
        features["dense1"] = lists.semantic[0].score
    # Stems that two languages share by chance are not evidence.
    if view.counts.chunks <= FEW_CHUNKS and not _is_untranslated(view, request):
        features |= await _measure_subject(view, own, ranked, language)
    return features


def _find_best_known(view: CorpusView, query: Query) -> Terms:
    """Return the terms of the wording that is closest to the vocabulary of the documents."""

    def compute_share(phrase: Terms) -> float:
        idf = view.idf(phrase)
        return float(idf[view.frequencies(phrase) > 0].sum() / max(float(idf.sum()), 1e-9))

    return max(query.phrases, key=compute_share, default=query.own)


async def _touches(view: CorpusView, query: Query, ranked: Found) -> bool:
    """Return whether one of the best chunks contains a content word of the question, in any
    inflected form.
    """
    points = [keyword.point for keyword in ranked.lists.keywords[:_BEST]]
    if not query.subject or not points:
        return False
    read = await view.index.read_points(points, (), (layout.KEYWORDS,))
    texts = [set(stored.texts[layout.KEYWORDS].terms.tolist()) for stored in read.values()]

    def contains(text: set[int], term: str) -> bool:
        return view.numbers.of(term) in text

    return any(word.is_in(partial(contains, text)) for word in query.subject for text in texts)


async def _measure_subject(
    view: CorpusView, own: Terms, ranked: Found, language: str
) -> dict[str, float]:
    """Return the features of the subject, or none for a question that consists only of question
    words.
    """
    subject = own[~are_terms(own, view.numbers.of_all(_list_asking_terms(language)))]
    points = [keyword.point for keyword in ranked.lists.keywords[:_BEST]]
    if not len(subject) or not points:
        return {}
    read = await view.index.read_points(
        points, ("crumbs", "heading_path", "language"), (layout.KEYWORDS,)
    )
    texts = [stored.texts[layout.KEYWORDS].terms for stored in read.values()]
    places = [
        _read_terms(" ".join((*stored["crumbs"], *stored["heading_path"])), stored["language"])
        for stored in (point.payload for point in read.values())
    ]
    held: list[Present] = [are_terms(subject, text) for text in texts]
    placed = [
        one | are_terms(subject, view.numbers.of_all(place))
        for one, place in zip(held, places, strict=True)
    ]
    size, counts, idf = view.counts.chunks, view.frequencies(subject), view.idf(subject)
    shares = idf / max(float(idf.sum()), 1e-9)
    rarity = np.where(counts > 0, np.log(size / np.maximum(counts, 1e-9)), 0.0)
    return {
        "subject_best": max((float(shares[words].sum()) for words in held), default=0.0),
        "subject_placed": max((float(shares[words].sum()) for words in placed), default=0.0),
        "surprise": max((float(rarity[words].sum()) for words in held), default=0.0) - np.log(size),
    }


def _is_untranslated(view: CorpusView, request: SearchRequest) -> bool:
    """Return whether the documents contain no text in the language of the question."""
    is_foreign = request.language is not None and request.language not in view.counts.languages
    return is_foreign and request.text_eng.strip() == request.text.strip()


@lru_cache(maxsize=_MOST_PLACES)
def _read_terms(place: str, language: str) -> tuple[str, ...]:
    return tuple(terms(place, language))


@cache
def _list_asking_terms(language: str) -> tuple[str, ...]:
    """Return the question words of English and of the given language."""
    own = ASKING_WORDS.get(language, "") if language != ENGLISH else ""
    return (*terms(ASKING_WORDS[ENGLISH], ENGLISH), *_analyse_alone(own, language))


def _analyse_alone(words: str, language: str) -> Iterator[str]:
    """Yield the terms of each word analyzed separately, because a function word next to other words
    is omitted.
    """
    for word in words.split():
        yield from terms(word, language)
