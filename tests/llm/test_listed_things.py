import pytest

from llm.offline.planning.listed_things import find_compared_list, find_listed_things


@pytest.mark.parametrize(
    ("question", "things"),
    [
        (
            "Compare retention, deletion and export rules of messages",
            ("retention rules", "deletion rules", "export rules"),
        ),
        (
            "Compare what the webhooks, the REST API and SMPP say about retries",
            ("webhooks", "REST API", "SMPP"),
        ),
        (
            "Compare retention, deletion and data export rules",
            ("retention rules", "deletion rules", "data export rules"),
        ),
        (
            "What are the differences between sender ids, short codes and long numbers?",
            ("sender ids", "short codes", "long numbers"),
        ),
        (
            "Compare webhooks, polling, and delivery reports",
            ("webhooks", "polling", "delivery reports"),
        ),
        (
            "Compare, in a table, how messages, contacts and templates are deleted",
            ("messages", "contacts", "templates"),
        ),
        (
            "Vergleiche Aufbewahrung, Löschung und Export von Nachrichten",
            ("Aufbewahrung", "Löschung", "Export"),
        ),
    ],
)
def test_a_comparison_in_small_letters_is_split(question: str, things: tuple[str, ...]) -> None:
    assert find_listed_things(question) == things


@pytest.mark.parametrize(
    "question",
    [
        "What is deleted, when, and by whom?",
        "Compare the REST API and SMPP",
        "Send, delete and export messages: which permissions do I need?",
        "Compare",
        "",
    ],
)
def test_what_compares_no_list_is_left_whole(question: str) -> None:
    assert find_listed_things(question) == ()


def test_listed_names_come_first() -> None:
    asked = "Compare Python, JavaScript and Rust for web servers"

    assert find_compared_list(asked) == ("Python", "JavaScript", "Rust")


@pytest.mark.parametrize(
    "question",
    [
        "How do the European Union, the United States and China regulate AI?",
        "Compare the European Union, the United States, and China",
    ],
)
def test_listed_names_with_an_article_are_all_found(question: str) -> None:
    assert find_compared_list(question) == ("European Union", "United States", "China")


def test_what_things_say_is_no_part_of_a_thing() -> None:
    asked = "Compare what webhooks, invoices and zeppelins say about retries"

    assert find_compared_list(asked) == ("webhooks", "invoices", "zeppelins")
