"""Prints the figures of variants as tables of at most 80 columns."""

from collections.abc import Mapping, Sequence

from deploy.cli.markdown_tables import columns
from deploy.cli.printing import WIDTH
from deploy.evaluation.summaries import Figures, MeasuredVariant, summarize

NAME_COLUMNS = 22
WORST_SHOWN = 10
_QUALITY = (
    ("useful", 9), ("complete", 10), ("page", 6), ("support", 9), ("precision", 11), ("recall", 8),
)  # fmt: skip
_EFFORT = (("calls", 7), ("tokens in + out", 18), ("cost USD", 13), ("s p50", 8), ("s p95", 8))
_NOTHING = "-"


def make_table_lines(variants: Sequence[MeasuredVariant]) -> list[str]:
    """Return the tables of all variants, and the worst answers of each."""
    figures = [summarize(variant) for variant in variants]
    lines = [_head("Answers", _QUALITY), *(_quality_line(one) for one in figures), ""]
    lines += [_head("Refusals", (("right", 9), ("wrong", 10))), *map(_refusal_line, figures), ""]
    lines += [_head("What it took", _EFFORT), *(_effort_line(one) for one in figures)]
    for variant, one in zip(variants, figures, strict=True):
        lines += ["", *_make_verdict_lines(one), "", *_make_worst_lines(variant)]
    return lines


def fit(text: str, width: int) -> str:
    """Return a text in one line of exactly `width` columns, cut where it is longer."""
    line = " ".join(text.split())
    if columns(line) > width:
        while columns(line) > width - 1:
            line = line[:-1]
        line = f"{line}…"
    return line + " " * (width - columns(line))


def format_share(value: object) -> str:
    """Return a share with two digits, or a dash where nothing was measured."""
    return f"{value:.2f}" if isinstance(value, float) else _NOTHING


def format_cost(figures: Mapping[str, object]) -> str:
    """Return a cost; with a question mark where the cost of some calls is unknown."""
    doubt = "?" if figures["unknown_costs"] else ""
    return f"{float(str(figures['cost_usd'])):.6f}{doubt}"


def _head(title: str, names: Sequence[tuple[str, int]]) -> str:
    return f"{title:<{NAME_COLUMNS}}{''.join(f'{name:>{width}}' for name, width in names)}"


def _line(figures: Figures, names: Sequence[tuple[str, int]], values: Sequence[str]) -> str:
    cells = (f"{value:>{width}}" for value, (_, width) in zip(values, names, strict=True))
    return f"{fit(str(figures['variant']), NAME_COLUMNS - 1)} {''.join(cells)}"


def _quality_line(figures: Figures) -> str:
    shares = ("complete", "page", "support", "citation_precision", "citation_recall")
    counted = f"{figures['useful']}/{figures['questions']}"
    return _line(figures, _QUALITY, [counted, *(format_share(figures[name]) for name in shares)])


def _refusal_line(figures: Figures) -> str:
    right = f"{figures['right_refusals']}/{figures['to_refuse']}"
    wrong = f"{figures['wrong_refusals']}/{figures['to_answer']}"
    return _line(figures, (("", 9), ("", 10)), [right, wrong])


def _effort_line(figures: Figures) -> str:
    tokens = f"{figures['input_tokens']} + {figures['output_tokens']}"
    seconds = [f"{figures[name]:.2f}" for name in ("seconds_p50", "seconds_p95")]
    return _line(figures, _EFFORT, [str(figures["calls"]), tokens, format_cost(figures), *seconds])


def _make_verdict_lines(figures: Figures) -> list[str]:
    lines = [fit(str(figures["variant"]), WIDTH).rstrip()]
    lines += [f"  {count:>4}  {verdict}" for verdict, count in figures["verdicts"].items()]
    if figures["judged_support"] is not None:
        lines.append(
            f"  the judge finds {figures['judged_support']:.2f} of the sentences supported"
        )
    if figures["kinds"]:
        lines.append("  useful by kind")
        lines += [
            f"  {count:>8}  {fit(kind, 60).rstrip()}" for kind, count in figures["kinds"].items()
        ]
    return lines


def _make_worst_lines(variant: MeasuredVariant) -> list[str]:
    worst = [one for one in variant.worst_first if not one.useful][:WORST_SHOWN]
    if not worst:
        return ["Every answer is useful."]
    lines = ["The worst answers"]
    for one in worst:
        why = f"{one.verdict} ({one.reason})" if one.reason else one.verdict
        lines.append(f"  {fit(one.asked.case.id, 20)} {fit(why, 57)}".rstrip())
        lines.append(f"{'':23}{fit(one.asked.case.question, WIDTH - 23)}".rstrip())
        if one.missing and one.ended == "answer":
            lines.append(
                f"{'':23}{fit('not said: ' + '; '.join(one.missing), WIDTH - 23)}".rstrip()
            )
    return lines
