"""Writes the Grafana dashboard of the desk: `python -m deploy.generate.dashboards`.

`deploy/dashboards/desk.json` is for its owner: questions, quality, gaps, cost, sources, channels.
`workers.json` beside it is for who runs the processes, and is written by hand.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "dashboards" / "desk.json"
COLUMNS, WIDTH, HEIGHT = 24, 8, 8
RATE = "[$__rate_interval]"
MINE = '{tenant=~"$tenant", assistant=~"$assistant"}'
SOURCE = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart: its title, what it shows, and its queries with their legends."""

    title: str
    about: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"


def _share(outcome: str) -> str:
    return (
        f'sum by (assistant) (rate(refdesk_questions_total{{outcome="{outcome}"}}{RATE})) / '
        f"sum by (assistant) (rate(refdesk_questions_total{RATE}))"
    )


def _quantile(share: str, metric: str, label: str) -> str:
    return f"histogram_quantile({share}, sum by (le, {label}) (rate({metric}_bucket{RATE})))"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    ("Questions", (
        Panel("Questions a minute by outcome", "Ended questions.",
              ((f"60 * sum by (outcome) (rate(refdesk_questions_total{MINE}{RATE}))", "{{outcome}}"),)),
        Panel("Questions a minute by channel", "Ended questions.",
              ((f"60 * sum by (channel) (rate(refdesk_questions_total{MINE}{RATE}))", "{{channel}}"),)),
        Panel("Seconds by way", "From acceptance to the outcome: median and 95th percentile.", (
            (_quantile("0.5", "refdesk_question_seconds", "way"), "{{way}} median"),
            (_quantile("0.95", "refdesk_question_seconds", "way"), "{{way}} 95 %")), "s"),
        Panel("Seconds by agent", "From taking an entry to acknowledging it, 95th percentile: the slowest agent is the bottleneck.",
              ((_quantile("0.95", "refdesk_handling_seconds", "role"), "{{role}}"),), "s"),
        Panel("Waiting entries by role", "A role whose depth grows needs more workers.",
              (("max by (role) (refdesk_depth)", "{{role}}"),)),
        Panel("Failed questions", "Share of the questions that ended as failed.",
              ((_share("failed"), "{{assistant}}"),), "percentunit"),
    )),
    ("Quality", (
        Panel("Score of judged answers", "Median and lowest tenth.", (
            (_quantile("0.5", "refdesk_question_quality", "assistant"), "{{assistant}} median"),
            (_quantile("0.1", "refdesk_question_quality", "assistant"), "{{assistant}} lowest 10 %")),
            "percentunit"),
        Panel("Ratings an hour", "By the people who asked.", (
            (f"3600 * sum by (rating) (rate(refdesk_feedback_total{RATE}))", "HTTP {{rating}}"),
            (f"3600 * sum by (rating) (rate(refdesk_chat_feedback_total{RATE}))", "chats {{rating}}"))),
        Panel("Faults in the work behind answers", "Found by the check of the records of the hops.",
              ((f"3600 * sum by (kind) (rate(refdesk_evidence_faults_total{RATE}))", "{{kind}}"),)),
    )),
    ("Gaps", (
        Panel("Refused, by reason", "Questions that the documents did not answer.",
              ((f'3600 * sum by (reason) (rate(refdesk_questions_total{{outcome="refused"}}{RATE}))',
                "{{reason}}"),)),
        Panel("Refused, share", "Of the questions of an assistant.",
              ((_share("refused"), "{{assistant}}"),), "percentunit"),
        Panel("Asked back, by reason", "Clarifications.",
              ((f'3600 * sum by (reason) (rate(refdesk_questions_total{{outcome="clarification"}}{RATE}))',
                "{{reason}}"),)),
        Panel("Answered without a model, by reason", "The passages of the search were shown instead.",
              ((f'3600 * sum by (reason) (rate(refdesk_questions_total{{outcome="answered", reason!=""}}{RATE}))',
                "{{reason}}"),)),
    )),
    ("Cost", (
        Panel("USD an hour by assistant", "Only questions whose prices are all known.",
              ((f"3600 * sum by (assistant) (rate(refdesk_question_cost_usd_total{MINE}{RATE}))",
                "{{assistant}}"),), "currencyUSD"),
        Panel("USD an hour by model", "",
              ((f"3600 * sum by (model) (rate(refdesk_model_cost_usd_total{RATE}))", "{{model}}"),),
              "currencyUSD"),
        Panel("USD a question by way", "",
              ((f"sum by (way) (rate(refdesk_question_cost_usd_total{RATE})) / "
                f"sum by (way) (rate(refdesk_questions_total{RATE}))", "{{way}}"),), "currencyUSD"),
        Panel("Model calls saved by the cache", "As a share of all model calls.",
              ((f"sum(rate(refdesk_model_cache_hits_total{RATE})) / (sum(rate(refdesk_model_cache_hits_total{RATE}))"
                f" + sum(rate(refdesk_model_calls_total{RATE})))", "hits"),), "percentunit"),
        Panel("Saved USD an hour", "", ((f"3600 * sum by (model) (rate(refdesk_model_saved_usd_total{RATE}))", "{{model}}"),),
              "currencyUSD"),
        Panel("Questions of unknown cost an hour", "State prices in MODEL_LIMITS.",
              ((f"3600 * sum by (assistant) (rate(refdesk_question_unpriced_total{RATE}))", "{{assistant}}"),)),
    )),
    ("Sources", (
        Panel("Documents that could not be read", "At the last reading of each source; refdesk status lists them.",
              (("max(refdesk_source_failed_documents)", "documents"), ("max(refdesk_sources)", "sources"))),
        Panel("Age of the oldest reading", "", (("max(refdesk_source_oldest_seconds)", "oldest"),), "s"),
        Panel("Searches a minute", "In the index, or answered from the cache.",
              ((f"60 * sum by (source) (rate(refdesk_searches_total{RATE}))", "{{source}}"),)),
    )),
    ("Channels", (
        Panel("HTTP requests a minute by status", "",
              ((f"60 * sum by (status) (rate(refdesk_http_requests_total{RATE}))", "{{status}}"),)),
        Panel("Open streams and shown outcomes", "",
              (("sum(refdesk_http_streams)", "streams"),
               (f"60 * sum by (outcome) (rate(refdesk_http_outcomes_total{RATE}))", "{{outcome}} a minute"))),
        Panel("Seconds of HTTP requests", "95 %, by route.",
              ((_quantile("0.95", "refdesk_http_seconds", "route"), "{{route}}"),), "s"),
        Panel("Deliveries in chats a minute", "",
              ((f"60 * sum by (channel, result) (rate(refdesk_chat_deliveries_total{RATE}))", "{{channel}} {{result}}"),)),
        Panel("Declined chat messages an hour", "",
              ((f"3600 * sum by (channel, reason) (rate(refdesk_chat_declined_total{RATE}))", "{{channel}} {{reason}}"),)),
    )),
)  # fmt: skip


def make_dashboard() -> dict[str, Any]:
    """Return the dashboard."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, charts in ROWS:
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False,
             "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}, "panels": []}
        )  # fmt: skip
        for at, chart in enumerate(charts):
            row, column = divmod(at * WIDTH, COLUMNS)
            place = {"x": column, "y": y + 1 + row * HEIGHT, "w": WIDTH, "h": HEIGHT}
            panels.append(_make_panel(len(panels) + 1, chart, place))
        y += 1 + HEIGHT * -(-len(charts) * WIDTH // COLUMNS)
    return {
        "uid": "refdesk-desk",
        "title": "Refdesk: the desk",
        "description": "From the metrics that docs/deployment.md lists.",
        "tags": ["refdesk"],
        "timezone": "browser",
        "editable": True,
        "schemaVersion": 39,
        "version": 1,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Data source", "type": "datasource",
                 "query": "prometheus", "current": {}},
                _make_variable("tenant"),
                _make_variable("assistant"),
            ]
        },
        "annotations": {"list": []},
        "panels": panels,
    }  # fmt: skip


def _make_panel(number: int, chart: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": chart.title,
        "description": chart.about,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": chart.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"expr": query, "legendFormat": legend, "refId": chr(ord("A") + at)}
            for at, (query, legend) in enumerate(chart.queries)
        ],
    }


def _make_variable(name: str) -> dict[str, Any]:
    query = f"label_values(refdesk_questions_total, {name})"
    return {
        "name": name, "label": name.capitalize(), "type": "query", "datasource": SOURCE,
        "query": {"query": query, "refId": name}, "definition": query, "includeAll": True,
        "multi": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
        "refresh": 2, "sort": 1,
    }  # fmt: skip


def write_dashboard() -> str:
    """Return the file: a line for each panel."""
    made = make_dashboard()
    panels = ",\n  ".join(json.dumps(panel) for panel in made.pop("panels"))
    head = json.dumps(made, indent=1).removesuffix("\n}")
    return f'{head},\n "panels": [\n  {panels}\n ]\n}}\n'


def main() -> int:
    """Write the dashboard."""
    FILE.write_text(write_dashboard(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
