"""Searches for a question: scores candidates on four levels, returns the best of the best pages.

If the question cannot be embedded, the search uses only the levels that need no vector.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog

from knowledge.answerability import Assess, Assessment, assess_by_words, find_assess
from knowledge.embedding import Embedder
from knowledge.errors import EmbeddingFailed
from knowledge.index.bm25 import TermNumbers
from knowledge.index.calibration import Calibrations, choose_language
from knowledge.index.page_kind import PageKind, find_wanted_kinds
from knowledge.index.port import Index, Passage
from knowledge.index.queries import PointId
from knowledge.index.terms import terms
from knowledge.port import (
    CALIBRATION,
    CandidatePlace,
    ContextSection,
    Findings,
    Hit,
    Quality,
    SearchRequest,
)
from knowledge.search import fusion, levels
from knowledge.search.candidates.candidate_search import CandidateSearch
from knowledge.search.candidates.found_candidates import Candidates
from knowledge.search.candidates.kept_points import KeptPoints
from knowledge.search.context import composer, other_versions
from knowledge.search.evidence.compared_texts import read_compared_texts
from knowledge.search.evidence.conversation_features import conversation
from knowledge.search.evidence.search_features import (
    features,
    list_best,
    list_best_by_keywords,
)
from knowledge.search.evidence.term_shares import read_term_shares
from knowledge.search.evidence.vocabularies import Vocabularies
from knowledge.search.evidence.word_evidence import make_no_evidence
from knowledge.search.evidence.wording import wording
from knowledge.search.fusion import RankedChunk, RankedPage
from knowledge.search.levels import Scores
from knowledge.search.query import Query, Wordings, combine_vectors, make_query, wordings
from knowledge.search.reranking.reordering import rerank
from knowledge.search.reranking.reranker import Reranker
from knowledge.search.spelling import apply_corrections, find_corrections, list_doubtful
from knowledge.search.stated import find_stated
from knowledge.search.statistics.corpus import Corpora, CorpusView
from knowledge.search.weights import Weights

_NOTHING = Findings(hits=(), quality="poor", answerability=0.0, coverage=0.0, ambiguity=0.0)
_PLACES = 5
_MOST_RECENT = 16
"""The look-ups of one revision that are kept for the next search of the same question."""
log = structlog.get_logger("knowledge")


@dataclass(frozen=True, slots=True)
class _Found:
    """One look-up, before texts are read; it does not depend on the limit of a request.

    `correction` is the question with its spelling corrected, `failed` says that the question could
    not be embedded.
    """

    candidates: Candidates
    scores: Scores | None
    pages: list[RankedPage]
    features: dict[str, float]
    correction: str | None = None
    failed: bool = False


class LevelSearcher:
    """See `knowledge.port.Searcher`.

    `threshold` is the answerability below which a search is poor; halfway from there to 1 it is
    excellent. `assess` turns the features of a search into probabilities; by default, as far as the
    embedding model is calibrated for the language. `reranker` orders the best chunks, unless
    the search is poor.
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
        self._calibrations: Calibrations = {}
        self._calibrated_revision: str | None = None
        self._weights = Weights() if weights is None else weights
        self._reranker = reranker
        self._index = index
        self._corpora = Corpora(index)
        self._kept = KeptPoints()
        self._vocabularies = Vocabularies()
        self._recent: OrderedDict[bytes, _Found] = OrderedDict()
        self._secret = secrets.token_bytes(32)

    async def warm(self) -> None:
        """Read the index and load the embedding model now rather than at the first question."""
        await self._corpora.read(())
        await self._embedder.embed_questions(["warm"])

    async def search(self, request: SearchRequest) -> Findings:
        for is_last in (False, False, True):
            view = await self._corpora.read(request.groups)
            if not len(view):
                # The place is for operators: the answer to the person does not name it.
                log.warning("index_empty", location=(await self._index.info()).location)
                return replace(_NOTHING, documents=0)
            findings = await self._search(view, request, is_last=is_last)
            if findings is not None:
                return findings
        return _NOTHING

    async def _search(
        self, view: CorpusView, request: SearchRequest, *, is_last: bool
    ) -> Findings | None:
        """Return None when a document was replaced before all of it could be read."""
        found = await self._look_up_once(view, request, is_last=is_last)
        if found is None:
            return None
        assess = await self._choose_assess(view, request)
        assessment = assess(found.features)
        quality = self._quality(assessment)
        reranking: tuple[str, ...] = ()
        if self._reranker is not None and request.reranked and quality != "poor":
            found, reranking = await _rerank(view, found, request, self._reranker)
        best = fusion.hits(found.pages, request.limit) if found.pages else []
        numbers = [hit.chunk for hit in best]
        numbers += [page.chunks[0].chunk for page in found.pages[:_PLACES]]
        points = [found.candidates.points[number] for number in dict.fromkeys(numbers)]
        passages = await view.index.passages(points)
        if not is_last and any(point not in passages for point in points):
            return None
        is_by_words = request.by_words or assess is assess_by_words
        missing = (CALIBRATION,) if is_by_words else ()
        hits = tuple(_hits(found, best, passages))
        return Findings(
            hits=hits,
            context=await self._compose(view, found, hits, request),
            quality=quality,
            answerability=assessment.answerability,
            coverage=assessment.coverage,
            ambiguity=assessment.ambiguity,
            places=tuple(_places(found, passages)),
            corrected=found.correction,
            fallbacks=(*((levels.SEMANTIC,) if found.failed else missing), *reranking),
            documents=view.counts.documents,
            languages=view.counts.languages,
            features=found.features,
            total=sum(one.score > 0 for page in found.pages for one in page.chunks),
        )

    async def _choose_assess(self, view: CorpusView, request: SearchRequest) -> Assess:
        """Return what judges this search; the calibrations are read again after each change."""
        if self._assess is not None:
            return self._assess
        if view.revision != self._calibrated_revision:
            self._calibrations = await view.index.calibrations()
            self._calibrated_revision = view.revision
        language = choose_language(request.language, view.counts.languages)
        return find_assess(self._embedder.name, language, self._calibrations)

    async def _look_up_once(
        self, view: CorpusView, request: SearchRequest, *, is_last: bool
    ) -> _Found | None:
        """Return the look-up of a request; guardrails and search look the same question up."""
        key = self._hash(view.revision, request)
        found = self._recent.pop(key, None)
        if found is None:
            asked, correction = await self._correct_spelling(view, request)
            query, failed = await self._query(asked, view.numbers, request)
            found = await self._look_up(view, query, asked, request, is_last=is_last)
            if found is None:
                return None
            found = replace(found, correction=correction, failed=failed)
        if not found.failed and found.correction is None:
            self._recent[key] = found
            if len(self._recent) > _MOST_RECENT:
                self._recent.popitem(last=False)
        return found

    def _hash(self, revision: str, request: SearchRequest) -> bytes:
        """Return the key of a look-up, from which the question cannot be read."""
        asked = replace(request, limit=0, attempt=0, context_tokens=0, reranked=False)
        text = repr((revision, asked)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._secret, digest_size=32).digest()

    async def _compose(
        self, view: CorpusView, found: _Found, hits: Sequence[Hit], request: SearchRequest
    ) -> tuple[ContextSection, ...]:
        if not request.context_tokens or not len(found.candidates):
            return ()
        texts = (request.question, request.text)
        adds_versions = view.versions.has_several and not view.versions.names_one(texts)
        tokens = request.context_tokens
        context = await composer.compose(
            found.candidates,
            found.pages,
            hits,
            view.index.passages,
            view.find_titles,
            composer.AskedContext(
                tokens=tokens - tokens // other_versions.SHARE if adds_versions else tokens,
                sections=request.limit,
                texts=texts,
                later=_list_changelogs(found.candidates, texts),
                excluded=found.candidates.find_chunks(request.exclude),
            ),
        )
        if not adds_versions:
            return context
        return await other_versions.add_other_versions(view.index, context, view.find_versions)

    async def _correct_spelling(
        self, view: CorpusView, request: SearchRequest
    ) -> tuple[Wordings, str | None]:
        asked = wordings(request)
        numbers = view.numbers
        await view.read_frequencies(_list_terms(asked, numbers))

        def is_known(word: str) -> bool:
            found = numbers.of_all(terms(word, asked.language))
            return any(view.frequency(term) > 0 for term in found.tolist())

        doubtful = list_doubtful(request.question, is_known)
        letters = view.sample.letters
        corrections = await find_corrections(doubtful, view.count_documents, letters)
        if not corrections:
            return asked, None
        question = tuple(
            (apply_corrections(text, corrections), spoken) for text, spoken in asked.question
        )
        corrected = replace(asked, question=question)
        await view.read_frequencies(_list_terms(corrected, numbers))
        return corrected, question[0][0]

    async def _query(
        self, asked: Wordings, numbers: TermNumbers, request: SearchRequest
    ) -> tuple[Query, bool]:
        query = make_query(asked, numbers, self._weights)
        if request.by_words:
            return query, False
        try:
            vectors = await self._embedder.embed_questions(asked.embedded, request.run)
        except EmbeddingFailed:
            return query, True
        alone = np.asarray(vectors[0], dtype=np.float32)
        earlier = np.asarray(vectors[1], dtype=np.float32) if asked.related else None
        vector = combine_vectors(asked, vectors, self._weights) if len(vectors) > 1 else alone
        return replace(query, vector=vector, alone=alone, earlier=earlier), False

    async def _look_up(
        self,
        view: CorpusView,
        query: Query,
        asked: Wordings,
        request: SearchRequest,
        *,
        is_last: bool,
    ) -> _Found | None:
        search = CandidateSearch(
            view, self._kept, query, self._weights, excluded=len(request.exclude)
        )
        await view.read_frequencies(query.terms.tolist())
        candidates = await search.find(asked.language, is_last=is_last)
        if candidates is None:
            return None
        if not len(candidates):
            return _Found(candidates, None, [], make_no_evidence(len(view)))
        names = levels.NameMatches(candidates, query)
        await view.read_kept_frequencies(names.terms.tolist())
        stated = await find_stated(view.index, candidates, query, view)
        scores = levels.score(candidates, names, query, view, self._weights, stated)
        total = fusion.weigh_kinds(candidates, fusion.fuse(scores), query, self._weights)
        others = view.find_other_versions((request.question, request.text))
        ranked = fusion.pages(
            candidates,
            fusion.leave_out(candidates, total, candidates.find_documents(others)),
            best_chunks=self._weights.best_chunks,
            language=asked.language,
            without=candidates.find_chunks(request.exclude),
        )
        chunks, documents = list_best(scores, ranked)
        texts = await read_compared_texts(view.index, candidates, chunks)
        shares = await read_term_shares(
            self._vocabularies, candidates, query, view, texts=texts, documents=documents
        )
        places = [texts[chunk].place for chunk in list_best_by_keywords(scores)]
        numbers = view.numbers
        shape = {
            **features(candidates, view, scores, ranked, shares, numbers, places, asked.language),
            **conversation(candidates, query, asked, view, numbers),
            **wording(request),
        }
        if _is_untranslated(view, request):
            # Stems that two languages share by chance are no evidence.
            shape |= make_no_evidence(len(view))
        return _Found(candidates, scores, ranked, shape)

    def _quality(self, assessment: Assessment) -> Quality:
        if assessment.answerability < self._threshold:
            return "poor"
        excellent = (1 + self._threshold) / 2
        return "excellent" if assessment.answerability >= excellent else "good"


async def _rerank(
    view: CorpusView, found: _Found, request: SearchRequest, reranker: Reranker
) -> tuple[_Found, tuple[str, ...]]:
    """Return a look-up in the order of the reranker, and the fallbacks."""
    question = request.question if found.correction is None else found.correction
    points = found.candidates.points
    ordered = await rerank(
        found.pages, points, question, reranker, view.index.passages, request.run
    )
    return replace(found, pages=ordered.pages), ordered.fallbacks


def _list_changelogs(found: Candidates, texts: Sequence[str]) -> Collection[int]:
    """Return the chunks of changelogs, unless the question asks for changes."""
    if PageKind.CHANGELOG in find_wanted_kinds(texts) or PageKind.CHANGELOG not in found.kinds:
        return ()
    chunks: list[int] = np.flatnonzero(found.kinds[PageKind.CHANGELOG]).tolist()
    return chunks


def _list_terms(asked: Wordings, numbers: TermNumbers) -> list[int]:
    """Return the terms of the question in all of its wordings."""
    return [
        term
        for text, spoken in asked.question
        for term in numbers.of_all(terms(text, spoken)).tolist()
    ]


def _is_untranslated(view: CorpusView, request: SearchRequest) -> bool:
    """Say whether a question is in a language that no document has, and only in that one."""
    is_foreign = request.language is not None and request.language not in view.counts.languages
    return is_foreign and request.text_eng.strip() == request.text.strip()


def _hits(
    found: _Found, best: Sequence[RankedChunk], passages: Mapping[PointId, Passage]
) -> Iterator[Hit]:
    if found.scores is None:
        return
    by = fusion.find_levels(found.scores, [hit.chunk for hit in best])
    for hit, names in zip(best, by, strict=True):
        passage = passages.get(found.candidates.points[hit.chunk])
        if passage is not None:
            yield composer.make_hit(passage, hit.score, names)


def _places(found: _Found, passages: Mapping[PointId, Passage]) -> Iterator[CandidatePlace]:
    for page in found.pages[:_PLACES]:
        passage = passages.get(found.candidates.points[page.chunks[0].chunk])
        if passage is not None:
            yield CandidatePlace(
                label=passage.title,
                crumbs=passage.crumbs,
                document_id=passage.document_id,
                url=passage.url,
                score=round(page.score, 6),
            )
