"""The report that leaves one collection out."""

import pytest

from benchmarks.quality.scope_report import (
    BEGIN,
    END,
    Measured,
    compute_means,
    fit,
    make_table,
    replace_table,
    report_collections,
)
from knowledge.answerability import assess

DECISIONS = ("answer", "ask", "refuse")


def make_collection(name: str, moved: float) -> list[Measured]:
    """A collection whose questions in scope lie at 1 + `moved`, and others at `moved`."""
    found = []
    for number in range(30):
        noise = number / 100
        values = {"in_scope": 1.0, "near": 0.0, "far": -1.0, "chitchat": -2.0}
        for label, value in values.items():
            found.append(
                Measured(
                    name, f"{label} {number}", label, "", fitted=True, reported=True,
                    scope={"likeness": value + moved + noise},
                )
            )  # fmt: skip
    return found


def test_a_collection_is_not_fitted_on_when_it_is_reported() -> None:
    alike = [*make_collection("one", 0.0), *make_collection("two", 0.0)]
    strange = make_collection("strange", -5.0)
    reports = report_collections(
        with_decisions([*alike, *strange]), assess, ("likeness",), ("likeness",)
    )

    by_name = {report.name: report for report in reports}
    assert by_name["strange"].left_out["in_scope"] == 0.0
    assert by_name["strange"].fitted["in_scope"] > 0.0


def test_a_question_that_may_not_be_fitted_on_changes_no_weight() -> None:
    kept = with_decisions(make_collection("one", 0.0))
    held = [
        Measured("one", "held", "far", "", fitted=False, reported=True, scope={"likeness": 9.0})
    ]

    with_held, without = (
        fit(rows, ("likeness",), ("likeness",)) for rows in ([*kept, *held], kept)
    )
    assert with_held.covered.weights == pytest.approx(without.covered.weights)


def test_a_mean_is_taken_over_the_collections_that_have_the_figure() -> None:
    assert compute_means([{"near": 0.5, "macro_f1": 0.6}, {"near": 1.0}]) == {
        "near": 0.75,
        "macro_f1": 0.6,
    }


def test_the_table_replaces_the_one_before() -> None:
    reports = report_collections(
        with_decisions([*make_collection("one", 0.0), *make_collection("two", 0.0)]),
        assess, ("likeness",), ("likeness",),
    )  # fmt: skip
    table = make_table(reports, reports)

    page = replace_table(f"before\n{BEGIN}\nold\n{END}\nafter\n", table)
    assert page == f"before\n{BEGIN}\n\n{table}\n\n{END}\nafter\n"
    assert "| one | " in table


def with_decisions(measured: list[Measured]) -> list[Measured]:
    """Add a few labelled decisions, separated by the same feature."""
    return [
        *measured,
        *(
            Measured(
                name, f"{decision} {number}", "", decision, fitted=True, reported=True,
                scope={"likeness": 1.0 - value}, then="answer",
            )
            for name in ("labelled", "labelled too")
            for value, decision in enumerate(DECISIONS)
            for number in range(5)
        ),
    ]  # fmt: skip
