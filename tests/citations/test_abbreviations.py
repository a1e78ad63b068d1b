"""Full stops of abbreviations and ordinal numbers end no sentence, in answers and documents."""

import pytest

from citations import claims
from knowledge import chunking

WHOLE = [
    "Die Rente beginnt, sobald jemand das 52. Lebensjahr vollendet.",
    "Das gilt z. B. Für Beamte, d. h. Angestellte.",
    "Gemäß Art. 5 Abs. 2 S. 1 gilt die Frist.",
    "Use a cache, e.g. Redis, or see Fig. 3 and No. 5.",
    "Mr. Smith met Dr. Jones in the U.S. Senate.",
    "Voir p. ex. Article 5 et art. 6 du code.",
    "El Sr. García lee la pág. 3 y el art. 5.",
    "Il sig. Rossi cita l'art. 5 della legge.",
    "O Sr. Silva, cf. Artigo 3, paga.",
    "Zie art. 5 en bijv. Hoofdstuk 2.",
    "Zgodnie z art. 5 ust. 2 płaci np. Firma.",
    "Viz např. Kapitola 2 a čl. 5 zákona.",
    "Яблоки, груши и т. д. Ивана.",
    "См. ст. 5 закона и ул. Ленина.",
    "Bkz. Madde 5 tekrar.",
    "यह डॉ. शर्मा हैं।",
    "苹果、梨等。",
]
ENDED = [
    ["It runs on Python 3.11.", "Version 2.0 is old."],
    ["The answer is no.", "Stop."],
    ["Das Haus hat Nummer 5.", "Es ist alt."],
    ["Конец статьи.", "Начало."],
    ["他走了。", "彼は行った。"],
]


@pytest.mark.parametrize("text", WHOLE)
def test_an_abbreviation_or_an_ordinal_ends_no_sentence(text: str) -> None:
    assert [*claims.sentences(text)] == [text]
    assert [*chunking.sentences(text)] == [text]


@pytest.mark.parametrize("sentences", ENDED)
def test_sentences_end_at_their_full_stops(sentences: list[str]) -> None:
    text = " ".join(sentences)

    assert [*claims.sentences(text)] == sentences
    assert [*chunking.sentences(text)] == sentences
