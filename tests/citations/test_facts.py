import pytest

from citations.facts import KnownNumbers

EVIDENCE = """Routing > Rules
A rule may have up to 8 conditions. The third condition is optional. Prices are kept for 24 months.
Messages are not stored after 30 days. A list has 1,000 rows, 259200 seconds, 1.5 GB. Since v3.6.19.
Open until 23:00. A six-digit code. On January 31, 2026. Error D-104. A batch of 500 in one day.
"""
KNOWN = KnownNumbers([EVIDENCE])


@pytest.mark.parametrize(
    ("claim", "number"),
    [
        ("A rule may have up to 9 conditions.", "9"),
        ("The 40th condition is optional.", "40"),
        ("The port is 8080.", "8080"),
        ("It costs 1,001 EUR.", "1,001"),
        ("A list has 5,000 rows.", "5,000"),
        ("Since v3.6.20.", "v3.6.20"),
        ("Open until 22:30.", "22:30"),
        ("Since 31.01.2025.", "31.01.2025"),
        ("Error D-105.", "D-105"),
        ("規則最多有 9 個條件。", "9"),
        ("До ٩ условий.", "9"),
    ],
)
def test_a_number_that_no_source_has_is_found(claim: str, number: str) -> None:
    assert KNOWN.find_unknown(claim) == (number,)


@pytest.mark.parametrize(
    "claim",
    [
        "A rule has up to eight conditions.",
        "The 3rd condition is optional.",
        "1000 rows, 1.000 Zeilen, 1 000 lignes.",
        "1,5 GB",
        "Prices are kept for 2 years.",
        "72 hours",
        "after 24 hours",
        "until 11 p.m.",
        "ein 6-stelliger Code",
        "2026-01-31 or 31.01.2026",
        "Since 3.6.19.",
        "D-104 and 104",
        "10 batches... of 500",
    ],
)
def test_a_number_in_another_form_or_unit_is_known(claim: str) -> None:
    assert KnownNumbers([EVIDENCE, "10"]).find_unknown(claim) == ()


@pytest.mark.parametrize(
    "claim",
    [
        "10 requests of 500 are 5,000 messages.",
        "With 3 rules you have 24 conditions.",
        "5 more than 8 are 13.",
        "That is 50 % of 16.",
        "30 and 8 are 38 in total.",
    ],
)
def test_a_number_computed_from_its_neighbours_is_known(claim: str) -> None:
    asked = "I have 3 rules, 5 more, 16 in all, at 50 %, 10 requests."

    assert KnownNumbers([EVIDENCE], [asked]).find_unknown(claim) == ()


def test_nothing_is_computed_from_the_unit_second() -> None:
    asked = "How many requests per second may I make?"
    known = KnownNumbers(["50 requests per second, and 10 with batches (5,000 messages)."], [asked])

    assert known.find_unknown("25 requests per second, which are 5,000 messages.") == ("25",)


def test_numbers_of_the_user_and_the_length_of_a_list_are_known() -> None:
    known = KnownNumbers([EVIDENCE], ["Is port 9443 free?"], counts=(17,))

    assert known.find_unknown("Port 9443 is free. There are 17 ways.") == ()


def test_a_number_is_computed_only_if_the_answer_states_from_what() -> None:
    known = KnownNumbers(["Cover is 75 % or 25 %.", "A batch has 500 rows. 24 months."])

    assert known.find_unexplained("It pays 100 %.") == ("100",)
    assert known.find_elsewhere("It pays 24 %.", ["Cover is 75 % or 25 %."]) == ("24",)
    assert known.find_unexplained("75 % and 25 % are 100 %.") == ()
    assert known.find_unexplained("24 months are 2 years.") == ()
    # A model may say that the computation is right: a rule does not reject it.
    assert known.find_unknown("75 % is more, and 100 % is all.") == ()
