"""Numbers of two texts are compared by their values and units; nothing is decided by them."""

from decimal import Decimal

import pytest

from agents.review.measures import compare_measures, list_measures, list_numbers


@pytest.mark.parametrize(
    ("rule", "document", "line"),
    [
        (
            "cover of at least EUR 5,000,000",
            "Coverage amounts to EUR 2,000,000 per claim",
            'document "Coverage amounts to EUR 2,000,000" < rule "of at least EUR 5,000,000"',
        ),
        (
            "within 48 hours",
            "within 14 working days",
            'document "within 14 working days" > rule "within 48 hours"',
        ),
        (
            "retained for two years",
            "kept for twenty-four months",
            'document "kept for twenty-four months" = rule "retained for two years"',
        ),
        (
            "at most five per cent",
            "up to 10 %",
            'document "up to 10 %" > rule "at most five per cent"',
        ),
        (
            "no more than two subcontractors",
            "five subcontractors",
            'document "five subcontractors" > rule "no more than two subcontractors"',
        ),
        (
            "mindestens 5 Mio. EUR",
            "EUR 2.000.000,50",
            'document "EUR 2.000.000,50" < rule "mindestens 5 Mio. EUR"',
        ),
        (
            "innerhalb von achtundvierzig Stunden",
            "do tří dnů",
            'document "do tří dnů" > rule "innerhalb von achtundvierzig Stunden"',
        ),
        (
            "at most \u221218 °C",
            "kept at -20 °C",
            'document "kept at -20 °" < rule "at most \u221218 °"',
        ),
        (
            "every 10 minutes",
            "once an hour, or every 5 minutes",
            'document "an hour, or every 5 minutes" < rule "every 10 minutes"',
        ),
    ],
)  # fmt: skip
def test_amounts_periods_shares_and_counts_are_compared(
    rule: str, document: str, line: str
) -> None:
    assert compare_measures(rule, document) == (line,)


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        ("within 48 hours", "EUR 14"),
        ("EUR 5,000", "USD 5,000"),
        ("Article 5", "Section 9"),
        ("two copies", "three signatures"),
    ],
)
def test_different_units_are_not_compared(rule: str, document: str) -> None:
    assert compare_measures(rule, document) == ()


def test_numbers_are_read_in_digits_and_in_words() -> None:
    assert list_numbers("forty-eight of 5 million, 1.5, 2,5 and 1 234 567") >= {
        Decimal(48), Decimal(5_000_000), Decimal("1.5"), Decimal("2.5"), Decimal(1_234_567)
    }  # fmt: skip


def test_a_text_of_numbers_alone_takes_no_time() -> None:
    assert len(list_measures("9,999,999 days " * 20_000)) <= 40


def test_a_number_about_something_else_is_left_out_where_one_shares_a_word_with_the_rule() -> None:
    rule = "Incidents are reported within 48 hours."
    document = "The provider reports incidents within 14 days. Invoices are due within 30 days."

    assert compare_measures(rule, document) == (
        'document "provider reports incidents within 14 days" > '
        'rule "Incidents are reported within 48 hours"',
    )


def test_a_number_in_struck_out_text_is_not_compared() -> None:
    rule = "The period of notice is at least 60 days. ~~It is at least 10 days.~~"
    document = "~~The period of notice is 30 days.~~ The period of notice is 90 days."

    assert compare_measures(rule, document) == (
        'document "period of notice is 90 days" > rule "notice is at least 60 days"',
    )
    assert compare_measures(rule, "~~The period of notice is 30 days.~~") == ()
