"""Searches for a question: ranks pages, judges whether they answer it, and composes a context.

If the question cannot be embedded, the search uses only the levels that do not need a vector.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from knowledge.answerability import (
    Assess,
    Assessment,
    accept_by_words,
    assess_by_words,
    find_assess,
    leave_undecided,
)
from knowledge.embedding import Embedder
from knowledge.errors import EmbeddingFailed
from knowledge.index.calibration import choose_language
from knowledge.index.port import Index, IndexedPassage
from knowledge.index.queries import PointId
from knowledge.index.terms import terms
from knowledge.language.scripts import script_of
from knowledge.port import (
    CALIBRATION,
    CandidatePlace,
    ContextSection,
    Findings,
    Hit,
    Quality,
    SearchRequest,
)
from knowledge.search import composer, features, other_versions
from knowledge.search.compounds import divide
from knowledge.search.corpus import Corpora, CorpusView
from knowledge.search.query import Query, Wordings, make_query, wordings
from knowledge.search.ranking import SEMANTIC, Found, RankedChunk, Ranker, Weights, list_hits
from knowledge.search.reranking import Reranker, rerank
from knowledge.search.spelling import (
    find_corrections,
    find_respellings,
    list_doubtful,
    replace_words,
)

_NOTHING = Findings(hits=(), quality="poor", answerability=0.0, coverage=0.0)
_PLACES = 5
_CHUNKS_TO_COUNT = 50
_COMMON_SHARE = 0.2
"""A term that occurs in at least this share of chunks, such as "die" and "hat", is common."""
_MOST_RECENT = 16
"""The number of lookups at one revision that are cached for the next search for the same
question.
"""
log = structlog.get_logger("knowledge")


@dataclass(frozen=True, slots=True)
class _LookUp:
    """The results of one lookup before texts are read, which are independent of the limit in a
    request.

    `correction` is the question with its spelling corrected; `failed` is true if the question could
    not be embedded.
    """

    found: Found
    query: Query
    features: dict[str, float]
    correction: str | None = None
    failed: bool = False
    common: tuple[str, ...] = ()


class LevelSearcher:
    """See `knowledge.port.Searcher`.

    `threshold` is the answerability below which a search is poor; above the midpoint between it and
    1, a search is excellent. `assess` converts the features of a search to probabilities; the
    default depends on whether the embedding model is calibrated for the language. `reranker` orders
    the best chunks, unless the search is poor.
    """

    def __init__(
        self,
        index: Index,
        embedder: Embedder,
        *,
        threshold: float = 0.3,
        assess: Assess | None = None,
        weights: Weights | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._embedder = embedder
        self._threshold = threshold
        self._assess = assess
        self._weights = Weights() if weights is None else weights
        self._reranker = reranker
        self._index = index
        self._corpora = Corpora(index)
        self._recent: OrderedDict[bytes, _LookUp] = OrderedDict()
        self._secret = secrets.token_bytes(32)

    async def warm(self) -> None:
        """Read the index and load the embedding model now, instead of at the first question."""
        await self._corpora.read(())
        await self._embedder.embed_questions(["warm"])

    async def search(self, request: SearchRequest) -> Findings:
        for is_last in (False, False, True):
            view, revision = await self._corpora.read(request.groups)
            if not view.counts.chunks:
                # The place is for operators: the answer to the person does not name it.
                log.warning("index_empty", location=(await self._index.info()).location)
                return replace(_NOTHING, documents=0)
            key = self._hash(revision, request)
            findings = await self._search(view, key, request, is_last=is_last)
            if findings is not None:
                return findings
        return _NOTHING

    async def _search(
        self, view: CorpusView, key: bytes, request: SearchRequest, *, is_last: bool
    ) -> Findings | None:
        """Return the findings, or None if a document was replaced before all of it could be
        read.
        """
        look_up = await self._look_up_once(view, key, request, is_last=is_last)
        if look_up is None:
            return None
        assess = self._choose_assess(view, request, look_up)
        assessment = assess(look_up.features)
        quality = self._quality(assessment)
        ranked, fallbacks = look_up.found, self._list_fallbacks(look_up, assess, request)
        if self._reranker is not None and request.reranked and quality != "poor":
            asked = request.question if look_up.correction is None else look_up.correction
            pages, failures = await rerank(
                ranked.pages, asked, self._reranker, view.index.passages, request.run
            )
            ranked, fallbacks = replace(ranked, pages=pages), (*fallbacks, *failures)
        best = list_hits(ranked.pages, request.limit)
        points = [chunk.chunk.point for chunk in best]
        points += [page.chunks[0].chunk.point for page in ranked.pages[:_PLACES]]
        passages = await view.index.passages(list(dict.fromkeys(points)))
        if not is_last and any(point not in passages for point in points):
            return None
        hits = tuple(_make_hits(ranked, best, passages))
        return Findings(
            hits=hits,
            context=await self._compose(view, replace(look_up, found=ranked), hits, request),
            quality=quality,
            answerability=assessment.answerability,
            coverage=assessment.coverage,
            places=tuple(_make_places(ranked, passages)),
            corrected=look_up.correction,
            fallbacks=fallbacks,
            documents=view.counts.documents,
            languages=view.counts.languages,
            uncompared=_list_uncompared(view, request, is_embedded=not look_up.failed),
            common=look_up.common,
            features=look_up.features,
            total=sum(len(page.chunks) for page in ranked.pages),
        )

    def _choose_assess(self, view: CorpusView, request: SearchRequest, look_up: _LookUp) -> Assess:
        """Return the function that assesses this search."""
        if self._assess is not None:
            return self._assess
        language = choose_language(request.language, view.counts.languages)
        assess = find_assess(self._embedder.name, language, view.calibrations)
        compared = _list_compared(view, request, look_up)
        if assess is assess_by_words:
            return accept_by_words if any(compared[:_PLACES]) else assess
        # The nearest page in meaning and the best one.
        is_across = any(language not in ("", request.language) for language in compared[:2])
        return leave_undecided if is_across else assess

    @staticmethod
    def _list_fallbacks(
        look_up: _LookUp, assess: Assess, request: SearchRequest
    ) -> tuple[str, ...]:
        if look_up.failed:
            return (SEMANTIC,)
        is_calibrated = assess not in (assess_by_words, accept_by_words, leave_undecided)
        return (CALIBRATION,) if request.by_words or not is_calibrated else ()

    async def _look_up_once(
        self, view: CorpusView, key: bytes, request: SearchRequest, *, is_last: bool
    ) -> _LookUp | None:
        """Return the lookup for a request; guardrails and search look up the same question."""
        look_up = self._recent.pop(key, None)
        if look_up is None:
            asked, correction = await self._correct_spelling(view, request)
            query, failed = await self._make_query(asked, view, request)
            look_up = await self._look_up(view, query, asked, request, is_last=is_last)
            if look_up is None:
                return None
            look_up = replace(look_up, correction=correction, failed=failed)
        if not look_up.failed and look_up.correction is None:
            self._recent[key] = look_up
            if len(self._recent) > _MOST_RECENT:
                self._recent.popitem(last=False)
        return look_up

    def _hash(self, revision: str, request: SearchRequest) -> bytes:
        """Return the key of a lookup, from which the question cannot be recovered."""
        asked = replace(request, limit=0, attempt=0, context_tokens=0, reranked=False)
        text = repr((revision, asked)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._secret, digest_size=32).digest()

    async def _look_up(
        self,
        view: CorpusView,
        query: Query,
        asked: Wordings,
        request: SearchRequest,
        *,
        is_last: bool,
    ) -> _LookUp | None:
        ranker = Ranker(view, query, self._weights, request.exclude)
        others = view.find_other_versions((request.question, request.text))
        ranked = await ranker.rank(asked.language, others, is_last=is_last)
        if ranked is None:
            return None
        measured = await features.measure(view, query, ranked, request, asked.language)
        return _LookUp(ranked, query, measured, common=_list_common(view, asked))

    async def _correct_spelling(
        self, view: CorpusView, request: SearchRequest
    ) -> tuple[Wordings, str | None]:
        asked = wordings(request)
        await view.read_frequencies(_list_terms(view, asked))

        def is_known(word: str) -> bool:
            return bool(view.frequencies(view.numbers.of_all(terms(word, asked.language))).any())

        doubtful = list_doubtful(request.question, is_known)
        if not doubtful:
            return asked, None
        letters = await view.read_letters()
        respelled = await find_respellings(doubtful, view.count_documents, letters)
        others = [word for word in doubtful if word not in respelled]
        slips = await find_corrections(others, view.count_documents, letters)
        corrections = {**respelled, **await _keep_own(slips, view, request)}
        whole = [word for word in doubtful if word not in corrections]
        divided = await divide(whole, view.count_documents)
        if not corrections and not divided:
            return asked, None
        question = tuple(
            (replace_words(text, corrections), spoken) for text, spoken in asked.question
        )
        changed = replace(asked, question=question, divided=divided)
        await view.read_frequencies(_list_terms(view, changed))
        return changed, question[0][0] if corrections else None

    async def _make_query(
        self, asked: Wordings, view: CorpusView, request: SearchRequest
    ) -> tuple[Query, bool]:
        """Return the query, and whether it could not be embedded."""

        def is_known(term: str) -> bool:
            return bool(view.frequencies(view.numbers.of_all([term])).any())

        query = make_query(asked, view.numbers, is_known)
        if request.by_words:
            return query, False
        try:
            vectors = await self._embedder.embed_questions(asked.embedded, request.run)
        except EmbeddingFailed:
            return query, True
        return query.embed(asked, vectors), False

    async def _compose(
        self, view: CorpusView, look_up: _LookUp, hits: Sequence[Hit], request: SearchRequest
    ) -> tuple[ContextSection, ...]:
        if not request.context_tokens or not look_up.found.pages:
            return ()
        texts = (request.question, request.text)
        adds_versions = view.versions.has_several and not view.versions.names_one(texts)
        tokens = request.context_tokens
        context = await composer.compose(
            look_up.found.pages,
            hits,
            view.index.passages,
            composer.AskedContext(
                tokens=tokens - tokens // other_versions.SHARE if adds_versions else tokens,
                sections=request.limit,
                excluded=request.exclude,
            ),
        )
        if not view.versions.has_several:
            return context
        context = tuple(other_versions.group_versions(context))
        if not adds_versions:
            return context
        return await other_versions.add_other_versions(view.index, context, view.find_versions)

    def _quality(self, assessment: Assessment) -> Quality:
        if assessment.answerability < self._threshold:
            return "poor"
        excellent = (1 + self._threshold) / 2
        return "excellent" if assessment.answerability >= excellent else "good"


async def _keep_own(
    corrections: Mapping[str, str], view: CorpusView, request: SearchRequest
) -> Mapping[str, str]:
    """Return the corrections that are words in the question's language: the German "lange" is not a
    correction of the English "range". A word in a different script than the question is not checked
    for its language.
    """
    if request.language is None or not corrections:
        return corrections
    script = script_of(request.question)
    own = await view.find_in_language(corrections.values(), request.language)
    return {
        word: right
        for word, right in corrections.items()
        if right in own or script_of(word) != script
    }


def _list_uncompared(
    view: CorpusView, request: SearchRequest, *, is_embedded: bool
) -> tuple[str, ...]:
    """Return the languages of documents whose meaning cannot be compared with a question in its
    language.
    """
    asked = request.language
    if asked is None:
        return ()
    return tuple(
        language
        for language in view.counts.languages
        if language != asked and not (is_embedded and view.compares(asked, language))
    )


def _list_compared(view: CorpusView, request: SearchRequest, look_up: _LookUp) -> list[str]:
    """Return the languages in which vectors found the page closest in meaning, followed by the
    languages of the best pages.

    A language that the model cannot compare with the question is an empty string.
    """
    is_translated = request.text_eng not in ("", request.text)
    is_by_words = request.by_words or look_up.failed
    if request.language is None or is_translated or is_by_words:
        return []
    compared = [(page.document.page, page.document.language) for page in look_up.found.pages]
    spoken = dict(compared)
    nearest = (spoken.get(chunk.page, "") for chunk in look_up.found.lists.semantic[:1])
    languages = (*nearest, *(language for _, language in compared))
    return [language if view.compares(request.language, language) else "" for language in languages]


def _list_common(view: CorpusView, asked: Wordings) -> tuple[str, ...]:
    """Return the terms in the question that occur in many chunks, or none if there are few
    chunks.
    """
    if view.counts.chunks < _CHUNKS_TO_COUNT:
        return ()
    searched = dict.fromkeys(
        term for text, spoken in asked.searched for term in terms(text, spoken)
    )
    counts = view.frequencies(view.numbers.of_all(searched)).tolist()
    least = _COMMON_SHARE * view.counts.chunks
    return tuple(term for term, count in zip(searched, counts, strict=True) if count >= least)


def _list_terms(view: CorpusView, asked: Wordings) -> list[int]:
    """Return the terms in all wordings of the question."""
    return [
        term
        for text, spoken in asked.searched
        for term in view.numbers.of_all(terms(text, spoken)).tolist()
    ]


def _make_hits(
    ranked: Found, best: Sequence[RankedChunk], passages: Mapping[PointId, IndexedPassage]
) -> Iterator[Hit]:
    for hit, levels in zip(best, ranked.find_levels(best), strict=True):
        passage = passages.get(hit.chunk.point)
        if passage is not None:
            yield composer.make_hit(passage, hit.score, levels)


def _make_places(
    ranked: Found, passages: Mapping[PointId, IndexedPassage]
) -> Iterator[CandidatePlace]:
    keywords = ranked.lists.keywords
    # A page has the score of the best of its chunks, which come first.
    by_words = {keyword.page: keyword.score / keywords[0].score for keyword in reversed(keywords)}
    for page in ranked.pages[:_PLACES]:
        passage = passages.get(page.chunks[0].chunk.point)
        if passage is not None:
            yield CandidatePlace(
                label=passage.title,
                crumbs=passage.crumbs,
                document_id=passage.document_id,
                url=passage.url,
                score=round(page.score, 6),
                word_fit=round(by_words.get(page.document.page, 0.0), 6),
            )
