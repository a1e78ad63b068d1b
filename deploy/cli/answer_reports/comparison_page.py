"""Writes a page for comparing answers, the worst first: HTML or Markdown.

The page needs no script and loads nothing. Questions, answers and documents are data: in HTML they
are escaped, in Markdown they are inside fences that they cannot close.
"""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from deploy.cli.answer_reports.tables import format_share, make_table_lines
from deploy.errors import CommandError
from deploy.evaluation.measures import AnswerMeasure, list_cited_places
from deploy.evaluation.summaries import MeasuredVariant
from envelope.hidden_characters import remove_hidden_characters
from gateway.answer import safe_reply

SUFFIXES = (".html", ".md")
LONGEST_SOURCE = 4_000
_RUN = re.compile(r"`+")
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


def check_page_path(path: Path) -> None:
    """Raise `CommandError` for a page that cannot be written; called before anything is asked."""
    if path.suffix not in SUFFIXES:
        raise CommandError(
            f"expected a page {' or '.join(SUFFIXES)} at --page, found {str(path)!r}"
        )
    if not path.parent.is_dir():
        raise CommandError(f"expected a folder for --page, found none at {str(path.parent)!r}")


def make_page(path: Path, variants: Sequence[MeasuredVariant], notes: Sequence[str]) -> str:
    """Return the page in the format that its path names."""
    make = _make_html if path.suffix == ".html" else _make_markdown
    return make(variants, notes)


def _sort_cases(variants: Sequence[MeasuredVariant]) -> list[tuple[AnswerMeasure, ...]]:
    """Return the answers to each question, one per variant, sorted by the worst of them."""
    by_case = list(zip(*(variant.measures for variant in variants), strict=True))
    return sorted(by_case, key=lambda answers: min(one.rank for one in answers))


def _make_html(variants: Sequence[MeasuredVariant], notes: Sequence[str]) -> str:
    names = [variant.name for variant in variants]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Answers, the worst first</title><style>{_STYLE}</style></head><body>",
        "<h1>Answers, the worst first</h1>",
        *(f"<p><strong>Note:</strong> {_html(note)}</p>" for note in notes),
        f"<pre>{_html(chr(10).join(make_table_lines(variants)))}</pre>",
    ]
    for answers in _sort_cases(variants):
        case = answers[0].asked.case
        parts.append(f"<section><h2>{_html(case.id)}: {_html(case.question)}</h2>")
        parts += [f'<p class="small">{_html(line)}</p>' for line in _describe_case(answers[0])]
        parts.append('<div class="answers">')
        parts += [_article(name, one) for name, one in zip(names, answers, strict=True)]
        parts.append("</div></section>")
    return "\n".join([*parts, "</body></html>", ""])


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


def _make_markdown(variants: Sequence[MeasuredVariant], notes: Sequence[str]) -> str:
    names = [variant.name for variant in variants]
    parts = ["# Answers, the worst first", *(_fence(f"Note: {note}") for note in notes)]
    parts.append(_fence("\n".join(make_table_lines(variants))))
    for answers in _sort_cases(variants):
        case = answers[0].asked.case
        parts += [
            "## Question",
            _fence("\n".join([f"{case.id}: {case.question}", *_describe_case(answers[0])])),
        ]
        for name, one in zip(names, answers, strict=True):
            lines = [name, _describe_verdict(one), *_describe_faults(one), _describe_effort(one)]
            parts += ["### Answer", _fence("\n".join(lines)), _fence(_text(one))]
            parts += [
                _fence(f"[{number}] {place}\n{text}") for number, place, text in _list_sources(one)
            ]
    return "\n\n".join([*parts, ""])


def _describe_case(measure: AnswerMeasure) -> list[str]:
    case = measure.asked.case
    lines = [f"before: {turn}" for turn in case.turns]
    lines.append(f"expected: {case.expect}" + (f" ({case.reason})" if case.reason else ""))
    lines += [f"must say: {' | '.join(one)}" for one in case.must_say]
    lines += [f"must not say: {' | '.join(one)}" for one in case.must_not_say]
    return [*lines, *(f"page: {page}" for page in case.pages)]


def _describe_verdict(measure: AnswerMeasure) -> str:
    why = f" ({measure.reason})" if measure.reason else ""
    shares = (
        ("complete", measure.completeness), ("page", measure.page), ("support", measure.support),
        ("precision", measure.precision), ("recall", measure.recall),
        ("judged", measure.judged_support),
    )  # fmt: skip
    known = [f"{name} {format_share(share)}" for name, share in shares if share is not None]
    return f"{measure.verdict}{why}{'; ' if known else ''}{', '.join(known)}"


def _describe_faults(measure: AnswerMeasure) -> list[str]:
    faults = [f"not said: {one}" for one in measure.missing if measure.ended == "answer"]
    faults += [f"said, though forbidden: {one}" for one in measure.forbidden]
    faults += [
        f"not supported: {one.text} ({one.reason})"
        for one in measure.sentences
        if not one.supported
    ]
    faults += [
        f"not supported, says the judge: {one.text} ({one.judged_reason})"
        for one in measure.sentences
        if one.judged is False
    ]
    return faults


def _describe_effort(measure: AnswerMeasure) -> str:
    totals = measure.asked.totals
    cost = f"{totals.cost_usd:.6f} USD" + (" and more" if totals.unknown_costs else "")
    parts = [
        f"{measure.asked.seconds:.2f} s", f"{totals.calls} calls",
        f"{totals.input_tokens} + {totals.output_tokens} tokens", cost,
    ]  # fmt: skip
    hashes = ", ".join(totals.prompt_hashes)
    return ", ".join(parts) + (f"; prompts {hashes}" if hashes else "")


def _list_sources(measure: AnswerMeasure) -> list[tuple[int, str, str]]:
    places = list_cited_places(measure.asked.reply)
    named = ", ".join(places)
    found = measure.asked.evidence.items()
    return [
        (number, text.partition("\n")[0] or named, text[:LONGEST_SOURCE]) for number, text in found
    ]


def _text(measure: AnswerMeasure) -> str:
    return str(safe_reply(measure.asked.reply)[0]["text"])


def _html(text: str) -> str:
    return escape(remove_hidden_characters(text))


def _fence(text: str) -> str:
    clean = remove_hidden_characters(text)
    longest = max((len(run) for run in _RUN.findall(clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean}\n{fence}"
