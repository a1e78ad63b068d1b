"""Draws the charts of the console as SVG, without scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from markupsafe import Markup, escape

from gateway.console.figures import OUTCOMES, DayFigures

_HEIGHT, _GAP, _FOOT = 160, 4, 18
_CHART_WIDTH, _MOST_STEP = 720, 72
"""The width of a chart, and the maximum width of the bar of one day, in pixels."""
_LANE_HEIGHT, _LANE_WIDTH, _LABEL_WIDTH = 22, 1000, 190
_LEAST_WIDTH = 2.0
_DAY_WIDTH = 36
"""The width of the label of a day, in pixels."""
_MOST_LANES = 60


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of a trace: the step, its branch, and its time (seconds since acceptance)."""

    label: str
    detail: str
    kind: str
    start: float
    seconds: float
    depth: int


def draw_days(days: Sequence[DayFigures]) -> Markup:
    """Return a bar chart with a bar for each day, divided by outcome; tooltips show the numbers."""
    most = max((day.total for day in days), default=0) or 1
    bars = []
    for day in days:
        counts = [(name, count) for name in OUTCOMES if (count := day.outcomes.get(name, 0))]
        title = ", ".join(f"{count} {name}" for name, count in counts) or "no questions"
        shares = [(f"outcome-{name}", count / most) for name, count in counts]
        bars.append((day.day, title, shares))
    return _draw_bars(bars, str(most), f"Questions by day, at most {most} on one day")


def draw_amounts(days: Sequence[tuple[str, Decimal]], label: str) -> Markup:
    """Return a bar chart with a bar for each day, whose height is an amount in US dollars."""
    most = max((amount for _, amount in days), default=Decimal(0)) or Decimal(1)
    bars = [(day, f"${amount:.4f}", [("amount", float(amount / most))]) for day, amount in days]
    return _draw_bars(bars, f"${most:.2f}", f"{label}, at most ${most:.2f}")


def list_lanes(steps: Sequence[Mapping[str, Any]]) -> list[Lane]:
    """Return the rows of a recorded trace: agent runs and model calls, in order of time."""
    lanes = []
    for step in steps:
        took = float(step.get("seconds") or 0.0)
        branch = str(step.get("branch") or "")
        if step["kind"] == "agent_run":
            label, detail = str(step.get("role", "")), str(step.get("status", ""))
        elif step["kind"] == "model_call":
            label = f"{step.get('task', '')} · {step.get('model', '')}".strip(" ·")
            price = step.get("cost_usd")
            shown = f"${price}" if price else "price unknown"
            detail = f"{step.get('tokens', 0)} tokens, {shown}"
        elif step["kind"] in {"retried", "dead_lettered", "memory_failed", "budget_exhausted"}:
            label, detail = str(step["kind"]).replace("_", " "), str(step.get("text", ""))
        else:
            continue
        # The journal notes a run when it has ended.
        start = max(0.0, float(step["at"]) - took)
        lanes.append(Lane(label, detail, str(step["kind"]), start, took, branch.count("/")
                          + bool(branch)))  # fmt: skip
    return sorted(lanes, key=lambda item: item.start)


def draw_lanes(lanes: Sequence[Lane], seconds: float) -> Markup:
    """Return the rows as bars on one time axis of `seconds`, limited to what fits on a page."""
    shown, whole = lanes[:_MOST_LANES], max(seconds, 0.001)
    height = max(1, len(shown)) * _LANE_HEIGHT
    parts = [
        Markup('<svg class="lanes" role="img" viewBox="0 0 {} {}" aria-label="{}">').format(
            _LABEL_WIDTH + _LANE_WIDTH, height, f"What ran when, in {seconds:.1f} seconds"
        )
    ]
    for at, lane in enumerate(shown):
        x = _LABEL_WIDTH + lane.start / whole * _LANE_WIDTH
        width = max(_LEAST_WIDTH, lane.seconds / whole * _LANE_WIDTH)
        width = min(width, _LABEL_WIDTH + _LANE_WIDTH - x)
        y = at * _LANE_HEIGHT
        parts.append(
            Markup(
                '<g><title>{}</title><text x="{}" y="{}">{}</text>'
                '<rect class="lane-{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}"/></g>'
            ).format(
                f"{lane.label}: {lane.seconds:.2f} s, {lane.detail}",
                lane.depth * 10,
                y + 15,
                _shorten(lane.label, 28 - lane.depth),
                lane.kind,
                x,
                y + 4,
                width,
                _LANE_HEIGHT - 8,
            )
        )
    parts.append(Markup("</svg>"))
    return Markup("").join(parts)


def _draw_bars(
    bars: Sequence[tuple[str, str, Sequence[tuple[str, float]]]], most: str, label: str
) -> Markup:
    """Return the bars of days: for each, its title, and the class and relative height of each part.

    The text has the same size for any number of days.
    """
    step = min(_MOST_STEP, _CHART_WIDTH // max(1, len(bars))) or 1
    wide, high = max(1, step * len(bars)), _HEIGHT + _FOOT
    opening = Markup(
        '<svg class="chart" role="img" width="{0}" height="{1}" viewBox="0 0 {0} {1}" '
        'aria-label="{2}">'
    )
    parts = [opening.format(wide, high, label)]
    for at, (day, title, shares) in enumerate(bars):
        parts.append(Markup("<g><title>{}: {}</title>").format(day, title))
        x, bottom = at * step + _GAP, float(_HEIGHT)
        for name, share in shares:
            height = share * (_HEIGHT - _GAP)
            bottom -= height
            rect = Markup('<rect class="{}" x="{}" y="{:.1f}" width="{}" height="{:.1f}"/>')
            parts.append(rect.format(name, x, bottom, step - _GAP, height))
        if at % max(2, len(bars) // 6) == 0 and wide - x >= _DAY_WIDTH:
            text = Markup('<text x="{}" y="{}">{}</text>')
            parts.append(text.format(x, high - 4, day[5:]))
        parts.append(Markup("</g>"))
    parts.append(Markup('<text x="0" y="12">{}</text></svg>').format(most))
    return Markup("").join(parts)


def _shorten(text: str, most: int) -> Markup:
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")
