"""Summarizes the measures of each variant, and returns all measurements as plain values."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from cli.evaluation.judging import describe_calls
from cli.evaluation.measures import AnswerMeasure, list_cited_places
from gateway.answer import safe_reply

Figures = dict[str, Any]
_LATE = 0.95


@dataclass(frozen=True, slots=True)
class MeasuredVariant:
    """The measures of one variant, in the order of the questions."""

    name: str
    measures: tuple[AnswerMeasure, ...]

    @property
    def worst_first(self) -> list[AnswerMeasure]:
        """The measures, with the worst first."""
        return sorted(self.measures, key=lambda item: item.rank)


def summarize(variant: MeasuredVariant) -> Figures:
    """Return the summary of one variant; a mean without any values is None."""
    measures = variant.measures
    to_refuse = [measure for measure in measures if measure.asked.case.expect == "refuse"]
    to_answer = [measure for measure in measures if measure.asked.case.expect == "answer"]
    return {
        "variant": variant.name,
        "questions": len(measures),
        "useful": sum(measure.useful for measure in measures),
        "complete": _mean(measure.completeness for measure in to_answer),
        "page": _mean(measure.page for measure in to_answer),
        "cited": _mean(measure.cited for measure in measures),
        "support": _mean(measure.support for measure in measures),
        "to_answer": len(to_answer),
        "wrong_refusals": sum(measure.verdict == "wrong refusal" for measure in measures),
        "to_refuse": len(to_refuse),
        "right_refusals": sum(measure.ended == "refuse" for measure in to_refuse),
        "verdicts": dict(Counter(measure.verdict for measure in measures).most_common()),
        "kinds": _count_kinds(measures),
        **_sum_totals(measures),
        "judge": describe_calls([call for measure in measures for call in measure.judge_calls]),
    }


def describe_measure(measure: AnswerMeasure) -> Figures:
    """Return all measurements of one answer as JSON values."""
    asked = measure.asked
    totals = asked.totals
    reply, _ = safe_reply(asked.reply)
    return {
        "id": asked.case.id,
        "question": asked.case.question,
        "kind": asked.case.kind,
        "expect": asked.case.expect,
        "ended": measure.ended,
        "reason": measure.reason,
        "verdict": measure.verdict,
        "useful": measure.useful,
        "missing": list(measure.missing),
        "forbidden": list(measure.forbidden),
        "complete": measure.completeness,
        "page": measure.page,
        "cited": measure.cited,
        "support": measure.support,
        "sentences": [asdict(sentence) for sentence in measure.sentences],
        "text": reply["text"],
        "language": reply.get("language"),
        "sources": list(list_cited_places(reply)),
        "calls": totals.calls,
        "failed_calls": totals.failed,
        "input_tokens": totals.input_tokens,
        "output_tokens": totals.output_tokens,
        "cost_usd": str(totals.cost_usd),
        "unknown_costs": totals.unknown_costs,
        "seconds": round(asked.seconds, 3),
    }


def _sum_totals(measures: Sequence[AnswerMeasure]) -> Figures:
    totals = [measure.asked.totals for measure in measures]
    seconds = sorted(measure.asked.seconds for measure in measures)
    return {
        "calls": sum(call_totals.calls for call_totals in totals),
        "failed_calls": sum(call_totals.failed for call_totals in totals),
        "input_tokens": sum(call_totals.input_tokens for call_totals in totals),
        "output_tokens": sum(call_totals.output_tokens for call_totals in totals),
        "cost_usd": str(sum((call_totals.cost_usd for call_totals in totals), Decimal(0))),
        "unknown_costs": sum(call_totals.unknown_costs for call_totals in totals),
        "seconds_p50": _quantile(seconds, 0.5),
        "seconds_p95": _quantile(seconds, _LATE),
    }


def _count_kinds(measures: Sequence[AnswerMeasure]) -> dict[str, str]:
    """Return, for each type of question, how many were answered usefully."""
    kinds = sorted({measure.asked.case.kind for measure in measures} - {""})
    counted = {}
    for kind in kinds:
        useful = [measure.useful for measure in measures if measure.asked.case.kind == kind]
        counted[kind] = f"{sum(useful)}/{len(useful)}"
    return counted


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return round(sum(known) / len(known), 4) if known else None


def _quantile(values: Sequence[float], share: float) -> float:
    return round(values[min(len(values) - 1, int(share * len(values)))], 3) if values else 0.0
