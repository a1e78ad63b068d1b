import math
from dataclasses import replace

import pytest

from knowledge.answerability import assess, assess_by_words, find_assess, find_uncalibrated
from knowledge.embedding import SHIPPED_NAMES
from knowledge.index.calibration import Calibration

FOUND = {"dense1": 0.7, "bm": 0.8, "bmabs": 3.2, "n": 1.6}
NOT_FOUND = {"dense1": 0.2, "bm": 0.3, "bmabs": 1.5, "n": 1.6}


def test_a_found_passage_is_answerable_and_covered() -> None:
    assessed = assess(FOUND)

    assert assessed.answerability > 0.6
    assert assessed.coverage > 0.8


def test_a_question_without_a_match_is_neither_answerable_nor_covered() -> None:
    missing = assess(NOT_FOUND)

    assert missing.answerability < 0.3
    assert missing.coverage < 0.3


def test_a_search_without_features_is_refused() -> None:
    nothing = assess({})

    assert (nothing.answerability, nothing.coverage) == (0.0, 0.0)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e6, -1e6])
def test_all_probabilities_stay_probabilities(value: float) -> None:
    assessed = assess(dict.fromkeys(FOUND, value))

    for share in (assessed.answerability, assessed.coverage):
        assert math.isfinite(share)
        assert 0 <= share <= 1


WORDS = {"subject_best": 1.0, "surprise": 0.5}


def test_a_code_that_stands_in_a_small_collection_is_covered_without_likeness() -> None:
    assessed = assess({**NOT_FOUND, **WORDS, "chunks": 3.0})

    assert assessed.coverage >= 0.5
    assert assessed.answerability >= 0.3


def test_words_that_stand_together_by_chance_cover_nothing() -> None:
    by_chance = {**NOT_FOUND, **WORDS, "chunks": 200.0, "surprise": -1.0}
    in_many = {**NOT_FOUND, **WORDS, "chunks": 5000.0}

    assert assess(by_chance).coverage < 0.3
    assert assess(in_many).coverage < 0.3


def test_cosines_judge_where_they_were_fitted_or_calibrated_and_nowhere_else() -> None:
    learned = {"de": Calibration(slope=2.0, offset=-1.2, separation=0.95, chunks=100)}
    weak = {"de": replace(learned["de"], separation=0.8)}
    cosines = {"dense1": 0.5 * FOUND["dense1"] + 0.6}

    for shipped in SHIPPED_NAMES:
        assert find_assess(shipped, "en", {}) is assess
        assert find_assess(shipped, "de", {}) is assess_by_words
    assert find_assess("another@fastembed", "en", learned) is assess_by_words
    assert find_assess("another@fastembed", "de", weak) is assess_by_words
    judged = find_assess("another@fastembed", "de", learned)(FOUND | cosines)
    assert judged.coverage == pytest.approx(assess(FOUND).coverage)
    assert judged.answerability == pytest.approx(assess(FOUND).answerability)
    assert find_uncalibrated("another@fastembed", ["de", "fr"], learned) == ("fr",)


@pytest.mark.parametrize("found", [FOUND, NOT_FOUND])
def test_without_calibration_no_cosine_changes_a_decision(found: dict[str, float]) -> None:
    near, far = (assess_by_words({**found, "dense1": cosine}) for cosine in (0.99, -0.99))

    assert near == far
    assert near != assess({**found, "dense1": 0.99})


def test_a_question_that_could_not_be_embedded_is_judged_by_its_words() -> None:
    words = {name: value for name, value in FOUND.items() if not name.startswith("dense")}

    assert assess(words) == assess_by_words(FOUND)


def test_words_alone_separate_what_is_covered_from_what_is_not() -> None:
    covered = assess_by_words({**FOUND, "match": 1.0})

    assert covered.coverage > 0.5
    assert covered.answerability > 1 / 3
    missing = assess_by_words(NOT_FOUND)
    assert missing.coverage < 0.5
    assert missing.answerability < 1 / 3


def test_one_word_in_two_chunks_of_a_small_collection_is_no_chance() -> None:
    twice = {**NOT_FOUND, "subject_best": 1.0, "surprise": -0.69, "chunks": 23.0}

    assert assess(twice).coverage >= 0.5
    assert assess({**twice, "subject_best": 0.5}).coverage < 0.3
