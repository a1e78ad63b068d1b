import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from knowledge.answerability import Assessment, assess
from knowledge.document import Document
from knowledge.embedding import DEFAULT
from knowledge.index.calibration import Calibration, choose_language
from knowledge.index.embedded import open_embedded
from knowledge.index.port import Index
from knowledge.index.qdrant import Identity
from knowledge.port import CALIBRATION, Findings, SearchRequest
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.calibration.test_learning import ScaledEmbedder
from tests.knowledge.searching.conftest import WordEmbedder, document

LIBRARY = (
    document("priority", "Urgent messages overtake others in the queue."),
    document("limits", "An account may send ten messages a minute."),
)
QUESTIONS = ("Which messages overtake others?", "Recipe for lasagne with spinach")


LINE = Calibration(slope=10.0, offset=-9.0, separation=1.0, chunks=2)


class MeaningEmbedder(WordEmbedder):
    """Gives a text the direction of the one subject that it is about."""

    _SUBJECTS = ("Attest", "Bescheinigung", *(f"Thema {at}" for at in range(8)), "Pause")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        angles = [
            max(
                (0.1 * at for at, subject in enumerate(self._SUBJECTS) if subject in text),
                default=0.0,
            )
            for text in texts
        ]
        return [[math.cos(angle), math.sin(angle)] for angle in angles]


@asynccontextmanager
async def fill(
    folder: Path, embedder: WordEmbedder, *documents: Document
) -> AsyncIterator[tuple[Index, LevelSearcher]]:
    """Open an index of these documents, and a searcher of it, while inside."""
    dimensions = len((await embedder.embed([""]))[0])
    index = await open_embedded(folder, Identity("t", "desk", embedder.name, dimensions))
    try:
        for made in documents:
            texts = [chunk.text for chunk in made.chunks]
            await index.put(made, await embedder.embed_documents(texts), "root")
        yield index, LevelSearcher(index, embedder)
    finally:
        await index.close()


async def search_with(folder: Path, lift: float, question: str) -> tuple[Findings, Assessment]:
    """Return the findings, and the assessment if the cosines were taken for the shipped model's."""
    async with fill(folder, ScaledEmbedder(lift), *LIBRARY) as (_, searcher):
        findings = await searcher.search(SearchRequest(question=question))
        return findings, assess(findings.features)


@pytest.mark.parametrize("question", QUESTIONS)
async def test_the_scale_of_an_unknown_embedding_model_decides_nothing(
    tmp_path: Path, question: str
) -> None:
    low, low_by_cosines = await search_with(tmp_path / "low", 0.0, question)
    high, high_by_cosines = await search_with(tmp_path / "high", 0.9, question)

    assert high.features["dense1"] > low.features["dense1"]
    assert high_by_cosines.answerability > low_by_cosines.answerability
    assert high.quality == low.quality
    assert high.coverage == pytest.approx(low.coverage, abs=1e-6)
    assert high.answerability == pytest.approx(low.answerability, abs=1e-6)


async def test_each_search_with_an_unknown_embedding_model_says_so(tmp_path: Path) -> None:
    findings, _ = await search_with(tmp_path, 0.0, QUESTIONS[0])

    assert findings.fallbacks == (CALIBRATION,)


async def test_words_show_what_is_covered_with_an_unknown_embedding_model(tmp_path: Path) -> None:
    inside, _ = await search_with(tmp_path / "inside", 0.9, QUESTIONS[0])
    outside, _ = await search_with(tmp_path / "outside", 0.9, QUESTIONS[1])

    assert inside.coverage >= 0.5 > outside.coverage
    assert outside.quality == "poor"


async def test_a_search_by_words_asks_no_embedding_model_and_is_not_calibrated(
    tmp_path: Path,
) -> None:
    embedder = WordEmbedder()
    embedder.name = DEFAULT
    async with fill(tmp_path, embedder, *LIBRARY) as (_, searcher):
        embedder.asked.clear()
        findings = await searcher.search(SearchRequest(question=QUESTIONS[0], by_words=True))

    assert embedder.asked == []
    assert findings.coverage >= 0.5
    assert (findings.fallbacks, findings.are_calibrated) == ((CALIBRATION,), False)


async def test_a_calibration_lets_cosines_decide_again(tmp_path: Path) -> None:
    async with fill(tmp_path, ScaledEmbedder(0.9), *LIBRARY) as (index, searcher):
        before = await searcher.search(SearchRequest(question=QUESTIONS[0]))
        await index.put_calibrations({"en": LINE})
        after = await searcher.search(SearchRequest(question=QUESTIONS[0]))

    assert before.fallbacks == (CALIBRATION,)
    assert after.fallbacks == ()
    assert after.coverage == pytest.approx(assess(LINE.rescale(after.features)).coverage)
    assert after.coverage != pytest.approx(before.coverage)


@pytest.mark.parametrize(("compared", "uncompared"), [(("en", "ko"), ()), (("en",), ("en",))])
async def test_a_question_that_vectors_compare_across_languages_is_left_undecided(
    tmp_path: Path, compared: tuple[str, ...], uncompared: tuple[str, ...]
) -> None:
    asked = SearchRequest(question="화성행 표는 얼마인가요?", language="ko")
    async with fill(tmp_path, ScaledEmbedder(0.9), *LIBRARY) as (index, searcher):
        await index.put_calibrations({"en": replace(LINE, compared=compared)})
        results = await searcher.search(asked)
        translated = await searcher.search(
            replace(asked, text=asked.question, text_eng="How much is a ticket to Mars?")
        )

    assert results.uncompared == uncompared
    assert results.are_calibrated == bool(uncompared)
    assert (results.coverage == 0.5 and results.quality == "good") == (not uncompared)
    assert translated.are_calibrated


@pytest.mark.parametrize("spoken", ["en", "de"])
async def test_words_do_not_rule_out_documents_that_vectors_compared(
    tmp_path: Path, spoken: str
) -> None:
    compares = Calibration(slope=0.0, offset=0.0, separation=0.5, chunks=2, compared=("de",))
    own = document("regeln", "Eine Regel gilt sofort, sobald sie gespeichert ist.", language="de")
    asked = SearchRequest(question="Ab wann wirken Änderungen?", language="de")
    async with fill(tmp_path, ScaledEmbedder(0.9), *LIBRARY, own) as (index, searcher):
        before = await searcher.search(asked)
        await index.put_calibrations({spoken: compares})
        after = await searcher.search(asked)

    assert before.match_nothing
    assert (after.coverage, after.quality, after.are_calibrated) == (0.5, "good", False)


@pytest.mark.parametrize(("copies", "common"), [(60, ("die",)), (10, ())])
async def test_terms_of_a_question_that_many_chunks_hold_are_common(
    tmp_path: Path, copies: int, common: tuple[str, ...]
) -> None:
    texts = ["Die Kasse ist offen.", *(f"Die Regel {number} gilt." for number in range(1, copies))]
    made = document("haus", *texts, language="de")
    async with fill(tmp_path, WordEmbedder(), made) as (_, searcher):
        results = await searcher.search(
            SearchRequest(question="Hat die Kasse offen?", language="de")
        )

    assert results.common == common


FLAT = Calibration(slope=2.0, offset=-1.0, separation=0.95, chunks=50)


def test_cosines_are_rescaled_and_everything_else_stays() -> None:
    features = {"dense1": 0.8, "bm": 0.8}

    scaled = FLAT.rescale(features)

    assert scaled == pytest.approx({"dense1": 0.6, "bm": 0.8})
    assert features["dense1"] == 0.8


def test_a_model_that_confuses_foreign_and_own_questions_is_not_used() -> None:
    assert FLAT.is_usable
    assert not Calibration(slope=2.0, offset=-1.0, separation=0.89, chunks=50).is_usable
    assert not Calibration(slope=-0.1, offset=0.5, separation=0.95, chunks=50).is_usable


@pytest.mark.parametrize(
    ("asked", "languages", "chosen"),
    [
        ("de", ("de", "en"), "de"),
        ("fr", ("de", "en"), "en"),
        (None, ("de", "en"), "en"),
        ("en", ("de", "uk"), "de"),
        ("en", (), ""),
    ],
)
def test_the_language_of_the_question_judges_if_documents_have_it(
    asked: str | None, languages: tuple[str, ...], chosen: str
) -> None:
    assert choose_language(asked, languages) == chosen


async def test_a_question_whose_words_of_substance_occur_nowhere_is_ranked_by_meaning(
    tmp_path: Path,
) -> None:
    texts = {
        "krankheit": "Am vierten Tag ist die Bescheinigung vorzulegen.",
        "pause": "Wann die Pause beginnt, sage ich morgens.",
        **{f"thema{at}": f"Über Thema {at} steht alles." for at in range(8)},
    }
    documents = [document(name, text, language="de") for name, text in texts.items()]
    asked = SearchRequest(question="Wann brauche ich ein Attest?", language="de")
    async with fill(tmp_path, MeaningEmbedder(), *documents) as (index, searcher):
        by_small_words = await searcher.search(asked)
        await index.put_calibrations({"de": replace(LINE, compared=("de",))})
        by_meaning = await searcher.search(asked)

    assert by_small_words.hits[0].document_id == "pause"
    assert by_meaning.hits[0].document_id == "krankheit"
