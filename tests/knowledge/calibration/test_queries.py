from config.texts import load_texts
from envelope.texts import primary_of
from knowledge.calibration.queries import MOST_QUERIES, find_foreign_questions, generate_queries

PASSAGES = [
    f"Invoice {number} is sent by mail on the third working day. It lists every call of the month."
    for number in range(200)
]


def test_queries_are_headings_and_sentences_of_the_documents() -> None:
    made = generate_queries(["Sending invoices", "Sending invoices", "A"], PASSAGES[:1], "en")

    assert set(made.own) == {
        "Sending invoices",
        "Invoice 0 is sent by mail on the third working day.",
        "It lists every call of the month.",
    }


def test_shuffled_queries_have_the_words_of_the_documents() -> None:
    made = generate_queries([], PASSAGES, "en")

    words = {word for query in made.shuffled for word in query.split()}
    assert words
    assert words < set(" ".join(PASSAGES).replace(".", "").split())


def test_the_same_documents_give_the_same_queries_in_any_order() -> None:
    headings = [f"Heading {number}" for number in range(300)]

    forwards = generate_queries(headings, PASSAGES, "en")
    backwards = generate_queries(headings[::-1], PASSAGES[::-1], "en")

    assert forwards == backwards
    assert len(forwards.own) == 2 * MOST_QUERIES


def test_every_language_of_the_texts_has_foreign_questions() -> None:
    english = find_foreign_questions("en")
    # Documents have a language, and no script of its own.
    spoken = set(map(primary_of, load_texts().languages)) - {"en"}
    others = [find_foreign_questions(item) for item in spoken]

    assert all(len(questions) == len(english) for questions in others)
    assert english not in others
    assert find_foreign_questions("fi") == english
