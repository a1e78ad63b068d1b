"""The language model, unpacked once and kept for the next process."""

from pathlib import Path

import pytest

from knowledge.language.detector import ScriptAndNgramDetector, load

LANGUAGES = ("de", "en", "es", "fr", "ru")
TEXTS = (
    "Wie ändere ich den Tarif?",
    "How do I add a user?",
    "¿Cómo agrego un usuario?",
    "Как добавить пользователя?",
)


@pytest.mark.slow
def test_the_kept_model_ranks_as_the_unpacked_one(tmp_path: Path) -> None:
    passing, first, again = load(LANGUAGES), load(LANGUAGES, tmp_path), load(LANGUAGES, tmp_path)

    for text in TEXTS * 5:  # often enough that memory is given back in between
        assert passing.rank(text) == first.rank(text) == again.rank(text)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["languages.json", "ptc.npy", "nextmove.npy"])
def test_a_damaged_model_is_unpacked_again(damage: str, tmp_path: Path) -> None:
    load(LANGUAGES, tmp_path)
    (place,) = tmp_path.iterdir()
    (place / damage).write_bytes(b"")

    assert load(LANGUAGES, tmp_path).rank(TEXTS[0])[0][0] == "de"


def test_nothing_is_kept_before_a_text_needs_the_model(tmp_path: Path) -> None:
    detector = ScriptAndNgramDetector(kept_in=tmp_path / "language")

    assert detector.detect("안녕하세요").language == "ko"
    assert list(tmp_path.iterdir()) == []
