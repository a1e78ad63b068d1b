"""Searches for a question: scores all chunks on four levels, returns the best of the best pages.

If the question cannot be embedded, the search uses only the levels that need no vector.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog

from knowledge.answerability import Assess, Assessment, assess_by_words, find_assess
from knowledge.embedding import Embedder
from knowledge.errors import EmbeddingFailed
from knowledge.index.bm25 import TermNumbers
from knowledge.index.calibration import Calibrations, choose_language
from knowledge.index.port import Index, Passage
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
from knowledge.search.context import composer, earlier_versions
from knowledge.search.corpus import Corpora, Corpus, is_known
from knowledge.search.evidence.conversation_features import conversation
from knowledge.search.evidence.search_features import features
from knowledge.search.evidence.word_evidence import make_no_evidence
from knowledge.search.evidence.wording import wording
from knowledge.search.fusion import RankedChunk, RankedPage
from knowledge.search.levels import Scores
from knowledge.search.mirror import Mirror
from knowledge.search.query import Query, Wordings, combine_vectors, make_query, wordings
from knowledge.search.spelling import apply_corrections
from knowledge.search.weights import Weights

_NOTHING = Findings(hits=(), quality="poor", answerability=0.0, coverage=0.0, ambiguity=0.0)
_PLACES = 5
log = structlog.get_logger("knowledge")


@dataclass(frozen=True, slots=True)
class _Found:
    """One look-up, before texts are read."""

    scores: Scores
    pages: list[RankedPage]
    hits: list[RankedChunk]
    features: dict[str, float]


class LevelSearcher:
    """See `knowledge.port.Searcher`.

    `threshold` is the answerability below which a search is poor; halfway from there to 1 it is
    excellent. `assess` turns the features of a search into probabilities; by default, as far as the
    embedding model is calibrated for the language.
    """

    def __init__(
        self,
        index: Index,
        embedder: Embedder,
        *,
        threshold: float = 0.3,
        assess: Assess | None = None,
        weights: Weights | None = None,
    ) -> None:
        self._embedder = embedder
        self._threshold = threshold
        self._assess = assess
        self._calibrations: Calibrations = {}
        self._calibrated_revision: str | None = None
        self._weights = Weights() if weights is None else weights
        self._index = index
        self._corpora = Corpora(index)

    async def warm(self) -> None:
        """Read the index and load the embedding model now rather than at the first question."""
        await self._corpora.read(())
        await self._embedder.embed_questions(["warm"])

    async def search(self, request: SearchRequest) -> Findings:
        for last in (False, False, True):
            corpus = await self._corpora.read(request.groups)
            if not len(corpus.mirror):
                # The place is for operators: the answer to the person does not name it.
                log.warning("index_empty", location=(await self._index.info()).location)
                return replace(_NOTHING, documents=0)
            findings = await self._search(corpus, corpus.mirror, request, last=last)
            if findings is not None:
                return findings
        return _NOTHING

    async def _search(
        self, corpus: Corpus, mirror: Mirror, request: SearchRequest, *, last: bool
    ) -> Findings | None:
        """Return None when a document was replaced before its text could be read."""
        asked, correction = _correct_spelling(corpus, mirror, request)
        query, failed = await self._query(asked, corpus.numbers, by_words=request.by_words)
        found = await asyncio.to_thread(self._look_up, corpus, mirror, query, asked, request)
        points = [mirror.points[hit.chunk] for hit in found.hits]
        points += [mirror.points[page.chunks[0].chunk] for page in found.pages[:_PLACES]]
        passages = await corpus.index.passages(list(dict.fromkeys(points)))
        if not last and any(point not in passages for point in points):
            return None
        assess = await self._choose_assess(corpus, request)
        assessment = assess(found.features)
        is_by_words = request.by_words or assess is assess_by_words
        missing = (CALIBRATION,) if is_by_words else ()
        hits = tuple(_hits(mirror, found, passages))
        return Findings(
            hits=hits,
            context=await self._compose(corpus, mirror, found, hits, request),
            quality=self._quality(assessment),
            answerability=assessment.answerability,
            coverage=assessment.coverage,
            ambiguity=assessment.ambiguity,
            places=tuple(_places(mirror, found.pages[:_PLACES], passages)),
            corrected=correction,
            fallbacks=(levels.SEMANTIC,) if failed else missing,
            documents=len(mirror.entries),
            languages=mirror.languages,
            features=found.features,
        )

    async def _choose_assess(self, corpus: Corpus, request: SearchRequest) -> Assess:
        """Return what judges this search; the calibrations are read again after each change."""
        if self._assess is not None:
            return self._assess
        revision = await corpus.index.revision()
        if revision != self._calibrated_revision:
            self._calibrations = await corpus.index.calibrations()
            self._calibrated_revision = revision
        language = choose_language(request.language, corpus.mirror.languages)
        return find_assess(self._embedder.name, language, self._calibrations)

    async def _compose(
        self,
        corpus: Corpus,
        mirror: Mirror,
        found: _Found,
        hits: Sequence[Hit],
        request: SearchRequest,
    ) -> tuple[ContextSection, ...]:
        if not request.context_tokens:
            return ()
        texts = (request.question, request.text)
        adds_earlier = mirror.versions.has_superseded and not mirror.versions.names_one(texts)
        tokens = request.context_tokens
        context = await composer.compose(
            mirror,
            fusion.candidates(found.pages, composer.MOST_CANDIDATES),
            hits,
            corpus.index.passages,
            tokens=tokens - tokens // earlier_versions.SHARE if adds_earlier else tokens,
            excluded=mirror.chunks_named(request.exclude),
        )
        if not adds_earlier:
            return context
        return await earlier_versions.add_earlier_versions(
            corpus.index, context, mirror.find_earlier_versions
        )

    async def _query(
        self, asked: Wordings, numbers: TermNumbers, *, by_words: bool
    ) -> tuple[Query, bool]:
        query = make_query(asked, numbers, self._weights)
        if by_words:
            return query, False
        try:
            vectors = await self._embedder.embed_questions(asked.embedded)
        except EmbeddingFailed:
            return query, True
        alone = np.asarray(vectors[0], dtype=np.float32)
        earlier = np.asarray(vectors[1], dtype=np.float32) if asked.related else None
        vector = combine_vectors(asked, vectors, self._weights) if len(vectors) > 1 else alone
        return replace(query, vector=vector, alone=alone, earlier=earlier), False

    def _look_up(
        self,
        corpus: Corpus,
        mirror: Mirror,
        query: Query,
        asked: Wordings,
        request: SearchRequest,
    ) -> _Found:
        scores = levels.score(mirror, query, self._weights)
        total = fusion.weigh_kinds(mirror, fusion.fuse(scores), query, self._weights)
        ranked = fusion.pages(
            mirror,
            fusion.leave_out(
                mirror, total, mirror.versions.find_others((request.question, request.text))
            ),
            best_chunks=self._weights.best_chunks,
            language=asked.language,
            without=mirror.chunks_named(request.exclude),
        )
        numbers = corpus.numbers
        shape = {
            **features(mirror, query, scores, ranked, numbers),
            **conversation(mirror, query, asked, scores, numbers),
            **wording(request),
        }
        if _is_untranslated(mirror, request):
            # Stems that two languages share by chance are no evidence.
            shape |= make_no_evidence(len(mirror))
        return _Found(scores, ranked, fusion.hits(ranked, request.limit), shape)

    def _quality(self, assessment: Assessment) -> Quality:
        if assessment.answerability < self._threshold:
            return "poor"
        excellent = (1 + self._threshold) / 2
        return "excellent" if assessment.answerability >= excellent else "good"


def _correct_spelling(
    corpus: Corpus, mirror: Mirror, request: SearchRequest
) -> tuple[Wordings, str | None]:
    asked = wordings(request)

    def is_word_known(word: str) -> bool:
        numbers = (corpus.numbers.of(term) for term in terms(word, asked.language))
        return any(is_known(mirror, number) for number in numbers)

    corrections = corpus.vocabulary.corrections(request.question, is_word_known)
    if not corrections:
        return asked, None
    question = tuple(
        (apply_corrections(text, corrections), spoken) for text, spoken in asked.question
    )
    return replace(asked, question=question), question[0][0]


def _is_untranslated(mirror: Mirror, request: SearchRequest) -> bool:
    """Say whether a question is in a language that no document has, and only in that one."""
    is_foreign = request.language is not None and request.language not in mirror.languages
    return is_foreign and request.text_eng.strip() == request.text.strip()


def _hits(mirror: Mirror, found: _Found, passages: Mapping[str, Passage]) -> Iterator[Hit]:
    by = fusion.find_levels(found.scores, [hit.chunk for hit in found.hits])
    for hit, names in zip(found.hits, by, strict=True):
        passage = passages.get(mirror.points[hit.chunk])
        if passage is not None:
            yield composer.make_hit(passage, hit.score, names)


def _places(
    mirror: Mirror, pages: Sequence[RankedPage], passages: Mapping[str, Passage]
) -> Iterator[CandidatePlace]:
    for page in pages:
        passage = passages.get(mirror.points[page.chunks[0].chunk])
        if passage is not None:
            yield CandidatePlace(
                label=passage.title,
                crumbs=passage.crumbs,
                document_id=passage.document_id,
                url=passage.url,
                score=round(page.score, 6),
            )
