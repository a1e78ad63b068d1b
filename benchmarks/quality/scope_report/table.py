"""Writes the report as a table of Markdown."""

from collections.abc import Sequence

from benchmarks.quality.scope_report.leave_out import (
    LABELS,
    MACRO_F1,
    CollectionReport,
    Figures,
    compute_means,
)

BEGIN = "<!-- leave one out: begin, written by python -m benchmarks.quality.scope_report -->"
END = "<!-- leave one out: end -->"
_HEAD = (
    "| left out, then fitted on all | accepted: in scope | rejected: near | far | chitchat "
    "| macro-F1 |",
    "|---|---|---|---|---|---|",
)


def make_table(reports: Sequence[CollectionReport], by_words: Sequence[CollectionReport]) -> str:
    """Return a row per collection and means; `by_words` are the reports without cosines."""
    rows = [_make_row(one.name, one.left_out, one.fitted) for one in reports]
    rows.append(_make_mean("**mean**", reports))
    rows.append(_make_mean("mean, words alone", by_words))
    shipped = compute_means(one.shipped for one in reports)
    rows.append(_make_row("mean, the weights of the product (fitted on most)", shipped))
    return "\n".join((*_HEAD, *rows))


def replace_table(page: str, table: str) -> str:
    """Return the page with the table between its marks; raises `ValueError` without marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected {BEGIN!r} and {END!r} in the page, found them not")
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def _make_mean(name: str, reports: Sequence[CollectionReport]) -> str:
    left_out = compute_means(one.left_out for one in reports)
    return _make_row(name, left_out, compute_means(one.fitted for one in reports))


def _make_row(name: str, *columns: Figures) -> str:
    cells = [
        ", ".join(_format(one[figure]) for one in columns) if figure in columns[0] else "-"
        for figure in (*LABELS, MACRO_F1)
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _format(share: float) -> str:
    text = f"{share:.3f}"
    return text if share >= 1 else text.removeprefix("0")
