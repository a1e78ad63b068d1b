"""Words that only ask are no subject, in each language: they keep no question from its answer."""

import pytest

from knowledge.index.port import Index
from knowledge.port import SearchRequest
from knowledge.search.searcher import LevelSearcher
from knowledge.stop_words import ASKING_WORDS
from tests.knowledge.searching.conftest import WordEmbedder, document, put

HOTELS = "Die Obergrenze beträgt 130 Euro je Nacht, in München und Hamburg 160 Euro."
TRAINS = "Fahrten werden in der 2. Klasse gebucht."


async def search_german(index: Index, question: str) -> tuple[float, dict[str, float]]:
    await put(
        index,
        document("hotel", HOTELS, title="Hotel", language="de"),
        document("bahn", TRAINS, title="Bahn", language="de"),
    )
    searcher = LevelSearcher(index, WordEmbedder())
    results = await searcher.search(SearchRequest(question, text=question, language="de"))
    return results.coverage, dict(results.features)


async def test_a_german_question_is_covered_where_its_subject_is(fake_documents: Index) -> None:
    coverage, features = await search_german(
        fake_documents, "Wie viel darf es in München und Hamburg je Nacht kosten?"
    )

    assert features["subject_best"] == pytest.approx(1.0)
    assert coverage >= 0.5


async def test_a_german_question_about_something_else_is_not_covered(fake_documents: Index) -> None:
    coverage, features = await search_german(fake_documents, "Wie hoch ist die Hundesteuer?")

    assert features["subject_best"] == 0.0
    assert coverage < 0.5


def test_lists_of_asking_words_have_each_word_once() -> None:
    for language, listed in ASKING_WORDS.items():
        words = listed.split()
        assert len(words) == len(set(words)), language


async def test_a_light_verb_keeps_no_german_question_from_its_rare_word(
    fake_documents: Index,
) -> None:
    coverage, _ = await search_german(fake_documents, "Wann findet die Klasse statt?")

    assert coverage >= 0.5


async def test_a_word_that_only_the_title_of_a_small_document_has_is_evidence(
    fake_documents: Index,
) -> None:
    coverage, features = await search_german(fake_documents, "Ab welchem Alter darf man Bahn?")

    assert features["subject_placed"] == pytest.approx(1.0)
    assert coverage >= 0.5
