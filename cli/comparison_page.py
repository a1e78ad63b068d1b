"""Prints the measurements of variants as tables, and writes the page that compares their
answers.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from cli.evaluation.measures import AnswerMeasure, list_cited_places
from cli.evaluation.summaries import Figures, MeasuredVariant, summarize
from cli.printing import WIDTH, columns, cut_line
from deploy.errors import CommandError
from envelope.encoding import remove_hidden_characters
from gateway.answer import safe_reply

NAME_COLUMNS = 22
WORST_SHOWN = 10
_QUALITY = (("useful", 9), ("complete", 10), ("page", 6), ("cited", 7), ("support", 9))
_EFFORT = (("calls", 7), ("tokens in + out", 18), ("cost USD", 13), ("s p50", 8), ("s p95", 8))
_NOTHING = "-"
LONGEST_SOURCE = 4_000
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
pre { background: #f4f4f4; overflow-x: auto; padding: .8rem; white-space: pre-wrap; }
.answers { display: flex; flex-wrap: wrap; gap: 1rem; }
article { border: 1px solid #bbb; flex: 1 1 24rem; min-width: 0; padding: 1rem; }
article.useful { border-color: #2a7a3b; }
article.faulty { border-color: #b3261e; }
.verdict { font-weight: 600; }
.unsupported { background: #fde7e5; }
.small { color: #555; font-size: .875rem; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def make_table_lines(variants: Sequence[MeasuredVariant]) -> list[str]:
    """Return the tables of all variants, and the worst answers of each."""
    figures = [summarize(variant) for variant in variants]
    lines = [_head("Answers", _QUALITY), *(_quality_line(figure) for figure in figures), ""]
    lines += [_head("Refusals", (("right", 9), ("wrong", 10))), *map(_refusal_line, figures), ""]
    lines += [_head("Time and cost", _EFFORT), *(_effort_line(figure) for figure in figures)]
    for variant, figure in zip(variants, figures, strict=True):
        lines += ["", *_make_verdict_lines(figure), "", *_make_worst_lines(variant)]
    return lines


def fit(text: str, width: int) -> str:
    """Return the text on one line of exactly `width` columns, truncated or padded."""
    line = cut_line(" ".join(text.split()), width)
    return line + " " * (width - columns(line))


def format_share(value: object) -> str:
    """Return a share with two digits, or a dash if nothing was measured."""
    return f"{value:.2f}" if isinstance(value, float) else _NOTHING


def format_cost(figures: Mapping[str, object]) -> str:
    """Return a cost, with a question mark if the cost of some calls is unknown."""
    doubt = "?" if figures["unknown_costs"] else ""
    return f"{float(str(figures['cost_usd'])):.6f}{doubt}"


def check_page_path(path: Path) -> None:
    """Raise `CommandError` if the page cannot be written; called before the first question is
    asked.
    """
    if path.suffix != ".html":
        raise CommandError(f"the file of --page must have the suffix .html, found {str(path)!r}")
    if not path.parent.is_dir():
        raise CommandError(f"the folder of --page does not exist: {str(path.parent)!r}")


def make_page(variants: Sequence[MeasuredVariant]) -> str:
    """Return the page, which has no scripts and loads no external content."""
    names = [variant.name for variant in variants]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Answers, the worst first</title><style>{_STYLE}</style></head><body>",
        "<h1>Answers, the worst first</h1>",
        f"<pre>{_html(chr(10).join(make_table_lines(variants)))}</pre>",
    ]
    for answers in _sort_cases(variants):
        case = answers[0].asked.case
        parts.append(f"<section><h2>{_html(case.id)}: {_html(case.question)}</h2>")
        parts += [f'<p class="small">{_html(line)}</p>' for line in _describe_case(answers[0])]
        parts.append('<div class="answers">')
        parts += [_article(name, answer) for name, answer in zip(names, answers, strict=True)]
        parts.append("</div></section>")
    return "\n".join([*parts, "</body></html>", ""])


def _head(title: str, names: Sequence[tuple[str, int]]) -> str:
    return f"{title:<{NAME_COLUMNS}}{''.join(f'{name:>{width}}' for name, width in names)}"


def _line(figures: Figures, names: Sequence[tuple[str, int]], values: Sequence[str]) -> str:
    cells = (f"{value:>{width}}" for value, (_, width) in zip(values, names, strict=True))
    return f"{fit(str(figures['variant']), NAME_COLUMNS - 1)} {''.join(cells)}"


def _quality_line(figures: Figures) -> str:
    shares = ("complete", "page", "cited", "support")
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
    if figures["kinds"]:
        lines.append("  useful by kind")
        lines += [
            f"  {count:>8}  {fit(kind, 60).rstrip()}" for kind, count in figures["kinds"].items()
        ]
    return lines


def _make_worst_lines(variant: MeasuredVariant) -> list[str]:
    worst = [measure for measure in variant.worst_first if not measure.useful][:WORST_SHOWN]
    if not worst:
        return ["Every answer is useful."]
    lines = ["The worst answers"]
    for measure in worst:
        why = f"{measure.verdict} ({measure.reason})" if measure.reason else measure.verdict
        lines.append(f"  {fit(measure.asked.case.id, 20)} {fit(why, 57)}".rstrip())
        lines.append(f"{'':23}{fit(measure.asked.case.question, WIDTH - 23)}".rstrip())
        if measure.missing and measure.ended == "answer":
            lines.append(
                f"{'':23}{fit('not said: ' + '; '.join(measure.missing), WIDTH - 23)}".rstrip()
            )
    return lines


def _sort_cases(variants: Sequence[MeasuredVariant]) -> list[tuple[AnswerMeasure, ...]]:
    """Return the answers to each question, one per variant, sorted by the worst of them."""
    by_case = list(zip(*(variant.measures for variant in variants), strict=True))
    return sorted(by_case, key=lambda answers: min(answer.rank for answer in answers))


def _article(name: str, measure: AnswerMeasure) -> str:
    faults = "".join(f"<li>{_html(fault)}</li>" for fault in _describe_faults(measure))
    sources = "".join(
        f"<details><summary>[{number}] {_html(place)}</summary><pre>{_html(text)}</pre></details>"
        for number, place, text in _list_sources(measure)
    )
    return "\n".join(
        [
            f'<article class="{"useful" if measure.useful else "faulty"}">',
            f"<h3>{_html(name)}</h3>",
            f'<p class="verdict">{_html(_describe_verdict(measure))}</p>',
            f"<pre>{_html(_text(measure))}</pre>",
            f'<ul class="unsupported">{faults}</ul>' if faults else "",
            sources,
            f'<p class="small">{_html(_describe_effort(measure))}</p>',
            "</article>",
        ]
    )


def _describe_case(measure: AnswerMeasure) -> list[str]:
    case = measure.asked.case
    lines = [f"before: {turn}" for turn in case.turns]
    lines.append(f"expected: {case.expect}" + (f" ({case.reason})" if case.reason else ""))
    lines += [f"must say: {' | '.join(wordings)}" for wordings in case.must_say]
    lines += [f"must not say: {' | '.join(wordings)}" for wordings in case.must_not_say]
    return [*lines, *(f"page: {page}" for page in case.pages)]


def _describe_verdict(measure: AnswerMeasure) -> str:
    why = f" ({measure.reason})" if measure.reason else ""
    shares = (
        ("complete", measure.completeness), ("page", measure.page), ("cited", measure.cited),
        ("support", measure.support),
    )  # fmt: skip
    known = [f"{name} {format_share(share)}" for name, share in shares if share is not None]
    return f"{measure.verdict}{why}{'; ' if known else ''}{', '.join(known)}"


def _describe_faults(measure: AnswerMeasure) -> list[str]:
    faults = [f"not said: {fact}" for fact in measure.missing if measure.ended == "answer"]
    faults += [f"said, although forbidden: {fact}" for fact in measure.forbidden]
    faults += [
        f"cites nothing: {sentence.text}" for sentence in measure.sentences if not sentence.cites
    ]
    faults += [
        f"not supported, according to the judge: {sentence.text} ({sentence.reason})"
        for sentence in measure.sentences
        if sentence.cites and sentence.supported is False
    ]
    return faults


def _describe_effort(measure: AnswerMeasure) -> str:
    totals = measure.asked.totals
    cost = f"{totals.cost_usd:.6f} USD" + (" and more" if totals.unknown_costs else "")
    parts = [
        f"{measure.asked.seconds:.2f} s", f"{totals.calls} calls",
        f"{totals.input_tokens} + {totals.output_tokens} tokens", cost,
    ]  # fmt: skip
    return ", ".join(parts)


def _list_sources(measure: AnswerMeasure) -> list[tuple[int, str, str]]:
    places = list_cited_places(measure.asked.reply)
    named = ", ".join(places)
    sources = measure.asked.evidence.items()
    return [
        (number, text.partition("\n")[0] or named, text[:LONGEST_SOURCE])
        for number, text in sources
    ]


def _text(measure: AnswerMeasure) -> str:
    return str(safe_reply(measure.asked.reply)[0]["text"])


def _html(text: str) -> str:
    return escape(remove_hidden_characters(text))
