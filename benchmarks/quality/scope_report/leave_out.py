"""Fits on all collections but one and reports on that one, for each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents.question.guardrails import is_covered
from benchmarks.quality.conversation import compute_macro_f1
from benchmarks.quality.scope_report.corpora import IN_SCOPE, OUTSIDE
from benchmarks.quality.scope_report.features import Measured
from benchmarks.quality.scope_report.fitting import fit
from knowledge.answerability import Assess

LABELS = (IN_SCOPE, *OUTSIDE)
LEAST_ANSWERABILITY = 0.3
MACRO_F1 = "macro_f1"
Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """The figures of one collection: left out of the fit, and with it in the fit."""

    name: str
    left_out: Figures
    fitted: Figures
    shipped: Figures


def report_collections(
    measured: Sequence[Measured],
    shipped: Assess,
    covered: tuple[str, ...],
    asked: tuple[str, ...],
) -> list[CollectionReport]:
    """Return a report for every collection."""
    with_all = fit(measured, covered, asked).assess
    reports = []
    for name in dict.fromkeys(one.collection for one in measured):
        own = [one for one in measured if one.collection == name]
        others = [one for one in measured if one.collection != name]
        reports.append(
            CollectionReport(
                name,
                left_out=compute_figures(own, fit(others, covered, asked).assess),
                fitted=compute_figures(own, with_all),
                shipped=compute_figures(own, shipped),
            )
        )
    return reports


def compute_means(figures: Iterable[Figures]) -> Figures:
    """Return the mean of every figure over the collections that have it."""
    found = list(figures)
    names = dict.fromkeys(name for one in found for name in one)
    return {
        name: sum(one[name] for one in found if name in one) / sum(name in one for one in found)
        for name in names
    }


def compute_figures(measured: Sequence[Measured], assess: Assess) -> Figures:
    """Return the share of each label that is decided rightly, and macro-F1 where it is labelled."""
    figures: dict[str, float] = {}
    for label in LABELS:
        own = [one for one in measured if one.label == label and one.reported]
        if own:
            accepted = [_is_within(one, assess) for one in own]
            share = sum(accepted) / len(accepted)
            figures[label] = share if label == IN_SCOPE else 1 - share
    labelled = [one for one in measured if one.decision]
    if len({one.decision for one in labelled}) > 2:
        pairs = [(one.decision, decide(one, assess)) for one in labelled]
        figures[MACRO_F1] = compute_macro_f1(pairs)
    return figures


def decide(one: Measured, assess: Assess) -> str:
    """Return what the desk does: the rules of guardrails and search over these assessments."""
    if not one.scope:
        return one.then
    if not _is_within(one, assess):
        return "refuse"
    found = assess(one.answer or one.scope)
    if found.answerability >= LEAST_ANSWERABILITY or one.then == "ask":
        return one.then
    unclear = found.ambiguity >= 1 - found.answerability - found.ambiguity
    return "ask" if unclear else "refuse"


def _is_within(one: Measured, assess: Assess) -> bool:
    found = assess(one.scope)
    return is_covered(found.coverage, found.ambiguity, "medium")


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
