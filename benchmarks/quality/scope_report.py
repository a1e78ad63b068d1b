"""Reports scope and answer, ask or refuse, leaving out one collection at a time.

`python -m benchmarks.quality.scope_report --data FOLDER --features FILE [--write]`

`FOLDER` holds the public sets that `benchmarks.quality.scope_corpora` names. `FILE` keeps
the features of all searches: it is made when it is missing, which takes minutes; with it a report
takes seconds. `--write` replaces the table in docs/measurements/evaluation.md.

The file has a line per question: label, half, features of the search for the scope and, where
people labelled the decision, those of the search for the answer and what the desk does when both
are good enough. Fitting and reporting then take seconds.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.quality.collection import EvaluationDesk, open_collection
from benchmarks.quality.conversation import DECIDED, compute_macro_f1
from benchmarks.quality.scope_corpora import (
    IN_SCOPE,
    OUTSIDE,
    Case,
    Collection,
    compose_collections,
)
from config.settings import Settings, load_settings
from deploy.assembly.knowledge import Knowledge
from envelope.conversation import Turn
from knowledge.answerability import (
    BY_COSINES,
    BY_WORDS,
    Assess,
    Assessment,
    AssessmentWeights,
    assess,
    assess_by_words,
)
from knowledge.embedding import Embedder
from knowledge.port import Findings, SearchRequest
from knowledge.search.searcher import LevelSearcher

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """A question and what was found; `then` is the decision without a search."""

    collection: str
    text: str
    label: str
    decision: str
    fitted: bool
    reported: bool
    scope: Features
    related: tuple[str, ...] = ()
    answer: Features = field(default_factory=dict)
    then: str = ""


async def measure_collections(
    collections: tuple[Collection, ...],
    report: Callable[[str], None],
    *,
    embedder: Embedder | None = None,
) -> list[Measured]:
    """Return the features of every question of every collection."""
    found: list[Measured] = []
    settings = load_settings()
    for collection in collections:
        with tempfile.TemporaryDirectory(prefix="refdesk-scope-") as folder:
            path = collection.write(Path(folder))
            async with open_collection([path], settings, embedder) as knowledge:
                asking = _Asking(collection.name, settings, knowledge)
                found += [await asking.ask(case) for case in collection.cases]
        report(f"{collection.name}: {len(collection.cases)} questions")
    return found


def write_features(path: Path, measured: list[Measured]) -> None:
    """Write one line of JSON per question."""
    path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in measured), "utf-8")


def read_features(path: Path) -> list[Measured]:
    """Return what `write_features` wrote."""
    lines = path.read_text("utf-8").splitlines()
    return [_parse(json.loads(line)) for line in lines]


def _parse(row: dict[str, Any]) -> Measured:
    return Measured(**{**row, "related": tuple(row["related"])})


class _Asking:
    """Asks questions of one collection: by a search, or through the flow if they are labelled."""

    def __init__(self, name: str, settings: Settings, knowledge: Knowledge) -> None:
        self._name = name
        self._searcher = _PermissiveSearcher(knowledge)
        self._desk = EvaluationDesk(settings, replace(knowledge, searcher=self._searcher))

    async def ask(self, case: Case) -> Measured:
        self._searcher.seen.clear()
        then = ""
        if case.decision:
            history = [
                Turn(speaker="user" if speaker == "user" else "assistant", text=text)
                for speaker, text in case.history
            ]
            finish, _ = await self._desk.ask(case.text, history)
            then = DECIDED.get(finish.outcome, "failed")
        if not self._searcher.seen and not case.decision:
            request = SearchRequest(question=case.text, text=case.text, language="en", limit=5)
            await self._searcher.search(request)
        seen = self._searcher.seen
        return Measured(
            collection=self._name,
            text=seen[0][0].question if seen else case.text,
            label=case.label if seen else "",
            decision=case.decision,
            fitted=case.fitted,
            reported=case.reported,
            scope=seen[0][1] if seen else {},
            related=seen[0][0].related if seen else (),
            answer=seen[1][1] if len(seen) > 1 else {},
            then=then,
        )


class _PermissiveSearcher(LevelSearcher):
    """Notes the features of every search and reports each as good enough."""

    def __init__(self, knowledge: Knowledge) -> None:
        super().__init__(knowledge.index, knowledge.embedder)
        self.seen: list[tuple[SearchRequest, Features]] = []

    async def search(self, request: SearchRequest) -> Findings:
        findings = await super().search(request)
        self.seen.append((request, findings.features))
        return replace(
            findings, quality="excellent", answerability=1.0, coverage=1.0, ambiguity=0.0
        )


Array = npt.NDArray[np.float64]
DECISIONS = ("answer", "ask", "refuse")
ACCEPTED = 0.95
RIDGE = 15.0
_STEPS = 30
_LABELS = {IN_SCOPE: 1.5, "near": 0.7, "far": 0.5, "chitchat": 0.3}


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A bias and a weight per feature and class, for features as the search gives them."""

    names: tuple[str, ...]
    bias: Array
    weights: Array

    def sum(self, features: Features) -> Array:
        """Return the sum for each class."""
        values = np.array([features.get(name, 0.0) for name in self.names])
        sums: Array = self.bias + values @ self.weights
        return sums


@dataclass(frozen=True, slots=True)
class Fitted:
    """What `knowledge.answerability` holds as constants."""

    covered: LinearModel
    asked: LinearModel

    def assess(self, features: Features) -> Assessment:
        """Return the probabilities; a search that found nothing is refused."""
        if not features:
            return Assessment(0.0, 0.0, 0.0)
        coverage = float(_softmax(self.covered.sum(features)[None])[0, 0])
        answer, ask = (float(share) for share in _softmax(self.asked.sum(features)[None])[0, :2])
        return Assessment(answerability=answer, coverage=coverage, ambiguity=ask)


def fit(measured: Sequence[Measured], covered: tuple[str, ...], asked: tuple[str, ...]) -> Fitted:
    """Return the weights for these features; only what may be fitted on is looked at."""
    return Fitted(_fit_coverage(measured, covered), _fit_decision(measured, asked))


def _fit_coverage(measured: Sequence[Measured], names: tuple[str, ...]) -> LinearModel:
    """Return weights that give 95 % of the questions in scope, of the mean collection, half."""
    rows = [one for one in measured if one.fitted and one.label and one.scope]
    importance = _balance([(one.collection, one.label) for one in rows], _LABELS)
    classes = [0 if one.label == IN_SCOPE else 1 for one in rows]
    found = _fit_classes([one.scope for one in rows], names, classes, 2, importance)
    inside = [(one.collection, found.sum(one.scope)[0]) for one in rows if one.label == IN_SCOPE]
    each = Counter(name for name, _ in inside)
    shares = np.array([1 / each[name] for name, _ in inside])
    values = np.array([value for _, value in inside])
    order = np.argsort(values)
    passed = np.cumsum(shares[order]) / shares.sum()
    least = values[order][int(np.searchsorted(passed, 1 - ACCEPTED))]
    return LinearModel(names, found.bias - least, found.weights)


def _fit_decision(measured: Sequence[Measured], names: tuple[str, ...]) -> LinearModel:
    rows = [one for one in measured if one.fitted and one.decision and (one.answer or one.scope)]
    importance = _balance([("", one.decision) for one in rows], {})
    classes = [DECISIONS.index(one.decision) for one in rows]
    return _fit_classes([one.answer or one.scope for one in rows], names, classes, 3, importance)


def _balance(keys: Sequence[tuple[str, str]], label_weights: Mapping[str, float]) -> Array:
    """Return an importance per row, so that the labels of each collection weigh as stated."""
    counts = Counter(keys)
    raw = np.array([label_weights.get(label, 1.0) / counts[name, label] for name, label in keys])
    totals = dict.fromkeys((name for name, _ in keys), 0.0)
    for (name, _), value in zip(keys, raw, strict=True):
        totals[name] += float(value)
    balanced = np.array([value / totals[name] for (name, _), value in zip(keys, raw, strict=True)])
    importance: Array = balanced / balanced.mean()
    return importance


def _fit_classes(
    features: Sequence[Features],
    names: tuple[str, ...],
    classes: Sequence[int],
    count: int,
    importance: Array,
) -> LinearModel:
    """Fit a multinomial logistic model whose last class is the reference."""
    values = np.array([[one.get(name, 0.0) for name in names] for one in features])
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-9
    inputs = np.column_stack([np.ones(len(values)), (values - mean) / spread])
    size = inputs.shape[1]
    wanted = np.eye(count)[np.asarray(classes)][:, :-1]
    ridge = np.tile(np.r_[1e-6, np.full(size - 1, RIDGE)], count - 1)
    found = np.zeros((count - 1) * size)
    for _ in range(_STEPS):
        matrix = found.reshape(count - 1, size)
        shares = _softmax(inputs @ matrix.T)[:, :-1]
        slope = ((shares - wanted) * importance[:, None]).T @ inputs
        bend = np.zeros((len(found), len(found)))
        for one in range(count - 1):
            for other in range(count - 1):
                own = shares[:, one] * ((one == other) - shares[:, other]) * importance
                block = (inputs * own[:, None]).T @ inputs
                bend[one * size : (one + 1) * size, other * size : (other + 1) * size] = block
        step = np.linalg.solve(bend + np.diag(ridge), slope.ravel() + ridge * found)
        found -= step
    matrix = found.reshape(count - 1, size)
    weights = matrix[:, 1:] / spread
    return LinearModel(names, matrix[:, 0] - weights @ mean, weights.T)


def _softmax(sums: Array) -> Array:
    """Return the shares of the classes; the last one, the reference, has the sum 0."""
    all_sums = np.column_stack([sums, np.zeros(len(sums))])
    raised = np.exp(all_sums - all_sums.max(axis=1, keepdims=True))
    shares: Array = raised / raised.sum(axis=1, keepdims=True)
    return shares


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
    return found.coverage >= _NEUTRAL or found.ambiguity > _NEUTRAL


_NEUTRAL = 0.5
"""The probability at which the models are undecided; the desk itself declines far fewer."""
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


PAGE = Path(__file__).parents[2] / "docs" / "measurements" / "evaluation.md"


def main() -> None:
    """Run the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.scope_report")
    parser.add_argument("--data", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--features", required=True, type=Path, metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.name}")
    chosen = parser.parse_args()
    if not chosen.features.is_file():
        write_features(chosen.features, _measure(chosen.data))
    measured = read_features(chosen.features)
    reports = report_collections(measured, assess, *_name_features(BY_COSINES))
    by_words = report_collections(measured, assess_by_words, *_name_features(BY_WORDS))
    table = make_table(reports, by_words)
    print(table)
    if chosen.write:
        PAGE.write_text(replace_table(PAGE.read_text("utf-8"), table), "utf-8")


def _measure(data: Path) -> list[Measured]:
    collections = compose_collections(data)
    return asyncio.run(measure_collections(collections, lambda line: print(line, file=sys.stderr)))


def _name_features(weights: AssessmentWeights) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(weights.covered), tuple(weights.asked)


if __name__ == "__main__":
    main()
