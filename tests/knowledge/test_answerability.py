import math
from dataclasses import replace

import pytest

from knowledge.answerability import assess, assess_by_words, find_assess, find_uncalibrated
from knowledge.index.calibration import SCALED, Calibration
from knowledge.port import SearchRequest
from knowledge.search.features import measure_wording

FOUND = {
    "dense1": 0.7,
    "dense10": 0.6,
    "alone1": 0.7,
    "alone10": 0.6,
    "best": 1.0,
    "dcov": 0.6,
    "bm": 0.8,
    "bmabs": 3.2,
    "agree": 0.7,
    "n": 1.6,
}
NOT_FOUND = {
    "dense1": 0.2,
    "dense10": 0.15,
    "alone1": 0.2,
    "alone10": 0.15,
    "best": 0.3,
    "dcov": 0.05,
    "bm": 0.3,
    "bmabs": 1.5,
    "agree": 0.0,
    "n": 1.6,
}


def weigh_words(question: str, *related: str) -> dict[str, float]:
    return measure_wording(SearchRequest(question=question, related=related, turns=len(related)))


def test_what_is_found_is_answerable_and_covered() -> None:
    found = assess({**FOUND, **weigh_words("How do routing rules work?")})

    assert found.answerability > 0.6
    assert found.coverage > 0.8


def test_what_is_not_found_is_neither_answered_nor_asked_about() -> None:
    missing = assess({**NOT_FOUND, **weigh_words("How do volcanoes work?")})

    assert missing.answerability < 0.3
    assert missing.coverage < 0.3
    assert missing.ambiguity < 1 - missing.answerability - missing.ambiguity


def test_pointing_at_things_nobody_mentioned_makes_a_question_ambiguous() -> None:
    clear = assess({**FOUND, **weigh_words("How do routing rules work?")})
    vague = assess({**FOUND, **weigh_words("When did the operator change this limit for it?")})

    assert vague.ambiguity > clear.ambiguity
    assert vague.answerability < clear.answerability


def test_a_search_without_features_is_refused() -> None:
    nothing = assess({})

    assert (nothing.answerability, nothing.coverage, nothing.ambiguity) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e6, -1e6])
def test_all_probabilities_stay_probabilities(value: float) -> None:
    found = assess(dict.fromkeys(FOUND, value))

    for share in (found.answerability, found.coverage, found.ambiguity):
        assert math.isfinite(share)
        assert 0 <= share <= 1
    assert found.answerability + found.ambiguity <= 1 + 1e-9


def test_a_thing_that_was_mentioned_before_is_not_open() -> None:
    alone = weigh_words("Who may change the limit?")
    after = weigh_words("Who may change the limit?", "Is there a limit for trial accounts?")

    assert alone["unmentioned"] == 1.0
    assert after["unmentioned"] == 0.0


def test_a_pronoun_with_no_turn_before_it_points_at_nothing() -> None:
    assert weigh_words("How do I delete it?")["pointing_at_nothing"] == 1.0
    assert weigh_words("How do I delete it?", "What is a rule?")["pointing_at_nothing"] == 0.0


@pytest.mark.parametrize(
    "question",
    ["Wie lösche ich diese Regel?", "Как удалить это правило?", "¿Cómo borro esta regla?"],
)
def test_pointing_words_of_other_languages_are_seen(question: str) -> None:
    assert weigh_words(question)["definite"] == 1.0


@pytest.mark.parametrize("question", ["", "?", "🙂", "它怎么工作?"])
def test_every_question_has_features(question: str) -> None:
    assert all(math.isfinite(value) for value in weigh_words(question).values())


WORDS = {"subject_best": 1.0, "surprise": 0.5}


def test_a_code_that_stands_in_a_small_collection_is_covered_without_likeness() -> None:
    found = assess({**NOT_FOUND, **WORDS, "chunks": 3.0, **weigh_words("What does E4 mean?")})

    assert found.coverage >= 0.5
    assert found.answerability >= 0.3


def test_a_chunk_that_is_alike_covers_a_question_in_a_small_collection_alone() -> None:
    alike = {**NOT_FOUND, "dense1": 0.52}

    assert assess({**alike, "chunks": 24.0}).coverage >= 0.5
    assert assess({**alike, "chunks": 2400.0}).coverage < 0.5
    assert assess_by_words({**alike, "chunks": 24.0}) == assess_by_words(
        {**NOT_FOUND, "chunks": 24.0}
    )


def test_words_that_stand_together_by_chance_cover_nothing() -> None:
    by_chance = {**NOT_FOUND, **WORDS, "chunks": 200.0, "surprise": -1.0}
    in_many = {**NOT_FOUND, **WORDS, "chunks": 5000.0}

    assert assess(by_chance).coverage < 0.3
    assert assess(in_many).coverage < 0.3


def test_cosines_judge_where_they_were_fitted_or_calibrated_and_nowhere_else() -> None:
    learned = {"de": Calibration(slope=2.0, offset=-1.2, separation=0.95, chunks=100)}
    weak = {"de": replace(learned["de"], separation=0.8)}
    cosines = {name: 0.5 * value + 0.6 for name, value in FOUND.items() if name in SCALED}

    assert find_assess("all-MiniLM-L6-v2", "en", {}) is assess
    assert find_assess("all-MiniLM-L6-v2", "de", {}) is assess_by_words
    assert find_assess("another@fastembed", "en", learned) is assess_by_words
    assert find_assess("another@fastembed", "de", weak) is assess_by_words
    judged = find_assess("another@fastembed", "de", learned)(FOUND | cosines)
    assert judged.coverage == pytest.approx(assess(FOUND).coverage)
    assert judged.answerability == pytest.approx(assess(FOUND).answerability)
    assert find_uncalibrated("another@fastembed", ["de", "fr"], learned) == ("fr",)


@pytest.mark.parametrize("found", [FOUND, NOT_FOUND])
def test_without_calibration_no_cosine_changes_a_decision(found: dict[str, float]) -> None:
    cosines = ("dense1", "dense10", "alone1", "alone10", "dcov", "agree")
    near = assess_by_words(found | dict.fromkeys(cosines, 0.99))
    far = assess_by_words(found | dict.fromkeys(cosines, -0.99))

    assert near == far
    assert near != assess(found | dict.fromkeys(cosines, 0.99))


def test_a_question_that_could_not_be_embedded_is_judged_by_its_words() -> None:
    words = {name: value for name, value in FOUND.items() if not name.startswith("dense")}

    assert assess(words) == assess_by_words(FOUND)


def test_words_alone_separate_what_is_covered_from_what_is_not() -> None:
    words = {"match": 1.0, "best_page": 1.0, "subject_best": 1.0, "known": 1.0, "first": 1.0}
    covered = assess_by_words({**FOUND, **words})

    assert covered.coverage > 0.5
    assert covered.answerability > 1 / 3
    missing = assess_by_words({**NOT_FOUND, "gen": 3.0, "unk": 1.0, "surprise": -6.0})
    assert missing.coverage < 0.5
    assert missing.answerability < 1 / 3


def test_one_word_in_two_chunks_of_a_small_collection_is_no_chance() -> None:
    twice = {**NOT_FOUND, "subject_best": 1.0, "surprise": -0.69, "chunks": 23.0}

    assert assess(twice).coverage >= 0.5
    assert assess({**twice, "subject_best": 0.5}).coverage < 0.3
