import pytest

from knowledge.index.calibration import Calibration, choose_language

LINE = Calibration(slope=2.0, offset=-1.0, separation=0.95, chunks=50)


def test_cosines_are_rescaled_and_everything_else_stays() -> None:
    features = {"dense1": 0.8, "alone10": 0.7, "bm": 0.8, "gap": 0.1}

    scaled = LINE.rescale(features)

    assert scaled == pytest.approx({"dense1": 0.6, "alone10": 0.4, "bm": 0.8, "gap": 0.1})
    assert features["dense1"] == 0.8


def test_a_model_that_confuses_foreign_and_own_questions_is_not_used() -> None:
    assert LINE.is_usable
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
