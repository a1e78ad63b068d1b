import pytest

from knowledge.index.bm25 import CHUNK_LENGTH, Bm25, TermNumbers
from knowledge.index.terms import leave_out_unknown, surface_words, terms


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Routing the messages", "en", ["rout", "messag"]),
        ("num_cpus", "en", ["num_cpus", "num", "cpus"]),
        ("WebhookURL", "en", ["webhookurl", "webhook", "url"]),
        ("dass Nachrichten löschen", "de", ["nachricht", "losch"]),
        ("送信制限", "ja", ["送信", "信制", "制限"]),
        ("発", "ja", ["発"]),
        ("clause 14.2.", "en", ["claus", "14.2", "14", "2"]),
        ("v2.1.0", "en", ["v2.1.0", "2.1.0", "v2", "1", "0"]),
        ("A-100/3, 50,000", "en", ["a-100/3", "100", "3", "50,000", "50", "000"]),
        ("and/or", "de", ["and", "or"]),
        ("전송", "ko", ["전송"]),
        ("सत्यापन", "hi", ["सत्यापन"]),
        ("who are you", "en", ["who", "are", "you"]),
        ("ＡＰＩ", "ja", ["api"]),
        ("😀 -- //", "en", []),
        ("", "en", []),
    ],
)
def test_texts_are_cut_into_terms(text: str, language: str, expected: list[str]) -> None:
    assert terms(text, language) == expected


def test_words_written_with_and_without_accents_are_one() -> None:
    assert terms("contraseña", "es") == terms("contrasena", "es")
    assert terms("が", "ja") != terms("か", "ja")


def test_words_for_spelling_are_those_with_spaces_between_them() -> None:
    assert surface_words("Send SMS 送信 now") == ["send", "sms", "now"]


def test_a_million_characters_take_no_special_time() -> None:
    assert len(terms("x" * 1_000_000, "en")) == 1
    assert len(terms("送" * 10_000, "ja")) == 9_999


def test_sparse_texts_and_questions_number_terms_alike() -> None:
    text = "Routes carry num_cpus v2.1.0 A-100/3 messages 送信制限 सत्यापन"
    numbers = TermNumbers().of_all(terms(text, "en"))

    assert set(numbers.tolist()) == set(Bm25(CHUNK_LENGTH).encode(text, "en").terms.tolist())
    assert len(numbers) == len(set(terms(text, "en")))


def test_a_term_weighs_more_when_it_is_repeated_but_never_twice_as_much() -> None:
    bm25 = Bm25(CHUNK_LENGTH)
    once = bm25.encode("route " + "filler " * 9, "en")
    often = bm25.encode("route " * 9 + "filler", "en")
    route = TermNumbers().of("rout")
    weight = [float(text.weights[text.terms.tolist().index(route)]) for text in (once, often)]

    assert weight[0] < weight[1] < 2 * weight[0]


def test_pairs_that_join_two_words_do_not_count_as_unknown_words() -> None:
    result = terms("特休有幾天", "zh")

    assert leave_out_unknown(result, {"特休"}.__contains__) == ["特休", "有幾", "幾天"]
    assert leave_out_unknown(result, {"幾天", "特休"}.__contains__) == ["特休", "幾天"]
    assert leave_out_unknown(result, {"無關"}.__contains__) == result


def test_an_unknown_identifier_is_represented_by_its_parts() -> None:
    asked = terms("clause 14.2", "en")

    assert leave_out_unknown(asked, {"claus", "14"}.__contains__) == ["claus", "14", "2"]
    assert leave_out_unknown(asked, {"claus", "14.2"}.__contains__) == asked
