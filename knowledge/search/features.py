"""The features of a search, from which `knowledge.answerability` estimates whether it answers.

Terms are weighted by IDF. All features are finite; those of vectors are missing without them.

known          share of the question's terms that the documents contain at all
unk, n, gen    terms that are unknown, 3 at most; log(1 + number of terms); mean log(1 + chunks)
best           highest share of them in one of the ten best chunks by keywords
best_page      highest share of them in those of the best chunks that one page has
bm, bmabs      best BM25 score, over its upper bound; as a logarithm
match          highest likeness of question and heading
gap            best page's score less the second's, of the best
dense1         best cosine; dense10: the mean of the ten best
alone1, 10     the same of the question without its conversation
dcov           mean share of the terms in the ten best chunks by meaning
agree          share of the ten best chunks by meaning that are among the ten by keywords
subject_known  share of the subject's terms that the documents hold at all
subject_best   highest share of them in one of the best chunks by keywords
subject_placed the same, where the title and the headings of a chunk count as its words
chunks         the number of chunks
surprise       how unlikely that is by chance: the sum of log(N / n) over the terms in that chunk,
               less log N, for N chunks of which n hold a term. At 0 one chunk of the documents
               would be expected to hold these words together if words were spread by chance.
first          the conversation begins with the question
definite       nouns made definite, 2 at most; unmentioned: those that no earlier turn has mentioned
pointing_at_nothing  it has words like "it", and there is no turn that they could point at

The subject is the question without words that only ask ("much", "cost"). A question that has no
such word has no subject, and its surprise is negative.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from knowledge.index.bm25 import B, K
from knowledge.index.points import layout
from knowledge.index.queries import Floats, PointId, SparseText, Terms
from knowledge.index.terms import terms
from knowledge.port import SearchRequest
from knowledge.search.corpus import CorpusView
from knowledge.search.query import ENGLISH, Query
from knowledge.search.ranking import Found, FoundChunk, Page
from knowledge.stop_words import ASKING_WORDS

_BEST = 10
_BOUND = K + 1 if B else K
_MOST_PLACES = 4096
_WORD = re.compile(r"[^\W_][\w'\u2019./:-]*")
_STEM_LETTERS = 6
_NO_TERMS = SparseText(np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.float32))

Present = npt.NDArray[np.bool_]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DEFINITE = _set(
    "the this that these those diese dieser dieses diesen diesem este esta estos estas ese esa "
    "esos esas ce cet cette ces questo questa questi queste quel quella quei quelle esse essa "
    "esses essas этот эта это эти этого этой этих цей ця це ці цього цієї цих"
)
_IT = _set(
    "it its they them their he she him her his hers theirs there ihn ihm ihnen deren dessen davon "
    "ello ellos ellas celui celle ceux lui leur esso essa essi isso aquilo ele eles elas он она "
    "оно они его её ее их він вона воно вони його її їх"
)
_LITTLE = _set(
    "a about all also am an and any are as at be been but by can could did do does doing for from "
    "get had has have how i if in into is just know let like may me might more most much must my "
    "need no nor not now of off on one ones only or other our out over same should so some such "
    "tell than then to too until up us use using very want was way we were what when where which "
    "while who whom whose why will with would you your it its they them their he she his her "
    "there that this these those the"
)


@dataclass(frozen=True, slots=True)
class _Subject:
    """The terms of the wording that the documents know best, and which of them chunks contain.

    `by_keywords` and `by_meaning` have a row for each of the best chunks, `placed` for the first
    ones what their titles and headings contain, `of_pages` the chunks of each page together.
    """

    own: Terms
    idf: Floats
    counts: Floats
    by_keywords: Sequence[Present]
    by_meaning: Sequence[Present]
    placed: Sequence[Present]
    of_pages: Sequence[Present]

    @property
    def shares(self) -> Floats:
        """The share of each term in the question, by IDF."""
        shares: Floats = self.idf / max(float(self.idf.sum()), 1e-9)
        return shares

    def find_best(self, each: Sequence[Present]) -> float:
        """Return the highest share of the question in one of these texts."""
        return max((float(self.shares[held].sum()) for held in each), default=0.0)


async def measure(
    view: CorpusView, query: Query, found: Found, request: SearchRequest, language: str
) -> dict[str, float]:
    """Return the features of a search for a question in `language`."""
    wording = measure_wording(request)
    subject = await _read_subject(view, query, found)
    if not found.pages or _is_untranslated(view, request):
        # Stems that two languages share by chance are no evidence.
        subject_features = make_no_evidence(view.counts.chunks)
    else:
        subject_features = _measure_subject(view, subject, language)
    if not found.pages:
        return subject_features
    return {
        **wording,
        **_measure_terms(subject),
        **_measure_lists(found, subject),
        **subject_features,
    }


def make_no_evidence(size: int) -> dict[str, float]:
    """Return the features of a question without a subject; `size` is the number of chunks."""
    nothing = {"subject_known": 0.0, "subject_best": 0.0, "subject_placed": 0.0}
    return {"chunks": float(size), "surprise": -float(np.log1p(size)), **nothing}


async def _read_subject(view: CorpusView, query: Query, found: Found) -> _Subject:
    """Read the terms of the few chunks whose words are compared, in one call."""
    own = _find_best_known(view, query)
    keywords, meaning = found.lists.keywords[:_BEST], found.lists.semantic[:_BEST]
    points = list(dict.fromkeys(one.point for one in (*keywords, *meaning)))
    read = (
        await view.index.read_points(
            points, ("crumbs", "heading_path", "language"), (layout.KEYWORDS,)
        )
        if points
        else {}
    )
    held: dict[PointId, Present] = {
        point: _find_held(own, stored.texts.get(layout.KEYWORDS, _NO_TERMS).terms)
        for point, stored in read.items()
    }

    def list_held(chunks: Sequence[FoundChunk]) -> list[Present]:
        return [held[one.point] for one in chunks if one.point in held]

    pages: dict[Page, list[FoundChunk]] = {}
    for one in (*keywords, *meaning):
        if one.point in held:
            pages.setdefault(one.page, []).append(one)
    places = [
        _read_terms(" ".join((*stored["crumbs"], *stored["heading_path"])), stored["language"])
        for one in keywords
        if one.point in held
        for stored in (read[one.point].payload,)
    ]
    return _Subject(
        own,
        view.idf(own),
        view.frequencies(own),
        list_held(keywords),
        list_held(meaning),
        [_find_held(own, view.numbers.of_all(place)) for place in places],
        [np.any(list_held(chunks), axis=0) for chunks in pages.values()],
    )


def _find_held(own: Terms, text: Terms) -> Present:
    """Return which of a few terms a text contains; `numpy.isin` takes five times as long."""
    held: Present = (own[:, None] == text).any(axis=1)
    return held


def _find_best_known(view: CorpusView, query: Query) -> Terms:
    """Return the terms of the wording that the documents know best."""

    def compute_share(phrase: Terms) -> float:
        idf = view.idf(phrase)
        return float(idf[view.frequencies(phrase) > 0].sum() / max(float(idf.sum()), 1e-9))

    return max(query.phrases, key=compute_share, default=query.own)


def _measure_terms(subject: _Subject) -> dict[str, float]:
    counts = subject.counts
    return {
        "known": float(subject.shares[counts > 0].sum()),
        "unk": float(min(int((counts == 0).sum()), 3)),
        "n": float(np.log1p(len(counts))),
        "gen": float(np.log1p(counts).mean()) if len(counts) else 0.0,
    }


def _measure_lists(found: Found, subject: _Subject) -> dict[str, float]:
    lists = found.lists
    first, second = ([*(page.score for page in found.pages[:2]), 0.0])[:2]
    bm25 = lists.keywords[0].score if lists.keywords else 0.0
    features = {
        "best": subject.find_best(subject.by_keywords),
        "best_page": subject.find_best(subject.of_pages),
        "bm": bm25 / (max(float(subject.idf.sum()), 1e-9) * _BOUND),
        "bmabs": float(np.log1p(bm25)),
        "match": lists.named[0].score if lists.named else 0.0,
        "gap": (first - second) / first,
    }
    if lists.alone is None or lists.cosines is None:
        return features
    by_meaning = {one.point for one in lists.semantic[:_BEST]}
    both = by_meaning.intersection(one.point for one in lists.keywords[:_BEST])
    covered = [float(subject.shares[held].sum()) for held in subject.by_meaning]
    return features | {
        "dense1": float(lists.cosines[0]),
        "dense10": float(lists.cosines.mean()),
        "alone1": float(lists.alone[0]),
        "alone10": float(lists.alone.mean()),
        "dcov": float(np.mean(covered)) if covered else 0.0,
        "agree": len(both) / _BEST,
    }


def _measure_subject(view: CorpusView, subject: _Subject, language: str) -> dict[str, float]:
    size = view.counts.chunks
    asking = view.numbers.of_all(_list_asking_terms(language))
    is_subject = ~np.isin(subject.own, asking)
    if not is_subject.any() or not subject.by_keywords:
        return make_no_evidence(size)
    counts, idf = subject.counts[is_subject], subject.idf[is_subject]
    shares = idf / max(float(idf.sum()), 1e-9)
    rarity = np.where(counts > 0, np.log(size / np.maximum(counts, 1e-9)), 0.0)
    held = [one[is_subject] for one in subject.by_keywords]
    placed = [one | place[is_subject] for one, place in zip(held, subject.placed, strict=True)]
    return {
        "chunks": float(size),
        "subject_known": float(shares[counts > 0].sum()),
        "subject_best": max(float(shares[one].sum()) for one in held),
        "subject_placed": max(float(shares[one].sum()) for one in placed),
        "surprise": max(float(rarity[one].sum()) for one in held) - float(np.log(size)),
    }


def _is_untranslated(view: CorpusView, request: SearchRequest) -> bool:
    """Say whether a question is in a language that no document has, and only in that one."""
    is_foreign = request.language is not None and request.language not in view.counts.languages
    return is_foreign and request.text_eng.strip() == request.text.strip()


@lru_cache(maxsize=_MOST_PLACES)
def _read_terms(place: str, language: str) -> tuple[str, ...]:
    return tuple(terms(place, language))


@cache
def _list_asking_terms(language: str) -> tuple[str, ...]:
    """Return the terms that only ask in English, and in a language."""
    own = ASKING_WORDS.get(language, "") if language != ENGLISH else ""
    return (*terms(ASKING_WORDS[ENGLISH], ENGLISH), *_analyse_alone(own, language))


def _analyse_alone(words: str, language: str) -> Iterator[str]:
    """Yield the terms of each word alone: among others, a function word is left out."""
    for word in words.split():
        yield from terms(word, language)


def measure_wording(request: SearchRequest) -> dict[str, float]:
    """Return the features of the question's own words, which need no index.

    They separate a question without a clear subject ("How old is the building?" as a first
    question) from one that names it ("How old is the Eiffel Tower?").
    """
    raw = _WORD.findall(request.text_eng or request.text or request.question)
    earlier = (*request.related, request.previous_answer)
    mentioned = {_stem(word) for text in earlier for word in _WORD.findall(text)}
    definite = [
        after
        for word, after in pairwise(raw)
        if word.lower() in _DEFINITE and after.lower() not in _LITTLE
    ]
    points = any(word.lower() in _IT for word in raw)
    return {
        "first": float(not request.turns and not request.related),
        "definite": float(min(len(definite), 2)),
        "unmentioned": float(min(sum(_stem(noun) not in mentioned for noun in definite), 2)),
        "pointing_at_nothing": float(points and not request.related),
    }


def _stem(word: str) -> str:
    return re.sub(r"['\u2019]s?$", "", word.lower())[:_STEM_LETTERS].removesuffix("s")
