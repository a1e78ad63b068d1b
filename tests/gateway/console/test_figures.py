from typing import Any
from zoneinfo import ZoneInfo

from gateway.console.figures import compute_figures

DAY = 86_400.0


def row(**more: Any) -> dict[str, Any]:
    usual = {
        "ended_at": DAY * 10.5, "assistant": "desk", "channel": "http", "way": "search",
        "outcome": "answered", "reason": "", "answered_by": "", "rating": "", "seconds": 1.0,
        "cost_usd": "0.01", "input_tokens": 1, "output_tokens": 1,
    }  # fmt: skip
    return {**usual, **more}


def test_passages_of_the_search_are_no_answers_of_a_model() -> None:
    rows = [row(), row(answered_by="search"), row(outcome="refused", reason="out_of_scope")]

    figures = compute_figures(rows, since=DAY * 10, until=DAY * 11)

    assert figures.total == 3
    assert {name: count for name, count in figures.outcomes.items() if count} == {
        "answered": 1, "passages": 1, "refused": 1,
    }  # fmt: skip
    assert ("refused", "out_of_scope", 1) in figures.reasons


def test_resolved_are_questions_about_the_topic_with_a_written_answer_that_nobody_rated_down() -> (
    None
):
    rows = [
        row(), row(), row(rating="down"), row(outcome="refused", reason="insufficient_context"),
        row(outcome="refused", reason="out_of_scope"), row(answered_by="search"),
        row(way="courtesy"), row(way="command"),
    ]  # fmt: skip

    figures = compute_figures(rows, since=DAY * 10, until=DAY * 11)

    assert (figures.total, figures.resolved, figures.unresolved) == (6, 2, 2)
    assert (figures.resolution, figures.out_of_scope) == (0.5, 1)
    assert compute_figures([rows[5]], since=DAY * 10, until=DAY * 11).resolution is None


def test_days_begin_in_the_time_zone_of_the_console() -> None:
    late = row(ended_at=DAY * 10 + 20 * 3600)

    figures = compute_figures([late], since=DAY * 10, until=DAY * 11, zone=ZoneInfo("Asia/Tokyo"))

    assert [day.day for day in figures.days if day.total] == ["1970-01-12"]


def test_a_day_without_questions_is_a_day_all_the_same() -> None:
    figures = compute_figures([row()], since=DAY * 9.2, until=DAY * 11.1)

    assert [(day.day, day.total) for day in figures.days] == [
        ("1970-01-10", 0), ("1970-01-11", 1), ("1970-01-12", 0),
    ]  # fmt: skip


def test_an_unknown_price_is_counted_and_not_taken_for_nothing() -> None:
    rows = [row(), row(cost_usd=None), row(channel="slack")]

    figures = compute_figures(rows, since=DAY * 10, until=DAY * 11)

    assert str(figures.cost_usd) == "0.02"
    assert figures.unknown_costs == 1
    assert str(figures.mean_cost_usd) == "0.01", "of the two whose price is known"
    costs = {group.name: group.cost_usd for group in figures.groups["channel"]}
    assert str(costs["http"]) == "0.01"
    assert str(costs["slack"]) == "0.01"


def test_seconds_are_given_as_median_and_as_the_time_of_95_of_100() -> None:
    rows = [row(seconds=float(at)) for at in range(1, 101)]

    figures = compute_figures(rows, since=DAY * 10, until=DAY * 11)

    assert (figures.median_seconds, figures.slow_seconds) == (50.5, 95.0)


def test_a_period_without_questions_has_no_times() -> None:
    figures = compute_figures([], since=DAY * 10, until=DAY * 11)

    assert (figures.total, figures.median_seconds, figures.slow_seconds) == (0, None, None)
